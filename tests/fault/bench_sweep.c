/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bench_sweep.c - see bench_sweep.h.
 */
#include "tests/fault/bench_sweep.h"

#include "quire/trace.h"

typedef struct target {
    bench *bench;
    bench_scenario scenario;
    bool on_fake;
} target;

static bool run(void *context, uint64_t call)
{
    const target *t = context;
    CHECK(bench_run(t->bench, t->scenario, t->on_fake, call));
    return true;
}

void bench_sweep(bench *t, bench_scenario scenario, bool on_fake, bool in_backend,
                 quire_result code)
{
    target swept = {t, scenario, on_fake};
    t->in_backend = in_backend;
    t->code = code;
    for (int from_then = 0; from_then < 2; from_then++) {
        t->from_then = from_then != 0;
        CHECK(!bench_run(t, scenario, on_fake, 0));
        uint64_t calls = t->calls_before[t->step];
        fault_sweep(run, &swept, calls);
        if (fault_is_complete())
            CHECK(!bench_run(t, scenario, on_fake, calls + 1)); /* no call was left out */
    }
}

static bool replay_once(bench *t, const quire_trace *trace)
{
    quire_replay_report report;
    t->tolerance = BENCH_MAY_SUCCEED; /* a refused allocation is counted */
    TRY_OUT(t, report,
            quire_trace_replay(trace, t->memory, &(quire_replay_options){.name = true}, &report));
    CHECK_EQ(report.left_at_end + report.frees, report.allocations);
    return true;
}

bool bench_replay(bench *t, const char *text, size_t size)
{
    quire_trace *trace;
    TRY_OUT(t, trace, quire_trace_parse("trace", text, size, &t->host.callbacks, &trace));
    bool done = replay_once(t, trace);
    uint64_t calls = t->host.calls;
    quire_trace_destroy(&trace);
    CHECK_EQ(t->host.calls, calls);
    return done;
}

/* ---- compaction --------------------------------------------------------------------------- */

enum { PAGES = 5, ON_A_PAGE = 4, LEFT = 15, PAGE = 64 * 1024, SIZE = 15 * 1024 };

/* No call that can fail, so that a look at contents is no part of the plan. */
static unsigned char *bytes_of(const bench_held *h)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(h->memory, h->allocation, &native));
    return native.host ? native.host : fake_bytes(&native.page) + native.offset;
}

/* The contents of an allocation are its number. */
static void fill(const bench *t)
{
    for (uint32_t i = 0; i < t->held_count; i++)
        memset(bytes_of(&t->held[i]), (int)i + 1, SIZE);
}

static void expect_contents(const bench *t)
{
    for (uint32_t i = 0; i < t->held_count; i++) {
        if (!t->held[i].allocation.id)
            continue;
        const unsigned char *bytes = bytes_of(&t->held[i]);
        CHECK(bytes[0] == i + 1 && !memcmp(bytes, bytes + 1, SIZE - 1));
    }
}

static bool step(bench *t, quire_compaction *c, quire_compact_stats *done)
{
    TRY(t, quire_compact_step(c, &(quire_compact_limits){.moves = 1}, done));
    return true;
}

static quire_memory_stats stats_of(const bench *t)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(t->memory));
    CHECK_OK(quire_memory_get_stats(t->memory, &stats));
    return stats;
}

/* A page that could not be had in full size leaves more of them. */
static bool run_compaction(bench *t)
{
    quire_compaction *c;
    const uint64_t pages = stats_of(t).page_count;
    quire_compact_stats done = {.moves = 0};
    TRY_OUT(t, c, quire_compact_begin(t->memory, &c));
    bool goes_on = true;
    while (goes_on && !done.is_complete) {
        goes_on = step(t, c, &done);
        expect_contents(t);
    }
    quire_compact_end(&c);
    CHECK(!goes_on || (done.pages_freed && pages >= PAGES));
    CHECK_EQ(stats_of(t).page_count, pages - done.pages_freed);
    CHECK_EQ(stats_of(t).allocation_count, LEFT);
    return goes_on;
}

/* One after the other; then all wake. */
static bool run_eviction(bench *t)
{
    uint64_t bytes = 1;
    const quire_evict_options one = {.bytes = 1};
    while (bytes) {
        t->tolerance = BENCH_MAY_SUCCEED; /* as in bench_keep */
        TRY_OUT(t, bytes, quire_memory_evict(t->memory, &one, &bytes));
    }
    CHECK_EQ(stats_of(t).asleep_count, LEFT);
    TRY_OUT(t, bytes, quire_memory_wake(t->memory, NULL, &bytes));
    CHECK_EQ(bytes, LEFT * SIZE);
    CHECK_EQ(stats_of(t).asleep_count, 0);
    expect_contents(t);
    return true;
}

bool bench_compact(bench *t, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    all.pages.page_size = PAGE;
    all.shards = 1;
    if (!bench_memory(t, &all) ||
        !bench_allocate(t, PAGES * ON_A_PAGE,
                        &(quire_allocation_options){.size = SIZE, .movable = true, .name = "m"}))
        return false;
    fill(t);
    return bench_free_every(t, ON_A_PAGE) && run_compaction(t) && run_eviction(t) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = SIZE});
}
