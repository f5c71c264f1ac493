/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/export.h - a memory or a device in the file formats of other programs, whose viewers show
 * it. quire/insight.h writes quire's own JSON, pictures and reports; the tool quire export writes
 * these files for a trace.
 *
 * docs/formats.md says which part of a file shows what. Each page is a consistent snapshot; other
 * threads may change the memory between two pages. quire calls `sink` without holding a lock.
 *
 * Thread-safety: any thread may call any function on a live memory or device.
 */
#ifndef QUIRE_EXPORT_H
#define QUIRE_EXPORT_H

#include "quire/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Writes a snapshot as torch.cuda.memory does, which https://pytorch.org/memory_viz opens: a pickle
 * of protocol 4. A page is a segment at its native address, a range a block with its name as the
 * frame. Pages without a native address get addresses from 2^52 on, which do not overlap. An
 * elastic page is one expandable segment for each stretch that has memory. There are no events:
 * the snapshot's list of them is empty. The memories of a device are pools of device 0, numbered in
 * the order of their creation.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, BAD_FILE (the sink returned false).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_memory_viz(const quire_memory *memory,
                                                                    quire_sink sink, void *user);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_write_memory_viz(const quire_device *device,
                                                                    quire_sink sink, void *user);

/*
 * Writes JSON as vmaBuildStatsString of the Vulkan Memory Allocator 3 with a detailed map, for its
 * program GpuMemDumpVis. A memory is a custom pool, a page a block, a range a suballocation with
 * its left padding; an elastic page is one block for each stretch that has memory. The API is
 * "Vulkan" on every device, usage is 0, and images have the type IMAGE_UNKNOWN. Of a memory: the
 * heaps of its device, and the sums of this memory.
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, BAD_FILE (the sink returned false).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_memory_write_vma(const quire_memory *memory,
                                                             quire_sink sink, void *user);
QUIRE_API QUIRE_MUST_USE quire_result quire_device_write_vma(const quire_device *device,
                                                             quire_sink sink, void *user);

#ifdef __cplusplus
}
#endif

#endif
