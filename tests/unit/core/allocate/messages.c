/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * messages.c - messages of refusals: first the conclusion with the name of the request, then the
 * reason and the numbers; nouns agree with their numbers.
 */
#include "tests/support/fixture.h"
#include "tests/support/on_stream.h"

#include <stdio.h>

#include "quire/host.h"
#include "src/base/result.h"

enum { PAGE = 65536 };

static void make(fixture *f)
{
    fixture_make(f, &(quire_memory_options){.name = "weights",
                                            .pages = {.page_size = PAGE, .max_pages = 1}});
}

#define CASE(name) UNIT_ON(messages, name, fixture, f, make(f), fixture_end)

/* ---- refusals ------------------------------------------------------------------------------- */

CASE(a_refusal_begins_with_its_conclusion_and_the_name)
{
    static const char rest[] = "memory 'weights' has 1 page, the maximum of its policy; memory "
                               "'weights' (kind 0, DEVICE_LOCAL) is exhausted: largest free range "
                               "63.75 KiB of 63.75 KiB free in 1 page. Tried: empty pages given "
                               "back, a full pass";
    quire_allocation none;
    quire_buffer buffer;
    char text[1024];
    ALLOCATE(f, .size = 256);
    quire_allocation_options options = {.size = PAGE, .alignment = 512, .name = "encoder/w"};
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    snprintf(text, sizeof text, "cannot allocate 'encoder/w' (64 KiB at alignment 512): %s", rest);
    CHECK_STR(quire_last_error(), text);
    options.name = NULL;
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    snprintf(text, sizeof text, "cannot allocate 64 KiB at alignment 512: %s", rest);
    CHECK_STR(quire_last_error(), text);
    const quire_buffer_options needs = {
        .size = PAGE, .usage = QUIRE_USAGE_STORAGE, .name = "index"};
    CHECK_FAILS(quire_buffer_create(f->memory, &needs, &buffer), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "cannot allocate 'index' (64 KiB at alignment ");
}

/* The words are made when the error is read: nothing that they name may be needed then. */
CASE(a_refusal_is_read_after_its_memory_is_gone)
{
    quire_allocation none;
    char name[] = "encoder";
    ALLOCATE(f, .size = PAGE);
    const quire_allocation_options options = {.size = PAGE, .name = name};
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    memset(name, 'x', sizeof name - 1);
    quire_memory_destroy_all(&f->memory);
    CHECK_HAS(quire_last_error(), "cannot allocate 'encoder' (64 KiB): ");
    CHECK_HAS(quire_last_error(), ": memory 'weights' has 1 page, the maximum of its policy; "
                                  "memory 'weights' (kind 0, DEVICE_LOCAL) is exhausted");
    CHECK_OK(quire_memory_create(f->device, NULL, &f->memory));
}

CASE(a_long_name_leaves_room_for_the_reason)
{
    char name[QUIRE_MAX_NAME + 1];
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ALLOCATE(f, .size = PAGE);
    ALLOCATE_FAILS(f, QUIRE_ERROR_TOO_MANY_PAGES, .size = PAGE, .name = name);
    CHECK_HAS(quire_last_error(), "nnn' (64 KiB): ");
    CHECK_HAS(quire_last_error(), "a full pass");
}

UNIT_PREPARED(messages, a_refusal_on_a_stream_names_it_too, f)
{
    quire_stream *stream = NULL;
    quire_allocation none;
    fake_offer_streams(&f->fake);
    fixture_open(f, &(quire_memory_options){.pages = {.page_size = PAGE, .max_pages = 1}});
    CHECK_OK(quire_stream_create(f->device, NULL, &stream));
    const quire_allocation_options options = {.size = 300, .name = "late"};
    ALLOCATE(f, .size = 256);
    CHECK_OK(
        quire_memory_set_name_limit(f->memory, "late", 100)); /* refused before a range is chosen */
    CHECK_FAILS(allocate_on_stream(f->memory, &options, stream, &none), QUIRE_ERROR_OVER_BUDGET);
    CHECK_HAS(quire_last_error(),
              "cannot allocate 'late' (300 B): 300 B can never fit: the limit of names "
              "that start with 'late' is 100 B");
    CHECK_OK(
        quire_memory_set_name_limit(f->memory, "late", 300)); /* refused because of the padding */
    CHECK_FAILS(allocate_on_stream(f->memory, &options, stream, &none), QUIRE_ERROR_OVER_BUDGET);
    CHECK_HAS(quire_last_error(),
              "cannot allocate 'late' (300 B): 512 B can never fit: the limit of names "
              "that start with 'late' is 300 B");
    CHECK_OK(quire_stream_destroy(&stream));
}

CASE(a_refusal_says_whether_the_memory_is_exhausted_or_fragmented)
{
    quire_allocation none;
    quire_allocation first = ALLOCATE(f, .size = PAGE / 4);
    ALLOCATE(f, .size = PAGE / 4);
    quire_allocation third = ALLOCATE(f, .size = PAGE / 4);
    quire_allocation_options options = {.size = PAGE / 4 * 3, .name = "huge"};
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), ") is exhausted: largest free range 16 KiB of 16 KiB free");
    CHECK_OK(quire_free(f->memory, first));
    CHECK_OK(quire_free(f->memory, third));
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), ") is fragmented: largest free range 32 KiB of 48 KiB free");
    options = (quire_allocation_options){.size = PAGE / 4 * 3, .dedicated = true};
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "DEVICE_LOCAL): largest free range"); /* neither is the cause */
}

UNIT_MEMORY(messages, a_page_above_a_limit_can_never_fit, f, .name = "weights", .limit = 4 * PAGE,
            .pages = {.page_size = PAGE})
{
    quire_allocation none;
    ALLOCATE(f, .size = PAGE - 256);
    quire_allocation_options options = {.size = 3 * PAGE + 1, .name = "huge"};
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_OVER_BUDGET);
    CHECK_HAS(quire_last_error(),
              "cannot allocate 'huge' (192.00 KiB): a new page of 192.25 KiB would "
              "exceed the 256 KiB limit of memory 'weights' (64 KiB in use); ");
    options.size = 4 * PAGE + 1;
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), QUIRE_ERROR_OVER_BUDGET);
    CHECK_HAS(quire_last_error(),
              "cannot allocate 'huge' (256.00 KiB): a new page of 256.25 KiB can "
              "never fit: the limit of memory 'weights' is 256 KiB; ");
}

/* ---- handles -------------------------------------------------------------------------------- */

CASE(a_wrong_handle_is_refused_with_the_name_of_the_memory)
{
    quire_memory *other = NULL;
    char text[128];
    quire_allocation one = ALLOCATE(f, .size = 256);
    CHECK_OK(quire_memory_create(f->device, &(quire_memory_options){.name = "other"}, &other));
    CHECK_FAILS(quire_free(other, one), QUIRE_ERROR_FOREIGN_HANDLE);
    snprintf(text, sizeof text, "allocation %#llx belongs to another memory than 'other'",
             (unsigned long long)one.id);
    CHECK_STR(quire_last_error(), text);
    CHECK_OK(quire_free(f->memory, one));
    CHECK_FAILS(quire_free(f->memory, one), QUIRE_ERROR_STALE_HANDLE);
    snprintf(text, sizeof text,
             "allocation %#llx of memory 'weights' is not live: it was freed before",
             (unsigned long long)one.id);
    CHECK_STR(quire_last_error(), text);
    CHECK_OK(quire_memory_destroy(&other));
}

/* ---- numbers -------------------------------------------------------------------------------- */

UNIT_MEMORY(messages, nouns_agree_with_their_numbers, f, .kind.required = QUIRE_HOST_VISIBLE)
{
    void *pointer = NULL;
    quire_allocation one = ALLOCATE(f, .size = 256);
    for (int i = 1; i <= 2; i++) {
        CHECK_OK(quire_map(f->memory, one, &pointer));
        CHECK_FAILS(quire_free(f->memory, one), QUIRE_ERROR_BUSY);
        const char *end = strstr(quire_last_error(), "mapped ");
        CHECK_STR(end, i == 1 ? "mapped 1 time: quire_unmap first"
                              : "mapped 2 times: quire_unmap first");
    }
    CHECK_STR(qi_plural(0), "s");
    CHECK_STR(qi_plural(1), "");
}

UNIT(messages, an_unavailable_address_range_is_reported_with_its_size)
{
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    quire_allocation none;
    CHECK_OK(quire_host_open(NULL, &device));
    const quire_memory_options options = {.elastic = true,
                                          .address_space = UINT64_C(1) << 50,
                                          .fit.granule = UINT64_C(1) << 20,
                                          .pages = {.page_size = UINT64_C(1) << 20}};
    CHECK_OK(quire_memory_create(device, &options, &memory));
    CHECK_FAILS(quire_allocate(memory, &(quire_allocation_options){.size = 1}, &none),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "an address range of 1 PiB: ");
    CHECK_OK(quire_memory_destroy(&memory));
    CHECK_OK(quire_device_destroy(&device));
}
