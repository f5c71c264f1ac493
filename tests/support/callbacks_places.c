/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks_places.c - the places of callbacks.h: the calls that make the library run each
 * callback.
 */
#include "quire/backend.h"
#include "quire/transfer.h"
#include "tests/support/callbacks_scene.h"
#include "tests/support/check.h"
#include "tests/support/on_stream.h"

/* ---- memories with pages -------------------------------------------------------------------- */

static quire_allocation allocate(uint64_t size)
{
    quire_allocation a = {0};
    if (!callbacks_allocate(callbacks_scene.memory, &(quire_allocation_options){.size = size}, &a))
        a.id = 0;
    return a;
}

static quire_allocation allocate_dedicated(uint64_t size)
{
    quire_allocation a = {0};
    if (!callbacks_allocate(callbacks_scene.memory,
                            &(quire_allocation_options){.size = size, .dedicated = true}, &a))
        a.id = 0;
    return a;
}

static void release(quire_allocation a)
{
    if (a.id)
        CHECK_OK(quire_free(callbacks_scene.memory, a));
}

static void an_allocation(void)
{
    quire_allocation a = allocate(callbacks_scene.page / 2);
    CHECK(a.id);
    release(a);
}

static void an_empty_page_is_released(void)
{
    release(allocate(callbacks_scene.page / 2));
    release(allocate(3 * callbacks_scene.page));
    release(allocate_dedicated(2 * callbacks_scene.page));
    release(allocate_dedicated(5 * callbacks_scene.page));
}

static void two_of_three_pages_are_used(void)
{
    quire_allocation a = allocate(callbacks_scene.page), b = allocate(callbacks_scene.page);
    release(allocate_dedicated(callbacks_scene.page / 2));
    release(allocate(2 * callbacks_scene.page));
    release(allocate(4 * callbacks_scene.page));
    release(a);
    release(b);
}

static void no_space(void)
{
    quire_allocation a = allocate(callbacks_scene.page / 2), b = allocate(callbacks_scene.page / 2);
    for (int i = 0; i < 3; i++)
        release(allocate(9 * callbacks_scene.page));
    release(allocate_dedicated(9 * callbacks_scene.page));
    release(a);
    release(allocate(9 * callbacks_scene.page));
    release(b);
}

/* An empty page in every shard. A request needs all of them to be released. */
static void empty_pages_elsewhere(void)
{
    if (!quire_memory_preallocate(callbacks_scene.memory, 6 * callbacks_scene.page))
        CHECK_OK(quire_memory_preallocate(callbacks_scene.memory, 0));
    release(allocate(7 * callbacks_scene.page));
    release(allocate(9 * callbacks_scene.page));
}

static void a_heap_limit(void)
{
    quire_memory_info info;
    quire_device_info device;
    CHECK_OK(quire_memory_get_info(callbacks_scene.memory, &info));
    CHECK_OK(quire_device_get_info(callbacks_scene.device, &device));
    uint32_t heap = device.kinds[info.kind].heap;
    CHECK_OK(quire_device_set_heap_limit(callbacks_scene.device, heap, 7 * callbacks_scene.page));
    no_space();
    CHECK_OK(quire_device_set_heap_limit(callbacks_scene.device, heap, 0));
    CHECK_OK(quire_device_set_page_limit(callbacks_scene.device, 2));
    no_space();
    CHECK_OK(quire_device_set_page_limit(callbacks_scene.device, 0));
    CHECK_OK(quire_memory_set_limit(callbacks_scene.memory, callbacks_scene.page));
    CHECK_OK(quire_memory_set_limit(callbacks_scene.memory, 0));
}

static void a_name_limit(void)
{
    quire_allocation a = {0}, b;
    const quire_allocation_options half = {.size = callbacks_scene.page / 2, .name = "a/x"};
    CHECK_OK(quire_memory_set_name_limit(callbacks_scene.memory, "a/",
                                         callbacks_scene.page / 2 + callbacks_scene.page / 4));
    bool has = callbacks_allocate(callbacks_scene.memory, &half, &a);
    CHECK(!has || !callbacks_allocate(callbacks_scene.memory, &half, &b));
    if (has)
        CHECK_OK(quire_allocation_set_name(callbacks_scene.memory, a, "b"));
    release(a);
    /* the size rounded to the granule exceeds the limit; the library knows it after placing the
       range */
    CHECK_OK(quire_memory_set_name_limit(callbacks_scene.memory, "a/", 10));
    CHECK(!callbacks_allocate(callbacks_scene.memory,
                              &(quire_allocation_options){.size = 10, .name = "a/y"}, &b));
    CHECK_OK(quire_memory_set_name_limit(callbacks_scene.memory, "a/", 0));
}

static void trims(void)
{
    quire_allocation a[6];
    for (int i = 0; i < 6; i++)
        a[i] =
            i % 2 ? allocate(callbacks_scene.page) : allocate_dedicated(callbacks_scene.page / 2);
    for (int i = 0; i < 6; i++)
        release(a[i]);
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, callbacks_scene.page, NULL));
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, 0, NULL));
}

static void preallocations(void)
{
    quire_result result =
        quire_memory_preallocate(callbacks_scene.memory, 4 * callbacks_scene.page);
    CHECK_OK(result);
    CHECK_OK(quire_memory_preallocate(callbacks_scene.memory, 0));
    CHECK_OK(quire_memory_set_limit(callbacks_scene.memory, 6 * callbacks_scene.page));
    result = quire_memory_preallocate(callbacks_scene.memory, 20 * callbacks_scene.page);
    CHECK(result == QUIRE_ERROR_OVER_BUDGET ||
          callbacks_scene.actions & TRIM); /* a trim in a callback frees the room */
    CHECK_OK(quire_memory_set_limit(callbacks_scene.memory, 0));
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, 0, NULL));
}

static void batches(void)
{
    quire_allocation a[20];
    const quire_allocation_options quarter = {.size = callbacks_scene.page / 4},
                                   large = {.size = 2 * callbacks_scene.page};
    if (!quire_allocate_batch(callbacks_scene.memory, &quarter, a, 20))
        CHECK_OK(quire_free_batch(callbacks_scene.memory, a, 20));
    CHECK(quire_allocate_batch(callbacks_scene.memory, &large, a, 20));
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, 0, NULL));
}

static void objects(void)
{
    quire_buffer buffer = {0};
    quire_allocation reserved;
    if (!quire_buffer_create(callbacks_scene.memory,
                             &(quire_buffer_options){.size = 1000, .zero = true}, &buffer))
        CHECK_OK(quire_free(callbacks_scene.memory, buffer.allocation));
    if (!quire_reserve(callbacks_scene.memory,
                       &(quire_allocation_options){.size = callbacks_scene.page / 2}, &reserved))
        CHECK_OK(quire_abort(callbacks_scene.memory, reserved));
    uint32_t chosen = 0;
    quire_memory *const both[] = {callbacks_scene.memory, callbacks_scene.memory};
    if (!quire_allocate_fallback(both, 2,
                                 &(quire_allocation_options){.size = 9 * callbacks_scene.page},
                                 &chosen, &reserved))
        CHECK_OK(quire_free(callbacks_scene.memory, reserved));
}

static void streams(void)
{
    quire_allocation a, b = allocate(callbacks_scene.page);
    const bool capture =
        !(quire_device_backend(callbacks_scene.device)->features & QUIRE_BACKEND_STREAMS);
    const quire_allocation_options whole = {.size = callbacks_scene.page};
    CHECK_OK(quire_stream_create(callbacks_scene.device,
                                 &(quire_stream_options){.capture = capture},
                                 &callbacks_scene.stream));
    for (int i = 0; i < 4; i++)
        if (!allocate_on_stream(callbacks_scene.memory, &whole, callbacks_scene.stream, &a))
            CHECK_OK(quire_free_on_stream(callbacks_scene.memory, a, callbacks_scene.stream));
    if (b.id) {
        CHECK_OK(quire_record_use(callbacks_scene.memory, b, callbacks_scene.stream));
        CHECK_OK(quire_free(callbacks_scene.memory, b));
    }
    CHECK_OK(quire_collect(callbacks_scene.memory, NULL));
    release(allocate(3 * callbacks_scene.page));
    CHECK_OK(quire_stream_destroy(&callbacks_scene.stream));
    CHECK_OK(quire_collect(callbacks_scene.memory, NULL));
}

static void visitors_and_text(void)
{
    quire_allocation a = allocate(100), b = allocate_dedicated(100);
    CHECK_OK(quire_memory_walk(callbacks_scene.memory, callbacks_visit, NULL));
    CHECK_OK(quire_device_walk(callbacks_scene.device, callbacks_visit_memory, NULL));
    CHECK_OK(quire_device_write_report(callbacks_scene.device, callbacks_take_text, NULL));
    CHECK_OK(quire_device_trim(callbacks_scene.device, 0, NULL));
    CHECK_OK(quire_memory_write_report(callbacks_scene.memory, callbacks_take_text, NULL));
    CHECK_OK(quire_memory_write_json(callbacks_scene.memory, callbacks_take_text, NULL));
    CHECK_OK(quire_memory_write_svg(callbacks_scene.memory, callbacks_take_text, NULL));
    CHECK_OK(quire_memory_check(callbacks_scene.memory));
    release(a);
    release(b);
}

/* Copies host memory to host memory of the device, in steps. */
static void a_copy(void)
{
    static unsigned char bytes[4096];
    quire_allocation a = allocate(sizeof bytes);
    const quire_copy_options options = {.to = {.memory = callbacks_scene.memory, .allocation = a},
                                        .host_from = bytes,
                                        .size = sizeof bytes,
                                        .progress = {.goes_on = callbacks_progress, .step = 1000}};
    if (a.id)
        CHECK_OK(quire_copy(&options, NULL));
    release(a);
}

/* Both calls fail and write lines while an allocation lives. */
static void a_busy_destroy(void)
{
    quire_allocation a = allocate(100);
    quire_device *device = callbacks_scene.device;
    CHECK_FAILS(quire_memory_destroy(&callbacks_scene.memory), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    release(a);
}

static void a_destroy_with_live_allocations(void)
{
    allocate(100);
    allocate_dedicated(callbacks_scene.page);
    CHECK_OK(quire_stream_create(callbacks_scene.device, &(quire_stream_options){.capture = true},
                                 &callbacks_scene.stream));
    quire_allocation used = allocate(callbacks_scene.page / 2);
    if (used.id)
        CHECK_OK(quire_record_use(callbacks_scene.memory, used, callbacks_scene.stream));
}

/* ---- elastic memories ----------------------------------------------------------------------- */

/* An empty dedicated page is released before the shared page gets memory. */
static void a_page_gets_memory(void)
{
    quire_allocation a = allocate(callbacks_scene.page);
    release(allocate_dedicated(callbacks_scene.page));
    quire_allocation b = allocate(callbacks_scene.page);
    release(allocate_dedicated(callbacks_scene.page));
    quire_allocation c = allocate(4 * callbacks_scene.page);
    release(b);
    release(a);
    release(c);
}

/* Free chunks go when a dedicated page finds no room, while that page is being created. */
static void free_chunks_go(void)
{
    quire_allocation a = allocate(callbacks_scene.page / 2), b = allocate(4 * callbacks_scene.page);
    release(b);
    release(allocate_dedicated(6 * callbacks_scene.page));
    release(allocate(2 * callbacks_scene.page));
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, 0, NULL));
    release(a);
}

static void there_is_no_memory_for_it(void)
{
    quire_allocation a = allocate(callbacks_scene.page);
    release(allocate_dedicated(2 * callbacks_scene.page));
    release(allocate(4 * callbacks_scene.page));
    release(allocate_dedicated(callbacks_scene.page));
    release(allocate(20 * callbacks_scene.page));
    release(a);
}

#define LIFE (MEMORY_MADE | ALLOCATED | PAGE_MADE | PAGE_LINE)
#define GONE (PAGE_GONE | GIVEN_LINE)

const place callbacks_places[] = {
    {"an allocation", an_allocation, .expected = LIFE | FREED},
    {"an empty page is released", an_empty_page_is_released, .expected = LIFE | GONE},
    {"the only page is released", an_empty_page_is_released, .pages = 1, .expected = LIFE | GONE},
    {"few pages", two_of_three_pages_are_used, .pages = 3, .expected = LIFE | GONE | FREED},
    {"a limit of pages", no_space, .pages = 1, .expected = LIFE | REFUSED | NO_MEMORY},
    {"a limit of bytes", no_space, .limit = 7, .expected = LIFE | REFUSED | NO_MEMORY},
    {"empty pages elsewhere", empty_pages_elsewhere, .limit = 8,
     .expected = LIFE | GONE | REFUSED | NO_MEMORY},
    {"limits of the device", a_heap_limit, .expected = LIFE | GONE | REFUSED | NO_MEMORY},
    {"a limit of a name", a_name_limit, .expected = LIFE | REFUSED | NO_MEMORY},
    {"trims", trims, .expected = LIFE | GONE},
    {"retention", trims, .retained = 1, .expected = LIFE | GONE},
    {"a preallocation", preallocations, .expected = PAGE_MADE | PAGE_LINE | GONE},
    {"batches", batches, .limit = 12, .expected = LIFE | FREED | REFUSED | GONE},
    {"retained batches", batches, .limit = 12, .retained = 1, .expected = LIFE | FREED | GONE},
    {"objects", objects, .limit = 7, .expected = LIFE | FREED | REFUSED},
    {"streams", streams, .expected = LIFE | FREED | GONE},
    {"streams and retention", streams, .retained = 1, .pages = 2, .expected = LIFE | FREED | GONE},
    {"visitors and text", visitors_and_text, .expected = LIFE | VISITED | WRITTEN},
    {"a copy", a_copy, .expected = LIFE | PROGRESS},
    {"a busy destroy", a_busy_destroy, .expected = STILL_HOLDS | DEVICE_BUSY},
    {"a destroy with live allocations", a_destroy_with_live_allocations,
     .expected = LIFE | GONE | FREED},
    {"a page gets memory", a_page_gets_memory, ELASTIC,
     .expected = LIFE | GONE | PAGE_RESIZED | GROWN_LINE},
    {"free chunks go", free_chunks_go, ELASTIC, .limit = 7,
     .expected = LIFE | PAGE_RESIZED | GROWN_LINE},
    {"there is no memory for it", there_is_no_memory_for_it, ELASTIC, .limit = 4,
     .expected = LIFE | GONE | REFUSED | NO_MEMORY},
    {"an elastic preallocation", preallocations, ELASTIC,
     .expected = PAGE_MADE | PAGE_RESIZED | GROWN_LINE},
    {"an elastic destroy", a_destroy_with_live_allocations, ELASTIC,
     .expected = LIFE | GONE | FREED},
    {"an elastic trim", trims, ELASTIC, .retained = 1, .expected = LIFE | GONE | PAGE_RESIZED},
    {NULL, NULL, .expected = 0},
};
