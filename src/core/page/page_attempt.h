/*
 * page_attempt.h - the sizes that a call requests for one page, or for one growth of an elastic
 * page, and the size that the memory remembers as refused.
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
#ifndef QUIRE_SRC_CORE_PAGE_PAGE_ATTEMPT_H
#define QUIRE_SRC_CORE_PAGE_PAGE_ATTEMPT_H

#include "src/core/page/page_make.h"

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
 * Requires the lock of the pages. Returns the size to begin with: `wanted`, at most `most` (0: no
 * bound) and below the size that is remembered as refused, but at least `needed`. *is_reduced
 * receives whether the remembered size made it less.
 */
uint64_t qi_page_attempt_size(const quire_memory *memory, uint64_t wanted, uint64_t needed,
                              uint64_t most, bool *is_reduced);

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
