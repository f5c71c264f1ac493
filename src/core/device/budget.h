/*
 * budget.h - what may be taken, and what is taken: bytes of a heap, bytes of a memory's pages,
 * bytes under a name, pages of a device.
 *
 * Each is an account. Something is taken before it is made and given back after it is gone, by
 * compare-and-exchange against the limit as it is then, so that threads cannot overshoot together;
 * a refusal leaves no trace. A limit that falls below what is taken takes nothing away: nothing
 * more is taken until enough was given back.
 *
 * door.c takes and gives for pages, name.c for allocations with names. No lock guards an account.
 */
#ifndef QUIRE_SRC_CORE_DEVICE_BUDGET_H
#define QUIRE_SRC_CORE_DEVICE_BUDGET_H

#include "quire/device.h"
#include "src/base/atomic.h"

typedef struct qi_account {
    qi_atomic_u64 used;
    qi_atomic_u64 limit; /* the caller's, at any time; 0: none */
} qi_account;

static inline uint64_t qi_account_used(const qi_account *account)
{
    return qi_atomic_load_u64(&account->used);
}

/* The caller's limit, or the largest number. */
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

/* Takes `amount` where no more than `most` is used with it; *used gets what was used before. */
static inline bool qi_account_take(qi_account *account, uint64_t amount, uint64_t most,
                                   uint64_t *used)
{
    *used = qi_atomic_load_u64(&account->used);
    do {
        if (*used > most || amount > most - *used)
            return false;
    } while (!qi_atomic_exchange_if_u64(&account->used, used, *used + amount));
    return true;
}

/*
 * The pages of a heap. A backend tells how much of the heap is in use, quire's pages among it; what
 * is not quire's follows only where it is known which pages it counted. Four sums that only grow
 * bound these: at any moment during a question the backend had
 *     at least  made before it - ended after it,
 *     at most   begun after it - gone before it.
 * While no page comes or goes both are the same number.
 */
typedef struct qi_heap {
    qi_account account;   /* bytes of pages, from before they are made until they are gone */
    qi_atomic_u64 begun;  /* bytes taken for pages, before the backend makes them */
    qi_atomic_u64 made;   /* of these, after the backend made them */
    qi_atomic_u64 ended;  /* of these, before the backend destroys them */
    qi_atomic_u64 gone;   /* of those begun, after they were destroyed or not made at all */
    qi_atomic_u64 others; /* bytes that are not quire's, as the last question showed */
} qi_heap;

/*
 * What one page takes: a page of the device, and its bytes of its memory and of its heap; the
 * growth of a page, or a part that it loses, bytes alone.
 */
typedef struct qi_taking {
    quire_device *device;
    qi_account *memory;
    const char *name; /* the memory's */
    uint32_t heap;
    bool is_part;
    uint64_t bytes;
    uint64_t most; /* what all pages of the heap may take, as the backend said for this one */
} qi_taking;

/*
 * Without a lock: takes `bytes` of them for a page, before it is made. The memory and the pages are
 * looked at first; then the backend is asked for its budget. Fails with OVER_BUDGET, TOO_MANY_PAGES
 * and what the backend answers.
 */
QUIRE_MUST_USE quire_result qi_budget_take(qi_taking *taking, uint64_t bytes);

/* The page is `bytes` larger than it was asked to be: takes these too. Fails with OVER_BUDGET. */
QUIRE_MUST_USE quire_result qi_budget_take_more(qi_taking *taking, uint64_t bytes);

/* The page is made; it is about to be destroyed; it is gone, or was not made. */
void qi_budget_made(const qi_taking *taking);
void qi_budget_ending(const qi_taking *taking);
void qi_budget_give(const qi_taking *taking);

/* Whether less memory might be had where this much was refused. */
static inline bool qi_is_out_of_memory(quire_result result)
{
    return result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY || result == QUIRE_ERROR_OVER_BUDGET;
}

#endif
