/*
 * quire/nvtx.h - suballocations that tools see: pages are told as heaps and allocations as regions
 * through NVIDIA's NVTX, so that `compute-sanitizer --nvtx=yes` finds an access between two
 * allocations of a page, as it would between two of cudaMalloc.
 *
 * A library of its own, libquire_nvtx, built where NVTX's headers are. Without a tool that listens
 * a call costs a test of a pointer in NVTX and a lock of the watch.
 */
#ifndef QUIRE_NVTX_H
#define QUIRE_NVTX_H

#include "quire/insight.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_nvtx quire_nvtx;

/*
 * Tells of all pages and allocations of a memory from now on, those that are there included; a
 * region is as large as was asked for, so that what rounding adds is out of bounds. It takes the
 * memory's hook; `next` (NULL: none; copied) is told of the events that it wants afterwards. Pages
 * without an address are passed over, and a page for whose record there is no host memory.
 * Thread-safety: no other call on the memory may be running. Errors: INVALID_ARGUMENT (a null
 * pointer, unknown events), UNSUPPORTED (a contiguous memory: NVTX knows no heap that grows),
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_nvtx_watch(quire_memory *memory, const quire_hook *next,
                                                       quire_nvtx **watch);

/*
 * Ends a watch, whose heaps are no more, and gives the memory's hook to `next`. It is ended before
 * the memory, whose destruction is BUSY with it; quire_memory_destroy_all ends it, too, and then
 * *watch is not to be used. NULL in *watch is accepted. Thread-safety: as quire_nvtx_watch.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_nvtx_end(quire_nvtx **watch);

#ifdef __cplusplus
}
#endif

#endif
