/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.c - host access by pointer: map, unmap, flush, invalidate, and the native info. Copies are
 * in access_copy.c.
 */
#include "tests/support/fixture.h"

enum { ATOM = 64, DEVICE = 0, COHERENT = 1, CACHED = 2, WINDOW = 3 }; /* kinds of the fake */

static void make(fixture *b, uint32_t kind)
{
    fixture_prepare(b);
    quire_memory_options options = {.name = "frames",
                                    .kind.mask = UINT32_C(1) << kind,
                                    .fit.algorithm = QUIRE_FIT_FIRST,
                                    .pages = {.page_size = 4096}};
    fixture_open(b, &options);
}

static quire_allocation allocate(fixture *b, uint64_t size, uint64_t alignment)
{
    quire_allocation allocation = ALLOCATE(b, .size = size, .alignment = alignment);
    return allocation;
}

/* ---- map ---------------------------------------------------------------------------------- */

UNIT_EACH(access, a_pointer_is_base_plus_offset, fixture, b, kind, COHERENT, WINDOW + 1,
          make(b, kind), fixture_end)
{
    char *base = NULL;
    for (uint64_t i = 0; i < 10; i++) { /* mixed alignments cause paddings of many sizes, D1 */
        quire_allocation allocation = allocate(b, 100 + i, UINT64_C(1) << i % 9);
        void *pointer = NULL;
        quire_native native;
        CHECK_OK(quire_map(b->memory, allocation, &pointer));
        CHECK_OK(quire_allocation_get_native(b->memory, allocation, &native));
        char *from = (char *)pointer - fixture_info(b, allocation).offset;
        CHECK(!i || from == base);
        base = from;
        CHECK(native.host == pointer);
    }
    CHECK_EQ(b->fake.maps, 1); /* one page, mapped once */
}

#define CASE(name, ...) UNIT_ON(access, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

CASE(maps_are_counted_and_each_needs_its_unmap, COHERENT)
{
    quire_allocation allocation = allocate(b, 100, 1), other = allocate(b, 100, 1);
    void *first = NULL, *again = NULL;
    CHECK_FAILS(quire_unmap(b->memory, allocation), QUIRE_ERROR_NOT_MAPPED);
    CHECK_OK(quire_map(b->memory, allocation, &first));
    CHECK_OK(quire_map(b->memory, allocation, &again));
    CHECK(first == again);
    CHECK_EQ(fixture_info(b, allocation).map_count, 2);
    CHECK_EQ(fixture_info(b, other).map_count, 0);
    CHECK_OK(quire_unmap(b->memory, allocation));
    CHECK_EQ(fixture_info(b, allocation).map_count, 1);
    CHECK_OK(quire_unmap(b->memory, allocation));
    CHECK_FAILS(quire_unmap(b->memory, allocation), QUIRE_ERROR_NOT_MAPPED);
    CHECK_EQ(fixture_info(b, allocation).map_count, 0);
    CHECK_OK(quire_free(b->memory, allocation));
}

CASE(an_allocation_can_be_mapped_262143_times, COHERENT)
{
    enum { MAX_COUNT = (1 << 18) - 1 };
    quire_allocation allocation = allocate(b, 100, 1);
    void *pointer = NULL;
    for (int i = 0; i < MAX_COUNT; i++)
        CHECK_OK(quire_map(b->memory, allocation, &pointer));
    CHECK_FAILS(quire_map(b->memory, allocation, &pointer), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(pointer == NULL);
    CHECK_EQ(fixture_info(b, allocation).map_count, MAX_COUNT);
    CHECK_OK(quire_unmap(b->memory, allocation));
    CHECK_OK(quire_map(b->memory, allocation, &pointer));
}

static void expect_outside(fixture *b, quire_allocation allocation, uint64_t offset, uint64_t size)
{
    const quire_result outside = QUIRE_ERROR_OUT_OF_RANGE;
    void *pointer = b;
    char bytes[1] = {0};
    quire_view view = {.size = 1};
    CHECK_FAILS(quire_map_range(b->memory, allocation, offset, size, &pointer), outside);
    CHECK(pointer == NULL);
    CHECK_HAS(quire_last_error(), "of memory 'frames', which has 100 bytes");
    CHECK_FAILS(quire_flush(b->memory, allocation, offset, size), outside);
    CHECK_FAILS(quire_invalidate(b->memory, allocation, offset, size), outside);
    CHECK_FAILS(quire_view_create(b->memory, allocation, offset, size, &view), outside);
    CHECK_EQ(view.allocation.id + view.offset + view.size, 0);
    if (offset == 100 && !size)
        return; /* a write of no bytes at the end */
    CHECK_FAILS(quire_write(b->memory, allocation, offset, bytes, size), outside);
    CHECK_HAS(quire_last_error(), "which has 100 bytes");
    CHECK_FAILS(quire_read(b->memory, allocation, offset, bytes, size), outside);
}

UNIT_EACH(access, ranges_end_with_the_requested_size_and_cannot_overflow, fixture, b, kind,
          COHERENT, CACHED + 1, make(b, kind), fixture_end)
{
    static const uint64_t inside[][3] = {{0, 100, 0}, {99, 1, 99}, {40, 0, 40}};
    static const uint64_t outside[][2] = {{0, 101},
                                          {1, 100},
                                          {100, 0},
                                          {100, 1},
                                          {101, 0},
                                          {UINT64_MAX, 0},
                                          {UINT64_MAX, 1},
                                          {UINT64_MAX, 2},
                                          {1, UINT64_MAX},
                                          {2, UINT64_MAX - 1},
                                          {50, UINT64_MAX - 49},
                                          {UINT64_MAX, UINT64_MAX}};
    quire_allocation allocation = allocate(b, 100, 1); /* 128 bytes are held on kind 2 */
    void *whole = NULL, *part = NULL;
    CHECK_OK(quire_map(b->memory, allocation, &whole));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_map_range(b->memory, allocation, inside[i][0], inside[i][1], &part));
        CHECK_EQ((char *)part - (char *)whole, inside[i][2]);
    }
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++)
        expect_outside(b, allocation, outside[i][0], outside[i][1]);
    CHECK_EQ(fixture_info(b, allocation).map_count, 4);
    CHECK_EQ(b->fake.calls[FAKE_FLUSH] + b->fake.calls[FAKE_INVALIDATE], 0);
}

CASE(device_only_memory_is_not_mapped_flushed_or_invalidated, DEVICE)
{
    quire_allocation allocation = allocate(b, 100, 1);
    void *pointer = b;
    quire_native native;
    CHECK_FAILS(quire_map(b->memory, allocation, &pointer), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_HAS(quire_last_error(), "memory 'frames' of kind 0 cannot be mapped (DEVICE_LOCAL)");
    CHECK(pointer == NULL);
    CHECK_FAILS(quire_map_range(b->memory, allocation, 0, 1, &pointer),
                QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(quire_unmap(b->memory, allocation), QUIRE_ERROR_NOT_MAPPED);
    CHECK_FAILS(quire_flush(b->memory, allocation, 0, 0), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(quire_invalidate(b->memory, allocation, 0, 0), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_OK(quire_allocation_get_native(b->memory, allocation, &native));
    CHECK(native.host == NULL);
    CHECK_OK(quire_free(b->memory, allocation)); /* neither mapped nor in use */
    CHECK_EQ(b->fake.calls[FAKE_MAP], 0);
}

/* ---- flush and invalidate ----------------------------------------------------------------- */

typedef quire_result (*sync_call)(quire_memory *, quire_allocation, uint64_t, uint64_t);

static const struct {
    sync_call call;
    fake_call counted;
} SYNCS[] = {{quire_flush, FAKE_FLUSH}, {quire_invalidate, FAKE_INVALIDATE}};

UNIT_EACH(access, a_range_is_rounded_outwards_to_atoms_within_its_allocation, fixture, b, s, 0, 2,
          make(b, CACHED), fixture_end)
{
    static const struct {
        uint64_t offset, size, begin, end;
    } cases[] = {
        {0, 0, 0, 320},      {0, 300, 0, 320},    {0, 1, 0, 64},       {63, 1, 0, 64},
        {63, 2, 0, 128},     {64, 64, 64, 128},   {65, 0, 64, 320},    {299, 1, 256, 320},
        {100, 100, 64, 256}, {192, 65, 192, 320}, {128, 64, 128, 192},
    };
    allocate(b, 100, 1);
    quire_allocation allocation = allocate(b, 300, 1);
    allocate(b, 100, 1);
    uint64_t at = fixture_info(b, allocation).offset;
    CHECK_EQ(at, 128);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_OK(SYNCS[s].call(b->memory, allocation, cases[i].offset, cases[i].size));
        CHECK_EQ(b->fake.last_sync_offset, at + cases[i].begin);
        CHECK_EQ(b->fake.last_sync_size, cases[i].end - cases[i].begin);
        CHECK_EQ(b->fake.calls[SYNCS[s].counted], i + 1);
    }
    CHECK_EQ(b->fake.calls[SYNCS[!s].counted], 0);
}

UNIT_EACH(access, coherent_kinds_cause_no_backend_call, fixture, b, kind, COHERENT, WINDOW + 1,
          make(b, kind), fixture_end)
{
    quire_allocation allocation = allocate(b, 100, 1);
    uint64_t calls = b->fake.fallible_calls;
    CHECK_OK(quire_flush(b->memory, allocation, 0, 0));
    CHECK_OK(quire_invalidate(b->memory, allocation, 3, 5));
    CHECK_EQ(b->fake.fallible_calls - calls, kind == CACHED ? 2 : 0);
}

UNIT_PREPARED(access, an_atom_of_0_means_no_rounding, b)
{
    b->fake.info.limits.non_coherent_atom = 0;
    fixture_open(b, &(quire_memory_options){.kind.mask = 4, .fit.algorithm = QUIRE_FIT_FIRST});
    allocate(b, 7, 1);
    quire_allocation allocation = allocate(b, 100, 1);
    CHECK_EQ(fixture_info(b, allocation).offset, 7);
    b->fake.info.limits.non_coherent_atom = 1; /* the fake divides by it */
    CHECK_OK(quire_flush(b->memory, allocation, 3, 5));
    CHECK_EQ(b->fake.last_sync_offset, 10);
    CHECK_EQ(b->fake.last_sync_size, 5);
}

static void check_synced(const fixture *b, uint64_t offset, uint64_t size)
{
    CHECK_EQ(b->fake.last_sync_offset, offset);
    CHECK_EQ(b->fake.last_sync_size, size);
}

/* The size of the page is no multiple of the atom. */
UNIT_PREPARED(access, a_flush_does_not_exceed_the_page, b)
{
    enum { ODD = 100 };
    const uint64_t description = ODD;
    quire_allocation made;
    fixture_open(b, &(quire_memory_options){.kind.mask = 4});
    CHECK_OK(
        quire_page_adopt(b->memory, &description, &(quire_allocation_options){.size = ODD}, &made));
    CHECK_OK(quire_flush(b->memory, made, 0, 0));
    check_synced(b, 0, ODD);
    CHECK_OK(quire_invalidate(b->memory, made, 90, 5));
    check_synced(b, 64, ODD - 64);
    CHECK_OK(quire_flush(b->memory, made, 10, 20));
    check_synced(b, 0, 64);
    CHECK_OK(quire_write(b->memory, made, 99, "x", 1));
    check_synced(b, 64, ODD - 64);
    const quire_view view = {.allocation = made, .offset = 70, .size = 30};
    CHECK_OK(quire_flush_batch(b->memory, &view, 1));
    check_synced(b, 64, ODD - 64);
    CHECK_OK(quire_free(b->memory, made));
}

CASE(the_native_info_is_complete, COHERENT)
{
    allocate(b, 100, 1);
    quire_buffer buffer = BUFFER(b, .size = 50);
    quire_native native;
    CHECK_OK(quire_allocation_get_native(b->memory, buffer.allocation, &native));
    CHECK(native.device == b->device);
    CHECK_EQ(native.page.address, UINT64_C(4) << 30);
    CHECK_EQ(native.page.size, 4096);
    CHECK_EQ(native.page.data, 77);
    CHECK_EQ(native.offset, 128);
    CHECK_EQ(native.size, 50);
    CHECK_EQ(native.object, QUIRE_OBJECT_BUFFER);
    CHECK(native.handle != 0);
    CHECK_EQ(fixture_info(b, buffer.allocation).native, native.handle);
}
