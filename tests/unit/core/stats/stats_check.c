/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stats_check.c - quire_memory_check finds damage: each record of allocations, pages, shards,
 * accounts and names is changed by hand, named, and put back.
 */
#include "src/core/state/memory.h"
#include "src/space/space.h"
#include "tests/support/fixture.h"

typedef struct bench {
    fake_backend fake;
    quire_device *device;
    quire_memory *memory;
    uint32_t shared[3], dedicated, reserved; /* slots */
} bench;

static uint32_t slot_of(quire_allocation allocation)
{
    return qi_handle_slot(allocation.id);
}

/* Three in a shared page, one in a dedicated page, one reserved, and an empty page. */
static void make(bench *b)
{
    *b = (bench){.device = NULL};
    fake_init(&b->fake);
    CHECK_OK(fake_open(&b->fake, unit_memory(), &b->device));
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.name = "weights", .pages = {.page_size = 4096}},
        &b->memory));
    quire_allocation made;
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_allocate(b->memory, &(quire_allocation_options){.size = 300}, &made));
        b->shared[i] = slot_of(made);
    }
    CHECK_OK(quire_allocate(b->memory, &(quire_allocation_options){.size = 300, .dedicated = true},
                            &made));
    b->dedicated = slot_of(made);
    CHECK_OK(quire_reserve(b->memory, &(quire_allocation_options){.size = 300}, &made));
    b->reserved = slot_of(made);
    CHECK_OK(quire_allocate(b->memory, &(quire_allocation_options){.size = 4096}, &made));
    CHECK_OK(quire_free(b->memory, made));
    CHECK_OK(quire_memory_check(b->memory));
}

static void end(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK_EQ(b->fake.pages, 0);
    CHECK(b->fake.ended);
}

static void expect_damaged(quire_memory *memory, const char *says)
{
    CHECK_FAILS(quire_memory_check(memory), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), says);
}

#define CASE(name) UNIT_ON(stats_check, name, bench, b, make(b), end)

/* The check reports the changed field, and succeeds after it is restored. */
#define DAMAGE(object, field, value, says)                                                         \
    do {                                                                                           \
        __typeof__(field) kept_ = (field);                                                         \
        (field) = (value);                                                                         \
        expect_damaged((object)->memory, (says));                                                  \
        (field) = kept_;                                                                           \
        CHECK_OK(quire_memory_check((object)->memory));                                            \
    } while (0)

CASE(statistics_that_are_not_the_sum_of_the_allocations)
{
    quire_memory_stats *stats = &b->memory->shards[0]->stats;
    const char *says = "memory 'weights': the live statistics are not the sum of the allocations";
    DAMAGE(b, stats->live_bytes, stats->live_bytes + 1, says);
    DAMAGE(b, stats->requested_bytes, stats->requested_bytes - 1, says);
    DAMAGE(b, stats->allocation_count, stats->allocation_count + 1, says);
}

CASE(statistics_that_are_not_the_sum_of_the_pages)
{
    quire_memory_stats *stats = &b->memory->pages.stats;
    const char *says = "the page statistics are not the sum of the pages (3)";
    DAMAGE(b, stats->page_count, 4, says);
    DAMAGE(b, stats->reserved_bytes, stats->reserved_bytes - 256, says);
    DAMAGE(b, b->memory->shards[0]->empty_pages.bytes, 0, says);
}

CASE(pages_with_wrong_statistics)
{
    const char *says = "the pages' live statistics are not the sum of the allocations";
    for (uint32_t i = 0; i < 3; i++) {
        qi_page *page = qi_page_at(&b->memory->pages, i);
        DAMAGE(b, page->tally->live_bytes, page->tally->live_bytes + 1, says);
        DAMAGE(b, page->tally->allocation_count, page->tally->allocation_count + 1, says);
    }
}

CASE(pages_that_contradict_their_allocations)
{
    qi_page *shared = qi_page_at(&b->memory->pages, 0), *own = qi_page_at(&b->memory->pages, 1);
    const char *says = "an allocation names a page that does not exist";
    DAMAGE(b, shared->phase, QI_PAGE_LEAVING, says);
    DAMAGE(b, shared->dedicated, true, says);
    DAMAGE(b, own->phase, QI_PAGE_MAKING, says);
    DAMAGE(b, own->slot, b->shared[0], "a dedicated page names another allocation");
    DAMAGE(b, own->native.native.size, 299, "an allocation reaches beyond its page");
    DAMAGE(b, shared->region, shared->region + 1, "an allocation and its range disagree");
    DAMAGE(b, shared->tally->skipped, 256, "an allocation and its range disagree");
}

CASE(allocations_with_a_wrong_place)
{
    const uint32_t slots[] = {b->shared[0], b->shared[2], b->reserved};
    for (int i = 0; i < 3; i++) {
        qi_slot *slot = qi_memory_slot(b->memory, slots[i]);
        const qi_slot *other = qi_memory_slot(b->memory, b->shared[1]);
        DAMAGE(b, slot->tally, qi_page_at(&b->memory->pages, 2)->tally, "range disagree");
        DAMAGE(b, slot->tally, qi_page_at(&b->memory->pages, 1)->tally,
               "a page that does not exist");
        DAMAGE(b, slot->tally, NULL, "a page that does not exist");
        DAMAGE(b, slot->tally, slot->tally + 77, "a page that does not exist");
        DAMAGE(b, slot->tally, (void *)((char *)slot->tally + 8), "a page that does not exist");
        DAMAGE(b, slot->shard, 1, "a page that does not exist");
        DAMAGE(b, slot->shard, 77, "a page that does not exist");
        DAMAGE(b, slot->offset, slot->offset + 256, "range disagree");
        DAMAGE(b, slot->offset, 4096, "reaches beyond its page");
        DAMAGE(b, slot->size, slot->size - 256, "range disagree");
        DAMAGE(b, slot->range.id, other->range.id, "range disagree");
        DAMAGE(b, slot->range.id, 0, "range disagree");
        DAMAGE(b, slot->left_padding, 1, "range disagree");
        DAMAGE(b, slot->requested, 299, "sum of the allocations");
    }
}

CASE(dedicated_allocations_with_a_wrong_place)
{
    qi_slot *slot = qi_memory_slot(b->memory, b->dedicated);
    DAMAGE(b, slot->offset, 256, "reaches beyond its page"); /* 300 bytes in a page of 512 */
    DAMAGE(b, slot->size, 513, "reaches beyond its page");
    DAMAGE(b, slot->size, 299, "sum of the allocations");
    DAMAGE(b, slot->tally, qi_page_at(&b->memory->pages, 0)->tally, "range disagree");
    DAMAGE(b, slot->range.id, 1, "a page that does not exist");
    DAMAGE(b, slot->shard, 1, "a page that does not exist");
    DAMAGE(b, slot->tally->skipped, 256, "a page and its region disagree");
    DAMAGE(b, slot->tally->page, NULL, "a page and its region disagree");
    DAMAGE(b, slot->tally->page, qi_page_at(&b->memory->pages, 0), "a page and its region");
}

CASE(an_end_that_overflows)
{
    qi_slot *slot = qi_memory_slot(b->memory, b->dedicated);
    uint64_t size = slot->size;
    slot->offset = UINT64_MAX - 10; /* offset + size is 289 */
    expect_damaged(b->memory, "reaches beyond its page");
    slot->offset = 0;
    slot->size = size;
}

CASE(slot_states_that_lost_an_allocation)
{
    qi_atomic_u64 *word = qi_table_get(&b->memory->slots.states, b->shared[1]);
    uint64_t kept = *word;
    *word &= ~(UINT64_C(3) << 36); /* free, with all other fields unchanged */
    expect_damaged(b->memory, "sum of the allocations");
    *word = kept;
}

CASE(a_space_with_wrong_sums)
{
    quire_space *space = b->memory->shards[0]->space;
    DAMAGE(b, space->live_bytes, space->live_bytes + 256, "space");
    DAMAGE(b, space->live_count, space->live_count + 1, "space");
    DAMAGE(b, space->region_bytes, space->region_bytes - 256, "space");
}

CASE(an_allocated_range_without_an_allocation)
{
    quire_placement lost;
    CHECK_OK(quire_space_allocate(b->memory->shards[0]->space, 256, 1, b->shared[0], &lost));
    quire_result result = quire_memory_check(b->memory);
    CHECK_OK(quire_space_free(b->memory->shards[0]->space, lost.range));
    CHECK_EQ(result, QUIRE_ERROR_CORRUPTED);
}

CASE(a_region_that_leads_to_another_page)
{
    qi_tally *tally = qi_shard_tally(b->memory->shards[0], 0);
    DAMAGE(b, tally->page, qi_page_at(&b->memory->pages, 2), "");
}

#define SMALL(name) UNIT_ON(stats_check, name, fixture, f, make_small(f), fixture_end)

/* Page 0 is shared and in use, page 1 shared and empty. */
static void make_small(fixture *f)
{
    fixture_make(f, &(quire_memory_options){.name = "weights", .pages = {.page_size = 4096}});
    ALLOCATE(f, .size = 300);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 4096)));
    CHECK_OK(quire_memory_check(f->memory));
}

SMALL(an_empty_page_that_lost_its_region)
{
    qi_page *empty = qi_page_at(&f->memory->pages, 1);
    const char *says = "memory 'weights': a page and its region disagree (1)";
    DAMAGE(f, empty->tally, &empty->own, says);
    DAMAGE(f, empty->tally, NULL, says);
    DAMAGE(f, empty->region, 0, says);
    DAMAGE(f, empty->region, 7, says);
    DAMAGE(f, empty->region, QI_SLOT_COUNT - 1, says); /* it has no record */
    DAMAGE(f, empty->region, UINT32_MAX, says);
    DAMAGE(f, empty->dedicated, true, says);
}

SMALL(a_page_in_use_that_lost_its_region)
{
    qi_page *page = qi_page_at(&f->memory->pages, 0);
    DAMAGE(f, page->tally, &page->own, "an allocation names a page that does not exist (0)");
}

/* All sums are correct: only the range shows its owner. */
SMALL(two_allocations_with_one_range)
{
    uint32_t first = slot_of(ALLOCATE(f, .size = 256)), second = slot_of(ALLOCATE(f, .size = 256));
    qi_slot *record = qi_memory_slot(f->memory, first);
    const qi_slot kept = *record, *other = qi_memory_slot(f->memory, second);
    record->offset = other->offset;
    record->range = other->range;
    expect_damaged(f->memory, "an allocation and its range disagree");
    *record = kept;
    CHECK_OK(quire_memory_check(f->memory));
}

SMALL(an_empty_page_in_a_wrong_phase)
{
    qi_page *empty = qi_page_at(&f->memory->pages, 1);
    DAMAGE(f, empty->phase, QI_PAGE_NONE, "the count of page numbers is not that of the pages (1)");
    DAMAGE(f, empty->phase, QI_PAGE_MAKING, "the page statistics are not the sum of the pages (1)");
    DAMAGE(f, empty->phase, QI_PAGE_LEAVING,
           "the page statistics are not the sum of the pages (1)");
    DAMAGE(f, empty->phase, QI_PAGE_MOVING, "the page statistics are not the sum of the pages (2)");
    DAMAGE(f, empty->native.bytes, 8192, "the page statistics are not the sum of the pages (2)");
}

SMALL(an_empty_page_missing_from_the_list_of_empty_pages)
{
    qi_tally *tally = qi_page_at(&f->memory->pages, 1)->tally;
    DAMAGE(f, tally->live_bytes, 1, "the pages' live statistics are not the sum");
    DAMAGE(f, tally->allocation_count, 1, "the pages' live statistics are not the sum");
}

SMALL(counts_of_slots_and_numbers)
{
    qi_slot_queue *queue = &f->memory->shards[0]->queue;
    qi_pages *pages = &f->memory->pages;
    const char *slots = "the count of slots is not that of the allocations (1)";
    const char *numbers = "the count of page numbers is not that of the pages (2)";
    DAMAGE(f, queue->used, 0, slots);
    DAMAGE(f, queue->used, 2, slots);
    DAMAGE(f, pages->in_use, 1, numbers);
    DAMAGE(f, pages->in_use, 3, numbers);
}

SMALL(allocated_ranges_without_an_allocation)
{
    quire_space *space = f->memory->shards[0]->space;
    quire_placement lost;
    CHECK_OK(quire_space_allocate(space, 256, 1, 0, &lost));
    expect_damaged(f->memory, "the space holds ranges that no allocation has (1)");
    CHECK_OK(quire_space_free(space, lost.range));
}

SMALL(an_account_that_holds_less_than_the_pages)
{
    const char *says = "the memory's account is less than its pages (8192)";
    DAMAGE(f, f->memory->account.used, 8191, says);
    DAMAGE(f, f->memory->account.used, 0, says);
}

UNIT_MEMORY(stats_check, records_of_another_shard, f, .name = "weights", .shards = 2,
            .pages = {.page_size = 4096})
{
    uint32_t here = slot_of(ALLOCATE(f, .size = 300));
    uint32_t there = slot_of(ALLOCATE_ELSEWHERE(f, .size = 500));
    qi_slot *record = qi_memory_slot(f->memory, here);
    qi_page *page = record->tally->page;
    const qi_slot *other = qi_memory_slot(f->memory, there);
    const char *says = "an allocation names a page that does not exist";
    CHECK(record->shard != other->shard);
    DAMAGE(f, record->shard, other->shard, says);
    DAMAGE(f, record->shard, 2, says);
    DAMAGE(f, record->tally, other->tally, says);
    DAMAGE(f, page->shard, f->memory->shards[other->shard], says);
    for (int i = 0; i < 2; i++) {
        qi_shard *shard = f->memory->shards[i];
        DAMAGE(f, shard->stats.live_bytes, shard->stats.live_bytes + 1,
               "the live statistics are not");
        DAMAGE(f, shard->empty_pages.bytes, 1, "the page statistics are not the sum");
        DAMAGE(f, shard->queue.used, shard->queue.used + 1, "the count of slots");
        DAMAGE(f, shard->space->live_bytes, shard->space->live_bytes + 1, "space");
    }
}

SMALL(accounts_of_names)
{
    CHECK_OK(quire_memory_set_name_limit(f->memory, "layer", 4096));
    CHECK_OK(quire_memory_set_name_limit(f->memory, "layer/1", 4096));
    quire_allocation named = ALLOCATE(f, .size = 300, .name = "layer/1/bias");
    qi_slot *record = qi_memory_slot(f->memory, slot_of(named));
    const char *says = "memory 'weights': the accounts of names are not the sums";
    int limits = 0;
    for (qi_name_limit *limit = f->memory->names.first; limit; limit = limit->next, limits++) {
        DAMAGE(f, limit->held.used, limit->held.used + 1, says);
        DAMAGE(f, limit->requested, limit->requested - 1, says);
        DAMAGE(f, limit->count, 0, says);
    }
    CHECK_EQ(limits, 2);
    char *name = record->meta->name;
    name[0] = 'L';
    expect_damaged(f->memory, says);
    name[0] = 'l';
    CHECK_OK(quire_free(f->memory, named));
    DAMAGE(f, f->memory->names.first->count, 1, says);
}
