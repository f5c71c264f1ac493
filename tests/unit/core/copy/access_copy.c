/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access_copy.c - host access by copy: write, read and zero-fill on every kind, through the mapping
 * or through the backend. No byte outside the range changes.
 */
#include "tests/support/fixture.h"

enum { KINDS = 4, DEVICE = 0, COHERENT = 1, CACHED = 2, WINDOW = 3 }; /* of the fake */

static void open_prepared(fixture *b, uint32_t kind)
{
    quire_memory_options options = {.kind.mask = UINT32_C(1) << kind,
                                    .fit.algorithm = QUIRE_FIT_FIRST,
                                    .pages = {.page_size = 4096}};
    fixture_open(b, &options);
}

static void make(fixture *b, uint32_t kind)
{
    fixture_prepare(b);
    open_prepared(b, kind);
}

/* All bytes of the range have this value. */
static void expect_bytes(fixture *b, quire_allocation allocation, uint64_t offset, uint64_t size,
                         int value)
{
    unsigned char bytes[4096];
    CHECK(size <= sizeof bytes);
    memset(bytes, ~value, sizeof bytes);
    CHECK_OK(quire_read(b->memory, allocation, offset, bytes, size));
    for (uint64_t i = 0; i < size; i++)
        CHECK_EQ(bytes[i], value);
    CHECK(size == sizeof bytes || bytes[size] == (unsigned char)~value);
}

static void fill(fixture *b, quire_allocation allocation, uint64_t offset, uint64_t size, int value)
{
    unsigned char bytes[4096];
    CHECK(size <= sizeof bytes);
    memset(bytes, value, sizeof bytes);
    CHECK_OK(quire_write(b->memory, allocation, offset, bytes, size));
}

UNIT_EACH(access_copy, each_kind_uses_the_expected_backend_calls, fixture, b, kind, 0, KINDS,
          make(b, kind), fixture_end)
{
    static const struct {
        uint64_t copy_to, copy_from, flush, invalidate;
    } expected[KINDS] = {{1, 1, 0, 0}, {0, 0, 0, 0}, {0, 0, 1, 1}, {0, 0, 0, 0}};
    quire_allocation allocation = ALLOCATE(b, .size = 100);
    fill(b, allocation, 70, 1, 1);
    CHECK_EQ(b->fake.calls[FAKE_COPY_TO], expected[kind].copy_to);
    CHECK_EQ(b->fake.calls[FAKE_FLUSH], expected[kind].flush);
    CHECK_EQ(b->fake.calls[FAKE_COPY_FROM] + b->fake.calls[FAKE_INVALIDATE], 0);
    expect_bytes(b, allocation, 70, 1, 1);
    CHECK_EQ(b->fake.calls[FAKE_COPY_FROM], expected[kind].copy_from);
    CHECK_EQ(b->fake.calls[FAKE_INVALIDATE], expected[kind].invalidate);
    if (kind == CACHED) {
        CHECK_EQ(b->fake.last_sync_offset, 64);
        CHECK_EQ(b->fake.last_sync_size, 64);
    }
}

UNIT_EACH(access_copy, a_size_of_0_copies_nothing_and_needs_no_data, fixture, b, kind, 0, KINDS,
          make(b, kind), fixture_end)
{
    quire_allocation allocation = ALLOCATE(b, .size = 100);
    uint64_t calls = b->fake.fallible_calls;
    static const uint64_t offsets[] = {0, 50, 100};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_write(b->memory, allocation, offsets[i], NULL, 0));
        CHECK_OK(quire_read(b->memory, allocation, offsets[i], NULL, 0));
    }
    CHECK_FAILS(quire_write(b->memory, allocation, 0, NULL, 1), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "data is null");
    CHECK_EQ(b->fake.fallible_calls, calls);
    CHECK_OK(quire_free(b->memory, allocation));
}

/* ---- backends that lack functions or fail ------------------------------------------------- */

static void prepare_without_copies(fixture *b)
{
    fixture_prepare(b);
    b->fake.table.features &= ~(QUIRE_BACKEND_COPY_TO_PAGE | QUIRE_BACKEND_COPY_FROM_PAGE);
    b->fake.table.copy_to_page = NULL;
    b->fake.table.copy_from_page = NULL;
}

UNIT(access_copy, without_copy_functions_device_only_memory_is_unsupported)
{
    fixture b;
    prepare_without_copies(&b);
    open_prepared(&b, DEVICE);
    quire_allocation allocation = ALLOCATE(&b, .size = 100);
    char bytes[4] = {0};
    CHECK_FAILS(quire_write(b.memory, allocation, 0, bytes, 4), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "backend fake cannot write");
    CHECK_FAILS(quire_read(b.memory, allocation, 0, bytes, 4), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "backend fake cannot read");
    CHECK_OK(quire_write(b.memory, allocation, 0, bytes, 0));
    CHECK_OK(quire_free(b.memory, allocation));
    quire_allocation_options zero = {.size = 100, .zero = true};
    CHECK_FAILS(quire_allocate(b.memory, &zero, &allocation), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(allocation.id, 0);
    CHECK_OK(quire_memory_destroy(&b.memory)); /* nothing was left */
    CHECK_OK(quire_device_destroy(&b.device));
    CHECK_EQ(b.fake.pages, 0);
}

UNIT_EACH(access_copy, without_copy_functions_mapped_memory_is_still_accessible, fixture, b, kind,
          COHERENT, KINDS, prepare_without_copies(b), fixture_end)
{
    open_prepared(b, kind);
    quire_allocation allocation = ALLOCATE(b, .size = 100, .zero = true);
    expect_bytes(b, allocation, 0, 100, 0);
    fill(b, allocation, 0, 100, 9);
    expect_bytes(b, allocation, 0, 100, 9);
}

#define CASE(name, ...) UNIT_ON(access_copy, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

CASE(a_backend_failure_is_returned, DEVICE)
{
    quire_allocation allocation = ALLOCATE(b, .size = 100);
    char bytes[4] = {0};
    b->fake.fail_native = 4711;
    fake_fail(&b->fake, 1, true, QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_FAILS(quire_write(b->memory, allocation, 0, bytes, 4), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(quire_last_native_code(), 4711);
    CHECK_HAS(quire_last_error(), "fake failure");
    fake_fail(&b->fake, 0, false, QUIRE_SUCCESS);
}

/* ---- zeros -------------------------------------------------------------------------------- */

CASE(zero_fill_covers_the_bytes_held_beyond_the_request, CACHED)
{
    quire_allocation dirty = ALLOCATE(b, .size = 128);
    void *bytes = NULL;
    CHECK_OK(quire_map(b->memory, dirty, &bytes));
    memset(bytes, 0xff, 128);
    CHECK_OK(quire_unmap(b->memory, dirty));
    CHECK_OK(quire_free(b->memory, dirty));
    ALLOCATE(b, .size = 65, .zero = true); /* at the same place, 128 bytes held */
    for (int i = 0; i < 128; i++)
        CHECK_EQ(((char *)bytes)[i], 0);
    CHECK_EQ(b->fake.last_sync_size, 128);
}

CASE(a_device_only_range_is_zeroed_in_pieces, DEVICE)
{
    static const uint64_t sizes[][2] = {{3 * 65536 + 1, 4}, {2 * 65536, 2}}; /* no empty piece */
    for (int i = 0; i < 2; i++) {
        b->fake.calls[FAKE_COPY_TO] = 0;
        ALLOCATE(b, .size = sizes[i][0], .zero = true);
        CHECK_EQ(b->fake.calls[FAKE_COPY_TO], sizes[i][1]);
    }
}

/* Zeros were written, or not; the bytes are zeros in any case. */
static void expect_zeros(fixture *b, quire_allocation allocation, uint64_t size, bool were_written)
{
    CHECK_EQ(b->fake.calls[FAKE_COPY_TO] > 0, were_written);
    expect_bytes(b, allocation, 0, size, 0);
    fill(b, allocation, 0, size, 0xff);
    CHECK_OK(quire_free(b->memory, allocation));
    b->fake.calls[FAKE_COPY_TO] = 0;
}

UNIT_PREPARED(access_copy, a_page_that_is_made_with_zeros_gets_none, b)
{
    b->fake.zero_pages = true;
    open_prepared(b, DEVICE);
    const quire_allocation_options zero = {.size = 1000, .zero = true, .dedicated = true};
    expect_zeros(b, ALLOCATE(b, .size = 1000, .zero = true, .dedicated = true), 1000, false);
    CHECK(b->fake.last_page.zero);
    quire_allocation again = {0};
    CHECK_OK(quire_allocate(b->memory, &zero, &again)); /* the same page */
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 1);
    expect_zeros(b, again, 1000, true);
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    quire_buffer buffer = {0};
    buffer = BUFFER(b, .size = 1000, .zero = true, .dedicated = true);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
    expect_zeros(b, buffer.allocation, 1000, false);
}

UNIT_PREPARED(access_copy, only_a_page_for_one_allocation_is_requested_with_zeros, b)
{
    b->fake.zero_pages = true;
    open_prepared(b, DEVICE);
    expect_zeros(b, ALLOCATE(b, .size = 1000, .zero = true), 1000, true);
    CHECK(!b->fake.last_page.zero);
    ALLOCATE(b, .size = 1000, .dedicated = true);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK(!b->fake.last_page.zero);
}
