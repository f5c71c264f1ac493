/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_calls.c - single copies and fills: sizes of 0, overlap, rows, progress, and the bytes of a
 * fill.
 */
#include <stdio.h>

#include "tests/support/fixture.h"

enum { KINDS = 4, DEVICE = 0, COHERENT, CACHED };

static quire_allocation make(fixture *f, uint64_t size, unsigned char value)
{
    quire_allocation made = ALLOCATE(f, .size = size);
    CHECK_OK(quire_fill(f->memory, made, &(quire_fill_options){.value = value}, NULL));
    return made;
}

static unsigned char byte_of(fixture *f, quire_allocation allocation, uint64_t offset)
{
    unsigned char byte = 0;
    CHECK_OK(quire_read(f->memory, allocation, offset, &byte, 1));
    return byte;
}

static void make_fixture(fixture *f, uint32_t kind)
{
    fixture_prepare(f);
    fake_offer_copies(&f->fake);
    fixture_open(f, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind});
}

#define CASE(name, ...)                                                                            \
    UNIT_ON(copy_calls, name, fixture, f, make_fixture(f, __VA_ARGS__), fixture_end)

/* Size 0: from the offsets to the end of the shorter allocation. */
CASE(without_a_size_the_whole_of_the_shorter_end_is_copied, DEVICE)
{
    quire_allocation a = make(f, 100, 1), b = make(f, 80, 2);
    quire_copy_options o = {.to = {f->memory, a, 10, 0, 0}, .from = {f->memory, b, 5, 0, 0}};
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(byte_of(f, a, 9), 1);
    CHECK_EQ(byte_of(f, a, 10), 2);
    CHECK_EQ(byte_of(f, a, 84), 2);
    CHECK_EQ(byte_of(f, a, 85), 1);
    o.to.offset = 60;
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(byte_of(f, a, 99), 2);
    unsigned char host[100] = {0};
    CHECK_OK(
        quire_copy(&(quire_copy_options){.from = {f->memory, b, 1, 0, 0}, .host_to = host}, NULL));
    CHECK_EQ(host[78], 2);
    CHECK_EQ(host[79], 0);
}

CASE(without_a_size_and_bytes_nothing_is_copied_but_all_is_checked, DEVICE)
{
    quire_allocation a = make(f, 100, 1), b = make(f, 100, 2);
    quire_copy_options o = {.to = {f->memory, a, 100, 0, 0}, .from = {f->memory, b, 0, 0, 0}};
    CHECK_OK(quire_copy(&o, NULL));
    o.to.offset = 101;
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "begins at offset 101 of an allocation of 100 bytes");
    o.to.offset = 0;
    o.rows = 2;
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "rows or pitches, and no size");
    o.rows = 0;
    o.from.row_pitch = 10;
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    o.from.row_pitch = 0;
    CHECK_OK(quire_free(f->memory, b));
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(byte_of(f, a, 0), 1);
}

CASE(host_memory_that_is_mapped_from_the_allocation_overlaps, COHERENT)
{
    void *pointer;
    quire_allocation a = make(f, 100, 1);
    CHECK_OK(quire_map(f->memory, a, &pointer));
    quire_copy_options o = {
        .to = {f->memory, a, 10, 0, 0}, .host_from = (char *)pointer + 19, .size = 10};
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_OVERLAP);
    o.host_from = (char *)pointer + 20;
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_OK(quire_unmap(f->memory, a));
}

CASE(interleaved_rows_do_not_overlap, DEVICE)
{
    quire_allocation a = make(f, 200, 1);
    const quire_copy_end still = {f->memory, a, 8, 16, 0};
    for (uint64_t at = 0; at <= 17; at++) {
        const quire_copy_end moved = {f->memory, a, at, 16, 0};
        quire_copy_options to = {.to = moved, .from = still, .size = 8, .rows = 10};
        quire_copy_options from = {.to = still, .from = moved, .size = 8, .rows = 10};
        quire_result expected = at % 16 ? QUIRE_ERROR_OVERLAP : QUIRE_SUCCESS;
        CHECK_EQ(quire_copy(&to, NULL), expected);
        CHECK_EQ(quire_copy(&from, NULL), expected);
    }
}

CASE(tight_rows_are_one_call, DEVICE)
{
    static unsigned char bytes[4096];
    quire_allocation a = make(f, 8192, 1), b = make(f, 8192, 2);
    uint64_t before = f->fake.calls[FAKE_COPY_TO];
    CHECK_OK(quire_copy(&(quire_copy_options){.to = {f->memory, a, 0, 16, 0},
                                              .host_from = bytes,
                                              .size = 16,
                                              .rows = 64,
                                              .slices = 4},
                        NULL));
    CHECK_EQ(f->fake.calls[FAKE_COPY_TO] - before, 1);
    CHECK_OK(quire_copy(&(quire_copy_options){.to = {f->memory, a, 0, 32, 0},
                                              .from = {f->memory, b, 0, 0, 0},
                                              .size = 16,
                                              .rows = 64},
                        NULL));
    CHECK_EQ(f->fake.calls[FAKE_COPY_PAGES], 1);
    CHECK_EQ(f->fake.last_copy.rows, 64);
    CHECK_EQ(f->fake.last_copy.to_row, 32);
    CHECK_EQ(f->fake.last_copy.from_row, 16);
    CHECK_OK(quire_copy(&(quire_copy_options){.to = {f->memory, a, 0, 4, 100},
                                              .from = {f->memory, b, 0, 4, 32},
                                              .size = 4,
                                              .rows = 8,
                                              .slices = 3},
                        NULL));
    CHECK_EQ(f->fake.last_copy.size, 32); /* slices of tight rows become rows */
    CHECK_EQ(f->fake.last_copy.rows, 3);
    CHECK_EQ(f->fake.last_copy.slices, 1);
    CHECK_EQ(f->fake.last_copy.to_row, 100);
}

typedef struct progress_log {
    uint64_t calls, done, total, stop_at;
    fixture *f;
    quire_allocation copied;
} progress_log;

static bool goes_on(void *user, uint64_t done, uint64_t total)
{
    progress_log *t = user;
    CHECK(done > t->done && done <= total);
    t->calls++;
    t->done = done;
    t->total = total;
    if (t->copied.id)
        CHECK_FAILS(quire_free(t->f->memory, t->copied), QUIRE_ERROR_BUSY);
    return t->calls != t->stop_at;
}

CASE(progress_is_reported_in_steps_and_can_end_a_copy, DEVICE)
{
    quire_allocation a = make(f, 1000, 1), b = make(f, 1000, 2);
    progress_log t = {.f = f, .copied = a};
    quire_copy_options o = {.to = {f->memory, a, 0, 0, 0},
                            .from = {f->memory, b, 0, 0, 0},
                            .size = 1000,
                            .progress = {goes_on, &t, 300}};
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(t.calls, 4);
    CHECK_EQ(t.done, 1000);
    CHECK_EQ(t.total, 1000);
    CHECK_EQ(byte_of(f, a, 999), 2);
    CHECK_OK(quire_fill(f->memory, a, &(quire_fill_options){.value = 1}, NULL));
    t = (progress_log){.stop_at = 2};
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "600 of 1000");
    CHECK_EQ(byte_of(f, a, 599), 2);
    CHECK_EQ(byte_of(f, a, 600), 1);
    t = (progress_log){.stop_at = 4}; /* all bytes are copied: it is too late to stop */
    CHECK_OK(quire_copy(&o, NULL));
    t = (progress_log){0};
    o.progress.step = 0;
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(t.calls, 1);
    CHECK_OK(quire_free(f->memory, a));
}

static bool fails_within(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    (void)done;
    (void)total;
    CHECK_FAILS(quire_copy(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    return true;
}

CASE(a_failure_in_a_callback_is_not_the_copys_error, DEVICE)
{
    quire_allocation a = make(f, 100, 1);
    unsigned char bytes[100] = {0};
    CHECK_FAILS(quire_free(f->memory, (quire_allocation){0}), QUIRE_ERROR_INVALID_ARGUMENT);
    char before[256];
    snprintf(before, sizeof before, "%s", quire_last_error());
    CHECK_OK(quire_copy(&(quire_copy_options){.to = {f->memory, a, 0, 0, 0},
                                              .host_from = bytes,
                                              .size = 100,
                                              .progress = {fails_within, NULL, 10}},
                        NULL));
    CHECK_STR(quire_last_error(), before);
}

UNIT_EACH(copy_calls, a_fill_sets_its_range_on_every_kind, fixture, f, row, 0, 2 * KINDS,
          fixture_prepare(f), fixture_end)
{
    static unsigned char found[100000];
    const uint32_t kind = row / 2;
    const bool offers = row % 2, is_visible = kind != DEVICE;
    if (offers)
        fake_offer_fill(&f->fake);
    fixture_open(f, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind});
    quire_allocation a = ALLOCATE(f, .size = 100000, .zero = true);
    CHECK_OK(quire_fill(f->memory, a,
                        &(quire_fill_options){.offset = 7, .size = 90001, .value = 0xab}, NULL));
    CHECK_OK(quire_read(f->memory, a, 0, found, sizeof found));
    for (uint64_t i = 0; i < sizeof found; i++)
        CHECK_EQ(found[i], i >= 7 && i < 90008 ? 0xab : 0);
    CHECK_OK(quire_fill(f->memory, a, &(quire_fill_options){.offset = 50000, .value = 3}, NULL));
    CHECK_OK(quire_read(f->memory, a, 0, found, sizeof found));
    CHECK(found[49999] == 0xab && found[50000] == 3 && found[99999] == 3);
    CHECK_EQ(f->fake.calls[FAKE_FILL_PAGE] > 0, offers && !is_visible);
    CHECK_EQ(f->fake.calls[FAKE_COPY_TO] > 0, !offers && !is_visible);
}
