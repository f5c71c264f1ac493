/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * id_map.c - the map from ids to numbers against a linear list, with ids that share a home slot,
 * through growth, removal and exhausted host memory.
 */
#include "src/base/id_map.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { MOST = 600 };

typedef struct bench {
    qi_host host;
    qi_id_map map;
} bench;

/* All maps of a test use the same seed. */
static bench make_bench(void)
{
    bench b = {.map = {.seed = 42}};
    CHECK_OK(qi_host_init(&b.host, unit_memory()));
    return b;
}

static void end_bench(bench *b)
{
    qi_id_map_finish(&b->map, &b->host);
    CHECK_EQ(qi_atomic_load_u64(&b->host.bytes), 0);
}

static void add(bench *b, uint64_t id, uint32_t number)
{
    CHECK(qi_id_map_add(&b->map, &b->host, id, number));
}

static void expect(const bench *b, uint64_t id, uint32_t number)
{
    const uint32_t *found = qi_id_map_find(&b->map, id);
    if (!found || *found != number)
        check_failed(__FILE__, __LINE__, "id %" PRIu64 " is %s, not %" PRIu32, id,
                     found ? "another number" : "missing", number);
}

/* Every entry can be reached, and the count matches the filled places. */
static void expect_sound(const bench *b)
{
    uint64_t filled = 0;
    for (uint64_t i = 0; i < b->map.capacity; i++) {
        const qi_id_entry *entry = &b->map.entries[i];
        if (!entry->id)
            continue;
        filled++;
        CHECK(qi_id_map_find(&b->map, entry->id) == &entry->number);
    }
    CHECK_EQ(b->map.count, filled);
    CHECK(b->map.count * 2 <= b->map.capacity || !b->map.capacity);
    CHECK_EQ(b->map.capacity & (b->map.capacity - 1), 0);
}

/* The longest run of filled places: the longest possible search. */
static uint64_t max_run(const qi_id_map *map)
{
    uint64_t longest = 0, run = 0;
    for (uint64_t i = 0; i < 2 * map->capacity; i++) { /* twice, because runs wrap around the end */
        run = map->entries[i & (map->capacity - 1)].id ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    return longest;
}

#define CASE(name) UNIT_ON(id_map, name, bench, b, *b = make_bench(), end_bench)

CASE(an_empty_map_has_no_entries_and_no_host_memory)
{
    CHECK(!qi_id_map_find(&b->map, 1));
    CHECK(!qi_id_map_find(&b->map, UINT64_MAX));
    CHECK_EQ(qi_atomic_load_u64(&b->host.bytes), 0);
}

CASE(a_finished_map_can_be_reused)
{
    add(b, 7, 1);
    qi_id_map_finish(&b->map, &b->host);
    CHECK(!qi_id_map_find(&b->map, 7));
    CHECK_EQ(b->map.capacity, 0);
    qi_id_map_finish(&b->map, &b->host); /* no effect */
    add(b, 7, 2);
    expect(b, 7, 2);
}

CASE(smallest_and_largest_ids_and_numbers)
{
    const uint64_t ids[] = {1, 2, UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT32_MAX};
    enum { COUNT = sizeof ids / sizeof *ids };
    for (uint32_t i = 0; i < COUNT; i++)
        add(b, ids[i], i % 2 ? UINT32_MAX - i : i);
    for (uint32_t i = 0; i < COUNT; i++)
        expect(b, ids[i], i % 2 ? UINT32_MAX - i : i);
    CHECK(!qi_id_map_find(&b->map, 3));
    expect_sound(b);
}

CASE(an_id_can_be_removed_and_added_again_without_limit)
{
    for (uint32_t i = 0; i < 1000; i++) {
        add(b, 42, i);
        expect(b, 42, i);
        qi_id_map_remove(&b->map, 42);
        CHECK(!qi_id_map_find(&b->map, 42));
    }
    CHECK_EQ(b->map.count, 0);
    CHECK_EQ(b->map.capacity, 64); /* the removed entries left nothing */
}

/* ---- ids with the same home --------------------------------------------------------------- */

/* Ids whose home is a given place of an empty map of the first capacity. */
static void ids_with_home(uint64_t home, uint64_t *ids, uint32_t count)
{
    bench b = make_bench();
    uint64_t id = 1;
    for (uint32_t found = 0; found < count; id++) {
        add(&b, id, 0);
        bool there = b.map.entries[home].id == id;
        qi_id_map_remove(&b.map, id);
        if (there)
            ids[found++] = id;
    }
    end_bench(&b);
}

/* Removes each entry of a run in turn, from maps filled in each order; the others stay reachable.
   */
static void remove_from_run(const uint64_t *ids, uint32_t count)
{
    for (uint32_t rotate = 0; rotate < count; rotate++) {
        for (uint32_t gone = 0; gone < count; gone++) {
            bench b = make_bench();
            for (uint32_t i = 0; i < count; i++)
                add(&b, ids[(i + rotate) % count], (i + rotate) % count);
            qi_id_map_remove(&b.map, ids[gone]);
            for (uint32_t i = 0; i < count; i++)
                if (i != gone)
                    expect(&b, ids[i], i);
            CHECK(!qi_id_map_find(&b.map, ids[gone]));
            expect_sound(&b);
            end_bench(&b);
        }
    }
}

UNIT(id_map, ids_with_one_home_move_up_when_one_is_removed)
{
    uint64_t ids[8];
    ids_with_home(20, ids, 8);
    remove_from_run(ids, 8);
}

UNIT(id_map, a_run_wraps_around_the_end)
{
    uint64_t ids[8];
    ids_with_home(63, ids, 4);
    ids_with_home(0, ids + 4, 2);
    ids_with_home(61, ids + 6, 2);
    remove_from_run(ids, 8);
}

UNIT(id_map, neighbouring_homes_stay_separate)
{
    uint64_t ids[9];
    for (uint64_t i = 0; i < 3; i++)
        ids_with_home(30 + i, ids + 3 * i, 3);
    remove_from_run(ids, 9);
}

/* Addresses differ in their high bits only: they must not share a home. */
UNIT(id_map, ids_of_any_stride_are_spread)
{
    enum { COUNT = 500, MAX_RUN = 64 };
    for (uint32_t shift = 0; shift <= 54; shift++) {
        bench b = make_bench();
        for (uint64_t i = 1; i <= COUNT; i++)
            add(&b, i << shift, 0);
        uint64_t run = max_run(&b.map);
        if (run > MAX_RUN)
            check_failed(__FILE__, __LINE__,
                         "%d ids that are multiples of 2^%" PRIu32 " make a run of %" PRIu64, COUNT,
                         shift, run);
        end_bench(&b);
    }
}

/* ---- chosen ids ---------------------------------------------------------------------------- */

static uint64_t inverse_of(uint64_t odd)
{
    uint64_t inverse = odd;
    for (int i = 0; i < 6; i++)
        inverse *= 2 - odd * inverse;
    return inverse;
}

/* Inverts the multiplication by the golden ratio. */
static uint64_t chosen_for_fibonacci(uint64_t hash)
{
    return hash * inverse_of(UINT64_C(0x9E3779B97F4A7C15));
}

/* Inverts SplitMix64's finalizer. */
static uint64_t chosen_for_split_mix(uint64_t hash)
{
    hash = hash ^ hash >> 31 ^ hash >> 62;
    hash *= inverse_of(UINT64_C(0x94D049BB133111EB));
    hash = hash ^ hash >> 27 ^ hash >> 54;
    hash *= inverse_of(UINT64_C(0xBF58476D1CE4E5B9));
    return hash ^ hash >> 30 ^ hash >> 60;
}

/* Numbers whose high or low bits are equal: with a known hash all would share one home. */
UNIT(id_map, ids_chosen_for_a_known_hash_are_spread)
{
    enum { COUNT = 20000, MAX_RUN = 1000 };
    uint64_t (*const choices[])(uint64_t) = {chosen_for_fibonacci, chosen_for_split_mix};
    for (int k = 0; k < 4; k++) {
        bench b = make_bench();
        b.map.seed = 0; /* a map chooses a random seed */
        for (uint64_t i = 1; i <= COUNT; i++)
            add(&b, choices[k / 2](k % 2 ? i << 40 : i), 0);
        uint64_t run = max_run(&b.map);
        if (run > MAX_RUN)
            check_failed(__FILE__, __LINE__, "choice %d: a run of %" PRIu64, k, run);
        end_bench(&b);
    }
}

UNIT(id_map, each_map_chooses_a_seed_and_keeps_it)
{
    bench b = make_bench(), c = make_bench();
    b.map.seed = c.map.seed = 0;
    add(&b, 1, 1);
    add(&c, 1, 1);
    uint64_t seed = b.map.seed;
    CHECK(seed != 0 && seed != c.map.seed);
    for (uint32_t id = 2; id <= 1000; id++)
        add(&b, id, id);
    CHECK_EQ(b.map.seed, seed);
    qi_id_map_finish(&b.map, &b.host);
    CHECK_EQ(b.map.seed, 0);
    end_bench(&b);
    end_bench(&c);
}

/* ---- against a list ----------------------------------------------------------------------- */

typedef struct list {
    uint64_t ids[MOST];
    uint32_t numbers[MOST];
    uint32_t count;
} list;

static bool is_listed(const list *l, uint64_t id)
{
    for (uint32_t i = 0; i < l->count; i++)
        if (l->ids[i] == id)
            return true;
    return false;
}

static void compare(const bench *b, const list *l, test_random *rng, uint64_t max_id)
{
    CHECK_EQ(b->map.count, l->count);
    for (uint32_t i = 0; i < l->count; i++)
        expect(b, l->ids[i], l->numbers[i]);
    for (int i = 0; i < 50; i++) {
        uint64_t id = 1 + random_below(rng, max_id);
        CHECK_EQ(qi_id_map_find(&b->map, id) != NULL, is_listed(l, id));
    }
    expect_sound(b);
}

static void run_against_list(uint64_t seed, uint64_t max_id)
{
    static list l;
    l.count = 0;
    test_random rng = {seed};
    bench b = make_bench();
    for (uint32_t step = 0; step < 20000; step++) {
        uint64_t id = 1 + random_below(&rng, max_id);
        bool filling = step / 2000 % 2 == 0;
        if (l.count < MOST && random_below(&rng, 4) < (filling ? 3 : 1) && !is_listed(&l, id)) {
            add(&b, id, step);
            l.ids[l.count] = id;
            l.numbers[l.count++] = step;
        } else if (l.count) {
            uint32_t i = (uint32_t)random_below(&rng, l.count);
            qi_id_map_remove(&b.map, l.ids[i]);
            l.count--;
            l.ids[i] = l.ids[l.count];
            l.numbers[i] = l.numbers[l.count];
        }
        if (step % 500 == 0)
            compare(&b, &l, &rng, max_id);
    }
    compare(&b, &l, &rng, max_id);
    end_bench(&b);
}

UNIT(id_map, the_map_matches_a_list_with_few_ids)
{
    run_against_list(1, 1000);
}

UNIT(id_map, the_map_matches_a_list_with_any_ids)
{
    run_against_list(2, UINT64_MAX - 1);
}

/* ---- host memory is exhausted ------------------------------------------------------------- */

CASE(a_map_that_cannot_grow_is_unchanged)
{
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK(!qi_id_map_add(&b->map, &b->host, 1, 1));
    CHECK(!qi_id_map_find(&b->map, 1));
    test_memory_fail(unit_memory_state(), 0, false);
    for (uint32_t round = 0; round < 4; round++) {
        uint32_t before = (uint32_t)b->map.count;
        test_memory_fail(unit_memory_state(), 1, true);
        uint32_t id = before + 1;
        while (qi_id_map_add(&b->map, &b->host, id, id * 5))
            id++;
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_EQ(b->map.count, id - 1);
        CHECK(!qi_id_map_find(&b->map, id));
        for (uint32_t i = 1; i < id; i++)
            expect(b, i, i * 5);
        expect_sound(b);
        add(b, id, id * 5);
    }
}
