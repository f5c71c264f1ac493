/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget.h - accounts with limits: an amount is taken before something is made and given back after
 * it is destroyed. There are accounts for bytes of a heap, bytes of the pages of a memory, bytes
 * under a name, and pages of a device.
 *
 * Taking compares and exchanges against the limit as it is at that time, so that threads cannot
 * exceed it together; a refusal changes nothing. A limit can be lowered below what is used: nothing
 * more can then be taken until enough was given back.
 *
 * Limits of the caller are exact. The budget that a backend reports is advice: a claim respects it
 * unless its terms allow to exceed it.
 *
 * backend.c takes and gives for pages, slot/name_limit.c for allocations with names. Accounts
 * are atomic: no lock guards them. Invariant: `used` of an account is the sum of the claims on it.
 */
#ifndef QUIRE_SRC_CORE_DEVICE_BUDGET_H
#define QUIRE_SRC_CORE_DEVICE_BUDGET_H

#include "quire/device.h"
#include "src/base/atomic.h"

typedef struct qi_account {
    qi_atomic_u64 used;
    qi_atomic_u64 limit; /* set by the caller at any time; 0 means none */
} qi_account;

static inline uint64_t qi_account_used(const qi_account *account)
{
    return qi_atomic_load_u64(&account->used);
}

/* The caller's limit; UINT64_MAX if there is none. */
static inline uint64_t qi_account_max(const qi_account *account)
{
    uint64_t limit = qi_atomic_load_u64(&account->limit);
    return limit ? limit : UINT64_MAX;
}

static inline void qi_account_set_limit(qi_account *account, uint64_t limit)
{
    qi_atomic_store_release_u64(&account->limit, limit);
}

static inline void qi_account_give(qi_account *account, uint64_t amount)
{
    qi_atomic_sub_release_u64(&account->used, amount);
}

/*
 * Takes `amount` if at most `max` is used afterwards, and returns false if not. *used receives what
 * was used before.
 */
static inline bool qi_account_take(qi_account *account, uint64_t amount, uint64_t max,
                                   uint64_t *used)
{
    *used = qi_atomic_load_u64(&account->used);
    do {
        if (*used > max || amount > max - *used)
            return false;
    } while (!qi_atomic_exchange_if_u64(&account->used, used, *used + amount));
    return true;
}

/*
 * The pages of a heap. A backend reports how many bytes of the heap are in use, and quire's own
 * pages are part of that number. To subtract them one has to know which of them the backend had
 * counted. Four sums that only grow bound this: at any moment during the query the backend had
 *     at least  made (read before the query) - ended (read after it) bytes of quire's pages,
 *     at most   begun (read after it) - gone (read before it).
 * While no page is created or destroyed both bounds are the same number.
 */
typedef struct qi_heap {
    qi_account account;   /* bytes of pages, from before they are made until they are destroyed */
    qi_atomic_u64 begun;  /* bytes taken for pages, before the backend makes them */
    qi_atomic_u64 made;   /* of these, counted after the backend made them */
    qi_atomic_u64 ended;  /* of these, counted before the backend destroys them */
    qi_atomic_u64 gone;   /* of begun, counted after they were destroyed or could not be made */
    qi_atomic_u64 others; /* bytes that are not quire's, as the last query showed */
    qi_atomic_u64 budget; /* that the last query reported */
    /* The last answer serves further claims until the clock is `expires` (0: none), and while
       `begun` is at most `serves`. */
    qi_atomic_u64 expires, serves;
    /* how often bytes of pages were destroyed or the limit was set: a page size that was refused
       before may be available after */
    qi_atomic_u64 releases;
} qi_heap;

/* The size of a heap that may grow: the described one, or the last budget if that is larger. */
static inline uint64_t qi_heap_size(const qi_heap *heap, uint64_t described)
{
    uint64_t budget = qi_atomic_load_u64(&heap->budget);
    return budget > described ? budget : described;
}

/*
 * How a claim treats the backend's budget, and what the claim found. The caller sets the first two
 * fields, a claim all the others, also if it fails.
 */
typedef struct qi_budget_terms {
    bool is_strict;    /* nothing exceeds the budget, not even a page that turns out larger */
    bool may_exceed;   /* the requested bytes may exceed the budget; never set with is_strict */
    bool has_exceeded; /* the claim succeeded, and the pages of the heap exceed the budget now */
    bool is_refused;   /* the claim was refused; false if it succeeded and the backend failed */
    /* Of a claim that was refused: the bytes that one of the accounts has left, by limit and
       budget, and by its limit alone. A smaller claim may still fail at the next account. */
    uint64_t room, room_by_limit;
    uint64_t excess; /* bytes of the heap's pages above the budget before the claim */
} qi_budget_terms;

/*
 * What one page takes: one page of the device, and its bytes of the account of its memory and of
 * its heap. If an elastic page gets or loses memory the claim is the difference, in bytes alone.
 */
typedef struct qi_budget_claim {
    quire_device *device;
    qi_account *memory;
    const char *name; /* the memory's, for messages */
    uint32_t heap;
    bool is_part; /* a difference in size: no page is counted */
    uint64_t bytes;
    uint64_t granted;       /* bytes that all pages of the heap may take by the backend's budget */
    qi_budget_terms *terms; /* of a claim to make; NULL in one to return */
} qi_budget_claim;

/*
 * Claims `bytes` before a page is made. Requires that no lock is held. Checks the memory and the
 * count of pages first and then queries the backend's budget, unless an earlier answer serves.
 * Fails with OVER_BUDGET, TOO_MANY_PAGES and what the backend answers; then nothing is claimed.
 */
QUIRE_MUST_USE quire_result qi_budget_claim_page(qi_budget_claim *claim, uint64_t bytes);

/* Claims more bytes: the backend made a page larger than requested. The limits hold, the budget
   if the terms are strict. Fails with OVER_BUDGET. */
QUIRE_MUST_USE quire_result qi_budget_claim_more(qi_budget_claim *claim, uint64_t bytes);

/* Records that the backend made the bytes. */
void qi_budget_page_made(const qi_budget_claim *claim);

/* Records that the backend is about to destroy the bytes. */
void qi_budget_begin_return(const qi_budget_claim *claim);

/* Returns the claim: the bytes are destroyed, or could not be made. */
void qi_budget_return(const qi_budget_claim *claim);

/* Returns the claim of a page that could not be made. The next claim queries the backend. */
void qi_budget_page_failed(const qi_budget_claim *claim);

/* Returns the claim of bytes that existed and are destroyed: the heap has room again. */
void qi_budget_end_return(const qi_budget_claim *claim);

/* Returns a count that grows when a page size refused before may be available again. */
static inline uint64_t qi_heap_releases(const qi_heap *heap)
{
    return qi_atomic_load_acquire_u64(&heap->releases);
}

/*
 * Whether at least three quarters of the pages that the device may have exist. The others are left
 * to objects that require a page of their own, and to shared pages: see quire_requirements.
 */
bool qi_budget_is_short_of_pages(const quire_device *device);

/* Whether a smaller request might succeed after this result was returned. */
static inline bool qi_is_out_of_memory(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET;
}

/* Whether no page is available, so that only existing ranges or other memories can help. */
static inline bool qi_is_out_of_pages(quire_result result)
{
    return qi_is_out_of_memory(result) || result == QUIRE_ERROR_TOO_MANY_PAGES ||
           result == QUIRE_ERROR_OUT_OF_RANGE;
}

#endif
