/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fixture.c - see fixture.h.
 */
#include "tests/support/cuda/fixture.h"

#include <string.h>

fc_functions cu;

static void *find(const char *name, int version)
{
    void *function = NULL;
    qi_cu_query_result why;
    (void)fake_cuda()->find(name, &function, version, 0, &why);
    return function;
}

void fc_fixture_load(const fc_options *options)
{
    fc_reset(options);
#define X(name, suffix, version, presence, parameters)                                             \
    do {                                                                                           \
        void *found = find("cu" #name, version);                                                   \
        memcpy(&cu.name, &found, sizeof found); /* C has no cast for this */                       \
    } while (0);
    QI_CU_FUNCTIONS(X)
    FAKE_CUDA_MORE_FUNCTIONS(X)
#undef X
}

qi_cu_context fc_fixture_open(const fc_options *options)
{
    qi_cu_context context;
    fc_fixture_load(options);
    CHECK_CU(cu.Init(0));
    CHECK_CU(cu.DevicePrimaryCtxRetain(&context, 0));
    CHECK_CU(cu.CtxPushCurrent(context));
    return context;
}

void fc_fixture_close(void)
{
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(0));
    if (fc_message_count())
        check_failed(__FILE__, __LINE__, "%u messages; the first: %s", fc_message_count(),
                     fc_message(0));
    for (uint32_t kind = 0; kind < FC_KINDS; kind++)
        CHECK_EQ(fc_live((fc_kind)kind), 0);
    CHECK_EQ(fc_usage_of(0).bytes, 0);
    CHECK_EQ(fc_usage_of(-1).bytes, 0);
}

void fc_fixture_expect(const char *part)
{
    const char *text = fc_message(0);
    CHECK_HAS(text ? text : "(no message)", part);
    if (fc_message_count() != 1)
        check_failed(__FILE__, __LINE__, "%u messages; the second: %s", fc_message_count(),
                     fc_message(1));
    fc_forget();
}

void fc_fixture_check(const char *file, int line, const char *call, qi_cu_result actual,
                      qi_cu_result expected)
{
    if (actual != expected)
        check_failed(file, line, "%s answers %u, not %u; messages: %s", call, actual, expected,
                     fc_message(0) ? fc_message(0) : "none");
}

/* ---- memory ------------------------------------------------------------------------------- */

qi_cu_allocation_prop fc_on_device(int device)
{
    return (qi_cu_allocation_prop){
        .type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
}

qi_cu_access_desc fc_for_device(int device, qi_cu_access_flags flags)
{
    return (qi_cu_access_desc){.location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, device},
                               .flags = flags};
}

qi_cu_handle fc_make(uint64_t size)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    CHECK_CU(cu.MemCreate(&handle, size, &prop, 0));
    return handle;
}

qi_cu_ptr fc_reserve(uint64_t size)
{
    qi_cu_ptr pointer;
    CHECK_CU(cu.MemAddressReserve(&pointer, size, 0, 0, 0));
    return pointer;
}

qi_cu_ptr fc_mapped(uint64_t size, qi_cu_handle *handle)
{
    qi_cu_ptr pointer = fc_reserve(size);
    qi_cu_access_desc desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    *handle = fc_make(size);
    CHECK_CU(cu.MemMap(pointer, size, 0, *handle, 0));
    CHECK_CU(cu.MemSetAccess(pointer, size, &desc, 1));
    return pointer;
}

void fc_unmapped(qi_cu_ptr pointer, uint64_t size, qi_cu_handle handle)
{
    CHECK_CU(cu.MemUnmap(pointer, size));
    if (handle)
        CHECK_CU(cu.MemRelease(handle));
    CHECK_CU(cu.MemAddressFree(pointer, size));
}

void fc_write(qi_cu_ptr to, uint64_t value)
{
    CHECK_CU(cu.MemcpyHtoD(to, &value, sizeof value));
}

uint64_t fc_read(qi_cu_ptr from)
{
    uint64_t value;
    CHECK_CU(cu.MemcpyDtoH(&value, from, sizeof value));
    return value;
}
