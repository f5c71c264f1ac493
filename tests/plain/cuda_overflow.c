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

#include "backends/cuda/abi.h"
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

static const char KERNEL[] = ".version 6.3\n"
                             ".target sm_75\n"
                             ".address_size 64\n"
                             ".visible .entry store(.param .u64 where)\n"
                             "{\n"
                             "  .reg .b64 %a<3>;\n"
                             "  .reg .b32 %v;\n"
                             "  ld.param.u64 %a1, [where];\n"
                             "  cvta.to.global.u64 %a2, %a1;\n"
                             "  mov.u32 %v, 42;\n"
                             "  st.global.u32 [%a2], %v;\n"
                             "  ret;\n"
                             "}\n";

/* The functions that only this program calls. */
typedef qi_cu_result (*load_module)(void **module, const void *text);
typedef qi_cu_result (*get_function)(void **function, void *module, const char *name);
typedef qi_cu_result (*launch_kernel)(void *function, unsigned gx, unsigned gy, unsigned gz,
                                      unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                      qi_cu_stream stream, void **parameters, void **extra);

static void *find(void *library, const char *name)
{
    return library ? dlsym(library, name) : NULL;
}

/* Returns NULL on success, otherwise what the driver lacks or which call failed. */
static const char *write_at(void *library, void *context, uint64_t address)
{
    load_module load;
    get_function get;
    launch_kernel launch;
    qi_cu_fn_CtxPushCurrent push;
    qi_cu_fn_CtxSynchronize finish;
    void *found[] = {find(library, "cuModuleLoadData"), find(library, "cuModuleGetFunction"),
                     find(library, "cuLaunchKernel"), find(library, "cuCtxPushCurrent_v2"),
                     find(library, "cuCtxSynchronize")};
    void *module = NULL, *function = NULL, *parameters[] = {&address};
    for (size_t i = 0; i < sizeof found / sizeof *found; i++)
        if (!found[i])
            return "the driver runs no kernels";
    memcpy(&load, &found[0], sizeof load);
    memcpy(&get, &found[1], sizeof get);
    memcpy(&launch, &found[2], sizeof launch);
    memcpy(&push, &found[3], sizeof push);
    memcpy(&finish, &found[4], sizeof finish);
    if (push(context) || load(&module, KERNEL) || get(&function, module, "store"))
        return "the kernel cannot be loaded";
    qi_cu_result code = launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
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
    bool has_kernels = !reason || strcmp(reason, "the driver runs no kernels");
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
