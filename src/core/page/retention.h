/*
 * retention.h - decides which empty pages a memory keeps, and takes the others out.
 *
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
#ifndef QUIRE_SRC_CORE_PAGE_RETENTION_H
#define QUIRE_SRC_CORE_PAGE_RETENTION_H

#include "src/core/state/memory.h"

/* Pages per call, beyond the bytes that the call itself needs. */
enum { QI_EMPTY_PAGES_PER_CALL = 32 };

#define QI_EMPTY_PAGES_ALL UINT32_MAX

/* Whether the caller sets no bounds: the default applies, which is one of time. */
static inline bool qi_retention_is_default(const quire_page_policy *policy)
{
    return !policy->retained_empty_bytes && !policy->retention_nanoseconds;
}

/*
 * Requires the shard's lock. Takes the pages that the policy no longer keeps, at most `max`. Where
 * more remain, QI_WORK_EMPTIED stays set and the shard's next operation continues.
 */
qi_page *qi_empty_pages_apply(qi_shard *shard, uint32_t max, qi_page *leaving);

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

/*
 * Requires the shard's lock. Does what other threads left to the shard: drains its inbox, and
 * applies the policy where a page became empty.
 */
qi_page *qi_shard_catch_up(qi_shard *shard, qi_page *leaving);

#endif
