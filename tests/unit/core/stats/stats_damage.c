/*
 * stats_damage.c - further damage that quire_memory_check finds: empty pages, shards, accounts and
 * names. Each record is changed by hand, named, and put back.
 */
#include "tests/support/fixture.h"

#include "src/core/state/memory.h"
#include "src/space/space.h"

static uint32_t slot_of(quire_allocation allocation)
{
    return qi_handle_slot(allocation.id);
}

static void expect_damaged(quire_memory *memory, const char *says)
{
    CHECK_FAILS(quire_memory_check(memory), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), says);
}

/* The check reports the changed field, and succeeds after it is restored. */
#define DAMAGE(f, field, value, says)                                                              \
    do {                                                                                           \
        __typeof__(field) kept_ = (field);                                                         \
        (field) = (value);                                                                         \
        expect_damaged((f)->memory, (says));                                                       \
        (field) = kept_;                                                                           \
        CHECK_OK(quire_memory_check((f)->memory));                                                 \
    } while (0)

#define CASE(name) UNIT_ON(stats_damage, name, fixture, f, make(f), fixture_end)

/* Page 0 is shared and in use, page 1 shared and empty. */
static void make(fixture *f)
{
    fixture_make(f, &(quire_memory_options){.name = "weights", .pages = {.page_size = 4096}});
    ALLOCATE(f, .size = 300);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 4096)));
    CHECK_OK(quire_memory_check(f->memory));
}

CASE(an_empty_page_that_lost_its_region)
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

CASE(a_page_in_use_that_lost_its_region)
{
    qi_page *page = qi_page_at(&f->memory->pages, 0);
    DAMAGE(f, page->tally, &page->own, "an allocation names a page that does not exist (0)");
}

/* All sums are correct: only the range shows its owner. */
CASE(two_allocations_with_one_range)
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

CASE(an_empty_page_in_a_wrong_phase)
{
    qi_page *empty = qi_page_at(&f->memory->pages, 1);
    DAMAGE(f, empty->phase, QI_PAGE_NONE, "the count of page numbers is not that of the pages (1)");
    DAMAGE(f, empty->phase, QI_PAGE_MAKING, "the page statistics are not the sum of the pages (1)");
    DAMAGE(f, empty->phase, QI_PAGE_LEAVING,
           "the page statistics are not the sum of the pages (1)");
    DAMAGE(f, empty->phase, QI_PAGE_MOVING, "the page statistics are not the sum of the pages (2)");
    DAMAGE(f, empty->native.size, 8192, "the page statistics are not the sum of the pages (2)");
}

CASE(an_empty_page_missing_from_the_list_of_empty_pages)
{
    qi_tally *tally = qi_page_at(&f->memory->pages, 1)->tally;
    DAMAGE(f, tally->live_bytes, 1, "the pages' live statistics are not the sum");
    DAMAGE(f, tally->allocation_count, 1, "the pages' live statistics are not the sum");
}

CASE(counts_of_slots_and_numbers)
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

CASE(allocated_ranges_without_an_allocation)
{
    quire_space *space = f->memory->shards[0]->space;
    quire_placement lost;
    CHECK_OK(quire_space_allocate(space, 256, 1, 0, &lost));
    expect_damaged(f->memory, "the space holds ranges that no allocation has (1)");
    CHECK_OK(quire_space_free(space, lost.range));
}

CASE(an_account_that_holds_less_than_the_pages)
{
    const char *says = "the memory's account is less than its pages (8192)";
    DAMAGE(f, f->memory->account.used, 8191, says);
    DAMAGE(f, f->memory->account.used, 0, says);
}

/* ---- shards --------------------------------------------------------------------------------- */

UNIT_MEMORY(stats_damage, records_of_another_shard, f, .name = "weights", .shards = 2,
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

/* ---- names ---------------------------------------------------------------------------------- */

CASE(accounts_of_names)
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
