/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_direct.c - see cuda_direct.h.
 */
#include "tests/support/cuda_direct.h"

#include <dlfcn.h>
#include <string.h>

#include "tests/support/check.h"

cuda_direct cu;
static void *library;
static qi_cu_context context;

void cuda_direct_must(qi_cu_result result, const char *what)
{
    if (result)
        check_failed(__FILE__, __LINE__, "%s answers %u", what, result);
}

void cuda_direct_load(const char *path)
{
    if (library)
        return;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        check_failed(__FILE__, __LINE__, "%s", dlerror());
#define X(name, suffix, version, presence, parameters)                                             \
    do {                                                                                           \
        void *found = dlsym(library, "cu" #name #suffix);                                          \
        memcpy(&cu.name, &found, sizeof found); /* C has no cast for it */                         \
    } while (0);
    QI_CU_FUNCTIONS(X)
    FAKE_CUDA_MORE_FUNCTIONS(X)
#undef X
    CHECK(cu.Init && cu.MemCreate && cu.MemRetainAllocationHandle);
}

void cuda_direct_open(const char *path)
{
    if (context)
        return;
    cuda_direct_load(path);
    MUST(cu.Init(0));
    MUST(cu.DevicePrimaryCtxRetain(&context, 0));
    MUST(cu.CtxPushCurrent(context));
}

qi_cu_context cuda_direct_context(void)
{
    return context;
}

void *cuda_direct_library(void)
{
    return library;
}

void *cuda_direct_find(const char *symbol)
{
    return dlsym(library, symbol);
}

void cuda_direct_destroy_graph(qi_cu_graph graph)
{
    qi_cu_result (*destroy)(qi_cu_graph);
    void *found = cuda_direct_find("cuGraphDestroy");
    memcpy(&destroy, &found, sizeof found);
    if (graph && destroy)
        (void)destroy(graph);
}

const char *cuda_direct_name(qi_cu_result code)
{
    const char *name = NULL;
    return cu.GetErrorName && !cu.GetErrorName(code, &name) && name ? name
                                                                    : "a code without a name";
}
