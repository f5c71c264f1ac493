/*
 * waiting.h - memory in the order of streams: frees that wait for points, and who may have the
 * range before they have passed (quire/stream.h; lane.h has the records).
 *
 * The backend is asked about points by whoever collects, and by an allocation that finds no room,
 * before a page is made for it. No lock is held meanwhile.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_DEFERRED_FREE_H
#define QUIRE_SRC_CORE_DEFERRED_DEFERRED_FREE_H

#include "src/core/allocate/ladder.h"
#include "src/core/deferred/stream.h"

/*
 * Frees a slot that the caller has won: once what it was used for has passed, if it was recorded.
 * Fails with CORRUPTED alone, as qi_release_checked.
 */
quire_result qi_deferred_free(quire_memory *memory, uint32_t slot);

/* How many allocations wait. */
static inline uint64_t qi_deferred_count(const quire_memory *memory)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < memory->shard_count; i++)
        count += qi_atomic_load_u64(&memory->shards[i].deferred);
    return count;
}

/* Gives back what has passed; adds the bytes. The first error that a backend answers. */
quire_result qi_deferred_collect(quire_memory *memory, uint64_t *bytes);

/* The same with a shard's lock, given up meanwhile: whether anything was given back. */
bool qi_deferred_make_room(qi_shard *shard);

/* The same of one stream in all memories; what has not passed may take so long. */
quire_result qi_deferred_collect_stream(quire_stream *stream, uint64_t nanoseconds);

/* Nothing waits for the stream any more. */
void qi_deferred_forget_stream(quire_stream *stream);

/*
 * With the shard's lock: what was freed on the stream and fits becomes the load's. The second, with
 * the lock given up meanwhile, of another stream of the device, behind whose point it is ordered.
 */
bool qi_deferred_reuse(qi_shard *shard, quire_stream *stream, const qi_range_request *range_request,
                       bool dedicated, uint32_t *slot);
bool qi_deferred_take_over(qi_shard *shard, quire_stream *stream,
                           const qi_range_request *range_request, bool dedicated, uint32_t *slot);

/*
 * Sleeps until everything has passed and gives it back, of live allocations with recorded uses too:
 * for a memory that ends. What a capture stream keeps is given back all the same, and, with a line in
 * the log, what waits for a stream of which no point passed for the device's stall_timeout.
 */
void qi_deferred_finish(quire_memory *memory);

#endif
