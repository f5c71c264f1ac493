/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool.h - the memory pool of a CUDA device, and pages of it.
 */
#ifndef QUIRE_BACKENDS_CUDA_POOL_H
#define QUIRE_BACKENDS_CUDA_POOL_H

#include "backends/cuda/cuda.h"

QUIRE_MUST_USE quire_result qi_cuda_check_pool_options(const quire_cuda_settings *settings);

/* Creates or finds the pool if the device has pool pages. In the context. On failure
   qi_cuda_pool_close removes what was created. */
QUIRE_MUST_USE quire_result qi_cuda_pool_open(qi_cuda *cuda);

/* Destroys the stream, and the pool if it is quire's. Accepts a state without a pool. */
void qi_cuda_pool_close(qi_cuda *cuda);

/* ---- pages -------------------------------------------------------------------------------- */

/* In the context. */

/* On failure the page holds what was created. */
QUIRE_MUST_USE quire_result qi_cuda_pool_page_create(qi_cuda *cuda,
                                                     const quire_page_request *request,
                                                     qi_cuda_page *page);

/* False: the driver refused, and the page can be destroyed later. */
bool qi_cuda_pool_page_destroy(qi_cuda *cuda, qi_cuda_page *page);

#endif
