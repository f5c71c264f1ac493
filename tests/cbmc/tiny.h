/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tiny.h - a space of a few granules on which harnesses run the operations of a fit, and the checks
 * after each operation. A bit per granule records which granules are taken. The granule is 1.
 */
#ifndef QUIRE_TESTS_CBMC_TINY_H
#define QUIRE_TESTS_CBMC_TINY_H

#include "src/base/handle.h"
#include "src/space/space.h"
#include "tests/cbmc/proof.h"

#ifndef TINY_REGIONS
#define TINY_REGIONS 1
#endif

enum { TINY_LIVE = 4, TINY_STRIDE = 1024 }; /* granules of the line from region to region */

#ifdef __CPROVER__
extern bool tiny_is_complete; /* stubs.c: from here on no records are added */
#else
static bool tiny_is_complete;
#endif

typedef struct tiny {
    quire_space *space;
    qi_region regions[TINY_REGIONS];
    qi_stretch stretches[TINY_REGIONS];
    uint64_t taken; /* bit per granule of region 0, the only region during allocations */
    quire_placement live[TINY_LIVE];
    uint32_t count;
} tiny;

/* The work of quire_space_create in few words. */
static inline void tiny_begin(tiny *t, const qi_fit *fit, uint64_t max_alignment)
{
    qi_host host;
    tiny_is_complete = false;
    PROVE(!qi_host_init(&host, NULL));
    *t = (tiny){.space = qi_host_allocate(&host, 1, fit->state_size)};
    PROVE(t->space != NULL);
    t->space->host = host;
    t->space->fit = fit;
    t->space->granule = 1;
    t->space->max_alignment = max_alignment;
    t->space->tag = 1;
    t->space->regions = t->regions;
    t->space->region_capacity = TINY_REGIONS;
    t->space->line = (qi_line){.stretches = t->stretches, .limit = fit->max_granules};
    PROVE(!fit->init(t->space, &(quire_space_options){0}));
}

/* The stretch of the line has the same length in all runs, so that what depends on it is no choice.
   */
static inline void tiny_add_region(tiny *t, uint32_t number, uint64_t granules)
{
    uint64_t start = (uint64_t)number * TINY_STRIDE;
    t->regions[number] = (qi_region){.start = start, .size = granules, .used = true};
    t->stretches[number] = (qi_stretch){.start = start, .end = start + TINY_STRIDE};
    t->space->line.count = number + 1;
    PROVE(!t->space->fit->add_region(t->space, number));
    t->space->region_count++;
    t->space->region_bytes += granules;
}

static inline void tiny_end(tiny *t)
{
    qi_host host = t->space->host;
    size_t size = t->space->fit->state_size;
    t->space->fit->finish(t->space);
    qi_host_release(&host, t->space, 1, size);
}

static inline uint64_t tiny_bits(const quire_placement *at)
{
    uint64_t first = at->offset - at->left_padding, end = at->offset + at->size;
    return ((UINT64_C(1) << end) - 1) & ~((UINT64_C(1) << first) - 1);
}

/* Any request of up to `max` granules. */
static inline void tiny_allocate(tiny *t, uint64_t max, uint32_t alignments)
{
    uint64_t size = 1 + any_below(max), alignment = any_power_of_two(alignments);
    quire_placement at = {0};
    if (t->space->fit->allocate(t->space, size, alignment, ~size, 0, &at))
        return;
    PROVE(at.size == size && at.user == ~size && at.region == 0);
    PROVE((at.offset & (alignment - 1)) == 0 && at.left_padding <= at.offset);
    PROVE(at.offset + at.size <= t->regions[0].size);
    PROVE(!(t->taken & tiny_bits(&at)));
    t->taken |= tiny_bits(&at);
    t->live[t->count++] = at;
}

/* Frees any of the live ranges, after which its handle is stale. */
static inline void tiny_free(tiny *t)
{
    if (!t->count)
        return;
    const qi_fit *fit = t->space->fit;
    uint32_t i = (uint32_t)any_below(t->count);
    quire_placement at = t->live[i], gone;
    uint32_t slot = qi_handle_slot(at.range.id), generation = qi_handle_generation(at.range.id);
    PROVE(fit->release(t->space, slot, generation));
    PROVE(!fit->get(t->space, slot, generation, &gone));
    t->taken &= ~tiny_bits(&at);
    t->live[i] = t->live[--t->count];
}

#endif
