/*
 * access_batch.c - flush and invalidate for many parts at once: all are checked and pinned, then
 * the backend gets them in lists.
 */
#include "src/base/handle.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"

typedef quire_result (*sync_function)(quire_device *, qi_calls *, const quire_page_range *,
                                      uint32_t);

/* What goes to the backend together. */
typedef struct list {
    quire_memory *memory;
    sync_function sync;
    uint32_t count;
    quire_page_range ranges[QUIRE_MAX_RANGES];
} list;

static void unpin(quire_memory *memory, const quire_view *views, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        qi_slot_end_use(&memory->slots, qi_handle_slot(views[i].allocation.id));
}

static quire_result pin(quire_memory *memory, const quire_view *views, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        uint64_t size = views[i].size;
        uint32_t slot = 0;
        quire_result result =
            qi_access_begin(memory, views[i].allocation, views[i].offset, &size, &slot);
        if (result) {
            unpin(memory, views, i);
            return result;
        }
    }
    return QUIRE_SUCCESS;
}

static quire_result send(list *l)
{
    quire_result result = l->count
                              ? l->sync(l->memory->device, &l->memory->calls, l->ranges, l->count)
                              : QUIRE_SUCCESS;
    l->count = 0;
    return result;
}

/* Makes two ranges one where they touch. */
static bool join(quire_page_range *last, const quire_page_range *next)
{
    uint64_t last_end = last->offset + last->size, end = next->offset + next->size;
    if (last->page != next->page || next->offset > last_end || end < last->offset)
        return false;
    last->offset = last->offset < next->offset ? last->offset : next->offset;
    last->size = (last_end > end ? last_end : end) - last->offset;
    return true;
}

/* A part whose allocation is pinned. */
static quire_result add(list *l, const quire_view *view)
{
    uint32_t slot = qi_handle_slot(view->allocation.id);
    uint64_t size = view->size;
    quire_result result =
        qi_access_resolve_range(qi_memory_slot(l->memory, slot)->requested, view->offset, &size);
    if (result)
        return result;
    quire_page_range range = qi_access_atoms(l->memory, slot, view->offset, size);
    if (l->count && join(&l->ranges[l->count - 1], &range))
        return QUIRE_SUCCESS;
    if (l->count == QUIRE_MAX_RANGES)
        result = send(l);
    l->ranges[l->count++] = range;
    return result;
}

static quire_result sync_views(quire_memory *memory, const quire_view *views, uint64_t count,
                               sync_function sync)
{
    if (!memory)
        return qi_refuse_null_memory();
    if (!views && count)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_flush_batch or quire_invalidate_batch: views is null");
    quire_result result = pin(memory, views, count);
    if (result)
        return result;
    list l = {.memory = memory, .sync = sync};
    bool is_coherent = memory->flags & QUIRE_HOST_COHERENT;
    for (uint64_t i = 0; i < count && !result && !is_coherent; i++)
        result = add(&l, &views[i]);
    if (!result)
        result = send(&l);
    unpin(memory, views, count);
    return result;
}

quire_result quire_flush_batch(quire_memory *memory, const quire_view *views, uint64_t count)
{
    return sync_views(memory, views, count, qi_device_flush_many);
}

quire_result quire_invalidate_batch(quire_memory *memory, const quire_view *views, uint64_t count)
{
    return sync_views(memory, views, count, qi_device_invalidate_many);
}
