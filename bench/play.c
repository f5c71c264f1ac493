/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * play.c - see play.h.
 */
#include "bench/play.h"

#include <stdlib.h>

#include "bench/ticks.h"

/* A workload without a granule uses units of 256 bytes. */
bool play_begin(play *p, const subject *s, const workload *w, uint64_t arena)
{
    *p = (play){.subject = s, .workload = w, .group = MAX_GROUP};
    subject_arena as = {arena, w->granule ? w->granule : 256, w->slots};
    p->slots = calloc(w->slots, sizeof *p->slots);
    p->state = p->slots ? s->create(s, &as) : NULL;
    if (!p->state)
        free(p->slots);
    return p->state != NULL;
}

void play_end(play *p)
{
    p->subject->destroy(p->state);
    free(p->slots);
}

uint64_t play_live(const play *p)
{
    uint64_t live = 0;
    for (uint32_t i = 0; i < p->workload->slots; i++)
        live += p->slots[i] != 0;
    return live;
}

/* A group ends where the kind of step changes, or after p->group steps. */
static size_t group_end(const play *p, size_t begin, size_t end)
{
    const workload_step *steps = p->workload->steps;
    size_t stop = begin + 1;
    while (stop < end && stop - begin < p->group && !steps[stop].size == !steps[begin].size)
        stop++;
    return stop;
}

/*
 * The function pointer and the state are loaded before the clock starts. Handles go to an array on
 * the stack and into the slots after the clock stops.
 */
static uint64_t allocate_group(play *p, const workload_step *steps, size_t count)
{
    uint64_t handles[MAX_GROUP], offset;
    uint64_t (*allocate)(void *, uint64_t, uint64_t, uint64_t *) = p->subject->allocate;
    void *state = p->state;
    uint64_t since = ticks_now();
    for (size_t i = 0; i < count; i++)
        handles[i] = allocate(state, steps[i].size, steps[i].alignment, &offset);
    uint64_t spent = ticks_spent(since);
    for (size_t i = 0; i < count; i++) {
        p->slots[steps[i].slot] = handles[i];
        p->refused += !handles[i];
    }
    p->allocations += count;
    p->allocate_ticks += spent;
    return spent;
}

/* Handles are read from the slots before the clock starts. */
static uint64_t free_group(play *p, const workload_step *steps, size_t count)
{
    uint64_t handles[MAX_GROUP];
    size_t live = 0; /* slots of failed allocations are skipped */
    for (size_t i = 0; i < count; i++) {
        uint64_t *slot = &p->slots[steps[i].slot];
        handles[live] = *slot;
        live += *slot != 0;
        *slot = 0;
    }
    void (*release)(void *, uint64_t) = p->subject->free;
    void *state = p->state;
    uint64_t since = ticks_now();
    if (p->subject->free_batch)
        p->subject->free_batch(state, handles, live);
    else
        for (size_t i = 0; i < live; i++)
            release(state, handles[i]);
    uint64_t spent = ticks_spent(since);
    p->frees += live;
    p->free_ticks += spent;
    return spent;
}

void play_steps(play *p, size_t begin, size_t end)
{
    p->allocate_ticks = p->free_ticks = p->allocations = p->frees = p->refused = 0;
    while (begin < end) {
        size_t stop = group_end(p, begin, end);
        const workload_step *steps = &p->workload->steps[begin];
        uint64_t spent = steps->size ? allocate_group(p, steps, stop - begin)
                                     : free_group(p, steps, stop - begin);
        if (p->min_ticks && spent < p->min_ticks[begin])
            p->min_ticks[begin] = (uint32_t)spent;
        begin = stop;
    }
}
