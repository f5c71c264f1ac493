/*
 * deferred_free.c - frees that wait for points of streams.
 *
 * A claimed slot has a chain of waits: its recorded uses, then the point of the free. It lies in
 * the queue of the first wait whose point has not passed, and advances to the next one when it has.
 * The streams of a chain are marked at the free. The one stream of most frees is marked later, once
 * for all frees since its last mark.
 */
#include "src/core/deferred/deferred_free.h"

#include "src/base/result.h"
#include "src/core/deferred/stream_queue.h"
#include "src/core/find/addresses.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/core/state/event.h"

/* Whether the wait's point has passed. Value 0 (no mark yet) passes only with all points. */
static bool is_over(const qi_wait *wait)
{
    return !wait->stream ||
           qi_stream_has_passed(wait->stream, wait->value ? wait->value : QI_ALL_PASSED);
}

/* Requires the lock. Ends the waits that are over; returns the first that is not, or NULL. */
static qi_wait *skip_passed(qi_shard *shard, qi_wait *wait)
{
    while (wait && is_over(wait))
        wait = qi_stream_queue_end_wait(shard, wait);
    return wait;
}

/* qi_deferred_advance, inline for the free itself: programs free on streams by the million. */
QI_ALWAYS_INLINE bool advance(qi_shard *shard, qi_wait *first, uint32_t slot)
{
    qi_wait *wait = skip_passed(shard, first);
    if (!wait)
        return false;
    wait->slot = slot;
    qi_stream_queue_put(shard, wait);
    return true;
}

bool qi_deferred_advance(qi_shard *shard, qi_wait *first, uint32_t slot)
{
    return advance(shard, first, slot);
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

/*
 * Frees a claimed slot after its recorded uses and after a value of the stream (NULL: none). Fails
 * with OUT_OF_HOST_MEMORY; the slot is unchanged then.
 */
static quire_result free_after(quire_memory *memory, uint32_t slot, quire_stream *stream,
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
        return free_after(memory, slot, NULL, 0);
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
    result = free_after(memory, slot, stream, value);
    if (result == QUIRE_ERROR_OUT_OF_HOST_MEMORY)
        qi_slot_publish(&memory->slots, slot, QI_PHASE_LIVE);
    return result;
}
