/*
 * cuda_driver.h - the CUDA driver that bench_cuda measures: the device that quire_cuda_open
 * chooses, its functions, and a stream in its context. There is one in a process, used by one
 * thread.
 */
#ifndef QUIRE_BENCH_CUDA_DRIVER_H
#define QUIRE_BENCH_CUDA_DRIVER_H

#include <stdbool.h>

#include "backends/cuda/functions.h"
#include "quire/cuda.h"

typedef struct cuda_driver {
    quire_device *device; /* keeps the context */
    void *library;
    qi_cuda_functions f;
    quire_cuda_info info;
    qi_cu_stream stream;
    qi_cu_pool pool;  /* the device's own; NULL: it has none */
    char name[256];   /* of the device */
    bool is_emulated; /* the fake driver of the tests, whose times say nothing of a GPU */
    char absent[256]; /* why there is none; empty: there is one */
} cuda_driver;

extern cuda_driver the_cuda;

/* Opens it and makes its context the thread's. False: `absent` says why. */
bool cuda_driver_open(void);
void cuda_driver_close(void);

/* Waits for the work of the stream. */
qi_cu_result cuda_driver_wait(void);

/* A name of the driver's, such as CUDA_ERROR_OUT_OF_MEMORY. */
const char *cuda_driver_error(qi_cu_result code);

/* The device's memory that nobody has, in bytes. */
uint64_t cuda_driver_free_bytes(void);

/* The pool keeps what is freed, all of it or nothing, and gives back what it has kept so far. */
qi_cu_result cuda_driver_keep(bool all);

#endif
