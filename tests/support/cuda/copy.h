/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.h - copies and fills of the fake CUDA driver. They are checked when they are queued and
 * again when they run, because their memory may have been freed in between.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_COPY_H
#define QUIRE_TESTS_SUPPORT_CUDA_COPY_H

#include "tests/support/cuda/queue.h"

/* Returns true if the work reads or writes device memory in the range. */
bool fc_copy_touches(const fc_work *work, uint64_t base, uint64_t size);

/* Queues a copy; with `waits` it waits for its end. Requires the current context. */
qi_cu_result fc_copy(fc_context *context, fc_call call, const qi_cu_memcpy3d *copy, int to_device,
                     int from_device, qi_cu_stream stream, bool waits);

/* Describes a copy of one row from or to device memory. */
qi_cu_memcpy3d fc_row(qi_cu_memory_type to_type, void *to_host, qi_cu_ptr to,
                      qi_cu_memory_type from_type, const void *from_host, qi_cu_ptr from,
                      size_t size);

#endif
