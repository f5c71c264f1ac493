/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pool.h - pools of the fake CUDA driver, and memory that comes and goes in the order of a stream.
 *
 * A pool reserves device memory in pieces of the device's granularity. What is freed stays reserved
 * until a stream, event or context is synchronised, and then up to the release threshold. A pool
 * that is destroyed ends with its last allocation.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_POOL_H
#define QUIRE_TESTS_SUPPORT_CUDA_POOL_H

#include "tests/support/cuda/queue.h"
#include "tests/support/cuda/span.h"

typedef struct fc_pool {
    fc_object object;
    int device;
    bool is_default;         /* of its device: cannot be destroyed, is not counted as alive */
    bool is_destroyed;       /* ends with its last allocation; not counted as alive either */
    qi_cu_handle_type types; /* by which it can be shared */
    uint64_t max;            /* bytes; 0: as many as the device has */
    uint64_t used, reserved, used_high, reserved_high, threshold; /* bytes */
    int reuses[3];          /* policies: follow events, take opportunities, add dependencies */
    uint32_t reads, writes; /* bits of the devices with access */
} fc_pool;

/* The default pool of a device. */
fc_pool *fc_pool_default(int device);

/* Finds a live pool by its handle. *result is INVALID_VALUE if there is none; an error in *result
   is kept. */
fc_pool *fc_pool_find(fc_call call, qi_cu_pool handle, qi_cu_result *result);

/* The pool of an allocation. */
fc_pool *fc_pool_of(const fc_span *span);

/* Counts bytes as used. Returns false if they are not available. */
bool fc_pool_take(fc_pool *pool, uint64_t size);

/* The same bytes are no longer used. Ends a destroyed pool without used bytes. */
void fc_pool_give(fc_pool *pool, uint64_t size);

/* Releases what is reserved beyond the used bytes and `keep`. */
void fc_pool_trim(fc_pool *pool, uint64_t keep);

/* Every pool releases what is reserved beyond its threshold: something was synchronised. */
void fc_pools_settle(void);

/* A message if work that starts at this time uses memory of a pool that is not ready yet or that
   the program has freed. */
void fc_pool_check(const fc_work *work, uint64_t start);

#endif
