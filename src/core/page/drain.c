/*
 * drain.c - frees the slots in a shard's inbox, under the shard's lock.
 */
#include "src/core/page/drain.h"

#include "src/core/page/range_take.h"

static void drain(qi_shard *shard)
{
    const qi_slots *slots = &shard->memory->slots;
    uint32_t slot = 0, next = 0;
    for (uint32_t left = qi_inbox_take(&shard->inbox, &slot); left; left--, slot = next) {
        next = qi_slot_next(slots, slot);
        qi_slot_fetch(slots, next); /* another thread wrote it last: the line is in its cache */
        qi_shard_note_given(shard, qi_range_give(shard, qi_slot_at(slots, slot), slot));
    }
}

void qi_shard_drain(qi_shard *shard)
{
    if (!qi_inbox_is_empty(&shard->inbox))
        drain(shard);
}

void qi_shards_acquire(quire_memory *memory)
{
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        qi_lock_acquire(&memory->shards[i]->lock);
        qi_shard_drain(memory->shards[i]);
    }
}

void qi_shards_release(quire_memory *memory)
{
    for (uint32_t i = qi_shard_count(memory); i-- > 0;)
        qi_lock_release(&memory->shards[i]->lock);
}
