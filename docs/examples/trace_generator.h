/*
 * What the files of trace_generator share: the events that a model adds, and the constants that
 * both models take from the same sources. An event may be added for any time; the writer sorts.
 */
#ifndef TRACE_GENERATOR_H
#define TRACE_GENERATOR_H

#include <stdint.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Bytes of a number: fp16 or bf16, and fp32. */
#define HALF UINT64_C(2)
#define SINGLE UINT64_C(4)

/* NVIDIA A100 data sheet (80 GB card): 312 TFLOP/s in fp16, of which large matrix products reach
 * some 40 %, and 2,039 GB/s; both for a nanosecond. */
#define FLOPS_A_NS UINT64_C(124800)
#define BYTES_A_NS UINT64_C(2039)

/* cuBLAS manual, CUBLAS_WORKSPACE_CONFIG=:4096:2:16:8: two pieces of 4 MiB and eight of 16 KiB. */
#define CUBLAS_WORKSPACE (UINT64_C(2) * 4096 * 1024 + UINT64_C(8) * 16 * 1024)

/* Adds an allocation and returns its id. The label is a printf format; 39 characters remain. */
__attribute__((format(printf, 4, 5))) uint64_t add_alloc(uint64_t time, unsigned stream,
                                                         uint64_t bytes, const char *label, ...);

void add_free(uint64_t time, unsigned stream, uint64_t id);
void add_use(uint64_t time, unsigned stream, uint64_t id);
void add_frame(uint64_t time);

/* The models; each returns the time at which its trace ends. */
uint64_t model_training(void);
uint64_t model_serving(void);

#endif
