/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_pool.c - pages of the CUDA backend from memory pools: pools of quire, of the caller and of
   the device; the order of their use, captures, numbers, access; and refusals. */
#include <unistd.h>

#include "quire/cuda_pool.h"
#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define MIB (UINT64_C(1) << 20)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};

static cuda_bench b;
#define CASE(name) UNIT_WITHIN(cuda_pool, name, (void)0, cuda_bench_end(&b))
static quire_memory *memory;

static bool open_pool(const fc_options *driver, const quire_cuda_pool_options *pool)
{
    cuda_bench_begin(&b, driver);
    return cuda_bench_open(&b, &(quire_cuda_settings){.kinds = CUDA_KIND(POOL), .pool = pool});
}

static void begin(const fc_options *driver, const quire_cuda_pool_options *pool)
{
    CHECK(open_pool(driver, pool));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
}

static quire_allocation allocate(uint64_t size)
{
    quire_allocation a;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = size}, &a));
    return a;
}

static quire_cuda_pool_info info_of(void)
{
    quire_cuda_pool_info info;
    CHECK_OK(quire_cuda_pool_get_info(b.device, &info));
    return info;
}

static void release_all(quire_allocation a)
{
    CHECK_OK(quire_free(memory, a));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
}

UNIT(cuda_pool, pages_come_from_a_pool_of_quire)
{
    char in[100], out[100] = {0};
    quire_cuda_range range;
    quire_cuda_info info;
    begin(NULL, NULL);
    CHECK_OK(quire_cuda_get_info(b.device, &info));
    CHECK(info.has_pools);
    quire_allocation a = allocate(100);
    CHECK_EQ(b.fc->calls("cuMemAllocFromPoolAsync"), 1);
    uint64_t calls = b.fc->calls(NULL);
    CHECK_OK(quire_free(memory, allocate(100)));
    CHECK_EQ(b.fc->calls(NULL), calls); /* a suballocation makes no call */
    CHECK_OK(quire_cuda_get_range(memory, a, &range));
    CHECK_EQ(range.handle_count, 0);
    CHECK_EQ(range.padded_size, 2 * MIB);
    memset(in, 7, sizeof in);
    CHECK_OK(quire_write(memory, a, 0, in, sizeof in));
    CHECK_OK(quire_read(memory, a, 0, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_EQ(b.fc->live(FC_POOL), 1);
    CHECK_EQ(b.fc->live(FC_POOLED), 1);
    release_all(a);
    CHECK_EQ(b.fc->live(FC_POOLED), 0);
    CHECK_EQ(b.fc->calls("cuMemFreeAsync"), 1);
    cuda_bench_end(&b); /* nothing is alive, the pool neither */
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Work waits until something waits for it. The emulated driver reports memory that is used before
   it is there or freed while it is used. */
CASE(every_stream_uses_a_page_at_once_until_its_end)
{
    fc_options late = cuda_bench_options(NULL, FC_LATE);
    quire_stream *stream = NULL;
    char bytes[100] = {0};
    cuda_bench_begin(&b, &late);
    CHECK(cuda_bench_open(
        &b, &(quire_cuda_settings){.kinds = CUDA_KIND(POOL), .wait_before_release = true}));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
    CHECK_OK(quire_stream_create(b.device, NULL, &stream));
    quire_allocation a = allocate(100);
    CHECK_OK(quire_fill(memory, a, &(quire_fill_options){.value = 3, .stream = stream}, NULL));
    release_all(a); /* waits for the work of the context */
    CHECK(!b.fc->message(0));
    a = allocate(100);
    CHECK_OK(quire_write(memory, a, 0, bytes, sizeof bytes));
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(pages_are_no_part_of_a_capture)
{
    static const qi_cu_capture_mode modes[] = {QI_CU_STREAM_CAPTURE_MODE_GLOBAL,
                                               QI_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                               QI_CU_STREAM_CAPTURE_MODE_RELAXED};
    qi_cu_graph graph;
    cuda_bench_begin(&b, NULL);
    CHECK(cuda_bench_open(&b, &(quire_cuda_settings){.kinds = CUDA_KIND(POOL)}));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
    cuda_bench_enter(b.device);
    qi_cu_stream theirs = cuda_bench_make_stream(QI_CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(CUDA_BENCH_CALL(&b, StreamBeginCapture, 10010)(theirs, modes[i]), 0);
        quire_allocation a = allocate(100);
        release_all(a);
        CHECK_EQ(CUDA_BENCH_CALL(&b, StreamEndCapture, 10000)(theirs, &graph), 0);
        CHECK_EQ(info_of().used, 0);
    }
    cuda_bench_end_stream(theirs);
    cuda_bench_leave();
}

/* ---- whose pool ----------------------------------------------------------------------------- */

/* A pool of another library, of device `device`. */
static qi_cu_pool make_theirs(const fc_options *driver, int device)
{
    qi_cu_pool pool = NULL;
    const qi_cu_pool_props props = {
        .allocType = QI_CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    cuda_bench_begin(&b, driver);
    CHECK_EQ(CUDA_BENCH_CALL(&b, Init, 2000)(0), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemPoolCreate, 11020)(&pool, &props), 0);
    return pool;
}

static bool open_theirs(qi_cu_pool pool)
{
    const quire_cuda_pool_options options = {.source = QUIRE_CUDA_POOL_OF_CALLER, .pool = pool};
    return cuda_bench_open(&b, &(quire_cuda_settings){.kinds = CUDA_KIND(POOL), .pool = &options});
}

CASE(a_pool_of_the_caller_is_shared_and_stays)
{
    qi_cu_ptr other = 0;
    uint64_t threshold = 64 * MIB;
    qi_cu_pool pool = make_theirs(NULL, 0);
    CHECK(open_theirs(pool));
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemPoolSetAttribute,
                             11020)(pool, QI_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold),
             0);
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
    quire_allocation a = allocate(100);
    cuda_bench_enter(b.device);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemAllocFromPoolAsync, 11020)(&other, 6 * MIB, pool, NULL), 0);
    quire_cuda_pool_info info = info_of();
    CHECK(info.pool == pool && info.source == QUIRE_CUDA_POOL_OF_CALLER);
    CHECK_EQ(info.used, 8 * MIB); /* of both */
    CHECK_EQ(info.release_threshold, 64 * MIB);
    release_all(a);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemFreeAsync, 11020)(other, NULL), 0);
    info = info_of();
    CHECK_EQ(info.used, 0);
    CHECK_EQ(info.used_high, 8 * MIB);
    CHECK_EQ(info.reserved, 8 * MIB);
    CHECK_EQ(info.reserved_high, 8 * MIB);
    CHECK_OK(quire_cuda_pool_trim(b.device, 4 * MIB));
    CHECK_EQ(info_of().reserved, 4 * MIB);
    CHECK_OK(quire_cuda_pool_trim(b.device, 0));
    CHECK_EQ(info_of().reserved, 0);
    cuda_bench_leave();
    quire_memory_destroy_all(&b.memories[0]);
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(b.fc->live(FC_POOL), 1);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemPoolDestroy, 11020)(pool), 0);
    b.memory_count = 0;
}

CASE(the_devices_own_pools_serve)
{
    qi_cu_pool pool = make_theirs(NULL, 0), standard = NULL;
    CHECK_EQ(CUDA_BENCH_CALL(&b, DeviceSetMemPool, 11020)(0, pool), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, DeviceGetDefaultMemPool, 11020)(&standard, 0), 0);
    const qi_cu_pool expected[] = {pool, standard};
    const quire_cuda_pool_source sources[] = {QUIRE_CUDA_POOL_CURRENT, QUIRE_CUDA_POOL_DEFAULT};
    for (int i = 0; i < 2; i++) {
        const quire_cuda_pool_options options = {.source = sources[i]};
        CHECK(cuda_bench_open(&b,
                              &(quire_cuda_settings){.kinds = CUDA_KIND(POOL), .pool = &options}));
        memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
        release_all(allocate(100));
        CHECK(info_of().pool == expected[i]);
        CHECK_OK(quire_memory_destroy(&b.memories[0]));
        CHECK_OK(quire_device_destroy(&b.device));
        b.memory_count = 0;
    }
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemPoolDestroy, 11020)(pool), 0);
}

CASE(a_pool_of_another_device_is_refused)
{
    quire_allocation none;
    fc_options driver = cuda_bench_options(NULL, 0);
    driver.models[1] = driver.models[0];
    driver.peers[0] = 2;
    driver.peers[1] = 1;
    const qi_cu_access_desc here = {.location = {.type = QI_CU_MEM_LOCATION_TYPE_DEVICE},
                                    .flags = QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    qi_cu_pool pool = make_theirs(&driver, 1);
    CHECK(!open_theirs(pool));
    CHECK_EQ(b.result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot access the pool");
    /* with access it is known by its first page */
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemPoolSetAccess, 11020)(pool, &here, 1), 0);
    CHECK(open_theirs(pool));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &none),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "memory of device 1");
    CHECK_EQ(b.fc->live(FC_POOLED), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&b, MemPoolDestroy, 11020)(pool), 0);
}

/* ---- limits and access ---------------------------------------------------------------------- */

UNIT(cuda_pool, a_pool_has_a_maximum_and_keeps_up_to_its_threshold)
{
    quire_allocation none;
    const quire_cuda_pool_options options = {.max_bytes = 8 * MIB, .release_threshold = 6 * MIB};
    begin(NULL, &options);
    quire_allocation a = allocate(8 * MIB);
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "memory");
    release_all(a);
    quire_cuda_pool_info info = info_of();
    CHECK_EQ(info.used, 0);
    CHECK_EQ(info.reserved, 6 * MIB);
    CHECK_EQ(info.release_threshold, 6 * MIB);
    CHECK_EQ(info.reserved_high, 8 * MIB);
    cuda_bench_end(&b);
    fc_options old = cuda_bench_options(NULL, 0);
    old.version = 12010;
    CHECK(!open_pool(&old, &options));
    CHECK_EQ(b.result, UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "12.2");
    cuda_bench_end(&b);
}

/* Which devices may write the page of an allocation, one bit each. */
static uint32_t writers(quire_allocation a)
{
    quire_cuda_range range;
    fc_address_info info;
    CHECK_OK(quire_cuda_get_range(memory, a, &range));
    CHECK(b.fc->address_of(range.address, &info));
    return info.write;
}

UNIT(cuda_pool, other_devices_get_access_to_the_whole_pool)
{
    static const int32_t peer = 1;
    fc_options driver = cuda_bench_options(NULL, 0);
    driver.models[1] = driver.models[2] = driver.models[0];
    driver.peers[0] = 2;
    quire_cuda_access there = {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_READ_WRITE};
    quire_cuda_access far = {QUIRE_CUDA_AT_DEVICE, 2, QUIRE_CUDA_READ};
    quire_cuda_access host = {QUIRE_CUDA_AT_HOST, 0, QUIRE_CUDA_READ};
    quire_cuda_access own = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    begin(&driver, NULL);
    quire_allocation a = allocate(100);
    CHECK_EQ(writers(a), 1);
    CHECK_OK(quire_cuda_pool_set_access(b.device, &there, 1));
    CHECK_EQ(writers(a), 3);
    there.flags = QUIRE_CUDA_NO_ACCESS;
    CHECK_OK(quire_cuda_pool_get_access(b.device, &there));
    CHECK_EQ(there.flags, QUIRE_CUDA_READ_WRITE);
    const quire_cuda_access both[] = {{QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_NO_ACCESS}, far};
    CHECK_FAILS(quire_cuda_pool_set_access(b.device, both, 2), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "cannot reach");
    CHECK_EQ(writers(a), 3); /* nothing changed */
    CHECK_FAILS(quire_cuda_pool_set_access(b.device, &host, 1), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_pool_set_access(b.device, &own, 1), INVALID);
    CHECK_FAILS(quire_cuda_pool_set_access(b.device, both, 0), INVALID);
    CHECK_FAILS(quire_cuda_set_access(memory, a, &there, 1), UNSUPPORTED); /* not page by page */
    host.location = (quire_cuda_location)9;
    CHECK_FAILS(quire_cuda_pool_get_access(b.device, &host), INVALID);
    cuda_bench_end(&b);
    cuda_bench_begin(&b, &driver); /* peers of the settings */
    CHECK(cuda_bench_open(
        &b, &(quire_cuda_settings){.kinds = CUDA_KIND(POOL), .peers = &peer, .peer_count = 1}));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
    CHECK_EQ(writers(allocate(100)), 3);
    cuda_bench_end(&b);
}

/* ---- refusals ------------------------------------------------------------------------------- */

UNIT(cuda_pool, what_a_pool_cannot_do_is_refused)
{
    int none = 5;
    quire_allocation made;
    quire_cuda_pool_info info;
    const quire_intent exportable = QUIRE_INTENT_EXPORT;
    quire_memory_options options = SMALL;
    options.kind.intent = exportable;
    cuda_bench_begin(&b, NULL);
    CHECK(
        cuda_bench_open(&b, &(quire_cuda_settings){.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(POOL)}));
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &SMALL);
    quire_allocation a = allocate(100);
    CHECK_FAILS(quire_cuda_export_fd(memory, a, &none), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_export_dma_buf(memory, a, &none), UNSUPPORTED);
    CHECK_EQ(none, -1);
    memory = cuda_bench_memory(&b, QUIRE_CUDA_POOL, &options);
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &made),
                UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "pool");
    cuda_bench_end(&b);
    cuda_bench_start(&b, NULL); /* without pool pages */
    CHECK_FAILS(quire_cuda_pool_get_info(b.device, &info), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_pool_trim(b.device, 0), UNSUPPORTED);
    cuda_bench_end(&b);
    fc_options less = cuda_bench_options("vgpu", 0);
    CHECK(!open_pool(&less, NULL));
    CHECK_EQ(b.result, UNSUPPORTED);
    cuda_bench_end(&b);
}

/* The child may only destroy, and does not call the driver. */
static bool is_refused_in_child(void)
{
    quire_cuda_pool_info info;
    uint64_t calls = b.fc->calls(NULL);
    return quire_cuda_pool_get_info(b.device, &info) == QUIRE_ERROR_NOT_PERMITTED &&
           quire_cuda_pool_trim(b.device, 0) == QUIRE_ERROR_NOT_PERMITTED &&
           !quire_memory_destroy(&b.memories[0]) && !quire_device_destroy(&b.device) &&
           !b.host_memory.blocks && b.fc->calls(NULL) == calls;
}

CASE(a_forked_child_leaves_the_pool_to_its_parent)
{
    begin(NULL, NULL);
    CHECK_OK(quire_free(memory, allocate(100))); /* an empty page stays */
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        child_end(is_refused_in_child());
    CHECK(child_was_well(child));
    allocate(4 * MIB);
}

UNIT(cuda_pool, a_lost_device_keeps_nothing_back)
{
    begin(NULL, NULL);
    quire_allocation a = allocate(100);
    b.fc->lose(0, QI_CUDA_ERROR_ILLEGAL_ADDRESS);
    release_all(a);
    CHECK_FAILS(quire_cuda_pool_trim(b.device, 0), QUIRE_ERROR_DEVICE_LOST);
    CHECK_OK(quire_memory_destroy(&b.memories[0]));
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(b.host_memory.blocks, 0);
}
