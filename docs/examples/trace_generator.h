/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * Shared by the files of trace_generator: the events that a model adds, and the constants of both
 * models. A model may add events in any order of time; the writer sorts them.
 */
#ifndef TRACE_GENERATOR_H
#define TRACE_GENERATOR_H

#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes per number: fp16 or bf16, and fp32. */
#define HALF UINT64_C(2)
#define SINGLE UINT64_C(4)

/* NVIDIA A100 data sheet (80 GB card): 312 TFLOP/s in fp16, of which large matrix products reach
 * about 40 %, and 2,039 GB/s; both per nanosecond. */
#define FLOPS_A_NS UINT64_C(124800)
#define BYTES_A_NS UINT64_C(2039)

/* cuBLAS manual, CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8: two blocks of 4 MiB and eight of 16 KiB. */
#define CUBLAS_WORKSPACE (UINT64_C(2) * 4096 * 1024 + UINT64_C(8) * 16 * 1024)

/* Adds an allocation and returns its id. The label is a printf format, cut to 39 characters. */
__attribute__((format(printf, 4, 5))) uint64_t add_alloc(uint64_t time, unsigned stream,
                                                         uint64_t bytes, const char *label, ...);

void add_free(uint64_t time, unsigned stream, uint64_t id);
void add_use(uint64_t time, unsigned stream, uint64_t id);
void add_frame(uint64_t time);

/* Each model returns the end time of its trace. */
uint64_t model_training(void);
uint64_t model_serving(void);

#endif
