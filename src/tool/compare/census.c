/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * census.c - counts what two traces have: sizes, lifetimes, and what lives at their peaks by name.
 *
 * The allocations of both traces are sorted by name, so that those of one name are neighbours.
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"
#include "src/render/owners.h"
#include "src/tool/compare/compare.h"

typedef struct allocation {
    const char *name;
    size_t length;
    uint64_t size;
    int side;
    bool lives; /* at the peak */
} allocation;

/* A range that lives at the event that is read. */
typedef struct live_range {
    uint64_t event, time_ns; /* of its allocation */
    allocation *allocation;
} live_range;

/* ---- one trace ---------------------------------------------------------------------------- */

static size_t class_of(uint64_t size)
{
    size_t class = 0;
    while (class < SIZE_CLASSES - 1 && size > class_limit(class))
        class ++;
    return class;
}

uint64_t class_limit(size_t class)
{
    return class < 64 ? UINT64_C(1) << class : UINT64_MAX;
}

static void count_alloc(census *c, const quire_trace_event *event)
{
    c->bytes = event->size > UINT64_MAX - c->bytes ? UINT64_MAX : c->bytes + event->size;
    c->sizes[class_of(event->size)]++;
}

static void count_free(census *c, const live_range *range, const quire_trace_event *event,
                       uint64_t number)
{
    qi_histogram_add(&c->lifetime_ns, event->time_ns - range->time_ns);
    qi_histogram_add(&c->lifetime_events, number - range->event);
    if (number <= c->info.peak_event)
        range->allocation->lives = false;
}

/* Fills `found` with the allocations of the trace. `ranges` has room for those live at one time. */
static void read_events(const quire_trace *trace, bool first_parts, int side, census *c,
                        live_range *ranges, allocation *found)
{
    quire_trace_event event;
    for (uint64_t i = 0; i < c->info.event_count; i++) {
        qi_ignore(quire_trace_get_event(trace, i, &event));
        if (event.op == QUIRE_TRACE_FREE)
            count_free(c, &ranges[event.range], &event, i);
        if (event.op != QUIRE_TRACE_ALLOC)
            continue;
        count_alloc(c, &event);
        *found = (allocation){
            .name = event.label,
            .length = first_parts ? qi_owners_part(event.label) : strlen(event.label),
            .size = event.size,
            .side = side,
            .lives = i <= c->info.peak_event,
        };
        ranges[event.range] = (live_range){i, event.time_ns, found++};
    }
}

/* Returns false without host memory. */
static bool take_census(const quire_trace *trace, bool first_parts, int side, census *c,
                        allocation *found)
{
    live_range *ranges = calloc(c->info.peak_ranges + 1, sizeof *ranges);
    if (!ranges)
        return false;
    read_events(trace, first_parts, side, c, ranges, found);
    for (uint64_t i = 0; i < c->info.alloc_count; i++)
        c->ranges_at_peak += found[i].lives;
    free(ranges);
    return true;
}

/* ---- names -------------------------------------------------------------------------------- */

static int compare_names(const char *one, size_t length, const char *other, size_t other_length)
{
    int order = memcmp(one, other, length < other_length ? length : other_length);
    return order ? order : (length > other_length) - (length < other_length);
}

static int by_name(const void *one, const void *other)
{
    const allocation *a = one, *b = other;
    return compare_names(a->name, a->length, b->name, b->length);
}

uint64_t peak_difference(const name_row *row)
{
    uint64_t a = row->shares[SIDE_A].peak_bytes, b = row->shares[SIDE_B].peak_bytes;
    return a > b ? a - b : b - a;
}

static int by_difference(const void *one, const void *other)
{
    const name_row *a = one, *b = other;
    uint64_t x = peak_difference(a), y = peak_difference(b);
    return x != y ? (x < y) - (x > y) : compare_names(a->name, a->length, b->name, b->length);
}

static size_t count_names(const allocation *sorted, size_t count)
{
    size_t names = 0;
    for (size_t i = 0; i < count; i++)
        names += !i || by_name(&sorted[i - 1], &sorted[i]);
    return names;
}

static void fill_names(const allocation *sorted, size_t count, name_row *row)
{
    for (size_t i = 0; i < count; i++) {
        const allocation *a = &sorted[i];
        row += i && by_name(a - 1, a);
        name_share *share = &row->shares[a->side];
        row->name = a->name;
        row->length = a->length;
        share->allocations++;
        share->peak_ranges += a->lives;
        share->peak_bytes += a->lives ? a->size : 0;
    }
}

/* Returns false without host memory. */
static bool make_names(allocation *all, size_t count, findings *f)
{
    qsort(all, count, sizeof *all, by_name);
    f->name_count = count_names(all, count);
    f->names = calloc(f->name_count + 1, sizeof *f->names);
    if (!f->names)
        return false;
    fill_names(all, count, f->names);
    qsort(f->names, f->name_count, sizeof *f->names, by_difference);
    return true;
}

/* ---- both traces -------------------------------------------------------------------------- */

bool find_differences(const quire_trace *const traces[SIDE_COUNT], bool first_parts, findings *f)
{
    census *sides = f->sides;
    for (int i = 0; i < SIDE_COUNT; i++)
        qi_ignore(quire_trace_get_info(traces[i], &sides[i].info));
    size_t count = sides[SIDE_A].info.alloc_count + sides[SIDE_B].info.alloc_count;
    allocation *all = calloc(count + 1, sizeof *all), *next = all;
    bool good = all != NULL;
    for (int i = 0; good && i < SIDE_COUNT; i++) {
        good = take_census(traces[i], first_parts, i, &sides[i], next);
        next += sides[i].info.alloc_count;
    }
    good = good && make_names(all, count, f);
    free(all);
    if (!good)
        print_problem("quire: no host memory to compare %zu allocations", count);
    return good;
}

void release_findings(findings *f)
{
    free(f->names);
    f->names = NULL;
}
