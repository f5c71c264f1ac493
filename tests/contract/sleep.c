/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sleep.c - the contract: allocations that sleep have no memory, and come back with their contents
 * at their places. A model knows the chunks of each allocation. A chunk loses its memory with the
 * last allocation in it that is awake, and has it again with the first that wakes.
 *
 * A trim comes before each sleep, so that the memory of the page is that of chunks in use exactly.
 */
#include "quire/elastic.h"
#include "tests/contract/elastic.h"

enum {
    ITEMS = 14,
    LENGTH = 5,  /* chunks of a lazy allocation */
    LARGEST = 3, /* chunks of an ordinary one */
    CHUNKS = 256,
    LIMIT = 24, /* chunks with memory */
    ROUNDS = 100,
    STEPS = 5, /* before a sleep or a wake */
    CYCLES = 200,
    ALL_BYTES = 65536, /* of a chunk that is checked in each round as a whole */
    PIECE = 61441      /* bytes of a call: no chunk is a multiple of it */
};

static const char *const PREFIXES[] = {"a/", "b/", "c/"};

typedef struct item {
    quire_allocation handle;
    quire_native place;
    uint64_t address;
    uint64_t size, first, last; /* bytes, and the first and last chunk that it touches */
    uint64_t keys[LENGTH];      /* of the pattern of each chunk of a lazy one; 0: no memory */
    uint64_t key;               /* of an ordinary one */
    int prefix;
    bool is_lazy, is_asleep;
} item;

typedef struct sleepers {
    elastic e;
    item items[ITEMS];
    bool sleeps[CHUNKS]; /* chunks that sleeping allocations hold without memory */
    uint64_t last_key, limit;
} sleepers;

/* ---- the model ------------------------------------------------------------------------------ */

static bool matches(const item *i, int prefix)
{
    return i->handle.id && (prefix < 0 || i->prefix == prefix);
}

/* Such chunks take so long to copy that fewer rounds and bytes must do. */
static bool has_large_chunks(const sleepers *s)
{
    return s->e.chunk > ALL_BYTES;
}

/* Rounds for a kind: fewer if chunks are large, or if each access is a submission of its own, which
   takes long under sanitizers. */
static int rounds_of(const sleepers *s, int rounds, int large)
{
    if (has_large_chunks(s))
        return large;
    return s->e.w->info.limits.elastic_unmapped ? TEST_ROUNDS(rounds) : rounds;
}

static uint64_t backed(const item *i)
{
    uint64_t count = 0;
    for (int at = 0; at < LENGTH; at++)
        count += i->keys[at] != 0;
    return count;
}

/* Whether an ordinary allocation touches the chunk: one of those that are awake, or any. */
static bool is_touched(const sleepers *s, uint64_t chunk, bool by_awake)
{
    for (const item *i = s->items; i < s->items + ITEMS; i++)
        if (i->handle.id && !i->is_lazy && i->first <= chunk && chunk <= i->last &&
            !(by_awake && i->is_asleep))
            return true;
    return false;
}

/* Chunks that have memory and are not free. */
static uint64_t chunks_in_use(const sleepers *s)
{
    uint64_t count = 0;
    for (uint64_t chunk = 0; chunk < CHUNKS; chunk++)
        count += is_touched(s, chunk, false) && !s->sleeps[chunk];
    for (const item *i = s->items; i < s->items + ITEMS; i++)
        count += i->is_lazy && !i->is_asleep ? backed(i) : 0;
    return count;
}

/* All allocations fall asleep that match and are awake. Returns the chunks that lose memory. */
static uint64_t model_sleep(sleepers *s, int prefix)
{
    bool is_new[ITEMS];
    uint64_t count = 0;
    for (int n = 0; n < ITEMS; n++) {
        item *i = &s->items[n];
        is_new[n] = matches(i, prefix) && !i->is_asleep;
        i->is_asleep |= is_new[n];
    }
    for (int n = 0; n < ITEMS; n++) {
        const item *i = &s->items[n];
        if (is_new[n] && i->is_lazy)
            count += backed(i);
        for (uint64_t chunk = i->first; matches(i, prefix) && !i->is_lazy && chunk <= i->last;
             chunk++)
            if (!s->sleeps[chunk] && !is_touched(s, chunk, true)) {
                s->sleeps[chunk] = true;
                count++;
            }
    }
    return count;
}

/* The other way. Returns the chunks that get memory. */
static uint64_t model_wake(sleepers *s, int prefix)
{
    uint64_t count = 0;
    for (item *i = s->items; i < s->items + ITEMS; i++) {
        if (!matches(i, prefix) || !i->is_asleep)
            continue;
        i->is_asleep = false;
        if (i->is_lazy)
            count += backed(i);
        for (uint64_t chunk = i->first; !i->is_lazy && chunk <= i->last; chunk++) {
            count += s->sleeps[chunk];
            s->sleeps[chunk] = false;
        }
    }
    return count;
}

/* What statistics say of the allocations. */
static void count(const sleepers *s)
{
    const quire_memory_stats stats = kit_stats(s->e.memory);
    uint64_t made = 0, asleep = 0, requested = 0;
    for (const item *i = s->items; i < s->items + ITEMS; i++) {
        made += i->handle.id != 0;
        asleep += i->is_asleep;
        if (i->handle.id && !i->is_asleep)
            requested += i->is_lazy ? backed(i) * s->e.chunk : i->size;
    }
    CHECK_EQ(stats.allocation_count, made);
    CHECK_EQ(stats.asleep_count, asleep);
    CHECK_EQ(stats.requested_bytes, requested);
    CHECK(elastic_size(&s->e) >= chunks_in_use(s) * s->e.chunk);
    CHECK(elastic_size(&s->e) <= s->limit * s->e.chunk);
}

/* After a trim: no chunk has memory but those in use. */
static void count_exactly(const sleepers *s)
{
    count(s);
    CHECK_EQ(elastic_size(&s->e), chunks_in_use(s) * s->e.chunk);
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Bytes of a table, from a place that the key and the position determine. */
static const unsigned char *pattern(uint64_t key, uint64_t offset)
{
    static unsigned char table[2 * PIECE];
    if (!table[0])
        kit_fill(1, 0, table + 1, sizeof table - 1);
    table[0] = 1;
    return table + (key * 7919 + offset / PIECE * 131) % PIECE;
}

/* Writes or checks the bytes of a part: all of them, or those at its ends. */
static void move(const sleepers *s, const item *i, uint64_t begin, uint64_t size, uint64_t key,
                 bool writes, bool all)
{
    unsigned char bytes[PIECE];
    for (uint64_t at = 0; at < size && s->e.has_bytes; at += PIECE) {
        const uint64_t part = size - at < PIECE ? size - at : PIECE;
        if (!all && at && at + part < size)
            continue;
        if (writes) {
            CHECK_OK(quire_write(s->e.memory, i->handle, begin + at, pattern(key, at), part));
            continue;
        }
        CHECK_OK(quire_read(s->e.memory, i->handle, begin + at, bytes, part));
        CHECK(!memcmp(bytes, pattern(key, at), part));
    }
}

static void look_at(const sleepers *s, const item *i, bool all)
{
    const uint64_t chunk = s->e.chunk;
    if (!i->is_lazy)
        move(s, i, 0, i->size, i->key, false, all);
    for (uint64_t at = 0; i->is_lazy && at < LENGTH; at++)
        if (i->keys[at])
            move(s, i, at * chunk, chunk, i->keys[at], false, all);
}

static void expect_place(const sleepers *s, const item *i)
{
    const quire_allocation_info info = kit_info(s->e.memory, i->handle);
    CHECK_EQ(info.page, 0);
    CHECK_EQ(info.offset, i->place.offset);
    CHECK_EQ(info.address, i->address);
    if (i->is_asleep)
        return;
    const quire_native native = kit_native(s->e.memory, i->handle);
    CHECK_EQ(native.page.handle, i->place.page.handle);
    CHECK_EQ(native.page.address, i->place.page.address);
    CHECK_EQ(native.offset, i->place.offset);
}

/* Its bytes are not there. */
static void expect_asleep(const sleepers *s, const item *i)
{
    unsigned char byte = 1;
    const quire_allocation_info info = kit_info(s->e.memory, i->handle);
    CHECK(info.asleep);
    CHECK_EQ(info.backed, 0);
    CHECK_EQ(info.requested, i->is_lazy ? LENGTH * s->e.chunk : i->size);
    if (!s->e.has_bytes)
        return;
    CHECK_FAILS(quire_read(s->e.memory, i->handle, 0, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_write(s->e.memory, i->handle, 0, &byte, 1), QUIRE_ERROR_WRONG_STATE);
}

static void look_at_all(const sleepers *s, bool all)
{
    CHECK_OK(quire_memory_check(s->e.memory));
    for (const item *i = s->items; i < s->items + ITEMS; i++) {
        if (!i->handle.id)
            continue;
        expect_place(s, i);
        if (i->is_asleep) {
            expect_asleep(s, i);
            continue;
        }
        CHECK(!kit_info(s->e.memory, i->handle).asleep);
        look_at(s, i, all || !has_large_chunks(s));
    }
}

/* ---- changes -------------------------------------------------------------------------------- */

/* Returns false if the limit refused the memory. */
static bool put(sleepers *s, item *i, uint64_t size, bool is_lazy, int prefix)
{
    const uint64_t chunk = s->e.chunk;
    char name[] = "a/item";
    name[0] = PREFIXES[prefix][0];
    const quire_allocation_options options = {.size = size, .lazy = is_lazy, .name = name};
    *i = (item){.size = size, .is_lazy = is_lazy, .prefix = prefix, .key = ++s->last_key};
    quire_result result = quire_allocate(s->e.memory, &options, &i->handle);
    if (result && chunks_in_use(s) + LARGEST + 1 > s->limit) {
        CHECK_FAILS(result, QUIRE_ERROR_OVER_BUDGET);
        *i = (item){.size = 0};
        return false;
    }
    CHECK_OK(result);
    const quire_allocation_info info = kit_info(s->e.memory, i->handle);
    i->place = kit_native(s->e.memory, i->handle);
    i->address = info.address;
    i->first = info.offset / chunk;
    i->last = (info.offset + info.size - 1) / chunk;
    CHECK(i->last < CHUNKS);
    for (uint64_t at = i->first; at <= i->last; at++)
        CHECK(!s->sleeps[at]);
    count(s);
    if (!is_lazy)
        move(s, i, 0, size, i->key, true, true);
    return true;
}

static bool back(sleepers *s, item *i, uint64_t first, uint64_t length)
{
    const uint64_t chunk = s->e.chunk;
    const quire_view range = {i->handle, first * chunk, length * chunk};
    uint64_t missing = 0;
    for (uint64_t at = first; at < first + length; at++)
        missing += !i->keys[at];
    quire_result result = quire_back_range(s->e.memory, &range, 1);
    if (missing && chunks_in_use(s) + missing > s->limit) {
        CHECK_FAILS(result, QUIRE_ERROR_OVER_BUDGET);
        return false;
    }
    CHECK_OK(result);
    for (uint64_t at = first; at < first + length; at++)
        if (!i->keys[at]) {
            i->keys[at] = ++s->last_key;
            move(s, i, at * chunk, chunk, i->keys[at], true, true);
        }
    count(s);
    return true;
}

static void unback(sleepers *s, item *i, uint64_t first, uint64_t length)
{
    const uint64_t chunk = s->e.chunk;
    const quire_view range = {i->handle, first * chunk, length * chunk};
    CHECK_OK(quire_unback_range(s->e.memory, &range, 1, NULL));
    memset(&i->keys[first], 0, length * sizeof *i->keys);
    count(s);
}

static void rewrite(sleepers *s, item *i)
{
    i->key = ++s->last_key;
    move(s, i, 0, i->size, i->key, true, true);
}

/* Frees an allocation, awake or asleep. Chunks that nothing touches any more are no longer its. */
static void end(sleepers *s, item *i)
{
    CHECK_OK(quire_free(s->e.memory, i->handle));
    *i = (item){.size = 0};
    for (uint64_t chunk = 0; chunk < CHUNKS; chunk++)
        s->sleeps[chunk] &= is_touched(s, chunk, false);
    count(s);
}

static const char *prefix_text(int prefix)
{
    return prefix < 0 ? NULL : PREFIXES[prefix];
}

static void fall_asleep(sleepers *s, int prefix, quire_sleep_mode mode)
{
    uint64_t bytes = 1;
    CHECK_OK(quire_memory_trim(s->e.memory, 0, NULL));
    count_exactly(s);
    CHECK_OK(quire_memory_sleep(s->e.memory, prefix_text(prefix), mode, NULL, &bytes));
    CHECK_EQ(bytes, model_sleep(s, prefix) * s->e.chunk);
    count_exactly(s);
}

/* Contents are kept where the memory has bytes to read. */
static quire_sleep_mode keeps(const sleepers *s)
{
    return s->e.has_bytes ? QUIRE_SLEEP_KEEP : QUIRE_SLEEP_DISCARD;
}

/* Returns false if the limit refused the memory: all stay asleep. */
static bool wake(sleepers *s, int prefix)
{
    uint64_t bytes = 1;
    sleepers woken = *s;
    const uint64_t chunks = model_wake(&woken, prefix), size = elastic_size(&s->e);
    quire_result result = quire_memory_wake(s->e.memory, prefix_text(prefix), &bytes);
    if (chunks && chunks_in_use(&woken) > s->limit) {
        CHECK_FAILS(result, QUIRE_ERROR_OVER_BUDGET);
        CHECK_EQ(bytes, 0);
        CHECK(elastic_size(&s->e) <= size);
        look_at_all(s, false);
        return false;
    }
    CHECK_OK(result);
    CHECK_EQ(bytes, chunks * s->e.chunk);
    *s = woken;
    count(s);
    look_at_all(s, false);
    return true;
}

static void set_limit(sleepers *s, uint64_t chunks)
{
    CHECK_OK(quire_memory_set_limit(s->e.memory, chunks * s->e.chunk));
    s->limit = chunks;
}

static sleepers begin_sleepers(const contract_world *w, uint32_t kind)
{
    sleepers s = {.e = begin_elastic(w, kind, 0)};
    const uint64_t chunk = s.e.chunk;
    kit_end(&s.e.memory);
    s.e = begin_elastic(w, kind, CHUNKS * chunk);
    set_limit(&s, LIMIT);
    return s;
}

/* All allocations can be freed as they are, and the page has no memory then. */
static void end_sleepers(sleepers *s)
{
    for (item *i = s->items; i < s->items + ITEMS; i++)
        if (i->handle.id)
            end(s, i);
    CHECK_OK(quire_memory_trim(s->e.memory, 0, NULL));
    count_exactly(s);
    kit_end(&s->e.memory);
    CHECK_EQ(elastic_budget(&s->e).reserved, 0);
    CHECK(s->e.w->subject->is_shared || elastic_budget(&s->e).usage == s->e.usage);
}

/* Of prefix a: allocations that share chunks, and a lazy one with chunks 1 to 3. Of b: one that
   shares a chunk with those of a. */
static void put_some(sleepers *s)
{
    const uint64_t chunk = s->e.chunk;
    CHECK(put(s, &s->items[0], chunk / 2, false, 0));
    CHECK(put(s, &s->items[1], 2 * chunk, false, 0));
    CHECK(put(s, &s->items[2], 100, false, 1));
    CHECK(put(s, &s->items[3], LENGTH * chunk, true, 0));
    CHECK(back(s, &s->items[3], 1, 3));
    CHECK(put(s, &s->items[4], 3 * chunk, false, 2));
    look_at_all(s, true);
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static void step(sleepers *s, test_random *r)
{
    item *i = &s->items[random_below(r, ITEMS)];
    const uint64_t first = random_below(r, LENGTH), length = 1 + random_below(r, LENGTH - first);
    const uint64_t what = random_below(r, 10);
    const int prefix = (int)random_below(r, 3);
    if (!i->handle.id && what < 7)
        put(s, i, random_size(r, LARGEST * s->e.chunk), false, prefix);
    else if (!i->handle.id)
        put(s, i, LENGTH * s->e.chunk, true, prefix);
    else if (what < 3 || (i->is_asleep && what < 4))
        end(s, i);
    else if (i->is_asleep)
        return;
    else if (!i->is_lazy)
        rewrite(s, i);
    else if (what < 8)
        back(s, i, first, length);
    else
        unback(s, i, first, length);
}

static void contents_come_back(contract_world *w, uint32_t kind)
{
    uint64_t woken = 0;
    if (!is_elastic(w, kind))
        return;
    test_random r = {kind + 1};
    sleepers s = begin_sleepers(w, kind);
    const int rounds = rounds_of(&s, ROUNDS, ROUNDS / 4);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < STEPS; i++)
            step(&s, &r);
        const int prefix = (int)random_below(&r, 4) - 1;
        if (random_below(&r, 2))
            fall_asleep(&s, prefix, keeps(&s));
        else
            woken += wake(&s, prefix);
        look_at_all(&s, round % 20 == 0);
    }
    CHECK(woken > (uint64_t)rounds / 10);
    set_limit(&s, CHUNKS);
    CHECK(wake(&s, -1));
    look_at_all(&s, true);
    fall_asleep(&s, 1, keeps(&s)); /* those are freed asleep */
    end_sleepers(&s);
}

/* Contents are unspecified, and new ones stay. */
static void discarded_contents_are_replaced(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    sleepers s = begin_sleepers(w, kind);
    put_some(&s);
    fall_asleep(&s, 0, QUIRE_SLEEP_DISCARD);
    look_at_all(&s, true);
    for (item *i = s.items; i < s.items + ITEMS; i++)
        i->key += i->handle.id && i->prefix == 0 ? 100 : 0;
    const quire_allocation handle = s.items[3].handle;
    CHECK_OK(quire_memory_wake(s.e.memory, PREFIXES[0], NULL));
    CHECK_EQ(model_wake(&s, 0), 2 + 3);
    count(&s);
    for (int i = 0; i < 2; i++)
        move(&s, &s.items[i], 0, s.items[i].size, s.items[i].key, true, true);
    for (uint64_t at = 1; at < 4; at++)
        move(&s, &s.items[3], at * s.e.chunk, s.e.chunk, s.items[3].keys[at], true, true);
    CHECK_EQ(kit_info(s.e.memory, handle).backed, 3 * s.e.chunk);
    look_at_all(&s, true);
    fall_asleep(&s, -1, keeps(&s));
    CHECK(wake(&s, -1));
    look_at_all(&s, true);
    end_sleepers(&s);
}

static void a_limit_leaves_all_asleep(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    sleepers s = begin_sleepers(w, kind);
    put_some(&s);
    const uint64_t used = chunks_in_use(&s);
    fall_asleep(&s, -1, keeps(&s));
    CHECK_EQ(elastic_size(&s.e), 0);
    for (uint64_t limit = 1; limit < used; limit += 2) {
        set_limit(&s, limit);
        CHECK(!wake(&s, -1));
        CHECK_EQ(elastic_size(&s.e), 0);
    }
    CHECK(put(&s, &s.items[5], s.e.chunk, false, 1)); /* in what the others left */
    set_limit(&s, used);
    CHECK(!wake(&s, -1));
    CHECK(wake(&s, 2));
    end(&s, &s.items[5]);
    CHECK(wake(&s, -1)); /* with the memory of the free chunk */
    look_at_all(&s, true);
    end_sleepers(&s);
}

/* The call is refused as a whole, and the model has not changed. */
static void expect_busy(sleepers *s, int prefix)
{
    uint64_t bytes = 1;
    const uint64_t size = elastic_size(&s->e);
    CHECK_FAILS(
        quire_memory_sleep(s->e.memory, prefix_text(prefix), QUIRE_SLEEP_DISCARD, NULL, &bytes),
        QUIRE_ERROR_BUSY);
    CHECK_EQ(bytes, 0);
    CHECK_EQ(elastic_size(&s->e), size);
    count(s);
    look_at_all(s, true);
}

static void what_is_held_refuses_all(contract_world *w, uint32_t kind)
{
    void *pointer;
    if (!is_elastic(w, kind))
        return;
    sleepers s = begin_sleepers(w, kind);
    put_some(&s);
    for (int i = 1; i < 4; i += 2) { /* an ordinary one, and a lazy one */
        const quire_allocation handle = s.items[i].handle;
        CHECK_OK(quire_allocation_hold(s.e.memory, handle));
        expect_busy(&s, -1);
        expect_busy(&s, 0);
        fall_asleep(&s, 2, keeps(&s)); /* others may sleep */
        CHECK(wake(&s, 2));
        CHECK_OK(quire_allocation_release(s.e.memory, handle));
        if (!kit_maps_elastic(w, kind))
            continue;
        CHECK_OK(quire_map(s.e.memory, handle, &pointer));
        expect_busy(&s, -1);
        CHECK_OK(quire_unmap(s.e.memory, handle));
    }
    fall_asleep(&s, -1, keeps(&s));
    CHECK_FAILS(quire_allocation_hold(s.e.memory, s.items[0].handle), QUIRE_ERROR_WRONG_STATE);
    CHECK(wake(&s, -1));
    look_at_all(&s, true);
    end_sleepers(&s);
}

static void cycles_leak_nothing(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    sleepers s = begin_sleepers(w, kind);
    const int cycles = rounds_of(&s, CYCLES, CYCLES / 40);
    put_some(&s);
    uint64_t asleep = 0, awake = 0;
    for (int i = 0; i < cycles; i++) {
        CHECK_OK(quire_memory_sleep(s.e.memory, PREFIXES[0], keeps(&s), NULL, NULL));
        const quire_memory_stats there = kit_stats(s.e.memory);
        CHECK_OK(quire_memory_wake(s.e.memory, PREFIXES[0], NULL));
        const quire_memory_stats back_again = kit_stats(s.e.memory);
        if (i == 1) {
            asleep = there.metadata_bytes;
            awake = back_again.metadata_bytes;
        }
        CHECK(i < 2 || there.metadata_bytes == asleep);
        CHECK(i < 2 || back_again.metadata_bytes == awake);
        CHECK_EQ(there.reserved_bytes, back_again.reserved_bytes - 5 * s.e.chunk);
        CHECK_EQ(back_again.reserved_bytes, chunks_in_use(&s) * s.e.chunk);
    }
    look_at_all(&s, true);
    end_sleepers(&s);
}

const contract_scenario contract_sleep[] = {
    {.name = "allocations that sleep have no memory and come back with contents and places",
     .of_kind = contents_come_back,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "allocations whose contents were discarded get new ones",
     .of_kind = discarded_contents_are_replaced,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "a limit that refuses memory leaves all allocations asleep",
     .of_kind = a_limit_leaves_all_asleep,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "an allocation that is held or mapped keeps all awake",
     .of_kind = what_is_held_refuses_all,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "sleeping and waking again and again leaks nothing",
     .of_kind = cycles_leak_nothing,
     .applies = kit_has_growth,
     .is_exact = true},
    {0},
};
