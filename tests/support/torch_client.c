/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_client.c - see torch_client.h.
 */
#include "tests/support/torch_client.h"

#include <stdlib.h>

#include "tests/support/check.h"

static uint32_t filters;

static void begin(torch_client *c, uint32_t device_count, bool are_peers)
{
    fc_options driver = cuda_bench_options(NULL, FC_UNSAFE_CALLS | FC_LATE);
    *c = (torch_client){.device_count = device_count};
    filters = 0;
    if (device_count > 1)
        driver.models[1] = driver.models[0];
    if (are_peers)
        driver.peers[0] = 0x2, driver.peers[1] = 0x1;
    cuda_bench_begin(&c->b, &driver);
    CHECK_EQ(CUDA_BENCH_CALL(&c->b, Init, 2000)(0), 0);
    for (uint32_t i = device_count; i--;)
        CHECK_EQ(CUDA_BENCH_CALL(&c->b, DevicePrimaryCtxRetain, 7000)(&c->contexts[i], (int)i), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&c->b, CtxPushCurrent, 4000)(c->contexts[0]), 0);
    for (int i = 0; i < TORCH_STREAMS; i++)
        CHECK_EQ(
            CUDA_BENCH_CALL(&c->b, StreamCreate, 2000)(&c->streams[i], QI_CU_STREAM_NON_BLOCKING),
            0);
}

void torch_client_begin(torch_client *c, uint32_t device_count)
{
    begin(c, device_count, false);
}

void torch_client_begin_two(torch_client *c, bool are_peers)
{
    begin(c, 2, are_peers);
    for (int i = 0; are_peers && i < 2; i++) {
        CHECK_EQ(CUDA_BENCH_CALL(&c->b, CtxPushCurrent, 4000)(c->contexts[i]), 0);
        CHECK_EQ(CUDA_BENCH_CALL(&c->b, CtxEnablePeerAccess, 4000)(c->contexts[!i], 0), 0);
        CHECK_EQ(CUDA_BENCH_CALL(&c->b, CtxPopCurrent, 4000)(NULL), 0);
    }
}

void torch_client_end(torch_client *c)
{
    CHECK_EQ(CUDA_BENCH_CALL(&c->b, CtxSynchronize, 2000)(), 0);
    torch_close();
    CHECK_EQ(filters, 0);
    for (int i = 0; i < TORCH_STREAMS; i++)
        CHECK_EQ(CUDA_BENCH_CALL(&c->b, StreamDestroy, 4000)(c->streams[i]), 0);
    CHECK_EQ(CUDA_BENCH_CALL(&c->b, CtxPopCurrent, 4000)(NULL), 0);
    for (uint32_t i = 0; i < c->device_count; i++)
        CHECK_EQ(CUDA_BENCH_CALL(&c->b, DevicePrimaryCtxRelease, 11000)((int)i), 0);
    cuda_bench_end(&c->b);
}

void *torch_client_allocate(int64_t size, void *stream)
{
    void *pointer = NULL;
    if (torch_allocate(size, 0, stream, &pointer))
        check_failed(__FILE__, __LINE__, "%s", torch_message());
    CHECK(pointer);
    CHECK_EQ((uintptr_t)pointer % 512, 0);
    return pointer;
}

void torch_client_free(void *pointer, void *stream)
{
    if (torch_free(pointer, 0, stream))
        check_failed(__FILE__, __LINE__, "%s", torch_message());
}

void torch_client_work(torch_client *c, void *pointer, uint64_t size, void *stream)
{
    CHECK_EQ(CUDA_BENCH_CALL(&c->b, MemsetD8Async, 3020)((uintptr_t)pointer, 1, size, stream), 0);
}

/* ---- captures ------------------------------------------------------------------------------- */

typedef struct filter {
    torch_client *client;
    qi_cu_stream stream; /* NULL: any */
} filter;

static bool captures(void *state, void *stream)
{
    const filter *f = state;
    qi_cu_capture_status status;
    return (!f->stream || f->stream == stream) &&
           !CUDA_BENCH_CALL(&f->client->b, StreamIsCapturing, 10000)(stream, &status) &&
           status != QI_CU_STREAM_CAPTURE_STATUS_NONE;
}

static void end_filter(void *state)
{
    free(state);
    filters--;
}

torch_filter torch_client_filter(torch_client *c, qi_cu_stream stream)
{
    filter *f = malloc(sizeof *f);
    CHECK(f);
    *f = (filter){.client = c, .stream = stream};
    filters++;
    return (torch_filter){.matches = captures, .destroy = end_filter, .state = f};
}

uint32_t torch_client_filters(void)
{
    return filters;
}

void torch_client_begin_capture(torch_client *c, qi_cu_stream stream)
{
    CHECK_EQ(
        CUDA_BENCH_CALL(&c->b, StreamBeginCapture, 10010)(stream, QI_CU_STREAM_CAPTURE_MODE_GLOBAL),
        0);
}

bool torch_client_end_capture(torch_client *c, qi_cu_stream stream)
{
    qi_cu_graph graph;
    return !CUDA_BENCH_CALL(&c->b, StreamEndCapture, 10000)(stream, &graph);
}

void torch_client_begin_graph(torch_client *c, torch_pool_id id, qi_cu_stream stream)
{
    torch_filter begun = torch_client_filter(c, c->joins ? NULL : stream);
    if (torch_begin_pool(0, id, &begun))
        check_failed(__FILE__, __LINE__, "%s", torch_message());
    torch_client_begin_capture(c, stream);
}

void torch_client_end_graph(torch_client *c, torch_pool_id id, qi_cu_stream stream)
{
    CHECK(torch_client_end_capture(c, stream));
    if (torch_end_pool(0, id))
        check_failed(__FILE__, __LINE__, "%s", torch_message());
}

uint64_t torch_client_bytes(torch_client *c)
{
    return c->b.fc->usage_of(0).bytes;
}
