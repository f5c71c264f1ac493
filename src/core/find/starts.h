/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * starts.h - finds the handle of an allocation by the address of its first byte, in striped hash
 * tables that look-ups read without a lock.
 *
 * The high bits of an address select one of QI_STRIPE_COUNT stripes. Each stripe has a lock and a
 * hash table with open addressing. Shards work in different pages, so that their threads rarely
 * use the same stripe at the same time.
 *
 * A change requires the lock of the stripe; the functions take it. A look-up reads the table
 * without the lock, and then checks that no entry moved meanwhile (`changes`). If one moved, it
 * looks again with the lock. Tables that became too small stay until qi_starts_finish, because a
 * look-up may be reading one; together they are smaller than the table in use.
 *
 * An entry is hidden while its allocation is reserved, waits for a point or is in quarantine. A
 * hidden entry stores the handle without its owner tag. Look-ups skip it, so that they need not
 * read the state word of the slot, which costs a cache miss. Invariants: `count` is the number of
 * entries of the table, and no empty place lies between an entry and the place of its hash.
 */
#ifndef QUIRE_SRC_CORE_FIND_STARTS_H
#define QUIRE_SRC_CORE_FIND_STARTS_H

#include "src/base/handle.h"
#include "src/base/host_memory.h"
#include "src/base/lock.h"

enum { QI_STRIPE_BITS = 5, QI_STRIPE_COUNT = 1 << QI_STRIPE_BITS };

typedef struct qi_start {
    qi_atomic_u64 address; /* 0: the place is empty */
    qi_atomic_u64 id;
} qi_start;

/* Allocated as 1 + 2^bits elements of the size of a qi_start. */
typedef struct qi_start_table {
    struct qi_start_table *older; /* smaller tables, which look-ups may still be reading */
    uint64_t bits;
    qi_start entries[];
} qi_start_table;

typedef struct qi_stripe {
    _Alignas(QI_CACHE_LINE) qi_lock lock;
    qi_atomic_u64 changes; /* odd while a thread moves entries */
    void *_Atomic table;   /* a qi_start_table; NULL before the first entry */
    uint32_t count;
} qi_stripe;

typedef struct qi_starts {
    qi_stripe stripes[QI_STRIPE_COUNT];
    qi_atomic_u32
        is_crowded; /* a stripe has no table, or its table is full: see qi_starts_reserve */
} qi_starts;

void qi_starts_init(qi_starts *starts);
void qi_starts_finish(qi_starts *starts, qi_host *host);

/*
 * Makes room for one more entry in every stripe, so that the next qi_starts_put takes no host
 * memory unless other threads use up the room. Returns false if host memory is exhausted. A caller
 * that changes more than the table calls it before it changes anything.
 */
QUIRE_MUST_USE bool qi_starts_reserve(qi_starts *starts, qi_host *host);

/*
 * Stores the handle of an allocation that starts at an address, visible or hidden, and replaces an
 * older handle of the same slot there. Other slots may have the same address: a program can adopt
 * the same bytes twice. The address is not 0. Returns false if host memory is exhausted; nothing
 * changed then. Replacing a handle cannot fail.
 */
QUIRE_MUST_USE bool qi_starts_put(qi_starts *starts, qi_host *host, uint64_t address, uint64_t id,
                                  bool visible);

/*
 * Hide the entry of a slot, and show it again if it still has the handle. Remove the entry. All do
 * nothing if there is no such entry.
 */
void qi_starts_hide(qi_starts *starts, uint64_t address, uint32_t slot);
void qi_starts_show(qi_starts *starts, uint64_t address, uint64_t id);
void qi_starts_remove(qi_starts *starts, uint64_t address, uint32_t slot);

/* Whether a slot has an entry at an address, visible or hidden. */
bool qi_starts_has(qi_starts *starts, uint64_t address, uint32_t slot);

/* ---- looking up: inline, because a free by address is little else ------------------------- */

/* 2^64 divided by the golden ratio, odd: multiples of a power of two spread over the high bits. */
#define QI_START_MULTIPLIER UINT64_C(0x9e3779b97f4a7c15)

/* Addresses with the same bits above this one are in one stripe: 2 MiB, a large page of systems. */
enum { QI_STRIPE_SHIFT = 21 };

static inline qi_stripe *qi_stripe_of(qi_starts *starts, uint64_t address)
{
    uint64_t hash = (address >> QI_STRIPE_SHIFT) * QI_START_MULTIPLIER;
    return &starts->stripes[hash >> (64 - QI_STRIPE_BITS)];
}

static inline uint32_t qi_start_home(const qi_start_table *table, uint64_t address)
{
    return (uint32_t)(address * QI_START_MULTIPLIER >> (64 - table->bits));
}

/* Whether a stored handle is visible. No owner has the tag 0. */
static inline bool qi_start_is_visible(uint64_t id)
{
    return qi_handle_tag(id) != 0;
}

/*
 * Returns the visible handle at an address, or 0. Without the lock, entries may move during the
 * look-up, which the caller detects: the number of steps is limited in case no empty place is seen.
 */
static inline uint64_t qi_stripe_look(const qi_stripe *stripe, uint64_t address)
{
    const qi_start_table *t = qi_atomic_load_acquire_pointer(&stripe->table);
    if (!t)
        return 0;
    const uint32_t mask = (UINT32_C(1) << t->bits) - 1;
    uint32_t left = mask;
    for (uint32_t i = qi_start_home(t, address); left; i = (i + 1) & mask, left--) {
        uint64_t found = qi_atomic_load_acquire_u64(&t->entries[i].address);
        if (found == address) {
            uint64_t id = qi_atomic_load_acquire_u64(&t->entries[i].id);
            if (qi_start_is_visible(id))
                return id;
        } else if (!found) {
            return 0;
        }
    }
    return 0;
}

/* Does the same with the lock, which it takes. */
uint64_t qi_stripe_look_locked(qi_stripe *stripe, uint64_t address);

/* Returns the visible handle at an address, which is not 0; or 0. */
static inline uint64_t qi_starts_find(qi_starts *starts, uint64_t address)
{
    qi_stripe *stripe = qi_stripe_of(starts, address);
    uint64_t before = qi_atomic_load_acquire_u64(&stripe->changes);
    uint64_t id = qi_stripe_look(stripe, address);
    /* the loads of the look-up acquire, so that this one comes after them */
    if (qi_unlikely(before & 1 || qi_atomic_load_u64(&stripe->changes) != before))
        return qi_stripe_look_locked(stripe, address);
    return id;
}

#endif
