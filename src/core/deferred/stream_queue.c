/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream_queue.c - keeps waits in the order of their values, and in bins by size for reuse. A hash
 * table of the shard finds the queue of a stream.
 *
 * Every function requires the lock of the shard. The stream's lock is taken under it when the
 * stream's list of queues changes.
 */
#include "src/core/deferred/stream_queue.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the hash table of a shard ------------------------------------------------------------ */

static void link_into_bucket(const qi_shard *shard, qi_stream_queue *queue)
{
    qi_stream_queue **bucket = qi_stream_queue_bucket(shard, queue->stream);
    queue->next_in_bucket = *bucket;
    *bucket = queue;
}

/* The first buckets are part of the shard. */
static void release_buckets(qi_shard *shard)
{
    if (shard->queue_buckets != shard->first_buckets)
        qi_host_release(&shard->memory->host, shard->queue_buckets, (size_t)1 << shard->queue_bits,
                        sizeof *shard->queue_buckets);
}

/* Doubles the buckets. Without host memory the old ones stay, and more queues share a bucket. */
static void grow_table(qi_shard *shard)
{
    uint32_t bits = shard->queue_bits + 1;
    qi_stream_queue **buckets =
        qi_host_allocate(&shard->memory->host, (size_t)1 << bits, sizeof *buckets);
    if (!buckets)
        return;
    release_buckets(shard);
    shard->queue_buckets = buckets;
    shard->queue_bits = bits;
    for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard)
        link_into_bucket(shard, queue);
}

static void add_to_table(qi_shard *shard, qi_stream_queue *queue)
{
    link_into_bucket(shard, queue);
    if (++shard->queue_count > UINT32_C(1) << shard->queue_bits)
        grow_table(shard);
}

static void remove_from_table(qi_shard *shard, const qi_stream_queue *queue)
{
    qi_stream_queue **link = qi_stream_queue_bucket(shard, queue->stream);
    while (*link != queue)
        link = &(*link)->next_in_bucket;
    *link = queue->next_in_bucket;
    shard->queue_count--;
    if (shard->recent_queue == queue) /* the record may become another stream's */
        shard->recent_stream = NULL;
}

qi_stream_queue *qi_stream_queue_search(qi_shard *shard, const quire_stream *stream)
{
    qi_stream_queue *queue = *qi_stream_queue_bucket(shard, stream);
    while (queue && queue->stream != stream)
        queue = queue->next_in_bucket;
    if (queue) {
        shard->recent_stream = stream;
        shard->recent_queue = queue;
    }
    return queue;
}

void qi_stream_queues_init(qi_shard *shard)
{
    shard->queue_buckets = shard->first_buckets;
    shard->queue_bits = QI_FIRST_QUEUE_BITS;
}

/* ---- the records of waits ----------------------------------------------------------------- */

/* Returns an unused record, or NULL if host memory is exhausted. The memory keeps all records. */
static qi_wait *take_spare(qi_shard *shard)
{
    qi_wait *wait = shard->spare_waits;
    if (wait) {
        shard->spare_waits = wait->next;
        return wait;
    }
    if (!qi_table_ensure(&shard->waits, &shard->memory->host, shard->wait_count))
        return NULL;
    return qi_table_at(&shard->waits, shard->wait_count++, sizeof(qi_wait));
}

/* Returns NULL if host memory is exhausted. The queue stays until the stream or the memory ends. */
static qi_stream_queue *create_queue(qi_shard *shard, quire_stream *stream)
{
    qi_stream_queue *queue = qi_host_allocate(&shard->memory->host, 1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->shard = shard;
    queue->stream = stream;
    queue->next_of_shard = shard->queues;
    shard->queues = queue;
    add_to_table(shard, queue);
    qi_lock_acquire(&stream->lock);
    queue->next_of_stream = stream->queues;
    stream->queues = queue;
    qi_lock_release(&stream->lock);
    return queue;
}

qi_wait *qi_stream_queue_take_wait(qi_shard *shard, quire_stream *stream)
{
    if (!qi_stream_queue_find(shard, stream) && !create_queue(shard, stream))
        return NULL;
    qi_wait *wait = take_spare(shard);
    if (!wait)
        return NULL;
    *wait = (qi_wait){.stream = stream};
    qi_stream_add_wait(stream);
    return wait;
}

qi_wait *qi_stream_queue_end_wait(qi_shard *shard, qi_wait *wait)
{
    qi_wait *then = wait->then;
    if (wait->stream)
        qi_stream_drop_wait(wait->stream);
    qi_stream_queue_give_record(shard, wait);
    return then;
}

void qi_stream_queue_give_record(qi_shard *shard, qi_wait *wait)
{
    wait->next = shard->spare_waits;
    shard->spare_waits = wait;
}

/* ---- bins --------------------------------------------------------------------------------- */

/* Requires that the wait is in no bin. It becomes the first of its bin. */
static void put_into_bin(qi_stream_queue *queue, qi_wait *wait, uint64_t size)
{
    uint32_t bin = qi_stream_queue_bin_of(size);
    wait->bin = (uint16_t)(bin + 1);
    wait->bin_previous = NULL;
    wait->bin_next = queue->bins[bin];
    if (wait->bin_next)
        wait->bin_next->bin_previous = wait;
    queue->bins[bin] = wait;
}

static void take_from_bin(qi_stream_queue *queue, qi_wait *wait)
{
    if (!wait->bin)
        return;
    uint32_t bin = wait->bin - 1;
    if (wait->bin_next)
        wait->bin_next->bin_previous = wait->bin_previous;
    if (wait->bin_previous)
        wait->bin_previous->bin_next = wait->bin_next;
    else
        queue->bins[bin] = wait->bin_next;
    wait->bin = 0;
}

/* ---- putting in and taking out ------------------------------------------------------------ */

/* Puts a wait behind another of the list; NULL: to its front. */
static void insert_after(qi_wait_list *list, qi_wait *previous, qi_wait *wait)
{
    qi_wait **next = previous ? &previous->next : &list->first;
    wait->previous = previous;
    wait->next = *next;
    *(wait->next ? &wait->next->previous : &list->last) = wait;
    *next = wait;
}

/* The last wait whose value is not above `value`: the last of all, unless the value is late. */
static qi_wait *last_up_to(const qi_wait_list *list, uint64_t value)
{
    qi_wait *wait = list->last;
    while (wait && qi_unlikely(wait->value > value))
        wait = wait->previous;
    return wait;
}

static void unlink(qi_wait_list *list, const qi_wait *wait)
{
    *(wait->previous ? &wait->previous->next : &list->first) = wait->next;
    *(wait->next ? &wait->next->previous : &list->last) = wait->previous;
}

void qi_stream_queue_own(qi_shard *shard, qi_wait *use)
{
    use->is_own = true;
    qi_wait_list *own = &qi_stream_queue_find(shard, use->stream)->own;
    insert_after(own, own->last, use);
}

void qi_stream_queue_disown(qi_shard *shard, qi_wait *use)
{
    use->is_own = false;
    unlink(&qi_stream_queue_find(shard, use->stream)->own, use);
}

void qi_stream_queue_put(qi_shard *shard, qi_wait *wait)
{
    qi_stream_queue *queue = qi_stream_queue_find(shard, wait->stream);
    qi_wait_list *list = wait->value ? &queue->marked : &queue->fresh;
    wait->bin = 0;
    if (!qi_wait_is_of_object(wait)) {
        const qi_slot *record = qi_memory_slot(shard->memory, wait->slot);
        shard->stats.deferred_count++;
        shard->stats.deferred_bytes += qi_stream_queue_held_by(record);
        /* a checked build reuses no range before it has passed the quarantine; a lazy or sleeping
           allocation has no range that another one could have */
        if (!wait->then && !QI_IS_CHECKED && !qi_slot_is_partial(record))
            put_into_bin(queue, wait, record->size);
    }
    qi_atomic_store_release_u64(&shard->deferred, qi_atomic_load_u64(&shard->deferred) + 1);
    insert_after(list, last_up_to(list, wait->value), wait);
}

/* Takes a wait out of its bin and out of its list, and stops counting it. */
static qi_wait *take_out(qi_stream_queue *queue, qi_wait *wait)
{
    qi_shard *shard = queue->shard;
    if (!qi_wait_is_of_object(wait)) {
        take_from_bin(queue, wait);
        shard->stats.deferred_count--;
        shard->stats.deferred_bytes -=
            qi_stream_queue_held_by(qi_memory_slot(shard->memory, wait->slot));
    }
    qi_atomic_store_release_u64(&shard->deferred, qi_atomic_load_u64(&shard->deferred) - 1);
    unlink(wait->value ? &queue->marked : &queue->fresh, wait);
    return wait;
}

qi_wait *qi_stream_queue_take_passed(qi_stream_queue *queue, uint64_t passed)
{
    qi_wait *wait = queue->marked.first;
    if (wait && wait->value <= passed)
        return take_out(queue, wait);
    wait = queue->fresh.first; /* it has no value yet: only "all points" includes it */
    return wait && passed == QI_ALL_PASSED ? take_out(queue, wait) : NULL;
}

qi_wait *qi_stream_queue_take_fresh(qi_stream_queue *queue)
{
    qi_wait *first = NULL;
    while (queue->fresh.last) {
        qi_wait *wait = take_out(queue, queue->fresh.last);
        wait->next = first;
        first = wait;
    }
    return first;
}

/* ---- reuse -------------------------------------------------------------------------------- */

/* At most so many ranges of a bin are examined: an allocation takes a bounded number of steps. */
enum { MAX_EXAMINED = 8 };

/*
 * A range of a linear resource serves no image of optimal tiling, and the other way round, if
 * the device keeps these apart.
 */
static bool tiling_fits(const quire_memory *memory, const qi_slot *record, bool optimal)
{
    if (!optimal && record->object != QUIRE_OBJECT_IMAGE)
        return true;
    return qi_slot_is_optimal(record) == optimal ||
           memory->device->info.limits.buffer_image_granularity <= 1;
}

/*
 * Whether a slot can become the requested allocation. Its page must not be tied to an object, and
 * its slot needs a further generation. A slot without a range in the space is in a dedicated page.
 */
static bool fits(const quire_memory *memory, uint32_t slot, const qi_fitting *fitting)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = record->tally->page;
    uint64_t address = page->native.native.address + record->offset;
    return !page->tied && record->size >= fitting->size &&
           record->size - fitting->size <= fitting->size / 8 &&
           !qi_padding(address, fitting->alignment) && !record->range.id == fitting->dedicated &&
           tiling_fits(memory, record, fitting->optimal) && qi_slot_can_renew(&memory->slots, slot);
}

/*
 * Returns the smallest fitting wait among those examined in a bin, or NULL. A value that the
 * stream's owner has not announced does not fit: that work may be submitted after the new
 * allocation's.
 */
static qi_wait *best_of_bin(const qi_stream_queue *queue, uint32_t bin, const qi_fitting *fitting)
{
    const quire_memory *memory = queue->shard->memory;
    qi_wait *best = NULL;
    uint64_t least = UINT64_MAX;
    int left = MAX_EXAMINED;
    for (qi_wait *wait = queue->bins[bin]; wait && left-- > 0 && least > fitting->size;
         wait = wait->bin_next) {
        uint64_t size = qi_memory_slot(memory, wait->slot)->size;
        if (size < least && fits(memory, wait->slot, fitting) &&
            !qi_stream_is_ahead(wait->stream, wait->value)) {
            best = wait;
            least = size;
        }
    }
    return best;
}

qi_wait *qi_stream_queue_take_fitting(qi_stream_queue *queue, const qi_fitting *fitting)
{
    uint32_t bin = qi_stream_queue_bin_of(fitting->size);
    qi_wait *best = best_of_bin(queue, bin, fitting);
    for (uint32_t above = 1; !best && above <= 2 && bin + above < QI_STREAM_QUEUE_BINS; above++)
        best =
            best_of_bin(queue, bin + above, fitting); /* sizes up to 9/8 are at most 2 bins above */
    return best ? take_out(queue, best) : NULL;
}

qi_wait *qi_stream_queue_take_fitting_on(qi_shard *shard, const quire_stream *stream,
                                         const qi_fitting *fitting)
{
    qi_stream_queue *queue = qi_stream_queue_find(shard, stream);
    return queue ? qi_stream_queue_take_fitting(queue, fitting) : NULL;
}

/* ---- destroying --------------------------------------------------------------------------- */

qi_stream_queue *qi_stream_first_queue(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    qi_stream_queue *queue = stream->queues;
    qi_lock_release(&stream->lock);
    return queue;
}

/* Takes the stream's lock. */
static void remove_from_stream(const qi_stream_queue *queue)
{
    quire_stream *stream = queue->stream;
    qi_lock_acquire(&stream->lock);
    qi_stream_queue **link = &stream->queues;
    while (*link != queue)
        link = &(*link)->next_of_stream;
    *link = queue->next_of_stream;
    qi_lock_release(&stream->lock);
}

void qi_stream_queues_leave_streams(const qi_shard *shard)
{
    for (const qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard)
        remove_from_stream(queue);
}

void qi_stream_queue_release(qi_stream_queue *queue)
{
    qi_shard *shard = queue->shard;
    qi_stream_queue **link = &shard->queues;
    while (*link != queue)
        link = &(*link)->next_of_shard;
    *link = queue->next_of_shard;
    remove_from_table(shard, queue);
    remove_from_stream(queue);
    qi_host_release(&shard->memory->host, queue, 1, sizeof *queue);
}

void qi_stream_queues_finish(qi_shard *shard)
{
    while (shard->queues)
        qi_stream_queue_release(shard->queues);
    release_buckets(shard);
    qi_table_finish(&shard->waits, &shard->memory->host);
}

/* ---- the check ---------------------------------------------------------------------------- */

/*
 * Verifies that the stream queues of a shard agree with their waits, with the hash table of the
 * shard and with its statistics.
 *
 * Requires the shard's lock. Damaged links may form a cycle: the functions stop once they have seen
 * more waits than the shard counts.
 */

/* What has been seen of a shard so far. The review_ functions update it. */
typedef struct review {
    const qi_shard *shard;
    uint64_t waits;        /* all of them */
    uint64_t count, bytes; /* of waits with a slot */
    uint64_t binned;       /* waits of the current queue whose records name a bin */
} review;

/* Counts a wait and returns whether it is valid. */
static bool review_wait(review *r, const qi_stream_queue *queue, const qi_wait *wait)
{
    const quire_memory *memory = r->shard->memory;
    if (++r->waits > qi_atomic_load_u64(&r->shard->deferred) || wait->stream != queue->stream)
        return false;
    if (qi_wait_is_of_chunks(wait))
        return !wait->bin && !wait->then && wait->number;
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
        if (!review_wait(r, queue, wait) || wait->previous != previous ||
            !wait->value != (list == &queue->fresh) || (previous && previous->value > wait->value))
            return false;
    return list->last == previous;
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
           bins_agree(r, queue);
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
