/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact_random.c - the contract: random operations with compaction between them, by quire, on a
 * stream and by the caller, and with eviction. Every allocation keeps its contents.
 *
 * QUIRE_TEST_COMPACT in the environment is the number of operations for each kind.
 */
#include <stdlib.h>

#include "tests/contract/kit.h"

enum { OPERATIONS = 600, MOST = 200, MAX_MOVES = 8, CHECK_EVERY = 100 };

typedef struct item {
    quire_allocation handle;
    uint64_t size, alignment, key;
    bool is_mapped, is_held;
} item;

typedef struct crowd {
    const contract_world *w;
    quire_memory *memory;
    quire_stream *stream; /* NULL if the device has none */
    quire_compaction *compaction;
    uint64_t largest;
    test_random random;
    item items[MOST];
    uint32_t count;
    uint64_t last_key, moves, wakes;
    bool can_map;
} crowd;

static bool happens(crowd *c, uint32_t times, uint32_t of)
{
    return random_below(&c->random, of) < times;
}

/* The host uses what work on the stream has written. */
static void await_stream(const crowd *c)
{
    quire_point point;
    CHECK_OK(quire_stream_mark(c->stream, &point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
}

/* ---- allocations -------------------------------------------------------------------------- */

static void write(crowd *c, item *i)
{
    i->key = ++c->last_key;
    kit_write(c->memory, i->handle, i->size, i->key);
}

/* Returns false if the kind can hold no buffers. */
static bool make_buffer(crowd *c, item *i)
{
    quire_buffer buffer;
    const quire_buffer_options options = {
        .size = i->size, .alignment = i->alignment, .movable = true};
    quire_result result = quire_buffer_create(c->memory, &options, &buffer);
    if (result == QUIRE_ERROR_UNSUPPORTED)
        return false;
    CHECK_OK(result);
    i->handle = buffer.allocation;
    return true;
}

static void add(crowd *c)
{
    item *i = &c->items[c->count++];
    *i = (item){.size = happens(c, 3, 4) ? 1 + random_below(&c->random, c->largest)
                                         : random_size(&c->random, c->largest),
                .alignment = UINT64_C(1) << random_below(&c->random, 10)};
    if (!happens(c, 1, 4) || !make_buffer(c, i))
        i->handle = ALLOCATE(c->memory, .size = i->size, .alignment = i->alignment,
                             .movable = happens(c, 63, 64), .dedicated = happens(c, 1, 64),
                             .mapped = c->can_map && happens(c, 1, 64),
                             .name = happens(c, 1, 4) ? "named" : NULL);
    write(c, i);
}

static bool is_asleep(const crowd *c, const item *i)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(c->memory, i->handle, &info));
    return info.asleep;
}

static void wake(crowd *c, const item *i)
{
    c->wakes += is_asleep(c, i);
    CHECK_OK(quire_wake(c->memory, i->handle));
}

/* Sometimes one that sleeps. */
static void drop(crowd *c, item *i)
{
    if (happens(c, 1, 2))
        wake(c, i);
    if (!is_asleep(c, i))
        kit_read(c->memory, i->handle, i->size, i->key);
    if (i->is_mapped)
        CHECK_OK(quire_unmap(c->memory, i->handle));
    if (i->is_held)
        CHECK_OK(quire_allocation_release(c->memory, i->handle));
    CHECK_OK(c->stream && happens(c, 1, 3) ? quire_free_on_stream(c->memory, i->handle, c->stream)
                                           : quire_free(c->memory, i->handle));
    *i = c->items[--c->count];
}

static void map_or_unmap(crowd *c, item *i)
{
    void *pointer = NULL;
    if (i->is_mapped)
        CHECK_OK(quire_unmap(c->memory, i->handle));
    else
        CHECK_OK(quire_map(c->memory, i->handle, &pointer));
    i->is_mapped = !i->is_mapped;
}

static void hold_or_release(crowd *c, item *i)
{
    CHECK_OK(i->is_held ? quire_allocation_release(c->memory, i->handle)
                        : quire_allocation_hold(c->memory, i->handle));
    i->is_held = !i->is_held;
}

/* As quire reads it, and as the device sees it. */
static void expect(crowd *c, const item *i)
{
    static unsigned char bytes[KIT_LONGEST];
    const quire_native native = kit_native(c->memory, i->handle);
    CHECK(kit_is_aligned(&native, i->alignment));
    kit_read(c->memory, i->handle, i->size, i->key);
    if (i->size <= KIT_LONGEST && kit_look(c->w, &native.page, native.offset, bytes, i->size))
        kit_expect(i->key, 0, bytes, i->size);
}

static void check(crowd *c)
{
    uint64_t requested = 0;
    CHECK_OK(quire_memory_check(c->memory));
    for (uint32_t i = 0; i < c->count; i++) {
        if (is_asleep(c, &c->items[i]))
            continue;
        expect(c, &c->items[i]);
        requested += c->items[i].size;
    }
    const quire_memory_stats stats = kit_stats(c->memory);
    CHECK_EQ(stats.allocation_count - stats.deferred_count, c->count);
    CHECK(stats.requested_bytes >= requested);
}

/* ---- compaction --------------------------------------------------------------------------- */

static quire_compact_limits random_limits(crowd *c)
{
    return (quire_compact_limits){
        .moves = happens(c, 3, 4) ? 1 + random_below(&c->random, 20) : 0,
        .bytes = happens(c, 1, 4) ? 1 + random_below(&c->random, 4 * c->largest) : 0,
        .records = happens(c, 1, 4) ? 1 + random_below(&c->random, 200) : 0,
        .largest_free = happens(c, 1, 4) ? 1 + random_below(&c->random, 4 * c->largest) : 0};
}

/* The caller copies the contents and accepts the move, or declines it. */
static void execute(crowd *c, const quire_compact_move *move)
{
    const quire_copy_options copy = {.to = {.memory = c->memory, .allocation = move->target},
                                     .from = {.memory = c->memory, .allocation = move->source},
                                     .size = move->size};
    if (happens(c, 1, 5)) {
        CHECK_OK(quire_compact_decline(c->compaction, move));
        return;
    }
    CHECK_OK(quire_copy(&copy, NULL));
    CHECK_OK(quire_compact_accept(c->compaction, move, NULL));
}

static void execute_offers(crowd *c)
{
    quire_compact_move moves[MAX_MOVES];
    uint64_t count = 0;
    const quire_compact_limits limits = random_limits(c);
    CHECK_OK(quire_compact_offer(c->compaction, &limits, moves, MAX_MOVES, &count, NULL));
    for (uint64_t i = 0; i < count; i++)
        execute(c, &moves[i]);
}

static void step_on_stream(crowd *c, const quire_compact_limits *limits)
{
    CHECK_OK(quire_compact_step_on_stream(c->compaction, limits, c->stream, NULL));
    await_stream(c);
}

static void compact(crowd *c)
{
    quire_compact_stats done;
    const quire_compact_limits limits = random_limits(c);
    if (!c->compaction)
        CHECK_OK(quire_compact_begin(c->memory, &c->compaction));
    if (happens(c, 1, 3))
        execute_offers(c);
    else if (c->stream && happens(c, 1, 2))
        step_on_stream(c, &limits);
    else
        CHECK_OK(quire_compact_step(c->compaction, &limits, NULL));
    CHECK_OK(quire_compact_get_stats(c->compaction, &done));
    if (done.is_complete || happens(c, 1, 30)) {
        c->moves += done.moves;
        quire_compact_end(&c->compaction);
    }
}

/* ---- eviction ----------------------------------------------------------------------------- */

static void order(crowd *c, const item *i)
{
    if (happens(c, 1, 2))
        CHECK_OK(quire_set_priority(c->memory, i->handle,
                                    (int8_t)((int)random_below(&c->random, 256) - 128)));
    else if (!is_asleep(c, i))
        CHECK_OK(quire_touch(c->memory, i->handle));
}

/* A few, and what sleeps may wake together. */
static void evict(crowd *c)
{
    const quire_evict_options options = {.bytes = random_below(&c->random, 4 * c->largest),
                                         .recent_frames = random_below(&c->random, 3)};
    CHECK_OK(quire_memory_frame(c->memory));
    if (happens(c, 1, 8))
        CHECK_OK(quire_memory_wake(c->memory, happens(c, 1, 2) ? "named" : NULL, NULL));
    else
        CHECK_OK(quire_memory_evict(c->memory, &options, NULL));
}

/* ---- a run -------------------------------------------------------------------------------- */

static void operate(crowd *c, bool fills)
{
    item *i = &c->items[c->count ? random_below(&c->random, c->count) : 0];
    const uint64_t what = random_below(&c->random, 100);
    if (c->count && what >= 16 && what < 80)
        wake(c, i);
    if (what < 12)
        compact(c);
    else if (what < 14)
        evict(c);
    else if (c->count && what < 16)
        order(c, i);
    else if (!c->count || (what < (fills ? 75u : 20u) && c->count < MOST))
        add(c);
    else if (what < 77)
        write(c, i);
    else if (what < 78 || i->is_held)
        hold_or_release(c, i);
    else if (c->can_map && (what < 79 || i->is_mapped))
        map_or_unmap(c, i);
    else
        drop(c, i);
}

static uint64_t operations(void)
{
    const char *wanted = getenv("QUIRE_TEST_COMPACT");
    return wanted ? strtoull(wanted, NULL, 0) : OPERATIONS;
}

static void open_stream(crowd *c)
{
    quire_result result = quire_stream_create(c->w->device, NULL, &c->stream);
    if (result == QUIRE_ERROR_UNSUPPORTED)
        c->stream = NULL;
    else
        CHECK_OK(result);
}

static void end(crowd *c)
{
    if (c->compaction)
        quire_compact_end(&c->compaction);
    while (c->count)
        drop(c, &c->items[0]);
    check(c);
    if (c->stream)
        CHECK_OK(quire_stream_destroy(&c->stream));
    kit_end(&c->memory);
}

static void contents_stay(contract_world *w, uint32_t kind)
{
    static crowd c;
    if (!kit_can_both(w, kind))
        return;
    c = (crowd){.w = w, .random = {kind + 1}, .can_map = kit_is_visible(w, kind)};
    c.largest = kit_page_size(w) / 6;
    c.memory = kit_memory(w, kind, &(quire_memory_options){.shards = 1});
    open_stream(&c);
    for (uint64_t i = 0, all = operations(); i < all; i++) {
        operate(&c, i / 150 % 2 == 0);
        if (i % CHECK_EVERY == 0)
            check(&c);
    }
    end(&c);
    CHECK(c.moves > operations() / 100);
    CHECK(c.wakes > operations() / 100);
}

const contract_scenario contract_compact_random[] = {
    {.name = "contents stay through random operations and compaction",
     .of_kind = contents_stay,
     .is_exact = true},
    {0},
};
