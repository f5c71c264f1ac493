/*
 * allocation.c - raw allocations: their creation beyond the fast path, and their records.
 */
#include "src/core/allocate/allocation.h"

#include <stdio.h>
#include <string.h>

#include "src/base/result.h"
#include "src/core/find/addresses.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/core/slot/slot.h"

/*
 * The fast path of a memory with find_by_address, where max_fast_size is 0 so that no other memory
 * tests for the option. Returns NO_SPACE if the ladder has to serve the request.
 */
static quire_result place_with_address(quire_memory *memory,
                                       const quire_allocation_options *options, int how,
                                       uint32_t *slot)
{
    if (!qi_request_is_plain_up_to(memory, options, memory->addresses->max_fast_size))
        return QUIRE_ERROR_NO_SPACE;
    qi_range_request request = qi_range_request_from(options);
    request.extras = QI_EXTRA_ADDRESS;
    quire_result result = qi_allocate_fast(memory, &request, slot);
    if (result || qi_addresses_add(memory, *slot, how & QI_COMMITTED))
        return result;
    qi_release_unpublished(memory, *slot);
    return qi_addresses_refuse();
}

quire_result qi_allocation_place(quire_memory *memory, const quire_allocation_options *options,
                                 int how, quire_result failed, uint32_t *slot)
{
    qi_request request;
    if (memory->addresses) { /* nothing has failed: the request was not plain */
        failed = place_with_address(memory, options, how, slot);
        if (!failed)
            return QUIRE_SUCCESS;
        failed = failed == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : failed;
    }
    quire_result result = qi_request_from(memory, options, &request);
    request.is_unaided = how & QI_UNAIDED;
    request.reserved = !(how & QI_COMMITTED);
    return result ? result : qi_allocate(memory, &request, failed, slot);
}

quire_result qi_allocation_create(quire_memory *memory, const quire_allocation_options *options,
                                  int how, quire_allocation *allocation)
{
    uint32_t slot = 0;
    if (!options->stream)
        return qi_allocation_create_inline(memory, options, how, allocation);
    quire_result result = qi_allocate_on(memory, options, how, &slot);
    if (!result)
        qi_allocation_publish(memory, slot, how & QI_COMMITTED ? QI_PHASE_LIVE : QI_PHASE_RESERVED,
                              options->alignment, options->stream, options->info, allocation);
    return result;
}

quire_result qi_allocation_adopt(quire_memory *memory, const void *description,
                                 const quire_allocation_options *options,
                                 quire_allocation *allocation)
{
    qi_request request;
    uint32_t slot = 0;
    quire_result result = qi_request_from(memory, options, &request);
    if (result)
        return result;
    if (options->stream)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_page_adopt: adopted memory has no stream");
    if (options->existing_pages)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_page_adopt: existing_pages is set, and adopted memory becomes a page "
                       "of its own");
    request.tied = true;
    request.description = description;
    result = qi_allocate(memory, &request, QUIRE_SUCCESS, &slot);
    if (!result)
        qi_allocation_publish(memory, slot, QI_PHASE_LIVE, options->alignment, NULL, options->info,
                              allocation);
    return result;
}

/* ---- reading ------------------------------------------------------------------------------ */

/*
 * Returns the device address of a slot in use, or 0. A page may come without an address and have
 * one that the backend reports on request. Only a buffer made of quire_buffer_options has a usage;
 * for one made of the backend's own description it is unknown whether its address may be queried.
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

/* Requires the shard's lock, or a PRIVATE slot. Copies the record. */
static void copy_record(quire_memory *memory, uint32_t slot, quire_allocation_info *info)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    *info = (quire_allocation_info){
        .page = page->number,
        .dedicated = page->dedicated,
        .offset = record->offset,
        .left_padding = record->left_padding,
        .size = record->size,
        .requested = record->requested,
        .user_data = qi_slot_user_data(record),
        .object = record->object,
        .native = qi_slot_native(record),
        .host = qi_page_map_lasting(memory, slot),
    };
}

void qi_allocation_describe_private(quire_memory *memory, uint32_t slot, qi_phase phase,
                                    quire_allocation_info *info)
{
    copy_record(memory, slot, info);
    info->committed = phase == QI_PHASE_LIVE;
    info->address = address_of(memory, slot, info);
}

void qi_allocation_describe(quire_memory *memory, uint32_t slot, quire_allocation_info *info)
{
    qi_lock *lock = &qi_shard_of_slot(memory, slot)->lock;
    qi_lock_acquire(lock);
    copy_record(memory, slot, info);
    qi_lock_release(lock);
    info->committed = qi_slot_phase(&memory->slots, slot) == QI_PHASE_LIVE;
    info->map_count = qi_slot_map_count(&memory->slots, slot);
    info->address = address_of(memory, slot, info);
}

/* Reading is allowed before the allocation is committed. */
enum { ACCEPT_ANY = QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED };

quire_result qi_allocation_get_info(quire_memory *memory, quire_allocation allocation,
                                    quire_allocation_info *info)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, ACCEPT_ANY, &slot);
    if (result)
        return result;
    qi_allocation_describe(memory, slot, info);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}

quire_result qi_allocation_get_map_count(quire_memory *memory, quire_allocation allocation,
                                         uint32_t *count)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, ACCEPT_ANY, &slot);
    if (result)
        return result;
    *count = qi_slot_map_count(&memory->slots, slot);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}

quire_result qi_allocation_get_name(quire_memory *memory, quire_allocation allocation, char *name,
                                    size_t size)
{
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

/* ---- changing ----------------------------------------------------------------------------- */

/*
 * Requires the shard's lock. Puts the name of `made` (NULL: no name) into the record. Returns the
 * meta record that is left over, or NULL.
 */
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

/* Exchanges the name within the limits of names. Takes ownership of `made`, also on failure. */
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
    qi_slot_meta_release(&memory->host, made);
    return result;
}

quire_result qi_allocation_set_slot_name(quire_memory *memory, uint32_t slot, const char *name)
{
    qi_slot_meta *made = NULL;
    quire_result result = qi_slot_meta_create(&memory->host, name, 0, false, &made);
    return result ? result : rename_slot(memory, slot, made);
}

quire_result qi_allocation_set_name(quire_memory *memory, quire_allocation allocation,
                                    const char *name)
{
    if (name && strlen(name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of %u byte%s: %u are allowed",
                            strlen(name), QUIRE_MAX_NAME);
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = qi_allocation_set_slot_name(memory, slot, name);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/*
 * Requires the shard's lock. The record of an object stores the native handle in place of the user
 * data, which a meta record then holds. Fails with OUT_OF_HOST_MEMORY.
 */
static quire_result keep_user_data(quire_memory *memory, qi_slot *record, uint64_t user_data)
{
    if (!record->object) {
        record->user_data = user_data;
        return QUIRE_SUCCESS;
    }
    if (!record->meta && user_data)
        record->meta = qi_slot_meta_create_empty(&memory->host);
    if (record->meta)
        record->meta->user_data = user_data;
    else if (user_data)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for an object's user data");
    return QUIRE_SUCCESS;
}

quire_result qi_allocation_set_user_data(quire_memory *memory, quire_allocation allocation,
                                         uint64_t user_data)
{
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
