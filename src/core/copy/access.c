/*
 * access.c - map, flush, invalidate, write, read and fill.
 *
 * Host-visible pages are mapped when they are made, so that mapping is arithmetic and a count. Each
 * call pins the allocation while it works: nobody can free it under the copy.
 */
#include "src/core/copy/access.h"

#include <string.h>

#include "quire/transfer.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* Host bytes handed to the backend at a time when it has to write zeros, or another value: those
   lie on the stack. */
enum { ZERO_CHUNK = 64 * 1024, VALUE_CHUNK = 8 * 1024 };

static quire_result refuse_device_only(const quire_memory *memory)
{
    return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE,
                        "memory '%s' of kind %u cannot be mapped (%s): use quire_write and "
                        "quire_read, or a host-visible memory",
                        memory->name, memory->kind, qi_flags(memory->flags).text);
}

static quire_result refuse_range(uint64_t limit, uint64_t offset, uint64_t size)
{
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                        "%u bytes at offset %u are outside an allocation or view of %u bytes", size,
                        offset, limit);
}

quire_result qi_access_resolve_range(uint64_t limit, uint64_t offset, uint64_t *size)
{
    if (!*size && offset < limit)
        *size = limit - offset;
    if (!*size || !qi_range_fits(offset, *size, limit))
        return refuse_range(limit, offset, *size);
    return QUIRE_SUCCESS;
}

static bool is_mappable(const quire_memory *memory)
{
    return (memory->flags & QUIRE_HOST_VISIBLE) != 0;
}

static bool is_coherent(const quire_memory *memory)
{
    return (memory->flags & QUIRE_HOST_COHERENT) != 0;
}

/* Where a slot's bytes are for the host; its page is mapped. */
static char *host_bytes(const quire_memory *memory, uint32_t slot)
{
    char *page = qi_memory_page(memory, slot)->native.host;
    return page + qi_memory_slot(memory, slot)->offset;
}

quire_result qi_access_begin(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                             uint64_t *size, uint32_t *slot)
{
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    result = is_mappable(memory)
                 ? qi_access_resolve_range(qi_memory_slot(memory, *slot)->requested, offset, size)
                 : refuse_device_only(memory);
    if (result)
        qi_slot_end_use(&memory->slots, *slot);
    return result;
}

/* ---- map ---------------------------------------------------------------------------------- */

quire_result quire_map_range(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                             uint64_t size, void **pointer)
{
    if (pointer)
        *pointer = NULL;
    if (!memory || !pointer)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_map: memory or pointer is null");
    uint32_t slot = 0;
    quire_result result = qi_access_begin(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    result = qi_slot_add_map(&memory->slots, slot);
    if (!result)
        *pointer = host_bytes(memory, slot) + offset;
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result quire_map(quire_memory *memory, quire_allocation allocation, void **pointer)
{
    return quire_map_range(memory, allocation, 0, 0, pointer);
}

quire_result quire_unmap(quire_memory *memory, quire_allocation allocation)
{
    if (!memory)
        return qi_refuse_null_memory();
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = qi_slot_remove_map(&memory->slots, slot);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* ---- flush and invalidate ----------------------------------------------------------------- */

typedef quire_result (*sync_function)(quire_device *, qi_calls *, const qi_device_page *, uint64_t,
                                      uint64_t);

/*
 * A part of a page, rounded outwards to the atom, up to the page's end. On a kind that is not
 * coherent, offsets and sizes of allocations are multiples of it, so that the rounded range stays
 * inside the allocation; but for those that are alone in a page of exactly their size.
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

quire_page_range qi_access_atoms(const quire_memory *memory, uint32_t slot, uint64_t offset,
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

quire_result qi_access_flush(quire_memory *memory, const qi_device_page *page, uint64_t begin,
                             uint64_t size)
{
    return sync_bytes(memory, page, begin, size, qi_device_flush);
}

quire_result qi_access_invalidate(quire_memory *memory, const qi_device_page *page, uint64_t begin,
                                  uint64_t size)
{
    return sync_bytes(memory, page, begin, size, qi_device_invalidate);
}

/* The same of a part of a pinned slot. */
static quire_result sync_range(quire_memory *memory, uint32_t slot, uint64_t offset, uint64_t size,
                               sync_function sync)
{
    const qi_page *page = qi_memory_page(memory, slot);
    return sync_bytes(memory, &page->native, qi_memory_slot(memory, slot)->offset + offset, size,
                      sync);
}

static quire_result sync_call(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                              uint64_t size, sync_function sync)
{
    if (!memory)
        return qi_refuse_null_memory();
    uint32_t slot = 0;
    quire_result result = qi_access_begin(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    result = sync_range(memory, slot, offset, size, sync);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result quire_flush(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                         uint64_t size)
{
    return sync_call(memory, allocation, offset, size, qi_device_flush);
}

quire_result quire_invalidate(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                              uint64_t size)
{
    return sync_call(memory, allocation, offset, size, qi_device_invalidate);
}

/* ---- write and read ----------------------------------------------------------------------- */

static quire_result write_bytes(quire_memory *memory, uint32_t slot, uint64_t offset,
                                const void *data, uint64_t size)
{
    if (is_mappable(memory)) {
        memcpy(host_bytes(memory, slot) + offset, data, size);
        return sync_range(memory, slot, offset, size, qi_device_flush);
    }
    const qi_page *page = qi_memory_page(memory, slot);
    return qi_device_copy_to_page(memory->device, &memory->calls, &page->native,
                                  qi_memory_slot(memory, slot)->offset + offset, data, size);
}

static quire_result read_bytes(quire_memory *memory, uint32_t slot, uint64_t offset, void *data,
                               uint64_t size)
{
    if (is_mappable(memory)) {
        quire_result result = sync_range(memory, slot, offset, size, qi_device_invalidate);
        if (!result)
            memcpy(data, host_bytes(memory, slot) + offset, size);
        return result;
    }
    const qi_page *page = qi_memory_page(memory, slot);
    return qi_device_copy_from_page(memory->device, &memory->calls, &page->native,
                                    qi_memory_slot(memory, slot)->offset + offset, data, size);
}

/* Pins for a copy and checks its range; a size of 0 is allowed and copies nothing. */
static quire_result begin_copy(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                               const void *data, uint64_t size, uint32_t *slot)
{
    if (!memory)
        return qi_refuse_null_memory();
    if (!data && size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_write or quire_read: data is null");
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    uint64_t limit = qi_memory_slot(memory, *slot)->requested;
    if (qi_range_fits(offset, size, limit))
        return QUIRE_SUCCESS;
    qi_slot_end_use(&memory->slots, *slot);
    return refuse_range(limit, offset, size);
}

quire_result quire_write(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                         const void *data, uint64_t size)
{
    uint32_t slot = 0;
    quire_result result = begin_copy(memory, allocation, offset, data, size, &slot);
    if (result)
        return result;
    if (size)
        result = write_bytes(memory, slot, offset, data, size);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result quire_read(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                        void *data, uint64_t size)
{
    uint32_t slot = 0;
    quire_result result = begin_copy(memory, allocation, offset, data, size, &slot);
    if (result)
        return result;
    if (size)
        result = read_bytes(memory, slot, offset, data, size);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

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
        result = write_bytes(memory, slot, offset + done, bytes, left < step ? left : step);
    }
    return result;
}

quire_result qi_access_fill(quire_memory *memory, uint32_t slot, uint64_t offset, uint64_t size,
                            uint8_t value)
{
    if (is_mappable(memory)) {
        memset(host_bytes(memory, slot) + offset, value, size);
        return sync_range(memory, slot, offset, size, qi_device_flush);
    }
    if (!qi_device_offers(memory->device, QUIRE_BACKEND_FILL))
        return write_value(memory, slot, offset, size, value);
    qi_error before = qi_error_save();
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

quire_result qi_access_fill_zero(quire_memory *memory, uint32_t slot)
{
    const qi_slot *record = qi_memory_slot(memory, slot);
    return qi_access_fill(memory, slot, 0, qi_checked_usable(record, record->size), 0);
}

quire_result qi_access_begin_fill(quire_memory *memory, quire_allocation allocation,
                                  uint64_t offset, uint64_t *size, uint32_t *slot)
{
    quire_result result = qi_device_check_bytes(memory->device, memory->kind);
    if (!result)
        result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    result = qi_access_resolve_range(qi_memory_slot(memory, *slot)->requested, offset, size);
    if (result)
        qi_slot_end_use(&memory->slots, *slot);
    return result;
}

quire_result quire_fill(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                        uint64_t size, uint8_t value)
{
    if (!memory)
        return qi_refuse_null_memory();
    uint32_t slot = 0;
    quire_result result = qi_access_begin_fill(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    result = qi_access_fill(memory, slot, offset, size, value);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

/* ---- native side -------------------------------------------------------------------------- */

quire_result quire_allocation_hold(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_slot_hold(&memory->slots, &memory->host, allocation)
                  : qi_refuse_null_memory();
}

quire_result quire_allocation_release(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_slot_release(&memory->slots, allocation) : qi_refuse_null_memory();
}

quire_result quire_get_native(quire_memory *memory, quire_allocation allocation,
                              quire_native *native)
{
    if (native)
        *native = (quire_native){0};
    if (!memory || !native)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_get_native: memory or native is null");
    uint32_t slot = 0;
    quire_result result =
        qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED, &slot);
    if (result)
        return result;
    const qi_slot *record = qi_memory_slot(memory, slot);
    const qi_page *page = qi_memory_page(memory, slot);
    native->device = memory->device;
    native->page = page->native.native;
    native->host = page->native.host ? host_bytes(memory, slot) : NULL;
    native->offset = record->offset;
    native->size = record->size;
    qi_lock_acquire(&qi_shard_of_slot(memory, slot)->lock);
    native->object = record->object;
    native->handle = qi_slot_native(record);
    qi_lock_release(&qi_shard_of_slot(memory, slot)->lock);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}
