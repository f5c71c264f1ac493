/*
 * access_fill.c - sets bytes of an allocation to one value (see access.h).
 *
 * Tries the map of the page first, then the backend's fill, then writes.
 */
#include <string.h>

#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/page/map.h"

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
 * restored where a fill is refused and the writes succeed.
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
    result = qi_access_resolve(memory, *slot, offset, size);
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
