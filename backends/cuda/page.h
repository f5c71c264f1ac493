/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.h - pages of a CUDA device: creating them as their memory kind requires, mapping, backing
 * and destroying them.
 */
#ifndef QUIRE_BACKENDS_CUDA_PAGE_H
#define QUIRE_BACKENDS_CUDA_PAGE_H

#include "backends/cuda/cuda.h"

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_cuda_page_create(void *state, const quire_page_request *request,
                                 quire_native_page *page);
void qi_cuda_page_destroy(void *state, const quire_native_page *page);
quire_result qi_cuda_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_cuda_page_unmap(void *state, const quire_native_page *page);
quire_result qi_cuda_page_back(void *state, const quire_native_page *page, const quire_span *spans,
                               uint32_t count);
void qi_cuda_page_unback(void *state, const quire_native_page *page, const quire_span *spans,
                         uint32_t count, bool moves);

/* Destroys a page that page creation could not complete; defers what the driver refuses. In the
   context. */
void qi_cuda_page_discard(qi_cuda *cuda, qi_cuda_page *page);

/* Retries the deferred pages. With `is_last` it releases the records of those that still fail, and
   logs each. In the context. */
void qi_cuda_retry_deferred_pages(qi_cuda *cuda, bool is_last);

#endif
