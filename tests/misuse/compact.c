/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact.c - every wrong use of quire/compact.h and quire/evict.h: the documented code, a
 * sentence, zeroed outputs, nothing changed.
 */
#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

enum { SIZE = 1000 };

static bench b;
static quire_memory *memory;
static quire_allocation live, reserved, stale;

static void begin(void)
{
    const quire_allocation_options options = {.size = SIZE, .movable = true};
    bench_begin(&b, true);
    b.fake.info.limits.elastic_kinds = 0x2;
    CHECK(bench_open(&b) && bench_memory(&b, &(quire_memory_options){.kind.mask = 2}) &&
          bench_allocate(&b, 2, &options) && bench_reserve(&b, &options));
    memory = b.memory;
    live = b.held[0].allocation;
    stale = b.held[1].allocation;
    reserved = b.held[2].allocation;
    CHECK(bench_free(&b, 1));
    refusal_begin(&b);
}

static void end(void)
{
    bench_end(&b);
}

static void compaction(void)
{
    quire_compaction *c = NULL, *other = NULL;
    quire_compact_stats stats;
    quire_compact_move move = {live, live, SIZE, {0}};
    uint64_t count;
    quire_memory *before = b.memory;
    REFUSE_OUT(INVALID, stats, quire_compact_estimate(NULL, &stats));
    REFUSE(INVALID, quire_compact_estimate(memory, NULL));
    REFUSE_OUT(INVALID, c, quire_compact_begin(NULL, &c));
    REFUSE(INVALID, quire_compact_begin(memory, NULL));
    REFUSE(INVALID, quire_compact_step(NULL, NULL, NULL));
    REFUSE_OUT(INVALID, stats, quire_compact_step(NULL, NULL, &stats));
    REFUSE_OUT(INVALID, stats, quire_compact_step_on_stream(NULL, NULL, NULL, &stats));
    REFUSE_OUT(INVALID, count, quire_compact_offer(NULL, NULL, &move, 1, &count, NULL));
    REFUSE(INVALID, quire_compact_accept(NULL, &move, NULL));
    REFUSE(INVALID, quire_compact_decline(NULL, &move));
    REFUSE_OUT(INVALID, stats, quire_compact_get_stats(NULL, &stats));
    HARMLESS(&b, quire_compact_end(NULL));
    HARMLESS(&b, quire_compact_end(&c));
    CHECK(bench_memory(&b, &(quire_memory_options){.elastic = true,
                                                   .kind.mask = 0x2,
                                                   .address_space = 1 << 20,
                                                   .pages.page_size = 4096}));
    refusal_begin(&b);
    REFUSE_OUT(UNSUPPORTED, c, quire_compact_begin(b.memory, &c));
    REFUSE_OUT(UNSUPPORTED, stats, quire_compact_estimate(b.memory, &stats));
    REFUSE_OUT(UNSUPPORTED, count,
               quire_memory_evict(b.memory, &(quire_evict_options){.bytes = 1}, &count));
    REFUSE(UNSUPPORTED, quire_wake(b.memory, live));
    quire_memory_destroy_all(&b.memories[1]);
    b.memory = before;
    refusal_begin(&b);
    if (quire_compact_begin(memory, &c)) /* a checked build */
        return;
    REFUSE_OUT(BUSY, other, quire_compact_begin(memory, &other));
    REFUSE_OUT(INVALID, stats,
               quire_compact_step(c, &(quire_compact_limits){.unused = {0, 0, 1}}, &stats));
    REFUSE_OUT(INVALID, count, quire_compact_offer(c, NULL, NULL, 1, &count, NULL));
    REFUSE(INVALID, quire_compact_offer(c, NULL, &move, 1, NULL, NULL));
    REFUSE_OUT(
        INVALID, count,
        quire_compact_offer(c, &(quire_compact_limits){.unused = {1}}, &move, 1, &count, NULL));
    REFUSE(INVALID, quire_compact_get_stats(c, NULL));
    REFUSE_OUT(INVALID, stats, quire_compact_step_on_stream(c, NULL, NULL, &stats));
    REFUSE(INVALID, quire_compact_accept(c, NULL, NULL));
    REFUSE(INVALID, quire_compact_accept(c, &move, NULL)); /* it was not offered */
    REFUSE(INVALID, quire_compact_decline(c, NULL));
    REFUSE(INVALID, quire_compact_decline(c, &move));
    REFUSE(BUSY, quire_memory_destroy(&memory));
    CHECK_OK(quire_compact_step(c, NULL, NULL));
    quire_compact_end(&c);
    CHECK(!c);
}

static void eviction(void)
{
    const quire_evict_options all = {.bytes = UINT64_MAX};
    uint64_t bytes;
    REFUSE(INVALID, quire_memory_frame(NULL));
    REFUSE(INVALID, quire_set_priority(NULL, live, 0));
    REFUSE(INVALID, quire_set_priority(memory, (quire_allocation){0}, 0));
    REFUSE(STALE, quire_set_priority(memory, stale, 0));
    REFUSE(INVALID, quire_touch(NULL, live));
    REFUSE(INVALID, quire_touch(memory, (quire_allocation){0}));
    REFUSE(STALE, quire_touch(memory, stale));
    REFUSE_OUT(INVALID, bytes, quire_memory_evict(NULL, &all, &bytes));
    REFUSE_OUT(INVALID, bytes, quire_memory_evict(memory, NULL, &bytes));
    REFUSE_OUT(INVALID, bytes,
               quire_memory_evict(
                   memory, &(quire_evict_options){.bytes = 1, .unused = {0, 0, 0, 1}}, &bytes));
    REFUSE_OUT(INVALID, bytes,
               quire_memory_evict(memory,
                                  &(quire_evict_options){.bytes = 1, .mode = (quire_sleep_mode)2},
                                  &bytes));
    REFUSE(INVALID, quire_wake(NULL, live));
    if (quire_memory_evict(memory, &all, &bytes)) /* a checked build */
        return;
    CHECK_EQ(bytes, SIZE);
    refusal_begin(&b);
    REFUSE(WRONG_STATE, quire_touch(memory, live));
    REFUSE(INVALID, quire_wake(memory, (quire_allocation){0}));
    REFUSE(STALE, quire_wake(memory, stale));
    REFUSE(WRONG_STATE, quire_wake(memory, reserved));
    REFUSE(FOREIGN, quire_wake(memory, (quire_allocation){UINT64_MAX}));
    CHECK_OK(quire_wake(memory, live));
    refusal_begin(&b);
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"compaction", compaction},
    {"eviction", eviction},
    {NULL, NULL},
};

static const char *const headers[] = {"compact.h", "evict.h", NULL};

const misuse_area misuse_compact = {"compact", begin, end, cases, headers};
