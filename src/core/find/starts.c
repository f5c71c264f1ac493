/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * starts.c - a hash table with open addressing for each stripe: linear probing, and removal that
 * closes the gap, so that a table which neither grows nor shrinks needs no rebuilding.
 */
#include "src/core/find/starts.h"

enum { FIRST_BITS = 4 };

_Static_assert(sizeof(qi_start_table) == sizeof(qi_start),
               "the head of a table has the size of an entry");

static uint32_t mask_of(const qi_start_table *t)
{
    return (UINT32_C(1) << t->bits) - 1;
}

static qi_start_table *table_of(const qi_stripe *stripe)
{
    return qi_atomic_load_acquire_pointer(&stripe->table);
}

/* Returns a handle without its owner tag. */
static uint64_t hidden(uint64_t id)
{
    return qi_handle(0, qi_handle_generation(id), qi_handle_slot(id));
}

/* The identifier is stored first: a look-up that sees the address sees its identifier. */
static void set(qi_start *place, uint64_t address, uint64_t id)
{
    qi_atomic_store_release_u64(&place->id, id);
    qi_atomic_store_release_u64(&place->address, address);
}

void qi_starts_init(qi_starts *starts)
{
    *starts = (qi_starts){0};
    qi_atomic_init_u32(&starts->is_crowded, 1);
    for (int i = 0; i < QI_STRIPE_COUNT; i++)
        qi_lock_init(&starts->stripes[i].lock, "starts", QI_RANK_STARTS);
}

void qi_starts_finish(qi_starts *starts, qi_host *host)
{
    for (int i = 0; i < QI_STRIPE_COUNT; i++)
        for (qi_start_table *t = table_of(&starts->stripes[i]), *older; t; t = older) {
            older = t->older;
            qi_host_release(host, t, 1 + (UINT64_C(1) << t->bits), sizeof(qi_start));
        }
}

/* ---- changing: every function requires the lock of the stripe ----------------------------- */

/* Called before and after entries move: `changes` is odd in between. */
static void count_change(qi_stripe *stripe)
{
    qi_atomic_store_release_u64(&stripe->changes, qi_atomic_load_u64(&stripe->changes) + 1);
}

/* Returns the place of a slot at an address, or else the empty place where it belongs. */
static uint32_t place_of(const qi_start_table *t, uint64_t address, uint32_t slot)
{
    uint32_t i = qi_start_home(t, address);
    for (;; i = (i + 1) & mask_of(t)) {
        uint64_t found = qi_atomic_load_u64(&t->entries[i].address);
        if (!found ||
            (found == address && qi_handle_slot(qi_atomic_load_u64(&t->entries[i].id)) == slot))
            return i;
    }
}

/* Above five eighths, runs of entries become long. */
static bool is_full(const qi_stripe *stripe, const qi_start_table *t)
{
    return stripe->count >= (UINT64_C(5) << t->bits) / 8;
}

/* Doubles the table. Returns NULL if host memory is exhausted. */
static qi_start_table *grow(qi_stripe *stripe, qi_host *host)
{
    qi_start_table *old = table_of(stripe);
    uint64_t bits = old ? old->bits + 1 : FIRST_BITS;
    qi_start_table *t = qi_host_allocate(host, 1 + (UINT64_C(1) << bits), sizeof(qi_start));
    if (!t)
        return NULL;
    t->older = old;
    t->bits = bits;
    for (uint32_t i = 0; old && i <= mask_of(old); i++) {
        uint64_t address = qi_atomic_load_u64(&old->entries[i].address);
        uint64_t id = qi_atomic_load_u64(&old->entries[i].id);
        if (address)
            set(&t->entries[place_of(t, address, qi_handle_slot(id))], address, id);
    }
    count_change(stripe);
    qi_atomic_store_release_pointer(&stripe->table, t);
    count_change(stripe);
    return t;
}

static bool put(qi_stripe *stripe, qi_host *host, uint64_t address, uint64_t id, bool visible)
{
    uint32_t slot = qi_handle_slot(id);
    qi_start_table *t = table_of(stripe);
    qi_start *place = t ? &t->entries[place_of(t, address, slot)] : NULL;
    bool is_new = !place || !qi_atomic_load_u64(&place->address);
    if (is_new && (!t || is_full(stripe, t))) {
        t = grow(stripe, host);
        if (!t)
            return false;
        place = &t->entries[place_of(t, address, slot)];
    }
    set(place, address, visible ? id : hidden(id));
    stripe->count += is_new;
    return true;
}

/*
 * Empties a place. Entries after it move back, unless that would put them before the place of their
 * hash.
 */
static void close_gap(qi_start_table *t, uint32_t gap)
{
    const uint32_t mask = mask_of(t);
    for (uint32_t i = (gap + 1) & mask;; i = (i + 1) & mask) {
        uint64_t address = qi_atomic_load_u64(&t->entries[i].address);
        if (!address)
            break;
        if (((i - qi_start_home(t, address)) & mask) < ((i - gap) & mask))
            continue;
        set(&t->entries[gap], address, qi_atomic_load_u64(&t->entries[i].id));
        gap = i;
    }
    qi_atomic_store_release_u64(&t->entries[gap].address, 0);
}

/* Returns the entry of a slot at an address, or NULL. */
static qi_start *entry_of(const qi_stripe *stripe, uint64_t address, uint32_t slot)
{
    qi_start_table *t = table_of(stripe);
    qi_start *place = t ? &t->entries[place_of(t, address, slot)] : NULL;
    return place && qi_atomic_load_u64(&place->address) ? place : NULL;
}

/* ---- changing, with the lock taken here --------------------------------------------------- */

static bool has_room(const qi_stripe *stripe)
{
    const qi_start_table *t = table_of(stripe);
    return t && !is_full(stripe, t);
}

bool qi_starts_reserve(qi_starts *starts, qi_host *host)
{
    if (!qi_atomic_load_u32(&starts->is_crowded))
        return true;
    qi_atomic_store_release_u32(&starts->is_crowded, 0); /* before the look: others may set it */
    bool is_reserved = true;
    for (int i = 0; i < QI_STRIPE_COUNT && is_reserved; i++) {
        qi_stripe *stripe = &starts->stripes[i];
        qi_lock_acquire(&stripe->lock);
        is_reserved = has_room(stripe) || grow(stripe, host);
        qi_lock_release(&stripe->lock);
    }
    if (!is_reserved)
        qi_atomic_store_release_u32(&starts->is_crowded, 1);
    return is_reserved;
}

bool qi_starts_put(qi_starts *starts, qi_host *host, uint64_t address, uint64_t id, bool visible)
{
    qi_stripe *stripe = qi_stripe_of(starts, address);
    qi_lock_acquire(&stripe->lock);
    bool is_put = put(stripe, host, address, id, visible);
    if (is_put && !has_room(stripe) && !qi_atomic_load_u32(&starts->is_crowded))
        qi_atomic_store_release_u32(&starts->is_crowded, 1);
    qi_lock_release(&stripe->lock);
    return is_put;
}

void qi_starts_hide(qi_starts *starts, uint64_t address, uint32_t slot)
{
    qi_stripe *stripe = qi_stripe_of(starts, address);
    qi_lock_acquire(&stripe->lock);
    qi_start *entry = entry_of(stripe, address, slot);
    if (entry)
        qi_atomic_store_release_u64(&entry->id, hidden(qi_atomic_load_u64(&entry->id)));
    qi_lock_release(&stripe->lock);
}

void qi_starts_show(qi_starts *starts, uint64_t address, uint64_t id)
{
    qi_stripe *stripe = qi_stripe_of(starts, address);
    qi_lock_acquire(&stripe->lock);
    qi_start *entry = entry_of(stripe, address, qi_handle_slot(id));
    if (entry && qi_atomic_load_u64(&entry->id) == hidden(id))
        qi_atomic_store_release_u64(&entry->id, id);
    qi_lock_release(&stripe->lock);
}

void qi_starts_remove(qi_starts *starts, uint64_t address, uint32_t slot)
{
    qi_stripe *stripe = qi_stripe_of(starts, address);
    qi_lock_acquire(&stripe->lock);
    qi_start *entry = entry_of(stripe, address, slot);
    if (entry) {
        qi_start_table *t = table_of(stripe);
        count_change(stripe);
        close_gap(t, (uint32_t)(entry - t->entries));
        count_change(stripe);
        stripe->count--;
    }
    qi_lock_release(&stripe->lock);
}

bool qi_starts_has(qi_starts *starts, uint64_t address, uint32_t slot)
{
    qi_stripe *stripe = qi_stripe_of(starts, address);
    qi_lock_acquire(&stripe->lock);
    bool has = entry_of(stripe, address, slot) != NULL;
    qi_lock_release(&stripe->lock);
    return has;
}

/* ---- looking up --------------------------------------------------------------------------- */

uint64_t qi_stripe_look_locked(qi_stripe *stripe, uint64_t address)
{
    qi_lock_acquire(&stripe->lock);
    uint64_t id = qi_stripe_look(stripe, address);
    qi_lock_release(&stripe->lock);
    return id;
}
