/*
 * plan.c - plans: the check of items and of plans, sections, orders. Small random
 * instances are compared with definitions that are quadratic in time; MiniMalloc's instances with
 * their published lower bounds.
 */
#include "src/plan/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/host_memory.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { MOST = 20000 };

static qi_host host;

static void begin(void)
{
    CHECK_OK(qi_host_init(&host, unit_memory()));
}

static void end(void)
{
    CHECK_EQ(qi_atomic_load_u64(&host.bytes), 0);
}

/* Makes a plan; returns its peak. */
static uint64_t plan(const qi_plan_item *items, uint32_t count, uint64_t *offsets)
{
    qi_plan_sections sections;
    uint64_t peak;
    CHECK_OK(qi_plan_sections_make(items, count, &host, &sections));
    CHECK_OK(qi_plan_by_orders(items, &sections, &host, offsets, &peak));
    qi_plan_sections_release(&sections, &host);
    return peak;
}

static uint64_t bound_of(const qi_plan_item *items, uint32_t count)
{
    qi_plan_sections sections;
    CHECK_OK(qi_plan_sections_make(items, count, &host, &sections));
    uint64_t bound = qi_plan_lower_bound(&sections);
    qi_plan_sections_release(&sections, &host);
    return bound;
}

/* ---- items and plans by hand ---------------------------------------------------------------- */

UNIT(plan, items_that_no_plan_can_have_are_named)
{
    static const struct {
        qi_plan_item item;
        const char *says;
    } cases[] = {
        {{0, 1, 0, 1}, "item 1 of the plan has size 0"},
        {{1, 1, 5, 5}, "item 1 of the plan lives from 5 until before 5"},
        {{1, 1, 6, 5}, "item 1 of the plan lives from 6 until before 5"},
        {{UINT64_MAX, 1, 0, 1}, "up to 1 exceed 2^63"},
        {{1, UINT64_MAX, 0, 1}, "up to 1 exceed 2^63"},
        {{(UINT64_C(1) << 63) - 2, 0, 0, 1}, "up to 1 exceed 2^63"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const qi_plan_item items[] = {{1, 1, 0, 1}, cases[i].item};
        CHECK_OK(qi_plan_check_items(items, 1));
        CHECK_FAILS(qi_plan_check_items(items, 2), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), cases[i].says);
    }
}

UNIT(plan, plans_that_are_wrong_are_named)
{
    const qi_plan_item items[] = {{10, 0, 0, 5}, {10, 4, 5, 9}, {6, 1, 4, 6}};
    static const struct {
        uint64_t offsets[3], capacity;
        quire_result result;
        const char *says;
    } cases[] = {
        {{0, 0, 10}, 16, QUIRE_SUCCESS, ""}, /* item 1 begins when item 0 has ended */
        {{0, 0, 10}, 0, QUIRE_SUCCESS, ""},
        {{0, 0, 10},
         15,
         QUIRE_ERROR_OUT_OF_RANGE,
         "item 2 of the plan has 6 bytes at offset 10: "
         "the capacity is 15"},
        {{0, 2, 12}, 0, QUIRE_ERROR_INVALID_ARGUMENT, "at offset 2, which is no multiple of 4"},
        {{0, 4, 10},
         0,
         QUIRE_ERROR_OVERLAP,
         "items 1 and 2 of the plan share bytes from offset "
         "10 on"},
        {{7, 16, 10}, 0, QUIRE_ERROR_OVERLAP, "items 0 and 2 of the plan share bytes"},
        {{UINT64_MAX - 10, 0, 10}, 0, QUIRE_SUCCESS, ""},
        {{UINT64_MAX - 9, 0, 10}, 0, QUIRE_ERROR_OUT_OF_RANGE, "item 0"},
    };
    begin();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_result result = qi_plan_check(items, cases[i].offsets, 3, cases[i].capacity, &host);
        CHECK_EQ(result, cases[i].result);
        if (result)
            CHECK_HAS(quire_last_error(), cases[i].says);
    }
    CHECK_OK(qi_plan_check(NULL, NULL, 0, 1, &host));
    end();
}

UNIT(plan, sections_are_the_largest_sets_that_live_together)
{
    const qi_plan_item items[] = {{1, 1, 0, 4}, {2, 1, 2, 6}, {4, 1, 4, 8}, {8, 1, 9, 10}};
    qi_plan_sections s;
    begin();
    CHECK_OK(qi_plan_sections_make(items, 4, &host, &s)); /* {0, 1}, {1, 2}, {3} */
    const uint32_t begins[] = {0, 0, 1, 2}, ends[] = {1, 2, 2, 3};
    const uint64_t loads[] = {3, 6, 8};
    CHECK_EQ(s.count, 3);
    CHECK(!memcmp(s.begin, begins, sizeof begins) && !memcmp(s.end, ends, sizeof ends));
    CHECK(!memcmp(s.loads, loads, sizeof loads));
    CHECK_EQ(qi_plan_lower_bound(&s), 8);
    qi_plan_sections_release(&s, &host);
    CHECK_EQ(bound_of(NULL, 0), 0);
    end();
}

/* By size alone the peak is 11; the items of the heaviest section first give 10, the bound. */
UNIT(plan, the_best_order_is_kept)
{
    const qi_plan_item items[] = {
        {1, 0, 0, 2}, {4, 0, 0, 4}, {3, 0, 4, 5}, {4, 0, 1, 5}, {3, 0, 4, 6}};
    uint64_t offsets[5];
    begin();
    CHECK_EQ(plan(items, 5, offsets), 10);
    CHECK_OK(qi_plan_check(items, offsets, 5, 10, &host));
    CHECK_EQ(bound_of(items, 5), 10);
    CHECK_EQ(plan(NULL, 0, offsets), 0);
    end();
}

/* ---- random instances ----------------------------------------------------------------------- */

static bool live_together(const qi_plan_item *a, const qi_plan_item *b)
{
    return a->first < b->last && b->first < a->last;
}

/* By definition: every time, every pair. */
static uint64_t slow_bound(const qi_plan_item *items, uint32_t count)
{
    uint64_t bound = 0;
    for (uint32_t t = 0; t < count; t++) {
        uint64_t sum = 0;
        for (uint32_t i = 0; i < count; i++)
            if (items[i].first <= items[t].first && items[t].first < items[i].last)
                sum += items[i].size;
        bound = sum > bound ? sum : bound;
    }
    return bound;
}

static bool slow_check(const qi_plan_item *items, const uint64_t *offsets, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (items[i].alignment && offsets[i] % items[i].alignment)
            return false;
        for (uint32_t j = 0; j < i; j++)
            if (live_together(&items[i], &items[j]) && offsets[i] < offsets[j] + items[j].size &&
                offsets[j] < offsets[i] + items[i].size)
                return false;
    }
    return true;
}

static uint32_t random_items(test_random *rng, qi_plan_item items[64])
{
    uint32_t count = 1 + (uint32_t)random_below(rng, 64);
    uint64_t times = 1 + random_below(rng, 40), sizes = 1 + random_below(rng, 60);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t first = random_below(rng, times);
        items[i] = (qi_plan_item){.size = 1 + random_below(rng, sizes),
                                  .alignment = random_below(rng, 3) ? 0 : random_below(rng, 20),
                                  .first = first,
                                  .last = first + 1 + random_below(rng, times)};
    }
    return count;
}

UNIT(plan, random_plans_are_valid_and_not_below_the_bound)
{
    test_random rng = {11};
    begin();
    for (int step = 0; step < 2000; step++) {
        qi_plan_item items[64];
        uint64_t offsets[64];
        uint32_t count = random_items(&rng, items);
        CHECK_OK(qi_plan_check_items(items, count));
        uint64_t peak = plan(items, count, offsets);
        CHECK_OK(qi_plan_check(items, offsets, count, peak, &host));
        CHECK(slow_check(items, offsets, count));
        CHECK_FAILS(qi_plan_check(items, offsets, count, peak - 1, &host),
                    peak > 1 ? QUIRE_ERROR_OUT_OF_RANGE : QUIRE_SUCCESS);
        uint64_t bound = bound_of(items, count);
        CHECK_EQ(bound, slow_bound(items, count));
        CHECK(peak >= bound);
    }
    end();
}

/* The check agrees with its definition for plans of any offsets. */
UNIT(plan, the_check_finds_every_overlap)
{
    test_random rng = {12};
    uint32_t good = 0;
    begin();
    for (int step = 0; step < 5000; step++) {
        qi_plan_item items[64];
        uint64_t offsets[64];
        uint32_t count = random_items(&rng, items);
        uint64_t peak = plan(items, count, offsets);
        for (uint64_t changes = random_below(&rng, 3); changes; changes--)
            offsets[random_below(&rng, count)] = random_below(&rng, peak + 20);
        bool expected = slow_check(items, offsets, count);
        CHECK_EQ(qi_plan_check(items, offsets, count, 0, &host) == QUIRE_SUCCESS, expected);
        good += expected;
    }
    CHECK(good > 1000 && good < 4000);
    end();
}

UNIT(plan, every_failure_of_host_memory_is_reported)
{
    const qi_plan_item items[] = {{1, 1, 0, 4}, {2, 1, 2, 6}};
    uint64_t offsets[2] = {0, 1}, peak;
    qi_plan_sections s;
    begin();
    for (uint64_t at = 1; at <= 4; at++) {
        test_memory_fail(unit_memory_state(), at, false);
        CHECK_FAILS(qi_plan_sections_make(items, 2, &host, &s), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(!s.begin && !s.count);
    }
    for (uint64_t at = 1; at <= 3; at++) {
        test_memory_fail(unit_memory_state(), at, false);
        CHECK_FAILS(qi_plan_check(items, offsets, 2, 0, &host), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_OK(qi_plan_sections_make(items, 2, &host, &s));
    for (uint64_t at = 1; at <= 4; at++) {
        test_memory_fail(unit_memory_state(), at, false);
        CHECK_FAILS(qi_plan_by_orders(items, &s, &host, offsets, &peak),
                    QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
    test_memory_fail(unit_memory_state(), 0, false);
    qi_plan_sections_release(&s, &host);
    end();
}

/* ---- MiniMalloc's instances ----------------------------------------------------------------- */

static void read_file(const char *folder, const char *name, qi_plan_file *items)
{
    static char text[1 << 20];
    char path[512];
    snprintf(path, sizeof path, "%s/static/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file)
        check_failed(__FILE__, __LINE__, "there is no '%s'", path);
    size_t size = fread(text, 1, sizeof text, file);
    CHECK(size < sizeof text);
    fclose(file);
    CHECK_OK(qi_plan_read(name, text, size, &host, items));
}

/* The largest loads of MiniMalloc's files are known. The peaks are in thousandths of the load; the
   order by size alone has 1290, 1309, 1362 and 1312. */
UNIT(plan, instances_of_others_have_their_bounds)
{
    static const struct {
        const char *name;
        uint64_t bound, thousandths;
    } files[] = {{"A.1048576.csv", 1048576, 1290},
                 {"D.1048576.csv", 986112, 1265},
                 {"G.1048576.csv", 1048576, 1277},
                 {"J.1048576.csv", 989184, 1267}};
    static uint64_t offsets[MOST];
    const char *folder = getenv("QUIRE_TEST_DATA");
    if (!folder || !*folder) {
        fprintf(stderr, "skipped: QUIRE_TEST_DATA names no folder with instances\n");
        return;
    }
    begin();
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        qi_plan_file f;
        read_file(folder, files[i].name, &f);
        CHECK(f.count < MOST);
        uint64_t peak = plan(f.items, f.count, offsets);
        CHECK_OK(qi_plan_check(f.items, offsets, f.count, peak, &host));
        CHECK_EQ(bound_of(f.items, f.count), files[i].bound);
        CHECK_EQ(peak * 1000 / files[i].bound, files[i].thousandths);
        qi_plan_file_release(&f, &host);
    }
    end();
}
