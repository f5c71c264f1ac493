/*
 * access_batch.c - flush and invalidate of many ranges (see access.h).
 *
 * Adjacent ranges of one page become one. Nothing goes to the backend before all are checked.
 */
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"

/* qi_device_flush_many or qi_device_invalidate_many. */
typedef quire_result (*sync_function)(quire_device *, qi_calls *, const quire_page_range *,
                                      uint32_t);

/* The ranges of the next call of the backend. */
typedef struct range_list {
    quire_memory *memory;
    sync_function sync;
    uint32_t count;
    quire_page_range ranges[QUIRE_MAX_RANGES];
} range_list;

static void end_uses(quire_memory *memory, const quire_view *views, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        qi_slot_end_use(&memory->slots, qi_handle_slot(views[i].allocation.id));
}

/* Begins a use of every allocation. On failure none is left in use. */
static quire_result begin_uses(quire_memory *memory, const quire_view *views, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t size = views[i].size;
        uint32_t slot = 0;
        quire_result result =
            qi_access_begin(memory, views[i].allocation, views[i].offset, &size, &slot);
        if (result) {
            end_uses(memory, views, i);
            return result;
        }
    }
    return QUIRE_SUCCESS;
}

static quire_result send(range_list *list)
{
    quire_result result = list->count ? list->sync(list->memory->device, &list->memory->calls,
                                                   list->ranges, list->count)
                                      : QUIRE_SUCCESS;
    list->count = 0;
    return result;
}

/* Extends the last range by the next one where both touch; returns false where they do not. */
static bool merge(quire_page_range *last, const quire_page_range *next)
{
    uint64_t last_end = last->offset + last->size, end = next->offset + next->size;
    if (last->page != next->page || next->offset > last_end || end < last->offset)
        return false;
    last->offset = last->offset < next->offset ? last->offset : next->offset;
    last->size = (last_end > end ? last_end : end) - last->offset;
    return true;
}

/* Adds a range of an allocation in use. The range was checked by qi_access_begin. */
static quire_result add(range_list *list, const quire_view *view)
{
    uint32_t slot = qi_handle_slot(view->allocation.id);
    uint64_t size = view->size;
    quire_result result =
        qi_access_resolve_range(qi_memory_slot(list->memory, slot)->requested, view->offset, &size);
    if (result)
        return result;
    quire_page_range range = qi_access_atoms(list->memory, slot, view->offset, size);
    if (list->count && merge(&list->ranges[list->count - 1], &range))
        return QUIRE_SUCCESS;
    if (list->count == QUIRE_MAX_RANGES)
        result = send(list);
    list->ranges[list->count++] = range;
    return result;
}

static quire_result sync_views(quire_memory *memory, const quire_view *views, uint64_t count,
                               sync_function sync)
{
    quire_result result = begin_uses(memory, views, count);
    if (result)
        return result;
    range_list list = {.memory = memory, .sync = sync};
    bool is_coherent = memory->flags & QUIRE_HOST_COHERENT;
    for (uint64_t i = 0; i < count && !result && !is_coherent; i++)
        result = add(&list, &views[i]);
    if (!result)
        result = send(&list);
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
