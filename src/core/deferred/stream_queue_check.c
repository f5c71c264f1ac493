/*
 * lane_check.c - whether the lanes of a shard agree with themselves, its table and its figures.
 *
 * Damaged links may lead in circles: no more waits are looked at than the figures count.
 */
#include "src/core/deferred/stream_queue.h"

/* What was seen so far of a shard. */
typedef struct review {
    const qi_shard *shard;
    uint64_t count, bytes; /* of waits */
    uint64_t binned;       /* of the lane's waits that say that they lie in a bin */
} review;

/* What holds for a wait wherever it lies. */
static bool wait_agrees(review *r, const qi_stream_queue *queue, const qi_wait *wait)
{
    const quire_memory *memory = r->shard->memory;
    if (++r->count > r->shard->stats.deferred_count || wait->stream != queue->stream ||
        wait->slot >= qi_slots_top(&memory->slots) ||
        qi_slot_phase(&memory->slots, wait->slot) != QI_PHASE_PRIVATE)
        return false;
    r->bytes += qi_stream_queue_held_by(qi_memory_slot(memory, wait->slot));
    r->binned += wait->bin != 0;
    return true;
}

static bool list_agrees(review *r, const qi_stream_queue *queue, const qi_wait_list *list)
{
    const qi_wait *previous = NULL;
    for (const qi_wait *wait = list->first; wait; previous = wait, wait = wait->next)
        if (!wait_agrees(r, queue, wait) || wait->previous != previous || wait->order ||
            !wait->value != (list == &queue->fresh) || (previous && previous->value > wait->value))
            return false;
    return list->last == previous;
}

static bool heap_agrees(review *r, const qi_stream_queue *queue)
{
    const qi_wait *wait = queue->heap.first;
    if (wait && wait->above)
        return false;
    for (; wait; wait = qi_queue_heap_next(wait))
        if (!wait_agrees(r, queue, wait) || !wait->value || !qi_queue_heap_agrees_at(wait))
            return false;
    return true;
}

static bool bins_agree(const review *r, const qi_stream_queue *queue)
{
    const quire_memory *memory = r->shard->memory;
    uint64_t count = 0;
    for (uint32_t bin = 0; bin < QI_STREAM_QUEUE_BINS; bin++) {
        const qi_wait *previous = NULL;
        for (const qi_wait *wait = queue->bins[bin]; wait; previous = wait, wait = wait->bin_next)
            if (++count > r->binned || wait->bin != bin + 1 || wait->bin_previous != previous ||
                wait->stream != queue->stream ||
                qi_stream_queue_bin_of(qi_memory_slot(memory, wait->slot)->size) != bin)
                return false;
    }
    return count == r->binned;
}

static bool lane_agrees(review *r, const qi_stream_queue *queue)
{
    r->binned = 0;
    return queue->shard == r->shard && list_agrees(r, queue, &queue->marked) &&
           list_agrees(r, queue, &queue->fresh) && heap_agrees(r, queue) && bins_agree(r, queue);
}

/* Whether the table leads to a lane. */
static bool is_in_table(const qi_shard *shard, const qi_stream_queue *queue)
{
    uint32_t count = 0;
    const qi_stream_queue *found = *qi_stream_queue_bucket(shard, queue->stream);
    while (found && found != queue && ++count <= shard->queue_count)
        found = found->next_in_bucket;
    return found == queue;
}

bool qi_stream_queues_agree(const qi_shard *shard)
{
    review r = {.shard = shard};
    uint32_t queues = 0;
    bool knows_recent = !shard->recent_stream;
    for (const qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
        if (++queues > shard->queue_count || !is_in_table(shard, queue) || !lane_agrees(&r, queue))
            return false;
        knows_recent |= queue == shard->recent_queue && queue->stream == shard->recent_stream;
    }
    return knows_recent && queues == shard->queue_count && r.count == shard->stats.deferred_count &&
           r.bytes == shard->stats.deferred_bytes;
}
