/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * share.h - pages that other processes and APIs have too: imported ones, and page-locked memory
 * that can be exported.
 */
#ifndef QUIRE_BACKENDS_CUDA_SHARE_H
#define QUIRE_BACKENDS_CUDA_SHARE_H

#include "backends/cuda/cuda.h"

/* Makes a page of memory created elsewhere. request->description is a quire_cuda_import. In the
   context. */
QUIRE_MUST_USE quire_result qi_cuda_import_page(qi_cuda *cuda, const quire_page_request *request,
                                                qi_cuda_page *page);

/* Creates a memfd for the page, maps it and registers it with the driver. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_shared_create(qi_cuda *cuda, const quire_page_request *request,
                                                  qi_cuda_page *page);

/* Closes the page's descriptor, if it has one. */
void qi_cuda_page_close_descriptor(qi_cuda_page *page);

/* Destroy a page of memory of another API, or close a block of another process. False: the driver
   refused, and the page can be destroyed later. In the context. */
bool qi_cuda_external_destroy(qi_cuda *cuda, qi_cuda_page *page);
bool qi_cuda_ipc_destroy(qi_cuda *cuda, qi_cuda_page *page);

#endif
