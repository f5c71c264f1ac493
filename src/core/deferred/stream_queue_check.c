/*
 * stream_queue_check.c - verifies that the stream queues of a shard agree with their waits, with
 * the hash table of the shard and with its statistics.
 *
 * Requires the shard's lock. Damaged links may form a cycle: the functions stop once they have seen
 * more waits than the shard counts.
 */
#include "src/core/deferred/stream_queue.h"

/* What has been seen of a shard so far. The review_ functions update it. */
typedef struct review {
    const qi_shard *shard;
    uint64_t waits;        /* all of them */
    uint64_t count, bytes; /* of waits with a slot */
    uint64_t binned;       /* waits of the current queue whose records name a bin */
} review;

/* Counts a wait and returns whether it is valid, in a list or in the heap. */
static bool review_wait(review *r, const qi_stream_queue *queue, const qi_wait *wait)
{
    const quire_memory *memory = r->shard->memory;
    if (++r->waits > qi_atomic_load_u64(&r->shard->deferred) || wait->stream != queue->stream)
        return false;
    if (qi_wait_is_of_object(wait))
        return !wait->bin && !wait->then && wait->native && wait->page->objects &&
               wait->page->shard == r->shard;
    if (wait->slot >= qi_slots_top(&memory->slots) ||
        qi_slot_phase(&memory->slots, wait->slot) != QI_PHASE_PRIVATE)
        return false;
    r->count++;
    r->bytes += qi_stream_queue_held_by(qi_memory_slot(memory, wait->slot));
    r->binned += wait->bin != 0;
    return true;
}

/* The list of fresh waits has no values. Values in the marked list do not decrease. */
static bool review_list(review *r, const qi_stream_queue *queue, const qi_wait_list *list)
{
    const qi_wait *previous = NULL;
    for (const qi_wait *wait = list->first; wait; previous = wait, wait = wait->next)
        if (!review_wait(r, queue, wait) || wait->previous != previous || wait->order ||
            !wait->value != (list == &queue->fresh) || (previous && previous->value > wait->value))
            return false;
    return list->last == previous;
}

static bool review_heap(review *r, const qi_stream_queue *queue)
{
    const qi_wait *wait = queue->heap.first;
    if (wait && wait->above)
        return false;
    for (; wait; wait = qi_queue_heap_next(wait))
        if (!review_wait(r, queue, wait) || !wait->value || !qi_queue_heap_agrees_at(wait))
            return false;
    return true;
}

/* Requires that the queue was reviewed. Every wait that names a bin must be in that bin. */
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

/* Own uses of live allocations, which are not counted. */
static bool own_uses_agree(const qi_stream_queue *queue)
{
    const qi_wait *previous = NULL;
    uint64_t left = queue->shard->wait_count;
    for (const qi_wait *use = queue->own.first; use; previous = use, use = use->next)
        if (!left-- || !use->is_own || use->stream != queue->stream || use->previous != previous)
            return false;
    return queue->own.last == previous;
}

static bool review_queue(review *r, const qi_stream_queue *queue)
{
    r->binned = 0;
    return queue->shard == r->shard && own_uses_agree(queue) &&
           review_list(r, queue, &queue->marked) && review_list(r, queue, &queue->fresh) &&
           review_heap(r, queue) && bins_agree(r, queue);
}

/* Whether a queue is in the bucket of its stream. */
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
        if (++queues > shard->queue_count || !is_in_table(shard, queue) || !review_queue(&r, queue))
            return false;
        knows_recent |= queue == shard->recent_queue && queue->stream == shard->recent_stream;
    }
    return knows_recent && queues == shard->queue_count &&
           r.waits == qi_atomic_load_u64(&shard->deferred) &&
           r.count == shard->stats.deferred_count && r.bytes == shard->stats.deferred_bytes;
}
