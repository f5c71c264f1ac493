/*
 * way.c - see way.h.
 */
#include "src/core/copy/copy_path.h"

#include <string.h>

#include "src/base/result.h"
#include "src/core/copy/access.h"

/* Host bytes that are read from one page before they are written to another. */
static const uint64_t BOUNCE_SIZE = UINT64_C(1) << 20;

/* ---- which -------------------------------------------------------------------------------- */

static bool is_reached(const quire_memory *memory)
{
    return !memory || memory->flags & QUIRE_HOST_VISIBLE;
}

/* What is not cached the host reads word by word, across the bus where it is the device's. */
static bool is_read_well(const quire_memory *memory)
{
    return !memory || memory->flags & QUIRE_HOST_CACHED;
}

static qi_copy_path by_host(const quire_memory *to, const quire_memory *from)
{
    if (is_reached(to) && is_reached(from))
        return QI_COPY_PATH_HOST;
    if (is_reached(from))
        return QI_COPY_PATH_TO_PAGE;
    return is_reached(to) ? QI_COPY_PATH_FROM_PAGE : QI_COPY_PATH_BOUNCE;
}

qi_copy_path qi_copy_path_first(const quire_memory *to, const quire_memory *from)
{
    qi_copy_path host = by_host(to, from);
    if (!to || !from || (host == QI_COPY_PATH_HOST && is_read_well(from)))
        return host;
    if (to->device == from->device)
        return qi_device_offers(to->device, QUIRE_BACKEND_COPY_PAGES) ? QI_COPY_PATH_PAGES : host;
    bool are_peers = to->device->original == from->device->original &&
                     qi_device_offers(to->device, QUIRE_BACKEND_COPY_PEER);
    return are_peers ? QI_COPY_PATH_PEER : host;
}

qi_copy_path qi_copy_path_next(qi_copy_path way, const quire_memory *to, const quire_memory *from)
{
    return way == QI_COPY_PATH_PAGES || way == QI_COPY_PATH_PEER ? by_host(to, from)
                                                                 : QI_COPY_PATH_NONE;
}

static quire_copy_path path_of_call(const quire_memory *memory, quire_backend_features needed)
{
    if (!qi_device_offers(memory->device, needed))
        return QUIRE_COPY_UNSUPPORTED;
    return qi_device_offers(memory->device, QUIRE_BACKEND_STAGES) ? QUIRE_COPY_STAGED
                                                                  : QUIRE_COPY_DIRECT;
}

quire_copy_path qi_copy_path_public(qi_copy_path way, const quire_memory *to,
                                    const quire_memory *from)
{
    switch (way) {
    case QI_COPY_PATH_NONE:
        return QUIRE_COPY_UNSUPPORTED;
    case QI_COPY_PATH_PAGES:
    case QI_COPY_PATH_PEER:
    case QI_COPY_PATH_HOST:
        return QUIRE_COPY_DIRECT;
    case QI_COPY_PATH_TO_PAGE:
        return path_of_call(to, QUIRE_BACKEND_COPY_TO_PAGE);
    case QI_COPY_PATH_FROM_PAGE:
        return path_of_call(from, QUIRE_BACKEND_COPY_FROM_PAGE);
    case QI_COPY_PATH_BOUNCE:
        break;
    }
    bool both = qi_device_offers(to->device, QUIRE_BACKEND_COPY_TO_PAGE) &&
                qi_device_offers(from->device, QUIRE_BACKEND_COPY_FROM_PAGE);
    return both ? QUIRE_COPY_HOST : QUIRE_COPY_UNSUPPORTED;
}

/* ---- by the backend ----------------------------------------------------------------------- */

static quire_copy_job job_of(const qi_copy *t, const qi_copy_region *region)
{
    const qi_end *to = &t->to, *from = &t->from;
    return (quire_copy_job){
        .to = to->page ? &to->page->native : NULL,
        .from = from->page ? &from->page->native : NULL,
        .to_offset = to->page ? region->to.offset : 0,
        .from_offset = from->page ? region->from.offset : 0,
        .host_to = to->page ? NULL : to->host + region->to.offset,
        .host_from = from->page ? NULL : from->host + region->from.offset,
        .size = region->size,
        .rows = region->rows,
        .slices = region->slices,
        .to_row = region->to.row,
        .to_slice = region->to.slice,
        .from_row = region->from.row,
        .from_slice = region->from.slice,
        .to_state = to->memory ? to->memory->device->state : NULL,
        .from_state = from->memory ? from->memory->device->state : NULL,
    };
}

quire_result qi_copy_call(const qi_copy *transfer, const qi_copy_region *part,
                          const qi_job_call *call)
{
    bool takes_rows = qi_device_offers(call->device, QUIRE_BACKEND_ROWS);
    uint64_t bytes = qi_copy_region_bytes(part), room = takes_rows ? bytes : part->size;
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t done = 0; done < bytes && !result; done += room) {
        qi_copy_region piece = qi_copy_region_part(part, done, room);
        quire_copy_job job = job_of(transfer, &piece);
        result = call->call(call, &job);
    }
    return result;
}

static quire_result call_copy_pages(const qi_job_call *self, const quire_copy_job *job)
{
    return qi_device_copy_pages(self->device, self->calls, job);
}

static quire_result call_copy_peer(const qi_job_call *self, const quire_copy_job *job)
{
    return qi_device_copy_peer(self->device, self->calls, job);
}

/* On behalf of a memory. */
static quire_result copy_by_backend(const qi_copy *t, const qi_copy_region *region,
                                    quire_memory *memory,
                                    quire_result (*call)(const qi_job_call *,
                                                         const quire_copy_job *))
{
    const qi_job_call calling = {call, memory->device, &memory->calls, 0};
    return qi_copy_call(t, region, &calling);
}

/* ---- row by row --------------------------------------------------------------------------- */

/* Before the host reads bytes of an end, and after it wrote them. */
static quire_result begin_reading(const qi_end *end, uint64_t offset, uint64_t size)
{
    return end->memory ? qi_access_invalidate(end->memory, end->page, offset, size) : QUIRE_SUCCESS;
}

static quire_result end_writing(const qi_end *end, uint64_t offset, uint64_t size)
{
    return end->memory ? qi_access_flush(end->memory, end->page, offset, size) : QUIRE_SUCCESS;
}

/* Copies bytes to and from these offsets. */
typedef quire_result (*row_function)(const qi_copy *t, uint64_t to, uint64_t from, uint64_t size);

static quire_result copy_by_host(const qi_copy *t, uint64_t to, uint64_t from, uint64_t size)
{
    quire_result result = begin_reading(&t->from, from, size);
    if (result)
        return result;
    memcpy(t->to.host + to, t->from.host + from, size);
    return end_writing(&t->to, to, size);
}

static quire_result copy_to_page(const qi_copy *t, uint64_t to, uint64_t from, uint64_t size)
{
    quire_memory *memory = t->to.memory;
    quire_result result = begin_reading(&t->from, from, size);
    return result ? result
                  : qi_device_copy_to_page(memory->device, &memory->calls, t->to.page, to,
                                           t->from.host + from, size);
}

static quire_result copy_from_page(const qi_copy *t, uint64_t to, uint64_t from, uint64_t size)
{
    quire_memory *memory = t->from.memory;
    quire_result result = qi_device_copy_from_page(memory->device, &memory->calls, t->from.page,
                                                   from, t->to.host + to, size);
    return result ? result : end_writing(&t->to, to, size);
}

static quire_result copy_rows(const qi_copy *t, const qi_copy_region *region, row_function copy)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t slice = 0; slice < region->slices && !result; slice++)
        for (uint64_t row = 0; row < region->rows && !result; row++)
            result = copy(t, qi_copy_region_at(&region->to, row, slice),
                          qi_copy_region_at(&region->from, row, slice), region->size);
    return result;
}

/* Before and after many rows. */
static quire_result sync_rows(const qi_end *end, const qi_copy_region *region,
                              const qi_copy_region_side *side,
                              quire_result (*sync)(const qi_end *, uint64_t, uint64_t))
{
    quire_result result = QUIRE_SUCCESS;
    if (!end->memory || end->memory->flags & QUIRE_HOST_COHERENT)
        return QUIRE_SUCCESS;
    for (uint64_t slice = 0; slice < region->slices && !result; slice++)
        for (uint64_t row = 0; row < region->rows && !result; row++)
            result = sync(end, qi_copy_region_at(side, row, slice), region->size);
    return result;
}

/* The host's end as host memory. */
static qi_end as_host_memory(const qi_end *end)
{
    return (qi_end){.host = end->host};
}

/* Many rows between the host and a page, in one call. */
static quire_result copy_to_page_at_once(const qi_copy *t, const qi_copy_region *region)
{
    qi_copy flat = *t;
    flat.from = as_host_memory(&t->from);
    quire_result result = sync_rows(&t->from, region, &region->from, begin_reading);
    return result ? result : copy_by_backend(&flat, region, t->to.memory, call_copy_pages);
}

static quire_result copy_from_page_at_once(const qi_copy *t, const qi_copy_region *region)
{
    qi_copy flat = *t;
    flat.to = as_host_memory(&t->to);
    quire_result result = copy_by_backend(&flat, region, t->from.memory, call_copy_pages);
    return result ? result : sync_rows(&t->to, region, &region->to, end_writing);
}

static bool takes_rows(const quire_memory *memory, const qi_copy_region *region)
{
    return region->rows * region->slices > 1 &&
           qi_device_offers(memory->device, QUIRE_BACKEND_ROWS) &&
           qi_device_offers(memory->device, QUIRE_BACKEND_COPY_PAGES);
}

/* Where a call takes rows but not these, they go one by one. */
static quire_result copy_to_rows(const qi_copy *t, const qi_copy_region *region)
{
    if (!takes_rows(t->to.memory, region))
        return copy_rows(t, region, copy_to_page);
    qi_error before = qi_error_save();
    quire_result result = copy_to_page_at_once(t, region);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    qi_error_restore(&before);
    return copy_rows(t, region, copy_to_page);
}

static quire_result copy_from_rows(const qi_copy *t, const qi_copy_region *region)
{
    if (!takes_rows(t->from.memory, region))
        return copy_rows(t, region, copy_from_page);
    qi_error before = qi_error_save();
    quire_result result = copy_from_page_at_once(t, region);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    qi_error_restore(&before);
    return copy_rows(t, region, copy_from_page);
}

/* ---- through host memory ------------------------------------------------------------------ */

static quire_result take_bounce(qi_copy *t)
{
    uint64_t bytes = qi_copy_region_bytes(&t->region);
    if (t->bounce)
        return QUIRE_SUCCESS;
    t->bounce_size = bytes < BOUNCE_SIZE ? bytes : BOUNCE_SIZE;
    t->bounce = qi_host_allocate(&t->to.memory->host, t->bounce_size, 1);
    return t->bounce ? QUIRE_SUCCESS
                     : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                    "no host memory for %b to copy through", t->bounce_size);
}

void qi_copy_finish(qi_copy *transfer)
{
    if (transfer->bounce)
        qi_host_release(&transfer->to.memory->host, transfer->bounce, transfer->bounce_size, 1);
    transfer->bounce = NULL;
}

/* A part that fits: its rows lie there one after the other. */
static quire_result bounce_part(const qi_copy *t, const qi_copy_region *part)
{
    const qi_copy_region_side packed = {.row = part->size, .slice = part->size * part->rows};
    qi_copy reading = *t, writing = *t;
    qi_copy_region in = *part, out = *part;
    reading.to = (qi_end){.host = t->bounce};
    writing.from = (qi_end){.host = t->bounce};
    in.to = out.from = packed;
    qi_copy_region_merge(&in);
    qi_copy_region_merge(&out);
    quire_result result = copy_from_rows(&reading, &in);
    return result ? result : copy_to_rows(&writing, &out);
}

static quire_result copy_by_bounce(qi_copy *t, const qi_copy_region *region)
{
    uint64_t bytes = qi_copy_region_bytes(region);
    quire_result result = take_bounce(t);
    for (uint64_t done = 0; done < bytes && !result;) {
        qi_copy_region part = qi_copy_region_part(region, done, t->bounce_size);
        result = bounce_part(t, &part);
        done += qi_copy_region_bytes(&part);
    }
    return result;
}

/* ---- all of them -------------------------------------------------------------------------- */

static quire_result copy_by(qi_copy *t, const qi_copy_region *region, qi_copy_path way)
{
    switch (way) {
    case QI_COPY_PATH_PAGES:
        return copy_by_backend(t, region, t->to.memory, call_copy_pages);
    case QI_COPY_PATH_PEER:
        return copy_by_backend(t, region, t->to.memory, call_copy_peer);
    case QI_COPY_PATH_HOST:
        return copy_rows(t, region, copy_by_host);
    case QI_COPY_PATH_TO_PAGE:
        return copy_to_rows(t, region);
    case QI_COPY_PATH_FROM_PAGE:
        return copy_from_rows(t, region);
    case QI_COPY_PATH_NONE:
    case QI_COPY_PATH_BOUNCE:
        break;
    }
    return copy_by_bounce(t, region);
}

quire_result qi_copy_execute(qi_copy *transfer, const qi_copy_region *part)
{
    const quire_memory *to = transfer->to.memory, *from = transfer->from.memory;
    qi_copy_path way = qi_copy_path_first(to, from), next = qi_copy_path_next(way, to, from);
    if (!next)
        return copy_by(transfer, part, way);
    qi_error before = qi_error_save();
    quire_result result = copy_by(transfer, part, way);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    result = copy_by(transfer, part, next);
    if (!result)
        qi_error_restore(&before); /* what was unsupported was done in another way */
    return result;
}
