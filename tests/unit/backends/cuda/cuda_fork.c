/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_fork.c - the calls of the CUDA backend in the child of a fork: each is refused with the
   reason and reaches no driver. Destruction is in cuda_open.c and beside each object. */
#include <stdio.h>
#include <unistd.h>

#include "quire/cuda_array.h"
#include "quire/cuda_pool.h"
#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};
static const int32_t DEVICES[] = {0};

static cuda_bench b;
static quire_memory *memory;
static quire_allocation held;
static quire_stream *stream;

static void begin(void)
{
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(&b, &(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(POOL) |
                                                              CUDA_KIND(TILES)}));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_DEVICE, &SMALL);
    (void)cuda_bench_memory(&b, QUIRE_CUDA_TILES, &SMALL);
    held = cuda_bench_allocate(memory, 100);
    CHECK_OK(quire_cuda_stream_wrap(b.device, NULL, "default", &stream));
    const quire_cuda_multicast_options team = {
        .size = 2 * MIB, .devices = DEVICES, .device_count = 1, .handle_types = QUIRE_CUDA_FD};
    CHECK_OK(quire_cuda_multicast_create(b.device, &team, &b.multicast));
}

/* ---- the calls ----------------------------------------------------------------------------- */

static const quire_cuda_access HERE = {.location = QUIRE_CUDA_AT_DEVICE,
                                       .flags = QUIRE_CUDA_READ_WRITE};

/* Where calls write what they find. */
static union {
    quire_cuda_info info;
    quire_cuda_kind_info kind;
    quire_cuda_range range;
    quire_cuda_pool_info pool;
    quire_cuda_multicast_info multicast;
    unsigned char handle[QUIRE_CUDA_FABRIC_SIZE];
    uint64_t number;
    uint32_t index;
    int descriptor;
    void *pointer;
    quire_stream *stream;
    quire_cuda_multicast *made;
    quire_allocation allocation;
    quire_image image;
    quire_cuda_access access;
} out;

static quire_result import_handle(void)
{
    const quire_cuda_import import = {
        .type = QUIRE_CUDA_IMPORT_POINTER, .pointer = 4096, .size = 2 * MIB};
    return quire_cuda_import_range(memory, &import, &out.allocation);
}

static quire_result create_array(void)
{
    const quire_cuda_array_options options = {
        .width = 64, .height = 64, .channel_type = QUIRE_UINT8};
    return quire_cuda_array_create(b.memories[1], &options, &out.image);
}

static quire_result create_multicast(void)
{
    const quire_cuda_multicast_options options = {
        .size = 2 * MIB, .devices = DEVICES, .device_count = 1};
    return quire_cuda_multicast_create(b.device, &options, &out.made);
}

static quire_result import_multicast(void)
{
    const quire_cuda_multicast_import_options options = {.type = QUIRE_CUDA_IMPORT_FD,
                                                         .descriptor = 0,
                                                         .size = 2 * MIB,
                                                         .devices = DEVICES,
                                                         .device_count = 1,
                                                         .team_size = 1};
    return quire_cuda_multicast_import(b.device, &options, &out.made);
}

static quire_result get_access(void)
{
    out.access = HERE;
    return quire_cuda_get_access(memory, held, &out.access);
}

static quire_result get_pool_access(void)
{
    out.access = HERE;
    return quire_cuda_pool_get_access(b.device, &out.access);
}

#define CALLS(X)                                                                                   \
    X(quire_cuda_get_info(b.device, &out.info))                                                    \
    X(quire_cuda_get_kind_info(b.device, 0, &out.kind))                                            \
    X(quire_cuda_find_kind(b.device, QUIRE_CUDA_DEVICE, -1, &out.index))                           \
    X(quire_cuda_release_kept(b.device))                                                           \
    X(quire_cuda_get_range(memory, held, &out.range))                                              \
    X(quire_cuda_set_access(memory, held, &HERE, 1))                                               \
    X(get_access())                                                                                \
    X(quire_cuda_stream_wrap(b.device, NULL, "another", &out.stream))                              \
    X(quire_cuda_stream_get(stream, &out.pointer))                                                 \
    X(create_array())                                                                              \
    X(quire_cuda_pool_get_info(b.device, &out.pool))                                               \
    X(quire_cuda_pool_trim(b.device, 0))                                                           \
    X(quire_cuda_pool_set_access(b.device, &HERE, 1))                                              \
    X(get_pool_access())                                                                           \
    X(quire_cuda_export_fd(memory, held, &out.descriptor))                                         \
    X(quire_cuda_export_fabric(memory, held, out.handle))                                          \
    X(quire_cuda_export_dma_buf(memory, held, &out.descriptor))                                    \
    X(quire_cuda_export_ipc(memory, held, out.handle))                                             \
    X(import_handle())                                                                             \
    X(quire_cuda_retain_handle(b.device, 4096, &out.number))                                       \
    X(quire_cuda_release_handle(b.device, 1))                                                      \
    X(create_multicast())                                                                          \
    X(import_multicast())                                                                          \
    X(quire_cuda_multicast_export_fd(b.multicast, &out.descriptor))                                \
    X(quire_cuda_multicast_bind(b.multicast, 0, memory, held))                                     \
    X(quire_cuda_multicast_bind_address(b.multicast, 0, 2 * MIB, 2 * MIB))                         \
    X(quire_cuda_multicast_unbind(b.multicast, 0, 0, 2 * MIB))                                     \
    X(quire_cuda_multicast_get_info(b.multicast, &out.multicast))                                  \
    X(quire_cuda_multicast_map(b.multicast, 0, &out.number))                                       \
    X(quire_cuda_multicast_unmap(b.multicast, 0))

static bool is_refused(quire_result result, const char *call)
{
    bool is_well = result == QUIRE_ERROR_NOT_PERMITTED && strstr(quire_last_error(), "fork");
    if (!is_well)
        fprintf(stderr, "%s: %s, %s\n", call, quire_result_name(result), quire_last_error());
    return is_well;
}

static bool are_all_refused(void)
{
    bool is_well = true;
    uint64_t calls = b.fc->calls(NULL);
#define TRY(call) is_well &= is_refused(call, #call);
    CALLS(TRY)
#undef TRY
    return is_well && b.fc->calls(NULL) == calls;
}

UNIT(cuda_fork, a_child_is_refused_every_call_with_the_reason)
{
    begin();
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(are_all_refused());
    CHECK(child_was_well(child));
    CHECK_OK(quire_stream_destroy(&stream));
    cuda_bench_end(&b);
}
