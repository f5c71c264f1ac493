/*
 * access_batch.c - flush and invalidate of many ranges (see access.h).
 *
 * Adjacent ranges of one page become one. Nothing goes to the backend before all are checked.
 */
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/page/map.h"

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
    quire_result result = qi_access_begin(memory, view->allocation, view->offset, &size, &slot);
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

quire_result qi_access_add(qi_access_list *list, uint32_t slot, uint64_t offset, uint64_t size)
{
    quire_result result = QUIRE_SUCCESS;
    if (list->memory->flags & QUIRE_HOST_COHERENT)
        return QUIRE_SUCCESS;
    quire_page_range range = qi_access_atoms(list->memory, slot, offset, size);
    if (list->count && merge(&list->ranges[list->count - 1], &range))
        return QUIRE_SUCCESS;
    if (list->count == QUIRE_MAX_RANGES)
        result = qi_access_send(list);
    list->ranges[list->count++] = range;
    return result;
}

/* Adds a range of an allocation in use. The range was checked by qi_access_begin. */
static quire_result add(qi_access_list *list, const quire_view *view)
{
    uint32_t slot = qi_handle_slot(view->allocation.id);
    uint64_t size = view->size;
    quire_result result = qi_access_resolve(list->memory, slot, view->offset, &size);
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
