/*
 * allocation.h - creates raw allocations, and reads and changes their records.
 *
 * No function requires a lock. The lock of an allocation's shard protects its name and user data;
 * the rest of the record does not change while the allocation is in use (qi_slot_begin_use).
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_ALLOCATION_H
#define QUIRE_SRC_CORE_ALLOCATE_ALLOCATION_H

#include "src/core/allocate/allocate_on.h"
#include "src/core/allocate/ladder.h"
#include "src/core/state/event.h"

/* How an allocation is created; combined by or. */
enum {
    QI_COMMITTED = 1, /* phase LIVE; without it RESERVED */
    QI_UNAIDED = 2    /* without the application's on_out_of_memory */
};

/*
 * Serves a request from its options, on their stream or with the whole ladder. `failed` is the
 * error of the fast path, or SUCCESS if that found no room.
 */
QUIRE_MUST_USE quire_result qi_allocation_place(quire_memory *memory,
                                                const quire_allocation_options *options, int how,
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
                                                 const quire_allocation_options *options, int how,
                                                 quire_allocation *allocation);
QUIRE_MUST_USE QI_ALWAYS_INLINE quire_result
qi_allocation_create_inline(quire_memory *memory, const quire_allocation_options *options, int how,
                            quire_allocation *allocation)
{
    uint32_t slot = 0;
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (qi_request_is_plain(memory, options)) {
        const qi_range_request request = qi_range_request_from(options);
        result = qi_allocate_fast(memory, &request, &slot);
    }
    if (result)
        result = qi_allocation_place(
            memory, options, how, result == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : result, &slot);
    if (!result)
        qi_allocation_publish(memory, slot, how & QI_COMMITTED ? QI_PHASE_LIVE : QI_PHASE_RESERVED,
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

#endif
