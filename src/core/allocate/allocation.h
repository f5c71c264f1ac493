/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation.h - raw allocations, which are published last: no thread has the handle of an
 * incomplete one. Also reads and changes their records.
 *
 * No function requires a lock. The lock of an allocation's shard protects its name and user data;
 * the rest of the record does not change while the allocation is in use (qi_slot_begin_use).
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_ALLOCATION_H
#define QUIRE_SRC_CORE_ALLOCATE_ALLOCATION_H

#include "src/core/allocate/ladder.h"
#include "src/core/deferred/deferred_reuse.h"
#include "src/core/state/event.h"
#include "src/core/state/memory.h"

/* How an allocation is created; combined by or. */
enum {
    QI_COMMITTED = 1,    /* phase LIVE; without it RESERVED */
    QI_SKIP_CALLBACK = 2 /* without the application's on_out_of_memory */
};

/*
 * Serves a request from its options, on their stream or with the whole ladder. `failed` is the
 * error of the fast path, or SUCCESS if that found no room.
 */
QUIRE_MUST_USE quire_result qi_allocation_place(quire_memory *memory,
                                                const quire_allocation_options *options, int flags,
                                                quire_result failed, uint32_t *slot);

/* Describes a PRIVATE slot that will be published in this phase. Takes no lock. */
void qi_allocation_describe_private(quire_memory *memory, uint32_t slot, qi_phase phase,
                                    quire_allocation_info *info);

/*
 * Publish a PRIVATE slot as the caller's allocation and call the hook. `info` may be NULL: it is
 * filled before, while no other thread can change the record. `alignment` and `stream` are those of
 * the request, for the event. The first is for a batch, which can still take the allocation back:
 * the caller calls qi_memory_catch_up once the batch has succeeded.
 */
static inline void qi_allocation_publish_early(quire_memory *memory, uint32_t slot, qi_phase phase,
                                               uint64_t alignment, quire_stream *stream,
                                               quire_allocation_info *info,
                                               quire_allocation *allocation)
{
    if (qi_unlikely(info != NULL))
        qi_allocation_describe_private(memory, slot, phase, info);
    qi_event_allocated(memory, slot, alignment, stream);
    *allocation = qi_slot_publish(&memory->slots, slot, phase);
}
static inline void qi_allocation_publish(quire_memory *memory, uint32_t slot, qi_phase phase,
                                         uint64_t alignment, quire_stream *stream,
                                         quire_allocation_info *info, quire_allocation *allocation)
{
    qi_memory_catch_up(memory);
    qi_allocation_publish_early(memory, slot, phase, alignment, stream, info, allocation);
}

/*
 * Creates an allocation from checked pointers. Fails as quire_allocate; *allocation and
 * *options->info are unchanged then. The inline form requires options without a stream;
 * quire_allocate uses it, because the fast path of programs is here.
 */
QUIRE_MUST_USE quire_result qi_allocation_create(quire_memory *memory,
                                                 const quire_allocation_options *options, int flags,
                                                 quire_allocation *allocation);
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result
qi_allocation_create_inline(quire_memory *memory, const quire_allocation_options *options,
                            int flags, quire_allocation *allocation)
{
    uint32_t slot = 0;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (qi_request_is_plain(memory, options)) {
        const qi_range_request request = qi_range_request_from(options);
        result = qi_allocate_fast(memory, &request, &slot);
    }
    if (result)
        result = qi_allocation_place(
            memory, options, flags, result == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : result, &slot);
    if (!result)
        qi_allocation_publish(memory, slot,
                              flags & QI_COMMITTED ? QI_PHASE_LIVE : QI_PHASE_RESERVED,
                              options->alignment, NULL, options->info, allocation);
    return result;
}

/* As quire_page_adopt, for checked pointers. */
QUIRE_MUST_USE quire_result qi_allocation_adopt(quire_memory *memory, const void *description,
                                                const quire_allocation_options *options,
                                                quire_allocation *allocation);

/* Describes a slot that the caller has in use. */
void qi_allocation_describe(quire_memory *memory, uint32_t slot, quire_allocation_info *info);

/* As the public functions of these names, for checked pointers. Fail for stale and foreign
   handles. */
QUIRE_MUST_USE quire_result qi_allocation_get_info(quire_memory *memory,
                                                   quire_allocation allocation,
                                                   quire_allocation_info *info);
QUIRE_MUST_USE quire_result qi_allocation_get_map_count(quire_memory *memory,
                                                        quire_allocation allocation,
                                                        uint32_t *count);
QUIRE_MUST_USE quire_result qi_allocation_get_name(quire_memory *memory,
                                                   quire_allocation allocation, char *name,
                                                   size_t size);
QUIRE_MUST_USE quire_result qi_allocation_set_name(quire_memory *memory,
                                                   quire_allocation allocation, const char *name);
/* The same for a slot that the caller owns or has in use. */
QUIRE_MUST_USE quire_result qi_allocation_set_slot_name(quire_memory *memory, uint32_t slot,
                                                        const char *name);
QUIRE_MUST_USE quire_result qi_allocation_set_user_data(quire_memory *memory,
                                                        quire_allocation allocation,
                                                        uint64_t user_data);

/* ---- in the order of a stream ------------------------------------------------------------- */

/*
 * No function requires a lock. Invariant: a reused range serves work that is submitted to the
 * stream after the call; earlier work on it may still run.
 */

/*
 * Places the request of options with a stream, and completes it: the slot is PRIVATE and only has
 * to be published. Prefers ranges that were freed on the stream; their points need not have passed.
 * `flags` as in allocation.h. Fails as quire_allocate, with the refusal counted.
 */
QUIRE_MUST_USE quire_result qi_allocate_on(quire_memory *memory,
                                           const quire_allocation_options *options, int flags,
                                           uint32_t *slot);

/*
 * Does what can still fail after the placement on a stream: sets the name, and records the use of a
 * capture stream. The caller gives back the slot on failure.
 */
QUIRE_MUST_USE quire_result qi_allocate_on_complete(quire_memory *memory, uint32_t slot,
                                                    const char *name, quire_stream *stream);

/* ---- the hot path ------------------------------------------------------------------------- */

/* The common case: what was freed on the stream, or a range of an existing page. */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_on_fast(
    quire_memory *memory, const quire_allocation_options *options, uint8_t extras, uint32_t *slot)
{
    qi_range_request request = qi_range_request_from(options);
    request.extras = extras;
    qi_shard *shard = qi_shard_mine(memory);
    qi_shard_enter(shard);
    quire_result result = qi_deferred_reuse_at_once(shard, options->stream, &request, slot)
                              ? QUIRE_SUCCESS
                              : qi_allocate_in_shard(shard, &request, slot);
    qi_lock_release(&shard->lock);
    return result;
}

/* Everything else. The common case saves no registers for it. */
QUIRE_MUST_USE quire_result qi_allocate_on_slow(quire_memory *memory,
                                                const quire_allocation_options *options, int flags,
                                                uint32_t *slot);

/* As qi_allocate_on. Any failure of the common case leads to the ladder, which reports it. */
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result qi_allocate_on_inline(
    quire_memory *memory, const quire_allocation_options *options, int flags, uint32_t *slot)
{
    if (!options->stream->capture && qi_request_is_plain(memory, options) &&
        !qi_allocate_on_fast(memory, options, 0, slot))
        return QUIRE_SUCCESS;
    return qi_allocate_on_slow(memory, options, flags, slot);
}

/* ---- many at once ------------------------------------------------------------------------- */

/*
 * No function requires a lock. Plain ranges of the thread's shard need one hold of its lock for up
 * to QI_MAX_BATCH of them. Invariant: on failure no allocation was created or freed, with the one
 * exception of qi_free_batch.
 */

/* Makes `count` equal allocations, or none. Fails as quire_allocate. */
QUIRE_MUST_USE quire_result qi_allocate_batch(quire_memory *memory,
                                              const quire_allocation_options *options,
                                              quire_allocation *allocations, uint64_t count);

/*
 * Frees all, or none if one of the handles fails. CORRUPTED is different: all were freed, and a
 * checked build found bytes written beside one of them.
 */
QUIRE_MUST_USE quire_result qi_free_batch(quire_memory *memory, const quire_allocation *allocations,
                                          uint64_t count);

/* ---- in one of several memories ----------------------------------------------------------- */

/*
 * Two rounds, each from the first memory to the last. In the first round each memory uses its own
 * means. In the second round only the memories with an on_out_of_memory are tried, and it is
 * called.
 *
 * No function requires a lock. A qi_fallback belongs to the calling thread.
 */

typedef struct qi_fallback {
    quire_memory *const *memories;
    uint32_t count;
    void *work; /* of the kind that `make` works on */
    /* Creates it in one memory. With skip_callback, the memory's on_out_of_memory is not called. */
    quire_result (*make)(void *work, quire_memory *memory, bool skip_callback);
} qi_fallback;

/*
 * Checks the list of memories and the pointers of a public call, and sets *chosen to 0. The callers
 * pass unchecked pointers, so that all functions report the same text. Fails with INVALID_ARGUMENT.
 */
QUIRE_MUST_USE quire_result qi_fallback_check(const char *call, quire_memory *const *memories,
                                              uint32_t count, const void *options, uint32_t *chosen,
                                              const void *made);

/*
 * Sets *chosen to the index of the memory, to 0 on failure. INVALID_ARGUMENT of any memory ends the
 * search and is returned. Otherwise the last error of the first memory is returned. The list must
 * have been checked.
 */
QUIRE_MUST_USE quire_result qi_fallback_run(const qi_fallback *fallback, uint32_t *chosen);

#endif
