/*
 * cuda_overflow.c - a kernel that writes four bytes into an allocation, or just after it, in a
 * memory that NVTX reports to tools. compute-sanitizer --nvtx=yes must report the second write and
 * not the first. The program links the installed libraries, as any program does.
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

/* Returns NULL on success, otherwise what the driver lacks or which call failed. */
static const char *write_at(void *library, void *context, uint64_t address)
{
    cuda_kernels kernels;
    qi_cu_fn_CtxPushCurrent push;
    qi_cu_fn_CtxSynchronize finish;
    void *found[] = {library ? dlsym(library, "cuCtxPushCurrent_v2") : NULL,
                     library ? dlsym(library, "cuCtxSynchronize") : NULL};
    if (!found[0] || !found[1])
        return CUDA_NO_KERNELS;
    memcpy(&push, &found[0], sizeof push); /* C has no cast for it */
    memcpy(&finish, &found[1], sizeof finish);
    if (push(context))
        return "the context cannot be used";
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
    if (quire_cuda_open(&(quire_cuda_options){.library = library}, &device)) {
        printf("ok 1 - a write %s an allocation # SKIP %s\n1..1\n", where, quire_last_error());
        return 0;
    }
    MUST(quire_cuda_get_info(device, &info));
    MUST(quire_memory_create(device, NULL, &memory));
    MUST(quire_nvtx_watch(memory, NULL, &watch));
    const quire_allocation_options options = {.size = 1000, .alignment = 256};
    MUST(quire_allocate(memory, &options, &first));
    MUST(quire_allocate(memory, &options, &second));
    MUST(quire_cuda_get_range(memory, first, &range));
    const char *reason = write_at(dlopen(library ? library : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL),
                                  info.context, range.address + (behind ? options.size : 0));
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
