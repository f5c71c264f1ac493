/*
 * deferred_reuse.c - allocation on a stream: it reuses at once, without a backend call, the ranges
 * that were freed on the same stream. Other streams and capture streams are in
 * deferred_reuse_streams.c.
 */
#include "tests/support/deferred_reuse.h"

#define CASE(name) UNIT_ON(deferred_reuse, name, bench, w, begin(w), end)

CASE(on_the_same_stream_happens_at_once_without_a_backend_call)
{
    quire_allocation first = ON(w, w->a, .size = KIB, .user_data = 1);
    uint64_t place = place_of(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    fake_streams before = *streams_state();
    uint64_t calls = fixture_stats(&w->f).backend_calls;
    for (uint64_t i = 0; i < 100; i++) {
        quire_allocation next = ON(w, w->a, .size = KIB, .user_data = i);
        CHECK(next.id != first.id);
        CHECK_EQ(place_of(w, next), place);
        CHECK_EQ(fixture_info(&w->f, next).user_data, i);
        CHECK_OK(quire_free_on_stream(w->f.memory, next, w->a));
        CHECK_FAILS(quire_free(w->f.memory, next), QUIRE_ERROR_STALE_HANDLE);
        CHECK_FAILS(quire_free(w->f.memory, first), QUIRE_ERROR_STALE_HANDLE);
    }
    CHECK(!memcmp(&before, streams_state(), sizeof before));
    quire_memory_stats stats = fixture_stats(&w->f);
    CHECK_EQ(stats.backend_calls, calls);
    CHECK_EQ(stats.allocations, 101);
    CHECK_EQ(stats.frees, 100);
    CHECK_EQ(stats.deferred_bytes, KIB);
}

CASE(accepts_ranges_up_to_an_eighth_larger)
{
    quire_allocation large = ON(w, w->a, .size = 8 * KIB);
    uint64_t place = place_of(w, large);
    CHECK_OK(quire_free_on_stream(w->f.memory, large, w->a));
    quire_allocation other = ON(w, w->a, .size = 7 * KIB); /* 8 KiB are more than 9/8 of it */
    CHECK(place_of(w, other) != place);
    quire_allocation close = ON(w, w->a, .size = 7 * KIB + 256);
    CHECK_EQ(place_of(w, close), place);
    quire_allocation_info info = fixture_info(&w->f, close);
    CHECK_EQ(info.requested, 7 * KIB + 256);
    CHECK_EQ(info.size, 8 * KIB);
    CHECK_EQ(fixture_stats(&w->f).requested_bytes, 14 * KIB + 256);
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
        CHECK_OK(quire_free_on_stream(w.f.memory, first, w.a));
        CHECK_EQ(place_of(&w, ON(&w, w.a, .size = sizes[i / 3])), place);
        end(&w);
    }
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
        CHECK_OK(quire_free_on_stream(w.f.memory, low, w.a));
        quire_allocation high = ON(&w, w.a, .size = sizes[i], .alignment = ALIGNMENT);
        CHECK_EQ(fixture_info(&w.f, high).address % ALIGNMENT, 0);
        CHECK_EQ(place_of(&w, ON(&w, w.a, .size = sizes[i])), place); /* `low` still waits */
        end(&w);
    }
}

CASE(reports_names_and_events_like_any_allocation)
{
    char name[16];
    quire_allocation first = ON(w, w->a, .size = KIB, .name = "first");
    uint64_t place = place_of(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    quire_allocation second = ON(w, w->a, .size = KIB, .name = "second");
    CHECK_EQ(place_of(w, second), place);
    CHECK_OK(quire_allocation_get_name(w->f.memory, second, name, sizeof name));
    CHECK_STR(name, "second");
    CHECK_OK(quire_free_on_stream(w->f.memory, second, w->a));
    quire_allocation third = ON(w, w->a, .size = KIB);
    CHECK_OK(quire_allocation_get_name(w->f.memory, third, name, sizeof name));
    CHECK_STR(name, "");
}

CASE(refused_by_a_limit_of_its_name_makes_the_range_wait_again)
{
    CHECK_OK(quire_memory_set_name_limit(w->f.memory, "x", 100));
    CHECK_OK(quire_free_on_stream(w->f.memory, ON(w, w->a, .size = KIB), w->a));
    quire_allocation none = {77};
    CHECK_FAILS(quire_allocate(
                    w->f.memory,
                    &(quire_allocation_options){.size = KIB, .name = "xy", .stream = w->a}, &none),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(none.id, 0);
    CHECK_EQ(fixture_stats(&w->f).deferred_count, 1);
}

CASE(does_not_happen_for_zeroed_allocations)
{
    quire_allocation first = ON(w, w->a, .size = KIB);
    uint64_t place = place_of(w, first);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    CHECK(place_of(w, ON(w, w->a, .size = KIB, .zero = true)) != place);
}

CASE(does_not_happen_for_imported_memory)
{
    const uint64_t size = 2 * PAGE;
    quire_allocation adopted;
    CHECK_OK(
        quire_page_adopt(w->f.memory, &size, &(quire_allocation_options){.size = size}, &adopted));
    CHECK_OK(quire_free_on_stream(w->f.memory, adopted, w->a));
    ON(w, w->a,
       .size = size); /* the page was created for the first allocation and is destroyed with it */
    CHECK_EQ(w->f.fake.pages, 2);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    streams_pass(w->a);
    CHECK_OK(quire_collect(w->f.memory, NULL));
    CHECK_EQ(w->f.fake.pages, 1);
}
