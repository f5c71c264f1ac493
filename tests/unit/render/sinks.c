/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * sinks.c - the texts of a memory and of a device: the sink may refuse any piece, and each request
 * for host memory may fail.
 */
#include <stdio.h>

#include "quire/export.h"
#include "tests/support/fixture.h"
#include "tests/support/gather.h"

enum { NAMES = 60 }; /* the table of names grows once */

static const struct {
    quire_result (*of_memory)(const quire_memory *memory, quire_sink sink, void *user);
    quire_result (*of_device)(const quire_device *device, quire_sink sink, void *user);
    uint64_t requests;   /* for host memory, at least */
    bool requests_first; /* nothing is written of a memory if one of them fails */
} forms[] = {
    {quire_memory_write_json, quire_device_write_json, 1, false},
    {quire_memory_write_svg, quire_device_write_svg, 2, false}, /* the walk, the table of names */
    {quire_memory_write_memory_viz, quire_device_write_memory_viz, 1, false},
    {quire_memory_write_vma, quire_device_write_vma, 1, false},
    {quire_memory_write_report, quire_device_write_report, NAMES, true},
    {quire_memory_write_report_json, quire_device_write_report_json, NAMES, true},
};

enum { FORMS = 2 * sizeof forms / sizeof *forms };

/* The forms of a memory are even, those of a device odd. */
static quire_result write_form(fixture *f, uint32_t form, uint64_t refuse)
{
    gather_anew(refuse);
    return form % 2 ? forms[form / 2].of_device(f->device, gather, NULL)
                    : forms[form / 2].of_memory(f->memory, gather, NULL);
}

static void make(fixture *f)
{
    char name[48];
    fixture_make(f, &(quire_memory_options){.pages = {.page_size = 4096}});
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "quite a long name of number %d", i);
        ALLOCATE(f, .size = 16, .name = name);
    }
}

#define CASE(name) UNIT_EACH(sinks, name, fixture, f, form, 0, FORMS, make(f), fixture_end)

CASE(a_sink_may_fail_at_any_piece)
{
    CHECK_OK(write_form(f, form, 0));
    const uint64_t pieces = gathered.pieces;
    CHECK(pieces > 1);
    for (uint64_t piece = 1; piece <= pieces; piece++) {
        CHECK_FAILS(write_form(f, form, piece), QUIRE_ERROR_BAD_FILE);
        CHECK_HAS(quire_last_error(), "the sink refused");
        CHECK_EQ(gathered.pieces, piece);
    }
}

CASE(each_request_for_host_memory_may_fail)
{
    uint64_t call = 0;
    quire_result result;
    do {
        test_memory_fail(unit_memory_state(), ++call, false);
        result = write_form(f, form, 0);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(!result || form % 2 || !forms[form / 2].requests_first || !gathered.pieces);
    } while (result);
    CHECK(call > forms[form / 2].requests);
}

static bool use_memory(void *user, const char *text, size_t size)
{
    fixture *f = user;
    (void)text, (void)size;
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 16)));
    CHECK_OK(quire_memory_check(f->memory));
    return true;
}

CASE(the_sink_is_called_without_a_lock)
{
    CHECK_OK(form % 2 ? forms[form / 2].of_device(f->device, use_memory, f)
                      : forms[form / 2].of_memory(f->memory, use_memory, f));
}
