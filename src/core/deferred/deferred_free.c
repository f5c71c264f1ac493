/*
 * waiting.c - see waiting.h.
 */
#include "src/core/deferred/deferred_free.h"

#include "src/base/clock.h"
#include "src/base/result.h"
#include "src/core/state/event.h"
#include "src/core/slot/slot_meta.h"
#include "src/core/deferred/stream_queue.h"

/* Whether nothing is left to wait for; with value 0 that is so where everything has passed. */
static bool is_over(const qi_wait *wait)
{
    return qi_stream_has_passed(wait->stream, wait->value ? wait->value : QI_ALL_PASSED);
}

/* With the lock: the first of an allocation's waits that is not over; the others end. */
static qi_wait *skip_passed(qi_shard *shard, qi_wait *wait)
{
    while (wait && is_over(wait))
        wait = qi_stream_queue_end_wait(shard, wait);
    return wait;
}

/* With the lock: nothing but the range is to be given back. */
static bool is_raw(const qi_shard *shard, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(shard->memory, slot);
    return !record->meta && !record->object;
}

/* With the lock: the slot waits for the first of its waits. False: for none. */
static bool advance(qi_shard *shard, qi_wait *first, uint32_t slot)
{
    qi_wait *wait = skip_passed(shard, first);
    if (!wait)
        return false;
    wait->slot = slot;
    qi_stream_queue_put(shard, wait, is_raw(shard, slot));
    return true;
}

/* ---- frees -------------------------------------------------------------------------------- */

/* A stream's, or NULL: any held one's. */
static bool is_use_of(const qi_wait *use, const quire_stream *stream)
{
    return stream ? use->stream == stream : use->stream->capture;
}

/* With the lock: takes such a use out of a chain; NULL: there is none. */
static qi_wait *take_use(qi_wait **first, const quire_stream *stream)
{
    qi_wait **link = first;
    while (*link && !is_use_of(*link, stream))
        link = &(*link)->then;
    qi_wait *use = *link;
    if (use) {
        *link = use->then;
        use->then = NULL;
    }
    return use;
}

static void append(qi_wait **first, qi_wait *wait)
{
    qi_wait **link = first;
    while (*link)
        link = &(*link)->then;
    *link = wait;
}

/*
 * With the lock: the uses of a won slot, and last what concerns the stream, so that the range can
 * be had on it meanwhile. A recorded use of it comes after any point but one of work that is yet to
 * be submitted. A capture stream, which gives nothing back, comes behind all. False: no host memory.
 */
static bool take_waits(qi_shard *shard, const qi_slot *record, quire_stream *stream, uint64_t value,
                       qi_wait **first)
{
    *first = record->meta ? record->meta->uses : NULL;
    qi_wait *last = stream ? take_use(first, stream) : NULL;
    if (stream && !last) {
        last = qi_stream_queue_take_wait(shard, stream);
        if (!last)
            return false;
        last->value = value;
    } else if (last && qi_stream_is_ahead(stream, value)) {
        last->value = value;
    }
    append(first, last);
    append(first, take_use(first, NULL));
    if (record->meta)
        record->meta->uses = NULL;
    return true;
}

/* Frees a won slot after its uses and the point. OUT_OF_HOST_MEMORY: nothing changed. */
static quire_result free_after(quire_memory *memory, uint32_t slot, quire_stream *stream,
                               uint64_t value)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = qi_shard_of(memory, record);
    qi_wait *first = NULL;
    qi_lock_acquire(&shard->lock);
    if (!take_waits(shard, record, stream, value, &first)) {
        qi_lock_release(&shard->lock);
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a free that waits");
    }
    bool has_name = record->meta && !record->object; /* an object keeps its name until it ends */
    if (has_name || qi_event_is_wanted(memory, QUIRE_EVENT_FREED)) {
        qi_lock_release(&shard->lock);
        qi_event_slot(memory, QUIRE_EVENT_FREED, slot);
        qi_release_name(memory, slot);
        qi_lock_acquire(&shard->lock);
    }
    bool waits = advance(shard, first, slot);
    qi_lock_release(&shard->lock);
    return waits ? QUIRE_SUCCESS : qi_release_checked(memory, slot);
}

quire_result qi_deferred_free(quire_memory *memory, uint32_t slot)
{
    const qi_slot_meta *meta = qi_memory_slot(memory, slot)->meta;
    if (meta && meta->uses)
        return free_after(memory, slot, NULL, 0);
    qi_event_slot(memory, QUIRE_EVENT_FREED, slot);
    return qi_release_checked(memory, slot);
}

static quire_result win_and_free(quire_memory *memory, quire_allocation allocation,
                                 quire_stream *stream, uint64_t value)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_claim(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = free_after(memory, slot, stream, value);
    if (result == QUIRE_ERROR_OUT_OF_HOST_MEMORY)
        qi_slot_publish(&memory->slots, slot, QI_PHASE_LIVE);
    return result;
}

quire_result quire_free_after(quire_memory *memory, quire_allocation allocation,
                              const quire_point *point)
{
    if (!memory || !point)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_free_after: memory or point is null");
    if (!point->stream || qi_stream_has_passed(point->stream, point->value))
        return quire_free(memory, allocation);
    quire_result result = qi_stream_check_point(point);
    if (result)
        return result;
    return win_and_free(memory, allocation, point->stream, point->value);
}

quire_result quire_free_on(quire_memory *memory, quire_allocation allocation, quire_stream *stream)
{
    if (!memory || !stream)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_free_on: memory or stream is null");
    quire_result result = qi_stream_check_marks(stream);
    return result ? result : win_and_free(memory, allocation, stream, 0);
}

/* ---- what has passed ---------------------------------------------------------------------- */

/* With the lock: waits that were taken out go back, with the mark that was set behind them. */
static void put_marked(qi_shard *shard, qi_wait *wait, uint64_t value)
{
    for (qi_wait *next = NULL; wait; wait = next) {
        next = wait->next;
        wait->value = value;
        qi_stream_queue_put(shard, wait, is_raw(shard, wait->slot));
    }
}

/*
 * With the lock, given up meanwhile: sets a mark behind what was freed since the last one, and asks
 * how far the stream is, or waits so long for the last that waits.
 */
static quire_result look(qi_stream_queue *queue, uint64_t nanoseconds)
{
    qi_shard *shard = queue->shard;
    quire_stream *stream = queue->stream;
    if (qi_stream_queue_is_empty(queue) || stream->capture ||
        qi_stream_has_passed(stream, QI_ALL_PASSED))
        return QUIRE_SUCCESS;
    uint64_t last = nanoseconds ? qi_stream_queue_highest(queue) : 0, value = 0;
    qi_wait *fresh = qi_stream_queue_take_fresh(queue);
    qi_stream_begin_look(stream);
    qi_lock_release(&shard->lock);
    quire_result marked = fresh ? qi_stream_mark(stream, &value) : QUIRE_SUCCESS;
    quire_result result = QUIRE_SUCCESS;
    if (nanoseconds)
        result = qi_stream_await(stream, value > last ? value : last, nanoseconds);
    if (!nanoseconds || result) {
        quire_result asked = qi_stream_query(stream);
        result = result ? result : asked;
    }
    qi_lock_acquire(&shard->lock);
    put_marked(shard, fresh, value);
    qi_stream_end_look(stream);
    return marked ? marked : result;
}

/*
 * With the lock: of what waits for values up to one, puts the slots that wait no more in front of a
 * chain, and adds their bytes.
 */
static uint32_t take_passed(qi_stream_queue *queue, uint64_t passed, uint32_t first,
                            uint64_t *bytes)
{
    qi_shard *shard = queue->shard;
    quire_memory *memory = shard->memory;
    qi_wait *wait;
    while ((wait = qi_stream_queue_take_passed(queue, passed)) != NULL) {
        uint32_t slot = wait->slot;
        if (advance(shard, qi_stream_queue_end_wait(shard, wait), slot))
            continue;
        const qi_slot *record = qi_memory_slot(memory, slot);
        *bytes += record->size + record->left_padding;
        qi_slot_set_next(&memory->slots, slot, first);
        first = slot;
    }
    return first;
}

static uint64_t passed_of(const qi_stream_queue *queue)
{
    return qi_atomic_load_acquire_u64(&queue->stream->passed);
}

/* Without a lock: gives back a chain of slots. */
static void give_back(quire_memory *memory, uint32_t first)
{
    for (uint32_t next; first != QI_NO_SLOT; first = next) {
        next = qi_slot_next(&memory->slots, first);
        qi_ignore(qi_release_checked(memory, first)); /* harm is told */
    }
}

static quire_result collect_shard(qi_shard *shard, uint64_t *bytes)
{
    quire_result result = QUIRE_SUCCESS;
    uint32_t first = QI_NO_SLOT;
    qi_lock_acquire(&shard->lock);
    for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
        quire_result looked = look(queue, 0);
        result = result ? result : looked;
        first = take_passed(queue, passed_of(queue), first, bytes);
    }
    qi_lock_release(&shard->lock);
    give_back(shard->memory, first);
    return result;
}

quire_result qi_deferred_collect(quire_memory *memory, uint64_t *bytes)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < memory->shard_count; i++) {
        quire_result collected = collect_shard(&memory->shards[i], bytes);
        result = result ? result : collected;
    }
    return result;
}

quire_result quire_collect(quire_memory *memory, uint64_t *released)
{
    if (released)
        *released = 0;
    if (!memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_collect: memory is null");
    if (memory->device->is_disabled)
        return qi_refuse_disabled();
    uint64_t bytes = 0;
    quire_result result = qi_deferred_collect(memory, &bytes);
    if (released)
        *released = bytes;
    return result;
}

bool qi_deferred_make_room(qi_shard *shard)
{
    quire_memory *memory = shard->memory;
    if (!qi_deferred_count(memory))
        return false;
    uint64_t bytes = 0;
    qi_lock_release(&shard->lock);
    qi_error error = qi_error_save();
    qi_ignore(qi_deferred_collect(memory, &bytes)); /* what is not known still waits */
    qi_error_restore(&error);
    qi_lock_acquire(&shard->lock);
    qi_shard_drain(shard);
    return bytes != 0;
}

/* ---- one stream --------------------------------------------------------------------------- */

/* Lanes come in front and stay while the stream lives. */
static qi_stream_queue *first_queue(quire_stream *stream)
{
    qi_lock_acquire(&stream->lock);
    qi_stream_queue *queue = stream->queues;
    qi_lock_release(&stream->lock);
    return queue;
}

quire_result qi_deferred_collect_stream(quire_stream *stream, uint64_t nanoseconds)
{
    quire_result result = QUIRE_SUCCESS;
    for (qi_stream_queue *queue = first_queue(stream); queue; queue = queue->next_of_stream) {
        qi_shard *shard = queue->shard;
        uint64_t bytes = 0;
        qi_lock_acquire(&shard->lock);
        quire_result looked = look(queue, nanoseconds);
        result = result ? result : looked;
        if (looked)
            nanoseconds = 0; /* the time is over, or no use */
        uint32_t first = take_passed(queue, passed_of(queue), QI_NO_SLOT, &bytes);
        qi_lock_release(&shard->lock);
        give_back(shard->memory, first);
    }
    return result;
}

void qi_deferred_forget_stream(quire_stream *stream)
{
    for (qi_stream_queue *queue; (queue = first_queue(stream)) != NULL;) {
        qi_shard *shard = queue->shard;
        qi_lock_acquire(&shard->lock);
        qi_stream_queue_release(queue);
        qi_lock_release(&shard->lock);
    }
}

/* ---- the end of a memory ------------------------------------------------------------------ */

/* Live allocations with recorded uses are freed: they wait. */
static void free_used(quire_memory *memory)
{
    for (uint32_t i = 0; i < qi_slots_top(&memory->slots); i++) {
        if (qi_slot_phase(&memory->slots, i) != QI_PHASE_LIVE)
            continue;
        const qi_slot_meta *meta = qi_memory_slot(memory, i)->meta;
        if (meta && meta->uses && qi_slot_force_claim(&memory->slots, i))
            qi_ignore(qi_deferred_free(memory, i)); /* harm is told */
    }
}

/* Whether nothing of a lane is left that is not known to have passed. */
static bool is_done(const qi_stream_queue *queue)
{
    uint64_t passed = passed_of(queue);
    return passed == QI_ALL_PASSED ||
           (!queue->fresh.first && passed >= qi_stream_queue_highest(queue));
}

/*
 * With the lock, given up meanwhile: waits until all of a lane has passed, beyond the deadline as
 * long as points of its stream pass. False: it is of no use.
 */
static bool await_queue(qi_stream_queue *queue, uint64_t *deadline)
{
    while (!is_done(queue)) {
        uint64_t before = passed_of(queue), now = qi_clock();
        qi_ignore(look(queue, now < *deadline ? *deadline - now : 0)); /* is_done tells */
        if (!is_done(queue) && passed_of(queue) == before)
            return false;
        *deadline = qi_clock() + queue->stream->device->stall_timeout;
    }
    return true;
}

/* With the lock, given up meanwhile. The sink cannot end the stream: the lane would go with it. */
static void report_unfinished(const qi_stream_queue *queue)
{
    qi_shard *shard = queue->shard;
    quire_stream *stream = queue->stream;
    qi_stream_add_wait(stream);
    qi_lock_release(&shard->lock);
    qi_log(
        &shard->memory->device->log, QUIRE_LOG_WARNING,
        "memory '%s' ends: what waits for stream '%s' is freed though its points have not passed",
        shard->memory->name, stream->name);
    qi_lock_acquire(&shard->lock);
    qi_stream_drop_wait(stream);
}

static void finish_shard(qi_shard *shard, uint64_t *deadline)
{
    uint32_t first = QI_NO_SLOT;
    uint64_t bytes = 0;
    qi_lock_acquire(&shard->lock);
    for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
        if (!queue->stream->capture && !await_queue(queue, deadline))
            report_unfinished(queue);
        first = take_passed(queue, QI_ALL_PASSED, first, &bytes);
    }
    qi_lock_release(&shard->lock);
    give_back(shard->memory, first);
}

void qi_deferred_finish(quire_memory *memory)
{
    qi_error error = qi_error_save();
    uint64_t deadline = qi_clock() + memory->device->stall_timeout;
    free_used(memory);
    while (qi_deferred_count(memory))
        for (uint32_t i = 0; i < memory->shard_count; i++)
            finish_shard(&memory->shards[i], &deadline);
    qi_error_restore(&error);
}
