/*
 * pages_stage.h - what the scenarios of pages.c play on: a backend that only counts, a memory, and
 * what one thread does. For pages.c alone, which has the source of the threads' numbers before it.
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
    uint32_t calls; /* each call is a step on it */
    uint64_t room;  /* bytes of pages that can be had */
    uint64_t bytes, address;
    uint32_t made, asked;
    uint32_t refusals; /* calls from now on that fail with NOT_PERMITTED */
    uint32_t making;   /* calls that have begun and not ended */
} backend;
static bool has_overlapped; /* two pages were being made at one time, in some execution */

static void call(void)
{
    model_add(&backend.calls, sizeof backend.calls, 1, MODEL_RELAXED);
}

static quire_result answer(uint64_t bytes)
{
    if (backend.refusals) {
        backend.refusals--;
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

static uint64_t grown; /* by page_resize, of the page of a contiguous memory */

static void page_destroy(void *state, const quire_native_page *page)
{
    (void)state;
    call();
    backend.bytes -= page->data + grown;
    grown = 0;
}

static quire_result page_resize(void *state, const quire_native_page *page, uint64_t from,
                                uint64_t to)
{
    (void)state;
    (void)page;
    call();
    quire_result result = QUIRE_SUCCESS;
    if (to > from)
        result = answer(to - from);
    else
        backend.bytes -= from - to;
    if (!result)
        grown += to - from; /* or less: it wraps back */
    return result;
}

static const quire_backend table = {.size = sizeof table,
                                    .name = "counting",
                                    .features = QUIRE_BACKEND_ELASTIC,
                                    .describe = describe,
                                    .page_create = page_create,
                                    .page_destroy = page_destroy,
                                    .page_resize = page_resize};

/* ---- the stage ------------------------------------------------------------------------------ */

static quire_device *device;
static quire_memory *memory;
static quire_allocation kept; /* made before the threads begin */
static struct {
    quire_result result;
    quire_allocation allocation;
} got[MODEL_MAX_THREADS];
static uint32_t actors, ended;
static uint32_t more; /* preemptions of two threads, beside the 2 that are always tried */

static void begin_with(const quire_memory_options *options, uint64_t room)
{
    memset(&backend, 0, sizeof backend);
    memset(got, 0, sizeof got);
    backend.room = room;
    own = 1;
    grown = ended = 0;
    kept.id = 0;
    CHECK_OK(quire_device_create(&table, NULL, NULL, &device));
    CHECK_OK(quire_memory_create(device, options, &memory));
}

/* After a violation threads may be anywhere: what they use stays. */
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
    own = self + 1; /* with two shards, neighbours work in different ones */
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

/* Nothing is on its way any more, and the figures are those of the backend. */
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
