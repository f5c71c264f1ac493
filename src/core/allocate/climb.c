/*
 * climb.c - places a request in a page, and moves a climb between shards.
 */
#include "src/core/allocate/climb.h"

#include "src/base/bits.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"

/*
 * Moves a placed range to the next multiple of the request's unit. The range has the bytes for it,
 * because offsets are multiples of the alignment, which divides the unit.
 */
static void move_to_unit(const qi_climb *c)
{
    qi_slot *record = qi_memory_slot(c->shard->memory, c->slot);
    uint64_t over = record->offset % c->request->unit;
    if (!over)
        return;
    uint64_t bytes = c->request->unit - over;
    record->offset += bytes;
    record->left_padding += (uint32_t)bytes;
    if (!qi_checked_moved(record, bytes))
        record->size -= bytes;
}

/* A checked build divides the range into the red zones and the caller's bytes. */
static void finish(const qi_climb *c)
{
    qi_checked_mark(c->shard->memory, c->slot, c->request, c->range.alignment);
    if (c->request->unit)
        move_to_unit(c);
}

quire_result qi_climb_place(qi_climb *c, uint32_t how)
{
    how |= c->request->upper ? QI_UPPER : 0;
    quire_result result = qi_range_take(c->shard, &c->range, how, &c->slot);
    if (!result)
        finish(c);
    return result;
}

bool qi_climb_is_hopeless(const qi_climb *c)
{
    const quire_space *space = c->shard->space;
    uint64_t alignment = c->range.alignment + !c->range.alignment;
    return alignment <= space->max_alignment &&
           qi_refusals_cover(&space->refusals, c->range.size, alignment, false);
}

quire_result qi_climb_place_in_made(qi_climb *c)
{
    quire_result result = qi_climb_place(c, QI_TRY);
    return result == QUIRE_ERROR_NO_SPACE ? qi_climb_place(c, QI_EXHAUSTIVE) : result;
}

/*
 * A dedicated page has no region and no range: its record starts at the page's first byte, aligned
 * by padding. A tied page has exactly the object's size, without room for padding.
 */
quire_result qi_climb_place_dedicated(qi_climb *c, qi_page *page)
{
    quire_memory *memory = c->shard->memory;
    quire_result result = qi_slot_take(&memory->slots, &c->shard->queue, &memory->host, &c->slot);
    if (result)
        return result;
    uint64_t padding = page->tied ? 0 : qi_padding(page->native.native.address, c->range.alignment);
    qi_slot *record = qi_memory_slot(memory, c->slot);
    *record = (qi_slot){
        .offset = padding,
        .size = c->range.size,
        .requested = c->range.requested,
        .user_data = c->range.user_data,
        .meta = c->range.meta,
        .tally = page->tally,
        .left_padding = (uint32_t)padding,
        .shard = (uint8_t)c->shard->index,
        .object = (uint8_t)c->range.object,
        .extras = c->range.extras,
    };
    page->slot = c->slot;
    qi_range_count_in(c->shard, record);
    finish(c);
    return QUIRE_SUCCESS;
}

void qi_climb_give_back(qi_climb *c)
{
    qi_page *leaving = c->leaving;
    if (!leaving)
        return;
    c->leaving = NULL;
    qi_lock_release(&c->shard->lock);
    qi_pages_give_back(c->shard->memory, leaving, &c->progress.events);
    qi_lock_acquire(&c->shard->lock);
}

/* Never holds two shard locks at once. What other threads left to the new shard is done first. */
void qi_climb_go_to(qi_climb *c, qi_shard *shard)
{
    if (shard == c->shard)
        return;
    qi_lock_release(&c->shard->lock);
    c->shard = shard;
    qi_lock_acquire(&shard->lock);
    c->leaving = qi_shard_catch_up(shard, c->leaving);
}

void qi_climb_keep_error(qi_climb *c)
{
    if (!c->has_before)
        qi_error_save(&c->before);
    c->has_before = true;
}
