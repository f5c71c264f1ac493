/*
 * callbacks_places.c - the places of callbacks.h: what makes the library call each callback.
 */
#include "quire/backend.h"
#include "quire/transfer.h"
#include "tests/support/callbacks_scene.h"
#include "tests/support/check.h"

/* ---- memories of any sort ------------------------------------------------------------------- */

static quire_allocation have(uint64_t size)
{
    quire_allocation a = {0};
    if (!callbacks_can_have(callbacks_scene.memory, &(quire_allocation_options){.size = size}, &a))
        a.id = 0;
    return a;
}

static quire_allocation have_dedicated(uint64_t size)
{
    quire_allocation a = {0};
    if (!callbacks_can_have(callbacks_scene.memory,
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
    quire_allocation a = have(callbacks_scene.page / 2);
    CHECK(a.id);
    release(a);
}

static void an_empty_page_makes_way(void)
{
    release(have(callbacks_scene.page / 2));
    release(have(3 * callbacks_scene.page));
    release(have_dedicated(2 * callbacks_scene.page));
    release(have_dedicated(5 * callbacks_scene.page));
}

static void two_of_three_pages_are_used(void)
{
    quire_allocation a = have(callbacks_scene.page), b = have(callbacks_scene.page);
    release(have_dedicated(callbacks_scene.page / 2));
    release(have(2 * callbacks_scene.page));
    release(have(4 * callbacks_scene.page));
    release(a);
    release(b);
}

static void no_room(void)
{
    quire_allocation a = have(callbacks_scene.page / 2), b = have(callbacks_scene.page / 2);
    for (int i = 0; i < 3; i++)
        release(have(9 * callbacks_scene.page));
    release(have_dedicated(9 * callbacks_scene.page));
    release(a);
    release(have(9 * callbacks_scene.page));
    release(b);
}

/* An empty page in every shard, all of which a request needs to be given back. */
static void empty_pages_elsewhere(void)
{
    if (!quire_memory_preallocate(callbacks_scene.memory, 6 * callbacks_scene.page))
        CHECK_OK(quire_memory_preallocate(callbacks_scene.memory, 0));
    release(have(7 * callbacks_scene.page));
    release(have(9 * callbacks_scene.page));
}

static void a_heap_limit(void)
{
    quire_memory_info info;
    quire_device_info device;
    CHECK_OK(quire_memory_get_info(callbacks_scene.memory, &info));
    CHECK_OK(quire_device_get_info(callbacks_scene.device, &device));
    uint32_t heap = device.kinds[info.kind].heap;
    CHECK_OK(quire_device_set_heap_limit(callbacks_scene.device, heap, 7 * callbacks_scene.page));
    no_room();
    CHECK_OK(quire_device_set_heap_limit(callbacks_scene.device, heap, 0));
    CHECK_OK(quire_device_set_page_limit(callbacks_scene.device, 2));
    no_room();
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
    bool has = callbacks_can_have(callbacks_scene.memory, &half, &a);
    CHECK(!has || !callbacks_can_have(callbacks_scene.memory, &half, &b));
    if (has)
        CHECK_OK(quire_allocation_set_name(callbacks_scene.memory, a, "b"));
    release(a);
    /* what it holds with its rounding is above the limit, and is known once it is placed */
    CHECK_OK(quire_memory_set_name_limit(callbacks_scene.memory, "a/", 10));
    CHECK(!callbacks_can_have(callbacks_scene.memory,
                              &(quire_allocation_options){.size = 10, .name = "a/y"}, &b));
    CHECK_OK(quire_memory_set_name_limit(callbacks_scene.memory, "a/", 0));
}

static void trims(void)
{
    quire_allocation a[6];
    for (int i = 0; i < 6; i++)
        a[i] = i % 2 ? have(callbacks_scene.page) : have_dedicated(callbacks_scene.page / 2);
    for (int i = 0; i < 6; i++)
        release(a[i]);
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, callbacks_scene.page, NULL));
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, 0, NULL));
}

static void reserves(void)
{
    quire_result result =
        quire_memory_preallocate(callbacks_scene.memory, 4 * callbacks_scene.page);
    CHECK_OK(result);
    CHECK_OK(quire_memory_preallocate(callbacks_scene.memory, 0));
    CHECK_OK(quire_memory_set_limit(callbacks_scene.memory, 6 * callbacks_scene.page));
    result = quire_memory_preallocate(callbacks_scene.memory, 20 * callbacks_scene.page);
    CHECK(result == QUIRE_ERROR_OVER_BUDGET ||
          callbacks_scene.habits & TRIM); /* a trim takes its place */
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
    quire_allocation a, b = have(callbacks_scene.page);
    const bool held =
        !(quire_device_backend(callbacks_scene.device)->features & QUIRE_BACKEND_STREAMS);
    const quire_allocation_options whole = {.size = callbacks_scene.page};
    CHECK_OK(quire_stream_create(callbacks_scene.device, &(quire_stream_options){.capture = held},
                                 &callbacks_scene.stream));
    for (int i = 0; i < 4; i++)
        if (!quire_allocate_on(callbacks_scene.memory, &whole, callbacks_scene.stream, &a))
            CHECK_OK(quire_free_on(callbacks_scene.memory, a, callbacks_scene.stream));
    if (b.id) {
        CHECK_OK(quire_record_use(callbacks_scene.memory, b, callbacks_scene.stream));
        CHECK_OK(quire_free(callbacks_scene.memory, b));
    }
    CHECK_OK(quire_collect(callbacks_scene.memory, NULL));
    release(have(3 * callbacks_scene.page));
    CHECK_OK(quire_stream_destroy(&callbacks_scene.stream));
    CHECK_OK(quire_collect(callbacks_scene.memory, NULL));
}

static void what_looks_at_it(void)
{
    quire_allocation a = have(100), b = have_dedicated(100);
    CHECK_OK(quire_memory_walk(callbacks_scene.memory, callbacks_visit, NULL));
    CHECK_OK(quire_memory_write_report(callbacks_scene.memory, callbacks_take_text, NULL));
    CHECK_OK(quire_memory_write_json(callbacks_scene.memory, callbacks_take_text, NULL));
    CHECK_OK(quire_memory_write_svg(callbacks_scene.memory, callbacks_take_text, NULL));
    CHECK_OK(quire_memory_check(callbacks_scene.memory));
    release(a);
    release(b);
}

/* Host memory to host memory of the device, in steps. */
static void a_copy(void)
{
    static unsigned char bytes[4096];
    quire_allocation a = have(sizeof bytes);
    const quire_copy_options options = {.to = {.memory = callbacks_scene.memory, .allocation = a},
                                        .host_from = bytes,
                                        .size = sizeof bytes,
                                        .progress = {.goes_on = callbacks_go_on, .step = 1000}};
    if (a.id)
        CHECK_OK(quire_copy(&options));
    release(a);
}

/* Refused, with lines, while an allocation lives. */
static void a_busy_end(void)
{
    quire_allocation a = have(100);
    quire_device *device = callbacks_scene.device;
    CHECK_FAILS(quire_memory_destroy(&callbacks_scene.memory), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_device_destroy(&device), QUIRE_ERROR_BUSY);
    release(a);
}

static void an_end_with_what_lives(void)
{
    have(100);
    have_dedicated(callbacks_scene.page);
    CHECK_OK(quire_stream_create(callbacks_scene.device, &(quire_stream_options){.capture = true},
                                 &callbacks_scene.stream));
    quire_allocation used = have(callbacks_scene.page / 2);
    if (used.id)
        CHECK_OK(quire_record_use(callbacks_scene.memory, used, callbacks_scene.stream));
}

/* ---- contiguous memories -------------------------------------------------------------------- */

/* With an empty dedicated page, which goes before it grows. */
static void a_page_grows(void)
{
    quire_allocation a = have(callbacks_scene.page);
    release(have_dedicated(callbacks_scene.page));
    quire_allocation b = have(callbacks_scene.page);
    release(have_dedicated(callbacks_scene.page));
    quire_allocation c = have(4 * callbacks_scene.page);
    release(b);
    release(a);
    release(c);
}

/* Its end goes where a dedicated page finds no room, in the middle of making that. */
static void its_end_goes(void)
{
    quire_allocation a = have(callbacks_scene.page / 2), b = have(4 * callbacks_scene.page);
    release(b);
    release(have_dedicated(6 * callbacks_scene.page));
    release(have(2 * callbacks_scene.page));
    CHECK_OK(quire_memory_trim(callbacks_scene.memory, 0, NULL));
    release(a);
}

static void it_cannot_grow(void)
{
    quire_allocation a = have(callbacks_scene.page);
    release(have_dedicated(2 * callbacks_scene.page));
    release(have(4 * callbacks_scene.page));
    release(have_dedicated(callbacks_scene.page));
    release(have(20 * callbacks_scene.page));
    release(a);
}

#define LIFE (MEMORY_MADE | ALLOCATED | PAGE_MADE | PAGE_LINE)
#define GONE (PAGE_GONE | GIVEN_LINE)

const place callbacks_places[] = {
    {"an allocation", an_allocation, .tells = LIFE | FREED},
    {"an empty page makes way", an_empty_page_makes_way, .tells = LIFE | GONE},
    {"the only page makes way", an_empty_page_makes_way, .pages = 1, .tells = LIFE | GONE},
    {"few pages", two_of_three_pages_are_used, .pages = 3, .tells = LIFE | GONE | FREED},
    {"a limit of pages", no_room, .pages = 1, .tells = LIFE | REFUSED | SHORTAGE},
    {"a limit of bytes", no_room, .limit = 7, .tells = LIFE | REFUSED | SHORTAGE},
    {"empty pages elsewhere", empty_pages_elsewhere, .limit = 8,
     .tells = LIFE | GONE | REFUSED | SHORTAGE},
    {"limits of the device", a_heap_limit, .tells = LIFE | GONE | REFUSED | SHORTAGE},
    {"a limit of a name", a_name_limit, .tells = LIFE | REFUSED | SHORTAGE},
    {"trims", trims, .tells = LIFE | GONE},
    {"retention", trims, .retained = 1, .tells = LIFE | GONE},
    {"a reserve", reserves, .tells = PAGE_MADE | PAGE_LINE | GONE},
    {"batches", batches, .limit = 12, .tells = LIFE | FREED | REFUSED | GONE},
    {"retained batches", batches, .limit = 12, .retained = 1, .tells = LIFE | FREED | GONE},
    {"objects", objects, .limit = 7, .tells = LIFE | FREED | REFUSED},
    {"streams", streams, .tells = LIFE | FREED | GONE},
    {"streams and retention", streams, .retained = 1, .pages = 2, .tells = LIFE | FREED | GONE},
    {"visitors and text", what_looks_at_it, .tells = LIFE | VISITED | WRITTEN},
    {"a copy", a_copy, .tells = LIFE | PROGRESS},
    {"a busy end", a_busy_end, .tells = STILL_HOLDS | DEVICE_BUSY},
    {"an end with what lives", an_end_with_what_lives, .tells = LIFE | GONE | FREED},
    {"a page grows", a_page_grows, CONTIGUOUS, .tells = LIFE | GONE | PAGE_RESIZED | GROWN_LINE},
    {"its end goes", its_end_goes, CONTIGUOUS, .limit = 7,
     .tells = LIFE | PAGE_RESIZED | GROWN_LINE},
    {"it cannot grow", it_cannot_grow, CONTIGUOUS, .limit = 4,
     .tells = LIFE | GONE | REFUSED | SHORTAGE},
    {"a contiguous reserve", reserves, CONTIGUOUS, .tells = PAGE_MADE | PAGE_RESIZED | GROWN_LINE},
    {"a contiguous end", an_end_with_what_lives, CONTIGUOUS, .tells = LIFE | GONE | FREED},
    {"a contiguous trim", trims, CONTIGUOUS, .retained = 1, .tells = LIFE | GONE | PAGE_RESIZED},
    {NULL, NULL, .tells = 0},
};
