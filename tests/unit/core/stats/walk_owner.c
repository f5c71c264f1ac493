/*
 * walk_owner.c - the owner of an address: queried for every byte of a few pages, by device address
 * and by host pointer, of a memory and of the device.
 */
#include "tests/support/fixture.h"

#include "quire/host.h"

enum { PAGE = 2048 };

static void make(fixture *b, uint64_t address_step, quire_memory_options options)
{
    fixture_prepare(b);
    b->fake.address_step = address_step;
    b->fake.info.limits.page_alignment = address_step ? address_step : UINT64_C(1) << 32;
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
    options.pages.page_size = PAGE;
    CHECK_OK(quire_memory_create(b->device, &options, &b->memory));
}

static void end(fixture *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK_EQ(b->fake.pages, 0);
    CHECK_EQ(b->fake.maps, 0);
    CHECK(b->fake.ended || !b->fake.table.name); /* unless it was a host device */
}

static quire_allocation allocate(quire_memory *memory, const quire_allocation_options *options)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate(memory, options, &allocation));
    return allocation;
}

/* Ranges of several sizes and alignments, some freed, one reserved, two dedicated. */
static void populate(quire_memory *memory)
{
    quire_allocation live[14], reserved;
    for (uint64_t i = 0; i < 14; i++)
        live[i] = allocate(memory, &(quire_allocation_options){.size = 1 + i * 37,
                                                               .alignment = UINT64_C(1) << i % 8,
                                                               .dedicated = i % 7 == 6});
    for (int i = 1; i < 12; i += 4)
        CHECK_OK(quire_free(memory, live[i]));
    CHECK_OK(quire_reserve(memory, &(quire_allocation_options){.size = 99}, &reserved));
}

/* The item of a walk that contains each byte of each page. */
typedef struct expectation {
    quire_memory *memory;
    quire_device *device;
    uint64_t bytes;
} expectation;

/* Compares the fields, not the padding between them. */
static void expect_same(const quire_owner *owner, const quire_owner *same)
{
    CHECK_EQ(same->page, owner->page);
    CHECK_EQ(same->is_free, owner->is_free);
    CHECK_EQ(same->page_offset, owner->page_offset);
    CHECK_EQ(same->allocation.id, owner->allocation.id);
    CHECK_EQ(same->offset, owner->offset);
}

static void expect_owner(const expectation *e, const quire_item *item, uint64_t page_offset)
{
    quire_page_info page;
    quire_owner owner, same;
    quire_memory *found = NULL;
    CHECK_OK(quire_page_get_info(e->memory, item->page, &page));
    CHECK_OK(quire_memory_find_owner(e->memory, page.address + page_offset, &owner));
    CHECK_EQ(owner.page, item->page);
    CHECK_EQ(owner.page_offset, page_offset);
    bool inside = !item->is_free && page_offset >= item->offset;
    CHECK_EQ(owner.is_free, !inside);
    CHECK_EQ(owner.allocation.id, inside ? item->allocation.id : 0);
    CHECK_EQ(owner.offset, inside ? page_offset - item->offset : 0);
    CHECK_OK(quire_device_find_owner(e->device, page.address + page_offset, &found, &same));
    CHECK(found == e->memory);
    expect_same(&owner, &same);
}

static bool expect_owners(void *user, const quire_item *item)
{
    expectation *e = user;
    for (uint64_t at = item->offset - item->left_padding; at < item->offset + item->size; at++) {
        expect_owner(e, item, at);
        e->bytes++;
    }
    return true;
}

static void expect_every_byte(const fixture *b)
{
    expectation e = {b->memory, b->device, 0};
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(b->memory, &stats));
    CHECK_OK(quire_memory_walk(b->memory, expect_owners, &e));
    CHECK(stats.page_count >= 4);
    CHECK_EQ(e.bytes, stats.reserved_bytes);
}

UNIT(walk_owner, every_byte_has_its_owner)
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    for (int f = 0; f < 3; f++) {
        fixture b;
        make(&b, 0, (quire_memory_options){.fit = fits[f]});
        populate(b.memory);
        expect_every_byte(&b);
        end(&b);
    }
}

UNIT(walk_owner, bytes_before_the_first_granule_of_a_page_have_no_owner)
{
    fixture b;
    make(&b, 16, (quire_memory_options){.name = "weak"});
    quire_allocation allocation = allocate(b.memory, &(quire_allocation_options){.size = 1});
    quire_page_info page;
    quire_owner owner;
    CHECK_OK(quire_page_get_info(b.memory, 0, &page));
    for (uint64_t at = 0; at < page.size; at++) {
        CHECK_OK(quire_memory_find_owner(b.memory, page.address + at, &owner));
        CHECK_EQ(owner.page_offset, at);
        bool inside = at >= 240 && at < 240 + 256; /* the address is 16 above a granule */
        CHECK_EQ(owner.is_free, !inside);
        CHECK_EQ(owner.allocation.id, inside ? allocation.id : 0);
    }
    end(&b);
}

UNIT(walk_owner, dedicated_left_padding_has_no_owner)
{
    fixture b;
    make(&b, 64, (quire_memory_options){.name = "weak"});
    quire_allocation_options options = {.size = 100, .alignment = 1024, .dedicated = true};
    quire_allocation allocation = allocate(b.memory, &options);
    quire_page_info page;
    quire_owner owner;
    CHECK_OK(quire_page_get_info(b.memory, 0, &page));
    CHECK_OK(quire_memory_find_owner(b.memory, page.address + 959, &owner));
    CHECK(owner.is_free);
    CHECK_OK(quire_memory_find_owner(b.memory, page.address + 960, &owner));
    CHECK_EQ(owner.allocation.id, allocation.id);
    CHECK_EQ(owner.offset, 0);
    CHECK_OK(quire_memory_find_owner(b.memory, page.address + 1059, &owner));
    CHECK_EQ(owner.offset, 99);
    CHECK_OK(quire_memory_find_owner(b.memory, page.address + 1060, &owner));
    CHECK(owner.is_free);
    end(&b);
}

UNIT(walk_owner, a_host_pointer_finds_its_owner)
{
    fixture b;
    make(&b, 0, (quire_memory_options){.flags = QUIRE_HOST_VISIBLE, .fit = QUIRE_FIT_FIRST});
    allocate(b.memory, &(quire_allocation_options){.size = 10});
    quire_allocation allocation = allocate(b.memory, &(quire_allocation_options){.size = 100});
    void *pointer = NULL;
    quire_owner owner;
    CHECK_OK(quire_map(b.memory, allocation, &pointer));
    for (uint64_t at = 0; at < 100; at++) {
        CHECK_OK(quire_memory_find_owner(b.memory, (uintptr_t)pointer + at, &owner));
        CHECK_EQ(owner.allocation.id, allocation.id);
        CHECK_EQ(owner.offset, at);
        CHECK_EQ(owner.page_offset, 10 + at);
    }
    CHECK_OK(quire_memory_find_owner(b.memory, (uintptr_t)pointer + 100, &owner));
    CHECK(owner.is_free);
    end(&b);
}

static void expect_nobody(const fixture *b, uint64_t address)
{
    quire_owner owner = {.page = 7};
    quire_memory *memory = b->memory;
    CHECK_FAILS(quire_memory_find_owner(b->memory, address, &owner), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_HAS(quire_last_error(), "no page holds address 0x");
    CHECK_EQ(owner.page, 0);
    CHECK_FAILS(quire_device_find_owner(b->device, address, &memory, &owner),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK(memory == NULL);
}

UNIT(walk_owner, addresses_outside_every_page_are_not_found)
{
    fixture b;
    make(&b, 0, (quire_memory_options){.name = "weights"});
    expect_nobody(&b, 0); /* no page exists */
    quire_allocation allocation = allocate(b.memory, &(quire_allocation_options){.size = PAGE});
    const uint64_t page = UINT64_C(4) << 30;
    quire_owner owner;
    CHECK_OK(quire_memory_find_owner(b.memory, page + PAGE - 1, &owner));
    expect_nobody(&b, page - 1);
    expect_nobody(&b, page + PAGE);
    expect_nobody(&b, 0);
    expect_nobody(&b, 1);
    expect_nobody(&b, UINT64_MAX);
    CHECK_OK(quire_free(b.memory, allocation));
    CHECK_OK(quire_memory_trim(b.memory, 0, NULL));
    expect_nobody(&b, page); /* destroyed */
    end(&b);
}

UNIT(walk_owner, memory_without_addresses_is_never_found)
{
    fixture b = {.device = NULL};
    quire_host_options host = {.device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&host, &b.device));
    CHECK_OK(quire_memory_create(b.device, NULL, &b.memory)); /* only the device */
    allocate(b.memory, &(quire_allocation_options){.size = 1});
    expect_nobody(&b, 0);
    expect_nobody(&b, 100);
    end(&b);
}

UNIT(walk_owner, the_device_searches_all_its_memories)
{
    fixture b;
    make(&b, 0, (quire_memory_options){.name = "first"});
    quire_memory *other = NULL, *found = NULL;
    CHECK_OK(quire_memory_create(b.device, NULL, &other));
    quire_allocation mine = allocate(b.memory, &(quire_allocation_options){.size = 1});
    quire_allocation theirs = allocate(other, &(quire_allocation_options){.size = 1});
    quire_owner owner;
    CHECK_OK(quire_device_find_owner(b.device, UINT64_C(4) << 30, &found, &owner));
    CHECK(found == b.memory && owner.allocation.id == mine.id);
    CHECK_OK(quire_device_find_owner(b.device, UINT64_C(8) << 30, &found, &owner));
    CHECK(found == other && owner.allocation.id == theirs.id);
    CHECK_OK(quire_device_find_owner(b.device, UINT64_C(8) << 30, NULL, &owner));
    CHECK_EQ(owner.allocation.id, theirs.id);
    CHECK_FAILS(quire_memory_find_owner(b.memory, UINT64_C(8) << 30, &owner),
                QUIRE_ERROR_OUT_OF_RANGE);
    quire_memory_destroy_all(&other);
    end(&b);
}

UNIT(walk_owner, null_arguments_are_refused)
{
    fixture b;
    make(&b, 0, (quire_memory_options){.name = "weights"});
    quire_owner owner = {.page = 7};
    quire_memory *memory = b.memory;
    CHECK_FAILS(quire_memory_find_owner(NULL, 1, &owner), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(owner.page, 0);
    CHECK_FAILS(quire_memory_find_owner(b.memory, 1, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_device_find_owner(NULL, 1, &memory, &owner), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK(memory == NULL);
    CHECK_FAILS(quire_device_find_owner(b.device, 1, &memory, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    end(&b);
}

UNIT(walk_owner, an_address_in_an_empty_page_has_no_owner)
{
    fixture b;
    make(&b, 0, (quire_memory_options){.name = "empty"});
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        quire_owner owner;
        quire_allocation_info info;
        quire_allocation a =
            allocate(b.memory, &(quire_allocation_options){.size = 100, .dedicated = dedicated});
        CHECK_OK(quire_allocation_get_info(b.memory, a, &info));
        CHECK_OK(quire_memory_find_owner(b.memory, info.address, &owner));
        CHECK_EQ(owner.allocation.id, a.id);
        CHECK_OK(quire_free(b.memory, a));
        CHECK_OK(quire_memory_find_owner(b.memory, info.address, &owner));
        CHECK(owner.is_free);
        CHECK_EQ(owner.allocation.id, 0);
        CHECK_EQ(owner.page, info.page);
    }
    end(&b);
}
