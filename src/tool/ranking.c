/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ranking.c - ranks candidates by the mean of their scores, and compares each with the defaults in
 * every replay.
 */
#include "src/tool/ranking.h"

#include <stdlib.h>

/* ---- sums over the replays ---------------------------------------------------------------- */

/* Adds the replays that some candidate serves. */
static void choose_replays(const ranked *list, size_t count, bool *counts, size_t replays)
{
    for (size_t i = 0; i < replays; i++)
        for (size_t k = 0; k < count && !counts[i]; k++)
            counts[i] = !list[k].costs[i].failures;
}

static double ratio_in(const replay_cost *cost)
{
    return (double)cost->reserved_bytes / (double)cost->requested_bytes;
}

static double score_in(const replay_cost *cost)
{
    return ratio_in(cost) + (double)cost->backend_calls / (double)cost->operations;
}

static void add_up(ranked *r, const bool *counts, size_t replays)
{
    uint32_t added = 0;
    r->failures = r->backend_calls = 0;
    r->ratio = r->score = 0;
    for (size_t i = 0; i < replays; i++) {
        const replay_cost *cost = &r->costs[i];
        if (!counts[i])
            continue;
        r->failures += cost->failures;
        r->backend_calls += cost->backend_calls;
        r->ratio += ratio_in(cost);
        r->score += score_in(cost);
        added++;
    }
    r->ratio /= added ? added : 1;
    r->score /= added ? added : 1;
}

size_t find_defaults(const ranked *list, size_t count)
{
    size_t at = 0;
    while (at < count && list[at].options_set)
        at++;
    return at;
}

/* A replay that does not count is not compared: the defaults fail in it. */
static bool is_safe(const ranked *r, const ranked *defaults, const bool *counts, size_t replays)
{
    for (size_t i = 0; i < replays; i++) {
        const replay_cost *mine = &r->costs[i], *usual = &defaults->costs[i];
        if (counts[i] &&
            (mine->reserved_bytes > usual->reserved_bytes || score_in(mine) > score_in(usual)))
            return false;
    }
    return true;
}

/* ---- order -------------------------------------------------------------------------------- */

/* Three-way comparison for qsort, without the overflow of a subtraction. */
static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* The last comparison, by number, makes the order total and thereby the result of qsort unique. */
static int compare_ranked(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    int by_score = (a->score > b->score) - (a->score < b->score);
    int order = compare(a->failures, b->failures);
    if (!order && !a->failures)
        order = by_score ? by_score : compare(a->options_set, b->options_set);
    return order ? order : compare(a->number, b->number);
}

/* Equal costs have equal ratios: the sums are made in the same order. */
static bool has_same_cost(const ranked *a, const ranked *b)
{
    bool is_less = a->ratio<b->ratio, is_more = a->ratio> b->ratio;
    return a->failures == b->failures && !is_less && !is_more &&
           a->backend_calls == b->backend_calls;
}

/* Whether `a` dominates `b`; their costs must differ. */
static bool dominates(const ranked *a, const ranked *b)
{
    return !a->failures && a->ratio <= b->ratio && a->backend_calls <= b->backend_calls;
}

/* Sets `alike` and `pareto` of one candidate. The list is sorted. */
static void compare_with_others(ranked *list, size_t count, size_t at)
{
    ranked *r = &list[at];
    r->alike = NOT_ALIKE;
    r->pareto = !r->failures;
    for (uint32_t i = 0; i < at && r->alike == NOT_ALIKE; i++)
        if (has_same_cost(&list[i], r))
            r->alike = i;
    for (size_t i = 0; i < count && r->pareto; i++)
        r->pareto =
            r->alike == NOT_ALIKE && (has_same_cost(&list[i], r) || !dominates(&list[i], r));
}

void rank(ranked *list, size_t count, bool *counts, size_t replays)
{
    for (size_t i = 0; i < count; i++) {
        add_up(&list[i], counts, replays);
        list[i].own_score = list[i].score;
    }
    choose_replays(list, count, counts, replays);
    for (size_t i = 0; i < count; i++)
        add_up(&list[i], counts, replays);
    qsort(list, count, sizeof *list, compare_ranked);
    size_t at = find_defaults(list, count);
    bool comparable = at < count && !list[at].failures;
    for (size_t i = 0; i < count; i++) {
        list[i].is_safe = !comparable || is_safe(&list[i], &list[at], counts, replays);
        compare_with_others(list, count, i);
    }
}

/* ---- the recommendation ------------------------------------------------------------------- */

static bool is_eligible(const ranked *r, const ranked *defaults)
{
    if (r->failures)
        return false;
    return !defaults || (r->is_safe && r->score <= defaults->score - WORTH_A_CHANGE &&
                         r->own_score <= defaults->own_score - WORTH_A_CHANGE_ITSELF);
}

/* The list is sorted, so the first eligible candidate has the best score of them. */
size_t recommend(const ranked *list, size_t count)
{
    size_t at = find_defaults(list, count), first = 0;
    const ranked *defaults = at < count && !list[at].failures ? &list[at] : NULL;
    while (first < count && !is_eligible(&list[first], defaults))
        first++;
    if (first == count)
        return defaults ? at : count;
    size_t best = first;
    for (size_t i = first + 1; i < count; i++)
        if (is_eligible(&list[i], defaults) &&
            list[i].score < list[first].score + WORTH_AN_OPTION &&
            list[i].options_set < list[best].options_set)
            best = i;
    return best;
}
