/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kernel.c - see kernel.h.
 */
#include "tests/support/cuda/kernel.h"

#include <string.h>

#include "tests/support/cuda/queue.h"
#include "tests/support/cuda/span.h"

typedef struct fc_kernel {
    const char *name, *entry; /* how the text declares it */
    bool (*run)(fc_work *work);
    uint64_t generation; /* of the driver that loaded it; 0: none */
} fc_kernel;

/* Returns false if the device may not write there: it is then lost. */
static bool store(fc_work *work)
{
    static const uint32_t value = 42;
    for (uint64_t done = 0, run; done < sizeof value; done += run) {
        unsigned char *to = fc_reach(work->address + done, work->device, true, &run);
        if (!to)
            return false;
        run = run < sizeof value - done ? run : sizeof value - done;
        memcpy(to, (const unsigned char *)&value + done, run);
    }
    return true;
}

static bool spin(fc_work *work)
{
    (void)work;
    return true;
}

static fc_kernel kernels[] = {
    {"store", ".entry store(", store, 0},
    {"spin", ".entry spin(", spin, 0},
};

enum { KERNELS = sizeof kernels / sizeof *kernels };

/* The one module of a generation. */
static uint64_t module_generation;

static bool is_loaded(const fc_kernel *kernel)
{
    return kernel >= kernels && kernel < kernels + KERNELS && kernel->generation == fc.generation;
}

static void load(const char *text)
{
    module_generation = fc.generation;
    for (int i = 0; i < KERNELS; i++)
        if (strstr(text, kernels[i].entry))
            kernels[i].generation = fc.generation;
}

qi_cu_result fc_ModuleLoadData(void **module, const void *text)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_ModuleLoadData, &result);
    FC_REFUSE_IF(!module || !text || strncmp(text, ".version ", 9) != 0, INVALID_VALUE);
    if (!result) {
        load(text);
        *module = &module_generation;
    }
    return fc_leave(result);
}

qi_cu_result fc_ModuleGetFunction(void **function, void *module, const char *name)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_ModuleGetFunction, &result);
    FC_REFUSE_IF(!function || !name, INVALID_VALUE);
    FC_REFUSE_IF(module != &module_generation || module_generation != fc.generation,
                 INVALID_HANDLE);
    if (result)
        return fc_leave(result);
    result = QI_CUDA_ERROR_NOT_FOUND;
    for (int i = 0; i < KERNELS; i++)
        if (!strcmp(name, kernels[i].name) && is_loaded(&kernels[i])) {
            *function = &kernels[i];
            result = 0;
        }
    return fc_leave(result);
}

qi_cu_result fc_LaunchKernel(void *function, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared, qi_cu_stream stream,
                             void **parameters, void **extra)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_LaunchKernel, &result);
    const fc_kernel *kernel = function;
    bool is_empty = !grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z;
    (void)shared;
    FC_REFUSE_IF(!is_loaded(kernel), INVALID_HANDLE);
    FC_REFUSE_IF(is_empty || !parameters || extra, INVALID_VALUE);
    if (!result)
        result = fc_queue(context, stream,
                          &(fc_work){.call = FC_CALL_LaunchKernel,
                                     .run = kernel->run,
                                     .address = *(const uint64_t *)parameters[0]});
    return fc_leave(result);
}
