/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report_facts.h - what the reports of a memory say, collected before a sink is called: the last
 * refused request, the pages with the largest free ranges and what lies beside these, the bytes by
 * name, and what moving ranges, a compaction or an elastic memory would save.
 *
 * Facts belong to one thread, without a lock. Their size does not depend on the memory, except for
 * the table of names. Each page is a consistent snapshot; statistics, budget and pages are read one
 * after the other and can disagree while other threads allocate.
 */
#ifndef QUIRE_SRC_RENDER_REPORT_FACTS_H
#define QUIRE_SRC_RENDER_REPORT_FACTS_H

#include "src/core/stats/compactable.h"
#include "src/render/owners.h"

enum { QI_REPORT_PAGES = 10, QI_REPORT_NAMES = 20 };

/* The allocation on one side of a free range. */
typedef struct qi_report_side {
    bool is_live; /* otherwise the side is the end of the page, or of what has memory */
    uint64_t offset;
    uint64_t left_padding;
    uint64_t size; /* of its addresses */
    quire_allocation allocation;
    char name[QUIRE_MAX_NAME + 1]; /* "": none */
} qi_report_side;

typedef struct qi_report_page {
    uint32_t number;
    bool dedicated;
    uint64_t size; /* bytes that have memory */
    uint64_t live; /* bytes with memory, with left padding */
    uint64_t free; /* bytes of its free ranges; 0 if it is dedicated */
    /* No other request can use the free bytes of a dedicated page: 0. */
    uint64_t largest_free;
    uint64_t largest_offset;
    qi_report_side before, after; /* of the largest free range, the first of equal ones */
} qi_report_page;

typedef struct qi_report_facts {
    const quire_memory *memory;
    quire_memory_stats stats;
    uint32_t heap;
    bool has_budget; /* see qi_device_describe_heap */
    quire_budget_info budget;
    uint64_t limit;         /* of the memory; 0: none */
    qi_oom_record last_oom; /* number 0: none */
    qi_owners owners;
    uint64_t pages; /* all that were seen */
    qi_report_page listed[QI_REPORT_PAGES];
    uint32_t listed_count;
    /* The largest free range if the live ranges of each page moved together: the free bytes of a
       shared page. `together_page` is the number of that page. */
    uint64_t together;
    uint32_t together_page;
    /* Bytes of all pages; those that are whole free chunks of shared pages, or pages without an
       allocation, and that an elastic memory would return. */
    uint64_t reserved;
    uint64_t unneeded;
    uint64_t chunk;
    bool can_be_elastic; /* pages of this kind */
    bool can_compact;
    qi_compactable compactable;
} qi_report_facts;

/* Collects the facts. Fails with OUT_OF_HOST_MEMORY. The caller calls qi_report_forget in any
   case. */
QUIRE_MUST_USE quire_result qi_report_collect(const quire_memory *memory, qi_report_facts *facts);
void qi_report_forget(qi_report_facts *facts);

#endif
