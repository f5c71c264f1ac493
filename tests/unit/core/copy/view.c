/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * view.c - views: created within their parent, narrowed within themselves, checked against their
 * bounds at each use, and stale with their allocation.
 */
#include "tests/support/unit.h"

#include "quire/host.h"
#include "quire/quire.h"

typedef struct bench {
    quire_device *device;
    quire_memory *memory;
    quire_allocation allocation; /* 1000 bytes */
} bench;

static void make(bench *b, quire_memory_flags flags)
{
    *b = (bench){.device = NULL};
    quire_host_options host = {.device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&host, &b->device));
    quire_memory_options options = {.kind.required = flags, .pages = {.page_size = 4096}};
    CHECK_OK(quire_memory_create(b->device, &options, &b->memory));
    CHECK_OK(quire_allocate(b->memory, &(quire_allocation_options){.size = 1000, .zero = true},
                            &b->allocation));
}

static void end(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
}

static quire_view view_of(bench *b, uint64_t offset, uint64_t size)
{
    quire_view view;
    CHECK_OK(quire_view_create(b->memory, b->allocation, offset, size, &view));
    return view;
}

static void expect_view(quire_view view, const bench *b, uint64_t offset, uint64_t size)
{
    CHECK_EQ(view.allocation.id, b->allocation.id);
    CHECK_EQ(view.offset, offset);
    CHECK_EQ(view.size, size);
}

static void expect_none(quire_view view)
{
    CHECK_EQ(view.allocation.id, 0);
    CHECK_EQ(view.offset, 0);
    CHECK_EQ(view.size, 0);
}

#define CASE(name, ...) UNIT_ON(view, name, bench, b, make(b, __VA_ARGS__), end)

CASE(a_view_is_created_within_its_parent, QUIRE_DEVICE_LOCAL)
{
    expect_view(view_of(b, 0, 0), b, 0, 1000);
    expect_view(view_of(b, 300, 0), b, 300, 700);
    expect_view(view_of(b, 300, 700), b, 300, 700);
    expect_view(view_of(b, 999, 1), b, 999, 1);
}

CASE(a_part_of_a_view_stays_within_the_view, QUIRE_DEVICE_LOCAL)
{
    quire_view parent = view_of(b, 100, 200), part;
    CHECK_OK(quire_view_narrow(parent, 0, 0, &part));
    expect_view(part, b, 100, 200);
    CHECK_OK(quire_view_narrow(parent, 50, 0, &part));
    expect_view(part, b, 150, 150);
    CHECK_OK(quire_view_narrow(part, 149, 1, &part)); /* a part of a view, at its offset */
    expect_view(part, b, 299, 1);
    static const uint64_t cases[][2] = {
        {0, 201}, {1, 200}, {200, 0}, {200, 1}, {UINT64_MAX, 0}, {UINT64_MAX, 1}, {1, UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_FAILS(quire_view_narrow(parent, cases[i][0], cases[i][1], &part),
                    QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_HAS(quire_last_error(), "of 200 bytes");
        expect_none(part);
    }
    CHECK_FAILS(quire_view_narrow((quire_view){.size = 0}, 0, 0, &part), QUIRE_ERROR_OUT_OF_RANGE);
}

CASE(an_empty_view_is_not_the_rest_of_its_allocation, QUIRE_HOST_VISIBLE)
{
    quire_view forged = {b->allocation, 0, 0};
    void *pointer = b;
    char byte = 0;
    CHECK_FAILS(quire_view_write(b->memory, forged, 0, &byte, 1), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_view_map(b->memory, forged, &pointer), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(pointer == NULL);
}

UNIT(view, writes_and_reads_stay_within_the_view)
{
    static const quire_memory_flags kinds[] = {QUIRE_DEVICE_LOCAL, QUIRE_HOST_VISIBLE};
    for (int k = 0; k < 2; k++) {
        bench b;
        make(&b, kinds[k]);
        quire_view view = view_of(&b, 100, 200);
        unsigned char bytes[1000], more[201];
        memset(more, 0xaa, sizeof more);
        CHECK_OK(quire_view_write(b.memory, view, 0, more, 200));
        CHECK_OK(quire_view_write(b.memory, view, 199, "\x55", 1));
        CHECK_OK(quire_view_write(b.memory, view, 200, NULL, 0));
        CHECK_FAILS(quire_view_write(b.memory, view, 0, more, 201), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_STR(quire_last_error(),
                  "a range of 201 bytes at offset 0 is outside a view of 200 bytes");
        CHECK_FAILS(quire_view_write(b.memory, view, 200, more, 1), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_FAILS(quire_view_write(b.memory, view, 201, more, 0), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_FAILS(quire_view_read(b.memory, view, 1, more, 200), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_FAILS(quire_view_read(b.memory, view, UINT64_MAX, more, 1), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_FAILS(quire_view_read(b.memory, view, 1, more, UINT64_MAX), QUIRE_ERROR_OUT_OF_RANGE);
        CHECK_OK(quire_view_read(b.memory, view, 199, more, 1));
        CHECK_EQ(more[0], 0x55);
        CHECK_OK(quire_read(b.memory, b.allocation, 0, bytes, sizeof bytes));
        for (int i = 0; i < 1000; i++)
            CHECK_EQ(bytes[i], i < 100 || i >= 300 ? 0 : i == 299 ? 0x55 : 0xaa);
        end(&b);
    }
}

UNIT(view, a_map_points_to_its_first_byte_and_counts_for_the_allocation)
{
    bench b;
    make(&b, QUIRE_HOST_VISIBLE);
    quire_view view = view_of(&b, 100, 200);
    void *whole = NULL, *part = NULL;
    CHECK_OK(quire_map(b.memory, b.allocation, &whole));
    CHECK_OK(quire_view_map(b.memory, view, &part));
    CHECK_EQ((char *)part - (char *)whole, 100);
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(b.memory, b.allocation, &info));
    CHECK_EQ(info.map_count, 2);
    end(&b);
    make(&b, QUIRE_DEVICE_LOCAL);
    CHECK_FAILS(quire_view_map(b.memory, view_of(&b, 100, 200), &part),
                QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK(part == NULL);
    end(&b);
}
