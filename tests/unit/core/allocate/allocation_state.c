/*
 * allocation_state.c - the states of an allocation (reserved, live, mapped, freed) and every call
 * in each of them.
 */
#include "tests/support/fixture.h"

static void make(fixture *b, quire_memory_flags flags)
{
    fixture_prepare(b);
    quire_memory_options options = {.kind.required = flags, .pages = {.page_size = 4096}};
    fixture_open(b, &options);
}

static void end(fixture *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    CHECK_OK(quire_memory_destroy(&b->memory)); /* nothing is live */
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK_EQ(b->fake.pages, 0);
    CHECK_EQ(b->fake.maps, 0);
    CHECK(b->fake.ended);
}

static quire_allocation reserve(fixture *b, uint64_t size)
{
    quire_allocation allocation;
    CHECK_OK(quire_reserve(b->memory, &(quire_allocation_options){.size = size}, &allocation));
    return allocation;
}

/* Every call on the bytes or the life of an allocation returns this code. */
static void expect_all(fixture *b, quire_allocation allocation, quire_result code)
{
    void *pointer = b;
    char bytes[4] = {0};
    quire_buffer_info buffer_info;
    quire_image_info image_info;
    CHECK_FAILS(quire_free(b->memory, allocation), code);
    CHECK_FAILS(quire_map(b->memory, allocation, &pointer), code);
    CHECK(pointer == NULL);
    pointer = b;
    CHECK_FAILS(quire_map_range(b->memory, allocation, 0, 1, &pointer), code);
    CHECK(pointer == NULL);
    CHECK_FAILS(quire_unmap(b->memory, allocation), code);
    CHECK_FAILS(quire_flush(b->memory, allocation, 0, 1), code);
    CHECK_FAILS(quire_invalidate(b->memory, allocation, 0, 1), code);
    CHECK_FAILS(quire_write(b->memory, allocation, 0, bytes, 1), code);
    CHECK_FAILS(quire_read(b->memory, allocation, 0, bytes, 1), code);
    CHECK_FAILS(quire_buffer_get_info(b->memory, (quire_buffer){allocation}, &buffer_info), code);
    CHECK_FAILS(quire_image_get_info(b->memory, (quire_image){allocation}, &image_info), code);
}

/* The calls that query, name, commit and abort. */
static void expect_rest(fixture *b, quire_allocation allocation, quire_result code)
{
    quire_allocation_info info = {.size = 1};
    quire_native native;
    quire_view view;
    char name[8];
    CHECK_FAILS(quire_commit(b->memory, allocation), code);
    CHECK_FAILS(quire_abort(b->memory, allocation), code);
    CHECK_FAILS(quire_allocation_get_info(b->memory, allocation, &info), code);
    CHECK_EQ(info.size, 0);
    CHECK_FAILS(quire_allocation_get_name(b->memory, allocation, name, sizeof name), code);
    CHECK_FAILS(quire_allocation_set_name(b->memory, allocation, "x"), code);
    CHECK_FAILS(quire_allocation_set_user_data(b->memory, allocation, 1), code);
    CHECK_FAILS(quire_allocation_get_native(b->memory, allocation, &native), code);
    CHECK(native.device == NULL);
    CHECK_FAILS(quire_view_create(b->memory, allocation, 0, 0, &view), code);
    CHECK_EQ(view.allocation.id, 0);
}

#define CASE(name, ...) UNIT_ON(allocation_state, name, fixture, b, make(b, __VA_ARGS__), end)

/* ---- reserved ----------------------------------------------------------------------------- */

CASE(a_reserved_range_can_be_queried_and_committed, QUIRE_HOST_VISIBLE)
{
    quire_allocation_options options = {.size = 100, .name = "mine", .user_data = 9};
    quire_allocation allocation;
    CHECK_OK(quire_reserve(b->memory, &options, &allocation));
    quire_allocation_info before = fixture_info(b, allocation);
    CHECK(!before.committed);
    CHECK_EQ(before.requested, 100);
    CHECK_EQ(before.user_data, 9);
    char name[8];
    quire_native native;
    CHECK_OK(quire_allocation_get_name(b->memory, allocation, name, sizeof name));
    CHECK_STR(name, "mine");
    CHECK_OK(quire_allocation_get_native(b->memory, allocation, &native));
    CHECK_EQ(native.offset, before.offset);
    CHECK_OK(quire_commit(b->memory, allocation));
    quire_allocation_info after = fixture_info(b, allocation);
    CHECK(after.committed);
    CHECK_EQ(after.address, before.address);
    CHECK_OK(quire_write(b->memory, allocation, 0, "x", 1));
    CHECK_OK(quire_free(b->memory, allocation));
}

CASE(other_calls_refuse_a_reserved_range, QUIRE_HOST_VISIBLE)
{
    quire_allocation allocation = reserve(b, 100);
    expect_all(b, allocation, QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "reserved: commit or abort it first");
    CHECK_OK(quire_abort(b->memory, allocation));
}

CASE(a_reserved_range_accepts_no_name_no_user_data_and_no_view, QUIRE_HOST_VISIBLE)
{
    quire_allocation allocation = reserve(b, 100);
    quire_view view;
    CHECK_FAILS(quire_allocation_set_name(b->memory, allocation, "x"), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_allocation_set_user_data(b->memory, allocation, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_view_create(b->memory, allocation, 0, 0, &view), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_abort(b->memory, allocation));
}

CASE(an_aborted_range_is_stale_and_its_bytes_are_free, QUIRE_HOST_VISIBLE)
{
    quire_allocation allocation = reserve(b, 4096);
    CHECK_OK(quire_abort(b->memory, allocation));
    expect_all(b, allocation, QUIRE_ERROR_STALE_HANDLE);
    expect_rest(b, allocation, QUIRE_ERROR_STALE_HANDLE);
    quire_allocation next = ALLOCATE(b, .size = 4096);
    CHECK_EQ(fixture_info(b, next).page, 0);
    CHECK_OK(quire_free(b->memory, next));
    CHECK_EQ(b->fake.pages, 1);
}

CASE(a_reserve_zeroes_its_range, QUIRE_DEVICE_LOCAL)
{
    quire_allocation_options options = {.size = 1000, .zero = true};
    quire_allocation allocation;
    CHECK_OK(quire_reserve(b->memory, &options, &allocation));
    CHECK_EQ(b->fake.calls[FAKE_COPY_TO], 1);
    CHECK_OK(quire_commit(b->memory, allocation));
    CHECK_EQ(b->fake.calls[FAKE_COPY_TO], 1);
    char bytes[1000];
    CHECK_OK(quire_read(b->memory, allocation, 0, bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], 0);
    CHECK_OK(quire_free(b->memory, allocation));
}

/* ---- live --------------------------------------------------------------------------------- */

CASE(a_live_allocation_is_neither_committed_nor_aborted, QUIRE_HOST_VISIBLE)
{
    quire_allocation allocation = ALLOCATE(b, .size = 100);
    CHECK_FAILS(quire_commit(b->memory, allocation), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "committed already");
    CHECK_FAILS(quire_abort(b->memory, allocation), QUIRE_ERROR_WRONG_STATE);
    CHECK(fixture_info(b, allocation).committed);
    CHECK_OK(quire_free(b->memory, allocation));
}

CASE(a_mapped_allocation_is_not_freed, QUIRE_HOST_VISIBLE)
{
    quire_allocation allocation = ALLOCATE(b, .size = 100);
    void *pointer = NULL;
    CHECK_OK(quire_map(b->memory, allocation, &pointer));
    CHECK_OK(quire_map(b->memory, allocation, &pointer));
    CHECK_FAILS(quire_free(b->memory, allocation), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "still mapped 2 times");
    CHECK_OK(quire_unmap(b->memory, allocation));
    CHECK_FAILS(quire_free(b->memory, allocation), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_unmap(b->memory, allocation));
    CHECK_FAILS(quire_unmap(b->memory, allocation), QUIRE_ERROR_NOT_MAPPED);
    CHECK_OK(quire_free(b->memory, allocation));
}

/* ---- freed -------------------------------------------------------------------------------- */

CASE(a_freed_allocation_is_stale_for_every_call, QUIRE_HOST_VISIBLE)
{
    quire_allocation allocation = ALLOCATE(b, .size = 100);
    CHECK_OK(quire_free(b->memory, allocation));
    expect_all(b, allocation, QUIRE_ERROR_STALE_HANDLE); /* D5: a second free too */
    expect_rest(b, allocation, QUIRE_ERROR_STALE_HANDLE);
    quire_allocation next = ALLOCATE(b, .size = 100); /* in the same slot and at the same place */
    CHECK(next.id != allocation.id);
    CHECK_EQ(fixture_info(b, next).offset, 0);
    expect_all(b, allocation, QUIRE_ERROR_STALE_HANDLE);
    expect_rest(b, allocation, QUIRE_ERROR_STALE_HANDLE);
    CHECK_OK(quire_free(b->memory, next));
}

CASE(the_null_handle_is_invalid_for_every_call, QUIRE_HOST_VISIBLE)
{
    expect_all(b, (quire_allocation){0}, QUIRE_ERROR_INVALID_ARGUMENT);
    expect_rest(b, (quire_allocation){0}, QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "{0}");
}

CASE(a_freed_dedicated_allocation_is_stale_after_its_page_is_destroyed, QUIRE_HOST_VISIBLE)
{
    quire_allocation allocation = ALLOCATE(b, .size = 100, .dedicated = true);
    CHECK_OK(quire_free(b->memory, allocation));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    CHECK_EQ(b->fake.pages, 0);
    expect_all(b, allocation, QUIRE_ERROR_STALE_HANDLE);
    expect_rest(b, allocation, QUIRE_ERROR_STALE_HANDLE);
}

CASE(freeing_never_allocates_host_memory, QUIRE_HOST_VISIBLE)
{
    enum { COUNT = 200 };
    quire_allocation live[COUNT];
    for (uint64_t i = 0; i < COUNT; i++) {
        quire_allocation_options options = {
            .size = 1 + i * 7, .name = i % 2 ? "named" : NULL, .dedicated = i % 5 == 0};
        CHECK_OK(quire_allocate(b->memory, &options, &live[i]));
    }
    test_memory_fail(unit_memory_state(), 1, true);
    for (uint64_t i = 0; i < COUNT; i++)
        CHECK_OK(quire_free(b->memory, live[i * 37 % COUNT]));
    CHECK_EQ(unit_memory_state()->calls, 0);
}

UNIT(allocation_state, destroying_a_memory_never_allocates_host_memory)
{
    fixture b;
    make(&b, QUIRE_HOST_VISIBLE);
    quire_allocation live[3000];
    for (int i = 0; i < 3000; i++)
        live[i] = ALLOCATE(&b, .size = 1);
    for (int i = 0; i < 3000; i++)
        CHECK_OK(quire_free(b.memory, live[i]));
    test_memory_fail(unit_memory_state(), 1, true);
    end(&b);
    CHECK_EQ(unit_memory_state()->calls, 0);
}
