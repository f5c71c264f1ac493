/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backing.h - elastic pages: addresses of which some chunks have memory.
 */
#ifndef QUIRE_BACKENDS_CUDA_BACKING_H
#define QUIRE_BACKENDS_CUDA_BACKING_H

#include "backends/cuda/cuda.h"

/* Fills in the page: its record, its addresses, and chunks for the first bytes. UNSUPPORTED if the
   request cannot be elastic. On failure the page holds what was created. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_elastic_create(qi_cuda *cuda, const quire_page_request *request,
                                                   qi_cuda_page *page);

/* See page_back of quire/backend.h. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_elastic_back(qi_cuda *cuda, qi_cuda_page *page,
                                                 const quire_span *spans, uint32_t count);

/* See page_unback of quire/backend.h. If work must be awaited and cannot be now, the chunks are
   leftovers. */
void qi_cuda_elastic_unback(qi_cuda *cuda, qi_cuda_page *page, const quire_span *spans,
                            uint32_t count, bool moves);

/* Takes all memory of a page that is destroyed. Returns false if the driver refused some; the rest
   can be retried. Accepts a page that is not elastic. In the context. */
bool qi_cuda_elastic_unback_all(qi_cuda *cuda, qi_cuda_page *page);

/* Releases the records of the page and its chunks, and nothing of the driver's. Accepts a page that
   is not elastic. */
void qi_cuda_elastic_release(qi_cuda *cuda, qi_cuda_page *page);

/* Requires the page's mutex. Sets access of all backed chunks. On failure some may have it. In the
   context. */
qi_cu_result qi_cuda_elastic_access(const qi_cuda *cuda, const qi_cuda_page *page,
                                    const qi_cu_access_desc *list, uint32_t count);

#endif
