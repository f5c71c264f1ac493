/*
 * fake_cuda_kernel.c - the fake CUDA driver: the two kernels of bench/cuda_kernel.c.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/cuda/kernel.h"
#include "tests/support/unit.h"

static const char TEXT[] = ".version 6.3\n.visible .entry store(.param .u64 a)\n{\n  ret;\n}\n";

#define X(name, suffix, version, presence, parameters)                                             \
    typedef qi_cu_result(*fn_##name) parameters;                                                   \
    static fn_##name call_##name(void)                                                             \
    {                                                                                              \
        void *found = NULL;                                                                        \
        qi_cu_query_result why;                                                                    \
        fn_##name function;                                                                        \
        CHECK_EQ(fake_cuda()->find("cu" #name, &found, version, 0, &why), 0);                      \
        memcpy(&function, &found, sizeof function);                                                \
        return function;                                                                           \
    }
FAKE_CUDA_KERNEL_FUNCTIONS(X)
#undef X

/* Loads the text and launches a kernel of it with one parameter. */
static qi_cu_result launch(const char *name, uint64_t parameter)
{
    void *module, *function, *parameters[] = {&parameter};
    CHECK_CU(call_ModuleLoadData()(&module, TEXT));
    CHECK_CU(call_ModuleGetFunction()(&function, module, name));
    return call_LaunchKernel()(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
}

UNIT(fake_cuda_kernel, a_store_writes_when_its_work_runs)
{
    qi_cu_ptr block;
    (void)fc_fixture_open(&(fc_options){.flags = FC_LATE});
    CHECK_CU(cu.MemAlloc(&block, 4096));
    fc_write(block, 0);
    CHECK_CU(launch("store", block));
    CHECK_EQ(fc_pending(), 1);
    CHECK_CU(cu.CtxSynchronize());
    CHECK_EQ(fc_read(block), 42);
    CHECK_CU(cu.MemFree(block));
    fc_fixture_close();
}

UNIT(fake_cuda_kernel, a_store_to_nothing_loses_the_device)
{
    (void)fc_fixture_open(NULL);
    CHECK_CU(launch("store", 16));
    CHECK_CODE(cu.CtxSynchronize(), ILLEGAL_ADDRESS);
    fc_fixture_expect("fc-address: cuLaunchKernel");
    fc_reset(NULL);
}

UNIT(fake_cuda_kernel, misuse_is_refused)
{
    void *module, *function, *none;
    uint64_t parameter = 0;
    void *parameters[] = {&parameter};
    (void)fc_fixture_open(NULL);
    CHECK_CODE(call_ModuleLoadData()(&module, "no text"), INVALID_VALUE);
    CHECK_CODE(call_ModuleLoadData()(NULL, TEXT), INVALID_VALUE);
    CHECK_CODE(call_ModuleGetFunction()(&none, &none, "store"), INVALID_HANDLE);
    CHECK_CU(call_ModuleLoadData()(&module, TEXT));
    CHECK_CODE(call_ModuleGetFunction()(&none, module, "spin"), NOT_FOUND);
    CHECK_CU(call_ModuleGetFunction()(&function, module, "store"));
    CHECK_CODE(call_LaunchKernel()(&none, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL),
               INVALID_HANDLE);
    CHECK_CODE(call_LaunchKernel()(function, 1, 0, 1, 1, 1, 1, 0, NULL, parameters, NULL),
               INVALID_VALUE);
    CHECK_CODE(call_LaunchKernel()(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), INVALID_VALUE);
    fc_fixture_close();
}
