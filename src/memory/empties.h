/*
 * empties.h - the pages of a shard without allocations, and how long they are kept.
 *
 * They lie in the order in which they became empty. Dedicated ones are found again by size, from a
 * list for each power of two. What the policy says is applied when a page becomes empty, when one
 * has to be made and by a trim.
 */
#ifndef QUIRE_SRC_MEMORY_EMPTIES_H
#define QUIRE_SRC_MEMORY_EMPTIES_H

#include "src/memory/page.h"

enum { QI_EMPTY_SIZES = 64 };

typedef struct qi_empties {
    qi_page *oldest, *newest;
    uint64_t bytes;
    uint32_t tied; /* of them, tied to an object that is gone: nothing keeps these */
    qi_page *dedicated[QI_EMPTY_SIZES]; /* by the highest bit of their size */
} qi_empties;

/*
 * All with the shard's lock. qi_empties_add and qi_empties_remove, for a page that became empty and
 * one that is used or taken, are in page.h.
 */

/* An empty dedicated page of at least `size` bytes and not much more; NULL: none. */
qi_page *qi_empties_find_dedicated(const qi_shard *shard, uint64_t size);

/* An empty shared page of at least `size` bytes, the lowest of them; NULL: none. */
qi_page *qi_empties_find_shared(const qi_shard *shard, uint64_t size);

/*
 * Take pages out and put them in front of the list, to be destroyed without the lock:
 *  - apply: those that the policy keeps no longer
 *  - give: the oldest, until at most `keep` bytes are left
 * Neither goes below what quire_memory_reserve asked for, tied pages apart.
 */
qi_page *qi_empties_apply(qi_shard *shard, qi_page *leaving);
qi_page *qi_empties_give(qi_shard *shard, uint64_t keep, qi_page *leaving);

/* Without a lock: apply in each shard, what lies in its inbox freed. */
qi_page *qi_empties_apply_all(quire_memory *memory, qi_page *leaving);

#endif
