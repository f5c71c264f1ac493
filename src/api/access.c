/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * access.c - the public functions that reach the bytes of an allocation (quire/allocation.h: map,
 * flush, invalidate, write, read, views), and those of quire/backend.h that hold an allocation and
 * return its native side: they check pointers, and the core checks handles and ranges. With the
 * handles it refuses those of a device that did not survive a fork.
 */
#include "src/api/check.h"
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"

/* ---- map ---------------------------------------------------------------------------------- */

quire_result quire_map_range(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                             uint64_t size, void **pointer)
{
    if (pointer)
        *pointer = NULL;
    if (!memory || !pointer)
        return qi_fail_null("quire_map_range", !memory ? "memory" : "pointer");
    return qi_access_map(memory, allocation, offset, size, pointer);
}

quire_result quire_map(quire_memory *memory, quire_allocation allocation, void **pointer)
{
    if (pointer)
        *pointer = NULL;
    if (!memory || !pointer)
        return qi_fail_null("quire_map", !memory ? "memory" : "pointer");
    return quire_map_range(memory, allocation, 0, 0, pointer);
}

quire_result quire_unmap(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_access_unmap(memory, allocation) : qi_fail_null("quire_unmap", "memory");
}

/* ---- flush and invalidate ----------------------------------------------------------------- */

quire_result quire_flush(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                         uint64_t size)
{
    return memory ? qi_access_flush(memory, allocation, offset, size)
                  : qi_fail_null("quire_flush", "memory");
}

quire_result quire_invalidate(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                              uint64_t size)
{
    return memory ? qi_access_invalidate(memory, allocation, offset, size)
                  : qi_fail_null("quire_invalidate", "memory");
}

quire_result quire_flush_batch(quire_memory *memory, const quire_view *views, uint64_t count)
{
    if (!memory || (!views && count))
        return qi_fail_null("quire_flush_batch", !memory ? "memory" : "views");
    return qi_access_flush_batch(memory, views, count);
}

quire_result quire_invalidate_batch(quire_memory *memory, const quire_view *views, uint64_t count)
{
    if (!memory || (!views && count))
        return qi_fail_null("quire_invalidate_batch", !memory ? "memory" : "views");
    return qi_access_invalidate_batch(memory, views, count);
}

/* ---- write and read ----------------------------------------------------------------------- */

quire_result quire_write(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                         const void *data, uint64_t size)
{
    if (!memory || (!data && size))
        return qi_fail_null("quire_write", !memory ? "memory" : "data");
    return qi_access_write(memory, allocation, offset, data, size);
}

quire_result quire_read(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                        void *data, uint64_t size)
{
    if (!memory || (!data && size))
        return qi_fail_null("quire_read", !memory ? "memory" : "data");
    return qi_access_read(memory, allocation, offset, data, size);
}

/* ---- views -------------------------------------------------------------------------------- */

/*
 * A view is a plain value: an allocation, an offset and a size. It is checked against its parent
 * when it is made and again at each use, because its fields are public.
 */

quire_result quire_view_create(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                               uint64_t size, quire_view *view)
{
    if (view)
        *view = (quire_view){0};
    if (!memory || !view)
        return qi_fail_null("quire_view_create", !memory ? "memory" : "view");
    quire_result result = qi_access_check_range(memory, allocation, offset, &size);
    if (!result)
        *view = (quire_view){.allocation = allocation, .offset = offset, .size = size};
    return result;
}

quire_result quire_view_narrow(quire_view parent, uint64_t offset, uint64_t size, quire_view *view)
{
    if (!view)
        return qi_fail_null("quire_view_narrow", "view");
    *view = (quire_view){0};
    uint64_t begin = 0;
    quire_result result = qi_access_resolve_view(parent.size, offset, &size);
    if (result)
        return result;
    if (qi_add_overflows(parent.offset, offset, &begin))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "offset %u in a view at offset %u", offset,
                            parent.offset);
    *view = (quire_view){.allocation = parent.allocation, .offset = begin, .size = size};
    return QUIRE_SUCCESS;
}

/* ---- native side -------------------------------------------------------------------------- */

quire_result quire_allocation_hold(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_slot_hold(&memory->slots, &memory->host, allocation)
                  : qi_fail_null("quire_allocation_hold", "memory");
}

quire_result quire_allocation_release(quire_memory *memory, quire_allocation allocation)
{
    return memory ? qi_slot_release(&memory->slots, allocation)
                  : qi_fail_null("quire_allocation_release", "memory");
}

quire_result quire_allocation_get_native(const quire_memory *memory, quire_allocation allocation,
                                         quire_native *native)
{
    if (native)
        *native = (quire_native){0};
    if (!memory || !native)
        return qi_fail_null("quire_allocation_get_native", !memory ? "memory" : "native");
    return qi_access_get_native(qi_memory_queried(memory), allocation, native);
}
