/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * corner_captures.c - see corners.h.
 */
#include <pthread.h>

#include "tests/gpu/corners.h"
#include "tests/support/check.h"
#include "tests/support/cuda_direct.h"

#define MIB (UINT64_C(1) << 20)

/* Pages are created, given memory, kept and destroyed. */
static void *use_pages(void *user)
{
    corner *c = user;
    quire_memory *elastic;
    const quire_allocation_options large = {.size = 8 * MIB};
    quire_allocation a = corner_allocate(c, 4 * MIB), b = corner_allocate(c, 4 * MIB), d;
    CHECK_OK(quire_free(c->memory, a));
    CHECK_OK(quire_free(c->memory, b));
    CHECK_OK(quire_memory_trim(c->memory, 0, NULL));
    if (c->info.has_virtual_memory) {
        const quire_memory_options options = {
            .elastic = true, .address_space = 1024 * MIB /* small enough for valgrind */};
        CHECK_OK(quire_memory_create(c->device, &options, &elastic));
        CHECK_OK(quire_allocate(elastic, &large, &a));
        CHECK_OK(quire_allocate(elastic, &large, &d));
        CHECK_OK(quire_free(elastic, d));
        CHECK_OK(quire_memory_trim(elastic, 0, NULL));
        quire_memory_destroy_all(&elastic);
    }
    return NULL;
}

static void capture(corner *c, qi_cu_stream stream, qi_cu_capture_mode mode, bool in_thread)
{
    pthread_t thread;
    qi_cu_graph graph = NULL;
    MUST(cu.CtxPushCurrent(c->info.context));
    MUST(cu.StreamBeginCapture(stream, mode));
    if (!in_thread)
        use_pages(c);
    else if (pthread_create(&thread, NULL, use_pages, c) || pthread_join(thread, NULL))
        check_failed(__FILE__, __LINE__, "no thread");
    MUST(cu.StreamEndCapture(stream, &graph));
    MUST(cu.CtxPopCurrent(NULL));
}

static void survive(bool in_thread)
{
    corner c;
    quire_stream *stream;
    void *native;
    corner_open(&c, NULL, &(quire_memory_options){.pages.page_size = 4 * MIB});
    CHECK_OK(quire_stream_create(c.device, NULL, &stream));
    CHECK_OK(quire_cuda_stream_get(stream, &native));
    for (qi_cu_capture_mode mode = QI_CU_STREAM_CAPTURE_MODE_GLOBAL;
         mode <= QI_CU_STREAM_CAPTURE_MODE_RELAXED; mode++)
        capture(&c, native, mode, in_thread);
    CHECK_OK(quire_stream_destroy(&stream));
    corner_close(&c);
}

void capture_in_the_same_thread_survives(void)
{
    survive(false);
}

void capture_in_another_thread_survives(void)
{
    survive(true);
}
