/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shard_growth.c - a wait for a shard's lock weighs as much as the allocations that others made
 * meanwhile; much weight in a short time doubles the number of shards. Also creates and releases
 * shards.
 */
#include "src/core/allocate/shard_growth.h"

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/page/range.h"
#include "src/core/state/event.h"
#include "src/core/state/peaks.h"
#include "src/space/space.h"

/* ---- creating and releasing --------------------------------------------------------------- */

/* On success the shard is in the memory's list, but not counted yet. */
static quire_result create_shard(quire_memory *memory, uint32_t index)
{
    qi_shard *shard = qi_host_allocate(&memory->host, 1, sizeof *shard);
    if (!shard)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a memory's shards");
    quire_result result = qi_space_create(&memory->space, &shard->space);
    if (result) {
        qi_host_release(&memory->host, shard, 1, sizeof *shard);
        return result;
    }
    shard->index = index;
    shard->work = memory->is_elastic ? QI_WORK_AGING : 0; /* its chunks age from the start */
    shard->memory = memory;
    qi_lock_init(&shard->lock, "shard", (qi_lock_rank)(QI_RANK_SHARD + index));
    qi_slot_queue_init(&shard->queue);
    qi_inbox_init(&shard->inbox);
    qi_table_init(&shard->by_region, sizeof(qi_tally));
    qi_table_init(&shard->waits, sizeof(qi_wait));
    qi_stream_queues_init(shard);
    qi_nowhere_init(shard);
    memory->shards[index] = shard;
    return QUIRE_SUCCESS;
}

static void release_shard(qi_shard *shard)
{
    qi_host *host = &shard->memory->host;
    qi_stream_queues_finish(shard);
    qi_space_destroy(shard->space);
    qi_table_finish(&shard->by_region, host);
    qi_host_release(host, shard, 1, sizeof *shard);
}

quire_result qi_shards_create(quire_memory *memory, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        quire_result result = create_shard(memory, i);
        if (result)
            return result;
        qi_atomic_store_release_u32(&memory->shard_count, i + 1);
    }
    if (count > 1)
        qi_peaks_add_shards(memory, 0);
    return QUIRE_SUCCESS;
}

void qi_shards_destroy(quire_memory *memory)
{
    for (uint32_t i = 0; i < qi_shard_count(memory); i++)
        release_shard(memory->shards[i]);
}

/* ---- contention --------------------------------------------------------------------------- */

/*
 * A wait weighs as much as the allocations that others made in the meantime, at most 64. The memory
 * gets more shards when the waits in a shard weigh 256 within 10 milliseconds. Two threads that
 * allocate all the time reach that in less than a millisecond if the lock passes from one to the
 * other, and after four sleeps of a millisecond if one of them keeps it. Threads that meet now and
 * then never reach it.
 */
enum { MAX_WEIGHT = 64, HIGH_WEIGHT = 256, WITHIN_NANOSECONDS = 10000000 };

/* Requires the lock. Counts a wait for `others` allocations. */
static void count_wait(qi_shard *shard, uint64_t others)
{
    quire_memory *memory = shard->memory;
    qi_contention *c = &shard->contention;
    if (qi_shard_count(memory) >= memory->max_shards)
        return;
    uint64_t now = qi_clock();
    if (now - c->since > WITHIN_NANOSECONDS)
        *c = (qi_contention){.since = now};
    c->weight += others < MAX_WEIGHT ? (uint32_t)others : MAX_WEIGHT;
    if (c->weight < HIGH_WEIGHT)
        return;
    *c = (qi_contention){.since = now, .is_high = true};
    qi_atomic_store_release_u32(&memory->has_left_work, 1);
}

void qi_shard_enter_held(qi_shard *shard)
{
    uint64_t before = qi_atomic_load_u64(&shard->allocations);
    qi_lock_acquire(&shard->lock);
    uint64_t now = qi_atomic_load_u64(&shard->allocations);
    if (now > before) /* less if one was taken back */
        count_wait(shard, now - before);
}

/* ---- adding shards ------------------------------------------------------------------------ */

/* Requires the locks of all shards. Whether contention is high in one; forgets that. */
static bool needs_more(quire_memory *memory)
{
    bool needs = false;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        needs |= memory->shards[i]->contention.is_high;
        memory->shards[i]->contention = (qi_contention){.since = 0};
    }
    return needs && qi_shard_count(memory) < memory->max_shards &&
           !qi_atomic_load_u32(&memory->is_ending);
}

/*
 * Requires the locks of all shards, and returns with those of the new ones too. Doubles the number
 * of shards, or makes as many as host memory allows.
 */
static void add_shards(quire_memory *memory)
{
    uint32_t old = qi_shard_count(memory), count = old;
    uint32_t wanted = 2 * old < memory->max_shards ? 2 * old : memory->max_shards;
    qi_error error;
    qi_error_save(&error);
    while (count < wanted && !create_shard(memory, count)) {
        qi_lock_acquire(&memory->shards[count]->lock);
        count++;
    }
    qi_error_restore(&error);
    if (count == old)
        return;
    qi_atomic_store_release_u32(&memory->shard_count, count);
    qi_peaks_add_shards(memory, old);
}

static void report(quire_memory *memory, uint32_t count)
{
    qi_event_shards(memory, count);
    qi_log(&memory->device->log, QUIRE_LOG_INFO,
           "memory '%s': %u shards, because allocating calls wait for each other", memory->name,
           count);
}

void qi_memory_do_due(quire_memory *memory)
{
    qi_shards_acquire(memory);
    uint32_t old = qi_shard_count(memory);
    qi_atomic_store_release_u32(&memory->has_left_work, 0);
    if (old > 1)
        qi_peaks_settle(memory);
    if (needs_more(memory))
        add_shards(memory);
    uint32_t count = qi_shard_count(memory);
    qi_shards_release(memory);
    if (count != old)
        report(memory, count - memory->first_shard);
}
