/*
 * cuda_bench.h - a quire device on the fake CUDA driver, and steps that may fail on it: what the
 * fault sweeps and the unit tests of the CUDA backend are made of.
 *
 * The backend opens the fake driver's library as it opens the real one; FAKE_CUDA_LIBRARY is where
 * it lies.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_BENCH_H
#define QUIRE_TESTS_SUPPORT_CUDA_BENCH_H

#include "quire/cuda.h"
#include "quire/quire.h"
#include "tests/support/cuda/fake_cuda.h"
#include "tests/support/host_memory.h"

#define CUDA_KIND(name) QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_##name)

typedef struct cuda_bench {
    const fc_control *fc;
    test_memory host_memory;
    quire_device *device;
    quire_result result;             /* of the step that failed; 0: none did */
    quire_cuda_multicast *multicast; /* to be destroyed at the end */
    qi_cu_context context;           /* likewise, after the device; NULL: none */
    int descriptor;                  /* likewise to be closed; -1: none */
    quire_memory *memories[4];
    uint32_t memory_count;
    quire_device *peer; /* likewise, device 1 with a memory; NULL: none */
    quire_memory *peer_memory;
} cuda_bench;

/* The controls of the fake driver, which is loaded when somebody asks first. */
const fc_control *cuda_bench_driver(void);

/* Options of a driver with one device of a model (NULL: "h200") and FC_ flags. */
fc_options cuda_bench_options(const char *model, uint32_t flags);

/* All page kinds that a device of the model has. */
uint32_t cuda_bench_kinds(const fc_model *model);

/* A driver made anew; no device yet. NULL options: one "h200". */
void cuda_bench_begin(cuda_bench *b, const fc_options *options);

/* Opens device 0 on its primary context. Further settings: NULL. False: it failed. */
bool cuda_bench_open(cuda_bench *b, const quire_cuda_settings *settings);

/* Opens device 1, too, with device memory; NULL: it failed. */
quire_memory *cuda_bench_open_peer(cuda_bench *b, const quire_memory_options *options);

/* Makes a context of the caller's, in which cuda_bench_open opens then. */
void cuda_bench_make_context(cuda_bench *b);

/* Makes a memory of a page kind, kept until the end; further options: NULL. NULL: it failed. */
quire_memory *cuda_bench_memory(cuda_bench *b, quire_cuda_page_kind page_kind,
                                const quire_memory_options *options);

/* Ends all there is and checks that the driver and the host memory got everything back. */
void cuda_bench_end(cuda_bench *b);

/* A function of the driver, called past the backend: CUDA_BENCH_CALL(b, CtxCreate, 3020)(...). */
#define CUDA_BENCH_CALL(b, name, version)                                                          \
    ((qi_cu_fn_##name)cuda_bench_find((b)->fc, "cu" #name, version))

typedef void (*cuda_bench_function)(void);
cuda_bench_function cuda_bench_find(const fc_control *fc, const char *name, int version);

/* Remembers a failure; true where the step succeeded. */
bool cuda_bench_step(cuda_bench *b, quire_result result);

/* A step that ends the scenario where it fails. */
#define STEP(b, call)                                                                              \
    do {                                                                                           \
        if (!cuda_bench_step((b), (call)))                                                         \
            return;                                                                                \
    } while (0)

#endif
