/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_bench.h - a quire device on the fake CUDA driver, and steps that may fail on it, for the
 * fault sweeps and the unit tests of the CUDA backend.
 *
 * The backend opens the fake driver's library as it opens the real one; FAKE_CUDA_LIBRARY is its
 * path.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_BENCH_H
#define QUIRE_TESTS_SUPPORT_CUDA_BENCH_H

#include "quire/cuda.h"
#include "tests/support/cuda/fake_cuda.h"
#include "tests/support/driver_bench.h"

#define CUDA_KIND(name) QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_##name)

typedef struct cuda_bench {
    DRIVER_BENCH;
    const fc_control *fc;
    quire_cuda_multicast *multicast; /* destroyed at the end */
    qi_cu_context context;           /* destroyed at the end, after the device; NULL means none */
    quire_device *peer; /* device 1 with a memory, destroyed at the end; NULL means none */
    quire_memory *peer_memory;
} cuda_bench;

#define CUDA_UNIT(suite, name) BENCH_UNIT(cuda_bench, suite, name)
#define CUDA_UNIT_ON(suite, name, begin) BENCH_UNIT_ON(cuda_bench, suite, name, begin)
#define CUDA_UNIT_IN(suite, name, begin) BENCH_UNIT_IN(cuda_bench, suite, name, begin)

#define CUDA_UNIT_EACH(suite, name, number, to) BENCH_UNIT_EACH(cuda_bench, suite, name, number, to)

/* The controls of the fake driver, which is loaded on the first call. */
const fc_control *cuda_bench_driver(void);

/* Options of a driver with one device of a model (NULL: "h200") and FC_ flags. */
fc_options cuda_bench_options(const char *model, uint32_t flags);

/* All page kinds that a device of the model has. */
uint32_t cuda_bench_kinds(const fc_model *model);

/* A new driver without a device. NULL options mean one "h200". */
void cuda_bench_begin(cuda_bench *b, const fc_options *options);

/* Opens device 0 on its primary context. NULL means no further settings. Returns false on failure.
   */
bool cuda_bench_open(cuda_bench *b, const quire_cuda_settings *settings);

/* A new driver with these options, and device 0 on its primary context, which must open. */
void cuda_bench_start(cuda_bench *b, const fc_options *options);

/* Opens device 1 as well, with device memory. Returns NULL on failure. */
quire_memory *cuda_bench_open_peer(cuda_bench *b, const quire_memory_options *options);

/* Creates a context of the caller, in which cuda_bench_open then opens the device. */
void cuda_bench_make_context(cuda_bench *b);

/* Creates a memory of a page kind, kept until the end. NULL means no further options. Returns NULL
   on failure. */
quire_memory *cuda_bench_memory(cuda_bench *b, quire_cuda_page_kind page_kind,
                                const quire_memory_options *options);

/* Allocate from a memory, and describe an allocation. A failure fails the test. */
quire_allocation cuda_bench_allocate(quire_memory *memory, uint64_t size);
quire_cuda_range cuda_bench_range(quire_memory *memory, quire_allocation allocation);

/* Destroys everything and checks that the driver and the host memory have no live objects. */
void cuda_bench_end(cuda_bench *b);

/* Make the context of a device current in this thread, and end that. */
void cuda_bench_enter(const quire_device *device);
void cuda_bench_leave(void);

/* A stream of the caller in the current context, with QI_CU_STREAM_ flags, and its end. */
qi_cu_stream cuda_bench_make_stream(unsigned flags);
void cuda_bench_end_stream(qi_cu_stream stream);

/* A function of the driver, called directly: CUDA_BENCH_CALL(b, CtxCreate, 3020)(...). */
#define CUDA_BENCH_CALL(b, name, version)                                                          \
    ((qi_cu_fn_##name)cuda_bench_find((b)->fc, "cu" #name, version))

typedef void (*cuda_bench_function)(void);
cuda_bench_function cuda_bench_find(const fc_control *fc, const char *name, int version);

#endif
