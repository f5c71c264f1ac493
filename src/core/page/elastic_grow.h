/*
 * elastic_grow.h - makes the page of a contiguous memory larger.
 *
 * Both functions require the shard's lock. Invariant: the end of the page is moved by one thread at
 * a time (elastic_end.h).
 */
#ifndef QUIRE_SRC_CORE_PAGE_ELASTIC_GROW_H
#define QUIRE_SRC_CORE_PAGE_ELASTIC_GROW_H

#include "src/core/page/page_make.h"

/* What a call that did not fail has done. */
typedef enum qi_elastic_result {
    QI_ELASTIC_NONE = 0, /* nothing: there is no page, or the request fits already */
    QI_ELASTIC_AWAITED,  /* another thread has moved the end */
    QI_ELASTIC_DONE
} qi_elastic_result;

/*
 * Requires the shard's lock. Releases and reacquires it. Grows the page by what the policy says, or
 * by as little as the request needs at its end where the backend refuses more. Gives back empty
 * dedicated pages first. The caller searches again afterwards: other threads may have taken the new
 * room. Fails as qi_page_make does, with OUT_OF_DEVICE_MEMORY where the reserved addresses end, and
 * where another thread moves the end and this thread has a page under way. The caller reports the
 * events.
 */
QUIRE_MUST_USE quire_result qi_elastic_grow_for(qi_shard *shard, uint64_t size, uint64_t alignment,
                                                qi_elastic_result *outcome,
                                                qi_page_progress *progress);

/* Like qi_elastic_grow_for without a request: grows by what the policy says. */
QUIRE_MUST_USE quire_result qi_elastic_grow(qi_shard *shard, qi_elastic_result *outcome,
                                            qi_page_progress *progress);

#endif
