/*
 * host_heaps.h - heaps of host memory as subjects: the floor of what an allocation costs anywhere.
 *
 * Not the same job: they hand out memory, hold their records in front of it and know nothing of an
 * arena. Sizes are divided by 16 so that the workloads fit, and nothing is touched.
 */
#ifndef QUIRE_BENCH_HOST_HEAPS_H
#define QUIRE_BENCH_HOST_HEAPS_H

#include "bench/subject.h"

extern const subject HOST_HEAPS[];
extern const size_t HOST_HEAP_COUNT;

#endif
