/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic.h - an elastic memory that suits any device, and the bytes that have memory, for
 * elastic.c, lazy.c and sleep.c.
 */
#ifndef QUIRE_TESTS_CONTRACT_ELASTIC_H
#define QUIRE_TESTS_CONTRACT_ELASTIC_H

#include "tests/contract/kit.h"

enum { COUNT = 16, MAX_COUNT = 400 };

typedef struct elastic {
    const contract_world *w;
    uint32_t kind;
    quire_memory *memory;
    uint64_t chunk;
    bool has_bytes; /* quire_write and quire_read are supported */
    uint64_t usage; /* of the heap, without this page */
    quire_allocation made[MAX_COUNT];
    quire_native places[MAX_COUNT];
} elastic;

static inline quire_budget_info elastic_budget(const elastic *e)
{
    quire_budget_info info;
    CHECK_OK(quire_device_get_budget(e->w->device, e->w->info.kinds[e->kind].heap, &info));
    return info;
}

/* `addresses`: bytes, or 0 for COUNT chunks. */
static inline elastic begin_elastic(const contract_world *w, uint32_t kind, uint64_t addresses)
{
    elastic e = {.w = w, .kind = kind, .has_bytes = kit_can_both(w, kind)};
    const uint64_t granularity = w->info.limits.elastic_granularity;
    e.chunk = granularity > 64 * KIB ? granularity : 64 * KIB;
    e.usage = elastic_budget(&e).usage;
    e.memory = kit_memory(
        w, kind,
        &(quire_memory_options){.elastic = true,
                                .pages.page_size = e.chunk,
                                .address_space = addresses ? addresses : COUNT * e.chunk});
    return e;
}

/* The pages begin at multiples of the granule, which chunks require. */
static inline bool is_elastic(const contract_world *w, uint32_t kind)
{
    const uint64_t alignment = w->info.limits.page_alignment;
    quire_memory_info info;
    if (!kit_grows(w, kind))
        return false;
    quire_memory *memory = kit_memory(w, kind, &(quire_memory_options){.elastic = true});
    CHECK_OK(quire_memory_get_info(memory, &info));
    kit_end(&memory);
    return !alignment || alignment % info.granule == 0;
}

/* Bytes with memory of its only page. Backends may keep more. */
static inline uint64_t elastic_size(const elastic *e)
{
    quire_page_info page;
    quire_budget_info budget = elastic_budget(e);
    CHECK_OK(quire_memory_check(e->memory));
    CHECK_OK(quire_page_get_info(e->memory, 0, &page));
    CHECK_EQ(kit_stats(e->memory).reserved_bytes, page.size);
    CHECK_EQ(budget.reserved, page.size);
    CHECK(e->w->subject->is_shared || budget.usage - e->usage >= page.size);
    return page.size;
}

#endif
