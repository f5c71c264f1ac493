/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shard_calls.h - shared by the unit tests of shards: a memory with several shards, and allocations
 * and frees by the members of a crew.
 */
#ifndef QUIRE_TESTS_SUPPORT_SHARD_CALLS_H
#define QUIRE_TESTS_SUPPORT_SHARD_CALLS_H

#include "src/core/state/shard.h"

#include "src/core/state/memory.h"
#include "src/core/deferred/deferred_free.h"
#include "tests/support/crew.h"
#include "tests/support/fixture.h"

enum { PAGE = 65536, MAX_WAITING = 1024 };

typedef struct bench {
    fixture f;
    crew crew;
} bench;

static inline void make(bench *b, const quire_memory_options *options, uint32_t threads)
{
    fixture_make(&b->f, options);
    crew_start(&b->crew, threads);
}

static inline void make_with(bench *b, uint32_t shards, quire_page_policy pages)
{
    make(b, &(quire_memory_options){.shards = shards, .pages = pages}, shards - 1);
}

static inline void end(bench *b)
{
    crew_end(&b->crew);
    fixture_end(&b->f);
}

/* ---- calls by other threads ----------------------------------------------------------------- */

typedef struct request {
    quire_memory *memory;
    quire_allocation_options options;
    quire_allocation allocation;
    quire_result result;
} request;

static inline void do_allocate(void *user)
{
    request *r = user;
    r->result = quire_allocate(r->memory, &r->options, &r->allocation);
}

static inline void do_free(void *user)
{
    request *r = user;
    r->result = quire_free(r->memory, r->allocation);
}

/* As member `by` of the crew; 0 means the test itself. */
static inline request allocate(bench *b, uint32_t by, quire_allocation_options options)
{
    request r = {.memory = b->f.memory, .options = options};
    if (by)
        crew_do(&b->crew, by, do_allocate, &r);
    else
        do_allocate(&r);
    return r;
}

static inline quire_allocation placed(bench *b, uint32_t by, quire_allocation_options options)
{
    request r = allocate(b, by, options);
    CHECK_EQ(r.result, QUIRE_SUCCESS);
    return r.allocation;
}

static inline quire_allocation placed_of(bench *b, uint32_t by, uint64_t size)
{
    return placed(b, by, (quire_allocation_options){.size = size});
}

static inline void free_by(bench *b, uint32_t by, quire_allocation allocation)
{
    request r = {.memory = b->f.memory, .allocation = allocation};
    if (by)
        crew_do(&b->crew, by, do_free, &r);
    else
        do_free(&r);
    CHECK_EQ(r.result, QUIRE_SUCCESS);
}

static inline uint32_t shard_of(const bench *b, quire_allocation allocation)
{
    return qi_shard_of_slot(b->f.memory, qi_handle_slot(allocation.id))->index;
}

static inline uint64_t waiting_in(const bench *b, uint32_t shard)
{
    return b->f.memory->shards[shard]->inbox.word >> 32;
}

/* Frees that the shard has counted: without those in its inbox. */
static inline uint64_t frees_of(const bench *b, uint32_t shard)
{
    const qi_shard *counts = b->f.memory->shards[shard];
    return qi_atomic_load_u64(&counts->allocations) - counts->stats.allocation_count;
}

static inline quire_memory_stats stats_of(bench *b)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(b->f.memory, &stats));
    return stats;
}

#endif
