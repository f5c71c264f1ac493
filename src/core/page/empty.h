/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * empty.h - the pages without allocations: the list of them, and who decides when one goes.
 *
 * The policy bounds their bytes and their age; a trim, a limit and pressure in another memory of
 * the device take more, and the floor of quire_memory_preallocate keeps some.
 */
#ifndef QUIRE_SRC_CORE_PAGE_EMPTY_H
#define QUIRE_SRC_CORE_PAGE_EMPTY_H

#include "src/core/state/memory.h"

/* ---- the list ----------------------------------------------------------------------------- */

/*
 * The list of a shard is in the order in which the pages became empty. Dedicated pages are also
 * found by size, in one list for each power of two. Every function requires the lock of the page's
 * shard. Invariant: the list has every LIVE page of the shard without allocations, and no other;
 * `bytes` is the sum of their sizes, and no page is smaller than `least`.
 */

/* Adds a page that became empty; removes one that is used again or leaves the shard. */
void qi_empty_pages_add(qi_page *page);
void qi_empty_pages_remove(qi_page *page);

/* Returns an empty dedicated page of at least `size` bytes and at most 8/7 of it, or NULL. */
qi_page *qi_empty_pages_find_dedicated(const qi_shard *shard, uint64_t size);

/* Returns the empty shared page of at least `size` bytes with the lowest number, or NULL. */
qi_page *qi_empty_pages_find_shared(const qi_shard *shard, uint64_t size);

/* ---- which pages stay --------------------------------------------------------------------- */

/*
 * The page policy limits the bytes and the age of empty pages. The policy is applied when a page
 * becomes empty, when a page has to be made, and by a trim. A call that allocates or frees takes at
 * most QI_EMPTY_PAGES_PER_CALL pages, so that no single call pays for all of them; the next calls
 * take the rest.
 *
 * The functions put the pages that they take at the front of the list `leaving` and return the
 * list. The caller gives it to qi_pages_give_back after it has released its locks. The shard's lock
 * protects the list of empty pages. Invariant: no function takes bytes that the floor of
 * quire_memory_preallocate needs, except pages that are tied to a destroyed object: these always
 * leave.
 */

/* Pages per call, beyond the bytes that the call itself needs. */
enum { QI_EMPTY_PAGES_PER_CALL = 32 };

#define QI_EMPTY_PAGES_ALL UINT32_MAX

/* Whether the caller sets no bounds: the default applies, which is one of time. */
static inline bool qi_retention_is_default(const quire_page_policy *policy)
{
    return !policy->retained_empty_bytes && !policy->retention_nanoseconds;
}

/* Requires the shard's lock. The age at which pages, or free chunks, leave by default; `time` is
   that of the memory's clock. Falls after a quiet time. */
uint64_t qi_retention_age(qi_retention *now, uint64_t time);

/* Requires the shard's lock. A page was made: if pages left for their age before, the default keeps
   pages longer. */
void qi_retention_note_made(qi_shard *shard);

/* Requires no lock. Drains the inbox of each shard and applies the policy there. */
qi_page *qi_empty_pages_apply_all(quire_memory *memory, uint32_t max, qi_page *leaving);

/*
 * Requires the shard's lock. Takes the oldest empty pages until it has `needed` bytes, then at most
 * `max` pages more.
 */
qi_page *qi_empty_pages_take_oldest(qi_shard *shard, uint64_t needed, uint32_t max,
                                    qi_page *leaving);

/* Reads the memory's clock, or the system's if the memory has none; nanoseconds. */
uint64_t qi_memory_time(const quire_memory *memory);

/*
 * Requires the shard's lock. Does what other threads left to the shard: drains its inbox, and
 * applies the policy if a page became empty.
 */
qi_page *qi_shard_catch_up(qi_shard *shard, qi_page *leaving);

/* ---- floor, limit and trim ---------------------------------------------------------------- */

/*
 * No function requires a lock. The lock of the pages protects the floor; the limit is an account
 * (device/budget.h).
 */

/*
 * Sets the floor to 0, and gives back empty pages until at most `target` bytes of them are left.
 * Also gives back host memory of slots and spaces. Returns the bytes of pages given back.
 */
uint64_t qi_memory_trim(quire_memory *memory, uint64_t target);

/* Sets the limit of the memory's pages; 0 removes it. Gives back the excess as far as it is
   empty. */
void qi_memory_set_limit(quire_memory *memory, uint64_t bytes);

/*
 * Requires no lock. Gives back empty pages, and free chunks, of the shards until `bytes` are given
 * back; UINT64_MAX: all. Drains the inboxes of these shards. Returns the bytes.
 */
uint64_t qi_pages_give_back_empty(quire_memory *memory, uint64_t bytes, qi_page_events *events);

/* ---- preallocation ------------------------------------------------------------------------ */

/*
 * The lock of the pages protects the floor. Invariant: as long as the floor is not changed,
 * retention keeps at least that many bytes of pages.
 */

/*
 * Requires no lock. Sets the memory's floor to `bytes` and makes pages until it is reached, in all
 * shards in turn. On failure the old floor is restored and all empty pages are given back. Fails as
 * qi_page_make, and with UNSUPPORTED for a memory whose every page is dedicated.
 */
QUIRE_MUST_USE quire_result qi_memory_preallocate(quire_memory *memory, uint64_t bytes);

/* ---- the device's other memories ---------------------------------------------------------- */

/*
 * Requires the shard's lock. Releases and reacquires it. Called after a page of `needed` bytes was
 * refused with `refusal`. Gives back empty pages of other memories, unless a limit of the memory
 * itself is in the way: pages of the same heap, or of any heap if the device has too many pages.
 * What quire_memory_preallocate keeps stays. Calls the hooks of these memories.
 *
 * *turns, 0 at first, counts the calls for one request. The first gives back the needed bytes. The
 * second gives back all, because the backend may not be able to join the bytes of the first. If the
 * device has too many pages, each gives back one. Later ones do nothing. Returns whether anything
 * was given back. The thread's last error stays.
 */
bool qi_pages_take_from_others(qi_shard *shard, quire_result refusal, uint64_t needed,
                               bool dedicated, uint32_t *turns);

#endif
