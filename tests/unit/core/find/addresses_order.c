/*
 * addresses_order.c - addresses in rarer orders of events: batches on a stream, an address that a
 * page gets after its first allocations, and pages with some bytes in common.
 */
#include "src/core/find/addresses.h"

#include "tests/support/fixture.h"

static bool is_found(fixture *f, uint64_t address, quire_allocation expected)
{
    quire_allocation found = {0};
    quire_result result = quire_memory_find(f->memory, address, &found);
    CHECK(!result || result == QUIRE_ERROR_OUT_OF_RANGE);
    return !result && found.id == expected.id;
}

#define CASE(name) UNIT_ON(addresses_order, name, fixture, f, fixture_prepare(f), fixture_end)

/* On the fast path, and in the ladder. */
CASE(a_batch_on_a_stream_is_found)
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
CASE(a_page_gets_an_address_after_its_first_allocations)
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
CASE(a_page_within_another_page)
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
CASE(a_page_of_more_than_32_bits_of_granules_is_refused)
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
CASE(an_orphan_is_not_found)
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
