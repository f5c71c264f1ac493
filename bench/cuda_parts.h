/*
 * cuda_parts.h - the parts of bench_cuda. Each adds arrays to the JSON document; the driver is
 * open. A row whose calls fail states the driver's name of the error.
 */
#ifndef QUIRE_BENCH_CUDA_PARTS_H
#define QUIRE_BENCH_CUDA_PARTS_H

#include "bench/memory.h"

/* Memories on the device as subjects, all used by one thread. */
extern const subject CUDA_MEMORIES[];
extern const size_t CUDA_MEMORY_COUNT;

/*
 * cuda_costs.c: the cost of driver calls by size, up to pages and blocks of `max` bytes, as the
 * arrays "chunks" and "blocks".
 */
void measure_costs(memory_bench *b, uint64_t max);

/* cuda_pairs.c: pairs of free and allocate on all memories in turn, as the array "pairs" */
void measure_pairs(memory_bench *b);

#endif
