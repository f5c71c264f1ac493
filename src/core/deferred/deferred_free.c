/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_free.c - a freed slot waits in the queue of the first of its points that has not passed,
 * and advances to the next one, until all have passed and it is released.
 */
#include "src/core/deferred/deferred_free.h"

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/find/addresses.h"
#include "src/core/page/empty.h"
#include "src/core/page/lazy.h"
#include "src/core/page/life.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/core/slot/slot.h"
#include "src/core/state/event.h"

/* ---- recorded uses ------------------------------------------------------------------------ */

/*
 * The waits of the uses are in no queue. Those of the caller have no value: the free assigns it.
 */

/* Requires the lock, and the slot in use. Returns the use by the stream, or NULL. */
static qi_wait *find_use(const qi_slot *record, const quire_stream *stream)
{
    qi_wait *use = record->meta ? record->meta->uses : NULL;
    while (use && use->stream != stream)
        use = use->then;
    return use;
}

/* Requires the same. Returns NULL if host memory is exhausted. */
static qi_wait *add_use(qi_shard *shard, qi_slot *record, quire_stream *stream)
{
    if (!record->meta)
        record->meta = qi_slot_meta_create_empty(&shard->memory->host);
    if (!record->meta)
        return NULL;
    qi_wait *use = qi_stream_queue_take_wait(shard, stream);
    if (!use)
        return NULL;
    use->then = record->meta->uses;
    record->meta->uses = use;
    return use;
}

static quire_result refuse_without_memory(void)
{
    return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                   "no host memory for the use of an allocation by a stream");
}

quire_result qi_record_slot_use(quire_memory *memory, uint32_t slot, quire_stream *stream)
{
    quire_result result = qi_stream_check_marks(stream);
    if (result)
        return result;
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_lock_acquire(&shard->lock);
    qi_wait *use = find_use(record, stream);
    if (!use)
        use = add_use(shard, record, stream);
    else if (use->is_own) {
        qi_stream_queue_disown(shard, use);
        use->value = 0;
    }
    qi_lock_release(&shard->lock);
    return use ? QUIRE_SUCCESS : refuse_without_memory();
}

quire_result qi_record_use(quire_memory *memory, quire_allocation allocation, quire_stream *stream)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = qi_record_slot_use(memory, slot, stream);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* ---- own uses ----------------------------------------------------------------------------- */

/*
 * An own use without a value stays without one: the value of another thread's work may precede it.
 */
quire_result qi_record_own_use(quire_memory *memory, uint32_t slot, quire_stream *stream,
                               uint64_t value)
{
    qi_shard *shard = qi_shard_of_slot(memory, slot);
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_lock_acquire(&shard->lock);
    qi_wait *use = find_use(record, stream);
    if (!use) {
        use = add_use(shard, record, stream);
        if (use) {
            use->value = value;
            qi_stream_queue_own(shard, use);
        }
    } else if (!value || (use->value && use->value < value)) {
        use->value = value;
    }
    qi_lock_release(&shard->lock);
    return use ? QUIRE_SUCCESS : refuse_without_memory();
}

static uint64_t count_own_uses(quire_stream *stream)
{
    uint64_t count = 0;
    for (const qi_stream_queue *queue = qi_stream_first_queue(stream); queue;
         queue = queue->next_of_stream) {
        qi_lock_acquire(&queue->shard->lock);
        for (const qi_wait *use = queue->own.first; use; use = use->next)
            count++;
        qi_lock_release(&queue->shard->lock);
    }
    return count;
}

/* The records stay with their allocations: a free may be looking at them. */
static void end_uses_in(qi_stream_queue *queue)
{
    qi_shard *shard = queue->shard;
    qi_lock_acquire(&shard->lock);
    while (queue->own.first) {
        qi_wait *use = queue->own.first;
        qi_stream_queue_disown(shard, use);
        qi_stream_drop_wait(use->stream);
        use->stream = NULL;
    }
    qi_lock_release(&shard->lock);
}

void qi_end_own_uses(quire_stream *stream, uint64_t nanoseconds)
{
    uint64_t count = count_own_uses(stream);
    if (!count || count < qi_stream_waits(stream) || !qi_stream_finish(stream, nanoseconds))
        return;
    for (qi_stream_queue *queue = qi_stream_first_queue(stream); queue;
         queue = queue->next_of_stream)
        end_uses_in(queue);
}

/* ---- deferring ---------------------------------------------------------------------------- */

/*
 * A claimed slot has a chain of waits: its recorded uses, then the point of the free. It lies in
 * the queue of the first wait whose point has not passed, and advances to the next one when it has.
 * The streams of a chain are marked at the free. The one stream of most frees is marked later, once
 * for all frees since its last mark.
 */

/* Whether the wait's point has passed. Value 0 (no mark yet) passes only with all points. */
static bool is_over(const qi_wait *wait)
{
    return !wait->stream ||
           qi_stream_has_passed(wait->stream, wait->value ? wait->value : QI_ALL_PASSED);
}

bool qi_uses_are_over(const qi_slot *record, const quire_stream *but_on)
{
    const qi_wait *wait = record->meta ? record->meta->uses : NULL;
    while (wait && (is_over(wait) || (wait->is_own && but_on && wait->stream == but_on)))
        wait = wait->then;
    return !wait;
}

void qi_uses_forget(qi_shard *shard, qi_slot *record)
{
    if (!record->meta)
        return;
    for (qi_wait *use = record->meta->uses; use; use = qi_stream_queue_end_wait(shard, use))
        if (use->is_own)
            qi_stream_queue_disown(shard, use);
    record->meta->uses = NULL;
}

/* Requires the lock. Ends the waits that are over; returns the first that is not, or NULL. */
static qi_wait *skip_passed(qi_shard *shard, qi_wait *wait)
{
    while (wait && is_over(wait))
        wait = qi_stream_queue_end_wait(shard, wait);
    return wait;
}

/*
 * Requires the shard's lock. Puts the slot into the queue of its first wait whose point has not
 * passed. Returns false if all have passed: the caller releases the slot. Inline, because programs
 * free on streams by the million.
 */
QI_ALWAYS_INLINE bool advance(qi_shard *shard, qi_wait *first, uint32_t slot)
{
    qi_wait *wait = skip_passed(shard, first);
    if (!wait)
        return false;
    wait->slot = slot;
    qi_stream_queue_put(shard, wait);
    return true;
}

/* Whether a recorded use is of the stream; with NULL, of any capture stream. */
static bool is_use_of(const qi_wait *use, const quire_stream *stream)
{
    return stream ? use->stream == stream : use->stream && use->stream->capture;
}

/* Requires the lock. Takes such a use out of a chain; returns NULL if the chain has none. */
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

/* Appends a chain of waits, or NULL, to a chain. */
static void append(qi_wait **first, qi_wait *wait)
{
    qi_wait **link = first;
    while (*link)
        link = &(*link)->then;
    *link = wait;
}

/*
 * Requires the lock. Chains the recorded uses of a claimed slot, then the wait for the freeing
 * stream, so that the range can be reused on that stream as soon as the uses have passed. A
 * recorded use of the stream follows every point except points of work not yet submitted: such a
 * point replaces it. An own use has a point of its own: the later one counts. The use of a capture
 * stream comes last, because its points do not pass. Returns false if host memory is exhausted.
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
    } else if (last && (last->value || qi_stream_is_ahead(stream, value))) {
        last->value = value && value < last->value ? last->value : value;
    }
    append(first, last);
    append(first, take_use(first, NULL));
    for (qi_wait *use = *first; use; use = use->then)
        if (use->is_own)
            qi_stream_queue_disown(shard, use);
    if (record->meta)
        record->meta->uses = NULL;
    return true;
}

/*
 * Requires no lock: the chain belongs to the caller. Marks its streams, so that each is waited for
 * up to the free, and not up to the time at which the stream before it has passed. A stream that
 * cannot be marked now is marked later, as that of a single wait.
 */
static void mark_streams(qi_wait *first)
{
    qi_error before;
    qi_error_save(&before);
    for (qi_wait *wait = first; wait; wait = wait->then)
        if (!wait->value && !is_over(wait) && !wait->stream->capture)
            qi_ignore(qi_stream_mark(wait->stream, &wait->value)); /* 0 if it fails */
    qi_error_restore(&before);
}

/*
 * Requires the lock, which it may release and reacquire. A freed allocation is not found by address
 * any more, and its lasting map ends: its pointer is invalid before its range may be reused.
 */
static void end_extras(qi_shard *shard, const qi_slot *record, uint32_t slot)
{
    if (record->extras & QI_EXTRA_ADDRESS)
        qi_addresses_hide(shard->memory, slot);
    if (!(record->extras & QI_EXTRA_MAPPED))
        return;
    qi_lock_release(&shard->lock);
    qi_page_map_drop(shard->memory, slot);
    qi_lock_acquire(&shard->lock);
}

/* Without a stream: after its recorded uses. */
quire_result qi_deferred_free_after(quire_memory *memory, uint32_t slot, quire_stream *stream,
                                    uint64_t value)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_shard *shard = qi_shard_of(memory, record);
    qi_wait *first = NULL;
    qi_lock_acquire(&shard->lock);
    if (!take_waits(shard, record, stream, value, &first)) {
        qi_lock_release(&shard->lock);
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a deferred free");
    }
    if (qi_unlikely(first && first->then)) {
        qi_lock_release(&shard->lock);
        mark_streams(first);
        qi_lock_acquire(&shard->lock);
    }
    if (qi_unlikely(record->extras & (QI_EXTRA_ADDRESS | QI_EXTRA_MAPPED)))
        end_extras(shard, record, slot);
    /* an object keeps its name until it is destroyed */
    bool has_name = record->meta && !record->object;
    if (has_name || qi_event_is_wanted(memory, QUIRE_EVENT_FREED)) {
        qi_lock_release(&shard->lock);
        qi_event_freed(memory, slot, stream);
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
        return qi_deferred_free_after(memory, slot, NULL, 0);
    qi_event_freed(memory, slot, NULL);
    return qi_release_checked(memory, slot);
}

quire_result qi_deferred_claim_and_free(quire_memory *memory, quire_allocation allocation,
                                        quire_stream *stream, uint64_t value)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_claim(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = qi_deferred_free_after(memory, slot, stream, value);
    if (result == QUIRE_ERROR_OUT_OF_HOST_MEMORY)
        qi_slot_unclaim(&memory->slots, slot);
    return result;
}

/* ---- collecting --------------------------------------------------------------------------- */

/* What waits for nothing more, of one shard. */
typedef struct qi_passed {
    uint32_t slots;   /* a chain; QI_NO_SLOT: none */
    qi_wait *objects; /* object waits, linked by `next` */
    qi_wait *chunks;  /* chunk waits, likewise */
    uint64_t bytes;   /* of the slots */
    bool advanced;    /* a slot waits in the queue of another stream now */
} qi_passed;

/* Returns the highest value of the queue's stream that is known to have passed. */
static uint64_t passed_of(const qi_stream_queue *queue)
{
    return qi_atomic_load_acquire_u64(&queue->stream->passed);
}

/* Requires the lock. Puts waits back into their queue, with the value of the mark that was set. */
static void put_marked(qi_shard *shard, qi_wait *wait, uint64_t value)
{
    for (qi_wait *next = NULL; wait; wait = next) {
        next = wait->next;
        wait->value = value;
        qi_stream_queue_put(shard, wait);
    }
}

/*
 * Requires the shard's lock. Releases and reacquires it. Sets one mark after everything that was
 * freed on the stream since the last one. Then queries which value has passed, or waits up
 * to `nanoseconds` for the last value in the queue.
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
    /* without the lock other threads may empty the queue, but the stream and the queue stay */
    qi_stream_begin_query(stream);
    qi_lock_release(&shard->lock);
    quire_result marked = fresh ? qi_stream_mark(stream, &value) : QUIRE_SUCCESS;
    quire_result result = QUIRE_SUCCESS;
    if (nanoseconds)
        result = qi_stream_await(stream, value > last ? value : last, nanoseconds);
    if (!nanoseconds || result) {
        quire_result queried = qi_stream_query(stream);
        result = result ? result : queried;
    }
    qi_lock_acquire(&shard->lock);
    put_marked(shard, fresh, value);
    qi_stream_end_query(stream);
    return marked ? marked : result;
}

/* Requires the shard's lock. Takes the waits for values up to `value` out of the queue. */
static void take_passed(qi_stream_queue *queue, uint64_t value, qi_passed *passed)
{
    qi_shard *shard = queue->shard;
    quire_memory *memory = shard->memory;
    qi_wait *wait;
    while ((wait = qi_stream_queue_take_passed(queue, value)) != NULL) {
        if (qi_wait_is_of_object(wait)) {
            qi_wait **list = qi_wait_is_of_chunks(wait) ? &passed->chunks : &passed->objects;
            qi_stream_drop_wait(wait->stream); /* which may be destroyed before the object */
            wait->next = *list;
            *list = wait;
            continue;
        }
        uint32_t slot = wait->slot;
        if (advance(shard, qi_stream_queue_end_wait(shard, wait), slot)) {
            passed->advanced = true;
            continue;
        }
        const qi_slot *record = qi_memory_slot(memory, slot);
        passed->bytes += record->size + record->left_padding;
        qi_slot_set_next(&memory->slots, slot, passed->slots);
        passed->slots = slot;
    }
}

/* Requires the lock. The page no longer has the object, and may be empty now. */
static void leave_page(qi_shard *shard, qi_page *page)
{
    page->objects--;
    if (--page->tally->allocation_count)
        return;
    qi_empty_pages_add(page);
    qi_shard_note_given(shard, true);
}

/* Destroys native objects whose ranges were reused. */
static void destroy_objects(qi_shard *shard, qi_wait *first)
{
    quire_memory *memory = shard->memory;
    if (!first)
        return;
    for (const qi_wait *wait = first; wait; wait = wait->next)
        qi_device_object_destroy(memory->device, &memory->calls, wait->object, wait->native);
    qi_lock_acquire(&shard->lock);
    for (qi_wait *wait = first, *next; wait; wait = next) {
        next = wait->next;
        leave_page(shard, wait->page);
        qi_stream_queue_give_record(shard, wait);
    }
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(memory, leaving);
}

/* Takes the memory of chunks whose points have passed. Returns the bytes. */
static uint64_t unback_chunks(qi_shard *shard, qi_wait *first)
{
    uint64_t bytes = 0;
    for (qi_wait *wait = first, *next; wait; wait = next) {
        next = wait->next;
        bytes +=
            qi_lazy_end_wait(shard->memory, (quire_allocation){wait->allocation}, wait->number);
        qi_lock_acquire(&shard->lock);
        qi_stream_queue_give_record(shard, wait);
        qi_lock_release(&shard->lock);
    }
    return bytes;
}

/* Requires no lock. Destroys the objects, then releases the slots. */
static void release_passed(qi_shard *shard, qi_passed *passed)
{
    quire_memory *memory = shard->memory;
    destroy_objects(shard, passed->objects);
    passed->bytes += unback_chunks(shard, passed->chunks);
    for (uint32_t slot = passed->slots, next; slot != QI_NO_SLOT; slot = next) {
        next = qi_slot_next(&memory->slots, slot);
        qi_ignore(qi_release_checked(memory, slot)); /* CORRUPTED is logged */
    }
}

/*
 * Requires no lock. Adds the bytes that it releases. Returns the first error of a backend. A slot
 * that waits for several streams can advance to a queue that was looked at before: then all are
 * looked at again.
 */
static quire_result collect_shard(qi_shard *shard, uint64_t *bytes)
{
    quire_result result = QUIRE_SUCCESS;
    qi_passed passed = {.slots = QI_NO_SLOT};
    qi_lock_acquire(&shard->lock);
    do {
        passed.advanced = false;
        for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
            if (qi_stream_queue_is_empty(queue))
                continue; /* most are, in a program with many streams */
            quire_result looked = look(queue, 0);
            result = result ? result : looked;
            take_passed(queue, passed_of(queue), &passed);
        }
    } while (passed.advanced);
    qi_lock_release(&shard->lock);
    release_passed(shard, &passed);
    *bytes += passed.bytes;
    return result;
}

quire_result qi_deferred_collect(quire_memory *memory, uint64_t *bytes)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint32_t i = 0; i < qi_shard_count(memory); i++) {
        quire_result collected = collect_shard(memory->shards[i], bytes);
        result = result ? result : collected;
    }
    return result;
}

uint64_t qi_deferred_collect_quietly(quire_memory *memory)
{
    uint64_t bytes = 0;
    if (!qi_deferred_count(memory))
        return 0;
    qi_error error;
    qi_error_save(&error);
    qi_ignore(qi_deferred_collect(memory, &bytes)); /* on an error the frees stay deferred */
    qi_error_restore(&error);
    return bytes;
}

bool qi_deferred_make_room(qi_shard *shard)
{
    quire_memory *memory = shard->memory;
    /* all shards of the memory: their pages can become empty and move to this shard */
    if (!qi_deferred_count(memory))
        return false;
    qi_lock_release(&shard->lock);
    uint64_t bytes = qi_deferred_collect_quietly(memory);
    qi_lock_acquire(&shard->lock);
    qi_shard_drain(shard);
    return bytes != 0;
}

quire_result qi_deferred_collect_stream(quire_stream *stream, uint64_t nanoseconds)
{
    quire_result result = QUIRE_SUCCESS;
    for (qi_stream_queue *queue = qi_stream_first_queue(stream); queue;
         queue = queue->next_of_stream) {
        qi_shard *shard = queue->shard;
        qi_passed passed = {.slots = QI_NO_SLOT};
        qi_lock_acquire(&shard->lock);
        quire_result looked = look(queue, nanoseconds);
        result = result ? result : looked;
        if (looked)
            nanoseconds = 0; /* the time is over, or waiting failed */
        take_passed(queue, passed_of(queue), &passed);
        qi_lock_release(&shard->lock);
        release_passed(shard, &passed);
    }
    return result;
}

void qi_deferred_forget_stream(quire_stream *stream)
{
    for (qi_stream_queue *queue; (queue = qi_stream_first_queue(stream)) != NULL;) {
        qi_shard *shard = queue->shard;
        qi_lock_acquire(&shard->lock);
        qi_stream_queue_release(queue);
        qi_lock_release(&shard->lock);
    }
}

/* ---- finishing ---------------------------------------------------------------------------- */

/* Frees the live allocations that have recorded uses. */
static void free_used(quire_memory *memory)
{
    for (uint32_t i = 0; i < qi_slots_top(&memory->slots); i++) {
        const qi_phase phase = qi_slot_phase(&memory->slots, i);
        if (phase != QI_PHASE_LIVE && phase != QI_PHASE_ASLEEP)
            continue;
        const qi_slot_meta *meta = qi_memory_slot(memory, i)->meta;
        if (meta && meta->uses && qi_slot_force_claim(&memory->slots, i))
            qi_ignore(qi_deferred_free(memory, i)); /* CORRUPTED is logged */
    }
}

/* Requires the lock. Whether everything in the queue is known to have passed. */
static bool is_done(const qi_stream_queue *queue)
{
    uint64_t passed = qi_atomic_load_acquire_u64(&queue->stream->passed);
    return passed == QI_ALL_PASSED ||
           (!queue->fresh.first && passed >= qi_stream_queue_highest(queue));
}

/*
 * Requires the lock. Releases and reacquires it. Waits until everything in the queue has passed.
 * Every point that passes moves the deadline. Returns false at the deadline.
 */
static bool await_queue(qi_stream_queue *queue, uint64_t *deadline)
{
    while (!is_done(queue)) {
        uint64_t before = qi_atomic_load_acquire_u64(&queue->stream->passed), now = qi_clock();
        uint64_t left = now < *deadline ? *deadline - now : 0;
        qi_ignore(look(queue, left)); /* is_done decides */
        if (!is_done(queue) && qi_atomic_load_acquire_u64(&queue->stream->passed) == before)
            return false;
        *deadline = qi_clock() + queue->stream->device->stall_timeout;
    }
    return true;
}

/*
 * Requires the lock. Releases and reacquires it to log a warning. A wait is added for that time, so
 * that the log sink cannot destroy the stream and its queue.
 */
static void report_unfinished(const qi_stream_queue *queue)
{
    qi_shard *shard = queue->shard;
    quire_stream *stream = queue->stream;
    qi_stream_add_wait(stream);
    qi_lock_release(&shard->lock);
    qi_log(&shard->memory->device->log, QUIRE_LOG_WARNING,
           "memory '%s' is destroyed: what waits for stream '%s' is freed though its points have "
           "not passed",
           shard->memory->name, stream->name);
    qi_lock_acquire(&shard->lock);
    qi_stream_drop_wait(stream);
}

/* Requires no lock. Releases every deferred free of a shard. Capture streams are not waited for. */
static void finish_shard(qi_shard *shard, uint64_t *deadline)
{
    qi_passed passed = {.slots = QI_NO_SLOT};
    qi_lock_acquire(&shard->lock);
    for (qi_stream_queue *queue = shard->queues; queue; queue = queue->next_of_shard) {
        if (!queue->stream->capture && !await_queue(queue, deadline))
            report_unfinished(queue);
        take_passed(queue, QI_ALL_PASSED, &passed);
    }
    qi_lock_release(&shard->lock);
    release_passed(shard, &passed);
}

void qi_deferred_finish(quire_memory *memory)
{
    qi_error error;
    qi_error_save(&error);
    uint64_t deadline = qi_clock() + memory->device->stall_timeout;
    free_used(memory);
    /* a slot whose first wait is over may have another one in the queue of another stream */
    while (qi_deferred_count(memory))
        for (uint32_t i = 0; i < qi_shard_count(memory); i++)
            finish_shard(memory->shards[i], &deadline);
    qi_error_restore(&error);
}
