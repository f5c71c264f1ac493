/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda.c - every function of quire/cuda.h with nulls, unknown values and memories of another
 * backend: the documented code, a sentence, zeroed outputs, nothing changed. No driver is needed:
 * what is wrong within a CUDA memory is in tests/unit/backends/cuda/cuda_share.c.
 */
#include <stdio.h>

#include "quire/cuda_array.h"
#include "quire/cuda_pool.h"
#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED

static bench b;
static quire_memory *memory; /* of the fake backend */
static quire_allocation held;

static void begin(void)
{
    bench_begin(&b, true);
    CHECK(bench_open(&b) && bench_memory(&b, &(quire_memory_options){.kind.mask = 2}) &&
          bench_allocate(&b, 1, &(quire_allocation_options){.size = 100}));
    memory = b.memories[0];
    held = b.held[0].allocation;
    refusal_begin(&b);
}

static void end(void)
{
    bench_end(&b);
}

/* ---- opening -------------------------------------------------------------------------------- */

static int no_context;

static void refuses(quire_result code, const quire_cuda_settings *settings)
{
    quire_device *device;
    const quire_cuda_options own = {.settings = *settings};
    const quire_cuda_wrap_options wrap = {.context = &no_context, .settings = *settings};
    REFUSE_OUT(code, device, quire_cuda_open(&own, &device));
    REFUSE_OUT(code, device, quire_cuda_wrap(&wrap, &device));
}

/* Options of the pool that contradict each other. */
static void pools(void)
{
    static int theirs;
    const quire_cuda_pool_options wrong[] = {
        {.source = (quire_cuda_pool_source)4},
        {.source = QUIRE_CUDA_POOL_OF_CALLER},
        {.source = QUIRE_CUDA_POOL_DEFAULT, .pool = &theirs},
        {.source = QUIRE_CUDA_POOL_CURRENT, .max_bytes = 1},
        {.source = QUIRE_CUDA_POOL_OF_CALLER, .pool = &theirs, .release_threshold = 1},
        {.unused = {0, 0, 0, 1}},
    };
    const quire_cuda_pool_options plain = {.source = QUIRE_CUDA_POOL_OWN};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        refuses(INVALID, &(quire_cuda_settings){.kinds = QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_POOL),
                                                .pool = &wrong[i]});
    refuses(INVALID, &(quire_cuda_settings){.pool = &plain}); /* kinds lacks it */
}

static void opening(void)
{
    static const int32_t twice[] = {1, 2, 1};
    quire_device *device;
    REFUSE(INVALID, quire_cuda_open(NULL, NULL));
    for (int i = 0; i < 4; i++) {
        quire_cuda_options own = {.device = NULL};
        quire_cuda_wrap_options wrap = {.context = &no_context};
        quire_cuda_settings settings = {.kinds = 0};
        own.unused[i] = wrap.unused[i] = settings.unused[i] = 1;
        REFUSE_OUT(INVALID, device, quire_cuda_open(&own, &device));
        REFUSE_OUT(INVALID, device, quire_cuda_wrap(&wrap, &device));
        refuses(INVALID, &settings);
    }
    refuses(INVALID, &(quire_cuda_settings){.kinds = UINT32_C(1) << QUIRE_CUDA_PAGE_KINDS});
    refuses(INVALID, &(quire_cuda_settings){.export_types = 2});
    refuses(INVALID, &(quire_cuda_settings){.peer_count = 1});
    refuses(INVALID, &(quire_cuda_settings){.peers = twice, .peer_count = 3});
    refuses(INVALID, &(quire_cuda_settings){.peers = twice, .peer_count = 1000});
    refuses(INVALID, &(quire_cuda_settings){.kinds = QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_PINNED),
                                            .numa_nodes = 1});
    pools();
    REFUSE_OUT(INVALID, device, quire_cuda_wrap(NULL, &device));
    REFUSE(INVALID, quire_cuda_wrap(&(quire_cuda_wrap_options){.context = &no_context}, NULL));
    REFUSE_OUT(INVALID, device,
               quire_cuda_wrap(&(quire_cuda_wrap_options){.context = NULL}, &device));
    /* a missing driver, and a file that is no library */
    const quire_cuda_options nowhere = {.library = "/nonexistent/libcuda.so.1"};
    REFUSE_OUT(UNSUPPORTED, device, quire_cuda_open(&nowhere, &device));
    CHECK_HAS(quire_last_error(), "CUDA driver not found");
    const quire_cuda_options other = {.library = "libc.so.6"};
    REFUSE_OUT(UNSUPPORTED, device, quire_cuda_open(&other, &device));
    CHECK_HAS(quire_last_error(), "the CUDA driver has no cuInit");
}

/* ---- queries -------------------------------------------------------------------------------- */

static void asking(void)
{
    quire_cuda_info info;
    quire_cuda_kind_info kind_info;
    quire_cuda_range range;
    uint32_t kind;
    REFUSE_OUT(INVALID, info, quire_cuda_get_info(NULL, &info));
    REFUSE_OUT(INVALID, info, quire_cuda_get_info(b.device, &info));
    REFUSE(INVALID, quire_cuda_get_info(b.device, NULL));
    REFUSE_OUT(INVALID, kind_info, quire_cuda_get_kind_info(NULL, 0, &kind_info));
    REFUSE_OUT(INVALID, kind_info, quire_cuda_get_kind_info(b.device, 0, &kind_info));
    REFUSE(INVALID, quire_cuda_get_kind_info(b.device, 0, NULL));
    REFUSE_OUT(INVALID, kind, quire_cuda_find_kind(NULL, QUIRE_CUDA_DEVICE, -1, &kind));
    REFUSE_OUT(INVALID, kind, quire_cuda_find_kind(b.device, QUIRE_CUDA_DEVICE, -1, &kind));
    REFUSE(INVALID, quire_cuda_find_kind(b.device, QUIRE_CUDA_DEVICE, -1, NULL));
    REFUSE(INVALID, quire_cuda_release_kept(NULL));
    REFUSE(INVALID, quire_cuda_release_kept(b.device));
    REFUSE_OUT(INVALID, range, quire_cuda_get_range(NULL, held, &range));
    REFUSE_OUT(INVALID, range, quire_cuda_get_range(memory, held, &range));
    REFUSE_OUT(INVALID, range, quire_cuda_get_range(memory, (quire_allocation){0}, &range));
    REFUSE(INVALID, quire_cuda_get_range(memory, held, NULL));
}

static void access(void)
{
    quire_cuda_access list[QUIRE_CUDA_MAX_ACCESSES + 1];
    for (int32_t i = 0; i <= QUIRE_CUDA_MAX_ACCESSES; i++)
        list[i] = (quire_cuda_access){QUIRE_CUDA_AT_DEVICE, i, QUIRE_CUDA_READ};
    REFUSE(INVALID, quire_cuda_set_access(NULL, held, list, 1));
    REFUSE(INVALID, quire_cuda_set_access(memory, held, NULL, 1));
    REFUSE(INVALID, quire_cuda_set_access(memory, held, list, 0));
    REFUSE(INVALID, quire_cuda_set_access(memory, held, list, QUIRE_CUDA_MAX_ACCESSES + 1));
    REFUSE(INVALID, quire_cuda_set_access(memory, held, list, 1));
    const quire_cuda_access wrong[] = {
        {(quire_cuda_location)0, 0, QUIRE_CUDA_READ},
        {(quire_cuda_location)4, 0, QUIRE_CUDA_READ},
        {QUIRE_CUDA_AT_DEVICE, -1, QUIRE_CUDA_READ},
        {QUIRE_CUDA_AT_DEVICE, 0, (quire_cuda_access_flags)2},
    };
    for (int i = 0; i < 4; i++)
        REFUSE(INVALID, quire_cuda_set_access(memory, held, &wrong[i], 1));
    list[1] = list[0];
    REFUSE(INVALID, quire_cuda_set_access(memory, held, list, 2));
    CHECK_HAS(quire_last_error(), "the same");
    REFUSE(INVALID, quire_cuda_get_access(NULL, held, list));
    REFUSE(INVALID, quire_cuda_get_access(memory, held, NULL));
    REFUSE(INVALID, quire_cuda_get_access(memory, held, list));
    list[0].location = (quire_cuda_location)9;
    REFUSE(INVALID, quire_cuda_get_access(memory, held, list));
}

static void pool_calls(void)
{
    quire_cuda_pool_info info;
    quire_cuda_access access = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ_WRITE};
    REFUSE_OUT(INVALID, info, quire_cuda_pool_get_info(NULL, &info));
    REFUSE_OUT(INVALID, info, quire_cuda_pool_get_info(b.device, &info));
    REFUSE(INVALID, quire_cuda_pool_get_info(b.device, NULL));
    REFUSE(INVALID, quire_cuda_pool_trim(NULL, 0));
    REFUSE(INVALID, quire_cuda_pool_trim(b.device, UINT64_MAX));
    REFUSE(INVALID, quire_cuda_pool_set_access(NULL, &access, 1));
    REFUSE(INVALID, quire_cuda_pool_set_access(b.device, &access, 1));
    REFUSE(INVALID, quire_cuda_pool_set_access(b.device, NULL, 1));
    REFUSE(INVALID, quire_cuda_pool_get_access(NULL, &access));
    REFUSE(INVALID, quire_cuda_pool_get_access(b.device, &access));
    REFUSE(INVALID, quire_cuda_pool_get_access(b.device, NULL));
}

/* ---- other processes and APIs --------------------------------------------------------------- */

static void other_apis(void)
{
    quire_cuda_import import = {.type = QUIRE_CUDA_IMPORT_FD, .size = 4096};
    unsigned char fabric[QUIRE_CUDA_FABRIC_SIZE], ipc[QUIRE_CUDA_IPC_SIZE];
    quire_allocation made;
    uint64_t handle;
    int descriptor = 5;
    REFUSE(INVALID, quire_cuda_export_fd(memory, held, &descriptor));
    CHECK_EQ(descriptor, -1);
    REFUSE(INVALID, quire_cuda_export_fd(memory, held, NULL));
    REFUSE(INVALID, quire_cuda_export_fd(NULL, held, &descriptor));
    REFUSE_OUT(INVALID, fabric, quire_cuda_export_fabric(memory, held, fabric));
    REFUSE_OUT(INVALID, fabric, quire_cuda_export_fabric(NULL, held, fabric));
    REFUSE(INVALID, quire_cuda_export_fabric(memory, held, NULL));
    REFUSE_OUT(INVALID, ipc, quire_cuda_export_ipc(memory, held, ipc));
    REFUSE_OUT(INVALID, ipc, quire_cuda_export_ipc(NULL, held, ipc));
    REFUSE(INVALID, quire_cuda_export_ipc(memory, held, NULL));
    descriptor = 5;
    REFUSE(INVALID, quire_cuda_export_dma_buf(memory, held, &descriptor));
    CHECK_EQ(descriptor, -1);
    REFUSE(INVALID, quire_cuda_export_dma_buf(NULL, held, &descriptor));
    REFUSE(INVALID, quire_cuda_export_dma_buf(memory, held, NULL));
    const quire_view view = {held, 0, 0};
    quire_cuda_dma_buf range;
    REFUSE(INVALID, quire_cuda_export_dma_buf_range(memory, &view, &range));
    CHECK_EQ(range.descriptor, -1);
    REFUSE(INVALID, quire_cuda_export_dma_buf_range(NULL, &view, &range));
    REFUSE(INVALID, quire_cuda_export_dma_buf_range(memory, NULL, &range));
    REFUSE(INVALID, quire_cuda_export_dma_buf_range(memory, &view, NULL));
    REFUSE_OUT(INVALID, made, quire_cuda_import_range(memory, &import, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_import_range(NULL, &import, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_import_range(memory, NULL, &made));
    REFUSE(INVALID, quire_cuda_import_range(memory, &import, NULL));
    REFUSE_OUT(INVALID, handle, quire_cuda_retain_handle(NULL, 4096, &handle));
    REFUSE_OUT(INVALID, handle, quire_cuda_retain_handle(b.device, 4096, &handle));
    REFUSE_OUT(INVALID, handle, quire_cuda_retain_handle(b.device, 0, &handle));
    REFUSE(INVALID, quire_cuda_retain_handle(b.device, 4096, NULL));
    REFUSE(INVALID, quire_cuda_release_handle(NULL, 1));
    REFUSE(INVALID, quire_cuda_release_handle(b.device, 1));
    REFUSE(INVALID, quire_cuda_release_handle(b.device, 0));
}

static void multicast(void)
{
    static const int32_t only = 0;
    const quire_cuda_multicast_options options = {.size = 1, .devices = &only, .device_count = 1};
    quire_cuda_multicast *made;
    const quire_cuda_multicast_import_options import = {
        .type = QUIRE_CUDA_IMPORT_FD, .size = 1, .team_size = 1};
    quire_cuda_multicast_info info;
    unsigned char fabric[QUIRE_CUDA_FABRIC_SIZE];
    uint64_t address;
    int descriptor = 5;
    REFUSE_OUT(INVALID, made, quire_cuda_multicast_create(NULL, &options, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_multicast_create(b.device, &options, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_multicast_create(b.device, NULL, &made));
    REFUSE(INVALID, quire_cuda_multicast_create(b.device, &options, NULL));
    REFUSE(INVALID, quire_cuda_multicast_bind(NULL, 0, memory, held));
    REFUSE(INVALID, quire_cuda_multicast_unbind(NULL, 0, 0, 1));
    REFUSE(INVALID, quire_cuda_multicast_bind_address(NULL, 0, 4096, 1));
    REFUSE_OUT(INVALID, address, quire_cuda_multicast_map(NULL, 0, &address));
    REFUSE(INVALID, quire_cuda_multicast_unmap(NULL, 0));
    REFUSE(INVALID, quire_cuda_multicast_export_fd(NULL, &descriptor));
    CHECK_EQ(descriptor, -1);
    REFUSE_OUT(INVALID, fabric, quire_cuda_multicast_export_fabric(NULL, fabric));
    REFUSE_OUT(INVALID, made, quire_cuda_multicast_import(NULL, &import, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_multicast_import(b.device, &import, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_multicast_import(b.device, NULL, &made));
    REFUSE(INVALID, quire_cuda_multicast_import(b.device, &import, NULL));
    REFUSE_OUT(INVALID, info, quire_cuda_multicast_get_info(NULL, &info));
    REFUSE(INVALID, quire_cuda_multicast_destroy(NULL));
    made = NULL;
    HARMLESS(&b, CHECK_OK(quire_cuda_multicast_destroy(&made)));
}

static void arrays(void)
{
    const quire_cuda_array_options options = {.width = 8};
    const quire_image none = {{0}};
    quire_image made, of_range;
    quire_cuda_array_info info;
    of_range.allocation = held;
    REFUSE_OUT(INVALID, made, quire_cuda_array_create(NULL, &options, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_array_create(memory, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_array_create(memory, &options, &made));
    REFUSE(INVALID, quire_cuda_array_create(memory, &options, NULL));
    REFUSE_OUT(INVALID, info, quire_cuda_array_get_info(NULL, of_range, &info));
    REFUSE_OUT(INVALID, info, quire_cuda_array_get_info(memory, of_range, &info));
    REFUSE_OUT(INVALID, info, quire_cuda_array_get_info(memory, none, &info));
    REFUSE(INVALID, quire_cuda_array_get_info(memory, of_range, NULL));
}

static void streams(void)
{
    quire_stream *made, *held_stream = NULL;
    void *native;
    REFUSE_OUT(INVALID, made, quire_cuda_stream_wrap(NULL, NULL, NULL, &made));
    REFUSE_OUT(INVALID, made, quire_cuda_stream_wrap(b.device, NULL, NULL, &made));
    REFUSE(INVALID, quire_cuda_stream_wrap(b.device, NULL, NULL, NULL));
    CHECK_OK(quire_stream_create(b.device, &(quire_stream_options){.capture = true}, &held_stream));
    REFUSE_OUT(INVALID, native, quire_cuda_stream_get(NULL, &native));
    REFUSE_OUT(INVALID, native, quire_cuda_stream_get(held_stream, &native));
    REFUSE(INVALID, quire_cuda_stream_get(held_stream, NULL));
    CHECK_OK(quire_stream_destroy(&held_stream));
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"opening", opening},
    {"asking", asking},
    {"access", access},
    {"pools", pool_calls},
    {"other APIs and processes", other_apis},
    {"multicast", multicast},
    {"arrays", arrays},
    {"streams", streams},
    {NULL, NULL},
};

static const char *const headers[] = {"cuda.h", "cuda_array.h", "cuda_pool.h", "cuda_share.h",
                                      NULL};

const misuse_area misuse_cuda = {"cuda", begin, end, cases, headers};
