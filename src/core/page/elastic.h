/*
 * growth.h - the shared page of a contiguous memory: the only one, which grows and shrinks at its
 * end. The backend reserves addresses when the page is made and maps what is used of them.
 *
 * While its end moves the page is `resizing`: who else wants to move it waits, and the page does
 * not leave. What lies in it is used, placed and freed meanwhile as ever.
 */
#ifndef QUIRE_SRC_CORE_PAGE_ELASTIC_H
#define QUIRE_SRC_CORE_PAGE_ELASTIC_H

#include "src/core/state/memory.h"

/* Bytes of addresses to reserve for a page that is made with `size` bytes; 0: it does not grow. */
uint64_t qi_elastic_max_size(const qi_shard *shard, uint64_t size, bool dedicated);

/* With the shard's lock: the page, or NULL where there is none yet or it is being made. */
qi_page *qi_elastic_page(const qi_shard *shard);

/* What came of an attempt to make it larger that did not fail. */
typedef enum qi_elastic_result {
    QI_ELASTIC_NONE = 0, /* there is no page, or room for the request without it */
    QI_ELASTIC_AWAITED,  /* another thread has moved the end */
    QI_ELASTIC_DONE
} qi_elastic_result;

/*
 * With the shard's lock, given up meanwhile: makes the page larger by what the policy says, or as
 * little as the request needs at its end where that cannot be had. Empty dedicated pages are given
 * back first. The caller looks again for room: others may have taken what came. Fails as making a
 * page does, and with OUT_OF_DEVICE_MEMORY where the addresses end, or where another call moves the
 * end and this thread has a page under way. The caller tells the news.
 */
QUIRE_MUST_USE quire_result qi_elastic_grow_for(qi_shard *shard, uint64_t size, uint64_t alignment,
                                                qi_elastic_result *growth,
                                                qi_page_progress *progress);

/* The same without a request: so much more as the policy says. */
QUIRE_MUST_USE quire_result qi_elastic_grow(qi_shard *shard, qi_elastic_result *growth,
                                            qi_page_progress *progress);

/*
 * With the shard's lock: takes from the end of the page what is free there beyond `keep` bytes, and
 * puts the page in front of the list, to be given to qi_pages_give_back without the lock.
 */
qi_page *qi_elastic_shrink(qi_shard *shard, uint64_t keep, qi_page *leaving);

/* With the shard's lock and that of the pages: a cut end is on its way back to the backend. */
bool qi_elastic_is_shrinking(const qi_shard *shard);

/* Without a lock: gives to the backend what was cut. Returns the bytes. */
uint64_t qi_elastic_shrink_finish(quire_memory *memory, qi_page *page);

#endif
