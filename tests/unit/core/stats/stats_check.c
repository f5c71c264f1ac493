/*
 * stats_check.c - quire_memory_check finds damage: each record is changed by hand, named, and put
 * back.
 */
#include "tests/support/fake.h"
#include "tests/support/unit.h"

#include "quire/quire.h"
#include "src/core/state/memory.h"
#include "src/space/space.h"

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

static void expect_damaged(const bench *b, const char *says)
{
    CHECK_FAILS(quire_memory_check(b->memory), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), says);
}

#define CASE(name) UNIT_ON(stats_check, name, bench, b, make(b), end)

/* The check reports the changed field, and succeeds after it is restored. */
#define DAMAGE(b, field, value, says)                                                              \
    do {                                                                                           \
        __typeof__(field) kept_ = (field);                                                         \
        (field) = (value);                                                                         \
        expect_damaged((b), (says));                                                               \
        (field) = kept_;                                                                           \
        CHECK_OK(quire_memory_check((b)->memory));                                                 \
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
    DAMAGE(b, own->native.size, 299, "an allocation reaches beyond its page");
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
    expect_damaged(b, "reaches beyond its page");
    slot->offset = 0;
    slot->size = size;
}

CASE(slot_states_that_lost_an_allocation)
{
    qi_atomic_u64 *word = qi_table_get(&b->memory->slots.states, b->shared[1]);
    uint64_t kept = *word;
    *word &= ~(UINT64_C(3) << 36); /* free, with all other fields unchanged */
    expect_damaged(b, "sum of the allocations");
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
