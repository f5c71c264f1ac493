/*
 * cuda_parts.h - the parts of bench_cuda, which add arrays to its document. The driver is open.
 * What it refuses is told in its row, with its name for the reason.
 */
#ifndef QUIRE_BENCH_CUDA_PARTS_H
#define QUIRE_BENCH_CUDA_PARTS_H

#include "bench/memory.h"

/* Memories on the device as subjects. One thread plays all of them. */
extern const subject CUDA_MEMORIES[];
extern const size_t CUDA_MEMORY_COUNT;

/*
 * cuda_costs.c: what the driver's calls cost by size, up to pages and blocks of `most` bytes, as
 * "chunks" and "blocks" of the document.
 */
void measure_costs(memory_bench *b, uint64_t most);

/* cuda_pairs.c: pairs of free and allocate on all memories in turn, as "pairs" */
void measure_pairs(memory_bench *b);

#endif
