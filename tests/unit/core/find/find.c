/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * find.c - the allocation at an address: queried for every byte of a few pages, by device address
 * and by host pointer, of a memory and of the device; and frees by address.
 */
#include "tests/support/fixture.h"

#include "quire/host.h"
#include "src/core/state/memory.h"

enum { PAGE = 2048 };

static void make(fixture *b, uint64_t address_step, quire_memory_options options)
{
    fixture_prepare(b);
    b->fake.address_step = address_step;
    b->fake.info.limits.page_alignment = address_step ? address_step : UINT64_C(1) << 32;
    fake_offer_growth(&b->fake);
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
    options.pages.page_size = PAGE;
    options.find_by_address = true;
    CHECK_OK(quire_memory_create(b->device, &options, &b->memory));
}

static void end(fixture *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    fixture_end(b);
}

static void expect_found(const fixture *b, uint64_t address, quire_allocation expected)
{
    quire_memory *memory = NULL;
    quire_allocation found = {7};
    CHECK_OK(quire_memory_find(b->memory, address, &found));
    CHECK_EQ(found.id, expected.id);
    found.id = 7;
    CHECK_OK(quire_device_find(b->device, address, &memory, &found));
    CHECK_EQ(found.id, expected.id);
    CHECK(memory == b->memory);
    CHECK_OK(quire_device_find(b->device, address, NULL, &found));
}

static void expect_nobody(const fixture *b, uint64_t address)
{
    quire_memory *memory = b->memory;
    quire_allocation found = {7};
    CHECK_FAILS(quire_memory_find(b->memory, address, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "belongs to no live allocation of memory '");
    CHECK_EQ(found.id, 0);
    found.id = 7;
    CHECK_FAILS(quire_device_find(b->device, address, &memory, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "belongs to no live allocation of device '");
    CHECK_EQ(found.id, 0);
    CHECK(memory == NULL);
    CHECK_FAILS(quire_free_at_address(b->memory, address, NULL), QUIRE_ERROR_OUT_OF_RANGE);
}

/* Ranges of several sizes and alignments, some freed, one reserved, two dedicated. */
static void populate(fixture *b)
{
    quire_allocation live[14], reserved;
    for (uint64_t i = 0; i < 14; i++)
        live[i] = ALLOCATE(b, .size = 1 + i * 37, .alignment = UINT64_C(1) << i % 8,
                           .dedicated = i % 7 == 6);
    for (int i = 1; i < 12; i += 4)
        CHECK_OK(quire_free(b->memory, live[i]));
    CHECK_OK(quire_reserve(b->memory, &(quire_allocation_options){.size = 99}, &reserved));
}

/* ---- every byte ------------------------------------------------------------------------------ */

typedef struct expectation {
    const fixture *b;
    uint64_t bytes;
} expectation;

static void expect_byte(const fixture *b, const quire_item *item, uint64_t at, uint64_t address)
{
    quire_allocation_info info = {.committed = false};
    if (!item->is_free)
        CHECK_OK(quire_allocation_get_info(b->memory, item->allocation, &info));
    if (info.committed && at >= item->offset)
        expect_found(b, address, item->allocation);
    else
        expect_nobody(b, address);
}

static bool expect_bytes(void *user, const quire_item *item)
{
    expectation *e = user;
    quire_page_info page;
    CHECK_OK(quire_page_get_info(e->b->memory, item->page, &page));
    uint64_t host = (uintptr_t)qi_page_at(&e->b->memory->pages, item->page)->native.host;
    for (uint64_t at = item->offset - item->left_padding; at < item->offset + item->size; at++) {
        expect_byte(e->b, item, at, page.address + at);
        if (host)
            expect_byte(e->b, item, at, host + at);
        e->bytes++;
    }
    return true;
}

static void expect_every_byte(const fixture *b)
{
    expectation e = {b, 0};
    CHECK_OK(quire_memory_walk(b->memory, expect_bytes, &e));
    CHECK(e.bytes >= 2 * PAGE);
}

UNIT(find, every_byte_of_every_page)
{
    const quire_memory_flags local = QUIRE_DEVICE_LOCAL, visible = QUIRE_HOST_VISIBLE;
    const struct {
        uint64_t step;
        quire_memory_options options;
    } rows[] = {
        {0, {.fit.algorithm = QUIRE_FIT_SEGREGATED, .kind.required = local}},
        {0, {.fit.algorithm = QUIRE_FIT_FIRST, .kind.required = local}},
        {0, {.fit.algorithm = QUIRE_FIT_BUDDY, .kind.required = local}},
        {0, {.fit.algorithm = QUIRE_FIT_SEGREGATED, .kind.required = visible}},
        {0, {.fit.algorithm = QUIRE_FIT_FIRST, .kind.required = visible}},
        {0, {.fit.algorithm = QUIRE_FIT_BUDDY, .kind.required = visible}},
        {16, {.fit.granule = 256}}, /* the first granule begins within the page */
        {64, {.fit = {.granule = 1, .slabs = true}}},
        {64, {.fit = {.granule = 8, .slabs = true}}},
        {64, {.fit = {.granule = 64, .slabs = true}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fixture b;
        make(&b, rows[i].step, rows[i].options);
        populate(&b);
        expect_every_byte(&b);
        end(&b);
    }
}

#define CASE(name, ...) UNIT_ON(find, name, fixture, b, make(b, __VA_ARGS__), end)

CASE(addresses_outside_every_page, 0, (quire_memory_options){.name = "weights"})
{
    expect_nobody(b, 0); /* no page exists */
    quire_allocation allocation = ALLOCATE(b, .size = PAGE);
    const uint64_t page = UINT64_C(4) << 30;
    expect_found(b, page + PAGE - 1, allocation);
    expect_nobody(b, page - 1);
    expect_nobody(b, page + PAGE);
    expect_nobody(b, 0);
    expect_nobody(b, 1);
    expect_nobody(b, UINT64_MAX);
    CHECK_OK(quire_free(b->memory, allocation));
    expect_nobody(b, page); /* in an empty page */
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    expect_nobody(b, page); /* destroyed */
}

UNIT(find, pages_without_any_address)
{
    fixture b = {.device = NULL};
    quire_host_options host = {.device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&host, &b.device));
    CHECK_OK(quire_memory_create(b.device, &(quire_memory_options){.find_by_address = true},
                                 &b.memory)); /* device-local, not mapped */
    quire_allocation made = ALLOCATE(&b, .size = 1);
    expect_nobody(&b, 0);
    expect_nobody(&b, 100);
    CHECK_OK(quire_free(b.memory, made));
    CHECK_OK(quire_memory_destroy(&b.memory));
    CHECK_OK(quire_device_destroy(&b.device));
}

/* ---- the device ------------------------------------------------------------------------------ */

CASE(the_device_searches_the_memories_with_the_option, 0, (quire_memory_options){.name = "first"})
{
    quire_memory *without = NULL, *other = NULL, *found = NULL;
    quire_allocation mine = ALLOCATE(b, .size = 1), made, theirs;
    CHECK_OK(quire_memory_create(b->device, NULL, &without));
    CHECK_OK(
        quire_memory_create(b->device, &(quire_memory_options){.find_by_address = true}, &other));
    CHECK_OK(quire_allocate(without, &(quire_allocation_options){.size = 1}, &made));
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = 1}, &theirs));
    expect_found(b, UINT64_C(4) << 30, mine);
    CHECK_FAILS(quire_device_find(b->device, UINT64_C(8) << 30, &found, &made),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_OK(quire_device_find(b->device, UINT64_C(12) << 30, &found, &made));
    CHECK(found == other && made.id == theirs.id);
    CHECK_FAILS(quire_memory_find(b->memory, UINT64_C(12) << 30, &made), QUIRE_ERROR_OUT_OF_RANGE);
    quire_memory_destroy_all(&other);
    quire_memory_destroy_all(&without);
}

UNIT_MEMORY(find, a_memory_without_the_option_is_refused_by_name, b, .name = "plain")
{
    quire_memory *memory = NULL;
    quire_allocation found = {7};
    quire_allocation made = ALLOCATE(b, .size = 100);
    uint64_t address = fixture_info(b, made).address;
    CHECK_FAILS(quire_memory_find(b->memory, address, &found), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(),
              "memory 'plain' was created without quire_memory_options.find_by_address");
    CHECK_EQ(found.id, 0);
    CHECK_FAILS(quire_free_at_address(b->memory, address, NULL), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_device_find(b->device, address, &memory, &found), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "no memory of the device has");
    CHECK_OK(quire_free(b->memory, made));
}

/* ---- frees by address ------------------------------------------------------------------------ */

CASE(a_free_needs_the_first_byte, 0, (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE})
{
    ALLOCATE(b, .size = 256);
    quire_allocation made = ALLOCATE(b, .size = 300);
    const uint64_t page = UINT64_C(4) << 30;
    uint64_t host = (uintptr_t)qi_page_at(&b->memory->pages, 0)->native.host;
    CHECK_FAILS(quire_free_at_address(b->memory, page + 256 + 299, NULL),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "address 0x10000022b lies 299 bytes inside an allocation that "
                                  "starts at 0x100000100");
    CHECK_FAILS(quire_free_at_address(b->memory, host + 257, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    expect_found(b, page + 256, made);
    CHECK_OK(quire_free_at_address(b->memory, page + 256, NULL));
    CHECK_FAILS(quire_free(b->memory, made), QUIRE_ERROR_STALE_HANDLE);
    expect_nobody(b, page + 256);
    CHECK_OK(quire_free_at_address(b->memory, host, NULL)); /* the other one, by its host pointer */
    CHECK_EQ(fixture_stats(b).allocation_count, 0);
}

CASE(a_mapped_or_reserved_allocation_is_not_freed, 0,
     (quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE})
{
    void *pointer = NULL;
    quire_allocation reserved;
    quire_allocation made = ALLOCATE(b, .size = 100);
    CHECK_OK(quire_map(b->memory, made, &pointer));
    CHECK_FAILS(quire_free_at_address(b->memory, (uintptr_t)pointer, NULL), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_unmap(b->memory, made));
    CHECK_OK(quire_free_at_address(b->memory, (uintptr_t)pointer, NULL));
    CHECK_OK(quire_reserve(b->memory, &(quire_allocation_options){.size = 10}, &reserved));
    uint64_t address = fixture_info(b, reserved).address;
    expect_nobody(b, address);
    CHECK_OK(quire_commit(b->memory, reserved));
    expect_found(b, address, reserved);
}
