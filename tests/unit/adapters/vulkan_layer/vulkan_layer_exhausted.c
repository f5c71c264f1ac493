/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_exhausted.c - the layer near the budget of a heap and beyond its end: how often it
 * calls the driver, and that it returns to pages when memory is free again.
 */
#include <string.h>

#include "tests/support/layer_fixture.h"
#include "tests/support/mini_loader.h"
#include "tests/support/unit.h"

enum { SMALL_HEAP = 2, ITS_TYPE = 3, COUNT = 256 };

static VkResult try_to_allocate(fv_fixture *f, uint64_t size, VkDeviceMemory *memory)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .allocationSize = size,
                                       .memoryTypeIndex = ITS_TYPE};
    *memory = VK_NULL_HANDLE;
    return FV(f, vkAllocateMemory)(f->device, &info, NULL, memory);
}

#define CASE(name, layout) LAYER_CASE(vulkan_layer_exhausted, name, layout)

/* The budget is an estimate that programs may exceed: the driver does not refuse. */
CASE(above_the_budget_ranges_are_in_pages_too, "amd-bar")
{
    VkDeviceMemory memories[COUNT];
    fv_set_budget(f->driver, 0, SMALL_HEAP, 2 * MIB, 0);
    for (int i = 0; i < COUNT; i++)
        memories[i] = lf_allocate(f, 64 * KIB, ITS_TYPE, NULL);
    CHECK(lf_driver_allocations(f) <= 16); /* from 1 MiB to a tenth of the bytes */
    for (int i = 0; i < COUNT; i++)
        CHECK(!lf_is_passed(f, memories[i]));
    for (int i = 0; i < COUNT; i++)
        lf_release(f, memories[i]);
}

CASE(a_request_beyond_the_end_of_a_heap_costs_one_call_of_the_driver, "amd-bar")
{
    enum { MOST = 128, MORE = 640 };
    VkDeviceMemory memories[MOST], none;
    int fitting = 0;
    fv_set_capacity(f->driver, 0, SMALL_HEAP, 8 * MIB);
    while (fitting < MOST && !try_to_allocate(f, 64 * KIB, &memories[fitting]))
        fitting++;
    CHECK(fitting > MOST / 4); /* red zones of a checked build take space */
    uint64_t before = lf_driver_allocations(f);
    for (int i = 0; i < MORE; i++)
        CHECK_EQ((uint32_t)try_to_allocate(f, 64 * KIB, &none),
                 (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    /* quire, which tries pages of ten sizes, is asked for the first and each 64th */
    CHECK(lf_driver_allocations(f) - before <= MORE + 12 * (1 + MORE / 64));
    lf_release(f, memories[7]);
    CHECK_VK(try_to_allocate(f, 64 * KIB, &memories[7]));
    CHECK(!lf_is_passed(f, memories[7]));
    for (int i = 0; i < fitting; i++)
        lf_release(f, memories[i]);
}

/* A smaller request may still find a gap, and memory that the driver frees is used for pages. */
CASE(pages_follow_when_passed_on_memory_is_freed, "amd-bar")
{
    VkDeviceMemory memory, small;
    fv_set_capacity(f->driver, 0, SMALL_HEAP, 33 * MIB);
    VkDeviceMemory large = lf_allocate(f, 32 * MIB, ITS_TYPE, NULL);
    CHECK(lf_is_passed(f, large));
    VkDeviceMemory first = lf_allocate(f, 64 * KIB, ITS_TYPE, NULL);
    CHECK(!lf_is_passed(f, first));
    CHECK_EQ((uint32_t)try_to_allocate(f, 2 * MIB, &memory),
             (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_VK(try_to_allocate(f, 64 * KIB, &small));
    CHECK(!lf_is_passed(f, small));
    lf_release(f, large);
    CHECK_VK(try_to_allocate(f, 2 * MIB, &memory));
    CHECK(!lf_is_passed(f, memory));
    lf_release(f, memory);
    lf_release(f, small);
    lf_release(f, first);
}

/* Memory that is freed without a call of the program, by another process for example. */
CASE(pages_follow_when_memory_is_freed_unseen, "amd-bar")
{
    enum { MORE = 66 };
    VkDeviceMemory memory, more[MORE];
    fv_set_capacity(f->driver, 0, SMALL_HEAP, 1);
    CHECK_EQ((uint32_t)try_to_allocate(f, 64 * KIB, &memory),
             (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    fv_set_capacity(f->driver, 0, SMALL_HEAP, 0);
    for (int i = 0; i < MORE; i++)
        CHECK_VK(try_to_allocate(f, 64 * KIB, &more[i]));
    CHECK(!lf_is_passed(f, more[MORE - 1]));
    for (int i = 0; i < MORE; i++)
        lf_release(f, more[i]);
}

/* Empty pages of another memory type of the heap make space for what the driver must serve. */
CASE(empty_pages_are_destroyed_for_passed_on_memory, "amd-bar")
{
    VkDeviceMemory memory;
    fv_set_capacity(f->driver, 0, SMALL_HEAP, 32 * MIB);
    lf_release(f, lf_allocate(f, 64 * KIB, 4, NULL));
    CHECK_EQ(fv_live(f->driver, FV_MEMORY), 1);
    CHECK_VK(try_to_allocate(f, 32 * MIB, &memory));
    CHECK_EQ(fv_live(f->driver, FV_MEMORY), 1);
    uint64_t before = lf_driver_allocations(f);
    VkDeviceMemory none;
    CHECK_EQ((uint32_t)try_to_allocate(f, 32 * MIB, &none),
             (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(lf_driver_allocations(f), before + 1); /* no page is left to destroy */
    lf_release(f, memory);
}

/* ---- what another thread does during a call of the driver ------------------------------------ */

/* Stands between the layer and the driver, and plays another thread of the program. */
static struct {
    fv_fixture *f;
    PFN_vkGetInstanceProcAddr get;
    PFN_vkGetDeviceProcAddr get_of_device;
    PFN_vkAllocateMemory allocate;
    PFN_vkFreeMemory release;
    VkDeviceMemory large; /* freed after the driver refused a page of the least size */
    bool allocates;       /* before the driver frees something */
} between;

static VKAPI_ATTR VkResult VKAPI_CALL allocate_between(VkDevice device,
                                                       const VkMemoryAllocateInfo *info,
                                                       const VkAllocationCallbacks *callbacks,
                                                       VkDeviceMemory *memory)
{
    VkResult code = between.allocate(device, info, callbacks, memory);
    VkDeviceMemory large = between.large;
    if (code && large && info->allocationSize < 3 * MIB) {
        between.large = VK_NULL_HANDLE;
        lf_release(between.f, large);
    }
    return code;
}

static VKAPI_ATTR void VKAPI_CALL release_between(VkDevice device, VkDeviceMemory memory,
                                                  const VkAllocationCallbacks *callbacks)
{
    VkDeviceMemory none;
    if (between.allocates) {
        between.allocates = false;
        CHECK_EQ((uint32_t)try_to_allocate(between.f, 2 * MIB, &none),
                 (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    }
    between.release(device, memory, callbacks);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_of_device_between(VkDevice device,
                                                                      const char *name)
{
    PFN_vkVoidFunction function = between.get_of_device(device, name);
    if (!strcmp(name, "vkAllocateMemory")) {
        between.allocate = (PFN_vkAllocateMemory)function;
        return (PFN_vkVoidFunction)allocate_between;
    }
    if (!strcmp(name, "vkFreeMemory")) {
        between.release = (PFN_vkFreeMemory)function;
        return (PFN_vkVoidFunction)release_between;
    }
    return function;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_between(VkInstance instance, const char *name)
{
    PFN_vkVoidFunction function = between.get(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr") != 0)
        return function;
    between.get_of_device = (PFN_vkGetDeviceProcAddr)function;
    return (PFN_vkVoidFunction)get_of_device_between;
}

static PFN_vkGetInstanceProcAddr over_between(PFN_vkGetInstanceProcAddr door)
{
    between.get = door;
    return mini_loader_over(get_between);
}

/* A heap of 33 MiB, with 32 MiB in a memory object of the driver and a page for 64 KiB. */
typedef struct full_heap {
    fv_fixture f;
    VkDeviceMemory large, small;
} full_heap;

static void fill_heap(full_heap *h)
{
    between.f = &h->f;
    fv_fixture_open_over(&h->f, &(fv_options){.layouts = {fv_layout_named("amd-bar")}},
                         over_between);
    fv_set_capacity(h->f.driver, 0, SMALL_HEAP, 33 * MIB);
    h->large = lf_allocate(&h->f, 32 * MIB, ITS_TYPE, NULL);
    h->small = lf_allocate(&h->f, 64 * KIB, ITS_TYPE, NULL);
    CHECK(lf_is_passed(&h->f, h->large));
    CHECK(!lf_is_passed(&h->f, h->small));
}

/* Memory is free again: the next request is served from a page. */
static void expect_page(full_heap *h)
{
    VkDeviceMemory memory = lf_allocate(&h->f, 2 * MIB, ITS_TYPE, NULL);
    CHECK(!lf_is_passed(&h->f, memory));
    lf_release(&h->f, memory);
}

static void close_heap(full_heap *h)
{
    lf_release(&h->f, h->small);
    fv_fixture_close(&h->f);
}

UNIT(vulkan_layer_exhausted, pages_follow_when_memory_is_freed_during_the_refusal)
{
    full_heap h;
    VkDeviceMemory memory;
    fill_heap(&h);
    between.large = h.large;
    CHECK_VK(try_to_allocate(&h.f, 2 * MIB, &memory));
    CHECK(lf_is_passed(&h.f, memory)); /* quire had been refused before */
    expect_page(&h);
    lf_release(&h.f, memory);
    close_heap(&h);
}

UNIT(vulkan_layer_exhausted, pages_follow_when_a_request_was_refused_during_the_freeing)
{
    full_heap h;
    fill_heap(&h);
    between.allocates = true;
    lf_release(&h.f, h.large);
    expect_page(&h);
    close_heap(&h);
}
