/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_codes.c - the codes of a CUDA driver for use of memory and addresses at the limits of the
 * documented behaviour, row by row.
 *
 *     cuda_codes --library|--table PATH      see tests/support/cuda_rows.h
 *
 * No row uses undefined behaviour, so all rows can run on a real driver. Each row has its own
 * scene: no row sees the changes of another.
 */
#include "tests/support/cuda_rows.h"

/* ---- the scene ------------------------------------------------------------------------------ */

typedef struct scene {
    uint64_t piece; /* the granularity */
    qi_cu_allocation_prop prop;
    qi_cu_access_desc desc, read_only;
    qi_cu_handle handle; /* of two pieces */
    qi_cu_handle small;  /* of one */
    qi_cu_ptr empty;     /* four reserved pieces */
    qi_cu_ptr mapped;    /* two reserved pieces, to which `handle` is mapped */
} scene;

static void open_scene(scene *s)
{
    size_t piece;
    *s = (scene){
        .prop = {.type = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
                 .location = {QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}},
        .desc = {{QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
        .read_only = {{QI_CU_MEM_LOCATION_TYPE_DEVICE, 0}, QI_CU_MEM_ACCESS_FLAGS_PROT_READ}};
    MUST(cu.MemGetAllocationGranularity(&piece, &s->prop, QI_CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    s->piece = piece;
    MUST(cu.MemCreate(&s->handle, 2 * piece, &s->prop, 0));
    MUST(cu.MemCreate(&s->small, piece, &s->prop, 0));
    MUST(cu.MemAddressReserve(&s->empty, 4 * piece, 0, 0, 0));
    MUST(cu.MemAddressReserve(&s->mapped, 2 * piece, 0, 0, 0));
    MUST(cu.MemMap(s->mapped, 2 * piece, 0, s->handle, 0));
    MUST(cu.MemSetAccess(s->mapped, 2 * piece, &s->desc, 1));
}

/* Releases what the row left. What the row released already cannot be released twice, so errors are
   ignored. */
static void close_scene(const scene *s)
{
    for (uint64_t i = 0; i < 4; i++)
        (void)cu.MemUnmap(s->empty + i * s->piece, s->piece);
    (void)cu.MemUnmap(s->empty, 2 * s->piece);
    (void)cu.MemUnmap(s->mapped, 2 * s->piece);
    (void)cu.MemRelease(s->handle);
    (void)cu.MemRelease(s->small);
    (void)cu.MemAddressFree(s->empty, 4 * s->piece);
    (void)cu.MemAddressFree(s->mapped, 2 * s->piece);
}

/* ---- the rows ------------------------------------------------------------------------------- */

static qi_cu_allocation_prop located(const scene *s, qi_cu_location_type type, int id)
{
    qi_cu_allocation_prop prop = s->prop;
    prop.location = (qi_cu_location){type, id};
    return prop;
}

static qi_cu_result create(qi_cu_allocation_prop prop, uint64_t size)
{
    qi_cu_handle handle;
    qi_cu_result result = cu.MemCreate(&handle, size, &prop, 0);
    if (!result)
        (void)cu.MemRelease(handle);
    return result;
}

static qi_cu_result reserve(uint64_t size, uint64_t alignment)
{
    qi_cu_ptr pointer;
    qi_cu_result result = cu.MemAddressReserve(&pointer, size, alignment, 0, 0);
    if (!result)
        (void)cu.MemAddressFree(pointer, size);
    return result;
}

static qi_cu_result access_to(uint64_t base, uint64_t size, int device, qi_cu_access_flags flags)
{
    qi_cu_access_desc desc = {{QI_CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
    return cu.MemSetAccess(base, size, &desc, 1);
}

static qi_cu_result retain(uint64_t address)
{
    qi_cu_handle handle;
    qi_cu_result result = cu.MemRetainAllocationHandle(&handle, (void *)(uintptr_t)address);
    if (!result)
        (void)cu.MemRelease(handle);
    return result;
}

/* Both pieces of the empty range, one mapping each. */
static qi_cu_result map_two(const scene *s)
{
    qi_cu_result result = cu.MemMap(s->empty, s->piece, 0, s->small, 0);
    return result ? result : cu.MemMap(s->empty + s->piece, s->piece, 0, s->small, 0);
}

static qi_cu_result write_read_only(const scene *s)
{
    uint64_t value = 1;
    qi_cu_result result = cu.MemSetAccess(s->mapped, 2 * s->piece, &s->read_only, 1);
    return result ? result : cu.MemcpyHtoD(s->mapped, &value, sizeof value);
}

static qi_cu_result write_remapped(const scene *s)
{
    uint64_t value = 1;
    qi_cu_result result = cu.MemUnmap(s->mapped, 2 * s->piece);
    if (!result)
        result = cu.MemMap(s->mapped, 2 * s->piece, 0, s->handle, 0);
    return result ? result : cu.MemcpyHtoD(s->mapped, &value, sizeof value);
}

static qi_cu_result released_and_read(scene *s)
{
    uint64_t value;
    qi_cu_result result = cu.MemRelease(s->handle);
    s->handle = 0;
    return result ? result : cu.MemcpyDtoH(&value, s->mapped, sizeof value);
}

/* X(row, description, expected code, call) with the scene at `s`. */
#define ALL(X)                                                                                     \
    X(reserve_none, "reserve 0 bytes", INVALID_VALUE, reserve(0, 0))                               \
    X(reserve_odd, "reserve part of a host page", INVALID_VALUE, reserve(1000, 0))                 \
    X(reserve_aligned, "reserve, alignment no power of two", INVALID_VALUE,                        \
      reserve(s->piece, 3 * s->piece))                                                             \
    X(reserve_much, "reserve 2^50 bytes", OUT_OF_MEMORY, reserve(UINT64_C(1) << 50, 0))            \
    X(free_part, "free part of a reservation", INVALID_VALUE,                                      \
      cu.MemAddressFree(s->empty, 2 * s->piece))                                                   \
    X(free_mapped, "free a reservation that is mapped", INVALID_VALUE,                             \
      cu.MemAddressFree(s->mapped, 2 * s->piece))                                                  \
    X(create_none, "create 0 bytes", INVALID_VALUE, create(s->prop, 0))                            \
    X(create_odd, "create part of a granule", INVALID_VALUE, create(s->prop, s->piece - 1))        \
    X(create_much, "create 2^50 bytes", OUT_OF_MEMORY, create(s->prop, UINT64_C(1) << 50))         \
    X(create_before, "create on device -1", INVALID_DEVICE,                                        \
      create(located(s, QI_CU_MEM_LOCATION_TYPE_DEVICE, -1), s->piece))                            \
    X(create_behind, "create on device 1000", INVALID_DEVICE,                                      \
      create(located(s, QI_CU_MEM_LOCATION_TYPE_DEVICE, 1000), s->piece))                          \
    X(create_node, "create on host node -1", INVALID_VALUE,                                        \
      create(located(s, QI_CU_MEM_LOCATION_TYPE_HOST_NUMA, -1), s->piece))                         \
    X(create_current, "create on the current host node", INVALID_VALUE,                            \
      create(located(s, QI_CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0), s->piece))                  \
    X(map_offset, "map from an offset", NOT_SUPPORTED,                                             \
      cu.MemMap(s->empty, s->piece, s->piece, s->handle, 0))                                       \
    X(map_part, "map less than the memory", NOT_SUPPORTED,                                         \
      cu.MemMap(s->empty, s->piece, 0, s->handle, 0))                                              \
    X(map_inside, "map inside a reservation", SUCCESS,                                             \
      cu.MemMap(s->empty + s->piece, s->piece, 0, s->small, 0))                                    \
    X(map_again, "map over a mapping", INVALID_VALUE,                                              \
      cu.MemMap(s->mapped, s->piece, 0, s->small, 0))                                              \
    X(map_twice, "map one memory at two places", SUCCESS, map_two(s))                              \
    X(map_large, "map more than the memory", NOT_SUPPORTED,                                        \
      cu.MemMap(s->empty, 2 * s->piece, 0, s->small, 0))                                           \
    X(map_odd, "map at part of a granule", INVALID_VALUE,                                          \
      cu.MemMap(s->empty + 4096, s->piece, 0, s->small, 0))                                        \
    X(unmap_part, "unmap part of a mapping", INVALID_VALUE, cu.MemUnmap(s->mapped, s->piece))      \
    X(unmap_less, "unmap a mapping but one byte", INVALID_VALUE,                                   \
      cu.MemUnmap(s->mapped, 2 * s->piece - 1))                                                    \
    X(unmap_two, "unmap two mappings at once", SUCCESS,                                            \
      map_two(s) ? QI_CUDA_ERROR_UNKNOWN : cu.MemUnmap(s->empty, 2 * s->piece))                    \
    X(unmap_none, "unmap what is not mapped", SUCCESS, cu.MemUnmap(s->empty, s->piece))            \
    X(access_part, "access to one granule of two", INVALID_VALUE,                                  \
      access_to(s->mapped + s->piece, s->piece, 0, QI_CU_MEM_ACCESS_FLAGS_PROT_READ))              \
    X(access_two, "access to two mappings at once", SUCCESS,                                       \
      map_two(s) ? QI_CUDA_ERROR_UNKNOWN : access_to(s->empty, 2 * s->piece, 0, 3))                \
    X(access_hole, "access where nothing is mapped", INVALID_VALUE,                                \
      access_to(s->empty, s->piece, 0, 3))                                                         \
    X(access_flags, "access with flags that are none", INVALID_VALUE,                              \
      access_to(s->mapped, 2 * s->piece, 0, 2))                                                    \
    X(access_device, "access for device 1000", INVALID_VALUE,                                      \
      access_to(s->mapped, 2 * s->piece, 1000, 3))                                                 \
    X(retain_inside, "retain by an address inside", SUCCESS, retain(s->mapped + 100))              \
    X(retain_none, "retain where nothing is mapped", INVALID_VALUE, retain(s->empty))              \
    X(release_mapped, "read what is released and mapped", SUCCESS, released_and_read(s))           \
    X(copy_read_only, "write what is to be read only", INVALID_VALUE, write_read_only(s))          \
    X(copy_remapped, "write what was mapped anew", INVALID_VALUE, write_remapped(s))

#define QI_CUDA_ERROR_SUCCESS QI_CUDA_SUCCESS

#define X(row, text, code, call)                                                                   \
    static uint64_t row(void *user)                                                                \
    {                                                                                              \
        scene *s = user;                                                                           \
        (void)s;                                                                                   \
        return call;                                                                               \
    }
ALL(X)
#undef X

enum { VIRTUAL_MEMORY = QI_CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED };

static const cuda_row ROWS[] = {
#define X(row, text, code, call)                                                                   \
    {#row, text, CUDA_ROW_CODE, QI_CUDA_ERROR_##code, row, .needs = VIRTUAL_MEMORY},
    ALL(X)
#undef X
};

static uint64_t answer_to(const cuda_row *row)
{
    scene s;
    open_scene(&s);
    uint64_t answer = row->ask(&s);
    close_scene(&s);
    return answer;
}

int main(int argc, char **argv)
{
    const cuda_rows all = {"cuda_codes", ROWS, sizeof ROWS / sizeof *ROWS, answer_to};
    return cuda_rows_main(&all, argc, argv);
}
