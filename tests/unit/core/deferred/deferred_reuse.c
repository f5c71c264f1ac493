/*
 * deferred_reuse.c - allocation on a stream: it reuses at once, without a call, what was freed on
 * that stream, and what was freed on other streams after their points. A capture stream keeps its
 * own ranges.
 */
#include "tests/support/fixture.h"
#include "tests/support/streams.h"

enum { KIB = 1024, PAGE = 64 * KIB };

typedef struct bench {
    fixture f;
    quire_stream *a, *b;
} bench;

static quire_stream *make(bench *w, bool held)
{
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(w->f.device, &(quire_stream_options){.capture = held}, &stream));
    return stream;
}

static void open_bench(bench *w, quire_fit fit)
{
    fixture_open(&w->f, &(quire_memory_options){
                            .fit = fit,
                            .pages = {.page_size = PAGE, .dedicated_threshold = PAGE},
                        });
    w->a = make(w, false);
    w->b = make(w, false);
}

static void begin_with(bench *w, quire_fit fit)
{
    fixture_prepare(&w->f);
    streams_offer(&w->f.fake.table);
    open_bench(w, fit);
}

static void begin(bench *w)
{
    begin_with(w, QUIRE_FIT_SEGREGATED);
}

static void end(bench *w)
{
    streams_state()->await_passes = true;
    CHECK_OK(quire_memory_check(w->f.memory));
    quire_memory_destroy_all(&w->f.memory);
    CHECK_OK(quire_stream_destroy(&w->a));
    CHECK_OK(quire_stream_destroy(&w->b));
    CHECK_OK(quire_device_destroy(&w->f.device));
    CHECK_EQ(w->f.fake.pages, 0);
}

static quire_allocation allocate_on(bench *w, const quire_allocation_options *options,
                                    quire_stream *stream)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate_on(w->f.memory, options, stream, &allocation));
    CHECK_OK(quire_memory_check(w->f.memory));
    return allocation;
}

#define ON(w, stream, ...) allocate_on((w), &(quire_allocation_options){__VA_ARGS__}, (stream))

static uint64_t place_of(bench *w, quire_allocation allocation)
{
    quire_allocation_info info = fixture_info(&w->f, allocation);
    return (uint64_t)info.page * PAGE * 16 + info.offset;
}

UNIT(deferred_reuse, on_the_same_stream_happens_at_once_without_a_backend_call)
{
    bench w;
    begin(&w);
    quire_allocation first = ON(&w, w.a, .size = KIB, .user_data = 1);
    uint64_t place = place_of(&w, first);
    CHECK_OK(quire_free_on(w.f.memory, first, w.a));
    fake_streams before = *streams_state();
    uint64_t calls = fixture_stats(&w.f).backend_calls;
    for (uint64_t i = 0; i < 100; i++) {
        quire_allocation next = ON(&w, w.a, .size = KIB, .user_data = i);
        CHECK(next.id != first.id);
        CHECK_EQ(place_of(&w, next), place);
        CHECK_EQ(fixture_info(&w.f, next).user_data, i);
        CHECK_OK(quire_free_on(w.f.memory, next, w.a));
        CHECK_FAILS(quire_free(w.f.memory, next), QUIRE_ERROR_STALE_HANDLE);
        CHECK_FAILS(quire_free(w.f.memory, first), QUIRE_ERROR_STALE_HANDLE);
    }
    CHECK(!memcmp(&before, streams_state(), sizeof before));
    quire_memory_stats stats = fixture_stats(&w.f);
    CHECK_EQ(stats.backend_calls, calls);
    CHECK_EQ(stats.allocations, 101);
    CHECK_EQ(stats.frees, 100);
    CHECK_EQ(stats.deferred_bytes, KIB);
    end(&w);
}

UNIT(deferred_reuse, accepts_ranges_up_to_an_eighth_larger)
{
    bench w;
    begin(&w);
    quire_allocation large = ON(&w, w.a, .size = 8 * KIB);
    uint64_t place = place_of(&w, large);
    CHECK_OK(quire_free_on(w.f.memory, large, w.a));
    quire_allocation other = ON(&w, w.a, .size = 7 * KIB); /* 8 KiB are more than 9/8 of it */
    CHECK(place_of(&w, other) != place);
    quire_allocation close = ON(&w, w.a, .size = 7 * KIB + 256);
    CHECK_EQ(place_of(&w, close), place);
    quire_allocation_info info = fixture_info(&w.f, close);
    CHECK_EQ(info.requested, 7 * KIB + 256);
    CHECK_EQ(info.size, 8 * KIB);
    CHECK_EQ(fixture_stats(&w.f).requested_bytes, 14 * KIB + 256);
    end(&w);
}

UNIT(deferred_reuse, accepts_ranges_that_the_fit_rounded_up_for_the_same_size)
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    static const uint64_t sizes[] = {1, 100, 300, 700, 5 * KIB, 40 * KIB + 1, 2 * PAGE + 1};
    for (int i = 0; i < 3 * 7; i++) {
        bench w;
        begin_with(&w, fits[i % 3]);
        quire_allocation first = ON(&w, w.a, .size = sizes[i / 3]);
        uint64_t place = place_of(&w, first);
        CHECK_OK(quire_free_on(w.f.memory, first, w.a));
        CHECK_EQ(place_of(&w, ON(&w, w.a, .size = sizes[i / 3])), place);
        end(&w);
    }
}

UNIT(deferred_reuse, respects_the_alignment)
{
    bench w;
    begin(&w);
    quire_allocation pad = ON(&w, w.a, .size = 256), odd = ON(&w, w.a, .size = KIB);
    CHECK_OK(quire_free_on(w.f.memory, odd, w.a));
    quire_allocation aligned = ON(&w, w.a, .size = KIB, .alignment = 4 * KIB);
    CHECK_EQ(fixture_info(&w.f, aligned).offset % (4 * KIB), 0);
    fixture_info(&w.f, pad);
    end(&w);
}

/* Pages begin 256 bytes after such a multiple: offsets do not show larger alignments. */
UNIT(deferred_reuse, respects_an_alignment_above_that_of_the_page)
{
    enum { STEP = 256, ALIGNMENT = 4 * KIB };
    static const uint64_t sizes[] = {KIB, 2 * PAGE}; /* in a shared page, in a dedicated one */
    for (int i = 0; i < 2; i++) {
        bench w;
        fixture_prepare(&w.f);
        streams_offer(&w.f.fake.table);
        w.f.fake.address_step = STEP;
        w.f.fake.info.limits.page_alignment = STEP;
        open_bench(&w, QUIRE_FIT_SEGREGATED);
        quire_allocation low = ON(&w, w.a, .size = sizes[i]);
        uint64_t place = place_of(&w, low);
        CHECK(!(fixture_info(&w.f, low).offset % ALIGNMENT) &&
              fixture_info(&w.f, low).address % ALIGNMENT);
        CHECK_OK(quire_free_on(w.f.memory, low, w.a));
        quire_allocation high = ON(&w, w.a, .size = sizes[i], .alignment = ALIGNMENT);
        CHECK_EQ(fixture_info(&w.f, high).address % ALIGNMENT, 0);
        CHECK_EQ(place_of(&w, ON(&w, w.a, .size = sizes[i])), place); /* `low` still waits */
        end(&w);
    }
}

UNIT(deferred_reuse, works_for_dedicated_pages)
{
    bench w;
    begin(&w);
    quire_allocation large = ON(&w, w.a, .size = 2 * PAGE);
    CHECK(fixture_info(&w.f, large).dedicated);
    uint64_t made = fixture_stats(&w.f).pages_created;
    for (int i = 0; i < 5; i++) {
        CHECK_OK(quire_free_on(w.f.memory, large, w.a));
        large = ON(&w, w.a, .size = 2 * PAGE);
    }
    CHECK_EQ(fixture_stats(&w.f).pages_created, made);
    end(&w);
}

UNIT(deferred_reuse, reports_names_and_events_like_any_allocation)
{
    bench w;
    begin(&w);
    char name[16];
    quire_allocation first = ON(&w, w.a, .size = KIB, .name = "first");
    uint64_t place = place_of(&w, first);
    CHECK_OK(quire_free_on(w.f.memory, first, w.a));
    quire_allocation second = ON(&w, w.a, .size = KIB, .name = "second");
    CHECK_EQ(place_of(&w, second), place);
    CHECK_OK(quire_allocation_get_name(w.f.memory, second, name, sizeof name));
    CHECK_STR(name, "second");
    CHECK_OK(quire_free_on(w.f.memory, second, w.a));
    quire_allocation third = ON(&w, w.a, .size = KIB);
    CHECK_OK(quire_allocation_get_name(w.f.memory, third, name, sizeof name));
    CHECK_STR(name, "");
    end(&w);
}

UNIT(deferred_reuse, refused_by_a_limit_of_its_name_makes_the_range_wait_again)
{
    bench w;
    begin(&w);
    CHECK_OK(quire_memory_set_name_limit(w.f.memory, "x", 100));
    CHECK_OK(quire_free_on(w.f.memory, ON(&w, w.a, .size = KIB), w.a));
    quire_allocation none = {77};
    CHECK_FAILS(quire_allocate_on(
                    w.f.memory, &(quire_allocation_options){.size = KIB, .name = "xy"}, w.a, &none),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(none.id, 0);
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 1);
    end(&w);
}

UNIT(deferred_reuse, does_not_happen_for_zeroed_allocations)
{
    bench w;
    begin(&w);
    quire_allocation first = ON(&w, w.a, .size = KIB);
    uint64_t place = place_of(&w, first);
    CHECK_OK(quire_free_on(w.f.memory, first, w.a));
    CHECK(place_of(&w, ON(&w, w.a, .size = KIB, .zero = true)) != place);
    end(&w);
}

UNIT(deferred_reuse, does_not_happen_for_imported_memory)
{
    bench w;
    begin(&w);
    const uint64_t size = 2 * PAGE;
    quire_allocation adopted;
    CHECK_OK(
        quire_page_adopt(w.f.memory, &size, &(quire_allocation_options){.size = size}, &adopted));
    CHECK_OK(quire_free_on(w.f.memory, adopted, w.a));
    ON(&w, w.a,
       .size = size); /* the page was created for the first allocation and is destroyed with it */
    CHECK_EQ(w.f.fake.pages, 2);
    CHECK_OK(quire_collect(w.f.memory, NULL));
    streams_pass(w.a);
    CHECK_OK(quire_collect(w.f.memory, NULL));
    CHECK_EQ(w.f.fake.pages, 1);
    end(&w);
}

/* ---- other streams ------------------------------------------------------------------------ */

UNIT(deferred_reuse, of_another_streams_range_orders_the_streams_before_a_page_is_created)
{
    bench w;
    begin(&w);
    quire_allocation whole = ON(&w, w.a, .size = PAGE - 256);
    CHECK_OK(quire_free_on(w.f.memory, whole, w.a));
    quire_allocation next = ON(&w, w.b, .size = PAGE - 256);
    CHECK_EQ(w.f.fake.pages, 1);
    CHECK_EQ(fixture_info(&w.f, next).page, 0);
    CHECK_EQ(streams_state()->orders, 1);
    uint64_t b = streams_number(w.b), a = streams_number(w.a);
    CHECK(streams_state()->behind[b][a] &&
          streams_state()->behind[b][a] == streams_state()->marked[a]);
    end(&w);
}

UNIT(deferred_reuse, of_another_streams_range_that_cannot_be_ordered_creates_a_page)
{
    bench w;
    begin(&w);
    CHECK_OK(quire_free_on(w.f.memory, ON(&w, w.a, .size = PAGE - 256), w.a));
    streams_state()->order_answers = QUIRE_ERROR_UNSUPPORTED;
    ON(&w, w.b, .size = PAGE - 256);
    CHECK_EQ(w.f.fake.pages, 2);
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 1);
    CHECK_STR(quire_last_error(), "");
    end(&w);
}

UNIT(deferred_reuse, of_another_streams_range_loses_nothing_if_the_stream_cannot_be_marked)
{
    bench w;
    begin(&w);
    quire_point point;
    quire_allocation none = {77};
    const quire_allocation_options options = {.size = PAGE - 256, .name = "xy"};
    CHECK_OK(quire_memory_set_name_limit(w.f.memory, "x", 100));
    quire_allocation whole = ON(&w, w.a, .size = PAGE - 256);
    CHECK_OK(quire_stream_mark(w.a, &point));
    CHECK_OK(quire_free_after(w.f.memory, whole, &point));
    streams_state()->mark_answers = QUIRE_ERROR_UNSUPPORTED;
    CHECK_FAILS(quire_allocate_on(w.f.memory, &options, w.b, &none), QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 1);
    CHECK_EQ(fixture_stats(&w.f).allocation_count, 1);
    end(&w);
}

UNIT(deferred_reuse, of_a_range_of_another_devices_stream_waits)
{
    bench w;
    begin(&w);
    fake_backend other;
    quire_device *device = NULL;
    quire_stream *far = NULL;
    fake_init(&other);
    other.table = w.f.fake.table;
    CHECK_OK(fake_open(&other, unit_memory(), &device));
    CHECK_OK(quire_stream_create(device, NULL, &far));
    CHECK_OK(quire_free_on(w.f.memory, ON(&w, w.a, .size = PAGE - 256), far));
    ON(&w, w.a, .size = PAGE - 256);
    CHECK_EQ(w.f.fake.pages, 2);
    CHECK_EQ(streams_state()->orders, 0);
    quire_stream_info info; /* no attempt was made: it would have marked the stream */
    CHECK_OK(quire_stream_get_info(w.a, &info));
    CHECK_EQ(info.marked, 0);
    streams_pass(far);
    CHECK_OK(quire_collect(w.f.memory, NULL));
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 0);
    CHECK_OK(quire_stream_destroy(&far));
    CHECK_OK(quire_device_destroy(&device));
    end(&w);
}

UNIT(deferred_reuse, without_a_stream_waits)
{
    bench w;
    begin(&w);
    CHECK_OK(quire_free_on(w.f.memory, ON(&w, w.a, .size = PAGE - 256), w.a));
    ALLOCATE(&w.f, .size = PAGE - 256);
    CHECK_EQ(w.f.fake.pages, 2);
    end(&w);
}

UNIT(deferred_reuse, of_a_range_used_on_another_stream_waits_for_that_stream)
{
    bench w;
    begin(&w);
    quire_allocation first = ON(&w, w.a, .size = KIB);
    uint64_t place = place_of(&w, first);
    CHECK_OK(quire_record_use(w.f.memory, first, w.b));
    CHECK_OK(quire_free_on(w.f.memory, first, w.a));
    CHECK(place_of(&w, ON(&w, w.a, .size = KIB)) != place);
    CHECK_OK(quire_collect(w.f.memory, NULL));
    streams_pass(w.b);
    CHECK_OK(quire_collect(w.f.memory, NULL)); /* now it waits for its own stream alone */
    CHECK_EQ(place_of(&w, ON(&w, w.a, .size = KIB)), place);
    end(&w);
}

UNIT(deferred_reuse, does_not_happen_for_buffers)
{
    bench w;
    begin(&w);
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(w.f.memory, &(quire_buffer_options){.size = KIB}, &buffer));
    uint64_t place = place_of(&w, buffer.allocation);
    CHECK_OK(quire_free_on(w.f.memory, buffer.allocation, w.a));
    CHECK(place_of(&w, ON(&w, w.a, .size = KIB)) != place);
    CHECK(place_of(&w, ON(&w, w.b, .size = KIB)) != place);
    CHECK_OK(quire_collect(w.f.memory, NULL)); /* now its point is known */
    CHECK_EQ(w.f.fake.objects, 1);
    streams_pass(w.a);
    CHECK_OK(quire_collect(w.f.memory, NULL));
    CHECK_EQ(w.f.fake.objects, 0);
    end(&w);
}

/* ---- capture streams ------------------------------------------------------------------------- */

UNIT(deferred_reuse, a_capture_stream_keeps_ranges_freed_on_it_for_itself)
{
    bench w;
    begin(&w);
    quire_stream *graph = make(&w, true);
    quire_allocation first = ON(&w, graph, .size = KIB), second = ON(&w, graph, .size = KIB);
    uint64_t places[2] = {place_of(&w, first), place_of(&w, second)};
    CHECK_OK(quire_free(w.f.memory, first)); /* any kind of free */
    CHECK_OK(quire_free_on(w.f.memory, second, graph));
    CHECK_OK(quire_collect(w.f.memory, NULL));
    quire_allocation other = ALLOCATE(&w.f, .size = KIB), on_a = ON(&w, w.a, .size = KIB);
    for (int i = 0; i < 2; i++)
        CHECK(place_of(&w, other) != places[i] && place_of(&w, on_a) != places[i]);
    quire_allocation again[2] = {ON(&w, graph, .size = KIB), ON(&w, graph, .size = KIB)};
    for (int i = 0; i < 2; i++)
        CHECK(place_of(&w, again[i]) == places[0] || place_of(&w, again[i]) == places[1]);
    CHECK(place_of(&w, again[0]) != place_of(&w, again[1]));
    CHECK_OK(quire_stream_destroy(&graph));
    fixture_info(&w.f, again[0]); /* live without the stream */
    CHECK_OK(quire_free(w.f.memory, again[0]));
    CHECK_OK(quire_free(w.f.memory, again[1]));
    CHECK_EQ(fixture_stats(&w.f).deferred_count, 0);
    end(&w);
}

UNIT(deferred_reuse, a_capture_stream_keeps_ranges_freed_on_another_stream_once_that_has_passed)
{
    bench w;
    begin(&w);
    quire_stream *graph = make(&w, true);
    quire_allocation first = ON(&w, graph, .size = KIB);
    uint64_t place = place_of(&w, first);
    CHECK_OK(quire_free_on(w.f.memory, first, w.a));
    CHECK(place_of(&w, ON(&w, graph, .size = KIB)) != place); /* the work of the stream continues */
    CHECK_OK(quire_collect(w.f.memory, NULL));
    streams_pass(w.a);
    CHECK_OK(quire_collect(w.f.memory, NULL));
    CHECK(place_of(&w, ON(&w, w.a, .size = KIB)) != place);
    CHECK_EQ(place_of(&w, ON(&w, graph, .size = KIB)), place);
    CHECK_OK(quire_stream_destroy(&graph));
    end(&w);
}

UNIT(deferred_reuse, a_capture_stream_keeps_pages_until_it_is_destroyed)
{
    bench w;
    begin(&w);
    quire_stream *graph = make(&w, true);
    uint64_t released = 1;
    CHECK_OK(quire_free(w.f.memory, ON(&w, graph, .size = KIB)));
    quire_allocation recorded = ALLOCATE(&w.f, .size = PAGE - KIB);
    CHECK_OK(quire_record_use(w.f.memory, recorded, graph));
    CHECK_OK(quire_free(w.f.memory, recorded));
    CHECK_OK(quire_memory_trim(w.f.memory, 0, &released));
    CHECK_EQ(released, 0);
    CHECK_FAILS(quire_memory_destroy(&w.f.memory), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_stream_destroy(&graph));
    CHECK_OK(quire_memory_trim(w.f.memory, 0, &released));
    CHECK_EQ(released, PAGE);
    end(&w);
}

UNIT(deferred_reuse, a_capture_stream_is_destroyed_with_its_memory)
{
    bench w;
    begin(&w);
    quire_stream *graph = make(&w, true);
    CHECK_OK(quire_free(w.f.memory, ON(&w, graph, .size = KIB)));
    ON(&w, graph, .size = KIB);
    quire_memory_destroy_all(&w.f.memory);
    CHECK_EQ(w.f.fake.pages, 0);
    CHECK_OK(quire_stream_destroy(&graph));
    CHECK_OK(quire_memory_create(w.f.device, NULL, &w.f.memory));
    end(&w);
}

/* ---- misuse and host memory --------------------------------------------------------------- */

UNIT(deferred_reuse, refuses_null_and_invalid_options)
{
    bench w;
    begin(&w);
    const quire_allocation_options options = {.size = KIB}, empty = {0};
    quire_allocation none = {77};
    CHECK_FAILS(quire_allocate_on(NULL, &options, w.a, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(none.id, 0);
    CHECK_FAILS(quire_allocate_on(w.f.memory, NULL, w.a, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_allocate_on(w.f.memory, &options, NULL, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_allocate_on(w.f.memory, &options, w.a, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_allocate_on(w.f.memory, &empty, w.a, &none), QUIRE_ERROR_INVALID_ARGUMENT);
    end(&w);
}

UNIT(deferred_reuse, without_host_memory_loses_nothing)
{
    for (uint64_t call = 1; call < 12; call++)
        for (int held = 0; held < 2; held++) {
            bench w;
            begin(&w);
            quire_stream *stream = make(&w, held != 0);
            quire_allocation first = ON(&w, stream, .size = KIB), second = {0};
            CHECK_OK(quire_free_on(w.f.memory, first, stream));
            test_memory_fail(unit_memory_state(), call, true);
            quire_result result = quire_allocate_on(
                w.f.memory, &(quire_allocation_options){.size = KIB, .name = "name"}, stream,
                &second);
            test_memory_fail(unit_memory_state(), 0, false);
            CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_OK(quire_memory_check(w.f.memory));
            CHECK_EQ(fixture_stats(&w.f).deferred_count, result ? 1 : 0);
            if (!result)
                CHECK_OK(quire_free_on(w.f.memory, second, stream));
            quire_memory_destroy_all(&w.f.memory);
            CHECK_OK(quire_stream_destroy(&stream));
            CHECK_OK(quire_memory_create(w.f.device, NULL, &w.f.memory));
            end(&w);
        }
}
