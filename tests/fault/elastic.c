/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic.c - see elastic.h.
 */
#include "tests/fault/elastic.h"

#include "quire/elastic.h"

/* Bytes that are written at a place, and read back. */
enum { LENGTH = 1000 };

static uint64_t chunk_of(const quire_memory *m)
{
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(m, &info));
    return info.page_size;
}

static quire_memory_stats stats_of(const quire_memory *m)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(m));
    CHECK_OK(quire_memory_get_stats(m, &stats));
    return stats;
}

/* Each place has bytes of its own. */
static const unsigned char *bytes_of(uint32_t place)
{
    return fault_data + (size_t)place * LENGTH;
}

/* After a failure: whether later calls cannot be expected to succeed. */
static bool is_disabled(const fault_elastic *e)
{
    const quire_result failed = e->bench->result;
    return failed == QUIRE_ERROR_DEVICE_LOST || (failed && e->fails_on && e->fails_on(e->bench));
}

/* The bytes of a place are there. After a failure this is checked too, and the failure stays. */
static bool holds(const fault_elastic *e, quire_allocation a, uint64_t offset, uint32_t place)
{
    driver_bench *b = e->bench;
    const quire_result failed = b->result;
    if (is_disabled(e))
        return true;
    memset(fault_back, 0, LENGTH);
    if (!driver_bench_step(b, quire_read(e->memory, a, offset, fault_back, LENGTH))) {
        if (failed)
            check_failed(__FILE__, __LINE__, "after a failure: %s", quire_last_error());
        return false;
    }
    b->result = failed;
    CHECK(!memcmp(bytes_of(place), fault_back, LENGTH));
    return true;
}

static bool writes(const fault_elastic *e, quire_allocation a, uint64_t offset, uint32_t place)
{
    return driver_bench_step(e->bench, quire_write(e->memory, a, offset, bytes_of(place), LENGTH));
}

/* After a failed call, of which no memory is left: whether it can be repeated. A lost device keeps
   all memory until its end, as do binds that cannot be waited for. */
static bool can_repeat(const fault_elastic *e)
{
    if (is_disabled(e))
        return false;
    CHECK(e->used(e->bench) <= stats_of(e->memory).reserved_bytes + e->kept);
    return true;
}

/* ---- growth --------------------------------------------------------------------------------- */

enum { SMALL_ONES = 4 };

typedef struct growing {
    const fault_elastic *e;
    uint64_t chunk, end; /* bytes of a chunk; where its last ones are written */
    quire_allocation small[SMALL_ONES];
} growing;

/* Those that the larger allocation leaves. */
static bool odd_ones_hold(const growing *g)
{
    for (uint32_t i = 1; i < SMALL_ONES; i += 2)
        if (!holds(g->e, g->small[i], g->end, i))
            return false;
    return true;
}

/* A refused allocation may have cost free chunks their memory, and nothing else. */
static bool allocate(const fault_elastic *e, uint64_t size, quire_allocation *out)
{
    const quire_allocation_options options = {.size = size};
    const quire_memory_stats before = stats_of(e->memory);
    const bool is_made = driver_bench_step(e->bench, quire_allocate(e->memory, &options, out));
    const quire_memory_stats after = stats_of(e->memory);
    CHECK_EQ(after.live_bytes, before.live_bytes + (is_made ? size : 0));
    CHECK(is_made || after.reserved_bytes <= before.reserved_bytes);
    if (!is_made && can_repeat(e))
        CHECK_OK(quire_allocate(e->memory, &options, out));
    return is_made;
}

static bool fill(growing *g)
{
    for (uint32_t i = 0; i < SMALL_ONES; i++)
        if (!allocate(g->e, g->chunk, &g->small[i]) || !writes(g->e, g->small[i], g->end, i))
            return false;
    return true;
}

void fault_growth(const fault_elastic *e)
{
    quire_memory *m = e->memory;
    growing g = {.e = e, .chunk = chunk_of(m), .end = chunk_of(m) - LENGTH};
    quire_allocation larger;
    if (!fill(&g))
        return;
    CHECK_EQ(stats_of(m).reserved_bytes, SMALL_ONES * g.chunk);
    for (uint32_t i = 0; i < SMALL_ONES; i += 2)
        CHECK_OK(quire_free(m, g.small[i]));
    const bool is_made = allocate(e, 2 * g.chunk, &larger);
    if (!odd_ones_hold(&g) || !is_made)
        return;
    CHECK_EQ(stats_of(m).reserved_bytes, SMALL_ONES * g.chunk); /* no memory is new */
    if (!writes(e, larger, g.end, 0) || !holds(e, larger, g.end, 0))
        return;
    CHECK_OK(quire_free(m, g.small[1]));
    CHECK_OK(quire_memory_trim(m, 0, NULL));
    CHECK_EQ(stats_of(m).reserved_bytes, (SMALL_ONES - 1) * g.chunk);
    holds(e, g.small[3], g.end, 3);
}

/* ---- lazy allocations ----------------------------------------------------------------------- */

static quire_result call_list(const fault_elastic *e, const quire_view *ranges, uint64_t count,
                              bool backs)
{
    return backs ? quire_back_range(e->memory, ranges, count)
                 : quire_unback_range(e->memory, ranges, count, NULL);
}

/* Lists of ranges of a chunk each get memory as a whole or not at all, and lose it. */
static bool change(const fault_elastic *e, const quire_view *ranges, uint64_t count, bool backs)
{
    const quire_memory_stats before = stats_of(e->memory);
    const bool has_changed = driver_bench_step(e->bench, call_list(e, ranges, count, backs));
    const quire_memory_stats after = stats_of(e->memory);
    const uint64_t bytes = has_changed ? count * chunk_of(e->memory) : 0;
    CHECK_EQ(after.live_bytes, backs ? before.live_bytes + bytes : before.live_bytes - bytes);
    CHECK(has_changed || after.reserved_bytes == before.reserved_bytes);
    if (!has_changed && can_repeat(e))
        CHECK_OK(call_list(e, ranges, count, backs));
    return has_changed;
}

void fault_lazies(const fault_elastic *e)
{
    quire_memory *m = e->memory;
    const uint64_t chunk = chunk_of(m);
    const quire_allocation_options lazy = {.size = 6 * chunk, .lazy = true};
    quire_allocation a, c;
    DRIVER_STEP(e->bench, quire_allocate(m, &lazy, &a));
    DRIVER_STEP(e->bench, quire_allocate(m, &lazy, &c));
    CHECK_OK(quire_memory_trim(m, 0, NULL)); /* the chunk that the page was made with */
    const quire_view ranges[] = {
        {a, chunk, chunk}, {c, 0, chunk}, {a, 3 * chunk, chunk}, {c, 2 * chunk, chunk}};
    if (!change(e, ranges, 4, true) || !writes(e, a, chunk, 0))
        return;
    const bool is_back = change(e, &ranges[1], 3, false) && change(e, &ranges[2], 2, true);
    if (holds(e, a, chunk, 0) && is_back)
        CHECK_OK(quire_free(m, a));
}

/* ---- sleep ---------------------------------------------------------------------------------- */

/* Two allocations share a chunk. Another one is lazy and has memory at two places. */
enum { SLEEPERS = 3, LAZY_ONE = 2 };

static const char *const NAMES[SLEEPERS] = {"plain", "plain", "lazy"};

typedef struct sleeper {
    quire_allocation allocation;
    uint64_t size;   /* that counts while it is awake */
    uint64_t offset; /* of bytes that were written, in two chunks or at the end of one */
    bool sleeps, is_lost;
} sleeper;

typedef struct bedroom {
    const fault_elastic *e;
    sleeper sleepers[SLEEPERS];
} bedroom;

/* What sleeps is counted, and refuses its bytes. */
static void expect_as_told(const bedroom *r)
{
    const quire_memory_stats stats = stats_of(r->e->memory);
    uint64_t live = 0, asleep = 0, count = 0;
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        const sleeper *s = &r->sleepers[i];
        *(s->sleeps ? &asleep : &live) += s->size;
        count += s->sleeps;
        if (s->sleeps)
            CHECK_FAILS(quire_read(r->e->memory, s->allocation, s->offset, fault_back, LENGTH),
                        QUIRE_ERROR_WRONG_STATE);
    }
    CHECK_EQ(stats.live_bytes, live);
    CHECK_EQ(stats.asleep_bytes, asleep);
    CHECK_EQ(stats.asleep_count, count);
}

/* What is awake has its bytes, unless it lost them in its sleep. */
static bool all_hold(const bedroom *r)
{
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        const sleeper *s = &r->sleepers[i];
        if (!s->sleeps && !s->is_lost && !holds(r->e, s->allocation, s->offset, i))
            return false;
    }
    return true;
}

static void set_all(bedroom *r, const char *name, bool sleeps, bool is_lost)
{
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        sleeper *s = &r->sleepers[i];
        if ((name && strcmp(name, NAMES[i])) || s->sleeps == sleeps)
            continue;
        s->sleeps = sleeps;
        s->is_lost |= is_lost;
    }
}

typedef struct turn {
    const char *name;
    enum { KEEP, DISCARD, WAKE } what;
} turn;

static quire_result call(const bedroom *r, const turn *t, uint64_t *bytes)
{
    if (t->what == WAKE)
        return quire_memory_wake(r->e->memory, t->name, bytes);
    return quire_memory_sleep(r->e->memory, t->name,
                              t->what == KEEP ? QUIRE_SLEEP_KEEP : QUIRE_SLEEP_DISCARD, NULL,
                              bytes);
}

/* All change, or none, and then a second call changes them. Contents are compared where a copy or
   a failure may have damaged them. */
static bool take_turn(bedroom *r, turn t)
{
    const uint64_t before = stats_of(r->e->memory).reserved_bytes;
    uint64_t bytes = 0;
    const bool has_changed = driver_bench_step(r->e->bench, call(r, &t, &bytes));
    if (!has_changed) {
        CHECK_EQ(stats_of(r->e->memory).reserved_bytes, before);
        expect_as_told(r);
        if (!can_repeat(r->e))
            return false;
        all_hold(r);
        CHECK_OK(call(r, &t, &bytes));
    }
    CHECK_EQ(stats_of(r->e->memory).reserved_bytes,
             t.what == WAKE ? before + bytes : before - bytes);
    set_all(r, t.name, t.what != WAKE, t.what == DISCARD);
    expect_as_told(r);
    if (has_changed && t.what != WAKE)
        return true;
    return all_hold(r) && has_changed;
}

static bool write_all(bedroom *r)
{
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        sleeper *s = &r->sleepers[i];
        if (!writes(r->e, s->allocation, s->offset, i))
            return false;
        s->is_lost = false;
    }
    return true;
}

static bool furnish(bedroom *r, uint64_t chunk)
{
    const uint64_t offsets[SLEEPERS] = {0, chunk / 4 - LENGTH / 2, 3 * chunk - LENGTH};
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        sleeper *s = &r->sleepers[i];
        const bool is_lazy = i == LAZY_ONE;
        const quire_allocation_options options = {
            .size = is_lazy ? 4 * chunk : chunk / 4 * 3, .lazy = is_lazy, .name = NAMES[i]};
        if (!driver_bench_step(r->e->bench, quire_allocate(r->e->memory, &options, &s->allocation)))
            return false;
        s->size = is_lazy ? 2 * chunk : options.size;
        s->offset = offsets[i];
    }
    const quire_allocation lazy = r->sleepers[LAZY_ONE].allocation;
    const quire_view ranges[] = {{lazy, 0, chunk}, {lazy, 2 * chunk, chunk}};
    return driver_bench_step(r->e->bench, quire_back_range(r->e->memory, ranges, 2)) &&
           write_all(r);
}

void fault_sleep(const fault_elastic *e)
{
    static const turn turns[] = {
        {"plain", KEEP}, {NULL, KEEP},      {"lazy", WAKE},
        {NULL, WAKE},    {"lazy", DISCARD}, {NULL, WAKE},
    };
    bedroom r = {.e = e};
    if (!furnish(&r, chunk_of(e->memory)))
        return;
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++)
        if (!take_turn(&r, turns[i]))
            return;
    if (write_all(&r))
        take_turn(&r, (turn){"plain", KEEP});
}
