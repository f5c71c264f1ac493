/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda.c - every call of the CUDA driver fails, at every index and with each code that is
 * documented for it, those that give something back among them. So does every allocation of host
 * memory, and every function of the driver is missing in turn. Then nothing is left in the driver,
 * no host memory is lost, the library's records are whole, and the driver, which checks its
 * callers, has no message.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "quire/cuda_array.h"
#include "quire/cuda_pool.h"
#include "tests/fault/elastic.h"
#include "tests/support/cuda_bench.h"

#define MIB (UINT64_C(1) << 20)

typedef struct scenario {
    const char *name;
    const char *model; /* NULL: "h200" */
    uint32_t flags;    /* FC_, WRAPPED, ALONE */
    void (*body)(cuda_bench *b, quire_memory *m);
    quire_cuda_page_kind kind;      /* of the memory */
    quire_cuda_handle_types shares; /* it is exportable as these */
} scenario;

/* Beside the flags: in a context of the caller's, which is there before anything fails; without a
   device and a memory. */
#define WRAPPED (UINT32_C(1) << 31)
#define ALONE (UINT32_C(1) << 30)

/* Exportable as what the backend takes without being told. */
#define DEFAULT_TYPES (UINT32_C(1) << 31)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

static cuda_bench bench;

/* The memory of a scenario, on a device that has its page kind alone; NULL: one of them failed. */
static quire_memory *start(cuda_bench *b, const scenario *s)
{
    quire_memory_options options = SMALL;
    const quire_cuda_settings settings = {.kinds = QUIRE_CUDA_KIND_BIT(s->kind),
                                          .export_types = s->shares & ~DEFAULT_TYPES};
    if (s->shares)
        options.kind.intent = QUIRE_INTENT_EXPORT;
    if (s->shares && s->kind != QUIRE_CUDA_DEVICE)
        options.kind.intent |= QUIRE_INTENT_HOST_WRITE;
    return cuda_bench_open(b, &settings) ? cuda_bench_memory(b, s->kind, &options) : NULL;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void open_alone(cuda_bench *b, quire_memory *none)
{
    (void)none;
    cuda_bench_open(b, NULL);
}

static void range(cuda_bench *b, quire_memory *m)
{
    fault_range(&b->common, m, 1000, true);
}

static void with_peers(cuda_bench *b, quire_memory *m)
{
    static const int32_t peer = 1;
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(DEVICE), .peers = &peer, .peer_count = 1};
    if (cuda_bench_open(b, &settings) && (m = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL)))
        range(b, m);
}

/* The other device has a context, whose work is waited for as well. */
static void with_waits(cuda_bench *b, quire_memory *m)
{
    static const quire_cuda_page_kind kinds[] = {QUIRE_CUDA_DEVICE, QUIRE_CUDA_PINNED};
    static const int32_t peer = 1;
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PINNED),
                                          .peers = &peer,
                                          .peer_count = 1,
                                          .wait_before_release = true};
    if (!cuda_bench_open(b, &settings) || !cuda_bench_open_peer(b, &SMALL))
        return;
    for (int i = 0; i < 2 && !b->result; i++)
        if ((m = cuda_bench_memory(b, kinds[i], &SMALL)))
            range(b, m);
}

static void copied(cuda_bench *b, quire_memory *m)
{
    fault_rows(&b->common, m, m, 30);
}

static void copied_to_peer(cuda_bench *b, quire_memory *m)
{
    quire_memory *peer = cuda_bench_open_peer(b, &SMALL);
    if (peer)
        fault_rows(&b->common, peer, m, 30);
}

static void in_chunks(cuda_bench *b, quire_memory *m)
{
    const quire_memory_options options = {.pages = {.page_size = 8 * MIB}};
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(DEVICE), .chunk_size = 3 * MIB, .kept_bytes = 8 * MIB};
    if (!cuda_bench_open(b, &settings))
        return;
    m = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &options);
    for (int i = 0; m && i < 2 && !b->result; i++)
        range(b, m);
    if (b->result)
        return;
    STEP(b, quire_cuda_release_kept(b->device));
}

static void many_pages(cuda_bench *b, quire_memory *m)
{
    fault_pages(&b->common, m, MIB + 1, 5);
}

/* Bytes at the border of what was there and what was added. */
static void grow_and_shrink(cuda_bench *b, const quire_backend *table, void *state,
                            const quire_native_page *page)
{
    static const quire_span more[] = {{2 * MIB, 4 * MIB}, {10 * MIB, 2 * MIB}};
    STEP(b, table->page_back(state, page, more, 2));
    STEP(b, table->copy_to_page(state, page, 2 * MIB - 500, fault_data, 1000));
    table->page_unback(state, page, &(quire_span){4 * MIB, 2 * MIB}, 1, true);
    STEP(b, table->page_back(state, page, &(quire_span){4 * MIB, 6 * MIB}, 1));
    memset(fault_back, 0, 1000);
    STEP(b, table->copy_from_page(state, page, 2 * MIB - 500, fault_back, 1000));
    CHECK(!memcmp(fault_data, fault_back, 1000));
}

/* At the backend's table; the page is ended whatever happened before. */
static void growing_of(cuda_bench *b, quire_cuda_page_kind page_kind)
{
    const quire_cuda_settings settings = {
        .kinds = QUIRE_CUDA_KIND_BIT(page_kind), .chunk_size = 2 * MIB, .kept_bytes = 2 * MIB};
    const quire_page_request request = {
        .size = 2 * MIB, .alignment = 256, .max_size = 16 * MIB, .chunk = 2 * MIB};
    quire_native_page page;
    if (!cuda_bench_open(b, &settings))
        return;
    const quire_backend *table = quire_device_backend(b->device);
    void *state = quire_device_state(b->device);
    STEP(b, table->page_create(state, &request, &page));
    grow_and_shrink(b, table, state, &page);
    table->page_destroy(state, &page);
}

static void growing(cuda_bench *b, quire_memory *none)
{
    (void)none;
    growing_of(b, QUIRE_CUDA_DEVICE);
}

static uint64_t used_bytes(const driver_bench *b)
{
    return ((const cuda_bench *)b)->fc->usage_of(0).bytes;
}

/* Chunks of 2 MiB, or of 64 KiB where the device has such small ones. */
static void on_elastic(cuda_bench *b, uint64_t chunk, void (*body)(const fault_elastic *e))
{
    const quire_memory_options options = {
        .elastic = true, .address_space = 32 * chunk, .pages.page_size = chunk};
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(DEVICE), .kept_bytes = chunk};
    quire_memory *m;
    if (cuda_bench_open(b, &settings) && (m = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &options)))
        body(&(fault_elastic){&b->common, m, used_bytes, chunk, NULL});
}

static void lazies(cuda_bench *b, quire_memory *none)
{
    (void)none;
    on_elastic(b, 2 * MIB, fault_lazies);
}

/* The contents are copied: the chunks are small. */
static void sleepers(cuda_bench *b, quire_memory *none)
{
    (void)none;
    on_elastic(b, MIB / 16, fault_sleep);
}

static void growing_host_numa(cuda_bench *b, quire_memory *none)
{
    (void)none;
    growing_of(b, QUIRE_CUDA_HOST_NUMA);
}

static void budget(cuda_bench *b, quire_memory *none)
{
    (void)none;
    quire_budget_info info;
    if (cuda_bench_open(b, NULL))
        STEP(b, quire_device_get_budget(b->device, 0, &info));
}

/* ---- other processes and devices ------------------------------------------------------------ */

static void exported(cuda_bench *b, quire_memory *m)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_export_fd(m, a, &b->descriptor));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FD, .descriptor = b->descriptor, .size = range.padded_size};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, a, 0, fault_data, 1000));
    memset(fault_back, 0, 1000);
    STEP(b, quire_read(m, imported, range.page_offset, fault_back, 1000));
    CHECK(!memcmp(fault_data, fault_back, 1000));
    STEP(b, quire_free(m, imported));
}

static void fabric(cuda_bench *b, quire_memory *m)
{
    unsigned char handle[QUIRE_CUDA_FABRIC_SIZE];
    quire_allocation a, imported;
    quire_cuda_range range;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_export_fabric(m, a, handle));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FABRIC, .fabric = handle, .size = range.padded_size};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
}

static void dma_buf(cuda_bench *b, quire_memory *m)
{
    quire_allocation a;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_export_dma_buf(m, a, &b->descriptor));
}

static void retained(cuda_bench *b, quire_memory *m)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    uint64_t handle = 0;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_retain_handle(b->device, range.address, &handle));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_HANDLE, .handle = handle, .size = range.padded_size};
    if (!driver_bench_step(&b->common, quire_cuda_import_range(m, &import, &imported))) {
        quire_result failed = b->result;
        b->fc->heal(); /* the handle stayed ours */
        CHECK_OK(quire_cuda_release_handle(b->device, handle));
        b->result = failed;
    }
}

static void borrowed(cuda_bench *b, quire_memory *m)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 4096}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_POINTER, .pointer = range.address, .size = 4096};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, imported, 0, fault_data, 4096));
    STEP(b, quire_free(m, imported));
}

static void external(cuda_bench *b, quire_memory *m)
{
    quire_allocation imported;
    b->descriptor = memfd_create("theirs", MFD_CLOEXEC);
    CHECK(b->descriptor >= 0 && !ftruncate(b->descriptor, 8192));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_EXTERNAL_FD, .descriptor = b->descriptor, .size = 8192};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, imported, 4096, fault_data, 4096));
    STEP(b, quire_free(m, imported));
}

static void shared_pool(cuda_bench *b, quire_memory *m)
{
    static const int32_t peer = 1;
    static const quire_cuda_pool_options options = {.max_bytes = 64 * MIB,
                                                    .release_threshold = 8 * MIB};
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(POOL), .pool = &options, .peers = &peer, .peer_count = 1};
    quire_cuda_access there = {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_NO_ACCESS};
    quire_cuda_pool_info info;
    if (!cuda_bench_open(b, &settings))
        return;
    m = cuda_bench_memory(b, QUIRE_CUDA_POOL, &SMALL);
    if (!m)
        return;
    range(b, m);
    if (b->result)
        return;
    STEP(b, quire_cuda_pool_get_info(b->device, &info));
    STEP(b, quire_cuda_pool_trim(b->device, 0));
    STEP(b, quire_cuda_pool_set_access(b->device, &there, 1));
    there.flags = QUIRE_CUDA_READ;
    STEP(b, quire_cuda_pool_get_access(b->device, &there));
    CHECK_EQ(there.flags, QUIRE_CUDA_NO_ACCESS);
}

/* The sweep has one process. Calls of an export fail, and calls of an import, which the driver
   refuses in the process that exported. */
static void legacy_handle(cuda_bench *b, quire_memory *m)
{
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE];
    quire_allocation a, none;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_export_ipc(m, a, ipc));
    const quire_cuda_import import = {.type = QUIRE_CUDA_IMPORT_IPC, .ipc = ipc, .size = 2 * MIB};
    CHECK(quire_cuda_import_range(m, &import, &none) != QUIRE_SUCCESS);
}

static void set_and_asked(cuda_bench *b, quire_memory *m)
{
    quire_cuda_access set = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    quire_allocation a;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_set_access(m, a, &set, 1));
    STEP(b, quire_cuda_get_access(m, a, &set));
    CHECK_EQ(set.flags, QUIRE_CUDA_READ);
}

static void multicast(cuda_bench *b, quire_memory *m)
{
    static const int32_t only = 0;
    const quire_cuda_multicast_options options = {.size = MIB, .devices = &only, .device_count = 1};
    quire_allocation a;
    quire_cuda_range range;
    uint64_t address = 0;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_multicast_create(b->device, &options, &b->multicast));
    STEP(b, quire_cuda_multicast_bind(b->multicast, 0, m, a));
    STEP(b, quire_cuda_multicast_map(b->multicast, 0, &address));
    STEP(b, quire_cuda_multicast_unbind(b->multicast, 0, 0, range.padded_size));
    STEP(b, quire_cuda_multicast_bind_address(b->multicast, 0, range.page_address, 2 * MIB));
    STEP(b, quire_cuda_multicast_unmap(b->multicast, 0));
}

/* Exported and imported in the same process, where it is the same object. */
static void shared_multicast(cuda_bench *b, quire_memory *m)
{
    static const int32_t only = 0;
    const quire_cuda_multicast_options options = {.size = MIB,
                                                  .devices = &only,
                                                  .device_count = 1,
                                                  .handle_types =
                                                      QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC};
    quire_cuda_multicast *again = NULL;
    quire_cuda_multicast_info info;
    (void)m;
    STEP(b, quire_cuda_multicast_create(b->device, &options, &b->multicast));
    STEP(b, quire_cuda_multicast_get_info(b->multicast, &info));
    STEP(b, quire_cuda_multicast_export_fd(b->multicast, &b->descriptor));
    const quire_cuda_multicast_import_options import = {.type = QUIRE_CUDA_IMPORT_FD,
                                                        .descriptor = b->descriptor,
                                                        .size = info.size,
                                                        .team_size = 1};
    STEP(b, quire_cuda_multicast_import(b->device, &import, &again));
    quire_result result = quire_cuda_multicast_destroy(&again);
    if (result) /* refused: the rest is done now */
        CHECK_OK(quire_cuda_multicast_destroy(&again));
    STEP(b, result);
}

static void arrays(cuda_bench *b, quire_memory *m, bool sparse)
{
    const quire_cuda_array_options deep = {.width = 300,
                                           .height = 200,
                                           .layers = 2,
                                           .levels = 3,
                                           .channel_count = 4,
                                           .sparse = sparse};
    quire_image image, other;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 32, .height = 32}, &image));
    STEP(b, quire_cuda_array_create(m, &deep, &other));
    STEP(b, quire_free(m, image.allocation));
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 64, .depth = 9}, &image));
    STEP(b, quire_free(m, other.allocation));
}

static void deferred_arrays(cuda_bench *b, quire_memory *m)
{
    arrays(b, m, false);
}

static void sparse_arrays(cuda_bench *b, quire_memory *m)
{
    arrays(b, m, true);
}

/* ---- streams -------------------------------------------------------------------------------- */

static void streams(cuda_bench *b, quire_memory *m)
{
    quire_stream *first = NULL, *second = NULL;
    if (driver_bench_step(&b->common, quire_stream_create(b->device, NULL, &first)) &&
        driver_bench_step(&b->common, quire_stream_create(b->device, NULL, &second)))
        fault_streams(&b->common, m, first, second, fault_data);
    fault_end_stream(&b->common, first);
    fault_end_stream(&b->common, second);
}

static void wrapped_stream(cuda_bench *b, quire_memory *m)
{
    quire_stream *first = NULL, *second = NULL;
    if (driver_bench_step(&b->common, quire_cuda_stream_wrap(b->device, NULL, NULL, &first)) &&
        driver_bench_step(&b->common, quire_stream_create(b->device, NULL, &second))) {
        void *native = NULL;
        quire_stream *again = NULL;
        CHECK_OK(quire_cuda_stream_get(second, &native));
        if (driver_bench_step(&b->common, quire_cuda_stream_wrap(b->device, native, NULL, &again)))
            fault_streams(&b->common, m, first, again, fault_data);
        fault_end_stream(&b->common, again);
    }
    fault_end_stream(&b->common, first);
    fault_end_stream(&b->common, second);
}

static void thread_stream(cuda_bench *b, quire_memory *m)
{
    quire_stream *first = NULL, *second = NULL;
    void *native = (void *)(uintptr_t)QI_CU_STREAM_PER_THREAD;
    if (driver_bench_step(&b->common, quire_cuda_stream_wrap(b->device, native, NULL, &first)) &&
        driver_bench_step(&b->common, quire_stream_create(b->device, NULL, &second)))
        fault_streams(&b->common, m, first, second, fault_data);
    fault_end_stream(&b->common, first);
    fault_end_stream(&b->common, second);
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static const scenario scenarios[] = {
    {"a device", NULL, ALONE, open_alone, 0, 0},
    {"a device of little", "vgpu", ALONE, open_alone, 0, 0},
    {"a page of device memory", NULL, FC_DIRTY | FC_LATE, range, QUIRE_CUDA_DEVICE, 0},
    {"the same in the caller's context", NULL, FC_DIRTY | FC_LATE | WRAPPED, range,
     QUIRE_CUDA_DEVICE, 0},
    {"the same where there is cuMemAlloc alone", "vgpu", FC_DIRTY | FC_LATE, range,
     QUIRE_CUDA_DEVICE, 0},
    {"a plain page", NULL, FC_DIRTY, range, QUIRE_CUDA_PLAIN, 0},
    {"a compressed page", NULL, FC_DIRTY, range, QUIRE_CUDA_COMPRESSED, 0},
    {"a page for registration", NULL, FC_DIRTY, range, QUIRE_CUDA_REGISTERED, 0},
    {"a pinned page", NULL, FC_DIRTY, range, QUIRE_CUDA_PINNED, 0},
    {"a write-combined page", NULL, FC_DIRTY, range, QUIRE_CUDA_COMBINED, 0},
    {"a page of a host node", NULL, FC_DIRTY, range, QUIRE_CUDA_HOST_NUMA, 0},
    {"a page of the host", NULL, FC_DIRTY, range, QUIRE_CUDA_HOST, 0},
    {"a managed page", NULL, FC_DIRTY, range, QUIRE_CUDA_MANAGED, 0},
    {"a page of a pool", NULL, FC_DIRTY | FC_LATE, range, QUIRE_CUDA_POOL, 0},
    {"a pool that is shared", NULL, ALONE, shared_pool, 0, 0},
    {"copies of rows and between pages", NULL, FC_DIRTY | FC_LATE, copied, QUIRE_CUDA_DEVICE, 0},
    {"copies between devices", NULL, FC_DIRTY | FC_LATE, copied_to_peer, QUIRE_CUDA_DEVICE, 0},
    {"pages in chunks that are kept", NULL, FC_DIRTY | ALONE, in_chunks, 0, 0},
    {"pages that come and go", NULL, 0, many_pages, QUIRE_CUDA_DEVICE, 0},
    {"an elastic page", NULL, FC_DIRTY | FC_LATE | ALONE, growing, 0, 0},
    {"lazy allocations", NULL, FC_DIRTY | FC_LATE | ALONE, lazies, 0, 0},
    {"allocations that sleep", "orin", FC_DIRTY | FC_LATE | ALONE, sleepers, 0, 0},
    {"a page of a host node that grows", NULL, FC_DIRTY | ALONE, growing_host_numa, 0, 0},
    {"pages that another device reaches", NULL, ALONE, with_peers, 0, 0},
    {"pages that wait for work", NULL, ALONE, with_waits, 0, 0},
    {"a budget", NULL, ALONE, budget, 0, 0},
    {"a page exported and imported", NULL, 0, exported, QUIRE_CUDA_DEVICE, DEFAULT_TYPES},
    {"the same where the fabric is refused", NULL, 0, exported, QUIRE_CUDA_DEVICE,
     QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC},
    {"the same where it is granted", "gh200", 0, exported, QUIRE_CUDA_DEVICE,
     QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC},
    {"a page of a host node exported and imported", NULL, 0, exported, QUIRE_CUDA_HOST_NUMA,
     DEFAULT_TYPES},
    {"a pinned page exported and imported", NULL, 0, exported, QUIRE_CUDA_PINNED, DEFAULT_TYPES},
    {"a fabric handle", "gh200", 0, fabric, QUIRE_CUDA_DEVICE, QUIRE_CUDA_FABRIC},
    {"a dma-buf", NULL, 0, dma_buf, QUIRE_CUDA_DEVICE, 0},
    {"a retained handle imported", NULL, 0, retained, QUIRE_CUDA_DEVICE, 0},
    {"a pointer borrowed", NULL, 0, borrowed, QUIRE_CUDA_DEVICE, 0},
    {"a legacy handle", NULL, 0, legacy_handle, QUIRE_CUDA_PLAIN, 0},
    {"memory of another API", NULL, FC_LATE, external, QUIRE_CUDA_DEVICE, 0},
    {"access", NULL, 0, set_and_asked, QUIRE_CUDA_DEVICE, 0},
    {"a multicast object", NULL, 0, multicast, QUIRE_CUDA_DEVICE, 0},
    {"a multicast object that is shared", NULL, 0, shared_multicast, QUIRE_CUDA_DEVICE, 0},
    {"the same where the fabric is granted", "gh200", 0, shared_multicast, QUIRE_CUDA_DEVICE, 0},
    {"arrays mapped whole", NULL, FC_DIRTY | FC_LATE, deferred_arrays, QUIRE_CUDA_TILES, 0},
    {"arrays mapped in tiles", NULL, FC_DIRTY, sparse_arrays, QUIRE_CUDA_TILES, 0},
    {"streams", NULL, FC_LATE, streams, QUIRE_CUDA_DEVICE, 0},
    {"streams of the caller's", NULL, FC_LATE, wrapped_stream, QUIRE_CUDA_DEVICE, 0},
    {"the default stream of a thread", NULL, FC_LATE, thread_stream, QUIRE_CUDA_DEVICE, 0},
};

/* Of the driver's functions, those that give something back, or that the ends of pages call. */
static const char *const ENDS[] = {
    "cuMemUnmap",
    "cuMemRelease",
    "cuMemAddressFree",
    "cuMemFree",
    "cuMemFreeHost",
    "cuMemHostUnregister",
    "cuCtxSynchronize",
    "cuCtxPushCurrent",
    "cuMulticastUnbind",
    "cuEventDestroy",
    "cuStreamDestroy",
    "cuArrayDestroy",
    "cuMipmappedArrayDestroy",
    "cuDestroyExternalMemory",
    "cuMemFreeAsync",
    "cuMemPoolDestroy",
};

/* A driver with two devices that reach each other. */
static void begin(const void *scenario_)
{
    const scenario *s = scenario_;
    fc_options options = cuda_bench_options(s->model, s->flags & ~(WRAPPED | ALONE));
    options.models[1] = options.models[0];
    options.peers[0] = 2;
    options.peers[1] = 1;
    cuda_bench_begin(&bench, &options);
    if (s->flags & WRAPPED)
        cuda_bench_make_context(&bench);
}

static void run(const void *scenario_)
{
    const scenario *s = scenario_;
    quire_memory *m = s->flags & ALONE ? NULL : start(&bench, s);
    if (m || s->flags & ALONE)
        s->body(&bench, m);
}

static void end(void)
{
    cuda_bench_end(&bench);
}

/* What fails: calls of the driver with one of their codes, or calls of one function with a code. */
static fc_fault fault;

static uint64_t calls(void)
{
    return bench.fc->fallible_calls();
}

static bool fail(uint64_t call)
{
    fault.call = call;
    return bench.fc->fail(&fault); /* false: no such code is documented */
}

static bool has_failed(void)
{
    return bench.fc->failed().times > 0;
}

static void heal(void)
{
    bench.fc->heal();
}

static void advance(void)
{
    bench.fc->advance(100);
}

static const fault_driver driver = {&bench.common, begin,      run,  end,    calls,
                                    fail,          has_failed, heal, advance};

/* Then the driver is gone and holds nothing: tests/unit/backends/cuda/cuda_open.c covers that. */
static bool is_gone(qi_cu_result code)
{
    return code == QI_CUDA_ERROR_DEINITIALIZED || code == QI_CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           code == QI_CUDA_ERROR_ILLEGAL_ADDRESS || code == QI_CUDA_ERROR_LAUNCH_FAILED ||
           code == QI_CUDA_ERROR_ECC_UNCORRECTABLE;
}

/* Every call of one function, with each of its codes. */
static void sweep_function(const char *function)
{
    qi_cu_result codes[32];
    uint32_t code_count = cuda_bench_driver()->codes(function, codes, 32);
    for (uint32_t i = 0; i < code_count; i++) {
        fault = (fc_fault){.function = function, .result = codes[i]};
        if (!is_gone(codes[i]))
            fault_driver_sweep(FAULT_UNKNOWN);
    }
}

/* Each call has a few codes: the sweeps end with the code that none has. */
static void sweep(const void *scenario_)
{
    uint64_t fallible = fault_driver_calls(scenario_, QUIRE_SUCCESS);
    fault = (fc_fault){0};
    while (fault_driver_sweep(fallible))
        fault.code_index++;
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        sweep_function(ENDS[i]);
    fault_driver_sweep_memory();
}

/* ---- missing functions ---------------------------------------------------------------------- */

typedef enum presence { REQUIRED, OPTIONAL } presence;

static const struct {
    const char *name;
    presence presence;
} functions[] = {
#define ROW(name, suffix, version, presence, parameters) {"cu" #name, presence},
    QI_CU_FUNCTIONS(ROW)
#undef ROW
};

/* The scenario with a function hidden: as far as it goes, with a reason if it does not. */
static void run_without(const scenario *s, const char *function, presence needed)
{
    begin(s);
    CHECK(bench.fc->hide(function));
    run(s);
    if (needed == REQUIRED) {
        CHECK_EQ(bench.result, QUIRE_ERROR_UNSUPPORTED);
        CHECK_HAS(quire_last_error(), function);
        CHECK(!bench.device);
    } else if (bench.result) {
        CHECK_EQ(bench.result, QUIRE_ERROR_UNSUPPORTED);
        CHECK(*quire_last_error());
    }
    end();
}

static bool hide(void *context, uint64_t number)
{
    run_without(context, functions[number - 1].name, functions[number - 1].presence);
    return true;
}

static void sweep_functions(const void *scenario_)
{
    scenario s = *(const scenario *)scenario_;
    fault_sweep(hide, &s, sizeof functions / sizeof *functions);
}

int main(int argc, char **argv)
{
    fault_driver_begin(&driver, argc, argv);
    FAULT_TABLE(scenarios, sweep);
    printf("# the same with each function of the driver missing\n");
    FAULT_TABLE(scenarios, sweep_functions);
    return fault_end();
}
