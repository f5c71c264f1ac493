/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.h - copies and fills: between the host and pages, between pages, and on streams.
 */
#ifndef QUIRE_BACKENDS_CUDA_COPY_H
#define QUIRE_BACKENDS_CUDA_COPY_H

#include "backends/cuda/cuda.h"

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_cuda_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                  const void *data, uint64_t size);
quire_result qi_cuda_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                    void *data, uint64_t size);
quire_result qi_cuda_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                               uint64_t size, uint8_t value);
quire_result qi_cuda_copy_pages(void *state, const quire_copy_job *job);
quire_result qi_cuda_copy_peer(void *state, const quire_copy_job *job);
quire_result qi_cuda_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);
quire_result qi_cuda_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                 uint64_t offset, uint64_t size, uint8_t value);

#endif
