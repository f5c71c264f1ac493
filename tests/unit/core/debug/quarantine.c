/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quarantine.c - freed ranges of checked builds: not reused at once, verified when they leave,
 * released before an allocation would fail, and excluded from statistics.
 */
#include "tests/support/unit.h"
#include "tests/support/watched.h"

enum { SIZE = 100, PAGE = 65536 };

/* ---- writes after a free ------------------------------------------------------------------ */

UNIT_EACH_KIND(quarantine, a_write_after_the_free_is_found_when_the_range_leaves)
{
    quire_native native = watched_native(w, watched_allocate(w, SIZE, "weights"));
    CHECK_OK(quire_free(w->memory, w->allocation));
    CHECK_EQ(watched_byte(w, &native, 0), 0xfd);
    watched_spoil(w, &native, 12);
    CHECK_STR(w->log, "");
    watched_settle(w);
    CHECK_HAS(w->log, "'weights'");
    CHECK_HAS(w->log, "written after it was freed: 1 byte, the first at byte 12, which is 0xbd");
    CHECK_FAILS(quire_memory_check(w->memory), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(w->log, quire_last_error());
    CHECK_OK(quire_memory_check(w->memory)); /* reported once */
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(quarantine, name, watched, w, watched_make(w, __VA_ARGS__), watched_end)

CASE(a_check_keeps_undamaged_ranges, KIND_DEVICE)
{
    quire_allocation first = watched_allocate(w, SIZE, "first");
    quire_allocation second = watched_allocate(w, SIZE, "second");
    quire_native native = watched_native(w, second);
    uint64_t offset = watched_info(w, first).offset;
    CHECK_OK(quire_free(w->memory, first));
    CHECK_OK(quire_free(w->memory, second));
    CHECK_OK(quire_memory_check(w->memory));
    watched_spoil(w, &native, SIZE - 1);
    CHECK_FAILS(quire_memory_check(w->memory), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "'second'");
    CHECK_OK(quire_memory_check(w->memory));
    CHECK(watched_info(w, watched_allocate(w, SIZE, NULL)).offset != offset); /* still there */
}

CASE(destroying_a_memory_reports_damage, KIND_COHERENT)
{
    quire_native native = watched_native(w, watched_allocate(w, SIZE, "weights"));
    CHECK_OK(quire_free(w->memory, w->allocation));
    watched_spoil(w, &native, 0);
    CHECK_OK(quire_memory_destroy(&w->memory));
    CHECK_HAS(w->log, "written after it was freed");
}

/* ---- when ranges leave -------------------------------------------------------------------- */

UNIT_ON(quarantine, a_range_is_reused_after_256_others, watched, w, watched_prepare(w), watched_end)
{
    watched_open(w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT});
    uint64_t first = watched_info(w, watched_allocate(w, SIZE, NULL)).offset;
    CHECK_OK(quire_free(w->memory, w->allocation));
    int rounds = 0;
    while (watched_info(w, watched_allocate(w, SIZE, NULL)).offset != first) {
        CHECK_OK(quire_free(w->memory, w->allocation));
        rounds++;
    }
    CHECK_EQ(rounds, 256);
}

UNIT_ON(quarantine, it_holds_at_most_16_mib, watched, w, watched_prepare(w), watched_end)
{
    const uint64_t size = (UINT64_C(1) << 20) - 4096;
    watched_open(w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                            .pages = {.page_size = UINT64_C(64) << 20}});
    uint64_t first = watched_info(w, watched_allocate(w, size, NULL)).offset;
    CHECK_OK(quire_free(w->memory, w->allocation));
    int rounds = 0;
    while (watched_info(w, watched_allocate(w, size, NULL)).offset != first) {
        CHECK_OK(quire_free(w->memory, w->allocation));
        rounds++;
    }
    CHECK_EQ(rounds, 16);
    CHECK_OK(quire_free(w->memory, w->allocation));
    watched_allocate(w, UINT64_C(20) << 20,
                     NULL); /* larger than the quarantine: released at once */
    uint64_t large = watched_info(w, w->allocation).offset;
    CHECK_OK(quire_free(w->memory, w->allocation));
    CHECK_EQ(watched_info(w, watched_allocate(w, UINT64_C(20) << 20, NULL)).offset, large);
}

UNIT_EACH_KIND(quarantine, it_is_emptied_before_a_page_is_created)
{
    for (int i = 0; i < 20; i++) {
        watched_allocate(w, PAGE - 1000, NULL);
        CHECK_OK(quire_free(w->memory, w->allocation));
    }
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.pages_created, 1);
}

UNIT_ON(quarantine, it_is_emptied_before_an_allocation_is_refused, watched, w, watched_prepare(w),
        watched_end)
{
    watched_open(w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                            .pages = {.page_size = PAGE, .max_pages = 1}});
    watched_allocate(w, PAGE - 1000, NULL);
    CHECK_OK(quire_free(w->memory, w->allocation));
    quire_allocation own; /* the empty page is destroyed for it */
    CHECK_OK(quire_allocate(w->memory, &(quire_allocation_options){.size = SIZE, .dedicated = true},
                            &own));
}

/*
 * VulkanMemoryAllocator never merges a debug margin with an equal padding, so that every free
 * leaves two ranges.
 */
typedef struct ranges {
    uint64_t count, size;
} ranges;

static bool count_range(void *user, const quire_item *item)
{
    ranges *r = user;
    CHECK(item->is_free);
    r->count++;
    r->size = item->size;
    return true;
}

UNIT(quarantine, freeing_everything_leaves_one_range)
{
    static const quire_fit FITS[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST};
    for (uint64_t padding = 0; padding <= 256; padding += 16)
        for (int fit = 0; fit < 2; fit++) {
            watched w;
            ranges r = {0};
            quire_allocation held[40];
            watched_prepare(&w);
            watched_open(&w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                                     .fit.algorithm = FITS[fit],
                                                     .pages = {.page_size = UINT64_C(1) << 20,
                                                               .extra_padding = padding}});
            for (uint32_t i = 0; i < 40; i++) {
                quire_allocation_options options = {.size = 64 + 64 * (i % 5),
                                                    .alignment = UINT64_C(1) << i % 10};
                CHECK_OK(quire_allocate(w.memory, &options, &held[i]));
            }
            for (uint32_t i = 0; i < 40; i++)
                CHECK_OK(quire_free(w.memory, held[i * 7 % 40]));
            watched_settle(&w);
            CHECK_OK(quire_memory_walk(w.memory, count_range, &r));
            CHECK_EQ(r.count, 1);
            CHECK_EQ(r.size, UINT64_C(1) << 20);
            watched_end(&w);
        }
}

UNIT_ON(quarantine, statistics_and_walks_exclude_it, watched, w, watched_prepare(w), watched_end)
{
    ranges r = {0};
    quire_memory_stats stats;
    quire_allocation found;
    watched_open(w,
                 &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT, .find_by_address = true});
    uint64_t address = watched_info(w, watched_allocate(w, SIZE, NULL)).address;
    CHECK_OK(quire_free(w->memory, w->allocation));
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.requested_bytes, 0);
    CHECK_EQ(stats.frees, 1);
    CHECK_OK(quire_memory_walk(w->memory, count_range, &r));
    CHECK_EQ(r.count, 2);
    CHECK_FAILS(quire_memory_find(w->memory, address, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_free_at_address(w->memory, address, NULL), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_free(w->memory, w->allocation), QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_memory_destroy(&w->memory));
}

CASE(the_native_object_is_destroyed_at_once, KIND_DEVICE)
{
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(w->memory, &(quire_buffer_options){.size = SIZE}, &buffer));
    CHECK_EQ(w->fake.objects, 1);
    CHECK_OK(quire_free(w->memory, buffer.allocation));
    CHECK_EQ(w->fake.objects, 0);
}

static quire_memory *sink_memory;

static void allocate_at_line(void *user, quire_log_level level, const char *line)
{
    quire_allocation allocation;
    (void)user, (void)level, (void)line;
    if (sink_memory)
        CHECK_OK(quire_allocate(sink_memory, &(quire_allocation_options){.size = PAGE - 1000},
                                &allocation));
}

CASE(a_sink_may_allocate_from_the_memory, KIND_COHERENT)
{
    CHECK_OK(quire_memory_destroy(&w->memory));
    CHECK_OK(quire_device_destroy(&w->device));
    const quire_device_options device = {.log = {.write = allocate_at_line}};
    CHECK_OK(quire_device_create(&w->fake.table, &w->fake, &device, &w->device));
    CHECK_OK(quire_memory_create(
        w->device,
        &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT, .pages = {.page_size = PAGE}},
        &w->memory));
    quire_native native = watched_native(w, watched_allocate(w, SIZE, NULL));
    CHECK_OK(quire_free(w->memory, w->allocation));
    watched_spoil(w, &native, 0);
    sink_memory = w->memory;
    watched_settle(w);
    sink_memory = NULL;
}
