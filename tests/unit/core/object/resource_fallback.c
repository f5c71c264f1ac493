/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource_fallback.c - one buffer or image in the first of several memories that can hold it. If a
 * memory kind is full or unsuitable the next one is tried, and failed attempts leave nothing
 * behind.
 */
#include "tests/support/fixture.h"

enum { PAGE = 65536 };

/* Memories of the kinds 0, 1 and 3 of the fake backend, each with one page at most. */
typedef struct three {
    fixture f;
    quire_memory *memories[3]; /* the first one belongs to the fixture */
    uint32_t callback_calls;   /* calls of on_out_of_memory of the last memory */
} three;

static bool count_call(void *user, quire_memory *memory, const quire_out_of_memory *report)
{
    three *t = user;
    CHECK(memory == t->memories[2] && report->size > 0);
    t->callback_calls++;
    return false;
}

static void make(three *t)
{
    static const uint32_t KINDS[] = {0, 1, 3};
    *t = (three){.callback_calls = 0};
    fixture_prepare(&t->f);
    for (uint32_t i = 0; i < 3; i++) {
        quire_memory_options options = {.kind.mask = UINT32_C(1) << KINDS[i],
                                        .pages = {.page_size = PAGE, .max_pages = 1}};
        if (i == 2)
            options.on_out_of_memory = (quire_on_out_of_memory){count_call, t};
        if (!i)
            fixture_open(&t->f, &options);
        else
            CHECK_OK(quire_memory_create(t->f.device, &options, &t->memories[i]));
    }
    t->memories[0] = t->f.memory;
}

static void end(three *t)
{
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_memory_check(t->memories[i]));
    quire_memory_destroy_all(&t->memories[1]);
    quire_memory_destroy_all(&t->memories[2]);
    fixture_end(&t->f);
    CHECK_EQ(t->f.fake.objects, 0);
}

#define CASE(name) UNIT_ON(resource_fallback, name, three, t, make(t), end)

/* Creates a buffer that fills a page; returns which memory holds it. */
static uint32_t place(three *t, quire_buffer *buffer)
{
    uint32_t chosen = 77;
    const quire_buffer_options options = {.size = PAGE, .name = "weights"};
    CHECK_OK(quire_buffer_create_fallback(t->memories, 3, &options, &chosen, buffer));
    quire_buffer_info info;
    CHECK_OK(quire_buffer_get_info(t->memories[chosen], *buffer, &info));
    CHECK_EQ(info.size, PAGE);
    return chosen;
}

CASE(the_first_memory_with_room_holds_the_buffer)
{
    quire_buffer made[3], again;
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(place(t, &made[i]), i);
    CHECK_EQ(t->callback_calls, 0);
    CHECK_EQ(t->f.fake.objects, 3);
    CHECK_OK(quire_free(t->memories[1], made[1].allocation));
    CHECK_EQ(place(t, &again), 1);
}

CASE(a_kind_that_cannot_hold_it_is_skipped)
{
    quire_buffer buffer;
    uint32_t chosen = 77;
    t->f.fake.object_needs =
        (quire_requirements){.size = 512, .alignment = 64, .kind_mask = 1u << 3};
    const quire_buffer_options options = {.size = 500};
    CHECK_OK(quire_buffer_create_fallback(t->memories, 3, &options, &chosen, &buffer));
    CHECK_EQ(chosen, 2);
    CHECK_EQ(t->f.fake.objects, 1);
    CHECK_FAILS(quire_buffer_create_fallback(t->memories, 2, &options, &chosen, &buffer),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "of kind 0");
    CHECK_EQ(chosen, 0);
    CHECK_EQ(buffer.allocation.id, 0);
    CHECK_EQ(t->f.fake.objects, 1);
}

CASE(the_same_holds_for_an_image)
{
    quire_buffer buffer;
    quire_image image;
    uint32_t chosen = 77;
    CHECK_EQ(place(t, &buffer), 0);
    const quire_image_options options = {.width = 8, .height = 4, .channel_type = QUIRE_UINT8};
    CHECK_OK(quire_image_create_fallback(t->memories, 3, &options, &chosen, &image));
    CHECK_EQ(chosen, 1);
    quire_image_info info;
    CHECK_OK(quire_image_get_info(t->memories[1], image, &info));
    CHECK_EQ(info.width, 8);
}

CASE(a_refusal_by_all_leaves_nothing_and_the_first_reports_it)
{
    quire_buffer made[3], none = {{1}};
    uint32_t chosen = 77;
    const quire_buffer_options options = {.size = PAGE};
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(place(t, &made[i]), i);
    CHECK_FAILS(quire_buffer_create_fallback(t->memories, 3, &options, &chosen, &none),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(chosen, 0);
    CHECK_EQ(none.allocation.id, 0);
    CHECK_EQ(t->callback_calls, 1);
    CHECK_EQ(t->f.fake.objects, 3);
}

CASE(a_success_keeps_the_last_error)
{
    quire_buffer made[2];
    CHECK_EQ(place(t, &made[0]), 0);
    CHECK_FAILS(quire_free(t->memories[0], (quire_allocation){0}), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(place(t, &made[1]), 1);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
}

CASE(invalid_options_and_nulls_end_the_search)
{
    quire_buffer buffer = {{1}};
    uint32_t chosen = 77;
    const quire_buffer_options good = {.size = 64}, empty = {.size = 0};
    quire_memory *holed[] = {t->memories[0], NULL};
    const quire_result wrong = QUIRE_ERROR_INVALID_ARGUMENT;
    CHECK_FAILS(quire_buffer_create_fallback(t->memories, 3, &empty, &chosen, &buffer), wrong);
    CHECK_EQ(buffer.allocation.id, 0);
    CHECK_EQ(chosen, 0);
    CHECK_FAILS(quire_buffer_create_fallback(t->memories, 0, &good, &chosen, &buffer), wrong);
    CHECK_HAS(quire_last_error(), "the list of memories is empty");
    CHECK_FAILS(quire_buffer_create_fallback(holed, 2, &good, &chosen, &buffer), wrong);
    CHECK_EQ(t->f.fake.objects, 0);
    CHECK_EQ(t->f.fake.pages, 0);
}

/* The same object for all memories of a device; another one after a binding that failed. */
CASE(the_native_object_is_created_once)
{
    quire_buffer made[3];
    uint32_t chosen = 77;
    const quire_buffer_options options = {.size = PAGE};
    CHECK_EQ(place(t, &made[0]), 0);
    CHECK_EQ(place(t, &made[1]), 1);
    uint64_t created = t->f.fake.calls[FAKE_OBJECT_CREATE];
    CHECK_EQ(place(t, &made[2]), 2);
    CHECK_EQ(t->f.fake.calls[FAKE_OBJECT_CREATE], created + 1);
    CHECK_FAILS(quire_buffer_create_fallback(t->memories, 3, &options, &chosen, &made[2]),
                QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(t->f.fake.calls[FAKE_OBJECT_CREATE], created + 2);
    CHECK_EQ(t->f.fake.objects, 3);
}

CASE(a_binding_that_fails_is_not_repeated_for_the_object)
{
    quire_buffer buffer;
    uint32_t chosen = 77;
    const quire_buffer_options options = {.size = 64};
    fake_fail(&t->f.fake, 3, false, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY); /* object, page, binding */
    CHECK_OK(quire_buffer_create_fallback(t->memories, 3, &options, &chosen, &buffer));
    CHECK_EQ(t->f.fake.failed_call, FAKE_OBJECT_BIND);
    CHECK_EQ(chosen, 1);
    CHECK_EQ(t->f.fake.calls[FAKE_OBJECT_CREATE], 2);
    CHECK_EQ(t->f.fake.objects, 1);
}

/* Requirements of one memory do not stay for the next: its largest alignment may be lower. */
CASE(the_callers_alignment_is_kept_for_each_memory)
{
    quire_buffer buffer;
    quire_buffer_info info;
    uint32_t chosen = 77;
    t->f.fake.object_needs.alignment = 4096;
    CHECK_OK(quire_memory_set_limit(t->memories[0], 1));
    const quire_buffer_options options = {.size = 64, .alignment = 128};
    CHECK_OK(quire_buffer_create_fallback(t->memories, 3, &options, &chosen, &buffer));
    CHECK_EQ(chosen, 1);
    CHECK_OK(quire_buffer_get_info(t->memories[1], buffer, &info));
    CHECK_EQ(info.place.offset % 4096, 0);
}
