/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation.c - raw allocations beyond the fast path: the ladder places each, and its slot is
 * completed before it is published. A group of equal ones is placed under one hold of the shard's
 * lock, or else one by one. A batch of frees claims all handles before it releases a slot.
 */
#include "src/core/allocate/allocation.h"

#include <stdio.h>
#include <string.h>

#include "src/base/result.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/deferred/deferred_free.h"
#include "src/core/deferred/deferred_reuse.h"
#include "src/core/find/addresses.h"
#include "src/core/page/backing.h"
#include "src/core/page/empty.h"
#include "src/core/page/lazy.h"
#include "src/core/page/life.h"
#include "src/core/page/map.h"
#include "src/core/page/range.h"
#include "src/core/slot/slot.h"

/*
 * The fast path of a memory with find_by_address, where max_fast_size is 0 so that no other memory
 * tests for the option. Returns NO_SPACE if the ladder has to serve the request.
 */
static quire_result place_with_address(quire_memory *memory,
                                       const quire_allocation_options *options, int flags,
                                       uint32_t *slot)
{
    if (!qi_request_is_plain_up_to(memory, options, memory->addresses->max_fast_size))
        return QUIRE_ERROR_NO_SPACE;
    qi_range_request request = qi_range_request_from(options);
    request.extras |= memory->is_movable ? QI_EXTRA_ADDRESS | QI_EXTRA_MOVABLE : QI_EXTRA_ADDRESS;
    quire_result result = qi_allocate_fast(memory, &request, slot);
    if (result || qi_addresses_add(memory, *slot, flags & QI_COMMITTED))
        return result;
    qi_release_unpublished(memory, *slot);
    return qi_addresses_refuse();
}

quire_result qi_allocation_place(quire_memory *memory, const quire_allocation_options *options,
                                 int flags, quire_result failed, uint32_t *slot)
{
    qi_request request;
    if (memory->addresses) { /* nothing has failed: the request was not plain */
        failed = place_with_address(memory, options, flags, slot);
        if (!failed)
            return QUIRE_SUCCESS;
        failed = failed == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : failed;
    }
    quire_result result = qi_request_from(memory, options, &request);
    request.skip_callback = flags & QI_SKIP_CALLBACK;
    request.reserved = !(flags & QI_COMMITTED);
    return result ? result : qi_allocate(memory, &request, failed, slot);
}

quire_result qi_allocation_create(quire_memory *memory, const quire_allocation_options *options,
                                  int flags, quire_allocation *allocation)
{
    uint32_t slot = 0;
    if (!options->stream)
        return qi_allocation_create_inline(memory, options, flags, allocation);
    quire_result result = qi_allocate_on(memory, options, flags, &slot);
    if (!result)
        qi_allocation_publish(memory, slot,
                              flags & QI_COMMITTED ? QI_PHASE_LIVE : QI_PHASE_RESERVED,
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
    if (info->page == QUIRE_NO_PAGE)
        return 0;
    if (!base) {
        bool is_known = info->object == QUIRE_OBJECT_BUFFER && qi_memory_slot(memory, slot)->usage;
        uint64_t buffer = is_known ? info->native : 0;
        base = qi_device_address(memory->device, &memory->calls, page, buffer);
        if (buffer)
            return base;
    }
    return base ? base + info->offset : 0;
}

/* The part of the page whose memory holds an allocation. */
static void describe_extent(const qi_page *page, quire_allocation_info *info)
{
    const uint64_t chunk = page->shard->memory->chunk;
    info->extent_size = page->native.native.size;
    if (!page->elastic)
        return;
    info->extent_offset = qi_align_down(info->offset - info->left_padding, chunk);
    info->extent_size = qi_align_up(info->offset + info->size, chunk) - info->extent_offset;
}

/* Requires the shard's lock, or a PRIVATE slot. Copies the record. */
static void copy_record(quire_memory *memory, uint32_t slot, quire_allocation_info *info)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    *info = (quire_allocation_info){
        .page = page->number,
        .dedicated = page->dedicated,
        .asleep = record->extras & QI_EXTRA_ASLEEP,
        .offset = record->offset,
        .left_padding = qi_slot_padding(record),
        .size = qi_slot_extent(record),
        .requested = qi_slot_usable(record),
        .backed = record->size,
        .user_data = qi_slot_user_data(record),
        .object = record->object,
        .native = qi_slot_native(record),
        .host = qi_page_map_lasting(memory, slot),
    };
    describe_extent(page, info);
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
    info->committed = qi_slot_phase(&memory->slots, slot) != QI_PHASE_RESERVED;
    info->map_count = qi_slot_map_count(&memory->slots, slot);
    info->address = address_of(memory, slot, info);
}

/* Reading is allowed before the allocation is committed. */
enum { ACCEPT_ANY = QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED | QI_ACCEPT_ASLEEP };

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
    } else if (record->object != QUIRE_OBJECT_IMAGE && !kept->user_data && !kept->uses &&
               !kept->lazy) {
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
    quire_result result = qi_slot_meta_create(&memory->host, name, 0, 0, &made);
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

/* ---- in the order of a stream ------------------------------------------------------------- */

/*
 * The name is given after the range is placed, so that a reused slot is renewed without one.
 */

quire_result qi_allocate_on_complete(quire_memory *memory, uint32_t slot, const char *name,
                                     quire_stream *stream)
{
    quire_result result = QUIRE_SUCCESS;
    if (name)
        result = qi_allocation_set_slot_name(memory, slot, name);
    if (!result && stream->capture)
        result = qi_record_slot_use(memory, slot, stream);
    return result;
}

/* Takes back a slot that cannot be completed, and reports the refusal. Returns `result`. */
static quire_result refuse(quire_memory *memory, const quire_allocation_options *options,
                           uint32_t slot, qi_reuse *reuse, quire_result result)
{
    qi_error error;
    qi_error_save(&error);
    qi_allocate_undo(memory, slot, reuse);
    qi_error_restore(&error);
    const qi_oom_request request = {.name = options->name,
                                    .size = options->size,
                                    .alignment = options->alignment + !options->alignment};
    return qi_oom_report(memory, &request, result);
}

/* The common case for a memory with find_by_address: see place_with_address. */
static quire_result allocate_with_address(quire_memory *memory,
                                          const quire_allocation_options *options, int flags,
                                          uint32_t *slot)
{
    if (options->stream->capture ||
        !qi_request_is_plain_up_to(memory, options, memory->addresses->max_fast_size) ||
        qi_allocate_on_fast(memory, options, QI_EXTRA_ADDRESS, slot))
        return QUIRE_ERROR_NO_SPACE;
    if (qi_addresses_add(memory, *slot, flags & QI_COMMITTED))
        return QUIRE_SUCCESS;
    qi_release_unpublished(memory, *slot); /* it is new: a range that is reused was added before */
    return qi_addresses_refuse();
}

/* Climbs the ladder. The name is given later (qi_allocate_on_complete), but its limits are
   checked in the ladder. */
static quire_result place(quire_memory *memory, const quire_allocation_options *options, int flags,
                          quire_result failed, uint32_t *slot, qi_reuse *reuse)
{
    qi_request request;
    quire_result result = qi_request_from(memory, options, &request);
    if (result)
        return result;
    request.stream = options->stream;
    request.reuse = reuse;
    request.skip_callback = flags & QI_SKIP_CALLBACK;
    request.reserved = !(flags & QI_COMMITTED);
    request.deferred_name = request.name;
    request.name = NULL;
    return qi_allocate(memory, &request, failed, slot);
}

quire_result qi_allocate_on_slow(quire_memory *memory, const quire_allocation_options *options,
                                 int flags, uint32_t *slot)
{
    qi_reuse reuse = {.wait = NULL};
    quire_result result = QUIRE_ERROR_NO_SPACE;
    if (memory->addresses)
        result = allocate_with_address(memory, options, flags, slot);
    if (!result)
        return QUIRE_SUCCESS;
    result = place(memory, options, flags, result == QUIRE_ERROR_NO_SPACE ? QUIRE_SUCCESS : result,
                   slot, &reuse);
    if (result)
        return result;
    result = qi_allocate_on_complete(memory, *slot, options->name, options->stream);
    if (result)
        return refuse(memory, options, *slot, &reuse, result);
    if (reuse.wait)
        qi_deferred_end_reuse(memory, *slot, &reuse);
    return QUIRE_SUCCESS;
}

quire_result qi_allocate_on(quire_memory *memory, const quire_allocation_options *options,
                            int flags, uint32_t *slot)
{
    return qi_allocate_on_inline(memory, options, flags, slot);
}

/* ---- many at once ------------------------------------------------------------------------- */

/* Slots and placements of a group, until the records are filled. */
typedef struct group {
    uint32_t slots[QI_MAX_BATCH];
    quire_placement placements[QI_MAX_BATCH];
} group;

/* Requires the lock. Takes slots, which the ranges refer to. Returns how many it got. */
static uint32_t take_slots(qi_shard *shard, group *g, uint32_t count)
{
    quire_memory *memory = shard->memory;
    for (uint32_t i = 0; i < count; i++) {
        if (qi_slot_take(&memory->slots, &shard->queue, &memory->host, &g->slots[i]))
            return i;
        g->placements[i] = (quire_placement){.user = g->slots[i]};
    }
    return count;
}

/* Requires the lock. Returns false, and changes nothing, if not all of the group fits. */
static bool take_group(qi_shard *shard, const qi_range_request *range, group *g, uint32_t count)
{
    uint32_t taken = take_slots(shard, g, count);
    if (taken == count && !qi_space_allocate_batch(shard->space, range->size, range->alignment, 0,
                                                   g->placements, count)) {
        for (uint32_t i = 0; i < count; i++)
            qi_range_fill_record(shard, range, g->slots[i], &g->placements[i]);
        return true;
    }
    while (taken-- > 0)
        qi_slot_give(&shard->memory->slots, &shard->queue, g->slots[taken]);
    return false;
}

/*
 * Requires the lock. Releases and reacquires it. Gives an elastic page room for the whole group at
 * once. Returns false if that is not possible; the group is then placed one by one.
 */
static bool back_group(qi_shard *shard, const qi_range_request *range, group *g, uint32_t count,
                       qi_page_progress *progress)
{
    const uint64_t alignment = range->alignment + !range->alignment;
    const uint64_t unit = alignment > shard->memory->granule ? alignment : shard->memory->granule;
    uint64_t size = 0, all = 0;
    qi_resize_result outcome = QI_RESIZE_AWAITED;
    if (!qi_backing_page(shard) || qi_align_up_overflows(range->size, unit, &size) ||
        __builtin_mul_overflow(size, count, &all))
        return false;
    while (outcome == QI_RESIZE_AWAITED) {
        if (qi_backing_make_room(shard, all, alignment, &outcome, progress))
            return false;
        if (take_group(shard, range, g, count))
            return true;
    }
    return false;
}

/* Equal allocations that are made in groups. */
typedef struct batch {
    quire_memory *memory;
    const quire_allocation_options *options;
    qi_request request; /* of the options; without their stream */
    quire_allocation *allocations;
    uint64_t made; /* how many are LIVE */
} batch;

/* Makes a PRIVATE slot the next allocation of the batch. */
static void publish(batch *b, uint32_t slot)
{
    quire_allocation_info *info = b->options->info;
    qi_allocation_publish_early(b->memory, slot, QI_PHASE_LIVE, b->options->alignment,
                                b->options->stream, info ? &info[b->made] : NULL,
                                &b->allocations[b->made]);
    b->made++;
}

/* Places a group of plain ranges in existing pages. Returns false if that is not possible. */
static bool place_group(batch *b, uint32_t count)
{
    quire_memory *memory = b->memory;
    if (b->options->stream || !qi_request_is_fast(memory, &b->request))
        return false;
    group g;
    qi_error before;
    qi_error_save(&before);
    qi_shard *shard = qi_shard_mine(memory);
    qi_range_request range = b->request.range;
    range.extras |= b->request.host_use & QI_HOST_MAPPED ? QI_EXTRA_MAPPED : 0;
    qi_page_progress progress = {.within_budget = memory->within_budget};
    qi_shard_enter(shard);
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    bool is_placed = take_group(shard, &range, &g, count) ||
                     (!leaving && back_group(shard, &range, &g, count, &progress));
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(memory, leaving);
    qi_page_events_report(memory, &progress.events, "");
    for (uint32_t i = 0; i < count && is_placed; i++)
        publish(b, g.slots[i]);
    if (!is_placed)
        qi_error_restore(&before);
    return is_placed;
}

/* Places a group one by one, on the stream or with the whole ladder. */
static quire_result place_each(batch *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = 0;
        quire_result result = b->options->stream
                                  ? qi_allocate_on(b->memory, b->options, QI_COMMITTED, &slot)
                                  : qi_allocate(b->memory, &b->request, QUIRE_SUCCESS, &slot);
        if (result)
            return result;
        publish(b, slot);
    }
    return QUIRE_SUCCESS;
}

/*
 * Frees an allocation of a batch on a stream. Earlier work of the stream may still use its range.
 * Without host memory for a deferred free the thread waits for that work. The statistics count the
 * allocation and the free.
 */
static void take_back_on(quire_memory *memory, quire_allocation allocation, quire_stream *stream)
{
    uint64_t value = 0;
    if (qi_deferred_claim_and_free(memory, allocation, stream, 0) != QUIRE_ERROR_OUT_OF_HOST_MEMORY)
        return;
    if (!qi_stream_mark(stream, &value) && !qi_stream_await(stream, value, QUIRE_FOREVER))
        qi_ignore(qi_claim_and_free(memory, allocation, QI_ACCEPT_LIVE)); /* CORRUPTED is logged */
}

/* Takes back the allocations made so far. The caller has not received their handles. */
static void undo(const batch *b)
{
    uint32_t slot = 0;
    qi_error error;
    qi_error_save(&error);
    for (uint64_t i = 0; i < b->made; i++)
        if (b->options->stream) {
            take_back_on(b->memory, b->allocations[i], b->options->stream);
        } else if (!qi_slot_claim(&b->memory->slots, b->allocations[i], QI_ACCEPT_LIVE, &slot)) {
            qi_event_freed(b->memory, slot, NULL);
            qi_checked_await_reader(b->memory, slot);
            qi_release_unpublished(b->memory, slot);
        }
    qi_error_restore(&error);
}

/* A group that does not fit at once is placed one by one; the next group is tried at once again. */
quire_result qi_allocate_batch(quire_memory *memory, const quire_allocation_options *options,
                               quire_allocation *allocations, uint64_t count)
{
    batch b = {.memory = memory, .options = options, .allocations = allocations};
    quire_result result = qi_request_from(memory, options, &b.request);
    while (!result && b.made < count) {
        uint64_t left = count - b.made;
        uint32_t part = left < QI_MAX_BATCH ? (uint32_t)left : QI_MAX_BATCH;
        if (!place_group(&b, part))
            result = place_each(&b, part);
    }
    if (result)
        undo(&b);
    else
        qi_memory_catch_up(memory);
    return result;
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* The error of an allocation that cannot be claimed; those before it are claimed. */
static quire_result refuse_claim(const quire_allocation *allocations, uint64_t index,
                                 quire_result result)
{
    for (uint64_t i = 0; i < index; i++)
        if (allocations[i].id == allocations[index].id)
            return qi_fail_with(result, "allocation %x occurs twice in the list: nothing is freed",
                                allocations[i].id);
    return result;
}

/* Claims all allocations, or none. Fails as quire_free does for the first one that cannot be
   claimed. */
static quire_result claim_all(quire_memory *memory, const quire_allocation *allocations,
                              uint64_t count)
{
    uint32_t slot = 0;
    for (uint64_t i = 0; i < count; i++) {
        quire_result result = qi_slot_claim(&memory->slots, allocations[i], QI_ACCEPT_LIVE, &slot);
        if (!result)
            continue;
        result = refuse_claim(allocations, i, result);
        while (i-- > 0) /* publishes the claimed ones again: their handles stay valid */
            qi_slot_unclaim(&memory->slots, qi_handle_slot(allocations[i].id));
        return result;
    }
    return QUIRE_SUCCESS;
}

/* The claimed slots of a group, sorted by what their release needs. */
typedef struct sorting {
    uint32_t plain[QI_MAX_BATCH], other[QI_MAX_BATCH];
    quire_range ranges[QI_MAX_BATCH]; /* of the plain ones, in shared pages */
    uint32_t plain_count, other_count, range_count;
} sorting;

/* A plain slot needs nothing but the release of a range in this shard. */
static void sort(const quire_memory *memory, const qi_shard *shard,
                 const quire_allocation *allocations, uint32_t count, sorting *p)
{
    p->plain_count = p->other_count = p->range_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = qi_handle_slot(allocations[i].id);
        const qi_slot *record = qi_memory_slot(memory, slot);
        if (QI_IS_CHECKED || record->meta || record->extras || record->shard != shard->index) {
            p->other[p->other_count++] = slot;
            continue;
        }
        p->plain[p->plain_count++] = slot;
        if (record->range.id) /* 0 on a dedicated page */
            p->ranges[p->range_count++] = record->range;
    }
}

/*
 * Frees a group of claimed allocations. Sets *corruption to CORRUPTED if bytes beside one of them
 * were written (checked builds).
 */
static void free_group(quire_memory *memory, const quire_allocation *allocations, uint32_t count,
                       quire_result *corruption)
{
    sorting p;
    qi_shard *shard = qi_shard_mine(memory);
    sort(memory, shard, allocations, count, &p);
    for (uint32_t i = 0; i < p.plain_count; i++)
        qi_event_freed(memory, p.plain[i], NULL);
    qi_lock_acquire(&shard->lock);
    qi_ignore(qi_space_free_batch(shard->space, p.ranges,
                                  p.range_count)); /* all ranges are live: this cannot fail */
    for (uint32_t i = 0; i < p.plain_count; i++)
        qi_shard_note_given(
            shard, qi_range_give_slot(shard, qi_memory_slot(memory, p.plain[i]), p.plain[i]));
    qi_page *leaving = qi_shard_catch_up(shard, NULL);
    qi_lock_release(&shard->lock);
    if (leaving)
        qi_pages_destroy(memory, leaving);
    for (uint32_t i = 0; i < p.other_count; i++)
        if (qi_deferred_free(memory, p.other[i]))
            *corruption = QUIRE_ERROR_CORRUPTED;
}

quire_result qi_free_batch(quire_memory *memory, const quire_allocation *allocations,
                           uint64_t count)
{
    quire_result result = claim_all(memory, allocations, count), corruption = QUIRE_SUCCESS;
    for (uint64_t begin = 0; begin < count && !result; begin += QI_MAX_BATCH) {
        uint64_t left = count - begin;
        free_group(memory, allocations + begin, left < QI_MAX_BATCH ? (uint32_t)left : QI_MAX_BATCH,
                   &corruption);
    }
    return result ? result : corruption;
}

/* ---- in one of several memories ----------------------------------------------------------- */

quire_result qi_fallback_check(const char *call, quire_memory *const *memories, uint32_t count,
                               const void *options, uint32_t *chosen, const void *made)
{
    if (chosen)
        *chosen = 0;
    if (!memories || !options || !chosen || !made)
        return qi_fail_null(call, !memories  ? "memories"
                                  : !options ? "options"
                                  : !chosen  ? "chosen"
                                             : "the output for the handle");
    for (uint32_t i = 0; i < count; i++)
        if (!memories[i])
            return qi_fail_naming(QUIRE_ERROR_INVALID_ARGUMENT, "%t: memories[%u] is null", call,
                                  i);
    return count ? QUIRE_SUCCESS
                 : qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "%s: the list of memories is empty",
                                call);
}

/* One round over the memories. Sets *error to the error of the first memory, if it fails. */
static quire_result try_all(const qi_fallback *fallback, bool skip_callback, uint32_t *chosen,
                            qi_error *error)
{
    for (uint32_t i = 0; i < fallback->count; i++) {
        if (!skip_callback && !fallback->memories[i]->on_out_of_memory.callback)
            continue; /* the first round was its only attempt */
        quire_result result = fallback->make(fallback->work, fallback->memories[i], skip_callback);
        if (!result)
            *chosen = i;
        if (!result || result == QUIRE_ERROR_INVALID_ARGUMENT)
            return result;
        if (!i)
            qi_error_save(error);
    }
    return error->code;
}

/* Notes in each memory the kinds of its device that have refused the call. */
static void note_kinds(const qi_fallback *fallback, uint64_t since)
{
    quire_memory *const *memories = fallback->memories;
    for (uint32_t i = 0; i < fallback->count; i++) {
        uint32_t kinds = 0;
        for (uint32_t k = 0; k < fallback->count; k++)
            if (memories[k]->device == memories[i]->device)
                kinds |= UINT32_C(1) << memories[k]->kind;
        qi_oom_note_kinds(memories[i], kinds, since);
    }
}

quire_result qi_fallback_run(const qi_fallback *fallback, uint32_t *chosen)
{
    *chosen = 0;
    qi_error before, error;
    uint64_t since = qi_oom_thread_count();
    qi_error_save(&before);
    quire_result result = try_all(fallback, true, chosen, &error);
    if (result && result != QUIRE_ERROR_INVALID_ARGUMENT)
        result = try_all(fallback, false, chosen, &error);
    if (result && result != QUIRE_ERROR_INVALID_ARGUMENT)
        note_kinds(fallback, since);
    if (result != QUIRE_ERROR_INVALID_ARGUMENT) /* its text is the thread's last error already */
        qi_error_restore(result ? &error : &before);
    return result;
}
