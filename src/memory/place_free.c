/*
 * place_free.c - giving back what place.c has placed (see place.h): in the shard that it lies in,
 * or through that shard's inbox.
 */
#include "src/base/result.h"
#include "src/memory/extra.h"
#include "src/memory/place.h"
#include "src/memory/put.h"

/* Nobody changes the extra part any more, but a walk may be reading the name. */
static qi_extra *detach_extra(qi_shard *shard, qi_slot *record)
{
    qi_extra *extra = record->extra;
    qi_lock_acquire(&shard->lock);
    qi_ignore(
        qi_names_replace(&shard->memory->names, extra->name, NULL, record)); /* takes nothing */
    record->extra = NULL;
    qi_lock_release(&shard->lock);
    return extra;
}

/* So many frees wait in an inbox at most: then whoever brings one more takes the trouble. */
enum { MOST_WAITING = 1024 };

/*
 * An object's end takes long enough for its range's record to come; it is asked for with the lock,
 * for records move as they become more.
 */
void qi_place_end_object(quire_memory *memory, qi_slot *record)
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
        qi_place_end_object(memory, record);
    if (record->extra)
        qi_extra_release(memory, detach_extra(qi_shard_of(memory, record), record));
}

void qi_place_drop_name(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    if (record->extra && !record->object)
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

void qi_place_give_back(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = qi_shard_of(memory, record);
    if (record->object || record->extra)
        end_rest(memory, record);
    bool is_mine = shard == qi_shard_mine(memory);
    if (!is_mine && qi_inbox_put(&shard->inbox, &memory->slots, slot) < MOST_WAITING)
        return;
    qi_lock_acquire(&shard->lock);
    if (is_mine && qi_put_back(shard, record, slot))
        shard->emptied = true;
    if (!is_mine || qi_shard_is_behind(shard))
        catch_up(shard);
    else
        qi_lock_release(&shard->lock);
}

/* In the slot's shard, whoever's it is: nothing is left to its inbox. */
void qi_place_undo(quire_memory *memory, uint32_t slot)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = qi_shard_of(memory, record);
    qi_tally *tally = record->tally;
    if (record->object)
        record->native = 0; /* its maker's to end */
    if (record->object || record->extra)
        end_rest(memory, record);
    qi_lock_acquire(&shard->lock);
    const quire_memory_stats before = shard->stats;
    uint64_t page_peak = tally->peak_live_bytes;
    shard->emptied |= qi_put_back(shard, record, slot);
    tally->peak_live_bytes = page_peak;
    shard->stats.peak_live_bytes = before.peak_live_bytes;
    shard->stats.peak_requested_bytes = before.peak_requested_bytes;
    shard->stats.peak_allocation_count = before.peak_allocation_count;
    shard->stats.allocations--;
    shard->stats.frees--;
    catch_up(shard);
}
