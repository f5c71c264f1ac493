/*
 * cuda.c - every call of the CUDA driver fails, at every index and with each code that is
 * documented for it, those that give something back among them; and every allocation of host
 * memory; and every function of the driver is missing in turn: nothing is left behind in the
 * driver, no host memory is lost, the library's records stay whole, and the driver, which checks
 * what it is asked, has nothing to say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "quire/cuda_array.h"
#include "quire/cuda_pool.h"
#include "tests/support/cuda_bench.h"
#include "tests/fault/fault.h"

#define MIB (UINT64_C(1) << 20)

typedef struct scenario {
    const char *name;
    const char *model; /* NULL: "h200" */
    uint32_t flags;    /* FC_, WRAPPED */
    void (*body)(cuda_bench *b);
} scenario;

/* Beside the flags: in a context of the caller's, which is there before anything fails. */
#define WRAPPED (UINT32_C(1) << 31)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};
static const quire_intent EXPORTABLE = QUIRE_INTENT_EXPORT;

static unsigned char data[64 * 1024], back[64 * 1024];

/* A device with one page kind, and a memory of it; NULL: one of them failed. */
static quire_memory *start(cuda_bench *b, quire_cuda_page_kind page_kind)
{
    const quire_cuda_settings settings = {.kinds = QUIRE_CUDA_KIND_BIT(page_kind)};
    return cuda_bench_open(b, &settings) ? cuda_bench_memory(b, page_kind, &SMALL) : NULL;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static void open_alone(cuda_bench *b)
{
    cuda_bench_open(b, NULL);
}

static void range_of(cuda_bench *b, quire_memory *m)
{
    quire_allocation a;
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000, .zero = true}, &a));
    STEP(b, quire_write(m, a, 0, data, 1000));
    memset(back, 0, 1000);
    STEP(b, quire_read(m, a, 0, back, 1000));
    CHECK(!memcmp(data, back, 1000));
    STEP(b, quire_free(m, a));
    STEP(b, quire_memory_trim(m, 0, NULL));
}

#define RANGE_OF(name, page_kind)                                                                  \
    static void name(cuda_bench *b)                                                                \
    {                                                                                              \
        range_of(b, start(b, page_kind));                                                          \
    }

RANGE_OF(device, QUIRE_CUDA_DEVICE)
RANGE_OF(plain, QUIRE_CUDA_PLAIN)
RANGE_OF(compressed, QUIRE_CUDA_COMPRESSED)
RANGE_OF(registered, QUIRE_CUDA_REGISTERED)
RANGE_OF(pinned, QUIRE_CUDA_PINNED)
RANGE_OF(combined, QUIRE_CUDA_COMBINED)
RANGE_OF(host_numa, QUIRE_CUDA_HOST_NUMA)
RANGE_OF(host, QUIRE_CUDA_HOST)
RANGE_OF(managed, QUIRE_CUDA_MANAGED)
RANGE_OF(pooled, QUIRE_CUDA_POOL)

static void with_peers(cuda_bench *b)
{
    static const int32_t peer = 1;
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(DEVICE), .peers = &peer, .peer_count = 1};
    if (cuda_bench_open(b, &settings))
        range_of(b, cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL));
}

/* The other device has a context, whose work is waited for as well. */
static void with_waits(cuda_bench *b)
{
    static const int32_t peer = 1;
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(PINNED),
                                          .peers = &peer,
                                          .peer_count = 1,
                                          .wait_before_release = true};
    if (!cuda_bench_open(b, &settings) || !cuda_bench_open_peer(b, &SMALL))
        return;
    range_of(b, cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL));
    if (!b->result)
        range_of(b, cuda_bench_memory(b, QUIRE_CUDA_PINNED, &SMALL));
}

/* Rows from and to the host, within a device, and between two where there is a second. */
static void copy_boxes(cuda_bench *b, quire_memory *to, quire_memory *from)
{
    quire_allocation target, source;
    STEP(b, quire_allocate(to, &(quire_allocation_options){.size = 9000}, &target));
    STEP(b, quire_allocate(from, &(quire_allocation_options){.size = 9000}, &source));
    const quire_copy_end there = {.memory = to, .allocation = target, .row_pitch = 128};
    const quire_copy_end here = {.memory = from, .allocation = source, .row_pitch = 256};
    STEP(b, quire_copy(&(quire_copy_options){.to = here, .host_from = data, .size = 80, .rows = 30},
                       NULL));
    STEP(b, quire_copy(&(quire_copy_options){.to = there, .from = here, .size = 80, .rows = 30},
                       NULL));
    memset(back, 0, 80 * 30);
    STEP(b,
         quire_copy(&(quire_copy_options){.from = there, .host_to = back, .size = 80, .rows = 30},
                    NULL));
    CHECK(!memcmp(back, data, 80 * 30));
    STEP(b,
         quire_fill(to, target, &(quire_fill_options){.offset = 5, .size = 100, .value = 7}, NULL));
    STEP(b, quire_free(to, target));
    STEP(b, quire_free(from, source));
}

static void copied(cuda_bench *b)
{
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (m)
        copy_boxes(b, m, m);
}

static void copied_to_peer(cuda_bench *b)
{
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    quire_memory *peer = m ? cuda_bench_open_peer(b, &SMALL) : NULL;
    if (peer)
        copy_boxes(b, peer, m);
}

static void in_chunks(cuda_bench *b)
{
    const quire_memory_options options = {.pages = {.page_size = 8 * MIB}};
    const quire_cuda_settings settings = {
        .kinds = CUDA_KIND(DEVICE), .chunk_size = 3 * MIB, .kept_bytes = 8 * MIB};
    if (!cuda_bench_open(b, &settings))
        return;
    quire_memory *m = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &options);
    for (int i = 0; m && i < 2 && !b->result; i++)
        range_of(b, m);
    if (b->result)
        return;
    STEP(b, quire_cuda_release_kept(b->device));
}

static void many_pages(cuda_bench *b)
{
    quire_allocation a[5];
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    for (int i = 0; m && i < 5; i++)
        STEP(b, quire_allocate(m, &(quire_allocation_options){.size = MIB + 1}, &a[i]));
    for (int i = 0; m && i < 5; i++)
        STEP(b, quire_free(m, a[i]));
    if (m)
        STEP(b, quire_memory_trim(m, 0, NULL));
}

/* Bytes at the border of what was there and what was added. */
static void grow_and_shrink(cuda_bench *b, const quire_backend *table, void *state,
                            const quire_native_page *page)
{
    STEP(b, table->page_resize(state, page, 2 * MIB, 8 * MIB));
    STEP(b, table->copy_to_page(state, page, 2 * MIB - 500, data, 1000));
    STEP(b, table->page_resize(state, page, 8 * MIB, 4 * MIB));
    STEP(b, table->page_resize(state, page, 4 * MIB, 10 * MIB));
    memset(back, 0, 1000);
    STEP(b, table->copy_from_page(state, page, 2 * MIB - 500, back, 1000));
    CHECK(!memcmp(data, back, 1000));
}

/* At the backend's table; the page is ended whatever happened before. */
static void growing(cuda_bench *b, quire_cuda_page_kind page_kind)
{
    const quire_cuda_settings settings = {
        .kinds = QUIRE_CUDA_KIND_BIT(page_kind), .chunk_size = 2 * MIB, .kept_bytes = 2 * MIB};
    const quire_page_request request = {.size = 2 * MIB, .alignment = 256, .max_size = 16 * MIB};
    quire_native_page page;
    if (!cuda_bench_open(b, &settings))
        return;
    const quire_backend *table = quire_device_backend(b->device);
    void *state = quire_device_state(b->device);
    STEP(b, table->page_create(state, &request, &page));
    grow_and_shrink(b, table, state, &page);
    table->page_destroy(state, &page);
}

static void growing_device(cuda_bench *b)
{
    growing(b, QUIRE_CUDA_DEVICE);
}

static void growing_host_numa(cuda_bench *b)
{
    growing(b, QUIRE_CUDA_HOST_NUMA);
}

static void budget(cuda_bench *b)
{
    quire_budget_info info;
    if (cuda_bench_open(b, NULL))
        STEP(b, quire_device_get_budget(b->device, 0, &info));
}

/* ---- other processes and devices ------------------------------------------------------------ */

static quire_memory *start_exportable(cuda_bench *b, quire_cuda_page_kind page_kind,
                                      quire_cuda_handle_types types)
{
    quire_memory_options options = SMALL;
    options.kind.intent = EXPORTABLE;
    const quire_cuda_settings settings = {.kinds = QUIRE_CUDA_KIND_BIT(page_kind),
                                          .export_types = types};
    return cuda_bench_open(b, &settings) ? cuda_bench_memory(b, page_kind, &options) : NULL;
}

static void exported(cuda_bench *b, quire_memory *m)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_export_fd(m, a, &b->descriptor));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FD, .descriptor = b->descriptor, .size = range.padded_size};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, a, 0, data, 1000));
    memset(back, 0, 1000);
    STEP(b, quire_read(m, imported, range.page_offset, back, 1000));
    CHECK(!memcmp(data, back, 1000));
    STEP(b, quire_free(m, imported));
}

static void exported_device(cuda_bench *b)
{
    exported(b, start_exportable(b, QUIRE_CUDA_DEVICE, 0));
}

/* Where the fabric is refused the descriptor stays. */
static void exported_with_fabric(cuda_bench *b)
{
    exported(b, start_exportable(b, QUIRE_CUDA_DEVICE, QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC));
}

static void exported_host_numa(cuda_bench *b)
{
    quire_memory_options options = SMALL;
    const quire_intent intent = QUIRE_INTENT_EXPORT | QUIRE_INTENT_HOST_WRITE;
    options.kind.intent = intent;
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(HOST_NUMA)};
    if (cuda_bench_open(b, &settings))
        exported(b, cuda_bench_memory(b, QUIRE_CUDA_HOST_NUMA, &options));
}

static void exported_pinned(cuda_bench *b)
{
    quire_memory_options options = SMALL;
    const quire_intent intent = QUIRE_INTENT_EXPORT | QUIRE_INTENT_HOST_WRITE;
    options.kind.intent = intent;
    const quire_cuda_settings settings = {.kinds = CUDA_KIND(PINNED)};
    if (cuda_bench_open(b, &settings))
        exported(b, cuda_bench_memory(b, QUIRE_CUDA_PINNED, &options));
}

static void fabric(cuda_bench *b)
{
    unsigned char handle[QUIRE_CUDA_FABRIC_SIZE];
    quire_allocation a, imported;
    quire_cuda_range range;
    quire_memory *m = start_exportable(b, QUIRE_CUDA_DEVICE, QUIRE_CUDA_FABRIC);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_export_fabric(m, a, handle));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_FABRIC, .fabric = handle, .size = range.padded_size};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
}

static void dma_buf(cuda_bench *b)
{
    quire_allocation a;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_export_dma_buf(m, a, &b->descriptor));
}

static void retained(cuda_bench *b)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    uint64_t handle = 0;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    STEP(b, quire_cuda_retain_handle(b->device, range.address, &handle));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_HANDLE, .handle = handle, .size = range.padded_size};
    if (!cuda_bench_step(b, quire_cuda_import_range(m, &import, &imported))) {
        quire_result failed = b->result;
        b->fc->heal(); /* the handle stayed ours */
        CHECK_OK(quire_cuda_release_handle(b->device, handle));
        b->result = failed;
    }
}

static void borrowed(cuda_bench *b)
{
    quire_allocation a, imported;
    quire_cuda_range range;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 4096}, &a));
    STEP(b, quire_cuda_get_range(m, a, &range));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_POINTER, .pointer = range.address, .size = 4096};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, imported, 0, data, 4096));
    STEP(b, quire_free(m, imported));
}

static void external(cuda_bench *b)
{
    quire_allocation imported;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    b->descriptor = memfd_create("theirs", MFD_CLOEXEC);
    CHECK(b->descriptor >= 0 && !ftruncate(b->descriptor, 8192));
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_EXTERNAL_FD, .descriptor = b->descriptor, .size = 8192};
    STEP(b, quire_cuda_import_range(m, &import, &imported));
    STEP(b, quire_write(m, imported, 4096, data, 4096));
    STEP(b, quire_free(m, imported));
}

static void shared_pool(cuda_bench *b)
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
    quire_memory *m = cuda_bench_memory(b, QUIRE_CUDA_POOL, &SMALL);
    if (!m)
        return;
    range_of(b, m);
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
static void legacy_handle(cuda_bench *b)
{
    unsigned char ipc[QUIRE_CUDA_IPC_SIZE];
    quire_allocation a, none;
    quire_memory *m = start(b, QUIRE_CUDA_PLAIN);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_export_ipc(m, a, ipc));
    const quire_cuda_import import = {.type = QUIRE_CUDA_IMPORT_IPC, .ipc = ipc, .size = 2 * MIB};
    CHECK(quire_cuda_import_range(m, &import, &none) != QUIRE_SUCCESS);
}

static void set_and_asked(cuda_bench *b)
{
    quire_cuda_access set = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    quire_allocation a;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_cuda_set_access(m, a, &set, 1));
    STEP(b, quire_cuda_get_access(m, a, &set));
    CHECK_EQ(set.flags, QUIRE_CUDA_READ);
}

static void multicast(cuda_bench *b)
{
    static const int32_t only = 0;
    const quire_cuda_multicast_options options = {.size = MIB, .devices = &only, .device_count = 1};
    quire_allocation a;
    quire_cuda_range range;
    uint64_t address = 0;
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    if (!m)
        return;
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
static void shared_multicast(cuda_bench *b)
{
    static const int32_t only = 0;
    const quire_cuda_multicast_options options = {.size = MIB,
                                                  .devices = &only,
                                                  .device_count = 1,
                                                  .handle_types =
                                                      QUIRE_CUDA_FD | QUIRE_CUDA_FABRIC};
    quire_cuda_multicast *again = NULL;
    quire_cuda_multicast_info info;
    if (!start(b, QUIRE_CUDA_DEVICE))
        return;
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

static void arrays(cuda_bench *b, bool sparse)
{
    const quire_cuda_array_options deep = {.width = 300,
                                           .height = 200,
                                           .layers = 2,
                                           .levels = 3,
                                           .channel_count = 4,
                                           .sparse = sparse};
    quire_image image, other;
    quire_memory *m = start(b, QUIRE_CUDA_TILES);
    if (!m)
        return;
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 32, .height = 32}, &image));
    STEP(b, quire_cuda_array_create(m, &deep, &other));
    STEP(b, quire_free(m, image.allocation));
    STEP(b, quire_image_create(m, &(quire_image_options){.width = 64, .depth = 9}, &image));
    STEP(b, quire_free(m, other.allocation));
}

static void deferred_arrays(cuda_bench *b)
{
    arrays(b, false);
}

static void sparse_arrays(cuda_bench *b)
{
    arrays(b, true);
}

/* ---- streams -------------------------------------------------------------------------------- */

static bool submit(cuda_bench *b, quire_stream *stream, const quire_native *page)
{
    const quire_backend *table = quire_device_backend(b->device);
    void *state = quire_device_state(b->device);
    uint64_t native = quire_stream_native(stream);
    quire_copy_job job = {.to = &page->page,
                          .to_offset = page->offset,
                          .host_from = data,
                          .size = 100,
                          .rows = 2,
                          .slices = 1,
                          .to_row = 200,
                          .from_row = 300};
    return cuda_bench_step(b,
                           table->stream_fill(state, native, &page->page, page->offset, 1000, 7)) &&
           cuda_bench_step(b, table->stream_copy(state, native, &job));
}

/* While calls fail it may not be known that what was freed on them has passed. */
static void end_stream(cuda_bench *b, quire_stream *stream)
{
    quire_result failed = b->result;
    b->fc->advance(100);
    if (quire_stream_destroy(&stream)) {
        b->fc->heal();
        CHECK_OK(quire_stream_destroy(&stream));
    }
    b->result = failed;
}

/* Points of one, which the other waits for; each is ended whatever happened before. */
static void use_streams(cuda_bench *b, quire_memory *m, quire_stream *first, quire_stream *second)
{
    quire_allocation a, freed;
    quire_native page;
    quire_point point, last;
    bool has_passed;
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &a));
    STEP(b, quire_allocate(m, &(quire_allocation_options){.size = 1000}, &freed));
    STEP(b, quire_allocation_get_native(m, a, &page));
    if (!submit(b, first, &page))
        return;
    STEP(b, quire_stream_mark(first, &point));
    STEP(b, quire_stream_wait(second, &point));
    STEP(b, quire_free_on_stream(m, freed, second));
    STEP(b, quire_stream_mark(second, &last));
    STEP(b, quire_point_has_passed(&last, &has_passed));
    if (cuda_bench_step(b, quire_point_await(&point, 1000)))
        check_failed(__FILE__, __LINE__, "the clock went on by itself");
    if (b->result != QUIRE_ERROR_BUSY)
        return;
    STEP(b, quire_point_await(&last, QUIRE_FOREVER));
    STEP(b, quire_collect(m, NULL));
}

static void streams(cuda_bench *b)
{
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    quire_stream *first = NULL, *second = NULL;
    if (!m)
        return;
    if (cuda_bench_step(b, quire_stream_create(b->device, NULL, &first)) &&
        cuda_bench_step(b, quire_stream_create(b->device, NULL, &second)))
        use_streams(b, m, first, second);
    end_stream(b, first);
    end_stream(b, second);
}

static void wrapped_stream(cuda_bench *b)
{
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    quire_stream *first = NULL, *second = NULL;
    if (!m)
        return;
    if (cuda_bench_step(b, quire_cuda_stream_wrap(b->device, NULL, NULL, &first)) &&
        cuda_bench_step(b, quire_stream_create(b->device, NULL, &second))) {
        void *native = NULL;
        quire_stream *again = NULL;
        CHECK_OK(quire_cuda_stream_get(second, &native));
        if (cuda_bench_step(b, quire_cuda_stream_wrap(b->device, native, NULL, &again)))
            use_streams(b, m, first, again);
        end_stream(b, again);
    }
    end_stream(b, first);
    end_stream(b, second);
}

static void thread_stream(cuda_bench *b)
{
    quire_memory *m = start(b, QUIRE_CUDA_DEVICE);
    quire_stream *first = NULL, *second = NULL;
    void *native = (void *)(uintptr_t)QI_CU_STREAM_PER_THREAD;
    if (!m)
        return;
    if (cuda_bench_step(b, quire_cuda_stream_wrap(b->device, native, NULL, &first)) &&
        cuda_bench_step(b, quire_stream_create(b->device, NULL, &second)))
        use_streams(b, m, first, second);
    end_stream(b, first);
    end_stream(b, second);
}

/* ---- the sweep ------------------------------------------------------------------------------ */

static const scenario scenarios[] = {
    {"a device", NULL, 0, open_alone},
    {"a device of little", "vgpu", 0, open_alone},
    {"a page of device memory", NULL, FC_DIRTY | FC_LATE, device},
    {"the same in the caller's context", NULL, FC_DIRTY | FC_LATE | WRAPPED, device},
    {"the same where there is cuMemAlloc alone", "vgpu", FC_DIRTY | FC_LATE, device},
    {"a plain page", NULL, FC_DIRTY, plain},
    {"a compressed page", NULL, FC_DIRTY, compressed},
    {"a page for registration", NULL, FC_DIRTY, registered},
    {"a pinned page", NULL, FC_DIRTY, pinned},
    {"a write-combined page", NULL, FC_DIRTY, combined},
    {"a page of a host node", NULL, FC_DIRTY, host_numa},
    {"a page of the host", NULL, FC_DIRTY, host},
    {"a managed page", NULL, FC_DIRTY, managed},
    {"a page of a pool", NULL, FC_DIRTY | FC_LATE, pooled},
    {"a pool that is shared", NULL, 0, shared_pool},
    {"copies of rows and between pages", NULL, FC_DIRTY | FC_LATE, copied},
    {"copies between devices", NULL, FC_DIRTY | FC_LATE, copied_to_peer},
    {"pages in chunks that are kept", NULL, FC_DIRTY, in_chunks},
    {"pages that come and go", NULL, 0, many_pages},
    {"a page that grows", NULL, FC_DIRTY | FC_LATE, growing_device},
    {"a page of a host node that grows", NULL, FC_DIRTY, growing_host_numa},
    {"pages that another device reaches", NULL, 0, with_peers},
    {"pages that wait for work", NULL, 0, with_waits},
    {"a budget", NULL, 0, budget},
    {"a page exported and imported", NULL, 0, exported_device},
    {"the same where the fabric is refused", NULL, 0, exported_with_fabric},
    {"the same where it is granted", "gh200", 0, exported_with_fabric},
    {"a page of a host node exported and imported", NULL, 0, exported_host_numa},
    {"a pinned page exported and imported", NULL, 0, exported_pinned},
    {"a fabric handle", "gh200", 0, fabric},
    {"a dma-buf", NULL, 0, dma_buf},
    {"a retained handle imported", NULL, 0, retained},
    {"a pointer borrowed", NULL, 0, borrowed},
    {"a legacy handle", NULL, 0, legacy_handle},
    {"memory of another API", NULL, FC_LATE, external},
    {"access", NULL, 0, set_and_asked},
    {"a multicast object", NULL, 0, multicast},
    {"a multicast object that is shared", NULL, 0, shared_multicast},
    {"the same where the fabric is granted", "gh200", 0, shared_multicast},
    {"arrays mapped whole", NULL, FC_DIRTY | FC_LATE, deferred_arrays},
    {"arrays mapped in tiles", NULL, FC_DIRTY, sparse_arrays},
    {"streams", NULL, FC_LATE, streams},
    {"streams of the caller's", NULL, FC_LATE, wrapped_stream},
    {"the default stream of a thread", NULL, FC_LATE, thread_stream},
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
static void begin(cuda_bench *b, const scenario *s)
{
    fc_options options = cuda_bench_options(s->model, s->flags & ~WRAPPED);
    options.models[1] = options.models[0];
    options.peers[0] = 2;
    options.peers[1] = 1;
    cuda_bench_begin(b, &options);
    if (s->flags & WRAPPED)
        cuda_bench_make_context(b);
}

/* What fails: calls of the driver with one of their codes, calls of one function with a code, or
   allocations of host memory. */
typedef struct target {
    const scenario *scenario;
    bool in_host_memory;
    fc_fault fault;
} target;

typedef struct counts {
    uint64_t fallible;    /* calls of the driver */
    uint64_t allocations; /* of host memory */
} counts;

/* Runs the scenario without a fault; returns the calls that can fail. */
static counts count(const scenario *s)
{
    cuda_bench b;
    begin(&b, s);
    test_memory_fail(&b.host_memory, 0, false);
    s->body(&b);
    if (b.result)
        check_failed(__FILE__, __LINE__, "%s: %s", s->name, quire_last_error());
    counts found = {b.fc->fallible_calls(), b.host_memory.calls};
    CHECK(found.fallible > 0 && found.allocations > 0);
    cuda_bench_end(&b);
    return found;
}

static bool run(void *context, uint64_t call)
{
    target *t = context;
    cuda_bench b;
    begin(&b, t->scenario);
    t->fault.call = call;
    if (!t->in_host_memory && !b.fc->fail(&t->fault))
        return false; /* no such code is documented */
    test_memory_fail(&b.host_memory, t->in_host_memory ? call : 0, false);
    t->scenario->body(&b);
    bool is_reached = t->in_host_memory ? b.host_memory.calls >= call : b.fc->failed().times > 0;
    test_memory_fail(&b.host_memory, 0, false);
    if (b.result)
        CHECK(*quire_last_error());
    cuda_bench_end(&b);
    return is_reached;
}

/* Then the driver is gone and holds nothing: tests/unit/backends/cuda/cuda_open.c covers that. */
static bool is_gone(qi_cu_result code)
{
    return code == QI_CUDA_ERROR_DEINITIALIZED || code == QI_CUDA_ERROR_CONTEXT_IS_DESTROYED ||
           code == QI_CUDA_ERROR_ILLEGAL_ADDRESS || code == QI_CUDA_ERROR_LAUNCH_FAILED ||
           code == QI_CUDA_ERROR_ECC_UNCORRECTABLE;
}

/* Every call of one function, with each of its codes. */
static void sweep_function(target *t, const char *function)
{
    qi_cu_result codes[32];
    uint32_t code_count = cuda_bench_driver()->codes(function, codes, 32);
    for (uint32_t i = 0; i < code_count; i++) {
        t->fault = (fc_fault){.function = function, .result = codes[i]};
        if (!is_gone(codes[i]))
            fault_sweep(run, t, FAULT_UNKNOWN);
    }
}

/* Each call has a few codes: the sweeps end with the code that none has. */
static void sweep(const void *scenario_)
{
    target t = {.scenario = scenario_};
    counts found = count(t.scenario);
    while (fault_sweep(run, &t, found.fallible))
        t.fault.code_index++;
    for (size_t i = 0; i < sizeof ENDS / sizeof *ENDS; i++)
        sweep_function(&t, ENDS[i]);
    t.in_host_memory = true;
    fault_sweep(run, &t, found.allocations);
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

/* The scenario with a function hidden: as far as it goes, with a reason where it does not. */
static void run_without(const scenario *s, const char *function, presence needed)
{
    cuda_bench b;
    begin(&b, s);
    CHECK(b.fc->hide(function));
    s->body(&b);
    if (needed == REQUIRED) {
        CHECK_EQ(b.result, QUIRE_ERROR_UNSUPPORTED);
        CHECK_HAS(quire_last_error(), function);
        CHECK(!b.device);
    } else if (b.result) {
        CHECK_EQ(b.result, QUIRE_ERROR_UNSUPPORTED);
        CHECK(*quire_last_error());
    }
    cuda_bench_end(&b);
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
    fault_begin(argc, argv);
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    FAULT_TABLE(scenarios, sweep);
    printf("# the same with each function of the driver missing\n");
    FAULT_TABLE(scenarios, sweep_functions);
    return fault_end();
}
