/*
 * deferred_collect.h - releasing deferred frees whose points have passed.
 *
 * The library queries the backend when the application collects, and when an allocation finds no
 * room, before it creates a page. The shard's lock protects the queues; no lock is held during the
 * backend's calls.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_COLLECT_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_COLLECT_H

#include "src/core/deferred/stream_queue.h"

/*
 * Requires no lock. Releases what has passed in a memory and adds its bytes. Returns the first
 * error of a backend; the other streams are queried all the same.
 */
quire_result qi_deferred_collect(quire_memory *memory, uint64_t *bytes);

/* The same for a caller that goes on whatever a backend answers: what fails stays deferred. Returns
   the bytes, and keeps the thread's error. */
uint64_t qi_deferred_collect_quietly(quire_memory *memory);

/*
 * Requires the shard's lock. Releases and reacquires it. Like qi_deferred_collect; returns whether
 * anything was released.
 */
bool qi_deferred_make_room(qi_shard *shard);

/* Like qi_deferred_collect, for one stream in all memories; waits up to `nanoseconds` for it. */
quire_result qi_deferred_collect_stream(quire_stream *stream, uint64_t nanoseconds);

/* Requires no lock. Releases the empty queues of a stream that is destroyed. */
void qi_deferred_forget_stream(quire_stream *stream);

/* ---- the steps, also for a memory that is destroyed ------------------------------------------ */

/*
 * Requires the shard's lock. Releases and reacquires it. Sets one mark after everything that was
 * freed on the stream since the last one. Then queries which value has passed, or waits up
 * to `nanoseconds` for the last value in the queue.
 */
quire_result qi_stream_queue_look(qi_stream_queue *queue, uint64_t nanoseconds);

/* What waits for nothing more, of one shard. */
typedef struct qi_passed {
    uint32_t slots;   /* a chain; QI_NO_SLOT: none */
    qi_wait *objects; /* object waits, linked by `next` */
    uint64_t bytes;   /* of the slots */
    bool advanced;    /* a slot waits in the queue of another stream now */
} qi_passed;

/* Requires the shard's lock. Takes the waits for values up to `value` out of the queue. */
void qi_deferred_take_passed(qi_stream_queue *queue, uint64_t value, qi_passed *passed);

/* Requires no lock. Destroys the objects, then releases the slots. */
void qi_deferred_release_passed(qi_shard *shard, const qi_passed *passed);

#endif
