/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_overflow.c - a kernel that writes four bytes into an allocation, or just after it, in a
 * memory that NVTX reports to tools. compute-sanitizer --nvtx=yes must report the second write and
 * not the first. It takes heaps of cuMemAlloc alone, and none before a context is current in the
 * thread. The program links the installed libraries, as any program does.
 *
 *     cuda_overflow [--cuda LIBRARY] inside|behind
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_kernel.h"
#include "quire/cuda.h"
#include "quire/nvtx.h"
#include "quire/quire.h"

#define MUST(call)                                                                                 \
    do {                                                                                           \
        if (call) {                                                                                \
            printf("not ok - %s\n# %s\n", #call, quire_last_error());                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Makes the context current. Returns false for a library without the function. */
static bool make_current(void *library, void *context)
{
    qi_cu_fn_CtxPushCurrent push;
    void *found = library ? dlsym(library, "cuCtxPushCurrent_v2") : NULL;
    if (!found)
        return false;
    memcpy(&push, &found, sizeof push); /* C has no cast for it */
    return !push(context);
}

/* Returns NULL on success, otherwise what the driver lacks or which call failed. */
static const char *write_at(void *library, uint64_t address)
{
    cuda_kernels kernels;
    qi_cu_fn_CtxSynchronize finish;
    void *found = dlsym(library, "cuCtxSynchronize");
    if (!found)
        return CUDA_NO_KERNELS;
    memcpy(&finish, &found, sizeof finish);
    const char *reason = cuda_kernels_load(library, &kernels);
    if (reason)
        return reason;
    qi_cu_result code = cuda_kernel_store(&kernels, address, NULL);
    return code || finish() ? "the kernel failed" : NULL;
}

int main(int argc, char **argv)
{
    const char *library = NULL, *where = argc > 1 ? argv[argc - 1] : "";
    bool behind = !strcmp(where, "behind");
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], "--cuda"))
            library = argv[i + 1];
    if (!behind && strcmp(where, "inside")) {
        fprintf(stderr, "usage: cuda_overflow [--cuda LIBRARY] inside|behind\n");
        return 2;
    }
    quire_device *device;
    quire_memory *memory;
    quire_nvtx *watch;
    quire_allocation first, second;
    quire_cuda_range range;
    quire_cuda_info info;
    const quire_cuda_options open = {.library = library,
                                     .settings.kinds = QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_PLAIN)};
    if (quire_cuda_open(&open, &device)) {
        printf("ok 1 - a write %s an allocation # SKIP %s\n1..1\n", where, quire_last_error());
        return 0;
    }
    MUST(quire_cuda_get_info(device, &info));
    void *driver = dlopen(library ? library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *reason = make_current(driver, info.context) ? NULL : CUDA_NO_KERNELS;
    MUST(quire_memory_create(device, NULL, &memory));
    MUST(quire_nvtx_watch(memory, NULL, &watch));
    const quire_allocation_options options = {.size = 1000, .alignment = 256};
    MUST(quire_allocate(memory, &options, &first));
    MUST(quire_allocate(memory, &options, &second));
    MUST(quire_cuda_get_range(memory, first, &range));
    if (!reason)
        reason = write_at(driver, range.address + (behind ? options.size : 0));
    bool has_kernels = !reason || strcmp(reason, CUDA_NO_KERNELS);
    if (reason && has_kernels)
        printf("not ok 1 - a write %s an allocation\n# %s\n1..1\n", where, reason);
    else
        printf("ok 1 - a write %s an allocation%s%s\n1..1\n", where, reason ? " # SKIP " : "",
               reason ? reason : "");
    MUST(quire_free(memory, first));
    MUST(quire_free(memory, second));
    MUST(quire_nvtx_end(&watch));
    MUST(quire_memory_destroy(&memory));
    MUST(quire_device_destroy(&device));
    return reason && has_kernels;
}
