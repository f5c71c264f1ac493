/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mock_driver.h - a driver without a device, used by every measured memory. It only counts
 * allocations and frees of blocks, so that the measured time is that of the memory itself.
 *
 * One per process; each measurement runs in its own process. Thread-safe. Measurements on a real
 * driver count its blocks here as well.
 */
#ifndef QUIRE_BENCH_MOCK_DRIVER_H
#define QUIRE_BENCH_MOCK_DRIVER_H

#include <stdbool.h>

#include "src/base/atomic.h"

#define MOCK_HEAP_SIZE (UINT64_C(1) << 40)
enum { MOCK_MAX_PIECES = 1 << 20 }; /* the limit of live blocks that the driver reports */

typedef struct mock_driver {
    uint64_t latency_ns;       /* time to allocate a block; set it only while no call is running */
    uint64_t granularity;      /* bufferImageGranularity; 0: 1 */
    qi_atomic_u64 made, given; /* blocks allocated and freed since the start */
    qi_atomic_u64 bytes, peak; /* bytes of live blocks, and their maximum */
    qi_atomic_u64 inside;      /* threads that are allocating a block */
} mock_driver;

extern mock_driver the_driver;

/* Allocates a block of device memory. The handle is not 0 and contains the size. */
uint64_t mock_make(uint64_t size);

/* Frees a block. */
void mock_give(uint64_t handle);

/* The number of allocations and frees so far. */
uint64_t mock_calls(void);

/* The number of live blocks. */
uint64_t mock_pieces(void);

#endif
