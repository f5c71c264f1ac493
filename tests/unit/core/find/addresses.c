/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * addresses.c - what keeps the addresses of a memory up to date: streams, shards, batches, objects,
 * adopted and moving pages, failures, and rarer orders of these events. Pages that grow are in
 * tests/plain/memory_model.c, reuse on streams is in stream_model.c.
 */
#include "src/core/find/addresses.h"

#include "tests/support/fixture.h"

static const quire_memory_options finding = {.find_by_address = true};

static void make(fixture *f, const quire_memory_options *options)
{
    quire_memory_options with = *options;
    with.find_by_address = true;
    fixture_prepare(f);
    fake_offer_streams(&f->fake);
    fake_offer_growth(&f->fake);
    fake_offer_device_address(&f->fake);
    fixture_open(f, &with);
}

static bool is_found(fixture *f, uint64_t address, quire_allocation expected)
{
    quire_allocation found = {0};
    quire_result result = quire_memory_find(f->memory, address, &found);
    CHECK(!result || result == QUIRE_ERROR_OUT_OF_RANGE);
    return !result && found.id == expected.id;
}

/* The first, a middle and the last byte are found, and the bytes around are not. */
static void expect_found(fixture *f, quire_allocation allocation)
{
    quire_allocation_info info = fixture_info(f, allocation);
    CHECK(info.address != 0);
    CHECK(is_found(f, info.address, allocation));
    CHECK(is_found(f, info.address + info.size / 2, allocation));
    CHECK(is_found(f, info.address + info.size - 1, allocation));
    CHECK(!is_found(f, info.address - 1, allocation));
    CHECK(!is_found(f, info.address + info.size, allocation));
}

static void expect_gone(fixture *f, uint64_t address)
{
    quire_allocation found;
    CHECK_FAILS(quire_memory_find(f->memory, address, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_memory_find(f->memory, address + 1, &found), QUIRE_ERROR_OUT_OF_RANGE);
}

/* Entries in the table of starts. */
static uint64_t entries(const fixture *f)
{
    uint64_t count = 0;
    for (int i = 0; i < QI_STRIPE_COUNT; i++)
        count += f->memory->addresses->starts.stripes[i].count;
    return count;
}

#define CASE(name, ...) UNIT_ON(addresses, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

/* ---- streams --------------------------------------------------------------------------------- */

CASE(a_free_on_a_stream_that_is_refused_changes_nothing, &finding)
{
    quire_stream *capture = NULL;
    CHECK_OK(quire_stream_create(f->device, &(quire_stream_options){.capture = true}, &capture));
    quire_allocation a = ALLOCATE(f, .size = 1000);
    uint64_t address = fixture_info(f, a).address;
    CHECK_FAILS(quire_free_at_address(f->memory, address + 1, capture),
                QUIRE_ERROR_INVALID_ARGUMENT);
    test_memory_fail(unit_memory_state(), 1, true);
    quire_result result = quire_free_at_address(f->memory, address, capture);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK(result);
    expect_found(f, a);
    CHECK_OK(quire_free_at_address(f->memory, address, NULL));
    CHECK_OK(quire_stream_destroy(&capture));
}

/* ---- shards ---------------------------------------------------------------------------------- */

CASE(a_free_in_an_inbox_is_not_found, &(quire_memory_options){.shards = 2})
{
    quire_allocation mine = ALLOCATE(f, .size = 1000);
    quire_allocation theirs = ALLOCATE_ELSEWHERE(f, .size = 1000);
    uint64_t address = fixture_info(f, theirs).address;
    CHECK(fixture_info(f, mine).page != fixture_info(f, theirs).page);
    expect_found(f, mine);
    expect_found(f, theirs);
    CHECK_OK(
        quire_free_at_address(f->memory, address, NULL)); /* into the inbox of the other shard */
    expect_gone(f, address);
    CHECK_EQ(entries(f), 1);
    expect_found(f, mine);
}

CASE(a_page_that_moves_between_shards_keeps_its_address,
     &(quire_memory_options){.shards = 2, .pages = {.page_size = 1 << 16, .max_pages = 1}})
{
    for (int i = 0; i < 4; i++) {
        quire_allocation a =
            i % 2 ? ALLOCATE_ELSEWHERE(f, .size = 1000) : ALLOCATE(f, .size = 1000);
        expect_found(f, a);
        CHECK_EQ(f->memory->addresses->pages, 1);
        if (i % 2)
            fixture_free_elsewhere(f, a);
        else
            CHECK_OK(quire_free(f->memory, a));
        CHECK_EQ(entries(f), 0);
    }
    CHECK_EQ(fixture_stats(f).pages_created, 1);
}

/* ---- batches --------------------------------------------------------------------------------- */

CASE(batches, &finding)
{
    enum { COUNT = 200 };
    quire_allocation made[COUNT];
    CHECK_OK(
        quire_allocate_batch(f->memory, &(quire_allocation_options){.size = 300}, made, COUNT));
    for (int i = 0; i < COUNT; i++)
        expect_found(f, made[i]);
    uint64_t address = fixture_info(f, made[7]).address;
    CHECK_OK(quire_free_batch(f->memory, made, COUNT));
    expect_gone(f, address);
    CHECK_EQ(entries(f), 0);
}

/* ---- pages ----------------------------------------------------------------------------------- */

CASE(memory_that_was_adopted, &finding)
{
    quire_allocation made;
    CHECK_OK(
        quire_page_adopt(f->memory, "somewhere", &(quire_allocation_options){.size = 3333}, &made));
    uint64_t address = fixture_info(f, made).address;
    expect_found(f, made);
    CHECK_OK(quire_free_at_address(f->memory, address, NULL)); /* the page leaves with it */
    expect_gone(f, address);
    CHECK_EQ(f->memory->addresses->pages, 0);
    CHECK_EQ(f->memory->addresses->span_counts[QI_ADDRESS_OF_DEVICE], 0);
}

CASE(the_second_of_two_memories_serves_a_request, &finding)
{
    quire_memory *memories[2] = {NULL};
    quire_allocation made;
    uint32_t chosen = 0;
    CHECK_OK(quire_memory_create(
        f->device, &(quire_memory_options){.find_by_address = true, .limit = 1}, &memories[0]));
    memories[1] = f->memory;
    CHECK_OK(quire_allocate_fallback(memories, 2, &(quire_allocation_options){.size = 1000},
                                     &chosen, &made));
    CHECK_EQ(chosen, 1);
    expect_found(f, made);
    CHECK_OK(quire_memory_destroy(&memories[0]));
}

/* Two pages with the same addresses, as if the program had adopted the bytes twice. */
CASE(pages_with_the_same_addresses, &(quire_memory_options){.pages.retained_empty_bytes = 1})
{
    quire_allocation first = ALLOCATE(f, .size = 1000, .dedicated = true);
    uint64_t address = fixture_info(f, first).address;
    f->fake.next_address = address;
    quire_allocation second = ALLOCATE(f, .size = 2000, .dedicated = true);
    CHECK_EQ(fixture_info(f, second).address, address);
    CHECK(is_found(f, address, first) || is_found(f, address, second));
    CHECK(is_found(f, address + 1999, second));
    CHECK(is_found(f, address + 999, first) || is_found(f, address + 999, second));
    CHECK_OK(quire_free(f->memory, second));
    expect_found(f, first);
    CHECK_OK(quire_free(f->memory, first));
    expect_gone(f, address);
    CHECK_EQ(entries(f), 0);
}

/* ---- addresses that the backend reports on request ------------------------------------------- */

UNIT_PREPARED(addresses, pages_without_an_address_are_asked_for_it, f)
{
    fake_offer_device_address(&f->fake);
    f->fake.next_address = 0;
    f->fake.device_address = 0x123400;
    fixture_open(f, &finding);
    quire_allocation a = ALLOCATE(f, .size = 1000), b = ALLOCATE(f, .size = 1000);
    CHECK_EQ(fixture_info(f, a).address, 0x123400);
    expect_found(f, a);
    CHECK(is_found(f, fixture_info(f, b).address + 999, b));
}

UNIT(addresses, a_buffer_gives_its_page_an_address)
{
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        fixture f;
        quire_buffer buffer;
        fixture_prepare(&f);
        fake_offer_device_address(&f.fake);
        f.fake.next_address = 0;
        fixture_open(&f, &finding);
        quire_allocation raw = {0};
        if (!dedicated)
            raw = ALLOCATE(&f, .size = 256);
        f.fake.device_address = 0x123400; /* of the buffer */
        CHECK_OK(quire_buffer_create(
            f.memory, &(quire_buffer_options){.size = 1000, .dedicated = dedicated}, &buffer));
        CHECK(is_found(&f, 0x123400, buffer.allocation));
        CHECK(is_found(&f, 0x123400 + 999, buffer.allocation));
        CHECK(!is_found(&f, 0x123400 - 1, buffer.allocation));
        CHECK_OK(quire_free_at_address(f.memory, 0x123400, NULL));
        expect_gone(&f, 0x123400);
        CHECK_EQ(entries(&f), 0);
        if (!dedicated)
            CHECK_OK(quire_free(f.memory, raw));
        fixture_end(&f);
    }
}

UNIT_PREPARED(addresses, a_host_pointer_is_found_beside_an_address_that_came_later, f)
{
    quire_buffer buffer;
    void *pointer = NULL;
    fake_offer_device_address(&f->fake);
    f->fake.next_address = 0;
    fixture_open(
        f, &(quire_memory_options){.find_by_address = true, .kind.required = QUIRE_HOST_VISIBLE});
    f->fake.device_address = 0;
    quire_allocation raw = ALLOCATE(f, .size = 300);
    f->fake.device_address = 0x123400;
    CHECK_OK(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 1000}, &buffer));
    CHECK_OK(quire_map(f->memory, buffer.allocation, &pointer));
    CHECK(is_found(f, (uintptr_t)pointer, buffer.allocation));
    CHECK(is_found(f, (uintptr_t)pointer + 999, buffer.allocation));
    CHECK(is_found(f, 0x123400 + 10, buffer.allocation));
    CHECK_OK(quire_map(f->memory, raw, &pointer));
    CHECK(is_found(f, (uintptr_t)pointer + 10, raw));
}

/* ---- failures -------------------------------------------------------------------------------- */

/* Every call for host memory of a few allocations fails in turn. */
UNIT(addresses, an_allocation_without_host_memory_leaves_no_entry)
{
    bool failed = true;
    for (uint64_t call = 1; failed; call++) {
        fixture f;
        quire_allocation made[40] = {{0}};
        make(&f, &(quire_memory_options){.pages.page_size = 1 << 16});
        test_memory_fail(unit_memory_state(), call, false);
        for (int i = 0; i < 40; i++) {
            quire_memory_stats before = fixture_stats(&f);
            quire_result result = quire_allocate(
                f.memory,
                &(quire_allocation_options){.size = 5000, .zero = i % 3 == 0, .dedicated = i == 20},
                &made[i]);
            CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_EQ(fixture_stats(&f).allocation_count, before.allocation_count + !result);
            CHECK_EQ(fixture_stats(&f).allocations, before.allocations + !result);
        }
        failed = unit_memory_state()->calls >= call;
        test_memory_fail(unit_memory_state(), 0, false);
        uint64_t live = fixture_stats(&f).allocation_count;
        CHECK_EQ(entries(&f), live);
        for (int i = 0; i < 40; i++)
            if (made[i].id)
                expect_found(&f, made[i]);
        CHECK_OK(quire_memory_check(f.memory));
        fixture_end(&f);
    }
}

/* ---- the check ------------------------------------------------------------------------------- */

static void expect_missing(const fixture *f, uint32_t slot)
{
    CHECK_FAILS(quire_memory_check(f->memory), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "an allocation is not found by its address");
    CHECK(qi_addresses_add(f->memory, slot, true));
    CHECK_OK(quire_memory_check(f->memory));
}

CASE(the_check_finds_a_missing_entry, &finding)
{
    const quire_allocation shared[] = {ALLOCATE(f, .size = 1000), ALLOCATE(f, .size = 1000)};
    quire_allocation only = ALLOCATE(f, .size = 10, .dedicated = true);
    CHECK_OK(quire_memory_check(f->memory));
    for (int i = 0; i < 2; i++) {
        const quire_allocation_info info = fixture_info(f, shared[i]);
        uint32_t slot = qi_handle_slot(shared[i].id);
        qi_starts_remove(&f->memory->addresses->starts, info.address, slot);
        expect_missing(f, slot);
        qi_page_addresses_remove(qi_memory_page(f->memory, slot)->addresses, info.offset);
        expect_missing(f, slot);
    }
    CHECK_OK(quire_free(f->memory, only));
}

/* ---- rarer orders ---------------------------------------------------------------------------- */

#define RARE(name) UNIT_PREPARED(addresses, name, f)

/* On the fast path, and in the ladder. */
RARE(a_batch_on_a_stream_is_found)
{
    quire_stream *stream = NULL;
    quire_allocation made[3];
    fake_offer_streams(&f->fake);
    fixture_open(f, &(quire_memory_options){.find_by_address = true});
    CHECK_OK(quire_stream_create(f->device, NULL, &stream));
    for (int named = 0; named < 2; named++) {
        const quire_allocation_options options = {
            .size = 1000, .stream = stream, .name = named ? "named" : NULL};
        CHECK_OK(quire_allocate_batch(f->memory, &options, made, 3));
        for (int i = 0; i < 3; i++) {
            uint64_t address = fixture_info(f, made[i]).address;
            CHECK(is_found(f, address, made[i]));
            CHECK(is_found(f, address + 999, made[i]));
            CHECK_OK(quire_free_at_address(f->memory, address, stream));
        }
    }
    fake_stream_run(quire_stream_native(stream), UINT64_MAX);
    CHECK_OK(quire_collect(f->memory, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
}

/* The allocations before have no entry. The check must not miss them. */
RARE(a_page_gets_an_address_after_its_first_allocations)
{
    quire_buffer buffer;
    fake_offer_device_address(&f->fake);
    f->fake.next_address = 0;
    fixture_open(f, &(quire_memory_options){.find_by_address = true});
    quire_allocation raw = ALLOCATE(f, .size = 256);
    f->fake.device_address = 0x123400; /* of the buffer, which lies behind */
    CHECK_OK(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 1000}, &buffer));
    CHECK_OK(quire_memory_check(f->memory));
    CHECK(is_found(f, 0x123400, buffer.allocation));
    CHECK_OK(quire_free(f->memory, raw));
    CHECK(is_found(f, 0x123400, buffer.allocation));
}

/* As if the program had adopted bytes in the middle of a page. */
RARE(a_page_within_another_page)
{
    f->fake.info.limits.page_alignment = 1024;
    fixture_open(f, &(quire_memory_options){.find_by_address = true});
    quire_allocation outer = ALLOCATE(f, .size = 4096, .dedicated = true);
    uint64_t begin = fixture_info(f, outer).address;
    quire_page_info page;
    CHECK_OK(quire_page_get_info(f->memory, fixture_info(f, outer).page, &page));
    f->fake.next_address = page.address + 1024;
    quire_allocation inner = ALLOCATE(f, .size = 1024, .dedicated = true);
    uint64_t within = fixture_info(f, inner).address;
    CHECK(within > begin && within < begin + 2048);
    CHECK(is_found(f, within - 1, outer));
    CHECK(is_found(f, within, inner));
    CHECK(is_found(f, within + 1023, inner));
    CHECK(is_found(f, within + 1024, outer));
    CHECK(is_found(f, begin + 4095, outer));
    CHECK_OK(quire_free(f->memory, inner));
    CHECK(is_found(f, within + 500, outer));
}

/* The bitmap of starts has a bit for each granule; the linear fit has granules of a byte. */
RARE(a_page_of_more_than_32_bits_of_granules_is_refused)
{
    quire_memory *memory = NULL;
    f->fake.info.heaps[0].size = UINT64_C(1) << 40;
    fixture_open(f, &(quire_memory_options){.find_by_address = true});
    quire_memory_options options = {.fit.algorithm = QUIRE_FIT_LINEAR,
                                    .pages.page_size = (UINT64_C(4) << 30) + 4096,
                                    .find_by_address = true};
    quire_allocation made;
    for (int finds = 1; finds >= 0; finds--) {
        options.find_by_address = finds;
        CHECK_OK(quire_memory_create(f->device, &options, &memory));
        quire_result result =
            quire_allocate(memory, &(quire_allocation_options){.size = 8192}, &made);
        CHECK_EQ(result, finds ? QUIRE_ERROR_UNSUPPORTED : QUIRE_SUCCESS);
        if (finds)
            CHECK_HAS(quire_last_error(), "more than 2^32 granules of 1 byte");
        quire_memory_destroy_all(&memory);
    }
}

/* In the child of a fork: a thread of the parent has claimed the allocation and not removed it. */
RARE(an_orphan_is_not_found)
{
    uint32_t slot = 0;
    fixture_open(f, &(quire_memory_options){.find_by_address = true});
    quire_allocation made = ALLOCATE(f, .size = 1000), other = ALLOCATE(f, .size = 1000);
    uint64_t address = fixture_info(f, made).address;
    f->memory->has_orphans = true;
    CHECK(is_found(f, fixture_info(f, other).address + 500, other));
    CHECK_OK(qi_slot_claim(&f->memory->slots, made, QI_ACCEPT_LIVE, &slot));
    quire_allocation found;
    CHECK_FAILS(quire_memory_find(f->memory, address, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_memory_find(f->memory, address + 500, &found), QUIRE_ERROR_OUT_OF_RANGE);
    qi_slot_publish(&f->memory->slots, slot, QI_PHASE_LIVE);
    f->memory->has_orphans = false;
}
