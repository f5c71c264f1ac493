/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.h - who may access a page: devices, and the host if the page is host memory.
 */
#ifndef QUIRE_BACKENDS_CUDA_ACCESS_H
#define QUIRE_BACKENDS_CUDA_ACCESS_H

#include "backends/cuda/cuda.h"

/* INVALID_ARGUMENT if the location is unknown; or for a list, its length or flags, or if it names a
   location twice. */
QUIRE_MUST_USE quire_result qi_cuda_check_location(const quire_cuda_access *access);
QUIRE_MUST_USE quire_result qi_cuda_check_accesses(const quire_cuda_access *list, uint32_t count);

/* UNSUPPORTED if device `id` cannot access this one. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_check_peer(const qi_cuda *cuda, int id);

/* quire_cuda_set_access for a page, with a valid list. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_page_set_access(qi_cuda *cuda, const qi_cuda_page *page,
                                                    const quire_cuda_access *list, uint32_t count);

#endif
