/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sizes.h - how large a page is to be: what a request needs, what the policy says, what the device
 * and the line of the space allow, and what the backend refused before.
 */
#ifndef QUIRE_SRC_CORE_PAGE_SIZES_H
#define QUIRE_SRC_CORE_PAGE_SIZES_H

#include "src/core/device/policy.h"
#include "src/core/state/memory.h"

/* ---- sizes -------------------------------------------------------------------------------- */

/*
 * These functions compute and change nothing. They require the shard's lock if they take a
 * shard, because they read its space. Invariant: every page size that is requested is a multiple of
 * qi_page_unit, except that of a tied page.
 */

/* Returns the granularity of page sizes: the granule, or the backend's page granularity if
   larger. */
uint64_t qi_page_unit(const quire_memory *memory);

/* Returns the alignment to request for a page: at least a granule, because regions begin at one. */
uint64_t qi_page_alignment(const quire_memory *memory, uint64_t alignment);

/* Whether the heap and the device can have a page of this size at all. */
bool qi_page_can_exist(const quire_memory *memory, uint64_t size);

/*
 * Checks that the heap and the device can have a page of `total` bytes. `size`, the bytes that the
 * page is made for, is for the message. Fails with OUT_OF_DEVICE_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_page_check_total(const quire_memory *memory, uint64_t size,
                                                uint64_t total);

/*
 * Sets *needed to the bytes of a page in which the request certainly fits, for every address of
 * the page. Fails with OUT_OF_DEVICE_MEMORY; *needed is unchanged then.
 */
QUIRE_MUST_USE quire_result qi_page_needed_size(const qi_shard *shard, uint64_t size,
                                                uint64_t alignment, bool dedicated,
                                                uint64_t *needed);

/* Requires the lock of the pages too. Returns the policy's size for the next page, within
   limits. */
uint64_t qi_page_policy_size(const qi_shard *shard);

/*
 * Returns the size to request for `page`, which is made for `size` bytes and needs `needed`. Reads
 * page->policy_size.
 */
uint64_t qi_page_wanted_size(const qi_shard *shard, const qi_page *page, uint64_t size,
                             uint64_t needed);

/* ---- sums for the policy ------------------------------------------------------------------ */

/*
 * The sizes of a memory's shared pages, as the policy needs them for the next page
 * (device/policy.h).
 *
 * Every function requires the lock of the pages. Invariant: shared_bytes of a shard is the sum over
 * its shared pages in the phases MAKING (the bytes requested), LIVE and MOVING; shared_bytes of the
 * pages is the sum over the shards.
 */

/* Reads every page if the policy's growth depends on the largest. For other policies `largest` is
   0, because nothing reads it. */
qi_page_history qi_page_history_of(const qi_shard *shard);

/* The bytes of a page of the shard change from `from` to `to`. 0 means that it does not count. A
   dedicated page never counts. */
void qi_page_history_change(const qi_page *page, uint64_t from, uint64_t to);

/* Whether the sums are those of the pages. */
bool qi_page_history_agrees(const quire_memory *memory);

/* ---- attempts ----------------------------------------------------------------------------- */

/*
 * The sizes that a call requests for one page, or for one growth of an elastic page, and the size
 * that the memory remembers as refused.
 *
 * A call begins with the size that the policy says. While memory is exhausted it requests half of
 * the size, down to what the request needs. It skips sizes that exceed what the accounts
 * (device/budget.h) have left: they cost no call of the backend. A size that the backend refused is
 * remembered (qi_pages.refused), and later calls of the memory begin below it: a full heap costs a
 * call of the backend for each request, and not one for each half.
 *
 * The remembered size is forgotten when bytes of the heap are destroyed by any memory of the
 * device, when a limit of the heap or of the memory is set, and when a page of that size is made.
 * It doubles when a page that began below it is made at the first attempt, so that pages grow again
 * where other processes released memory. The record belongs to the memory, because the refusal of a
 * page for export, say, means nothing for other memories. For the same reason pages that are tied
 * to an object, or made of existing memory, do not change it. Invariant: the record refuses no
 * request: the backend is always asked for the size that the request needs.
 *
 * The lock of the pages protects the record. The functions take it, except qi_page_attempt_size.
 */

/* The attempts of one call. Sizes are those of pages, or of growths. */
typedef struct qi_page_attempt {
    quire_memory *memory;
    uint64_t size;         /* to request next */
    uint64_t needed;       /* the least size; the last one to request */
    bool is_tied;          /* set by the caller: the page is tied to an object */
    bool is_reduced;       /* the first size was reduced by what the memory remembers */
    bool was_refused;      /* the backend refused a size of this call */
    uint64_t releases;     /* of the heap, before the last request: see qi_heap_releases */
    qi_budget_terms terms; /* of the last request */
} qi_page_attempt;

/*
 * Requires the lock of the pages. Returns the size to begin with: `wanted`, at most `max_bytes` (0:
 * no bound) and below the size that is remembered as refused, but at least `needed`. *is_reduced
 * receives whether the remembered size made it less.
 */
uint64_t qi_page_attempt_size(const quire_memory *memory, uint64_t wanted, uint64_t needed,
                              uint64_t max_bytes, bool *is_reduced);

/* Begins the attempts with `size`, which qi_page_attempt_size returned. */
qi_page_attempt qi_page_attempt_begin(quire_memory *memory, uint64_t size, uint64_t needed,
                                      bool is_reduced, qi_page_progress *progress);

/* Called before each request of a->size. */
void qi_page_attempt_start(qi_page_attempt *a);

/*
 * Called with the result of each request of a->size. Returns whether to request again, with the
 * smaller a->size that it sets. Returns false after success, after an error that a smaller size
 * does not change, and after the least size was refused. *progress receives whether the budget of
 * the backend alone refused it.
 */
bool qi_page_attempt_again(qi_page_attempt *a, quire_result result, qi_page_progress *progress);

/* Forgets the remembered size. */
void qi_page_attempt_forget(quire_memory *memory);

#endif
