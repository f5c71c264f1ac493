/*
 * fill.c - fills: a range of an allocation becomes one value, complete on return or in the order of
 * a stream.
 */
#include "quire/transfer.h"
#include "src/base/result.h"
#include "src/memory/access.h"

/* Pins for a fill and resolves its range. */
static quire_result begin(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                          uint64_t *size, uint32_t *slot)
{
    if (!memory)
        return qi_refuse_null_memory();
    quire_result result = qi_slot_pin(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    result = qi_access_resolve_range(qi_memory_slot(memory, *slot)->requested, offset, size);
    if (result)
        qi_slot_unpin(&memory->slots, *slot);
    return result;
}

quire_result quire_fill(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                        uint64_t size, uint8_t value)
{
    uint32_t slot = 0;
    quire_result result = begin(memory, allocation, offset, &size, &slot);
    if (result)
        return result;
    result = qi_access_fill(memory, slot, offset, size, value);
    qi_slot_unpin(&memory->slots, slot);
    return result;
}
