/*
 * mock_driver.h - a driver without a device, the same under every memory that is measured: making
 * and giving back memory is counting, so that what is left to be timed is the memory itself.
 *
 * There is one in a process; each measurement runs in a process of its own. Any thread may call it.
 * Where the driver is a real one, what it makes and takes back is counted here.
 */
#ifndef QUIRE_BENCH_MOCK_DRIVER_H
#define QUIRE_BENCH_MOCK_DRIVER_H

#include <stdbool.h>

#include "src/base/atomic.h"

#define MOCK_HEAP_SIZE (UINT64_C(1) << 40)
enum { MOCK_MOST_PIECES = 1 << 20 }; /* that a peer is told it may have at a time */

typedef struct mock_driver {
    uint64_t latency_ns;       /* to make a piece takes so long; changed while nobody makes one */
    qi_atomic_u64 made, given; /* pieces, ever */
    qi_atomic_u64 bytes, peak; /* in pieces: now, and the most there ever were */
    qi_atomic_u64 inside;      /* threads that are making a piece */
} mock_driver;

extern mock_driver the_driver;

/* A piece of device memory: a handle that is not 0 and tells its size. */
uint64_t mock_make(uint64_t size);
void mock_give(uint64_t handle);

/* Calls so far, both kinds. */
uint64_t mock_calls(void);

/* Pieces there are now. */
uint64_t mock_pieces(void);

#endif
