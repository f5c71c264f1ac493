/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
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

/* cuda_runtime.c: the functions of the subject cudaMallocAsync */
const char *runtime_absent(const subject *self);
void *runtime_create(const subject *self, const subject_arena *arena);
void runtime_destroy(void *state);
uint64_t runtime_allocate(void *state, uint64_t size, uint64_t alignment, uint64_t *offset);
void runtime_free(void *state, uint64_t handle);

/*
 * cuda_costs.c: the cost of driver calls by size, up to pages and blocks of `max` bytes, as the
 * arrays "chunks" and "blocks".
 */
void measure_costs(memory_bench *b, uint64_t max);

/* cuda_pages.c: pages and growth through quire by stage, up to `most` bytes, as the arrays "pages"
   and "growth" */
void measure_pages_of_cuda(memory_bench *b, uint64_t most);
void measure_growth(memory_bench *b, uint64_t most);

/* cuda_host.c: host memory by page kind, in pages of up to `most` bytes, as the array "host" */
void measure_host(memory_bench *b, uint64_t most);

/* cuda_calls.c: single calls and reservations of addresses, as the array "calls" */
void measure_calls(memory_bench *b);

/* cuda_peaks.c: bytes reserved at the peak of each trace, as the array "peaks" */
void measure_peaks(memory_bench *b, const patterns *traces);

/* cuda_pairs.c: pairs of free and allocate on all memories in turn, as the array "pairs" */
void measure_pairs(memory_bench *b);

#endif
