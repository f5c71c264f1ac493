/*
 * view.c - parts of allocations: plain values, checked against their parent when made and at each
 * use.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"

quire_result quire_view_create(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                               uint64_t size, quire_view *view)
{
    if (view)
        *view = (quire_view){0};
    if (!memory || !view)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_view_create: memory or view is null");
    uint32_t slot = 0;
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, &slot);
    if (result)
        return result;
    result = qi_access_resolve_range(qi_memory_slot(memory, slot)->requested, offset, &size);
    qi_slot_end_use(&memory->slots, slot);
    if (!result)
        *view = (quire_view){.allocation = allocation, .offset = offset, .size = size};
    return result;
}

quire_result quire_view_narrow(quire_view parent, uint64_t offset, uint64_t size, quire_view *view)
{
    if (!view)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_view_narrow: view is null");
    *view = (quire_view){0};
    uint64_t begin = 0;
    quire_result result = qi_access_resolve_range(parent.size, offset, &size);
    if (result)
        return result;
    if (qi_add_overflows(parent.offset, offset, &begin))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "offset %u in a view at offset %u", offset,
                            parent.offset);
    *view = (quire_view){.allocation = parent.allocation, .offset = begin, .size = size};
    return QUIRE_SUCCESS;
}

quire_result quire_view_map(quire_memory *memory, quire_view view, void **pointer)
{
    if (pointer)
        *pointer = NULL;
    if (!view.size) /* not made by these functions; for a map, 0 would mean "to the end" */
        return qi_fail(QUIRE_ERROR_OUT_OF_RANGE, "the view has size 0");
    return quire_map_range(memory, view.allocation, view.offset, view.size, pointer);
}

/* The offset in the allocation of a range of a view. */
static quire_result locate(quire_view view, uint64_t offset, uint64_t size, uint64_t *begin)
{
    if (qi_range_fits(offset, size, view.size) && !qi_add_overflows(view.offset, offset, begin))
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE,
                        "%u bytes at offset %u are outside a view of %u bytes", size, offset,
                        view.size);
}

quire_result quire_view_write(quire_memory *memory, quire_view view, uint64_t offset,
                              const void *data, uint64_t size)
{
    uint64_t begin = 0;
    quire_result result = locate(view, offset, size, &begin);
    return result ? result : quire_write(memory, view.allocation, begin, data, size);
}

quire_result quire_view_read(quire_memory *memory, quire_view view, uint64_t offset, void *data,
                             uint64_t size)
{
    uint64_t begin = 0;
    quire_result result = locate(view, offset, size, &begin);
    return result ? result : quire_read(memory, view.allocation, begin, data, size);
}
