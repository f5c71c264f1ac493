/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool.c - the array of nodes: growth, the chain of unused numbers, and trimming, after which
 * handles of old generations are still stale.
 */
#include "src/space/pool.h"

#include "tests/support/unit.h"

typedef struct item {
    uint32_t generation, next; /* as qi_pool_item */
    uint64_t value;
    bool used;
} item;

typedef struct bench {
    qi_host host;
    qi_pool pool;
} bench;

static item *at(const bench *b, uint32_t number)
{
    return (item *)b->pool.items + number;
}

static bool in_use(const void *owner, uint32_t number)
{
    return at(owner, number)->used;
}

static bench make_pool(void)
{
    bench b;
    CHECK_OK(qi_host_init(&b.host, unit_memory()));
    qi_pool_init(&b.pool, sizeof(item));
    return b;
}

static void end_pool(bench *b)
{
    qi_pool_finish(&b->pool, &b->host);
    CHECK_EQ(b->pool.capacity, 0);
    CHECK_EQ(qi_atomic_load_u64(&b->host.bytes), 0);
}

/* Takes and returns numbers as the fits do inline. */
static uint32_t take(bench *b)
{
    if (!b->pool.spare)
        CHECK_OK(qi_pool_grow(&b->pool, &b->host));
    uint32_t number = b->pool.unused;
    b->pool.spare--;
    if (number)
        b->pool.unused = at(b, number)->next;
    else
        number = b->pool.top++;
    at(b, number)->used = true;
    at(b, number)->value = number;
    return number;
}

static void give(bench *b, uint32_t number)
{
    at(b, number)->used = false;
    if (at(b, number)->generation > QI_LAST_GENERATION) {
        b->pool.retired++;
        return;
    }
    at(b, number)->next = b->pool.unused;
    b->pool.unused = number;
    b->pool.spare++;
}

static void take_many(bench *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        take(b);
}

static void give_from(bench *b, uint32_t first)
{
    for (uint32_t i = first; i < b->pool.top; i++)
        if (at(b, i)->used)
            give(b, i);
}

static void trim(bench *b)
{
    qi_pool_trim(&b->pool, &b->host, in_use, b);
}

/* ---- growth -------------------------------------------------------------------------------- */

UNIT(pool, a_new_pool_is_empty_and_numbers_from_1)
{
    bench b = make_pool();
    CHECK_EQ(b.pool.top, 0); /* even number 0 does not exist */
    CHECK_EQ(b.pool.spare, 0);
    CHECK_EQ(qi_pool_used(&b.pool), 0);
    CHECK_EQ(take(&b), 1);
    CHECK_EQ(qi_pool_used(&b.pool), 1);
    end_pool(&b);
}

UNIT(pool, growth_doubles_and_keeps_the_nodes)
{
    bench b = make_pool();
    CHECK_OK(qi_pool_grow(&b.pool, &b.host));
    CHECK_EQ(b.pool.capacity, 32);
    CHECK_EQ(b.pool.spare, 31); /* number 0 is never taken */
    take_many(&b, 31);
    CHECK_OK(qi_pool_grow(&b.pool, &b.host));
    CHECK_EQ(b.pool.capacity, 64);
    CHECK_EQ(b.pool.spare, 32);
    CHECK_EQ(qi_pool_used(&b.pool), 31);
    for (uint32_t i = 1; i < 32; i++)
        CHECK_EQ(at(&b, i)->value, i);
    for (uint32_t i = 32; i < 64; i++)
        CHECK(at(&b, i)->generation == 0 && !at(&b, i)->used);
    end_pool(&b);
}

UNIT(pool, growing_early_keeps_spare_numbers)
{
    bench b = make_pool();
    take_many(&b, 10);
    give(&b, 4);
    CHECK_OK(qi_pool_grow(&b.pool, &b.host));
    CHECK_EQ(b.pool.spare, 63 - 9);
    CHECK_EQ(take(&b), 4);
    CHECK_EQ(take(&b), 11);
    end_pool(&b);
}

UNIT(pool, a_pool_ends_at_the_last_slot_number_of_a_handle)
{
    bench b = make_pool();
    take_many(&b, 5);
    qi_pool before = b.pool;
    b.pool.capacity = QI_SLOT_COUNT;
    CHECK_FAILS(qi_pool_grow(&b.pool, &b.host), QUIRE_ERROR_TOO_MANY_ALLOCATIONS);
    CHECK_HAS(quire_last_error(), "67108864");
    CHECK_EQ(b.pool.capacity, QI_SLOT_COUNT);
    CHECK_EQ(b.pool.spare, before.spare);
    b.pool = before;
    end_pool(&b);
}

UNIT(pool, without_host_memory_nothing_changes)
{
    bench b = make_pool();
    take_many(&b, 31);
    qi_pool before = b.pool;
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(qi_pool_grow(&b.pool, &b.host), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_HAS(quire_last_error(), "no host memory for the records of 64 ranges: 1.50 KiB");
    CHECK(!memcmp(&b.pool, &before, sizeof before));
    CHECK_EQ(at(&b, 31)->value, 31);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_EQ(take(&b), 32);
    end_pool(&b);
}

/* ---- generations --------------------------------------------------------------------------- */

UNIT(pool, a_retired_number_is_neither_used_nor_spare)
{
    bench b = make_pool();
    take_many(&b, 3);
    at(&b, 2)->generation = QI_LAST_GENERATION + 1;
    give(&b, 2);
    give(&b, 3);
    CHECK_EQ(b.pool.retired, 1);
    CHECK_EQ(qi_pool_used(&b.pool), 1);
    CHECK_EQ(take(&b), 3);
    CHECK_EQ(take(&b), 4);
    end_pool(&b);
}

/* ---- trimming ------------------------------------------------------------------------------ */

UNIT(pool, trimming_releases_records_above_the_highest_number_in_use)
{
    bench b = make_pool();
    take_many(&b, 1000);
    CHECK_EQ(b.pool.capacity, 1024);
    give_from(&b, 41);
    trim(&b);
    CHECK_EQ(b.pool.capacity, 64);
    CHECK_EQ(b.pool.top, 41);
    CHECK_EQ(qi_pool_used(&b.pool), 40);
    CHECK_EQ(qi_atomic_load_u64(&b.host.bytes), 64 * sizeof(item));
    for (uint32_t i = 1; i <= 40; i++)
        CHECK_EQ(at(&b, i)->value, i);
    for (uint32_t i = 41; i < 100; i++) /* above the new capacity too */
        CHECK_EQ(take(&b), i);
    end_pool(&b);
}

UNIT(pool, numbers_freed_below_the_top_are_reused)
{
    bench b = make_pool();
    take_many(&b, 500);
    give_from(&b, 21);
    give(&b, 7);
    give(&b, 19);
    trim(&b);
    CHECK_EQ(b.pool.capacity, 32);
    CHECK_EQ(qi_pool_used(&b.pool), 18);
    bool seen[32] = {false};
    for (uint32_t i = 0; i < 13; i++) {
        uint32_t number = take(&b);
        CHECK(number < 32 && !seen[number]);
        seen[number] = true;
    }
    CHECK(seen[7] && seen[19] && seen[21] && seen[31] && !seen[20] && !seen[0]);
    CHECK_EQ(b.pool.spare, 0);
    end_pool(&b);
}

UNIT(pool, one_high_number_in_use_keeps_the_array)
{
    bench b = make_pool();
    take_many(&b, 1000);
    give_from(&b, 1);
    at(&b, 600)->used = true;
    qi_pool before = b.pool;
    trim(&b); /* 601 numbers also need 1024 records */
    CHECK_EQ(b.pool.keeper, 600);
    before.keeper = 600;
    CHECK(!memcmp(&b.pool, &before, sizeof before));
    trim(&b);
    CHECK(!memcmp(&b.pool, &before, sizeof before));
    at(&b, 600)->used = false;
    trim(&b);
    CHECK_EQ(b.pool.capacity, 32);
    CHECK_EQ(b.pool.keeper, 0);
    end_pool(&b);
}

UNIT(pool, a_small_pool_is_not_trimmed)
{
    bench b = make_pool();
    trim(&b);
    CHECK_EQ(b.pool.capacity, 0);
    take_many(&b, 31);
    give_from(&b, 1);
    trim(&b);
    CHECK_EQ(b.pool.capacity, 32);
    CHECK_EQ(b.pool.spare, 31);
    end_pool(&b);
}

UNIT(pool, trimmed_numbers_restart_above_every_released_generation)
{
    bench b = make_pool();
    take_many(&b, 200);
    at(&b, 150)->generation = 18;
    at(&b, 199)->generation = 6;
    at(&b, 20)->generation = 30; /* stays in the array and keeps its generation */
    give_from(&b, 1);
    trim(&b);
    CHECK_EQ(b.pool.first_generation, 18);
    for (uint32_t i = 1; i < 300; i++) {
        uint32_t number = take(&b);
        CHECK_EQ(at(&b, number)->generation, number == 20 ? 30 : number < 32 ? 0 : 18);
    }
    at(&b, 250)->generation = 4; /* a lower generation does not lower it */
    give_from(&b, 1);
    trim(&b);
    CHECK_EQ(b.pool.first_generation, 18);
    end_pool(&b);
}

UNIT(pool, retired_numbers_survive_a_trim_and_stay_retired)
{
    bench b = make_pool();
    take_many(&b, 300);
    at(&b, 5)->generation = QI_LAST_GENERATION + 1;
    at(&b, 40)->generation = QI_LAST_GENERATION + 1;
    give_from(&b, 1);
    CHECK_EQ(b.pool.retired, 2);
    trim(&b);
    CHECK_EQ(b.pool.top, 41);
    CHECK_EQ(b.pool.capacity, 64);
    CHECK_EQ(b.pool.retired, 2);
    CHECK_EQ(qi_pool_used(&b.pool), 0);
    for (int i = 0; i < 100; i++) {
        uint32_t number = take(&b);
        CHECK(number != 5 && number != 40);
    }
    end_pool(&b);
}

/*
 * Numbers above the trimmed top share one generation. A single number that was used very often must
 * not leave all of them almost worn out. Otherwise each would serve one more time and be retired,
 * and the array would grow with every allocation from then on.
 */
UNIT(pool, one_worn_number_does_not_wear_out_the_others)
{
    bench b = make_pool();
    take_many(&b, 300);
    at(&b, 200)->generation = QI_LAST_GENERATION - 1;
    give_from(&b, 1);
    trim(&b);
    for (int i = 0; i < 10000; i++) {
        uint32_t number = take(&b);
        at(&b, number)->generation += 2; /* lived and was freed */
        give(&b, number);
    }
    CHECK(b.pool.retired <= 1);
    CHECK(b.pool.capacity <= 512);
    end_pool(&b);
}

UNIT(pool, a_number_is_trimmed_up_to_half_its_generations_and_kept_above)
{
    const uint32_t half = QI_LAST_GENERATION / 2 - 1; /* even, as for every returned number */
    bench b = make_pool();
    take_many(&b, 300);
    at(&b, 200)->generation = half + 2;
    give_from(&b, 1);
    trim(&b);
    CHECK_EQ(b.pool.top, 201);
    CHECK_EQ(b.pool.capacity, 256);
    CHECK_EQ(b.pool.first_generation, 0);
    CHECK_EQ(b.pool.spare, 255);
    at(&b, 200)->generation = half;
    trim(&b);
    CHECK_EQ(b.pool.capacity, 32);
    CHECK_EQ(b.pool.first_generation, half);
    end_pool(&b);
}

UNIT(pool, a_trim_without_host_memory_changes_nothing)
{
    bench b = make_pool();
    take_many(&b, 1000);
    give_from(&b, 10);
    qi_pool before = b.pool;
    test_memory_fail(unit_memory_state(), 1, true);
    trim(&b);
    CHECK(!memcmp(&b.pool, &before, sizeof before));
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_EQ(take(&b), 1000); /* the number returned last, as before */
    end_pool(&b);
}

/* ---- the check ----------------------------------------------------------------------------- */

static void expect_sound(const bench *b)
{
    uint32_t number = 0;
    CHECK(!qi_pool_damage(&b->pool, in_use, b, &number));
}

static void expect_damage(const bench *b, const char *part, uint32_t where)
{
    uint32_t number = UINT32_MAX;
    const char *message = qi_pool_damage(&b->pool, in_use, b, &number);
    CHECK(message);
    CHECK_HAS(message, part);
    CHECK_EQ(number, where);
}

/* Sets a field for one check, then restores it. */
#define DAMAGE(b, field, value, part, where)                                                       \
    do {                                                                                           \
        __typeof__(field) kept = (field);                                                          \
        (field) = (__typeof__(field))(value);                                                      \
        expect_damage((b), (part), (where));                                                       \
        (field) = kept;                                                                            \
        expect_sound(b);                                                                           \
    } while (0)

/* Numbers 1 to 9 were taken; 3 and 5 are unused, 5 before 3, and 7 is retired. */
static bench make_worn_pool(void)
{
    bench b = make_pool();
    expect_sound(&b);
    take_many(&b, 9);
    at(&b, 7)->generation = QI_LAST_GENERATION + 1;
    give(&b, 3);
    give(&b, 5);
    give(&b, 7);
    expect_sound(&b);
    return b;
}

UNIT(pool, the_check_finds_damage_to_the_chain)
{
    bench b = make_worn_pool();
    const char *const part = "the chain of unused numbers is broken";
    DAMAGE(&b, b.pool.unused, 0, part, 0);
    DAMAGE(&b, b.pool.unused, 3, part, 3); /* loses 5 */
    DAMAGE(&b, b.pool.unused, 1, part, 1); /* in use */
    DAMAGE(&b, b.pool.unused, 7, part, 7); /* retired */
    at(&b, 10)->next = 3; /* a chain of the right length, over a number that was never taken */
    DAMAGE(&b, b.pool.unused, 10, part, 10);
    DAMAGE(&b, b.pool.unused, UINT32_MAX, part, UINT32_MAX);
    DAMAGE(&b, at(&b, 3)->next, 5, part, 5); /* a circle */
    DAMAGE(&b, at(&b, 3)->next, UINT32_MAX, part, UINT32_MAX);
    DAMAGE(&b, at(&b, 5)->used, true, part, 5);
    DAMAGE(&b, b.pool.spare, b.pool.spare - 1, part, 3);
    DAMAGE(&b, b.pool.spare, 0, part, 0);
    DAMAGE(&b, b.pool.spare, UINT32_MAX, part, 0);
    DAMAGE(&b, b.pool.top, 9, part, 3);
    end_pool(&b);
}

UNIT(pool, the_check_finds_damage_to_numbers_and_counts)
{
    bench b = make_worn_pool();
    const char *const counts = "the number of numbers in use or retired is wrong";
    DAMAGE(&b, b.pool.retired, 0, counts, 0);
    DAMAGE(&b, at(&b, 7)->used, true, counts, 0);
    DAMAGE(&b, at(&b, 7)->generation, 6, counts, 0);
    DAMAGE(&b, at(&b, 2)->used, false, counts, 0);
    DAMAGE(&b, at(&b, 0)->used, true, "never taken", 0);
    DAMAGE(&b, at(&b, 10)->used, true, "never taken", 10);
    DAMAGE(&b, at(&b, 31)->generation, QI_LAST_GENERATION + 1, "never taken", 31);
    DAMAGE(&b, at(&b, 2)->generation, QI_LAST_GENERATION + 2, "above the last one", 2);
    DAMAGE(&b, b.pool.first_generation, 1, "new numbers", 0);
    DAMAGE(&b, b.pool.first_generation, QI_LAST_GENERATION - 1, "new numbers", 0);
    end_pool(&b);
}
