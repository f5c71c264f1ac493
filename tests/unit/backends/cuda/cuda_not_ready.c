/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_not_ready.c - cuMemSetAccess that returns NOT_READY while other threads submit work: quire
 * retries for a while, without a lock, and then refuses with nothing left behind.
 */
#include <pthread.h>
#include <sched.h>

#include "backends/cuda/access.h"
#include "quire/cuda_pool.h"
#include "tests/support/cuda_growing.h"
#include "tests/support/unit.h"

/* More calls than quire retries. */
#define FOREVER UINT64_C(1000000)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};
static const quire_allocation_options TINY = {.size = 100};

static quire_memory *begin(cuda_bench *b, const quire_cuda_settings *settings)
{
    cuda_bench_begin(b, NULL);
    CHECK(cuda_bench_open(b, settings));
    return cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL);
}

/* The last error is the refusal after all retries. */
static void check_refusal(cuda_bench *b)
{
    CHECK_EQ(quire_last_native_code(), QI_CUDA_ERROR_NOT_READY);
    CHECK_HAS(quire_last_error(), "cuMemSetAccess");
    CHECK_HAS(quire_last_error(), "CUDA_ERROR_NOT_READY");
    CHECK_HAS(quire_last_error(), "other threads");
    CHECK(b->fc->calls("cuMemSetAccess") > 10);
    CHECK(b->fc->calls("cuMemSetAccess") < 100);
}

CUDA_UNIT_IN(cuda_not_ready, a_page_is_made_when_the_driver_is_ready, begin(b, NULL))
{
    quire_allocation a;
    b->fc->reset_counters();
    b->fc->busy(5);
    CHECK_OK(quire_allocate(memory, &TINY, &a));
    CHECK_EQ(b->fc->calls("cuMemSetAccess"), 6);
    CHECK_EQ(b->fc->calls("cuMemCreate"), 1);
}

CUDA_UNIT_IN(cuda_not_ready, a_page_that_stays_without_access_is_undone, begin(b, NULL))
{
    quire_allocation a;
    uint64_t before = b->fc->leaks();
    b->fc->reset_counters();
    b->fc->busy(FOREVER);
    CHECK_FAILS(quire_allocate(memory, &TINY, &a), QUIRE_ERROR_BACKEND_FAILURE);
    check_refusal(b);
    CHECK_EQ(b->fc->leaks(), before);
    CHECK_EQ(b->fc->usage_of(0).bytes, 0);
    b->fc->heal();
    CHECK_OK(quire_allocate(memory, &TINY, &a));
}

/* As on WSL2, where memory becomes resident when access is set. */
CUDA_UNIT_IN(cuda_not_ready, a_device_that_is_full_is_out_of_memory, begin(b, NULL))
{
    quire_allocation a;
    b->fc->set_capacity(0, 3 * MIB);
    b->fc->busy(FOREVER);
    CHECK_FAILS(quire_allocate(memory, &TINY, &a), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(quire_last_native_code(), QI_CUDA_ERROR_NOT_READY);
    CHECK_HAS(quire_last_error(), "less free memory");
    CHECK_EQ(b->fc->usage_of(0).bytes, 0);
}

/* Of another page, so that a later attempt has its memory. */
CUDA_UNIT(cuda_not_ready, kept_handles_are_released)
{
    quire_allocation small, large;
    const quire_allocation_options more = {.size = 4 * MIB};
    quire_memory *memory = begin(b, &(quire_cuda_settings){.kept_bytes = 64 * MIB});
    CHECK_OK(quire_allocate(memory, &TINY, &small));
    CHECK_OK(quire_free(memory, small));
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    CHECK_EQ(b->fc->usage_of(0).bytes, 2 * MIB);
    b->fc->busy(60); /* more than one attempt, fewer than two */
    CHECK_OK(quire_allocate(memory, &more, &large));
    CHECK_EQ(b->fc->usage_of(0).bytes, 4 * MIB);
}

CUDA_UNIT(cuda_not_ready, access_of_a_pool_is_set_when_the_driver_is_ready)
{
    const quire_cuda_access none = {QUIRE_CUDA_AT_DEVICE, 1, QUIRE_CUDA_NO_ACCESS};
    fc_options driver = {.models = {fc_model_named("h200"), fc_model_named("h200")},
                         .peers = {3, 3}};
    const int32_t peer = 1;
    cuda_bench_begin(b, &driver);
    b->fc->busy(3);
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.kinds = QUIRE_CUDA_KIND_BIT(QUIRE_CUDA_POOL),
                                                    .peers = &peer,
                                                    .peer_count = 1}));
    b->fc->busy(3);
    b->fc->reset_counters();
    CHECK_OK(quire_cuda_pool_set_access(b->device, &none, 1));
    CHECK_EQ(b->fc->calls("cuMemPoolSetAccess"), 4);
    b->fc->busy(FOREVER);
    CHECK_FAILS(quire_cuda_pool_set_access(b->device, &none, 1), QUIRE_ERROR_BACKEND_FAILURE);
    b->fc->busy(0);
}

CUDA_UNIT_IN(cuda_not_ready, access_is_set_when_the_driver_is_ready_or_stays_as_it_was,
             begin(b, NULL))
{
    quire_allocation a;
    const quire_cuda_access set = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    quire_cuda_access seen = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_NO_ACCESS};
    CHECK_OK(quire_allocate(memory, &TINY, &a));
    b->fc->reset_counters();
    b->fc->busy(FOREVER);
    CHECK_FAILS(quire_cuda_set_access(memory, a, &set, 1), QUIRE_ERROR_BACKEND_FAILURE);
    check_refusal(b);
    b->fc->busy(3);
    CHECK_OK(quire_cuda_get_access(memory, a, &seen));
    CHECK_EQ(seen.flags, QUIRE_CUDA_READ_WRITE);
    CHECK_OK(quire_cuda_set_access(memory, a, &set, 1));
    CHECK_OK(quire_cuda_get_access(memory, a, &seen));
    CHECK_EQ(seen.flags, QUIRE_CUDA_READ);
}

CUDA_UNIT_IN(cuda_not_ready, a_multicast_object_is_mapped_when_the_driver_is_ready, begin(b, NULL))
{
    static const int32_t device = 0;
    quire_allocation a;
    uint64_t address = 1;
    const quire_cuda_multicast_options options = {
        .size = 2 * MIB, .devices = &device, .device_count = 1};
    CHECK_OK(quire_allocate(memory, &TINY, &a));
    CHECK_OK(quire_cuda_multicast_create(b->device, &options, &b->multicast));
    CHECK_OK(quire_cuda_multicast_bind(b->multicast, 0, memory, a));
    b->fc->reset_counters();
    uint64_t before = b->fc->leaks();
    b->fc->busy(FOREVER);
    CHECK_FAILS(quire_cuda_multicast_map(b->multicast, device, &address),
                QUIRE_ERROR_BACKEND_FAILURE);
    CHECK(b->fc->calls("cuMemSetAccess") > 10);
    CHECK_EQ(b->fc->leaks(), before);
    CHECK_EQ(address, 0);
    b->fc->busy(2);
    CHECK_OK(quire_cuda_multicast_map(b->multicast, device, &address));
}

/* ---- pages that grow ------------------------------------------------------------------------ */

GROWING_UNIT_ON(cuda_not_ready, a_growth_succeeds_when_the_driver_is_ready_or_changes_nothing,
                growing_begin(g, NULL, 2 * MIB, 16 * MIB))
{
    growing_write(g, 0, 2 * MIB);
    g->fc->busy(FOREVER);
    CHECK_FAILS(growing_resize(g, 8 * MIB), QUIRE_ERROR_BACKEND_FAILURE);
    check_refusal(&g->b);
    growing_check_handles(g, 2 * MIB, 1);
    CHECK_EQ(g->fc->usage_of(0).bytes, 2 * MIB);
    g->fc->busy(5);
    CHECK_OK(growing_resize(g, 8 * MIB));
    growing_check_handles(g, 8 * MIB, 4);
    growing_check(g, 0, 2 * MIB);
}

typedef struct growth {
    growing *g;
    quire_result result;
    qi_atomic_u32 is_done;
} growth;

static void *grow(void *user)
{
    growth *of = user;
    of->result = growing_resize(of->g, 8 * MIB);
    qi_atomic_store_release_u32(&of->is_done, 1);
    return NULL;
}

/* Between its attempts a growth releases the page's lock: meanwhile its access changes, and the new
   bytes get the changed access. */
GROWING_UNIT(cuda_not_ready, a_growth_that_waits_holds_no_lock)
{
    static const quire_cuda_access reads = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    pthread_t thread;
    fc_address_info info;
    growth of = {.g = g};
    qi_atomic_init_u32(&of.is_done, 0);
    growing_begin(g, NULL, 2 * MIB, 16 * MIB);
    pthread_mutex_t *mutex = &growing_record(g)->elastic->mutex;
    g->fc->busy(FOREVER);
    CHECK_EQ(pthread_create(&thread, NULL, grow, &of), 0);
    while (g->fc->calls("cuMemSetAccess") < 5 && !qi_atomic_load_acquire_u32(&of.is_done))
        sched_yield();
    while (pthread_mutex_trylock(mutex))
        CHECK(!qi_atomic_load_acquire_u32(&of.is_done)); /* which held the lock to its end */
    CHECK(!qi_atomic_load_acquire_u32(&of.is_done));
    g->fc->busy(0);
    pthread_mutex_unlock(mutex);
    CHECK_OK(qi_cuda_enter(g->cuda));
    CHECK_OK(qi_cuda_page_set_access(g->cuda, growing_record(g), &reads, 1));
    qi_cuda_leave(g->cuda);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(of.result);
    for (uint64_t at = 0; at < 8 * MIB; at += 2 * MIB) {
        CHECK(g->fc->address_of(g->page.address + at, &info));
        CHECK_EQ(info.read, 1);
        CHECK_EQ(info.write, 0);
    }
}

typedef struct mapper {
    cuda_bench *b;
    uint64_t address;
    quire_result result;
    qi_atomic_u32 is_done;
} mapper;

static void *map(void *user)
{
    mapper *of = user;
    of->result = quire_cuda_multicast_map(of->b->multicast, 0, &of->address);
    qi_atomic_store_release_u32(&of->is_done, 1);
    return NULL;
}

/* Between its attempts another thread may call, and finds the mapping unfinished. */
CUDA_UNIT(cuda_not_ready, a_multicast_object_that_waits_holds_no_lock)
{
    static const int32_t device = 0;
    pthread_t thread;
    uint64_t address;
    const quire_cuda_multicast_options options = {
        .size = 2 * MIB, .devices = &device, .device_count = 1};
    mapper of = {.b = b};
    qi_atomic_init_u32(&of.is_done, 0);
    cuda_bench_start(b, NULL);
    CHECK_OK(quire_cuda_multicast_create(b->device, &options, &b->multicast));
    b->fc->reset_counters();
    b->fc->busy(FOREVER);
    CHECK_EQ(pthread_create(&thread, NULL, map, &of), 0);
    while (b->fc->calls("cuMemSetAccess") < 5)
        sched_yield();
    CHECK_FAILS(quire_cuda_multicast_map(b->multicast, 0, &address), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_cuda_multicast_unmap(b->multicast, 0), QUIRE_ERROR_WRONG_STATE);
    CHECK(!qi_atomic_load_acquire_u32(&of.is_done));
    b->fc->busy(0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(of.result);
    CHECK(of.address != 0);
    CHECK_OK(quire_cuda_multicast_unmap(b->multicast, 0));
}
