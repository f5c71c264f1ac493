/*
 * contiguous.h - the page of a contiguous memory, which grows and shrinks at its end.
 *
 * A contiguous memory has one shared page. The backend reserves addresses when the page is made and
 * maps the part in use. One thread at a time moves the end; the page is `resizing` meanwhile.
 * Other threads that want to move it wait, and the page does not leave the memory. Allocations in
 * the page are made, used and freed as usual during that time.
 */
#ifndef QUIRE_SRC_CORE_PAGE_BACKING_H
#define QUIRE_SRC_CORE_PAGE_BACKING_H

#include "src/core/page/life.h"
#include "src/core/state/memory.h"

/* ---- the end ------------------------------------------------------------------------------ */

/* Requires the shard's lock. Returns the page, or NULL if there is none or it is being made. */
qi_page *qi_contiguous_page(const qi_shard *shard);

/*
 * Returns the bytes of addresses to reserve for a page that is made with `size` bytes; 0 for a page
 * that cannot grow.
 */
uint64_t qi_contiguous_max_size(const qi_shard *shard, uint64_t size, bool dedicated);

/* Requires the locks of the shard and of the pages. Whether a cut end is not yet unmapped. */
bool qi_contiguous_is_shrinking(const qi_shard *shard);

/* Requires no lock. Unmaps the cut end of a page. Returns its bytes. */
uint64_t qi_contiguous_shrink_finish(quire_memory *memory, qi_page *page);

/* ---- growing ------------------------------------------------------------------------------ */

/* What a call that did not fail has done. */
typedef enum qi_contiguous_result {
    QI_CONTIGUOUS_NONE = 0, /* nothing: there is no page, or the request fits already */
    QI_CONTIGUOUS_AWAITED,  /* another thread has moved the end */
    QI_CONTIGUOUS_DONE
} qi_contiguous_result;

/*
 * Requires the shard's lock. Releases and reacquires it. Grows the page by what the policy says, or
 * by as little as the request needs at its end if the backend refuses more. Gives back empty
 * dedicated pages first. The caller searches again afterwards: other threads may have taken the new
 * room. Fails as qi_page_make does, with OUT_OF_DEVICE_MEMORY if the reserved addresses end, and
 * if another thread moves the end and this thread has a page in transit. The caller reports the
 * events.
 */
QUIRE_MUST_USE quire_result qi_contiguous_grow_for(qi_shard *shard, uint64_t size,
                                                   uint64_t alignment,
                                                   qi_contiguous_result *outcome,
                                                   qi_page_progress *progress);

/* Like qi_contiguous_grow_for without a request: grows by what the policy says. */
QUIRE_MUST_USE quire_result qi_contiguous_grow(qi_shard *shard, qi_contiguous_result *outcome,
                                               qi_page_progress *progress);

/* ---- shrinking ---------------------------------------------------------------------------- */

/*
 * The shard's lock protects the cut; the end is unmapped without a lock. Invariant: while cut_from
 * of a page is not 0, the page is `resizing`, so that no other thread moves its end.
 */

/*
 * Requires the shard's lock. Cuts the free end of the contiguous page beyond `keep` bytes, down to
 * the memory's floor. Puts the page in front of the list, which the caller gives without a lock to
 * qi_pages_give_back: that unmaps the end. Changes nothing if another thread moves the end.
 */
qi_page *qi_contiguous_shrink(qi_shard *shard, uint64_t keep, qi_page *leaving);

/*
 * Requires no lock. Gives back empty pages and free ends of the shards until `bytes` are given
 * back; UINT64_MAX: all. Drains the inboxes of these shards. Returns the bytes.
 */
uint64_t qi_pages_give_back_empty(quire_memory *memory, uint64_t bytes, qi_page_events *events);

#endif
