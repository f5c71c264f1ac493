/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/nvtx.h - shows suballocations to tools: reports pages as heaps and allocations as regions
 * through NVIDIA's NVTX. `compute-sanitizer --nvtx=yes` then finds an access between two
 * allocations of a page, as it does between two allocations of cudaMalloc. It takes only pages of
 * cuMemAlloc (QUIRE_CUDA_PLAIN, or QUIRE_CUDA_PAGES=plain in the environment), and only from
 * threads in which a CUDA context is current, as it is after any call of the CUDA runtime; it warns
 * of all others. Seen with the sanitizer of CUDA 13.0.
 *
 * This is a separate library, libquire_nvtx, which is built if NVTX's headers are installed. If no
 * tool listens, a report costs a test of a pointer in NVTX and one lock of the watch.
 *
 * Thread-safety: no other call on the memory may run during a function of this header.
 */
#ifndef QUIRE_NVTX_H
#define QUIRE_NVTX_H

#include "quire/insight.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_nvtx quire_nvtx;

/*
 * Reports all present and later pages and allocations of a memory. A region has the size that was
 * requested, so that an access to bytes added by rounding is out of bounds. The watch replaces the
 * memory's hook and forwards to `next` (copied; NULL: none) the events that `next` wants. It skips
 * pages without an address, and a page for whose record host memory is exhausted.
 * Errors: INVALID_ARGUMENT (a null pointer, unknown events), UNSUPPORTED (an elastic memory: NVTX
 * has no heap that grows), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_nvtx_watch(quire_memory *memory, const quire_hook *next,
                                                       quire_nvtx **watch);

/*
 * Destroys a watch and its heaps, and sets `next` as the memory's hook. Call it before the memory
 * is destroyed: quire_memory_destroy returns BUSY while the watch exists. quire_memory_destroy_all
 * destroys the watch itself; *watch must not be used after that. A pointer to NULL is accepted.
 * Errors: INVALID_ARGUMENT.
 */
QUIRE_API quire_result quire_nvtx_end(quire_nvtx **watch);

#ifdef __cplusplus
}
#endif

#endif
