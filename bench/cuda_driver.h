/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_driver.h - the CUDA driver that bench_cuda measures: the device that quire_cuda_open
 * chooses, the driver's functions, and a stream in the device's context. One per process, used by
 * one thread.
 */
#ifndef QUIRE_BENCH_CUDA_DRIVER_H
#define QUIRE_BENCH_CUDA_DRIVER_H

#include <stdbool.h>

#include "backends/cuda/driver.h"
#include "quire/cuda.h"

typedef struct cuda_driver {
    quire_device *device; /* owns the context */
    void *library;
    qi_cuda_functions f;
    quire_cuda_info info;
    qi_cu_stream stream;
    qi_cu_pool pool;  /* the device's default pool, or NULL */
    char name[256];   /* of the device */
    bool is_emulated; /* the fake driver of the tests; its times are meaningless for a GPU */
    char absent[256]; /* why no device is available; empty if one is */
} cuda_driver;

extern cuda_driver the_cuda;

/* Opens the driver and makes its context current. Returns false and sets `absent` on failure. */
bool cuda_driver_open(void);
void cuda_driver_close(void);

/* Waits for the work of the stream. */
qi_cu_result cuda_driver_wait(void);

/* The driver's name of a code, such as CUDA_ERROR_OUT_OF_MEMORY. */
const char *cuda_driver_error(qi_cu_result code);

/* Free device memory in bytes; 0 if the driver reports an error. */
uint64_t cuda_driver_free_bytes(void);

/* Makes the pool keep all freed memory, or none, and releases what it has kept so far. */
qi_cu_result cuda_driver_keep(bool all);

#endif
