/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_bounds.c - copies whose pitches, rows and slices exceed 64 bits are refused before any byte
 * is copied, from and to either end.
 */
#include "tests/support/fixture.h"

enum { SIZE = 64 };

static const uint64_t HALF = UINT64_C(1) << 63;

typedef struct bench {
    fixture f;
    quire_allocation allocation;
    unsigned char host[SIZE];
} bench;

static void make(bench *b)
{
    *b = (bench){.host = {0}};
    fixture_prepare(&b->f);
    fake_offer_copies(&b->f.fake);
    fixture_open(&b->f, &(quire_memory_options){.kind.mask = 2, .pages = {.page_size = 4096}});
    b->allocation = ALLOCATE(&b->f, .size = SIZE);
}

/*
 * Copies the region with one end in the memory and one on the host; the pitches are those of one
 * end.
 */
static quire_result copy(bench *b, const quire_copy_options *region, const quire_copy_end *pitches,
                         bool from_memory, bool at_memory)
{
    quire_copy_options o = *region;
    quire_copy_end *in_memory = from_memory ? &o.from : &o.to;
    quire_copy_end *on_host = from_memory ? &o.to : &o.from;
    *(at_memory ? in_memory : on_host) = *pitches;
    in_memory->memory = b->f.memory;
    in_memory->allocation = b->allocation;
    if (from_memory)
        o.host_to = b->host;
    else
        o.host_from = b->host;
    return quire_copy(&o, NULL);
}

static void expect(bench *b, const quire_copy_options *region, const quire_copy_end *pitches,
                   const char *says)
{
    const quire_result code =
        strstr(says, "pitch") ? QUIRE_ERROR_INVALID_ARGUMENT : QUIRE_ERROR_OUT_OF_RANGE;
    for (int i = 0; i < 4; i++) {
        CHECK_FAILS(copy(b, region, pitches, i & 1, i & 2), code);
        CHECK_HAS(quire_last_error(), says);
    }
    for (size_t i = 0; i < SIZE; i++)
        CHECK_EQ(b->host[i], 0);
}

UNIT(copy_bounds, regions_that_do_not_fit_are_refused)
{
    static const char uncounted[] = "their size exceeds 64 bits", large[] = "the copy takes";
    const struct {
        quire_copy_options region;
        quire_copy_end pitches;
        const char *says;
    } rows[] = {
        /* the third row would begin at 2^64, at 0 of the allocation again */
        {{.size = 4, .rows = 3}, {.row_pitch = HALF}, uncounted},
        /* the last row begins below 2^64 and ends at it */
        {{.size = 8, .rows = 2}, {.row_pitch = UINT64_MAX - 7}, uncounted},
        /* so many rows exceed 64 bits even without a gap */
        {{.size = 4, .rows = UINT64_MAX}, {.offset = 0}, uncounted},
        /* a slice ends below 2^64, but the default distance between slices exceeds it */
        {{.size = 4, .rows = 2, .slices = 2}, {.row_pitch = HALF}, uncounted},
        {{.size = 4, .rows = 2, .slices = 3}, {0, {0}, 0, 4, HALF}, uncounted},
        {{.size = 4, .rows = 2, .slices = 2}, {0, {0}, 0, 4, UINT64_MAX - 6}, uncounted},
        {{.size = 4, .rows = 2, .slices = 2}, {0, {0}, 0, HALF, HALF + 4}, uncounted},
        /* regions within 64 bits are compared with the size of the allocation */
        {{.size = 8, .rows = 2}, {0, {0}, 0, UINT64_MAX - 8, UINT64_MAX}, large},
        {{.size = 4, .rows = 2, .slices = 2}, {0, {0}, 0, 4, UINT64_MAX - 8}, large},
        {{.size = 4}, {.offset = UINT64_MAX - 3}, ""},
        {{.size = 8, .rows = 2}, {.row_pitch = 7}, "has a row pitch of 7 bytes, and a row has 8"},
        {{.size = 8, .rows = 2, .slices = 2},
         {0, {0}, 0, 10, 17},
         "has a slice pitch of 17 bytes, and a slice has 18"},
    };
    bench b;
    make(&b);
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unit_note("row", i);
        expect(&b, &rows[i].region, &rows[i].pitches, rows[i].says);
    }
    CHECK_OK(copy(&b, &(quire_copy_options){.size = 8, .rows = 2, .slices = 2},
                  &(quire_copy_end){.row_pitch = 10, .slice_pitch = 18}, false, true));
    fixture_end(&b.f);
}
