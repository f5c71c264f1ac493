/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ranking.c - scores by hand, over one and several replays; the order; the Pareto-optimal
 * candidates against the definition; and that nothing is recommended that fails, that reserves more
 * than the defaults somewhere, or that gains too little.
 */
#include "src/tool/ranking.h"

#include <math.h>
#include <stdlib.h>

#include "tests/support/random.h"
#include "tests/support/unit.h"

enum { MOST = 40, REPLAYS = 3 };

/* Candidates whose costs are in `costs`. */
typedef struct listed {
    replay_cost costs[MOST][REPLAYS];
    ranked list[MOST];
    bool counts[REPLAYS];
    uint32_t count;
} listed;

/* A candidate that allocated 1000 bytes in 1000 operations, in every replay. */
static void add(listed *l, uint32_t options_set, uint64_t reserved, uint64_t calls)
{
    for (int i = 0; i < REPLAYS; i++)
        l->costs[l->count][i] = (replay_cost){.requested_bytes = 1000,
                                              .reserved_bytes = reserved,
                                              .backend_calls = calls,
                                              .operations = 1000};
    l->list[l->count] =
        (ranked){.number = l->count, .options_set = options_set, .costs = l->costs[l->count]};
    l->count++;
}

static void rank_all(listed *l)
{
    for (int i = 0; i < REPLAYS; i++)
        l->counts[i] = i == 0;
    rank(l->list, l->count, l->counts, REPLAYS);
}

static void expect_order(const listed *l, const uint32_t *numbers)
{
    for (uint32_t i = 0; i < l->count; i++)
        CHECK_EQ(l->list[i].number, numbers[i]);
}

/* The number of the recommended candidate. */
static uint32_t recommended(const listed *l)
{
    size_t place = recommend(l->list, l->count);
    return place < l->count ? l->list[place].number : UINT32_MAX;
}

/* ---- the order ---------------------------------------------------------------------------- */

UNIT(ranking, the_score_is_the_mean_of_memory_plus_calls)
{
    listed l = {.count = 0};
    add(&l, 0, 1250, 100);
    rank_all(&l);
    CHECK(fabs(l.list[0].score - 1.35) < 1e-12);
    CHECK(fabs(l.list[0].ratio - 1.25) < 1e-12);
    CHECK_EQ(l.list[0].backend_calls, 300);
    CHECK(l.list[0].pareto);
    CHECK_EQ(l.list[0].alike, NOT_ALIKE);
    l.costs[0][2] = (replay_cost){
        .requested_bytes = 2000, .reserved_bytes = 4000, .backend_calls = 50, .operations = 100};
    rank_all(&l);
    CHECK(fabs(l.list[0].score - (1.35 + 1.35 + 2.5) / 3) < 1e-12);
}

UNIT(ranking, scores_order_then_options_then_numbers)
{
    listed l = {.count = 0};
    add(&l, 3, 1100, 100);
    add(&l, 1, 1100, 100);
    add(&l, 1, 1100, 100);
    add(&l, 9, 1000, 100);
    add(&l, 0, 2000, 0);
    rank_all(&l);
    expect_order(&l, (const uint32_t[]){3, 1, 2, 0, 4});
}

UNIT(ranking, equal_results_lead_to_the_first_candidate)
{
    listed l = {.count = 0};
    add(&l, 2, 1100, 100);
    add(&l, 0, 1100, 100);
    add(&l, 1, 1100, 100);
    add(&l, 1, 1000, 50);
    rank_all(&l);
    expect_order(&l, (const uint32_t[]){3, 1, 2, 0});
    CHECK_EQ(l.list[0].alike, NOT_ALIKE);
    CHECK_EQ(l.list[1].alike, NOT_ALIKE);
    CHECK_EQ(l.list[2].alike, 1);
    CHECK_EQ(l.list[3].alike, 1);
}

UNIT(ranking, pareto_matches_the_definition)
{
    test_random random = {.state = 7};
    for (int round = 0; round < 200; round++) {
        listed l = {.count = 0};
        while (l.count < MOST) {
            uint64_t reserved = 1000 + random_below(&random, 16);
            add(&l, 0, reserved, random_below(&random, 16));
        }
        rank_all(&l);
        for (size_t i = 0; i < MOST; i++) {
            bool beaten = false;
            const replay_cost *b = l.list[i].costs;
            for (size_t k = 0; k < MOST; k++) {
                const replay_cost *a = l.list[k].costs;
                bool no_worse =
                    a->reserved_bytes <= b->reserved_bytes && a->backend_calls <= b->backend_calls;
                bool better =
                    a->reserved_bytes < b->reserved_bytes || a->backend_calls < b->backend_calls;
                beaten = beaten || (no_worse && better);
            }
            CHECK_EQ(l.list[i].pareto, !beaten && l.list[i].alike == NOT_ALIKE);
        }
    }
}

/* ---- what is never recommended ------------------------------------------------------------ */

UNIT(ranking, a_candidate_with_failures_is_last_and_never_recommended)
{
    listed l = {.count = 0};
    add(&l, 0, 10, 1);
    add(&l, 0, 10, 1);
    add(&l, 5, 9000, 900);
    l.costs[0][0].failures = 2;
    l.costs[1][2].failures = 1; /* with other sizes only */
    rank_all(&l);
    expect_order(&l, (const uint32_t[]){2, 1, 0});
    CHECK(l.list[0].pareto && !l.list[1].pareto && !l.list[2].pareto);
    CHECK_EQ(recommended(&l), 2);
    CHECK_EQ(recommend(l.list + 1, 2), 2); /* none of the two */
    CHECK_EQ(recommend(l.list, 0), 0);
}

/* Such a replay says that the device is too small, and nothing about the candidates. */
UNIT(ranking, a_replay_that_every_candidate_fails_does_not_count)
{
    listed l = {.count = 0};
    add(&l, 0, 1200, 0);
    add(&l, 1, 1100, 0);
    l.costs[0][2].failures = l.costs[1][2].failures = 7;
    l.costs[1][2].reserved_bytes = 5000;
    rank_all(&l);
    CHECK(l.counts[0] && l.counts[1] && !l.counts[2]);
    CHECK_EQ(recommended(&l), 1);
    l.costs[0][0].failures = l.costs[1][0].failures = 7; /* the recorded sizes always count */
    rank_all(&l);
    CHECK(l.counts[0]);
    CHECK_EQ(recommended(&l), UINT32_MAX);
}

UNIT(ranking, a_candidate_that_reserves_more_somewhere_is_not_recommended)
{
    listed l = {.count = 0};
    add(&l, 0, 1400, 0);
    add(&l, 1, 1000, 0);
    add(&l, 1, 1300, 0);
    l.costs[1][2].reserved_bytes = 1401; /* best in the mean */
    rank_all(&l);
    expect_order(&l, (const uint32_t[]){1, 2, 0});
    CHECK(!l.list[0].is_safe && l.list[1].is_safe && l.list[2].is_safe);
    CHECK_EQ(recommended(&l), 2);
    l.costs[2][1].reserved_bytes = 1401;
    rank_all(&l);
    CHECK_EQ(recommended(&l), 0);
}

/* Less memory does not outweigh calls in each replay that grow with the memory in one. */
UNIT(ranking, a_candidate_that_scores_worse_somewhere_is_not_recommended)
{
    listed l = {.count = 0};
    add(&l, 0, 1400, 0);
    add(&l, 1, 1000, 10);
    l.costs[1][2].backend_calls = 390;
    rank_all(&l);
    CHECK_EQ(recommended(&l), 1);
    l.costs[1][2].backend_calls = 410;
    rank_all(&l);
    CHECK(!l.list[0].is_safe);
    CHECK_EQ(recommended(&l), 0);
}

UNIT(ranking, a_change_must_be_worth_it)
{
    listed close = {.count = 0}, far = {.count = 0};
    add(&close, 0, 1179, 0);
    add(&close, 1, 1100, 0);
    rank_all(&close);
    CHECK_EQ(recommended(&close), 0);
    add(&far, 0, 1181, 0);
    add(&far, 1, 1100, 0);
    rank_all(&far);
    CHECK_EQ(recommended(&far), 1);
}

/* The first replay is the one that always counts. */
UNIT(ranking, a_gain_must_show_with_the_sizes_of_the_trace)
{
    listed l = {.count = 0};
    add(&l, 0, 1400, 0);
    add(&l, 1, 1100, 0);
    l.costs[1][0].reserved_bytes = 1361;
    rank_all(&l);
    CHECK_EQ(recommended(&l), 0);
    l.costs[1][0].reserved_bytes = 1359;
    rank_all(&l);
    CHECK_EQ(recommended(&l), 1);
}

/* Likewise without defaults to compare with. */
UNIT(ranking, an_option_must_be_worth_it)
{
    listed close = {.count = 0}, far = {.count = 0};
    add(&close, 1, 1109, 0);
    add(&close, 2, 1100, 0);
    rank_all(&close);
    CHECK_EQ(recommended(&close), 0);
    add(&far, 1, 1120, 0);
    add(&far, 2, 1100, 0);
    rank_all(&far);
    CHECK_EQ(recommended(&far), 1);
    CHECK_EQ(find_defaults(far.list, far.count), far.count);
}

UNIT(ranking, among_equally_few_options_the_best_score_wins)
{
    listed l = {.count = 0};
    add(&l, 2, 1100, 0);
    add(&l, 1, 1103, 0);
    add(&l, 1, 1102, 0);
    add(&l, 1, 1200, 0);
    add(&l, 0, 1300, 0);
    rank_all(&l);
    CHECK_EQ(recommended(&l), 2);
}
