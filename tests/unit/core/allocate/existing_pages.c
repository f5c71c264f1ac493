/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * existing_pages.c - requests that take only ranges of pages that exist: what they find, and that
 * they make, grow and wait for no page.
 */
#include "tests/support/deferred_reuse.h"

#include <pthread.h>

#include "src/core/state/memory.h"
#include "src/space/space.h"

#define NO_ROOM QUIRE_ERROR_OUT_OF_DEVICE_MEMORY
#define EXISTING .existing_pages = true

static void make_memory(fixture *f, quire_memory_options options)
{
    options.pages.page_size = PAGE;
    fixture_make(f, &options);
}

/* The request is refused without a call of the backend, and nothing but a count changes. */
static void refuse(fixture *f, quire_allocation_options options)
{
    quire_memory_stats before = fixture_stats(f), after;
    quire_allocation none = {1};
    uint64_t calls = f->fake.fallible_calls;
    options.existing_pages = true;
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), NO_ROOM);
    CHECK_EQ(none.id, 0);
    CHECK_HAS(quire_last_error(), ": existing_pages is set, so that no page is made; memory '");
    CHECK(!strstr(quire_last_error(), "given back"));
    CHECK_EQ(f->fake.fallible_calls, calls);
    after = fixture_stats(f);
    CHECK_EQ(after.failures, before.failures + 1);
    CHECK_EQ(after.page_count, before.page_count);
    CHECK_EQ(after.pages_created, before.pages_created);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_OK(quire_memory_check(f->memory));
}

#define REFUSE(f, ...) refuse((f), (quire_allocation_options){__VA_ARGS__})

#define CASE(name, ...)                                                                            \
    UNIT_ON(existing_pages, name, fixture, f, make_memory(f, __VA_ARGS__), fixture_end)

/* ---- one memory ----------------------------------------------------------------------------- */

CASE(a_range_of_an_existing_page_is_taken_and_no_page_is_made,
     (quire_memory_options){.name = "one"})
{
    REFUSE(f, .size = 1);
    quire_allocation first = ALLOCATE(f, .size = PAGE / 2);
    quire_allocation second = ALLOCATE(f, .size = PAGE / 2, EXISTING);
    CHECK_EQ(fixture_info(f, second).page, fixture_info(f, first).page);
    REFUSE(f, .size = 1);
    REFUSE(f, .size = 1, .name = "texture", .zero = true);
    CHECK_HAS(quire_last_error(), "cannot allocate 'texture' (1 B): existing_pages");
    CHECK_HAS(quire_last_error(), "Tried: a full pass");
    CHECK_OK(quire_free(f->memory, first));
    ALLOCATE(f, .size = PAGE / 2, .name = "texture", .zero = true, EXISTING);
    REFUSE(f, .size = 2 * PAGE);
    REFUSE(f, .size = UINT64_MAX / 4);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

CASE(an_empty_page_is_used_and_never_given_back_for_the_request, (quire_memory_options){0})
{
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = PAGE)));
    REFUSE(f, .size = PAGE + 1);
    REFUSE(f, .size = PAGE, .dedicated = true);
    CHECK_EQ(fixture_stats(f).page_count, 1);
    ALLOCATE(f, .size = PAGE, EXISTING);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

/* The bounded search gives up among many ranges that are large enough and not aligned. */
UNIT(existing_pages, every_free_range_is_searched)
{
    enum { PERIODS = 256 };
    fixture f;
    quire_allocation holes[PERIODS];
    const quire_allocation_options aligned = {.size = KIB, .alignment = KIB, EXISTING};
    fixture_make(&f, &(quire_memory_options){.pages = {.page_size = PERIODS * 2 * KIB}});
    for (int i = 0; i < PERIODS; i++) { /* the hole of the last period alone is aligned */
        uint64_t before = i < PERIODS - 1 ? 256 : 0;
        if (before)
            ALLOCATE(&f, .size = before);
        holes[i] = ALLOCATE(&f, .size = KIB);
        ALLOCATE(&f, .size = KIB - before);
    }
    CHECK_EQ(fixture_stats(&f).free_bytes, 0);
    quire_allocation_info last = fixture_info(&f, holes[PERIODS - 1]);
    for (int i = PERIODS - 1; i >= 0; i--)
        CHECK_OK(quire_free(f.memory, holes[i]));
    CHECK_EQ(fixture_info(&f, fixture_allocate(&f, &aligned)).offset, last.offset);
    CHECK_EQ(f.memory->shards[0]->space->full_pass_hits, 1);
    refuse(&f, aligned);
    fixture_end(&f);
}

CASE(a_dedicated_request_takes_a_kept_page, (quire_memory_options){0})
{
    REFUSE(f, .size = 2 * PAGE, .dedicated = true);
    quire_allocation own = ALLOCATE(f, .size = 2 * PAGE, .dedicated = true);
    CHECK_OK(quire_free(f->memory, own));
    REFUSE(f, .size = PAGE, .dedicated = true); /* not of about the same size */
    own = ALLOCATE(f, .size = 2 * PAGE, .dedicated = true, EXISTING);
    CHECK(fixture_info(f, own).dedicated);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

UNIT_PREPARED(existing_pages, an_elastic_memory_gets_no_chunk, f)
{
    fake_offer_growth(&f->fake);
    fixture_open(f, &(quire_memory_options){
                        .elastic = true, .address_space = 16 * PAGE, .pages = {.page_size = PAGE}});
    REFUSE(f, .size = 1000);
    ALLOCATE(f, .size = PAGE / 2);
    REFUSE(f, .size = PAGE);
    ALLOCATE(f, .size = PAGE / 2, EXISTING);
    REFUSE(f, .size = 1);
    CHECK_EQ(f->fake.page_bytes, PAGE);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_BACK], 0);
}

CASE(a_batch_is_placed_whole_or_refused, (quire_memory_options){0})
{
    quire_allocation made[8];
    quire_allocation_options options = {.size = PAGE / 8, EXISTING};
    ALLOCATE(f, .size = PAGE / 2);
    CHECK_FAILS(quire_allocate_batch(f->memory, &options, made, 5), NO_ROOM);
    CHECK_EQ(fixture_stats(f).allocation_count, 1);
    CHECK_OK(quire_allocate_batch(f->memory, &options, made, 4));
    options.name = "named";
    CHECK_FAILS(quire_allocate_batch(f->memory, &options, made, 1), NO_ROOM);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

/* ---- shards --------------------------------------------------------------------------------- */

CASE(pages_of_other_shards_are_searched, (quire_memory_options){.shards = 2})
{
    REFUSE(f, .size = 1);
    quire_allocation there = ALLOCATE_ELSEWHERE(f, .size = PAGE / 2);
    quire_allocation here = ALLOCATE(f, .size = PAGE / 2, EXISTING);
    CHECK_EQ(fixture_info(f, here).page, fixture_info(f, there).page);
    REFUSE(f, .size = 1);
    CHECK_HAS(quire_last_error(), "Tried: a full pass, other shards");
    fixture_free_elsewhere(f, there);
    CHECK_OK(quire_free(f->memory, here));
    ALLOCATE(f, .size = PAGE, EXISTING); /* the empty page moves */
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

/* ---- streams -------------------------------------------------------------------------------- */

UNIT_ON(existing_pages, ranges_of_deferred_frees_are_taken_once_their_points_have_passed, bench, w,
        begin(w), end)
{
    quire_allocation first = ON(w, w->a, .size = PAGE / 2);
    quire_allocation second = ON(w, w->a, .size = PAGE / 2);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    REFUSE(&w->f, .size = PAGE / 2);
    ON(w, w->a, .size = PAGE / 2, EXISTING); /* reused on its stream at once */
    CHECK_OK(quire_free_on_stream(w->f.memory, second, w->a));
    REFUSE(&w->f, .size = PAGE / 2);
    streams_pass(w->a);
    ALLOCATE(&w->f, .size = PAGE / 2, EXISTING);
    CHECK_EQ(w->f.fake.calls[FAKE_PAGE_CREATE], 1);
}

UNIT_ON(existing_pages, a_stream_takes_over_the_range_of_another_one, bench, w, begin(w), end)
{
    quire_allocation first = ON(w, w->a, .size = PAGE / 2);
    ON(w, w->a, .size = PAGE / 2);
    CHECK_OK(quire_free_on_stream(w->f.memory, first, w->a));
    uint64_t orders = streams_state()->orders;
    ON(w, w->b, .size = PAGE / 2, EXISTING);
    CHECK_EQ(streams_state()->orders, orders + 1);
    CHECK_EQ(w->f.fake.calls[FAKE_PAGE_CREATE], 1);
}

/* ---- several memories, and the callback ----------------------------------------------------- */

static bool count_call(void *user, quire_memory *memory, const quire_out_of_memory *report)
{
    (void)memory;
    (void)report;
    ++*(int *)user;
    return false;
}

UNIT(existing_pages, on_out_of_memory_is_not_called)
{
    fixture f;
    int calls = 0;
    uint32_t chosen = 9;
    quire_allocation none;
    const quire_allocation_options options = {.size = 100, EXISTING};
    make_memory(&f, (quire_memory_options){.on_out_of_memory = {count_call, &calls}});
    REFUSE(&f, .size = 100);
    REFUSE(&f, .size = 100, .dedicated = true);
    CHECK_FAILS(quire_allocate_fallback(&f.memory, 1, &options, &chosen, &none), NO_ROOM);
    CHECK_EQ(calls, 0);
    f.fake.page_budget = 1;
    ALLOCATE_FAILS(&f, NO_ROOM, .size = 100);
    CHECK_EQ(calls, 1);
    fixture_end(&f);
}

CASE(the_first_memory_with_room_serves_a_fallback_list, (quire_memory_options){.name = "first"})
{
    quire_memory *memories[2] = {NULL};
    quire_allocation made;
    quire_buffer buffer;
    uint32_t chosen = 9;
    const quire_allocation_options options = {.size = 100, EXISTING};
    memories[0] = f->memory;
    CHECK_OK(
        quire_memory_create(f->device, &(quire_memory_options){.name = "second"}, &memories[1]));
    CHECK_FAILS(quire_allocate_fallback(memories, 2, &options, &chosen, &made), NO_ROOM);
    CHECK_HAS(quire_last_error(), "memory 'first'");
    CHECK_OK(quire_memory_preallocate(memories[1], PAGE));
    CHECK_OK(quire_allocate_fallback(memories, 2, &options, &chosen, &made));
    CHECK_EQ(chosen, 1);
    CHECK_OK(quire_buffer_create_fallback(
        memories, 2, &(quire_buffer_options){.size = 100, EXISTING}, &chosen, &buffer));
    CHECK_EQ(chosen, 1);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
    quire_memory_destroy_all(&memories[1]);
}

/* ---- reserved ranges, buffers and images ---------------------------------------------------- */

CASE(reserved_ranges_and_objects_follow_it, (quire_memory_options){0})
{
    quire_allocation reserved;
    quire_buffer buffer;
    quire_image image;
    const quire_allocation_options range = {.size = 1000, EXISTING};
    const quire_buffer_options of_buffer = {.size = 1000, EXISTING};
    const quire_image_options of_image = {.width = 16, .height = 16, EXISTING};
    CHECK_FAILS(quire_reserve(f->memory, &range, &reserved), NO_ROOM);
    CHECK_FAILS(quire_buffer_create(f->memory, &of_buffer, &buffer), NO_ROOM);
    CHECK_HAS(quire_last_error(), "existing_pages");
    CHECK_FAILS(quire_image_create(f->memory, &of_image, &image), NO_ROOM);
    CHECK_HAS(quire_last_error(), "existing_pages");
    CHECK_EQ(f->fake.objects, 0);
    ALLOCATE(f, .size = 1);
    CHECK_OK(quire_reserve(f->memory, &range, &reserved));
    CHECK_OK(quire_buffer_create(f->memory, &of_buffer, &buffer));
    CHECK_OK(quire_image_create(f->memory, &of_image, &image));
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 1);
}

/* A page that is tied to an object exists for no other one. */
CASE(an_object_that_requires_a_page_is_refused_and_one_that_prefers_it_shares,
     (quire_memory_options){0})
{
    quire_buffer buffer;
    const quire_buffer_options options = {.size = 1000, EXISTING};
    f->fake.object_needs.dedicated = true;
    CHECK_OK(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 1000}, &buffer));
    CHECK_FAILS(quire_buffer_create(f->memory, &options, &buffer), NO_ROOM);
    CHECK_HAS(quire_last_error(), "existing_pages");
    f->fake.object_needs.dedicated = false;
    f->fake.object_needs.prefers_dedicated = true;
    ALLOCATE(f, .size = 1);
    CHECK_OK(quire_buffer_create(f->memory, &options, &buffer));
    CHECK(!fixture_info(f, buffer.allocation).dedicated);
    CHECK_EQ(fixture_stats(f).failures, 1);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 2);
}

CASE(adopted_memory_refuses_it, (quire_memory_options){0})
{
    quire_allocation none = {1};
    CHECK_FAILS(quire_page_adopt(f->memory, "somewhere",
                                 &(quire_allocation_options){.size = 100, EXISTING}, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "existing_pages");
    CHECK_EQ(none.id, 0);
    CHECK_EQ(f->fake.pages, 0);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Makes a page once the test allows it. */
static struct {
    quire_result (*page_create)(void *state, const quire_page_request *request,
                                quire_native_page *page);
    pthread_barrier_t begun, allowed;
} gate;

static quire_result create_page_at_gate(void *state, const quire_page_request *request,
                                        quire_native_page *page)
{
    pthread_barrier_wait(&gate.begun);
    pthread_barrier_wait(&gate.allowed);
    return gate.page_create(state, request, page);
}

static void *allocate_range(void *user)
{
    fixture *f = user;
    ALLOCATE(f, .size = 1000);
    return NULL;
}

UNIT(existing_pages, a_page_that_another_thread_makes_is_not_waited_for)
{
    fixture f;
    pthread_t thread;
    quire_allocation none;
    const quire_allocation_options options = {.size = 1000, EXISTING};
    fixture_prepare(&f);
    gate.page_create = f.fake.table.page_create;
    f.fake.table.page_create = create_page_at_gate;
    pthread_barrier_init(&gate.begun, NULL, 2);
    pthread_barrier_init(&gate.allowed, NULL, 2);
    fixture_open(&f, &(quire_memory_options){.pages = {.page_size = PAGE, .max_pages = 1}});
    CHECK_EQ(pthread_create(&thread, NULL, allocate_range, &f), 0);
    pthread_barrier_wait(&gate.begun);
    CHECK_FAILS(quire_allocate(f.memory, &options, &none), NO_ROOM); /* not after the page */
    pthread_barrier_wait(&gate.allowed);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_OK(quire_allocate(f.memory, &options, &none));
    fixture_end(&f);
    pthread_barrier_destroy(&gate.begun);
    pthread_barrier_destroy(&gate.allowed);
}
