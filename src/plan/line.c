/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * line.c - one pass over the begins and ends of lifetimes finds the sections of a line.
 *
 * Begins and ends are visited in the order of time, begins before ends. A section closes at the
 * first end after a begin: until there ranges were only added.
 */
#include "src/plan/line.h"

#include <stdlib.h>

#include "src/base/bits.h"
#include "src/base/result.h"

typedef struct event {
    uint64_t time;
    uint32_t range;
    bool is_end;
} event;

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->is_end != y->is_end)
        return x->is_end ? 1 : -1;
    return (x->range > y->range) - (x->range < y->range);
}

static void find_sections(qi_plan_line *line, const event *events, uint32_t event_count)
{
    uint64_t load = 0, bytes = 0;
    bool has_begun = false; /* a range has since the last section closed */
    for (uint32_t i = 0; i < event_count; i++) {
        qi_plan_range *range = &line->ranges[events[i].range];
        if (!events[i].is_end) {
            range->begin = line->section_count;
            load += range->room;
            bytes += range->size;
            has_begun = true;
            qi_raise(&line->overlap, bytes);
            continue;
        }
        if (has_begun)
            line->loads[line->section_count++] = load;
        has_begun = false;
        range->end = line->section_count;
        load -= range->room;
        bytes -= range->size;
    }
}

/* The ranges of a section take their rooms, but for the highest one. */
static void find_bound(qi_plan_line *line)
{
    uint64_t most_saved = 0;
    line->bound = line->overlap;
    for (uint32_t i = 0; i < line->count; i++) {
        const qi_plan_range *range = &line->ranges[i];
        qi_raise(&line->bound, qi_plan_lift(line, range, 0) + range->size);
        qi_raise(&most_saved, range->room - range->size);
    }
    for (uint32_t i = 0; i < line->section_count; i++)
        if (line->loads[i] > most_saved)
            qi_raise(&line->bound, line->loads[i] - most_saved);
}

static void find_rooms(qi_plan_line *line)
{
    line->grain = 0;
    for (uint32_t i = 0; i < line->count; i++) {
        line->grain = qi_gcd(line->grain, line->ranges[i].alignment);
        line->grain = qi_gcd(line->grain, line->ranges[i].low);
    }
    for (uint32_t i = 0; i < line->arena_count; i++)
        line->grain = qi_gcd(line->grain, line->bases[i]);
    for (uint32_t i = 0; i < line->count; i++)
        line->ranges[i].room = qi_plan_align(line->ranges[i].size, line->grain);
}

quire_result qi_plan_line_prepare(qi_plan_line *line, qi_host *host)
{
    const uint64_t event_count = UINT64_C(2) * line->count;
    line->section_count = 0;
    line->overlap = line->bound = 0;
    if (!line->count)
        return QUIRE_SUCCESS;
    event *events = qi_host_allocate(host, event_count, sizeof *events);
    line->loads = qi_host_allocate(host, line->count, sizeof *line->loads);
    bool has_memory = events && line->loads;
    if (has_memory) {
        find_rooms(line);
        for (uint32_t i = 0; i < line->count; i++) {
            events[2 * i] = (event){line->ranges[i].first, i, false};
            events[2 * i + 1] = (event){line->ranges[i].last, i, true};
        }
        qsort(events, event_count, sizeof *events, by_time);
        find_sections(line, events, (uint32_t)event_count);
        find_bound(line);
    }
    qi_host_release(host, events, event_count, sizeof *events);
    return has_memory ? QUIRE_SUCCESS
                      : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
}

void qi_plan_line_release(qi_plan_line *line, qi_host *host)
{
    qi_host_release(host, line->loads, line->count, sizeof *line->loads);
    line->loads = NULL;
}

uint64_t qi_plan_lift_slow(const qi_plan_line *line, const qi_plan_range *range, uint64_t at)
{
    for (uint32_t i = 0;; i++) {
        bool is_last = i + 1 == line->arena_count;
        uint64_t base = line->bases[i], end = is_last ? UINT64_MAX : line->bases[i + 1];
        if (at >= end)
            continue;
        uint64_t from = at > base ? at - base : 0;
        uint64_t lifted = base + qi_plan_align(from, range->alignment);
        if (is_last || (lifted <= end && range->size <= end - lifted))
            return lifted;
    }
}
