/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation_state.c - the states of an allocation: reserved, live and freed. tests/misuse/memory.c
 * makes every call in each state that refuses it.
 */
#include "tests/support/fixture.h"

#define CASE(name, flags)                                                                          \
    UNIT_MEMORY(allocation_state, name, b, .kind.required = (flags), .pages.page_size = 4096)

static quire_allocation reserve(fixture *b, const quire_allocation_options *options)
{
    quire_allocation allocation;
    CHECK_OK(quire_reserve(b->memory, options, &allocation));
    return allocation;
}

CASE(a_reserved_range_can_be_queried_and_committed, QUIRE_HOST_VISIBLE)
{
    char name[8];
    quire_native native;
    quire_allocation allocation =
        reserve(b, &(quire_allocation_options){.size = 100, .name = "mine", .user_data = 9});
    quire_allocation_info before = fixture_info(b, allocation);
    CHECK(!before.committed);
    CHECK_EQ(before.requested, 100);
    CHECK_EQ(before.user_data, 9);
    CHECK_OK(quire_allocation_get_name(b->memory, allocation, name, sizeof name));
    CHECK_STR(name, "mine");
    CHECK_OK(quire_allocation_get_native(b->memory, allocation, &native));
    CHECK_EQ(native.offset, before.offset);
    CHECK_OK(quire_commit(b->memory, allocation));
    quire_allocation_info after = fixture_info(b, allocation);
    CHECK(after.committed);
    CHECK_EQ(after.address, before.address);
    CHECK_OK(quire_write(b->memory, allocation, 0, "x", 1));
    CHECK_FAILS(quire_commit(b->memory, allocation), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "committed already");
}

CASE(a_reserved_range_accepts_no_other_call_and_is_free_after_an_abort, QUIRE_HOST_VISIBLE)
{
    quire_view view;
    quire_allocation allocation = reserve(b, &(quire_allocation_options){.size = 4096});
    CHECK_FAILS(quire_free(b->memory, allocation), QUIRE_ERROR_WRONG_STATE);
    CHECK_HAS(quire_last_error(), "reserved: commit or abort it first");
    CHECK_FAILS(quire_allocation_set_name(b->memory, allocation, "x"), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_allocation_set_user_data(b->memory, allocation, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_view_create(b->memory, allocation, 0, 0, &view), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_abort(b->memory, allocation));
    CHECK_FAILS(quire_abort(b->memory, allocation), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 4096)).page, 0);
    CHECK_EQ(b->fake.pages, 1);
}

CASE(a_reserve_zeroes_its_range, QUIRE_DEVICE_LOCAL)
{
    char bytes[1000];
    quire_allocation allocation =
        reserve(b, &(quire_allocation_options){.size = sizeof bytes, .zero = true});
    CHECK_EQ(b->fake.calls[FAKE_COPY_TO], 1);
    CHECK_OK(quire_commit(b->memory, allocation));
    CHECK_EQ(b->fake.calls[FAKE_COPY_TO], 1);
    CHECK_OK(quire_read(b->memory, allocation, 0, bytes, sizeof bytes));
    CHECK(!bytes[0] && !memcmp(bytes, bytes + 1, sizeof bytes - 1));
}
