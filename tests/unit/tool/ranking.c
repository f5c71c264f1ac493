/*
 * ranking.c - scores by hand, the order, the Pareto-optimal candidates against the definition, and
 * that an option without a clear gain is never recommended.
 */
#include "src/tool/ranking.h"

#include <math.h>

#include "tests/support/random.h"
#include "tests/support/unit.h"

/* A candidate that allocated 1000 bytes in 1000 operations. */
static ranked made(uint32_t number, uint32_t options_set, uint64_t reserved, uint64_t calls)
{
    return (ranked){.number = number,
                    .options_set = options_set,
                    .requested_bytes = 1000,
                    .reserved_bytes = reserved,
                    .backend_calls = calls,
                    .operations = 1000};
}

static void expect_order(const ranked *list, const uint32_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(list[i].number, numbers[i]);
}

UNIT(ranking, the_score_is_memory_plus_calls)
{
    ranked one = made(0, 0, 1250, 100);
    rank(&one, 1);
    CHECK(fabs(one.score - 1.35) < 1e-12);
    CHECK(one.pareto);
    CHECK_EQ(one.alike, NOT_ALIKE);
}

UNIT(ranking, scores_order_then_options_then_numbers)
{
    ranked list[] = {made(0, 3, 1100, 100), made(1, 1, 1100, 100), made(2, 1, 1100, 100),
                     made(3, 9, 1000, 100), made(4, 0, 2000, 0)};
    rank(list, 5);
    expect_order(list, (const uint32_t[]){3, 1, 2, 0, 4}, 5);
}

UNIT(ranking, a_candidate_with_failures_is_last_and_never_recommended)
{
    ranked list[] = {made(0, 0, 10, 1), made(1, 0, 10, 1), made(2, 5, 9000, 900)};
    list[0].failures = 2;
    list[1].failures = 1;
    rank(list, 3);
    expect_order(list, (const uint32_t[]){2, 1, 0}, 3);
    CHECK(list[0].pareto && !list[1].pareto && !list[2].pareto);
    CHECK_EQ(recommend(list, 3), 0);
    CHECK_EQ(recommend(list + 1, 2), 2); /* none of the two */
    CHECK_EQ(recommend(list, 0), 0);
}

UNIT(ranking, equal_results_lead_to_the_first_candidate)
{
    ranked list[] = {made(0, 2, 1100, 100), made(1, 0, 1100, 100), made(2, 1, 1100, 100),
                     made(3, 1, 1000, 50)};
    rank(list, 4);
    expect_order(list, (const uint32_t[]){3, 1, 2, 0}, 4);
    CHECK_EQ(list[0].alike, NOT_ALIKE);
    CHECK_EQ(list[1].alike, NOT_ALIKE);
    CHECK_EQ(list[2].alike, 1);
    CHECK_EQ(list[3].alike, 1);
}

UNIT(ranking, pareto_matches_the_definition)
{
    test_random random = {.state = 7};
    for (int round = 0; round < 200; round++) {
        ranked list[40];
        for (uint32_t i = 0; i < 40; i++)
            list[i] = made(i, 0, 1000 + random_below(&random, 16), random_below(&random, 16));
        rank(list, 40);
        for (size_t i = 0; i < 40; i++) {
            bool beaten = false;
            for (size_t k = 0; k < 40; k++) {
                const ranked *a = &list[k], *b = &list[i];
                bool no_worse =
                    a->reserved_bytes <= b->reserved_bytes && a->backend_calls <= b->backend_calls;
                bool better =
                    a->reserved_bytes < b->reserved_bytes || a->backend_calls < b->backend_calls;
                beaten = beaten || (no_worse && better);
            }
            CHECK_EQ(list[i].pareto, !beaten && list[i].alike == NOT_ALIKE);
        }
    }
}

UNIT(ranking, an_option_must_be_worth_it)
{
    /* 0.009 better for one more option: not worth it; 0.02 is */
    ranked close[] = {made(0, 0, 1109, 0), made(1, 1, 1100, 0)};
    rank(close, 2);
    CHECK_EQ(close[recommend(close, 2)].number, 0);
    ranked far[] = {made(0, 0, 1120, 0), made(1, 1, 1100, 0)};
    rank(far, 2);
    CHECK_EQ(far[recommend(far, 2)].number, 1);
}

UNIT(ranking, among_equally_few_options_the_best_score_wins)
{
    ranked list[] = {made(0, 2, 1100, 0), made(1, 1, 1103, 0), made(2, 1, 1102, 0),
                     made(3, 1, 1200, 0), made(4, 0, 1300, 0)};
    rank(list, 5);
    CHECK_EQ(list[recommend(list, 5)].number, 2);
}
