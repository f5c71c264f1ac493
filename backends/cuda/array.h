/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * array.h - images of a CUDA device: linear ones, which are ranges of any page, and CUDA arrays
 * without memory of their own, which are mapped to a part of a tile pool page when their image is
 * bound.
 *
 * Lock: none. The core creates, binds and destroys one object from one thread at a time.
 */
#ifndef QUIRE_BACKENDS_CUDA_ARRAY_H
#define QUIRE_BACKENDS_CUDA_ARRAY_H

#include "backends/cuda/cuda.h"

/* Entries of the backend table, specified in quire/backend.h. */
quire_result qi_cuda_image_requirements(void *state, const quire_image_options *options,
                                        quire_requirements *requirements);
quire_result qi_cuda_object_create(void *state, const quire_object_request *request,
                                   uint64_t *native, quire_requirements *requirements);
quire_result qi_cuda_object_bind(void *state, quire_object object, uint64_t native,
                                 const quire_native_page *page, uint64_t offset);
void qi_cuda_object_destroy(void *state, quire_object object, uint64_t native);

/* Retries the deferred arrays. With `is_last` it releases the records of those that still fail, and
   logs each. In the context. */
void qi_cuda_retry_deferred_arrays(qi_cuda *cuda, bool is_last);

#endif
