/*
 * copy.h - copies and fills of the fake CUDA driver: checked when they are queued, and again when
 * they are done, for what they touch may be gone by then.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_COPY_H
#define QUIRE_TESTS_SUPPORT_CUDA_COPY_H

#include "tests/support/cuda/queue.h"

/* The work reads or writes device memory in the range. */
bool fc_copy_touches(const fc_work *work, uint64_t base, uint64_t size);

/* Queues a copy; `waits`: and waits for it. The context is current. */
qi_cu_result fc_copy(fc_context *context, fc_call call, const qi_cu_memcpy3d *copy, int to_device,
                     int from_device, qi_cu_stream stream, bool waits);

/* One row from device memory, or to it. */
qi_cu_memcpy3d fc_row(qi_cu_memory_type to_type, void *to_host, qi_cu_ptr to,
                      qi_cu_memory_type from_type, const void *from_host, qi_cu_ptr from,
                      size_t size);

#endif
