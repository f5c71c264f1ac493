/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* plan_course.c - see plan_course.h. */
#include "src/tool/page/plan_course.h"

#include <stdlib.h>

#include "src/base/result.h"

/* ---- moments ------------------------------------------------------------------------------- */

static int rising(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Leaves one of equal times each. Returns how many are left. */
static uint64_t drop_equal(uint64_t *sorted, uint64_t count)
{
    uint64_t kept = 0;
    for (uint64_t i = 0; i < count; i++)
        if (!kept || sorted[i] != sorted[kept - 1])
            sorted[kept++] = sorted[i];
    return kept;
}

/* The times at which what is in use changes. A plan of no items has the time 0. */
static bool find_times(course *c, const quire_plan_problem *problem)
{
    const uint64_t count = 2 * (uint64_t)problem->item_count;
    c->times = calloc(count + 1, sizeof *c->times);
    if (!c->times)
        return false;
    for (uint32_t i = 0; i < problem->item_count; i++) {
        c->times[2 * (uint64_t)i] = problem->items[i].first_use;
        c->times[2 * (uint64_t)i + 1] = problem->items[i].last_use + 1;
    }
    qsort(c->times, count, sizeof *c->times, rising);
    const uint64_t kept = drop_equal(c->times, count);
    c->last = kept ? kept - 1 : 0;
    return true;
}

/* The moment of a time of an item. */
static uint64_t moment_of(const course *c, uint64_t time)
{
    if (!c->times)
        return time + 1;
    uint64_t low = 0, high = c->last;
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (c->times[middle] < time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- pages --------------------------------------------------------------------------------- */

/* `page_of` has the index of the page of each arena. */
static void add_arenas(course *c, const uint64_t *peaks, uint32_t count, uint32_t *page_of)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!peaks[i])
            continue;
        page_of[i] = (uint32_t)c->page_count;
        course_add_page(c, (course_page){.number = i + 1});
        course_add_change(c, (course_change){.bytes = peaks[i], .page = page_of[i]});
    }
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* An item at the moment of its first use. */
typedef struct beginning {
    uint64_t moment;
    uint32_t item;
} beginning;

static int by_moment(const void *a, const void *b)
{
    const beginning *x = a, *y = b;
    if (x->moment != y->moment)
        return x->moment < y->moment ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static void add_item(course *c, const quire_plan_item *item, quire_plan_place at, uint32_t page)
{
    const uint64_t end = moment_of(c, item->last_use + 1);
    course_add_range(c, (course_range){.begin = moment_of(c, item->first_use),
                                       .end = end > c->last ? COURSE_ALWAYS : end,
                                       .offset = at.offset,
                                       .size = item->size,
                                       .requested = item->size,
                                       .page = page,
                                       .name = course_name(c, item->name ? item->name : "")});
}

/* The ranges of a course are in the order of their beginnings. */
static bool add_items(course *c, const quire_plan_problem *problem, const quire_plan_place *places,
                      const uint32_t *page_of)
{
    beginning *order = calloc((size_t)problem->item_count + 1, sizeof *order);
    if (!order)
        return false;
    for (uint32_t i = 0; i < problem->item_count; i++)
        order[i] = (beginning){moment_of(c, problem->items[i].first_use), i};
    qsort(order, problem->item_count, sizeof *order, by_moment);
    for (uint32_t i = 0; i < problem->item_count && !c->failed; i++) {
        const uint32_t item = order[i].item;
        add_item(c, &problem->items[item], places[item], page_of[places[item].arena - 1]);
    }
    free(order);
    return true;
}

/* Sets the first moment with the most bytes in use. */
static bool find_peak(course *c)
{
    uint64_t *steps = calloc(c->last + 2, sizeof *steps), now = 0, most = 0;
    if (!steps)
        return false;
    for (uint64_t i = 0; i < c->range_count; i++) {
        const course_range *range = &c->ranges[i];
        steps[range->begin] += range->size;
        if (range->end != COURSE_ALWAYS)
            steps[range->end] -= range->size;
    }
    for (uint64_t moment = 0; moment <= c->last; moment++) {
        now += steps[moment];
        if (now > most) {
            most = now;
            c->peak = moment;
        }
    }
    free(steps);
    return true;
}

/* ---- the course ---------------------------------------------------------------------------- */

bool plan_course_make(course *c, const quire_plan_problem *problem, const quire_plan_place *places,
                      const uint64_t *peaks, const quire_trace *trace)
{
    const uint32_t arenas = problem->arena_count ? problem->arena_count : 1;
    quire_trace_info info = {.event_count = 0};
    course_begin(c);
    c->is_plan = true;
    c->trace = trace;
    if (trace)
        qi_ignore(quire_trace_get_info(trace, &info));
    c->last = info.event_count;
    uint32_t *page_of = calloc(arenas, sizeof *page_of);
    bool is_made = page_of && (trace || find_times(c, problem));
    if (is_made) {
        add_arenas(c, peaks, arenas, page_of);
        is_made =
            !c->failed && add_items(c, problem, places, page_of) && !c->failed && find_peak(c);
    }
    free(page_of);
    return is_made;
}
