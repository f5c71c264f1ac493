/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_heaps.h - malloc implementations as subjects: a lower bound of the cost of an allocation.
 *
 * Their task differs: they return memory, store metadata next to it, and have no arena. Sizes are
 * divided by 16 so that the workloads fit into host memory, and the memory is not touched.
 */
#ifndef QUIRE_BENCH_HOST_HEAPS_H
#define QUIRE_BENCH_HOST_HEAPS_H

#include "bench/subject.h"

extern const subject HOST_HEAPS[];
extern const size_t HOST_HEAP_COUNT;

#endif
