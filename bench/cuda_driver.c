/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_driver.c - see cuda_driver.h.
 */
#include "bench/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>

#include "quire/quire.h"

cuda_driver the_cuda = {.absent = "not opened"};

/* Records the reason and closes what is open; returns false for the caller to return. */
static bool is_absent(const char *why)
{
    snprintf(the_cuda.absent, sizeof the_cuda.absent, "%s", why);
    cuda_driver_close();
    return false;
}

/* The fake driver of tests/support/cuda exports a symbol that no real driver has. */
static bool is_fake(void *library)
{
    return dlsym(library, "fake_cuda") != NULL;
}

/*
 * Opens the device through quire, and loads the driver's functions a second time for direct calls.
 * Both use the same context.
 */
static bool open_device(void)
{
    quire_device_info info;
    if (quire_cuda_open(NULL, &the_cuda.device) || quire_device_get_info(the_cuda.device, &info) ||
        quire_cuda_get_info(the_cuda.device, &the_cuda.info) ||
        qi_cuda_open_library(NULL, &the_cuda.library) ||
        qi_cuda_load(&the_cuda.f, the_cuda.library))
        return is_absent(quire_last_error());
    the_cuda.is_emulated = is_fake(the_cuda.library);
    snprintf(the_cuda.name, sizeof the_cuda.name, "%s", info.name);
    return true;
}

/* Makes the context current until cuda_driver_close, so that direct calls need no push and pop. */
static qi_cu_result open_stream(void)
{
    qi_cu_result code = the_cuda.f.CtxPushCurrent(the_cuda.info.context);
    if (!code)
        code = the_cuda.f.StreamCreate(&the_cuda.stream, QI_CU_STREAM_NON_BLOCKING);
    return code;
}

/* Old drivers lack the pool functions, and some devices have no pool. */
static void find_pool(void)
{
    const qi_cuda_functions *f = &the_cuda.f;
    bool has = f->MemAllocAsync && f->MemFreeAsync && f->DeviceGetDefaultMemPool &&
               f->MemPoolSetAttribute && f->MemPoolTrimTo;
    if (!has || f->DeviceGetDefaultMemPool(&the_cuda.pool, the_cuda.info.ordinal))
        the_cuda.pool = NULL;
}

bool cuda_driver_open(void)
{
    the_cuda = (cuda_driver){.device = NULL};
    if (!open_device())
        return false;
    qi_cu_result code = open_stream();
    if (code)
        return is_absent(cuda_driver_error(code));
    find_pool();
    return true;
}

void cuda_driver_close(void)
{
    qi_cu_context context;
    if (the_cuda.stream) {
        (void)the_cuda.f.StreamDestroy(the_cuda.stream);
        (void)the_cuda.f.CtxPopCurrent(&context);
    }
    the_cuda.stream = NULL;
    quire_device_destroy(&the_cuda.device);
    qi_cuda_close_library(the_cuda.library);
    the_cuda.library = NULL;
}

qi_cu_result cuda_driver_wait(void)
{
    return the_cuda.f.StreamSynchronize(the_cuda.stream);
}

const char *cuda_driver_error(qi_cu_result code)
{
    const char *name = NULL;
    bool found = the_cuda.f.GetErrorName && !the_cuda.f.GetErrorName(code, &name) && name;
    return found ? name : "unnamed error code";
}

uint64_t cuda_driver_free_bytes(void)
{
    size_t free_bytes = 0, total;
    return the_cuda.f.MemGetInfo(&free_bytes, &total) ? 0 : free_bytes;
}

/* The threshold applies to later frees; the trim releases what the pool has kept already. */
qi_cu_result cuda_driver_keep(bool all)
{
    uint64_t threshold = all ? UINT64_MAX : 0;
    qi_cu_result code = the_cuda.f.MemPoolSetAttribute(
        the_cuda.pool, QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
    if (!code)
        code = cuda_driver_wait();
    return code ? code : the_cuda.f.MemPoolTrimTo(the_cuda.pool, 0);
}
