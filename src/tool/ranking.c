/*
 * ranking.c - see ranking.h.
 */
#include "src/tool/ranking.h"

#include <stdlib.h>

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

static double score_of(const ranked *r)
{
    return (double)r->reserved_bytes / (double)r->requested_bytes +
           (double)r->backend_calls / (double)r->operations;
}

static bool has_same_cost(const ranked *a, const ranked *b)
{
    return a->failures == b->failures && a->reserved_bytes == b->reserved_bytes &&
           a->backend_calls == b->backend_calls;
}

/* Whether `a` dominates `b`; their costs must differ. */
static bool dominates(const ranked *a, const ranked *b)
{
    return !a->failures && a->reserved_bytes <= b->reserved_bytes &&
           a->backend_calls <= b->backend_calls;
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

void rank(ranked *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        list[i].score = score_of(&list[i]);
    qsort(list, count, sizeof *list, compare_ranked);
    for (size_t i = 0; i < count; i++)
        compare_with_others(list, count, i);
}

size_t recommend(const ranked *list, size_t count)
{
    if (!count || list->failures)
        return count;
    size_t best = 0;
    for (size_t i = 1; i < count && !list[i].failures; i++)
        if (list[i].score < list->score + WORTH_AN_OPTION &&
            list[i].options_set < list[best].options_set)
            best = i;
    return best;
}
