/*
 * fake_cuda_misuse.c - the fake CUDA driver: its errors for misuse of memory and addresses, row by
 * row. The codes are those that the driver documents. Where conformance tests of other projects
 * observe different codes, flags select them.
 */
#include "tests/support/cuda/fixture.h"
#include "tests/support/unit.h"

/* The objects that every row uses. */
typedef struct scene {
    qi_cu_allocation_prop prop;
    qi_cu_access_desc desc;
    qi_cu_handle handle; /* of two pieces */
    qi_cu_handle small;  /* of one */
    qi_cu_ptr empty;     /* four reserved pieces */
    qi_cu_ptr mapped;    /* two reserved pieces, to which `handle` is mapped */
} scene;

static scene open_scene(uint32_t flags)
{
    scene s = {.prop = fc_on_device(0),
               .desc = fc_for_device(0, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE)};
    (void)fc_fixture_open(&(fc_options){.flags = flags});
    s.small = fc_make(FC_PIECE);
    s.empty = fc_reserve(4 * FC_PIECE);
    s.mapped = fc_mapped(2 * FC_PIECE, &s.handle);
    return s;
}

/* Checks that refused calls have changed nothing. */
static void close_scene(const scene *s)
{
    CHECK_EQ(fc_live(FC_MEMORY), 2);
    CHECK_EQ(fc_live(FC_MAPPING), 1);
    CHECK_EQ(fc_live(FC_RESERVATION), 2);
    fc_unmapped(s->mapped, 2 * FC_PIECE, s->handle);
    CHECK_CU(cu.MemRelease(s->small));
    CHECK_CU(cu.MemAddressFree(s->empty, 4 * FC_PIECE));
    fc_fixture_close();
}

UNIT(fake_cuda_misuse, reserving)
{
    scene s = open_scene(0);
    qi_cu_ptr p;
    CHECK_CODE(cu.MemAddressReserve(NULL, FC_PIECE, 0, 0, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressReserve(&p, FC_PIECE, 0, 0, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressReserve(&p, 0, 0, 0, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressReserve(&p, 1000, 0, 0, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressReserve(&p, FC_PIECE, 0, s.empty + 100, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressReserve(&p, FC_PIECE, 3 * FC_PIECE, 0, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressReserve(&p, UINT64_C(1) << 50, 0, 0, 0), OUT_OF_MEMORY);
    close_scene(&s);
    s = open_scene(FC_BAD_SIZE_2);
    CHECK_CODE(cu.MemAddressReserve(&p, 0, 0, 0, 0), OUT_OF_MEMORY);
    CHECK_CODE(cu.MemAddressReserve(&p, 1000, 0, 0, 0), OUT_OF_MEMORY);
    CHECK_CODE(cu.MemAddressReserve(&p, FC_PIECE, 3 * FC_PIECE, 0, 0), OUT_OF_MEMORY);
    close_scene(&s);
}

UNIT(fake_cuda_misuse, freeing_addresses)
{
    scene s = open_scene(0);
    CHECK_CODE(cu.MemAddressFree(0, FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressFree(s.empty, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressFree(s.empty, 2 * FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressFree(s.empty + FC_PIECE, 3 * FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemAddressFree(s.mapped, 2 * FC_PIECE), INVALID_VALUE); /* still mapped */
    close_scene(&s);
}

UNIT(fake_cuda_misuse, creating)
{
    scene s = open_scene(0);
    qi_cu_handle h;
    CHECK_CODE(cu.MemCreate(NULL, FC_PIECE, &s.prop, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemCreate(&h, FC_PIECE, NULL, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemCreate(&h, 0, &s.prop, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemCreate(&h, FC_PIECE - 1, &s.prop, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemCreate(&h, FC_PIECE, &s.prop, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemCreate(&h, UINT64_C(1) << 50, &s.prop, 0), OUT_OF_MEMORY);
    close_scene(&s);
}

typedef struct wrong_prop {
    qi_cu_allocation_type type;
    qi_cu_location location;
    qi_cu_handle_type handle_types;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved;
    qi_cu_result result;
} wrong_prop;

static void check_prop(const wrong_prop *wrong)
{
    qi_cu_handle h;
    qi_cu_allocation_prop prop = {.type = wrong->type ? wrong->type - 1
                                                      : QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = wrong->location,
                                  .requestedHandleTypes = wrong->handle_types};
    prop.allocFlags.compressionType = wrong->compression;
    prop.allocFlags.gpuDirectRDMACapable = wrong->rdma;
    prop.allocFlags.usage = wrong->usage;
    prop.allocFlags.reserved[3] = wrong->reserved;
    qi_cu_result result = cu.MemCreate(&h, FC_PIECE, &prop, 0);
    if (result != wrong->result)
        check_failed(__FILE__, __LINE__, "type %u at %u %d answers %u, not %u", prop.type,
                     prop.location.type, prop.location.id, result, wrong->result);
}

#define DEVICE_0 .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}
#define VALUE .result = QI_CUDA_ERROR_INVALID_VALUE
#define UNSUPPORTED .result = QI_CUDA_ERROR_NOT_SUPPORTED

UNIT(fake_cuda_misuse, properties)
{
    static const wrong_prop ROWS[] = {
        /* the types are one greater here, so that 0 is the right one */
        {.type = 1, DEVICE_0, VALUE},
        {.type = 3, DEVICE_0, VALUE},
        {.location = {QI_CU_MEM_LOCATION_TYPE_INVALID, 0}, VALUE},
        {.location = {9, 0}, VALUE},
        {.location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, -1}, .result = QI_CUDA_ERROR_INVALID_DEVICE},
        {.location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 1}, .result = QI_CUDA_ERROR_INVALID_DEVICE},
        {.location = {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, -1}, VALUE},
        {.location = {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 1}, VALUE},
        {.location = {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}, VALUE},
        {.location = {QI_CU_MEM_LOCATION_TYPE_HOST, 0}, .handle_types = 1, VALUE},
        {DEVICE_0, .handle_types = 16, VALUE},
        {DEVICE_0, .handle_types = QI_CU_MEM_HANDLE_TYPE_WIN32, UNSUPPORTED},
        {DEVICE_0, .handle_types = QI_CU_MEM_HANDLE_TYPE_FABRIC,
         .result = QI_CUDA_ERROR_NOT_PERMITTED},
        {DEVICE_0,
         .handle_types = QI_CU_MEM_HANDLE_TYPE_FABRIC | QI_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
         .result = QI_CUDA_ERROR_NOT_PERMITTED},
        {DEVICE_0, .compression = 2, VALUE},
        {DEVICE_0, .rdma = 2, VALUE},
        {DEVICE_0, .usage = 4, VALUE},
        {DEVICE_0, .usage = QI_CU_MEM_CREATE_USAGE_HW_DECOMPRESS, UNSUPPORTED},
        {DEVICE_0, .reserved = 1, VALUE},
    };
    scene s = open_scene(0);
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
        check_prop(&ROWS[i]);
    close_scene(&s);
    s = open_scene(FC_BAD_DEVICE_1);
    check_prop(&(wrong_prop){.location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 1}, VALUE});
    close_scene(&s);
}

UNIT(fake_cuda_misuse, properties_that_other_machines_do_not_have)
{
    (void)fc_fixture_open(&(fc_options){.models = {fc_model_named("orin")}});
    check_prop(&(wrong_prop){.location = {QI_CU_MEM_LOCATION_TYPE_HOST, 0}, UNSUPPORTED});
    check_prop(&(wrong_prop){.location = {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, UNSUPPORTED});
    check_prop(&(wrong_prop){DEVICE_0, .handle_types = 1, UNSUPPORTED});
    check_prop(&(wrong_prop){DEVICE_0, .handle_types = 8, UNSUPPORTED});
    check_prop(&(wrong_prop){DEVICE_0, .rdma = 1, UNSUPPORTED});
    check_prop(&(wrong_prop){DEVICE_0, .usage = 1, UNSUPPORTED});
    fc_fixture_close();
    (void)fc_fixture_open(&(fc_options){.version = 12010}); /* for drivers without such locations */
    check_prop(&(wrong_prop){.location = {QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, 0}, VALUE});
    fc_fixture_close();
}

UNIT(fake_cuda_misuse, releasing)
{
    scene s = open_scene(0);
    CHECK_CODE(cu.MemRelease(0), INVALID_VALUE);
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CODE(cu.MemRelease(12345), INVALID_VALUE); /* the driver does not guarantee this */
    fc_fixture_expect("fc-handle: cuMemRelease");
    qi_cu_handle gone = fc_make(FC_PIECE);
    CHECK_CU(cu.MemRelease(gone));
    CHECK_CODE(cu.MemRelease(gone), INVALID_VALUE);
    fc_fixture_expect("fc-handle: cuMemRelease");
    close_scene(&s);
}

UNIT(fake_cuda_misuse, mapping)
{
    scene s = open_scene(0);
    qi_cu_ptr e = s.empty;
    CHECK_CODE(cu.MemMap(0, FC_PIECE, 0, s.small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(e + 4 * FC_PIECE, FC_PIECE, 0, s.small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(e + 3 * FC_PIECE, 2 * FC_PIECE, 0, s.handle, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(s.mapped, FC_PIECE, 0, s.small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(s.mapped + FC_PIECE, FC_PIECE, 0, s.small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(e + 4096, FC_PIECE, 0, s.small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(e, FC_PIECE - 4096, 0, s.small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(e, FC_PIECE, FC_PIECE, s.handle, 0), NOT_SUPPORTED);
    CHECK_CODE(cu.MemMap(e, FC_PIECE, 0, s.handle, 0), NOT_SUPPORTED);
    CHECK_CODE(cu.MemMap(e, 0, 0, s.small, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(e, 2 * FC_PIECE, 0, s.small, 0), NOT_SUPPORTED);
    CHECK_CODE(cu.MemMap(e, FC_PIECE, 0, s.small, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemMap(e, FC_PIECE, 0, 0, 0), INVALID_VALUE);
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CODE(cu.MemMap(e, FC_PIECE, 0, 12345, 0), INVALID_VALUE);
    fc_fixture_expect("fc-handle: cuMemMap");
    close_scene(&s);
}

UNIT(fake_cuda_misuse, mapping_what_is_for_arrays)
{
    scene s = open_scene(0);
    qi_cu_handle tiles;
    s.prop.allocFlags.usage = QI_CU_MEM_CREATE_USAGE_TILE_POOL;
    CHECK_CU(cu.MemCreate(&tiles, FC_PIECE, &s.prop, 0));
    CHECK_CODE(cu.MemMap(s.empty, FC_PIECE, 0, tiles, 0), INVALID_VALUE);
    CHECK_CU(cu.MemRelease(tiles));
    close_scene(&s);
}

UNIT(fake_cuda_misuse, unmapping)
{
    scene s = open_scene(0);
    CHECK_CODE(cu.MemUnmap(0, FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.mapped, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.mapped, FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.mapped + FC_PIECE, FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.mapped + FC_PIECE, 2 * FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.mapped, 2 * FC_PIECE - 1), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.mapped, 3 * FC_PIECE), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.mapped, UINT64_MAX), INVALID_VALUE);
    CHECK_CODE(cu.MemUnmap(s.empty, 5 * FC_PIECE), INVALID_VALUE);
    CHECK_CU(cu.MemUnmap(s.empty, FC_PIECE)); /* nothing is mapped there */
    close_scene(&s);
}

UNIT(fake_cuda_misuse, giving_access)
{
    scene s = open_scene(0);
    qi_cu_access_desc wrong_flags = fc_for_device(0, 2), no_device = fc_for_device(3, 3);
    qi_cu_access_desc host = {{QI_CU_MEM_LOCATION_TYPE_HOST, 0}, 3};
    qi_cu_access_desc pair[2] = {s.desc, wrong_flags};
    CHECK_CODE(cu.MemSetAccess(0, 2 * FC_PIECE, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 0, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 2 * FC_PIECE, &s.desc, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 2 * FC_PIECE, NULL, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 2 * FC_PIECE, &wrong_flags, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 2 * FC_PIECE, pair, 2), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 3 * FC_PIECE, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped + 4096, FC_PIECE, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped + 4096, 2 * FC_PIECE - 4096, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, FC_PIECE + 4096, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, FC_PIECE, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped + FC_PIECE, FC_PIECE, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.empty, FC_PIECE, &s.desc, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 2 * FC_PIECE, &no_device, 1), INVALID_VALUE);
    CHECK_CODE(cu.MemSetAccess(s.mapped, 2 * FC_PIECE, &host, 1), NOT_SUPPORTED);
    close_scene(&s);
}

UNIT(fake_cuda_misuse, asking)
{
    scene s = open_scene(0);
    unsigned long long flags;
    size_t size;
    qi_cu_handle h;
    qi_cu_allocation_prop prop;
    qi_cu_location nowhere = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 7};
    CHECK_CODE(cu.MemGetAccess(NULL, &s.desc.location, s.mapped), INVALID_VALUE);
    CHECK_CODE(cu.MemGetAccess(&flags, NULL, s.mapped), INVALID_VALUE);
    CHECK_CODE(cu.MemGetAccess(&flags, &s.desc.location, s.empty), INVALID_VALUE);
    CHECK_CODE(cu.MemGetAccess(&flags, &nowhere, s.mapped), INVALID_DEVICE);
    CHECK_CODE(cu.MemRetainAllocationHandle(NULL, (void *)(uintptr_t)s.mapped), INVALID_VALUE);
    CHECK_CODE(cu.MemRetainAllocationHandle(&h, NULL), INVALID_VALUE);
    CHECK_CODE(cu.MemRetainAllocationHandle(&h, (void *)(uintptr_t)s.empty), INVALID_VALUE);
    CHECK_CODE(cu.MemGetAllocationPropertiesFromHandle(NULL, s.handle), INVALID_VALUE);
    CHECK_CODE(cu.MemGetAllocationPropertiesFromHandle(&prop, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemGetAllocationGranularity(NULL, &s.prop, 0), INVALID_VALUE);
    CHECK_CODE(cu.MemGetAllocationGranularity(&size, &s.prop, 2), INVALID_VALUE);
    s.prop.location.id = 7; /* the argument is ignored */
    CHECK_CU(cu.MemGetAllocationGranularity(&size, &s.prop, 0));
    CHECK_EQ(fc_message_count(), 0);
    CHECK_CODE(cu.MemGetAllocationGranularity(&size, NULL, 0),
               INVALID_VALUE); /* the real driver would crash */
    fc_fixture_expect("fc-null");
    close_scene(&s);
}

UNIT(fake_cuda_misuse, a_driver_may_want_a_context_for_all_of_it)
{
    scene s = open_scene(FC_NEEDS_CONTEXT);
    qi_cu_context context;
    qi_cu_ptr p;
    qi_cu_handle h;
    CHECK_CU(cu.CtxPopCurrent(&context));
    CHECK_CODE(cu.MemAddressReserve(&p, FC_PIECE, 0, 0, 0), INVALID_CONTEXT);
    CHECK_CODE(cu.MemCreate(&h, FC_PIECE, &s.prop, 0), INVALID_CONTEXT);
    CHECK_CODE(cu.MemUnmap(s.mapped, 2 * FC_PIECE), INVALID_CONTEXT);
    CHECK_CU(cu.CtxPushCurrent(context));
    close_scene(&s);
    s = open_scene(0);
    CHECK_CU(cu.CtxPopCurrent(&context));
    CHECK_CU(cu.MemCreate(&h, FC_PIECE, &s.prop, 0));
    CHECK_CU(cu.MemRelease(h));
    CHECK_CU(cu.CtxPushCurrent(context));
    close_scene(&s);
}
