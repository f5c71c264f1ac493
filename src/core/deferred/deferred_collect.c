/*
 * deferred_collect.c - queries which points have passed, and releases what waited for
 * them.
 */
#include "src/core/deferred/deferred_collect.h"

#include "src/base/result.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/page/empty.h"
#include "src/core/page/life.h"
#include "src/core/page/range.h"

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

quire_result qi_stream_queue_look(qi_stream_queue *queue, uint64_t nanoseconds)
{
    qi_shard *shard = queue->shard;
    quire_stream *stream = queue->stream;
    if (qi_stream_queue_is_empty(queue) || stream->capture ||
        qi_stream_has_passed(stream, QI_ALL_PASSED))
        return QUIRE_SUCCESS;
    uint64_t last = nanoseconds ? qi_stream_queue_highest(queue) : 0, value = 0;
    qi_wait *fresh = qi_stream_queue_take_fresh(queue);
    /* without the lock other threads may empty the queue, but the stream and the queue stay */
    qi_stream_begin_look(stream);
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
    qi_stream_end_look(stream);
    return marked ? marked : result;
}

void qi_deferred_take_passed(qi_stream_queue *queue, uint64_t value, qi_passed *passed)
{
    qi_shard *shard = queue->shard;
    quire_memory *memory = shard->memory;
    qi_wait *wait;
    while ((wait = qi_stream_queue_take_passed(queue, value)) != NULL) {
        if (qi_wait_is_of_object(wait)) {
            qi_stream_drop_wait(wait->stream); /* which may be destroyed before the object */
            wait->next = passed->objects;
            passed->objects = wait;
            continue;
        }
        uint32_t slot = wait->slot;
        if (qi_deferred_advance(shard, qi_stream_queue_end_wait(shard, wait), slot)) {
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

void qi_deferred_release_passed(qi_shard *shard, const qi_passed *passed)
{
    quire_memory *memory = shard->memory;
    destroy_objects(shard, passed->objects);
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
            quire_result looked = qi_stream_queue_look(queue, 0);
            result = result ? result : looked;
            qi_deferred_take_passed(queue, passed_of(queue), &passed);
        }
    } while (passed.advanced);
    qi_lock_release(&shard->lock);
    qi_deferred_release_passed(shard, &passed);
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
        quire_result looked = qi_stream_queue_look(queue, nanoseconds);
        result = result ? result : looked;
        if (looked)
            nanoseconds = 0; /* the time is over, or waiting failed */
        qi_deferred_take_passed(queue, passed_of(queue), &passed);
        qi_lock_release(&shard->lock);
        qi_deferred_release_passed(shard, &passed);
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
