/*
 * allocation.c - the public calls on allocations: allocate, reserve, commit, abort, free, and
 * asking where they lie. How a place is found is place.c.
 */
#include <stdio.h>
#include <string.h>

#include "src/base/result.h"
#include "src/core/allocate/fallback.h"
#include "src/core/state/event.h"
#include "src/core/slot/slot_meta.h"
#include "src/core/allocate/ladder.h"
#include "src/core/deferred/deferred_free.h"

/* ---- public calls ------------------------------------------------------------------------- */

/* How an allocation is made, or'ed together. */
enum { COMMITTED = 1, UNAIDED = 2 };

/* All others, and what is left to say when a usual one failed. */
static quire_result allocate_with_request(quire_memory *memory,
                                          const quire_allocation_options *options, int how,
                                          quire_result failed, uint32_t *slot)
{
    qi_request request;
    quire_result result = qi_request_from(memory, options, &request);
    request.is_unaided = how & UNAIDED;
    return result ? result : qi_allocate(memory, &request, failed, slot);
}

static inline quire_result place(quire_memory *memory, const quire_allocation_options *options,
                                 int how, uint32_t *slot)
{
    quire_result failed = QUIRE_SUCCESS;
    if (qi_request_is_plain(memory, options)) {
        const qi_range_request range_request = qi_range_request_from(options);
        failed = qi_allocate_fast(memory, &range_request, slot);
        if (!failed)
            return QUIRE_SUCCESS;
        failed = failed == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : failed;
    }
    return allocate_with_request(memory, options, how, failed, slot);
}

/* What was placed becomes the caller's. */
static inline void hand_out(quire_memory *memory, uint32_t slot, qi_phase phase,
                            quire_allocation *allocation)
{
    qi_event_slot(memory, QUIRE_EVENT_ALLOCATED, slot);
    *allocation = qi_slot_publish(&memory->slots, slot, phase);
}

static quire_result reserve(quire_memory *memory, const quire_allocation_options *options, int how,
                            quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocate: memory, options or allocation is null");
    uint32_t slot = 0;
    quire_result result = place(memory, options, how, &slot);
    if (!result)
        hand_out(memory, slot, how & COMMITTED ? QI_PHASE_LIVE : QI_PHASE_RESERVED, allocation);
    return result;
}

quire_result quire_allocate(quire_memory *memory, const quire_allocation_options *options,
                            quire_allocation *allocation)
{
    return reserve(memory, options, COMMITTED, allocation);
}

quire_result quire_reserve(quire_memory *memory, const quire_allocation_options *options,
                           quire_allocation *allocation)
{
    return reserve(memory, options, 0, allocation);
}

static quire_result allocate_in(const qi_fallback *fallback, quire_memory *memory, bool is_unaided)
{
    return reserve(memory, fallback->options, COMMITTED | (is_unaided ? UNAIDED : 0),
                   fallback->made);
}

quire_result quire_allocate_fallback(quire_memory *const *memories, uint32_t count,
                                     const quire_allocation_options *options, uint32_t *chosen,
                                     quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    const qi_fallback fallback = {memories, count, options, allocation, allocate_in};
    return qi_fallback_run(&fallback, chosen);
}

quire_result quire_page_adopt(quire_memory *memory, const void *description,
                              const quire_allocation_options *options, quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !description || !options || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_page_adopt: memory, description, options or allocation is null");
    qi_request request;
    uint32_t slot = 0;
    quire_result result = qi_request_from(memory, options, &request);
    if (result)
        return result;
    request.tied = true;
    request.description = description;
    result = qi_allocate(memory, &request, QUIRE_SUCCESS, &slot);
    if (!result)
        hand_out(memory, slot, QI_PHASE_LIVE, allocation);
    return result;
}

quire_result quire_commit(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_slot_commit(&memory->slots, allocation) : qi_refuse_null_memory();
}

static quire_result leave(quire_memory *memory, quire_allocation allocation, int accept)
{
    if (!memory)
        return qi_refuse_null_memory();
    uint32_t slot = 0;
    quire_result result = qi_slot_claim(&memory->slots, allocation, accept, &slot);
    if (result)
        return result;
    return qi_deferred_free(memory, slot);
}

quire_result quire_abort(quire_memory *memory, quire_allocation allocation)
{
    return leave(memory, allocation, QI_ACCEPT_RESERVED);
}

quire_result quire_free(quire_memory *memory, quire_allocation allocation)
{
    return leave(memory, allocation, QI_ACCEPT_LIVE);
}

/*
 * Of a pinned allocation, without a lock. A page that came with no address may have one that its
 * backend finds out when it is asked. A buffer made of quire_buffer_options has a usage, and one
 * made of a description of the backend's own has none: only of the first is it known that the
 * backend may ask for its address.
 */
static uint64_t address_of(quire_memory *memory, uint32_t slot, const quire_allocation_info *info)
{
    const qi_device_page *page = &qi_memory_page(memory, slot)->native;
    uint64_t base = page->native.address;
    if (!base) {
        bool is_known = info->object == QUIRE_OBJECT_BUFFER && qi_memory_slot(memory, slot)->usage;
        uint64_t buffer = is_known ? info->native : 0;
        base = qi_device_address(memory->device, &memory->calls, page, buffer);
        if (buffer)
            return base;
    }
    return base ? base + info->offset : 0;
}

void qi_allocation_describe(quire_memory *memory, uint32_t slot, quire_allocation_info *info)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    *info = (quire_allocation_info){
        .page = page->number,
        .dedicated = page->dedicated,
        .committed = qi_slot_phase(&memory->slots, slot) == QI_PHASE_LIVE,
        .offset = record->offset,
        .left_padding = record->left_padding,
        .size = record->size,
        .requested = record->requested,
        .map_count = qi_slot_map_count(&memory->slots, slot),
    };
    qi_lock_acquire(&qi_shard_of_slot(memory, slot)->lock);
    info->user_data = qi_slot_user_data(record);
    info->object = record->object;
    info->native = qi_slot_native(record);
    qi_lock_release(&qi_shard_of_slot(memory, slot)->lock);
    info->address = address_of(memory, slot, info);
}

enum { ACCEPT_ANY = QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED };

quire_result quire_allocation_get_info(quire_memory *memory, quire_allocation allocation,
                                       quire_allocation_info *info)
{
    if (info)
        *info = (quire_allocation_info){0};
    if (!memory || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocation_get_info: memory or info is null");
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, ACCEPT_ANY, &slot);
    if (result)
        return result;
    qi_allocation_describe(memory, slot, info);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}

quire_result quire_allocation_get_map_count(quire_memory *memory, quire_allocation allocation,
                                            uint32_t *count)
{
    if (count)
        *count = 0;
    if (!memory || !count)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocation_get_map_count: memory or count is null");
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, ACCEPT_ANY, &slot);
    if (result)
        return result;
    *count = qi_slot_map_count(&memory->slots, slot);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}

quire_result quire_allocation_get_name(quire_memory *memory, quire_allocation allocation,
                                       char *name, size_t size)
{
    if (name && size)
        name[0] = '\0';
    if (!memory || !name || !size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_allocation_get_name: memory or name is null, or size is 0");
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, ACCEPT_ANY, &slot);
    if (result)
        return result;
    qi_lock_acquire(&qi_shard_of_slot(memory, slot)->lock);
    const qi_slot_meta *meta = qi_memory_slot(memory, slot)->meta;
    if (meta && meta->name)
        snprintf(name, size, "%s", meta->name);
    qi_lock_release(&qi_shard_of_slot(memory, slot)->lock);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}

/* With the lock: puts the name of `made` (NULL: none) into a slot; returns what is left over. */
static qi_slot_meta *exchange_name(quire_memory *memory, qi_slot *record, qi_slot_meta *made)
{
    qi_slot_meta *kept = record->meta;
    if (!kept) {
        record->meta = made;
        made = NULL;
    } else if (made) {
        char *old = kept->name;
        kept->name = made->name;
        made->name = old;
    } else if (record->object != QUIRE_OBJECT_IMAGE && !kept->user_data && !kept->uses) {
        record->meta = NULL;
        made = kept;
    } else {
        qi_host_release_text(&memory->host, kept->name);
        kept->name = NULL;
    }
    return made;
}

/* The same within the limits of names; `made` is used up in any case. */
static quire_result rename_slot(quire_memory *memory, uint32_t slot, qi_slot_meta *made)
{
    qi_slot *record = qi_memory_slot(memory, slot);
    qi_lock *lock = &qi_shard_of_slot(memory, slot)->lock;
    qi_lock_acquire(lock);
    const char *old = record->meta ? record->meta->name : NULL;
    quire_result result = qi_names_replace(&memory->names, old, made ? made->name : NULL, record);
    if (!result)
        made = exchange_name(memory, record, made);
    qi_lock_release(lock);
    qi_slot_meta_release(memory, made);
    return result;
}

quire_result quire_allocation_set_name(quire_memory *memory, quire_allocation allocation,
                                       const char *name)
{
    if (!memory)
        return qi_refuse_null_memory();
    if (name && strlen(name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u bytes: %u are allowed",
                            strlen(name), QUIRE_MAX_NAME);
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    qi_slot_meta *made = NULL;
    result = qi_slot_meta_create(memory, name, 0, false, &made);
    if (!result)
        result = rename_slot(memory, slot, made);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* With the lock. */
static quire_result keep_user_data(quire_memory *memory, qi_slot *record, uint64_t user_data)
{
    if (!record->object) {
        record->user_data = user_data;
        return QUIRE_SUCCESS;
    }
    if (!record->meta && user_data)
        record->meta = qi_slot_meta_create_empty(memory);
    if (record->meta)
        record->meta->user_data = user_data;
    else if (user_data)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for an object's user data");
    return QUIRE_SUCCESS;
}

quire_result quire_allocation_set_user_data(quire_memory *memory, quire_allocation allocation,
                                            uint64_t user_data)
{
    if (!memory)
        return qi_refuse_null_memory();
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    qi_lock_acquire(&qi_shard_of_slot(memory, slot)->lock);
    result = keep_user_data(memory, qi_memory_slot(memory, slot), user_data);
    qi_lock_release(&qi_shard_of_slot(memory, slot)->lock);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}
