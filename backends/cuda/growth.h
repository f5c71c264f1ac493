/*
 * growth.h - pages that grow in place: what is known of them beyond qi_cuda_page.
 */
#ifndef QUIRE_BACKENDS_CUDA_GROWTH_H
#define QUIRE_BACKENDS_CUDA_GROWTH_H

#include "backends/cuda/cuda.h"

/*
 * The chunks up to `end` are the page's, `padded` bytes of them, mapped and with access. What hangs
 * behind it belongs to no page any more and waits for the driver to take it back: the next change
 * of the size goes on with it first, or the page's end.
 *
 * `changing` is held across the driver's calls, so that access is not set for a range whose end
 * moves; nobody waits for it but who changes the same page. Of the page `requested`, `padded` and
 * `chunk_count` are written under qi_cuda.mutex, too, for those who only look.
 */
typedef struct qi_cuda_growth {
    pthread_mutex_t changing;
    uint64_t most; /* bytes of addresses */
    qi_cuda_chunk **end;
    uint32_t access_count;
    qi_cu_access_desc access[QUIRE_CUDA_MAX_ACCESSES]; /* what follows gets it, too */
} qi_cuda_growth;

/* UNSUPPORTED: what is asked for cannot grow. The record is the page's from then on. */
QUIRE_MUST_USE quire_result qi_cuda_growth_make(qi_cuda *cuda, const quire_page_request *request,
                                                qi_cuda_page *page);

/* The record alone. Accepts a page that keeps its size. */
void qi_cuda_growth_end(qi_cuda *cuda, qi_cuda_page *page);

/* An entry of the table. */
quire_result qi_cuda_page_resize(void *state, const quire_native_page *page, uint64_t from,
                                 uint64_t to);

/* ---- virtual.c ------------------------------------------------------------------------------ */

/*
 * Maps `size` further bytes behind what is mapped of a page that grows, with its access: `count`
 * chunks from growth->end to *end. After a failure what is there is to be dropped. The record of
 * the page is left to the caller. In the context.
 */
QUIRE_MUST_USE quire_result qi_cuda_virtual_extend(qi_cuda *cuda, const qi_cuda_page *page,
                                                   uint64_t size, qi_cuda_chunk ***end,
                                                   uint32_t *count);

#endif
