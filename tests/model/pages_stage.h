/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pages_stage.h - shared by the scenarios of pages.c: a backend that only counts, a memory, and the
 * work of a thread. For pages.c alone, which includes the source of the thread numbers first.
 */
#ifndef QUIRE_TESTS_MODEL_PAGES_STAGE_H
#define QUIRE_TESTS_MODEL_PAGES_STAGE_H

#include "quire/backend.h"
#include "quire/insight.h"
#include "tests/model/model.h"
#include "tests/support/plain.h"

enum { MIB = 1 << 20, KIB = 1 << 10 };

/* ---- the backend ---------------------------------------------------------------------------- */

static struct {
    uint32_t calls; /* each call makes a step on it */
    uint64_t room;  /* bytes of all pages together */
    uint64_t bytes, address;
    uint32_t made, asked;
    uint32_t failures; /* the next calls that fail with NOT_PERMITTED */
    uint32_t making;   /* unfinished calls */
} backend;
static bool has_overlapped; /* two pages were being created at the same time, in some execution */

static void call(void)
{
    model_add(&backend.calls, sizeof backend.calls, 1, MODEL_RELAXED);
}

static quire_result answer(uint64_t bytes)
{
    if (backend.failures) {
        backend.failures--;
        return QUIRE_ERROR_NOT_PERMITTED;
    }
    if (backend.bytes + bytes > backend.room)
        return QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    backend.bytes += bytes;
    return QUIRE_SUCCESS;
}

static quire_result describe(void *state, quire_device_info *info)
{
    (void)state;
    info->heap_count = info->kind_count = 1;
    info->heaps[0] = (quire_heap){.size = 1 << 30, .flags = QUIRE_HEAP_DEVICE_LOCAL};
    info->kinds[0] = (quire_kind){.flags = QUIRE_DEVICE_LOCAL};
    info->limits.page_granularity = 64 * KIB;
    info->limits.elastic_kinds = 1;
    return QUIRE_SUCCESS;
}

static quire_result page_create(void *state, const quire_page_request *request,
                                quire_native_page *page)
{
    (void)state;
    backend.asked++;
    has_overlapped |= backend.making++ != 0;
    call();
    backend.making--;
    quire_result result = answer(request->size);
    if (result)
        return result;
    backend.made++;
    backend.address += UINT64_C(1) << 32;
    *page = (quire_native_page){.address = backend.address,
                                .size = request->max_size ? request->max_size : request->size,
                                .data = request->size};
    return QUIRE_SUCCESS;
}

static uint64_t backed; /* by page_back, of the page of an elastic memory */

static void page_destroy(void *state, const quire_native_page *page)
{
    (void)state;
    call();
    backend.bytes -= page->data + backed;
    backed = 0;
}

static uint64_t bytes_of(const quire_span *spans, uint32_t count)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++)
        bytes += spans[i].size;
    return bytes;
}

static quire_result page_back(void *state, const quire_native_page *page, const quire_span *spans,
                              uint32_t count)
{
    (void)state;
    (void)page;
    call();
    quire_result result = answer(bytes_of(spans, count));
    if (!result)
        backed += bytes_of(spans, count);
    return result;
}

static void page_unback(void *state, const quire_native_page *page, const quire_span *spans,
                        uint32_t count, bool moves)
{
    (void)moves;
    (void)state;
    (void)page;
    call();
    backend.bytes -= bytes_of(spans, count);
    backed -= bytes_of(spans, count); /* below the size at first it wraps around */
}

static const quire_backend table = {.size = sizeof table,
                                    .name = "counting",
                                    .features = QUIRE_BACKEND_ELASTIC,
                                    .describe = describe,
                                    .page_create = page_create,
                                    .page_destroy = page_destroy,
                                    .page_back = page_back,
                                    .page_unback = page_unback};

/* ---- the stage ------------------------------------------------------------------------------ */

static quire_device *device;
static quire_memory *memory;
static quire_allocation kept; /* allocated before the threads begin */
static struct {
    quire_result result;
    quire_allocation allocation;
} got[MODEL_MAX_THREADS];
static uint32_t actors, ended;
static uint32_t more; /* preemptions of two threads, in addition to the 2 that are always tried */

static void begin_with(const quire_memory_options *options, uint64_t room)
{
    memset(&backend, 0, sizeof backend);
    memset(got, 0, sizeof got);
    backend.room = room;
    own = 1;
    backed = ended = 0;
    kept.id = 0;
    CHECK_OK(quire_device_create(&table, NULL, NULL, &device));
    CHECK_OK(quire_memory_create(device, options, &memory));
}

/* After a violation threads may be at any point: what they use stays. */
static void end(void)
{
    own = 1;
    if (ended < actors)
        return;
    quire_memory_destroy_all(&memory);
    CHECK_OK(quire_device_destroy(&device));
}

static void allocate(uint64_t size, bool dedicated)
{
    const uint32_t self = model_self();
    const quire_allocation_options options = {.size = size, .dedicated = dedicated};
    own = self + 1; /* with two shards, neighbouring threads use different ones */
    got[self].result = quire_allocate(memory, &options, &got[self].allocation);
    ended++;
}

static void need_little(void)
{
    allocate(100 * KIB, false);
}

static void need_third(void)
{
    allocate(300 * KIB, false);
}

static void need_much(void)
{
    allocate(900 * KIB, false);
}

static void need_whole(void)
{
    allocate(MIB, false);
}

static void need_dedicated(void)
{
    allocate(MIB, true);
}

static void free_kept(void)
{
    own = model_self() + 1;
    got[model_self()].result = quire_free(memory, kept);
    ended++;
}

static void trim(void)
{
    own = model_self() + 1;
    got[model_self()].result = quire_memory_trim(memory, 0, NULL);
    ended++;
}

static uint32_t count_of(quire_result result)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < ended; i++)
        count += got[i].result == result;
    return count;
}

/* No page is unfinished, and the statistics match the backend. */
static void judge_figures(void)
{
    quire_memory_stats stats;
    own = 1;
    MODEL_CHECK(!quire_memory_check(memory));
    MODEL_CHECK(!quire_memory_get_stats(memory, &stats));
    MODEL_CHECK(stats.reserved_bytes == backend.bytes);
    MODEL_CHECK(stats.pages_created - stats.pages_destroyed == stats.page_count);
}

static void judge_all_placed(void)
{
    judge_figures();
    MODEL_CHECK(count_of(QUIRE_SUCCESS) == ended);
}

#endif
