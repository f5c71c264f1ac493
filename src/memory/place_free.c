/*
 * place_free.c - giving back what place.c has placed (see place.h): in the shard that it lies in,
 * or through that shard's inbox.
 */
#include "src/base/result.h"
#include "src/memory/place.h"
#include "src/space/fit.h"

static void count_out(qi_shard *shard, qi_page *page, const qi_slot *slot)
{
    quire_memory_stats *stats = &shard->stats;
    uint64_t held = slot->size + slot->left_padding;
    stats->live_bytes -= held;
    stats->requested_bytes -= slot->requested;
    stats->allocation_count--;
    stats->frees++;
    qi_page_remove_live(page, held);
}

/* Nobody changes the extra part any more, but a walk may be reading the name. */
static qi_extra *detach_extra(qi_shard *shard, qi_slot *record)
{
    qi_extra *extra = record->extra;
    if (!extra)
        return NULL;
    qi_lock_acquire(&shard->lock);
    record->extra = NULL;
    qi_lock_release(&shard->lock);
    return extra;
}

bool qi_place_free(qi_shard *shard, uint32_t slot)
{
    quire_memory *memory = shard->memory;
    const qi_slot *record = qi_memory_slot(memory, slot);
    qi_page *page = qi_memory_page(memory, slot);
    if (!record->dedicated)
        qi_ignore(quire_space_free(shard->space, record->range)); /* ours, and live until here */
    count_out(shard, page, record);
    qi_slot_give(&memory->slots, &shard->queue, slot);
    return !page->allocation_count;
}

/* So many frees wait in an inbox at most: then whoever brings one more takes the trouble. */
enum { MOST_WAITING = 1024 };

void qi_place_release(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = &memory->shards[record->shard];
    qi_extra *extra = detach_extra(shard, record);
    if (extra && extra->native)
        qi_device_object_destroy(memory->device, &memory->calls, extra->object, extra->native);
    qi_extra_release(memory, extra);
    bool is_mine = shard == qi_shard_mine(memory);
    if (!is_mine && qi_inbox_put(&shard->inbox, &memory->slots, slot) < MOST_WAITING)
        return;
    qi_lock_acquire(&shard->lock);
    bool emptied = is_mine ? qi_place_free(shard, slot) : qi_shard_drain(shard);
    qi_page *leaving = emptied ? qi_empties_apply(shard, NULL) : NULL;
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(memory, leaving);
}

void qi_place_undo(quire_memory *memory, uint32_t slot)
{
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_place_release(memory, slot);
    qi_lock_acquire(&shard->lock);
    shard->stats.allocations--;
    shard->stats.frees--;
    qi_lock_release(&shard->lock);
}
