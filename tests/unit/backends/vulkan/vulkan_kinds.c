/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_kinds.c - the memory kinds that are chosen on layouts of real devices, which the fake
 * driver imitates; kinds that need a feature that is not enabled.
 */
#include "tests/support/kind_rules.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"

static const quire_memory_flags SPECIAL =
    QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED | QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED;

#define NONE UINT32_MAX

static uint32_t chosen_for(const quire_device *device, quire_intent intent)
{
    uint32_t kind = 0;
    return quire_device_choose_kind(device, &(quire_kind_request){.intent = intent}, &kind) ? NONE
                                                                                            : kind;
}

static uint64_t heap_size(const quire_device_info *info, uint32_t kind)
{
    return info->heaps[info->kinds[kind].heap].size;
}

/* The kind has no flag that was not requested, and device-only work leaves the host-visible window
   free. */
static void check_choice(const quire_device_info *info, uint32_t kind, bool for_device)
{
    if (kind == NONE)
        return;
    CHECK(!(info->kinds[kind].flags & SPECIAL));
    if (!for_device || !(info->kinds[kind].flags & QUIRE_HOST_VISIBLE))
        return;
    for (uint32_t i = 0; i < info->kind_count; i++)
        CHECK(info->kinds[i].flags != QUIRE_DEVICE_LOCAL ||
              heap_size(info, i) < heap_size(info, kind));
}

static void check_layout(const fv_layout *layout)
{
    vulkan_bench b;
    quire_device_info info;
    vulkan_bench_start(&b, layout->name, 0);
    CHECK_OK(quire_device_get_info(b.device, &info));
    CHECK_EQ(info.kind_count, layout->type_count);
    CHECK_EQ(info.heap_count, layout->heap_count);
    kind_rules_check(layout->name, info.kinds, info.kind_count);
    uint32_t device = chosen_for(b.device, QUIRE_INTENT_DEVICE);
    uint32_t upload = chosen_for(b.device, QUIRE_INTENT_UPLOAD);
    uint32_t readback = chosen_for(b.device, QUIRE_INTENT_HOST_READ);
    uint32_t both = chosen_for(b.device, QUIRE_INTENT_HOST_READ | QUIRE_INTENT_HOST_WRITE);
    uint32_t shared = chosen_for(b.device, QUIRE_INTENT_HOST_WRITE);
    check_choice(&info, device, true);
    check_choice(&info, upload, false);
    check_choice(&info, readback, false);
    check_choice(&info, both, false);
    check_choice(&info, shared, false);
    CHECK(device != NONE && upload != NONE && readback != NONE && shared != NONE);
    CHECK(info.kinds[device].flags & QUIRE_DEVICE_LOCAL);
    CHECK(info.kinds[upload].flags & QUIRE_HOST_VISIBLE);
    /* and a page of that kind is available */
    quire_memory *memory =
        vulkan_bench_memory(&b, &(quire_memory_options){.kind.mask = UINT32_C(1) << device});
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 1000}, &buffer));
    vulkan_bench_end(&b);
}

UNIT(vulkan_kinds, nothing_special_and_no_window_for_the_device_alone_on_any_layout)
{
    CHECK(fv_layout_count >= 10);
    for (uint32_t i = 0; i < fv_layout_count; i++)
        check_layout(&fv_layouts[i]);
}

UNIT(vulkan_kinds, kinds_of_features_that_are_not_enabled_are_refused)
{
    static const char *const layouts[] = {"amd-bar", "mobile-lazy"};
    int refused = 0;
    for (int i = 0; i < 2; i++) {
        vulkan_bench b;
        quire_device_info info;
        vulkan_bench_start(&b, layouts[i], 0);
        CHECK_OK(quire_device_get_info(b.device, &info));
        for (uint32_t kind = 0; kind < info.kind_count; kind++) {
            const quire_memory_flags unusable =
                QUIRE_PROTECTED | QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED;
            quire_memory *memory = NULL;
            quire_allocation made;
            if (!(info.kinds[kind].flags & unusable))
                continue;
            CHECK_OK(quire_memory_create(
                b.device, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind}, &memory));
            CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &made),
                        QUIRE_ERROR_UNSUPPORTED);
            CHECK_OK(quire_memory_destroy(&memory));
            refused++;
        }
        vulkan_bench_end(&b);
    }
    CHECK(refused > 0);
}
