/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_allocate.c - the adapter for torch without graphs: what torch's calls allocate and free, in
 * the order of which streams, what happens when memory is exhausted, and misuse.
 */
#include <math.h>
#include <pthread.h>

#include "tests/support/child.h"
#include "tests/support/torch_client.h"
#include "tests/support/unit.h"

#define KIB INT64_C(1024)
#define MIB (INT64_C(1) << 20)
#define PER_THREAD ((void *)(uintptr_t)2)
#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

static torch_client c;

static void fails(quire_result result, quire_result expected, const char *part)
{
    CHECK_EQ(result, expected);
    CHECK_HAS(torch_message(), part);
}

#define CASE(name, devices) TORCH_CASE(torch_allocate, name, devices)

/* ---- allocating ----------------------------------------------------------------------------- */

CASE(the_device_is_opened_by_the_first_allocation, 1)
{
    void *pointer = &c;
    CHECK_EQ(torch_init(1), 0);
    CHECK_EQ(torch_client_bytes(&c), 0);
    CHECK_EQ(torch_allocate(0, 0, NULL, &pointer), 0);
    CHECK(!pointer);
    CHECK_EQ(torch_client_bytes(&c), 0);
    void *a = torch_client_allocate(1, NULL), *b = torch_client_allocate(3 * MIB, NULL);
    CHECK(a != b && torch_client_bytes(&c) > 0);
    CHECK_EQ(c.b.fc->depth(), 1);
    torch_client_free(a, NULL);
    torch_client_free(b, NULL);
    torch_client_free(NULL, NULL);
}

/* 1 is another number of the legacy default stream. */
CASE(the_legacy_default_stream_has_two_numbers, 1)
{
    void *a = torch_client_allocate(MIB, NULL);
    torch_client_work(&c, a, MIB, NULL);
    torch_client_free(a, (void *)(uintptr_t)1);
    void *b = torch_client_allocate(MIB, NULL);
    CHECK(a == b);
    torch_client_free(b, NULL);
}

static void *freed; /* by the other thread */

static void *allocate_on_own_stream(void *unused)
{
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, CtxPushCurrent, 4000)(c.contexts[0]), 0);
    freed = torch_client_allocate(MIB, PER_THREAD);
    torch_client_work(&c, freed, MIB, PER_THREAD);
    torch_client_free(freed, PER_THREAD);
    CHECK_EQ(CUDA_BENCH_CALL(&c.b, CtxPopCurrent, 4000)(NULL), 0);
    return unused;
}

UNIT(torch_allocate, each_thread_has_a_default_stream)
{
    pthread_t thread;
    torch_client_begin(&c, 1);
    CHECK(!pthread_create(&thread, NULL, allocate_on_own_stream, NULL));
    CHECK(!pthread_join(thread, NULL));
    uint64_t waits = c.b.fc->calls("cuStreamWaitEvent");
    void *a = torch_client_allocate(MIB, PER_THREAD);
    CHECK(a != freed || c.b.fc->calls("cuStreamWaitEvent") == waits + 1);
    torch_client_free(a, PER_THREAD);
    torch_client_end(&c);
}

CASE(devices_have_memories_of_their_own, 2)
{
    void *a = NULL, *b = NULL;
    CHECK_EQ(torch_init(2), 0);
    CHECK_EQ(torch_allocate(MIB, 0, NULL, &a), 0);
    CHECK_EQ(c.b.fc->usage_of(1).bytes, 0);
    CHECK_EQ(torch_allocate(MIB, 1, NULL, &b), 0);
    CHECK(c.b.fc->usage_of(1).bytes > 0);
    fails(torch_free(b, 0, NULL), INVALID, "device 0");
    CHECK_EQ(torch_free(b, 1, NULL), 0);
    CHECK_EQ(torch_free(a, 0, NULL), 0);
    fails(torch_allocate(1, 2, NULL, &a), INVALID, "device 2 of 2");
}

/* t.to("cuda:1"): torch copies by cudaMemcpyAsync, also between devices that cannot reach each
   other. */
UNIT(torch_allocate, bytes_are_copied_between_devices)
{
    for (int are_peers = 0; are_peers < 2; are_peers++) {
        void *of[2] = {NULL};
        unsigned char byte = 0;
        torch_client_begin_two(&c, are_peers);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(torch_allocate(MIB, i, NULL, &of[i]), 0);
        torch_client_work(&c, of[0], MIB, NULL);
        CHECK_EQ(CUDA_BENCH_CALL(&c.b, MemcpyDtoDAsync, 3020)((uintptr_t)of[1], (uintptr_t)of[0],
                                                              MIB, NULL),
                 0);
        CHECK_EQ(CUDA_BENCH_CALL(&c.b, CtxSynchronize, 2000)(), 0);
        CHECK_EQ(CUDA_BENCH_CALL(&c.b, MemcpyDtoH, 3020)(&byte, (uintptr_t)of[1], 1), 0);
        CHECK_EQ(byte, 1);
        CHECK_EQ(c.b.fc->calls("cuMemAlloc") > 0, !are_peers);
        for (int i = 0; i < 2; i++)
            CHECK_EQ(torch_free(of[i], i, NULL), 0);
        torch_client_end(&c);
    }
}

/* ---- record_stream -------------------------------------------------------------------------- */

CASE(a_use_of_the_own_stream_delays_nothing, 1)
{
    void *a = torch_client_allocate(MIB, c.streams[0]);
    CHECK_EQ(torch_record_stream(a, c.streams[0]), 0);
    torch_client_work(&c, a, MIB, c.streams[0]);
    torch_client_free(a, c.streams[0]);
    void *b = torch_client_allocate(MIB, c.streams[0]);
    CHECK(a == b);
    torch_client_free(b, c.streams[0]);
}

CASE(uses_of_foreign_memory_are_ignored, 1)
{
    CHECK_EQ(torch_record_stream(&c, NULL), 0);
    void *a = torch_client_allocate(MIB, NULL);
    CHECK_EQ(torch_record_stream(&c, NULL), 0);
    CHECK_EQ(torch_record_stream(NULL, NULL), 0);
    torch_client_free(a, NULL);
}

/* ---- exhausted memory ----------------------------------------------------------------------- */

CASE(exhausted_memory_is_refused_with_the_numbers, 1)
{
    void *pointer = &c;
    c.b.fc->set_capacity(0, (uint64_t)(64 * MIB));
    fails(torch_allocate(100 * MIB, 0, NULL, &pointer), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
          "100 MiB");
    CHECK(!pointer);
}

/* The first memory waits for work of another stream, which nothing but a wait completes. */
CASE(exhausted_memory_waits_for_what_was_freed, 1)
{
    c.b.fc->set_capacity(0, (uint64_t)(64 * MIB));
    void *a = torch_client_allocate(40 * MIB, c.streams[0]);
    CHECK_EQ(torch_record_stream(a, c.streams[1]), 0);
    torch_client_work(&c, a, (uint64_t)MIB, c.streams[1]);
    torch_client_free(a, c.streams[0]);
    void *b = torch_client_allocate(50 * MIB, c.streams[0]);
    torch_client_free(b, c.streams[0]);
}

CASE(a_fraction_limits_the_pages, 1)
{
    void *a = NULL;
    c.b.fc->set_capacity(0, 0);
    CHECK_EQ(torch_set_fraction(0, 0), 0);
    fails(torch_allocate(MIB, 0, NULL, &a), QUIRE_ERROR_OVER_BUDGET, "limit");
    CHECK_EQ(torch_set_fraction(0.5, 0), 0);
    CHECK_EQ(torch_allocate(MIB, 0, NULL, &a), 0);
    torch_client_free(a, NULL);
    fails(torch_set_fraction(1.5, 0), INVALID, "1.5");
    fails(torch_set_fraction(-0.1, 0), INVALID, "-0.1");
    fails(torch_set_fraction(nan(""), 0), INVALID, "nan");
    fails(torch_set_fraction(1, -1), INVALID, "device -1");
}

/* ---- reset, pages, segments ----------------------------------------------------------------- */

CASE(reset_waits_for_work_and_releases_what_is_free, 1)
{
    void *a = torch_client_allocate(8 * MIB, c.streams[0]);
    torch_client_work(&c, a, MIB, c.streams[0]);
    torch_client_free(a, c.streams[0]);
    CHECK(c.b.fc->pending() > 0 && torch_client_bytes(&c) > 0);
    CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(c.b.fc->pending(), 0);
    CHECK_EQ(torch_client_bytes(&c), 0);
}

/* A raw function of torch's caching allocator may use a segment on another stream than the one on
   which it was allocated. */
CASE(a_segment_is_freed_after_the_work_of_every_stream, 1)
{
    void *a = torch_client_allocate(20 * MIB, c.streams[0]);
    torch_client_work(&c, a, MIB, c.streams[1]);
    CHECK_EQ(torch_free_segment(a, 0, c.streams[0]), 0);
    CHECK_EQ(c.b.fc->pending(), 0);
    CHECK_EQ(torch_free_segment(NULL, 0, NULL), 0);
}

CASE(the_base_is_the_page, 1)
{
    size_t size = 0;
    char *a = torch_client_allocate(KIB, NULL), *b = torch_client_allocate(KIB, NULL);
    void *base = torch_get_base(a, &size);
    CHECK(size >= (size_t)MIB && base == torch_get_base(b + 100, NULL));
    CHECK((char *)base <= a && a + KIB <= (char *)base + size);
    CHECK(torch_get_base(&size, &size) == &size && size == 0);
    torch_client_free(a, NULL);
    torch_client_free(b, NULL);
}

/* ---- misuse --------------------------------------------------------------------------------- */

CASE(misuse_is_refused_and_changes_nothing, 1)
{
    void *pointer = &c;
    fails(torch_init(-1), INVALID, "-1 devices");
    fails(torch_init(65), INVALID, "65 devices");
    fails(torch_allocate(-1, 0, NULL, &pointer), INVALID, "-1 bytes");
    CHECK(!pointer);
    fails(torch_allocate(1, -1, NULL, &pointer), INVALID, "device -1");
    fails(torch_allocate(1, 64, NULL, &pointer), INVALID, "device 64");
    fails(torch_allocate(1, 1, NULL, &pointer), QUIRE_ERROR_UNSUPPORTED, "opened");
    fails(torch_free(&c, 0, NULL), INVALID, "device 0, which has no allocation");
    char *a = torch_client_allocate(KIB, NULL);
    fails(torch_free(a + 512, 0, NULL), INVALID, "not the start");
    fails(torch_free(&c, 0, NULL), INVALID, "not the start");
    fails(torch_free(a, 5, NULL), INVALID, "device 5");
    torch_client_free(a, NULL);
    fails(torch_free(a, 0, NULL), INVALID, "not the start");
}

CASE(a_forked_child_frees_nothing_and_allocates_nothing, 1)
{
    void *a = torch_client_allocate(KIB, NULL), *b = NULL;
    pid_t child = fork();
    if (!child) {
        torch_filter filter = {.matches = NULL};
        bool is_well =
            !torch_free(a, 0, NULL) && !torch_free_segment(a, 0, NULL) &&
            torch_allocate(KIB, 0, NULL, &b) == QUIRE_ERROR_NOT_PERMITTED &&
            strstr(torch_message(), "fork") &&
            torch_record_stream(a, NULL) == QUIRE_ERROR_NOT_PERMITTED &&
            torch_reset() == QUIRE_ERROR_NOT_PERMITTED &&
            torch_record_history(1) == QUIRE_ERROR_NOT_PERMITTED &&
            torch_begin_pool(0, (torch_pool_id){0, 1}, &filter) == QUIRE_ERROR_NOT_PERMITTED &&
            torch_get_base(a, NULL) == a;
        child_end(is_well);
    }
    CHECK(child_was_well(child));
    torch_client_free(a, NULL);
}
