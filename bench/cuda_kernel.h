/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_kernel.h - two kernels of our own, in PTX, which the driver compiles when they are loaded.
 * The emulated driver does the same without the text.
 */
#ifndef QUIRE_BENCH_CUDA_KERNEL_H
#define QUIRE_BENCH_CUDA_KERNEL_H

#include "backends/cuda/driver.h"

typedef qi_cu_result (*cuda_launch)(void *function, unsigned gx, unsigned gy, unsigned gz,
                                    unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                    qi_cu_stream stream, void **parameters, void **extra);

typedef struct cuda_kernels {
    cuda_launch launch;
    void *store, *spin;
} cuda_kernels;

/* What cuda_kernels_load returns for a driver that lacks a function. */
extern const char CUDA_NO_KERNELS[];

/* Loads the kernels into the current context, from the functions of an open library. Returns NULL,
   or why there are none. */
const char *cuda_kernels_load(void *library, cuda_kernels *kernels);

/* Writes 4 bytes at an address. */
qi_cu_result cuda_kernel_store(const cuda_kernels *kernels, uint64_t address, qi_cu_stream stream);

/* Keeps one processor of the device busy. */
qi_cu_result cuda_kernel_spin(const cuda_kernels *kernels, uint64_t nanoseconds,
                              qi_cu_stream stream);

#endif
