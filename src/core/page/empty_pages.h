/*
 * empty_pages.h - the pages of a shard without allocations, and how long they are kept.
 *
 * They lie in the order in which they became empty. Dedicated ones are found again by size, from a
 * list for each power of two. What the policy says is applied when a page becomes empty, when one
 * has to be made and by a trim. A call that frees or allocates gives back few at a time, so that
 * none pays for all that have become empty; the next ones go on.
 */
#ifndef QUIRE_SRC_CORE_PAGE_EMPTY_PAGES_H
#define QUIRE_SRC_CORE_PAGE_EMPTY_PAGES_H

#include "src/core/page/page.h"

enum {
    QI_EMPTY_SIZES = 64,
    QI_EMPTY_PAGES_PER_CALL = 32 /* pages, beyond the bytes that the call itself needs */
};

#define QI_EMPTY_PAGES_ALL UINT32_MAX

typedef struct qi_empty_pages {
    qi_page *oldest, *newest;
    uint64_t bytes;
    uint64_t least; /* no page is smaller */
    uint32_t tied;  /* of them, tied to an object that is gone: nothing keeps these */
    qi_page *dedicated[QI_EMPTY_SIZES]; /* by the highest bit of their size */
} qi_empty_pages;

/*
 * All with the shard's lock. qi_empty_pages_add and qi_empty_pages_remove, for a page that became empty and
 * one that is used or taken, are in page.h.
 */

/* An empty dedicated page of at least `size` bytes and not much more; NULL: none. */
qi_page *qi_empty_pages_find_dedicated(const qi_shard *shard, uint64_t size);

/* An empty shared page of at least `size` bytes, the lowest of them; NULL: none. */
qi_page *qi_empty_pages_find_shared(const qi_shard *shard, uint64_t size);

/*
 * Take pages out and put them in front of the list, to be destroyed without the lock:
 *  - apply: those that the policy keeps no longer, at most `most` pages. Where more are left the
 *    shard is behind: its next operation goes on
 *  - give: the oldest, until `needed` bytes are taken and up to `most` pages more, or no page is
 *    left
 * Neither goes below what quire_memory_preallocate asked for, tied pages apart, which all go at once.
 */
qi_page *qi_empty_pages_apply(qi_shard *shard, uint32_t most, qi_page *leaving);
qi_page *qi_empty_pages_take_oldest(qi_shard *shard, uint64_t needed, uint32_t most,
                                    qi_page *leaving);

/* Without a lock: apply in each shard, what lies in its inbox freed. */
qi_page *qi_empty_pages_apply_all(quire_memory *memory, uint32_t most, qi_page *leaving);

#endif
