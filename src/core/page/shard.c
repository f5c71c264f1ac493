/*
 * shard.c - see shard.h.
 */
#include "src/core/state/shard.h"

#include "src/base/result.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/state/memory.h"
#include "src/core/page/range_take.h"

quire_result qi_shard_init(qi_shard *shard, quire_memory *memory, uint32_t index,
                           const quire_space_options *options)
{
    shard->index = index;
    shard->memory = memory;
    qi_lock_init(&shard->lock, "shard", (qi_lock_rank)(QI_RANK_SHARD + index));
    qi_slot_queue_init(&shard->queue);
    qi_inbox_init(&shard->inbox);
    qi_table_init(&shard->by_region, sizeof(qi_tally));
    qi_table_init(&shard->waits, sizeof(qi_wait));
    qi_stream_queues_init(shard);
    return qi_space_create(options, &shard->space);
}

void qi_shard_finish(qi_shard *shard)
{
    qi_stream_queues_finish(shard);
    qi_space_destroy(shard->space);
    qi_table_finish(&shard->by_region, &shard->memory->host);
}

void qi_shards_acquire(quire_memory *memory)
{
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        qi_lock_acquire(&memory->shards[i].lock);
        qi_shard_drain(&memory->shards[i]);
    }
}

void qi_shards_release(quire_memory *memory)
{
    for (uint32_t i = memory->shard_count; i-- > 0;)
        qi_lock_release(&memory->shards[i].lock);
}

static void drain(qi_shard *shard)
{
    const qi_slots *slots = &shard->memory->slots;
    uint32_t slot = 0, next = 0;
    for (uint32_t left = qi_inbox_take(&shard->inbox, &slot); left; left--, slot = next) {
        next = qi_slot_next(slots, slot);
        qi_slot_fetch(slots, next); /* another thread wrote to it last: it is far away */
        shard->emptied |= qi_range_give(shard, qi_slot_at(slots, slot), slot);
    }
}

void qi_shard_drain(qi_shard *shard)
{
    shard->unlooked = 0;
    if (!qi_inbox_is_empty(&shard->inbox))
        drain(shard);
}

qi_page *qi_shard_catch_up(qi_shard *shard, qi_page *leaving)
{
    qi_shard_drain(shard);
    if (!shard->emptied)
        return leaving;
    return qi_empty_pages_apply(shard, QI_EMPTY_PAGES_PER_CALL, leaving);
}
