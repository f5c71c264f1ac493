/*
 * vulkan_settings.c - the effect of each setting of a Vulkan device, and of each variant of
 * wrapping, on the fake driver. On real drivers: vulkan_open.c.
 */
#include <math.h>

#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL};

static quire_allocation allocate(quire_memory *memory)
{
    quire_allocation made;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 1000}, &made));
    return made;
}

/* The driver reports priorities that change on a device without the feature. */
VULKAN_UNIT_ON(vulkan_settings, priorities_of_an_own_device_change,
               vulkan_bench_start(b, "amd-rebar", 0))
{
    static const float good[] = {0.25f, 1, 0}, wrong[] = {-0.5f, 1.5f, NAN};
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    quire_allocation a = allocate(memory);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_vulkan_set_priority(memory, a, good[i]));
        CHECK_FAILS(quire_vulkan_set_priority(memory, a, wrong[i]), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK(vulkan_bench_page(b, memory, a).priority == good[i]);
    }
}

/* radv 23.1 has priorities of new memory only. */
VULKAN_UNIT_ON(vulkan_settings, priorities_do_not_change_without_the_feature,
               vulkan_bench_start(b, "amd-bar", 0))
{
    quire_memory *memory = vulkan_bench_memory(b, &LOCAL);
    CHECK_FAILS(quire_vulkan_set_priority(memory, allocate(memory), 0.25f),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "pageableDeviceLocalMemory");
}

/* ---- wrapping ------------------------------------------------------------------------------- */

static PFN_vkGetDeviceProcAddr next_one;
static uint64_t asked;

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL ask_next(VkDevice device, const char *name)
{
    asked++;
    return next_one(device, name);
}

/* Like a layer: the backend calls the functions of the given get_device_proc_addr. */
VULKAN_UNIT_ON(vulkan_settings, functions_come_from_the_next_layer_where_it_is_given,
               vulkan_bench_start(b, NULL, 0))
{
    const quire_vulkan_handles h = vulkan_bench_handles(b);
    next_one = VULKAN_CALL(h, vkGetDeviceProcAddr);
    quire_vulkan_wrap_options options = vulkan_bench_wrap(b);
    options.get_device_proc_addr = ask_next;
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    asked = 0;
    CHECK_OK(quire_vulkan_wrap(&options, &device));
    CHECK(asked > 30); /* all functions of devices */
    CHECK_OK(quire_memory_create(device, &LOCAL, &memory));
    allocate(memory);
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}
