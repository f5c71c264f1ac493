/*
 * allocation.h - creates raw allocations, and reads and changes their records.
 *
 * No function requires a lock. The lock of an allocation's shard protects its name and user data;
 * the rest of the record does not change while the allocation is in use (qi_slot_begin_use).
 */
#ifndef QUIRE_SRC_CORE_ALLOCATE_ALLOCATION_H
#define QUIRE_SRC_CORE_ALLOCATE_ALLOCATION_H

#include "src/core/allocate/ladder.h"
#include "src/core/state/event.h"

/* How an allocation is created; combined by or. */
enum {
    QI_COMMITTED = 1, /* phase LIVE; without it RESERVED */
    QI_UNAIDED = 2    /* without the application's on_out_of_memory */
};

/*
 * Serves a request from its options with the whole ladder. `failed` is the error of the fast path,
 * or SUCCESS if that found no room.
 */
QUIRE_MUST_USE quire_result qi_allocation_place(quire_memory *memory,
                                                const quire_allocation_options *options, int how,
                                                quire_result failed, uint32_t *slot);

/* Publishes a PRIVATE slot as the caller's allocation and calls the hook. */
static inline void qi_allocation_publish(quire_memory *memory, uint32_t slot, qi_phase phase,
                                         quire_allocation *allocation)
{
    qi_event_slot(memory, QUIRE_EVENT_ALLOCATED, slot);
    *allocation = qi_slot_publish(&memory->slots, slot, phase);
}

/*
 * Creates an allocation from checked pointers. Inline, because the fast path of programs is here.
 * Fails as quire_allocate; *allocation is unchanged then.
 */
QUIRE_MUST_USE static inline quire_result qi_allocation_create(
    quire_memory *memory, const quire_allocation_options *options, int how,
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
                              allocation);
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
QUIRE_MUST_USE quire_result qi_allocation_set_user_data(quire_memory *memory,
                                                        quire_allocation allocation,
                                                        uint64_t user_data);

#endif
