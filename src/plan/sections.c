/*
 * sections.c - one pass over the begins and ends of items finds their sections; the largest load of
 * a section is the lower bound.
 *
 * Begins and ends are visited in the order of time, ends before begins. A section closes at the
 * first end after a begin: until there items were only added.
 */
#include <stdlib.h>

#include "src/base/result.h"
#include "src/plan/plan.h"

typedef struct event {
    uint64_t time;
    uint32_t item;
    bool is_begin;
} event;

static int by_time(const void *a, const void *b)
{
    const event *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->is_begin != y->is_begin)
        return x->is_begin ? 1 : -1;
    return (x->item > y->item) - (x->item < y->item);
}

static void fill(const qi_plan_item *items, const event *events, uint32_t event_count,
                 qi_plan_sections *s)
{
    uint64_t load = 0;
    bool has_begun = false; /* an item has since the last section closed */
    for (uint32_t i = 0; i < event_count; i++) {
        uint32_t item = events[i].item;
        if (events[i].is_begin) {
            s->begin[item] = s->count;
            load += items[item].size;
            has_begun = true;
            continue;
        }
        if (has_begun)
            s->loads[s->count++] = load;
        has_begun = false;
        s->end[item] = s->count;
        load -= items[item].size;
    }
}

quire_result qi_plan_sections_make(const qi_plan_item *items, uint32_t count, qi_host *host,
                                   qi_plan_sections *sections)
{
    const uint64_t event_count = UINT64_C(2) * count;
    *sections = (qi_plan_sections){.item_count = count};
    if (!count)
        return QUIRE_SUCCESS;
    event *events = qi_host_allocate(host, event_count, sizeof *events);
    sections->begin = qi_host_allocate(host, count, sizeof *sections->begin);
    sections->end = qi_host_allocate(host, count, sizeof *sections->end);
    sections->loads = qi_host_allocate(host, count, sizeof *sections->loads);
    quire_result result = QUIRE_SUCCESS;
    if (events && sections->begin && sections->end && sections->loads) {
        for (uint32_t i = 0; i < count; i++) {
            events[2 * i] = (event){items[i].first, i, true};
            events[2 * i + 1] = (event){items[i].last, i, false};
        }
        qsort(events, event_count, sizeof *events, by_time);
        fill(items, events, (uint32_t)event_count, sections);
    } else {
        qi_plan_sections_release(sections, host);
        result = qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a plan");
    }
    qi_host_release(host, events, event_count, sizeof *events);
    return result;
}

void qi_plan_sections_release(qi_plan_sections *sections, qi_host *host)
{
    uint32_t count = sections->item_count;
    qi_host_release(host, sections->begin, count, sizeof *sections->begin);
    qi_host_release(host, sections->end, count, sizeof *sections->end);
    qi_host_release(host, sections->loads, count, sizeof *sections->loads);
    *sections = (qi_plan_sections){.count = 0};
}

uint64_t qi_plan_lower_bound(const qi_plan_sections *sections)
{
    uint64_t bound = 0;
    for (uint32_t i = 0; i < sections->count; i++)
        bound = sections->loads[i] > bound ? sections->loads[i] : bound;
    return bound;
}
