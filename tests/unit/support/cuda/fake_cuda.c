/*
 * fake_cuda.c - the fake CUDA driver: how it begins, what it says of itself, and which functions it
 * has.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

static int attribute(qi_cu_attribute which)
{
    int value = -7;
    CHECK_CU(cu.DeviceGetAttribute(&value, which, 0));
    return value;
}

UNIT(fake_cuda, nothing_works_before_init)
{
    int count = -1, version;
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(0);
    fc_fixture_load(NULL);
    CHECK_CU(cu.DriverGetVersion(&version));
    CHECK_EQ(version, 13000);
    CHECK_CODE(cu.DeviceGetCount(&count), NOT_INITIALIZED);
    CHECK_CODE(cu.MemCreate(&handle, FC_PIECE, &prop, 0), NOT_INITIALIZED);
    CHECK_CODE(cu.CtxPopCurrent(NULL), NOT_INITIALIZED);
    CHECK_CODE(cu.Init(1), INVALID_VALUE);
    CHECK_CU(cu.Init(0));
    CHECK_CU(cu.DeviceGetCount(&count));
    CHECK_EQ(count, 1);
    CHECK_EQ(fc_message_count(), 0);
}

UNIT(fake_cuda, a_driver_without_devices_and_one_that_fails)
{
    fc_fixture_load(&(fc_options){.no_devices = true});
    CHECK_CODE(cu.Init(0), NO_DEVICE);
    fc_fixture_load(&(fc_options){.no_init = QI_CUDA_ERROR_SYSTEM_NOT_READY});
    CHECK_CODE(cu.Init(0), SYSTEM_NOT_READY);
}

UNIT(fake_cuda, after_the_end_every_call_says_so)
{
    qi_cu_handle handle;
    (void)fc_fixture_open(NULL);
    qi_cu_ptr pointer = fc_mapped(FC_PIECE, &handle);
    fc_deinitialize();
    CHECK_EQ(fc_leaks(), 0);
    CHECK_CODE(cu.MemUnmap(pointer, FC_PIECE), DEINITIALIZED);
    CHECK_CODE(cu.MemRelease(handle), DEINITIALIZED);
    CHECK_CODE(cu.DevicePrimaryCtxRelease(0), DEINITIALIZED);
    CHECK_EQ(fc_message_count(), 0);
}

UNIT(fake_cuda, what_a_device_is)
{
    char name[64];
    qi_cu_uuid uuid;
    size_t bytes;
    qi_cu_device device;
    const fc_model *h200 = fc_model_named("h200");
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.DeviceGet(&device, 0));
    CHECK_CODE(cu.DeviceGet(&device, 1), INVALID_DEVICE);
    CHECK_CU(cu.DeviceGetName(name, sizeof name, 0));
    CHECK_STR(name, "fake h200");
    CHECK_CU(cu.DeviceGetName(name, 5, 0));
    CHECK_STR(name, "fake");
    CHECK_CU(cu.DeviceGetUuid(&uuid, 0));
    CHECK_CU(cu.DeviceTotalMem(&bytes, 0));
    CHECK_EQ(bytes, h200->bytes);
    CHECK_CODE(cu.DeviceTotalMem(&bytes, -1), INVALID_DEVICE);
    CHECK_CODE(cu.DeviceTotalMem(NULL, 0), INVALID_VALUE);
    CHECK_EQ(attribute(QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED), 1);
    CHECK_EQ(attribute(QI_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED), 1);
    CHECK_EQ(attribute(QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID), 0);
    CHECK_EQ(attribute(QI_CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT), 512);
    CHECK_CODE(cu.DeviceGetAttribute(&(int){0}, 9999, 0), INVALID_VALUE);
    fc_fixture_close();
}

UNIT(fake_cuda, an_old_driver_knows_fewer_attributes_and_functions)
{
    int value;
    (void)fc_fixture_open(&(fc_options){.version = 11020});
    CHECK(cu.MemCreate && cu.MemAllocAsync);
    CHECK(!cu.MulticastCreate && !cu.MemGetHandleForAddressRange && !cu.ArrayGetMemoryRequirements);
    CHECK_EQ(attribute(QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED), 1);
    CHECK_CODE(cu.DeviceGetAttribute(
                   &value, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0),
               INVALID_VALUE);
    CHECK_CODE(cu.DeviceGetAttribute(&value, QI_CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, 0),
               INVALID_VALUE);
    fc_fixture_close();
}

UNIT(fake_cuda, errors_have_names)
{
    const char *text;
    fc_fixture_load(NULL);
    CHECK_CU(cu.GetErrorName(QI_CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK_STR(text, "CUDA_ERROR_OUT_OF_MEMORY");
    CHECK_CU(cu.GetErrorString(QI_CUDA_ERROR_OUT_OF_MEMORY, &text));
    CHECK_STR(text, "ERROR_OUT_OF_MEMORY");
    CHECK_CODE(cu.GetErrorName(54321, &text), INVALID_VALUE);
    CHECK(!text);
}

/* ---- finding functions -------------------------------------------------------------------- */

typedef struct answer {
    qi_cu_result result;
    void *function;
    qi_cu_query_result why;
} answer;

static answer find(const char *name, int version)
{
    answer of = {.why = 77};
    of.result = fake_cuda()->find(name, &of.function, version, 0, &of.why);
    return of;
}

UNIT(fake_cuda, functions_are_found_by_name_and_version)
{
    fc_fixture_load(&(fc_options){.version = 12000});
    answer found = find("cuMemAlloc", 3020);
    CHECK(!found.result && found.function && found.why == QI_CU_GET_PROC_ADDRESS_SUCCESS);
    answer unknown = find("cuNoSuchFunction", 12000);
    CHECK(!unknown.result && !unknown.function);
    CHECK_EQ(unknown.why, QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    answer older = find("cuMemCreate", 10010);
    CHECK(!older.result && !older.function);
    CHECK_EQ(older.why, QI_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    answer newer = find("cuMulticastCreate", 12000);
    CHECK(!newer.result && !newer.function);
    CHECK_EQ(newer.why, QI_CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    CHECK_EQ(find("cuMemCreate", 12010).result, QI_CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(find("cuMemAlloc_v2", 3020).why, QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    /* the newer of two of the same name, and the older where that is asked for */
    CHECK(find("cuGetProcAddress", 12000).function != find("cuGetProcAddress", 11030).function);
}

UNIT(fake_cuda, a_hidden_function_is_not_found)
{
    fc_fixture_load(NULL);
    CHECK(!fc_hide("cuNoSuchFunction"));
    CHECK(fc_hide("cuMemMap") && fc_hide("cuMemAlloc_v2"));
    CHECK_EQ(find("cuMemMap", 13000).why, QI_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    CHECK(!find("cuMemAlloc", 13000).function);
    CHECK(find("cuMemUnmap", 13000).function);
    fc_heal();
    CHECK(find("cuMemMap", 13000).function && find("cuMemAlloc", 13000).function);
}

UNIT(fake_cuda, calls_are_counted_and_reported)
{
    char line[256];
    bool found = false;
    qi_cu_ptr pointer;
    (void)fc_fixture_open(NULL);
    CHECK_CU(cu.MemAlloc(&pointer, 1000));
    CHECK_EQ(fc_calls("cuMemAlloc"), 1);
    CHECK_EQ(fc_calls("cuMemFree"), 0);
    CHECK_EQ(fc_usage_of(0).bytes, 1000);
    FILE *file = tmpfile();
    fc_report(file);
    rewind(file);
    while (fgets(line, sizeof line, file))
        found |= !strcmp(line, "live 1 allocation\n");
    fclose(file);
    CHECK(found);
    CHECK_CU(cu.MemFree(pointer));
    fc_reset_counters();
    CHECK_EQ(fc_calls(NULL), 0);
    CHECK_EQ(fc_usage_of(0).peak, 0);
    fc_fixture_close();
}
