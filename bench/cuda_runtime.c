/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_runtime.c - cudaMallocAsync of the CUDA runtime as a subject, where its library is
 * installed. Its pool is the device's default pool.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_driver.h"
#include "bench/cuda_parts.h"

typedef struct cuda_runtime {
    int (*malloc_async)(void **pointer, size_t size, qi_cu_stream stream);
    int (*free_async)(void *pointer, qi_cu_stream stream);
} cuda_runtime;

static void *open_runtime(void)
{
    static const char *const names[] = {
        "libcudart.so.13",
        "libcudart.so.12",
        "libcudart.so.11.0",
        "libcudart.so",
        "/usr/local/cuda/lib64/libcudart.so",
    };
    void *library = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

const char *runtime_absent(const subject *self)
{
    static bool is_tried, is_found;
    (void)self;
    if (the_cuda.absent[0])
        return the_cuda.absent;
    if (the_cuda.is_emulated)
        return "the CUDA runtime does not run on the emulated driver";
    if (!the_cuda.pool)
        return "the device has no memory pool";
    if (!is_tried)
        is_found = open_runtime() != NULL; /* stays loaded */
    is_tried = true;
    return is_found ? NULL : "libcudart.so is not found";
}

void *runtime_create(const subject *self, const subject_arena *arena)
{
    cuda_runtime *runtime = calloc(1, sizeof *runtime);
    void *library = open_runtime();
    (void)self;
    (void)arena;
    void *found[] = {library ? dlsym(library, "cudaMallocAsync") : NULL,
                     library ? dlsym(library, "cudaFreeAsync") : NULL};
    if (!runtime || !found[0] || !found[1] || cuda_driver_keep(true)) {
        free(runtime);
        return NULL;
    }
    memcpy(&runtime->malloc_async, &found[0], sizeof found[0]); /* C has no cast for it */
    memcpy(&runtime->free_async, &found[1], sizeof found[1]);
    return runtime;
}

void runtime_destroy(void *state)
{
    free(state);
    (void)cuda_driver_keep(false);
}

uint64_t runtime_allocate(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const cuda_runtime *runtime = state;
    void *pointer = NULL;
    (void)alignment; /* the driver aligns to at least 256 bytes */
    *offset = 0;
    return runtime->malloc_async(&pointer, size, the_cuda.stream) ? 0 : (uintptr_t)pointer;
}

void runtime_free(void *state, uint64_t handle)
{
    const cuda_runtime *runtime = state;
    (void)runtime->free_async((void *)(uintptr_t)handle, the_cuda.stream);
}
