/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_cuda_threads.c - the fake CUDA driver from many threads at once: each creates, maps, fills,
 * reads and releases memory in its own streams, two threads on each device.
 *
 *     fake_cuda_threads [--steps N]
 */
#include "tests/support/plain.h"

#include <pthread.h>

#include "tests/support/cuda/fixture.h"

enum { THREADS = 6, DEVICES = 3 };

static uint64_t steps;

typedef struct worker {
    pthread_t thread;
    int device;
    unsigned char number;
    qi_cu_stream stream;
    uint64_t *pinned;
} worker;

/* It reads through one mapping what it wrote through the other. */
static void step(const worker *w, unsigned char value)
{
    qi_cu_handle handle;
    qi_cu_allocation_prop prop = fc_on_device(w->device);
    qi_cu_access_desc desc = fc_for_device(w->device, QI_CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    qi_cu_ptr first = fc_reserve(2 * FC_PIECE), second = first + FC_PIECE;
    CHECK_CU(cu.MemCreate(&handle, FC_PIECE, &prop, 0));
    CHECK_CU(cu.MemMap(first, FC_PIECE, 0, handle, 0));
    CHECK_CU(cu.MemMap(second, FC_PIECE, 0, handle, 0));
    CHECK_CU(cu.MemRelease(handle));
    CHECK_CU(cu.MemSetAccess(first, 2 * FC_PIECE, &desc, 1));
    CHECK_CU(cu.MemsetD8Async(first, value, 4096, w->stream));
    CHECK_CU(cu.MemcpyDtoHAsync(w->pinned, second + 4088, 8, w->stream));
    CHECK_CU(cu.StreamSynchronize(w->stream));
    CHECK_EQ(w->pinned[0], value * UINT64_C(0x0101010101010101));
    CHECK_CU(cu.MemUnmap(first, 2 * FC_PIECE));
    CHECK_CU(cu.MemAddressFree(first, 2 * FC_PIECE));
}

static void *work(void *state)
{
    worker *w = state;
    qi_cu_context context;
    void *pinned;
    CHECK_CU(cu.DevicePrimaryCtxRetain(&context, w->device));
    CHECK_CU(cu.CtxPushCurrent(context));
    CHECK_CU(cu.StreamCreate(&w->stream, QI_CU_STREAM_NON_BLOCKING));
    CHECK_CU(cu.MemHostAlloc(&pinned, 4096, 0));
    w->pinned = pinned;
    for (uint64_t i = 0; i < steps; i++)
        step(w, (unsigned char)(w->number * 37 + i));
    CHECK_CU(cu.MemFreeHost(pinned));
    CHECK_CU(cu.StreamDestroy(w->stream));
    CHECK_CU(cu.CtxPopCurrent(NULL));
    CHECK_CU(cu.DevicePrimaryCtxRelease(w->device));
    return NULL;
}

static void threads_do_not_disturb_each_other(uint32_t flags)
{
    worker workers[THREADS] = {{0}};
    fc_options options = {.flags = flags};
    for (int i = 0; i < DEVICES; i++)
        options.models[i] = fc_model_named("h200");
    (void)fc_fixture_open(&options);
    for (int i = 0; i < THREADS; i++) {
        workers[i].device = i % DEVICES;
        workers[i].number = (unsigned char)i;
        CHECK(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_join(workers[i].thread, NULL));
    fc_fixture_close();
}

static void with_work_done_at_once(void)
{
    threads_do_not_disturb_each_other(0);
}

static void with_work_done_late(void)
{
    threads_do_not_disturb_each_other(FC_LATE | FC_NEEDS_CONTEXT | FC_DIRTY);
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 500);
    plain_case("threads with work executed immediately", with_work_done_at_once);
    plain_case("threads with deferred work", with_work_done_late);
    return plain_end();
}
