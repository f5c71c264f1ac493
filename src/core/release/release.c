/*
 * place_free.c - giving back what place.c has placed (see place.h): in the shard that it lies in,
 * or through that shard's inbox.
 */
#include "src/base/result.h"
#include "src/core/slot/slot_meta.h"
#include "src/core/allocate/ladder.h"
#include "src/core/page/range_take.h"

/* Nobody changes the extra part any more, but a walk may be reading the name. */
static qi_slot_meta *detach_meta(qi_shard *shard, qi_slot *record)
{
    qi_slot_meta *meta = record->meta;
    qi_lock_acquire(&shard->lock);
    qi_ignore(
        qi_names_replace(&shard->memory->names, meta->name, NULL, record)); /* takes nothing */
    record->meta = NULL;
    qi_lock_release(&shard->lock);
    return meta;
}

/* So many frees wait in an inbox at most: then whoever brings one more takes the trouble. */
enum { MAX_WAITING = 1024 };

/*
 * An object's end takes long enough for its range's record to come; it is asked for with the lock,
 * for records move as they become more.
 */
void qi_native_release(quire_memory *memory, qi_slot *record)
{
    uint64_t native = qi_slot_native(record);
    if (!native || record->borrowed)
        return;
    qi_shard *shard = qi_shard_of(memory, record);
    qi_lock_acquire(&shard->lock);
    qi_space_fetch(shard->space, record->range);
    qi_lock_release(&shard->lock);
    record->native = 0;
    qi_device_object_destroy(memory->device, &memory->calls, record->object, native);
}

/* What there is besides the range. */
static void end_rest(quire_memory *memory, qi_slot *record)
{
    if (record->object)
        qi_native_release(memory, record);
    if (record->meta)
        qi_slot_meta_release(memory, detach_meta(qi_shard_of(memory, record), record));
}

void qi_release_name(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    if (record->meta && !record->object)
        end_rest(memory, record);
}

/* With the lock, given up for good: what others left to do, and what the policy says then. */
static void catch_up(qi_shard *shard)
{
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(shard->memory, leaving);
}

void qi_release(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = qi_shard_of(memory, record);
    if (record->object || record->meta)
        end_rest(memory, record);
    bool is_mine = shard == qi_shard_mine(memory);
    if (!is_mine && qi_inbox_put(&shard->inbox, &memory->slots, slot) < MAX_WAITING)
        return;
    qi_lock_acquire(&shard->lock);
    if (is_mine && qi_range_give(shard, record, slot))
        shard->emptied = true;
    if (!is_mine || qi_shard_is_behind(shard))
        catch_up(shard);
    else
        qi_lock_release(&shard->lock);
}

/* In the slot's shard, whoever's it is: nothing is left to its inbox. */
void qi_release_unpublished(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = qi_shard_of(memory, record);
    qi_tally *tally = record->tally;
    if (record->object)
        record->native = 0; /* its maker's to end */
    if (record->object || record->meta)
        end_rest(memory, record);
    qi_lock_acquire(&shard->lock);
    const quire_memory_stats before = shard->stats;
    uint64_t page_peak = tally->peak_live_bytes;
    shard->emptied |= qi_range_give(shard, record, slot);
    tally->peak_live_bytes = page_peak;
    shard->stats.peak_live_bytes = before.peak_live_bytes;
    shard->stats.peak_requested_bytes = before.peak_requested_bytes;
    shard->stats.peak_allocation_count = before.peak_allocation_count;
    shard->stats.allocations--;
    shard->stats.frees--;
    catch_up(shard);
}
