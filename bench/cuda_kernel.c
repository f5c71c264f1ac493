/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_kernel.c - see cuda_kernel.h.
 */
#include "bench/cuda_kernel.h"

#include <dlfcn.h>
#include <string.h>

const char CUDA_NO_KERNELS[] = "the driver runs no kernels";

static const char TEXT[] = ".version 6.3\n"
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
                           "}\n"
                           ".visible .entry spin(.param .u64 nanoseconds)\n"
                           "{\n"
                           "  .reg .b64 %t<5>;\n"
                           "  .reg .pred %p;\n"
                           "  ld.param.u64 %t1, [nanoseconds];\n"
                           "  mov.u64 %t2, %globaltimer;\n"
                           "again:\n"
                           "  mov.u64 %t3, %globaltimer;\n"
                           "  sub.u64 %t4, %t3, %t2;\n"
                           "  setp.lt.u64 %p, %t4, %t1;\n"
                           "  @%p bra again;\n"
                           "  ret;\n"
                           "}\n";

typedef qi_cu_result (*load_module)(void **module, const void *text);
typedef qi_cu_result (*get_function)(void **function, void *module, const char *name);

const char *cuda_kernels_load(void *library, cuda_kernels *kernels)
{
    load_module load;
    get_function get;
    void *module = NULL;
    void *found[] = {dlsym(library, "cuModuleLoadData"), dlsym(library, "cuModuleGetFunction"),
                     dlsym(library, "cuLaunchKernel")};
    *kernels = (cuda_kernels){.store = NULL};
    if (!found[0] || !found[1] || !found[2])
        return CUDA_NO_KERNELS;
    memcpy(&load, &found[0], sizeof load); /* C has no cast for it */
    memcpy(&get, &found[1], sizeof get);
    memcpy(&kernels->launch, &found[2], sizeof kernels->launch);
    if (load(&module, TEXT) || get(&kernels->store, module, "store") ||
        get(&kernels->spin, module, "spin"))
        return "the kernels cannot be loaded";
    return NULL;
}

static qi_cu_result launch(const cuda_kernels *kernels, void *function, uint64_t parameter,
                           qi_cu_stream stream)
{
    void *parameters[] = {&parameter};
    return kernels->launch(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

qi_cu_result cuda_kernel_store(const cuda_kernels *kernels, uint64_t address, qi_cu_stream stream)
{
    return launch(kernels, kernels->store, address, stream);
}

qi_cu_result cuda_kernel_spin(const cuda_kernels *kernels, uint64_t nanoseconds,
                              qi_cu_stream stream)
{
    return launch(kernels, kernels->spin, nanoseconds, stream);
}
