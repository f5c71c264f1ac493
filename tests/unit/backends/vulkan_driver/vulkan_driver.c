/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_driver.c - optional properties of the drivers of this machine: budgets and real out
 * of memory. Runs on a device of quire's own, under the validation layer. Any message of the layer
 * or the driver fails the test.
 */
#include <stdio.h>
#include <stdlib.h>

#include "quire/insight.h"
#include "quire/vulkan.h"
#include "tests/support/unit.h"
#include "tests/support/valgrind.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

typedef struct bench {
    quire_device *device;
    quire_device_info info;
    uint64_t troubles;
    char first[1024];
} bench;

/* Newer layers warn about a size above maxMemoryAllocationSize, which a driver may grant. */
static void hear(void *user, quire_log_level level, const char *line)
{
    bench *b = user;
    (void)level; /* warnings and errors */
    if (strstr(line, "larger than maxMemoryAllocationSize"))
        return;
    if (!b->troubles++)
        snprintf(b->first, sizeof b->first, "%s", line);
}

/* Opens a device. Returns false if no driver is installed; the test is then skipped with the
   reason. */
static void begin(bench *b)
{
    *b = (bench){.device = NULL};
    const quire_vulkan_options options = {
        .settings = {.device = {.host_memory = unit_memory(),
                                .log = {.write = hear, .user = b, .level = QUIRE_LOG_WARNING}}}};
    if (under_valgrind())
        unit_skip("valgrind finds what drivers and layers leak");
    setenv("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation", 1);
    if (quire_vulkan_open(&options, &b->device))
        unit_skip("%s", quire_last_error());
    CHECK_OK(quire_device_get_info(b->device, &b->info));
}

static void end(bench *b)
{
    CHECK_OK(quire_device_destroy(&b->device));
    if (b->troubles)
        check_failed(__FILE__, __LINE__, "%" PRIu64 " messages, the first: %s", b->troubles,
                     b->first);
}

static quire_memory *memory_of(bench *b, const quire_memory_options *options)
{
    quire_memory *memory = NULL;
    CHECK_OK(quire_memory_create(b->device, options, &memory));
    return memory;
}

static void end_memory(quire_memory *memory)
{
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_destroy(&memory));
}

/* ---- budgets -------------------------------------------------------------------------------- */

/* Other processes use the heap, too, so that only a lower bound of its usage is known. */
UNIT_ALONE(vulkan_driver, the_budget_is_the_drivers_and_holds)
{
    bench b;
    quire_memory_info info;
    quire_budget_info before, with;
    quire_allocation allocation;
    quire_vulkan_features features;
    begin(&b);
    CHECK_OK(quire_vulkan_get_features(b.device, &features));
    if (!features.memory_budget)
        unit_skip("%s tells no budgets", b.info.name);
    quire_memory *memory = memory_of(
        &b, &(quire_memory_options){.pages = {.page_size = 64 * MIB}, .within_budget = true});
    CHECK_OK(quire_memory_get_info(memory, &info));
    uint32_t heap = b.info.kinds[info.kind].heap;
    CHECK_OK(quire_device_get_budget(b.device, heap, &before));
    CHECK(before.budget > 0 && before.budget <= before.size);
    CHECK_EQ(before.reserved, 0);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = MIB}, &allocation));
    CHECK_OK(quire_device_get_budget(b.device, heap, &with));
    CHECK_EQ(with.reserved, 64 * MIB);
    CHECK(with.available <= with.budget);
    CHECK_OK(quire_free(memory, allocation));
    if (with.budget < with.size) { /* unless the driver offers still less */
        quire_result result = quire_memory_preallocate(memory, with.size);
        CHECK(result == QUIRE_ERROR_OVER_BUDGET || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    }
    end_memory(memory);
    end(&b);
}

/* ---- out of memory -------------------------------------------------------------------------- */

/* Returns a size that fits into the heap and that the driver refuses in one allocation. 0: the
   driver would grant the whole heap. */
static uint64_t refused_size(const bench *b, uint32_t kind)
{
    uint64_t heap = b->info.heaps[b->info.kinds[kind].heap].size;
    uint64_t most = b->info.limits.usual_page;
    return most && most < heap ? most + b->info.limits.page_granularity : 0;
}

UNIT_ALONE(vulkan_driver, out_of_memory_is_told_and_leaves_nothing_behind)
{
    bench b;
    quire_memory_info info;
    quire_native_page page;
    quire_allocation allocation;
    begin(&b);
    quire_memory *memory = memory_of(&b, NULL);
    CHECK_OK(quire_memory_get_info(memory, &info));
    uint64_t size = refused_size(&b, info.kind);
    if (!size)
        unit_skip("%s would give all of its heap at once", b.info.name);
    /* bypasses the limits of the core */
    const quire_page_request request = {.kind = info.kind, .size = size, .alignment = 1};
    quire_result result =
        quire_device_backend(b.device)->page_create(quire_device_state(b.device), &request, &page);
    if (!result) {
        quire_device_backend(b.device)->page_destroy(quire_device_state(b.device), &page);
        unit_skip("%s gives more than its maxMemoryAllocationSize", b.info.name);
    }
    CHECK_EQ(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(quire_last_native_code(), VK_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &allocation) < 0);
    CHECK_EQ(allocation.id, 0);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = MIB}, &allocation));
    CHECK_OK(quire_free(memory, allocation));
    end_memory(memory);
    end(&b);
}
