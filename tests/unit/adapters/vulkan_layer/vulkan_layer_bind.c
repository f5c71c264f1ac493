/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_bind.c - the array forms of binding: one call of the driver, and the status of each
 * bind.
 */
#include "src/adapters/vulkan_layer/layer.h"
#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

enum { BINDS = 40, UNWRITTEN = 12345 };

/* VkBindMemoryStatus, which old headers lack. */
static const VkStructureType STATUS = (VkStructureType)1000545002;
typedef struct bind_status {
    VkStructureType sType;
    const void *pNext;
    VkResult *result;
} bind_status;

typedef struct scene {
    fv_fixture f;
    VkBuffer buffers[BINDS];
    VkImage images[BINDS];
    VkDeviceMemory memory;
    bind_status statuses[BINDS];
    VkResult results[BINDS];
} scene;

/* Buffers and images with space for all of them in one memory object of the layer. */
static void make_scene(scene *s)
{
    lf_open_named(&s->f, "amd-bar");
    for (unsigned i = 0; i < BINDS; i++) {
        VkMemoryRequirements needs;
        s->buffers[i] = fv_fixture_buffer(&s->f, KIB, COPIES);
        fv_fixture_needs(&s->f, s->buffers[i]);
        s->images[i] = lf_make_image(&s->f, VK_IMAGE_TILING_OPTIMAL);
        FV(&s->f, vkGetImageMemoryRequirements)(s->f.device, s->images[i], &needs);
        CHECK(needs.size <= 64 * KIB);
        s->results[i] = (VkResult)UNWRITTEN;
        s->statuses[i] = (bind_status){.sType = STATUS, .result = &s->results[i]};
    }
    s->memory = lf_allocate(&s->f, 2 * BINDS * 64 * KIB, 0, NULL);
}

static void end_scene(scene *s)
{
    for (unsigned i = 0; i < BINDS; i++) {
        FV(&s->f, vkDestroyBuffer)(s->f.device, s->buffers[i], NULL);
        FV(&s->f, vkDestroyImage)(s->f.device, s->images[i], NULL);
    }
    lf_release(&s->f, s->memory);
    fv_fixture_close(&s->f);
}

static VkResult bind_buffers(scene *s, unsigned count)
{
    VkBindBufferMemoryInfo infos[BINDS];
    for (unsigned i = 0; i < count; i++)
        infos[i] = (VkBindBufferMemoryInfo){.sType = VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO,
                                            .pNext = &s->statuses[i],
                                            .buffer = s->buffers[i],
                                            .memory = s->memory,
                                            .memoryOffset = 64 * KIB * i};
    return FV(&s->f, vkBindBufferMemory2)(s->f.device, count, infos);
}

static VkResult bind_images(scene *s, unsigned count)
{
    VkBindImageMemoryInfo infos[BINDS];
    for (unsigned i = 0; i < count; i++)
        infos[i] = (VkBindImageMemoryInfo){.sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO,
                                           .pNext = &s->statuses[i],
                                           .image = s->images[i],
                                           .memory = s->memory,
                                           .memoryOffset = 64 * KIB * (BINDS + i)};
    return FV(&s->f, vkBindImageMemory2)(s->f.device, count, infos);
}

static void expect_results(scene *s, VkResult expected)
{
    for (int i = 0; i < BINDS; i++) {
        CHECK_EQ((uint32_t)s->results[i], (uint32_t)expected);
        s->results[i] = (VkResult)UNWRITTEN;
    }
}

#define CASE(name) UNIT_ON(vulkan_layer_bind, name, scene, s, make_scene(s), end_scene)

CASE(an_array_of_any_length_is_one_call_and_each_status_is_written)
{
    CHECK_VK(bind_buffers(s, BINDS));
    CHECK_EQ(fv_calls(s->f.driver, "vkBindBufferMemory2"), 1);
    expect_results(s, VK_SUCCESS);
    CHECK_VK(bind_images(s, BINDS));
    CHECK_EQ(fv_calls(s->f.driver, "vkBindImageMemory2"), 1);
    expect_results(s, VK_SUCCESS);
    fv_place first = fv_place_of(s->f.driver, (uint64_t)(uintptr_t)s->buffers[0]);
    for (unsigned i = 0; i < BINDS; i++) {
        fv_place buffer = fv_place_of(s->f.driver, (uint64_t)(uintptr_t)s->buffers[i]);
        fv_place image = fv_place_of(s->f.driver, (uint64_t)(uintptr_t)s->images[i]);
        CHECK(buffer.memory == first.memory && image.memory == first.memory);
        CHECK_EQ(buffer.offset, first.offset + 64 * KIB * i);
        CHECK_EQ(image.offset, first.offset + 64 * KIB * (BINDS + i));
    }
}

CASE(a_failure_of_the_driver_is_in_every_status)
{
    CHECK(fv_fail(s->f.driver, &(fv_fault){.function = "vkBindBufferMemory2",
                                           .call = 1,
                                           .result = VK_ERROR_OUT_OF_DEVICE_MEMORY}));
    CHECK_EQ((uint32_t)bind_buffers(s, BINDS), (uint32_t)VK_ERROR_OUT_OF_DEVICE_MEMORY);
    expect_results(s, VK_ERROR_OUT_OF_DEVICE_MEMORY);
    fv_heal(s->f.driver);
    CHECK_VK(bind_buffers(s, BINDS));
}

static void *no_memory(void *user, size_t size, size_t alignment)
{
    (void)user, (void)size, (void)alignment;
    return NULL;
}

CASE(without_host_memory_nothing_is_bound_and_each_status_says_so)
{
    quire_host_memory *callbacks = &layer_device_of(s->f.device)->host.callbacks;
    const quire_host_memory usual = *callbacks;
    callbacks->allocate = no_memory;
    CHECK_EQ((uint32_t)bind_buffers(s, BINDS), (uint32_t)VK_ERROR_OUT_OF_HOST_MEMORY);
    expect_results(s, VK_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ((uint32_t)bind_images(s, BINDS), (uint32_t)VK_ERROR_OUT_OF_HOST_MEMORY);
    expect_results(s, VK_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_VK(bind_buffers(s, 3)); /* few binds need no host memory */
    CHECK_EQ((uint32_t)s->results[2], (uint32_t)VK_SUCCESS);
    CHECK_EQ((uint32_t)s->results[3], (uint32_t)UNWRITTEN);
    *callbacks = usual;
}
