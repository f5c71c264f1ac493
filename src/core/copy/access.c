/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.c - map, flush, invalidate, write, read and fill: through the map of the page if its kind
 * has one, otherwise through the backend (see access.h).
 *
 * Each call holds a use of the allocation while it works: no thread can free it during the copy. No
 * lock is held while bytes are copied or the backend is called.
 */
#include "src/core/copy/access.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/core/page/lazy.h"
#include "src/core/page/map.h"

static quire_result refuse_device_only(const quire_memory *memory)
{
    return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE,
                        "memory '%s' of kind %u cannot be mapped (%s): use quire_write and "
                        "quire_read, or a host-visible memory",
                        memory->name, memory->kind, qi_flags(memory->flags).text);
}

/* Replaces a size of 0 by the bytes up to `limit`. Returns whether the range is not empty and ends
   there or before. */
static bool resolve(uint64_t limit, uint64_t offset, uint64_t *size)
{
    if (!*size && offset < limit)
        *size = limit - offset;
    return *size && qi_range_fits(offset, *size, limit);
}

quire_result qi_access_resolve_view(uint64_t limit, uint64_t offset, uint64_t *size)
{
    return resolve(limit, offset, size)
               ? QUIRE_SUCCESS
               : qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                              "a range of %u byte%s at offset %u is outside a view of %u byte%s",
                              *size, offset, limit);
}

/* Requires a use of the slot. */
static quire_result refuse_range(const quire_memory *memory, uint32_t slot, uint64_t offset,
                                 uint64_t size)
{
    return qi_fail_naming(QUIRE_ERROR_OUT_OF_RANGE,
                          "a range of %u byte%s at offset %u is outside allocation %x of memory "
                          "'%t', which has %u byte%s",
                          memory->name, size, offset,
                          qi_slot_public_handle(&memory->slots, slot).id,
                          qi_slot_usable(qi_memory_slot(memory, slot)));
}

static quire_result resolve_slot(const quire_memory *memory, uint32_t slot, uint64_t offset,
                                 uint64_t *size)
{
    return resolve(qi_slot_usable(qi_memory_slot(memory, slot)), offset, size)
               ? QUIRE_SUCCESS
               : refuse_range(memory, slot, offset, *size);
}

quire_result qi_access_check_range(quire_memory *memory, quire_allocation allocation,
                                   uint64_t offset, uint64_t *size)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = resolve_slot(memory, slot, offset, size);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

static bool is_mappable(const quire_memory *memory)
{
    return (memory->flags & QUIRE_HOST_VISIBLE) != 0;
}

static bool is_coherent(const quire_memory *memory)
{
    return (memory->flags & QUIRE_HOST_COHERENT) != 0;
}

/*
 * Begins a use of an allocation for access by the host and resolves the range. The caller ends the
 * use. Fails with NOT_HOST_VISIBLE if the kind cannot be mapped. Ranges are checked against the
 * requested size: bytes that rounding added are not the caller's.
 */
static quire_result begin_access(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                                 uint64_t *size, uint32_t *slot)
{
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    result = is_mappable(memory) ? resolve_slot(memory, *slot, offset, size)
                                 : refuse_device_only(memory);
    if (result)
        qi_slot_end_use(&memory->slots, *slot);
    return result;
}

/* ---- map ---------------------------------------------------------------------------------- */

quire_result qi_access_map(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                           uint64_t size, void **pointer)
{
    uint32_t slot = 0;
    char *bytes;
    quire_result result = begin_access(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    result = qi_lazy_check_if(memory, slot, offset, 0);
    if (!result)
        result = qi_page_map_begin_slot(memory, slot, &bytes);
    if (!result) {
        result = qi_slot_add_map(&memory->slots, slot);
        if (!result)
            *pointer = bytes + offset;
        else
            qi_page_map_end_slot(memory, slot);
    }
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result qi_access_unmap(quire_memory *memory, quire_allocation allocation)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = qi_slot_remove_map(&memory->slots, slot);
    if (!result)
        qi_page_map_end_slot(memory, slot);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* ---- flush and invalidate ----------------------------------------------------------------- */

/* qi_device_flush or qi_device_invalidate. */
typedef quire_result (*sync_function)(quire_device *, qi_calls *, const qi_device_page *, uint64_t,
                                      uint64_t);

/*
 * Rounds a part of a page outwards to atoms, at most to the page's end: a dedicated page has
 * exactly the size of its allocation, which need not be a multiple of the atom.
 */
static quire_page_range round_out(const quire_memory *memory, const qi_device_page *page,
                                  uint64_t begin, uint64_t size)
{
    uint64_t end = begin + size, start = qi_align_down(begin, memory->atom);
    end += qi_padding(end, memory->atom);
    if (end > page->native.size)
        end = page->native.size;
    return (quire_page_range){.page = &page->native, .offset = start, .size = end - start};
}

/*
 * The part of its page that is flushed or invalidated for a range of a slot: rounded outwards to
 * the atom. On a kind that is not coherent, offsets and sizes of allocations are multiples of the
 * atom, so that the rounded range stays inside the allocation.
 */
static quire_page_range widen_to_atoms(const quire_memory *memory, uint32_t slot, uint64_t offset,
                                       uint64_t size)
{
    return round_out(memory, &qi_memory_page(memory, slot)->native,
                     qi_memory_slot(memory, slot)->offset + offset, size);
}

/* Flushes or invalidates a part of a page. */
static quire_result sync_bytes(quire_memory *memory, const qi_device_page *page, uint64_t begin,
                               uint64_t size, sync_function sync)
{
    if (is_coherent(memory))
        return QUIRE_SUCCESS;
    quire_page_range range = round_out(memory, page, begin, size);
    return sync(memory->device, &memory->calls, page, range.offset, range.size);
}

quire_result qi_access_flush_page(quire_memory *memory, const qi_device_page *page, uint64_t begin,
                                  uint64_t size)
{
    return sync_bytes(memory, page, begin, size, qi_device_flush);
}

quire_result qi_access_invalidate_page(quire_memory *memory, const qi_device_page *page,
                                       uint64_t begin, uint64_t size)
{
    return sync_bytes(memory, page, begin, size, qi_device_invalidate);
}

/* Flushes or invalidates a part of a slot in use. */
static quire_result sync_range(quire_memory *memory, uint32_t slot, uint64_t offset, uint64_t size,
                               sync_function sync)
{
    const qi_page *page = qi_memory_page(memory, slot);
    return sync_bytes(memory, &page->native, qi_memory_slot(memory, slot)->offset + offset, size,
                      sync);
}

/* The same, for a page that may not be mapped. Coherent kinds need no map. */
static quire_result sync_mapped(quire_memory *memory, uint32_t slot, uint64_t offset, uint64_t size,
                                sync_function sync)
{
    char *bytes;
    if (is_coherent(memory))
        return QUIRE_SUCCESS;
    quire_result result = qi_page_map_begin_slot(memory, slot, &bytes);
    if (result)
        return result;
    result = sync_range(memory, slot, offset, size, sync);
    qi_page_map_end_slot(memory, slot);
    return result;
}

static quire_result sync_call(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                              uint64_t size, sync_function sync)
{
    uint32_t slot = 0;
    quire_result result = begin_access(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    result = sync_mapped(memory, slot, offset, size, sync);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result qi_access_flush(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                             uint64_t size)
{
    return sync_call(memory, allocation, offset, size, qi_device_flush);
}

quire_result qi_access_invalidate(quire_memory *memory, quire_allocation allocation,
                                  uint64_t offset, uint64_t size)
{
    return sync_call(memory, allocation, offset, size, qi_device_invalidate);
}

/* ---- write and read ----------------------------------------------------------------------- */

/* The flush comes after the copy: the device then sees what the host wrote. */
static quire_result write_mapped(quire_memory *memory, uint32_t slot, uint64_t offset,
                                 const void *data, uint64_t size)
{
    char *bytes;
    quire_result result = qi_page_map_begin_slot(memory, slot, &bytes);
    if (result)
        return result;
    memcpy(bytes + offset, data, size);
    result = sync_range(memory, slot, offset, size, qi_device_flush);
    qi_page_map_end_slot(memory, slot);
    return result;
}

quire_result qi_access_write_slot(quire_memory *memory, uint32_t slot, uint64_t offset,
                                  const void *data, uint64_t size)
{
    if (is_mappable(memory))
        return write_mapped(memory, slot, offset, data, size);
    const qi_page *page = qi_memory_page(memory, slot);
    return qi_device_copy_to_page(memory->device, &memory->calls, &page->native,
                                  qi_memory_slot(memory, slot)->offset + offset, data, size);
}

/* The invalidation comes before the copy: the host then sees what the device wrote. */
static quire_result read_mapped(quire_memory *memory, uint32_t slot, uint64_t offset, void *data,
                                uint64_t size)
{
    char *bytes;
    quire_result result = qi_page_map_begin_slot(memory, slot, &bytes);
    if (result)
        return result;
    result = sync_range(memory, slot, offset, size, qi_device_invalidate);
    if (!result)
        memcpy(data, bytes + offset, size);
    qi_page_map_end_slot(memory, slot);
    return result;
}

quire_result qi_access_read_slot(quire_memory *memory, uint32_t slot, uint64_t offset, void *data,
                                 uint64_t size)
{
    if (is_mappable(memory))
        return read_mapped(memory, slot, offset, data, size);
    const qi_page *page = qi_memory_page(memory, slot);
    return qi_device_copy_from_page(memory->device, &memory->calls, &page->native,
                                    qi_memory_slot(memory, slot)->offset + offset, data, size);
}

/* Begins a use for a copy and checks the range, which may be empty. The caller ends the use. */
static quire_result begin_copy(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                               uint64_t size, uint32_t *slot)
{
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    const qi_slot *record = qi_memory_slot(memory, *slot);
    result = qi_range_fits(offset, size, qi_slot_usable(record))
                 ? qi_lazy_check_if(memory, *slot, offset, size)
                 : refuse_range(memory, *slot, offset, size);
    if (!result)
        return QUIRE_SUCCESS;
    qi_slot_end_use(&memory->slots, *slot);
    return result;
}

quire_result qi_access_write(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                             const void *data, uint64_t size)
{
    uint32_t slot = 0;
    quire_result result = begin_copy(memory, allocation, offset, size, &slot);
    if (result)
        return result;
    if (size)
        result = qi_access_write_slot(memory, slot, offset, data, size);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result qi_access_read(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                            void *data, uint64_t size)
{
    uint32_t slot = 0;
    quire_result result = begin_copy(memory, allocation, offset, size, &slot);
    if (result)
        return result;
    if (size)
        result = qi_access_read_slot(memory, slot, offset, data, size);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* ---- native side -------------------------------------------------------------------------- */

quire_result qi_access_get_native(quire_memory *memory, quire_allocation allocation,
                                  quire_native *native)
{
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(
        &memory->slots, allocation, QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED | QI_ACCEPT_ASLEEP, &slot);
    if (result)
        return result;
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    native->device = memory->device;
    native->page = page->native.native;
    if (memory->maps_on_demand) /* the page's address may be changing */
        native->host = qi_page_map_lasting(memory, slot);
    else
        native->host = page->native.host ? (char *)page->native.host + record->offset : NULL;
    native->offset = record->offset;
    native->is_among_images =
        !page->dedicated && qi_shard_is_for_images(memory, qi_shard_of_slot(memory, slot));
    /* the lock guards the word that holds the user data or the native handle (slot.h), and what is
       asleep */
    qi_lock_acquire(&qi_shard_of_slot(memory, slot)->lock);
    native->size = qi_slot_extent(record);
    native->object = record->object;
    native->handle = qi_slot_native(record);
    qi_lock_release(&qi_shard_of_slot(memory, slot)->lock);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}

/* ---- fills -------------------------------------------------------------------------------- */

/* Host bytes per backend call when a fill is written as copies. Zeros come from a static array;
   any other value from an array on the stack, which is therefore smaller. */
enum { ZERO_CHUNK = 64 * 1024, VALUE_CHUNK = 8 * 1024 };

/* A fill as writes, for backends that cannot fill. */
static quire_result write_value(quire_memory *memory, uint32_t slot, uint64_t offset, uint64_t size,
                                uint8_t value)
{
    static const char zeros[ZERO_CHUNK];
    char chunk[VALUE_CHUNK];
    const char *bytes = value ? chunk : zeros;
    uint64_t step = value ? sizeof chunk : sizeof zeros;
    memset(chunk, value, sizeof chunk);
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t done = 0; done < size && !result; done += step) {
        uint64_t left = size - done;
        result =
            qi_access_write_slot(memory, slot, offset + done, bytes, left < step ? left : step);
    }
    return result;
}

static quire_result fill_mapped(quire_memory *memory, uint32_t slot, uint64_t offset, uint64_t size,
                                uint8_t value)
{
    char *bytes;
    quire_result result = qi_page_map_begin_slot(memory, slot, &bytes);
    if (result)
        return result;
    memset(bytes + offset, value, size);
    result = qi_access_flush_page(memory, &qi_memory_page(memory, slot)->native,
                                  qi_memory_slot(memory, slot)->offset + offset, size);
    qi_page_map_end_slot(memory, slot);
    return result;
}

/*
 * Tries the mapping first, then the backend's fill, then writes. The last error of the thread is
 * restored if a fill is refused and the writes succeed.
 */
quire_result qi_access_fill_slot(quire_memory *memory, uint32_t slot, uint64_t offset,
                                 uint64_t size, uint8_t value)
{
    if (memory->flags & QUIRE_HOST_VISIBLE)
        return fill_mapped(memory, slot, offset, size, value);
    if (!qi_device_offers(memory->device, QUIRE_BACKEND_FILL))
        return write_value(memory, slot, offset, size, value);
    /* a backend that fills some pages only answers UNSUPPORTED for the others */
    qi_error before;
    qi_error_save(&before);
    quire_result result =
        qi_device_fill_page(memory->device, &memory->calls, &qi_memory_page(memory, slot)->native,
                            qi_memory_slot(memory, slot)->offset + offset, size, value);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    result = write_value(memory, slot, offset, size, value);
    if (!result)
        qi_error_restore(&before);
    return result;
}

/*
 * Fills the whole size of the range, rounding included, up to the red zone of checked builds. Of a
 * buffer only its own bytes: a dedicated page can be larger than its buffer, through which the
 * backend fills it.
 */
quire_result qi_access_fill_zero(quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    if (qi_memory_page(memory, slot)->fresh)
        return QUIRE_SUCCESS;
    uint64_t size = record->object == QUIRE_OBJECT_BUFFER ? record->requested
                                                          : qi_checked_usable(record, record->size);
    return qi_access_fill_slot(memory, slot, 0, size, 0);
}

quire_result qi_access_begin_fill(quire_memory *memory, quire_allocation allocation,
                                  uint64_t offset, uint64_t *size, uint32_t *slot)
{
    quire_result result = qi_device_check_bytes(memory->device, memory->kind);
    if (!result)
        result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    result = resolve_slot(memory, *slot, offset, size);
    if (!result)
        result = qi_lazy_check_if(memory, *slot, offset, *size);
    if (result)
        qi_slot_end_use(&memory->slots, *slot);
    return result;
}

quire_result qi_access_fill(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                            uint64_t size, uint8_t value)
{
    uint32_t slot = 0;
    quire_result result = qi_access_begin_fill(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    result = qi_access_fill_slot(memory, slot, offset, size, value);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* ---- batches ------------------------------------------------------------------------------ */

/*
 * Adjacent ranges of one page become one. Nothing goes to the backend before all are checked.
 */

/* Whether the backend is called: it needs the pages mapped. */
static bool is_synced(const quire_memory *memory)
{
    return !(memory->flags & QUIRE_HOST_COHERENT);
}

static void end_uses(quire_memory *memory, const quire_view *views, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint32_t slot = qi_handle_slot(views[i].allocation.id);
        if (is_synced(memory))
            qi_page_map_end(memory, qi_memory_page(memory, slot));
        qi_slot_end_use(&memory->slots, slot);
    }
}

/* Begins a use of an allocation and of the map of its page. */
static quire_result begin_use(quire_memory *memory, const quire_view *view)
{
    uint64_t size = view->size;
    uint32_t slot = 0;
    char *host;
    quire_result result = begin_access(memory, view->allocation, view->offset, &size, &slot);
    if (result || !is_synced(memory))
        return result;
    result = qi_page_map_begin(memory, qi_memory_page(memory, slot), &host);
    if (result)
        qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* Begins a use of every allocation. On failure none is left in use. */
static quire_result begin_uses(quire_memory *memory, const quire_view *views, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        quire_result result = begin_use(memory, &views[i]);
        if (result) {
            end_uses(memory, views, i);
            return result;
        }
    }
    return QUIRE_SUCCESS;
}

quire_result qi_access_send(qi_access_list *list)
{
    quire_result result = list->count ? list->sync(list->memory->device, &list->memory->calls,
                                                   list->ranges, list->count)
                                      : QUIRE_SUCCESS;
    list->count = 0;
    return result;
}

/* Extends the last range by the next one if both touch; returns false if they do not. */
static bool merge(quire_page_range *last, const quire_page_range *next)
{
    uint64_t last_end = last->offset + last->size, end = next->offset + next->size;
    if (last->page != next->page || next->offset > last_end || end < last->offset)
        return false;
    last->offset = last->offset < next->offset ? last->offset : next->offset;
    last->size = (last_end > end ? last_end : end) - last->offset;
    return true;
}

quire_result qi_access_add(qi_access_list *list, uint32_t slot, uint64_t offset, uint64_t size)
{
    quire_result result = QUIRE_SUCCESS;
    if (list->memory->flags & QUIRE_HOST_COHERENT)
        return QUIRE_SUCCESS;
    quire_page_range range = widen_to_atoms(list->memory, slot, offset, size);
    if (list->count && merge(&list->ranges[list->count - 1], &range))
        return QUIRE_SUCCESS;
    if (list->count == QUIRE_MAX_RANGES)
        result = qi_access_send(list);
    list->ranges[list->count++] = range;
    return result;
}

/* Adds a range of an allocation in use. The range was checked by begin_access. */
static quire_result add(qi_access_list *list, const quire_view *view)
{
    uint32_t slot = qi_handle_slot(view->allocation.id);
    uint64_t size = view->size;
    quire_result result = resolve_slot(list->memory, slot, view->offset, &size);
    return result ? result : qi_access_add(list, slot, view->offset, size);
}

static quire_result sync_views(quire_memory *memory, const quire_view *views, uint64_t count,
                               qi_access_sync sync)
{
    quire_result result = begin_uses(memory, views, count);
    if (result)
        return result;
    qi_access_list list = {.memory = memory, .sync = sync};
    for (uint64_t i = 0; i < count && !result; i++)
        result = add(&list, &views[i]);
    if (!result)
        result = qi_access_send(&list);
    end_uses(memory, views, count);
    return result;
}

quire_result qi_access_flush_batch(quire_memory *memory, const quire_view *views, uint64_t count)
{
    return sync_views(memory, views, count, qi_device_flush_many);
}

quire_result qi_access_invalidate_batch(quire_memory *memory, const quire_view *views,
                                        uint64_t count)
{
    return sync_views(memory, views, count, qi_device_invalidate_many);
}
