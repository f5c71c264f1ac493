/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page_addresses.c - the starts in a page: the granule before an offset, pages that grow, dedicated
 * pages, and pages that get their device address later.
 */
#include "src/core/find/page_addresses.h"

#include "tests/support/fixture.h"

typedef struct bench {
    fixture f;
    qi_page page;
    qi_lock lock;
    qi_page_addresses *record;
} bench;

static void begin(bench *b, uint64_t address, uint64_t size, bool dedicated)
{
    *b = (bench){.page.dedicated = dedicated};
    fixture_make(&b->f, NULL);
    b->page.native = (qi_device_page){.native = {.address = address, .size = size}, .bytes = size};
    qi_lock_init(&b->lock, "test", QI_RANK_PAGE_STARTS);
    b->record = qi_page_addresses_create(b->f.memory, &b->page, address);
    CHECK(b->record != NULL);
    b->record->lock = &b->lock;
}

static void end(bench *b)
{
    qi_page_addresses_release(b->record, &b->f.memory->host);
    fixture_end(&b->f);
}

#define CASE(name, ...) UNIT_ON(page_addresses, name, bench, b, begin(b, __VA_ARGS__), end)

/* Returns the start before an offset, or UINT64_MAX. */
static uint64_t before(const bench *b, uint64_t offset)
{
    uint64_t start = 0;
    return qi_page_addresses_before(b->record, offset, &start) ? start : UINT64_MAX;
}

CASE(the_last_granule_with_a_start_is_found, 4096, 1 << 20, false)
{
    CHECK_EQ(before(b, 0), UINT64_MAX);
    CHECK_EQ(before(b, (1 << 20) - 1), UINT64_MAX);
    qi_page_addresses_add(b->record, 512, 1);
    qi_page_addresses_add(b->record, 100 * 256, 1);
    qi_page_addresses_add(b->record, 100 * 256, 1); /* again */
    CHECK_EQ(before(b, 511), UINT64_MAX);
    CHECK_EQ(before(b, 512), 512);
    CHECK_EQ(before(b, 100 * 256 - 1), 512);
    CHECK_EQ(before(b, 100 * 256), 100 * 256);
    CHECK_EQ(before(b, (1 << 20) - 1), 100 * 256);
    qi_page_addresses_remove(b->record, 100 * 256);
    qi_page_addresses_remove(b->record, 100 * 256); /* again */
    CHECK_EQ(before(b, (1 << 20) - 1), 512);
    qi_page_addresses_remove(b->record, 512);
    CHECK_EQ(before(b, (1 << 20) - 1), UINT64_MAX);
}

/* The first granule begins 240 bytes after the page, which has a part of a granule at its end. */
CASE(granules_begin_where_the_address_is_aligned, 4096 + 16, 1000, false)
{
    CHECK_EQ(b->record->skipped, 240);
    CHECK_EQ(b->record->granules, 3);
    qi_page_addresses_add(b->record, 240, 1);
    CHECK_EQ(before(b, 239), UINT64_MAX);
    CHECK_EQ(before(b, 240), 240);
    CHECK_EQ(before(b, 999), 240);
    qi_page_addresses_add(b->record, 240 + 512, 1);
    CHECK_EQ(before(b, 999), 240 + 512);
    CHECK_EQ(before(b, UINT32_MAX), 240 + 512); /* behind the page */
}

CASE(a_dedicated_page_has_one_start, 4096, 1 << 20, true)
{
    CHECK(!b->record->starts);
    qi_page_addresses_add(b->record, 64, 1);
    CHECK_EQ(b->record->only_id, 1);
    CHECK_EQ(b->record->only_start, 64);
    qi_page_addresses_remove(b->record, 64);
    CHECK_EQ(b->record->only_id, 0);
}

CASE(a_device_address_can_come_later, 0, 1 << 20, false)
{
    CHECK_EQ(b->record->base, 0);
    qi_page_addresses_set_device(b->record, 12345);
    CHECK_EQ(b->record->base, 12345);
    qi_page_addresses_release(b->record, &b->f.memory->host);
    b->page.native.host = b;
    b->record = qi_page_addresses_create(b->f.memory, &b->page, 0);
    qi_page_addresses_set_device(b->record, 12345);
    CHECK_EQ(b->record->base, (uintptr_t)b); /* known first */
    CHECK_EQ(b->record->addresses[QI_ADDRESS_OF_DEVICE], 12345);
}
