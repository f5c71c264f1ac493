/*
 * way.c - see way.h.
 */
#include "src/memory/way.h"

#include <string.h>

#include "src/base/result.h"
#include "src/memory/access.h"

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

static qi_way by_host(const quire_memory *to, const quire_memory *from)
{
    if (is_reached(to) && is_reached(from))
        return QI_WAY_HOST;
    if (is_reached(from))
        return QI_WAY_TO_PAGE;
    return is_reached(to) ? QI_WAY_FROM_PAGE : QI_WAY_BOUNCE;
}

qi_way qi_way_first(const quire_memory *to, const quire_memory *from)
{
    qi_way host = by_host(to, from);
    if (!to || !from || (host == QI_WAY_HOST && is_read_well(from)))
        return host;
    if (to->device == from->device)
        return qi_device_offers(to->device, QUIRE_BACKEND_COPY_PAGES) ? QI_WAY_PAGES : host;
    bool are_peers = to->device->original == from->device->original &&
                     qi_device_offers(to->device, QUIRE_BACKEND_COPY_PEER);
    return are_peers ? QI_WAY_PEER : host;
}

qi_way qi_way_next(qi_way way, const quire_memory *to, const quire_memory *from)
{
    return way == QI_WAY_PAGES || way == QI_WAY_PEER ? by_host(to, from) : QI_WAY_NONE;
}

static quire_copy_path path_of_call(const quire_memory *memory, quire_backend_features needed)
{
    if (!qi_device_offers(memory->device, needed))
        return QUIRE_COPY_UNSUPPORTED;
    return qi_device_offers(memory->device, QUIRE_BACKEND_STAGES) ? QUIRE_COPY_STAGED
                                                                  : QUIRE_COPY_DIRECT;
}

quire_copy_path qi_way_path(qi_way way, const quire_memory *to, const quire_memory *from)
{
    switch (way) {
    case QI_WAY_NONE:
        return QUIRE_COPY_UNSUPPORTED;
    case QI_WAY_PAGES:
    case QI_WAY_PEER:
    case QI_WAY_HOST:
        return QUIRE_COPY_DIRECT;
    case QI_WAY_TO_PAGE:
        return path_of_call(to, QUIRE_BACKEND_COPY_TO_PAGE);
    case QI_WAY_FROM_PAGE:
        return path_of_call(from, QUIRE_BACKEND_COPY_FROM_PAGE);
    case QI_WAY_BOUNCE:
        break;
    }
    bool both = qi_device_offers(to->device, QUIRE_BACKEND_COPY_TO_PAGE) &&
                qi_device_offers(from->device, QUIRE_BACKEND_COPY_FROM_PAGE);
    return both ? QUIRE_COPY_HOST : QUIRE_COPY_UNSUPPORTED;
}

/* ---- by the backend ----------------------------------------------------------------------- */

static quire_copy_job job_of(const qi_transfer *t, const qi_box *box)
{
    const qi_end *to = &t->to, *from = &t->from;
    return (quire_copy_job){
        .to = to->page ? &to->page->native : NULL,
        .from = from->page ? &from->page->native : NULL,
        .to_offset = to->page ? box->to.offset : 0,
        .from_offset = from->page ? box->from.offset : 0,
        .host_to = to->page ? NULL : to->host + box->to.offset,
        .host_from = from->page ? NULL : from->host + box->from.offset,
        .size = box->size,
        .rows = box->rows,
        .slices = box->slices,
        .to_row = box->to.row,
        .to_slice = box->to.slice,
        .from_row = box->from.row,
        .from_slice = box->from.slice,
        .to_state = to->memory ? to->memory->device->state : NULL,
        .from_state = from->memory ? from->memory->device->state : NULL,
    };
}

quire_result qi_transfer_call(const qi_transfer *transfer, const qi_box *part,
                              const qi_job_call *call)
{
    bool takes_rows = qi_device_offers(call->device, QUIRE_BACKEND_ROWS);
    uint64_t bytes = qi_box_bytes(part), room = takes_rows ? bytes : part->size;
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t done = 0; done < bytes && !result; done += room) {
        qi_box piece = qi_box_part(part, done, room);
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
static quire_result copy_by_backend(const qi_transfer *t, const qi_box *box, quire_memory *memory,
                                    quire_result (*call)(const qi_job_call *,
                                                         const quire_copy_job *))
{
    const qi_job_call calling = {call, memory->device, &memory->calls, 0};
    return qi_transfer_call(t, box, &calling);
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
typedef quire_result (*row_function)(const qi_transfer *t, uint64_t to, uint64_t from,
                                     uint64_t size);

static quire_result copy_by_host(const qi_transfer *t, uint64_t to, uint64_t from, uint64_t size)
{
    quire_result result = begin_reading(&t->from, from, size);
    if (result)
        return result;
    memcpy(t->to.host + to, t->from.host + from, size);
    return end_writing(&t->to, to, size);
}

static quire_result copy_to_page(const qi_transfer *t, uint64_t to, uint64_t from, uint64_t size)
{
    quire_memory *memory = t->to.memory;
    quire_result result = begin_reading(&t->from, from, size);
    return result ? result
                  : qi_device_copy_to_page(memory->device, &memory->calls, t->to.page, to,
                                           t->from.host + from, size);
}

static quire_result copy_from_page(const qi_transfer *t, uint64_t to, uint64_t from, uint64_t size)
{
    quire_memory *memory = t->from.memory;
    quire_result result = qi_device_copy_from_page(memory->device, &memory->calls, t->from.page,
                                                   from, t->to.host + to, size);
    return result ? result : end_writing(&t->to, to, size);
}

static quire_result copy_rows(const qi_transfer *t, const qi_box *box, row_function copy)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t slice = 0; slice < box->slices && !result; slice++)
        for (uint64_t row = 0; row < box->rows && !result; row++)
            result = copy(t, qi_box_at(&box->to, row, slice), qi_box_at(&box->from, row, slice),
                          box->size);
    return result;
}

/* Before and after many rows. */
static quire_result sync_rows(const qi_end *end, const qi_box *box, const qi_box_side *side,
                              quire_result (*sync)(const qi_end *, uint64_t, uint64_t))
{
    quire_result result = QUIRE_SUCCESS;
    if (!end->memory || end->memory->flags & QUIRE_HOST_COHERENT)
        return QUIRE_SUCCESS;
    for (uint64_t slice = 0; slice < box->slices && !result; slice++)
        for (uint64_t row = 0; row < box->rows && !result; row++)
            result = sync(end, qi_box_at(side, row, slice), box->size);
    return result;
}

/* The host's end as host memory. */
static qi_end as_host_memory(const qi_end *end)
{
    return (qi_end){.host = end->host};
}

/* Many rows between the host and a page, in one call. */
static quire_result copy_to_page_at_once(const qi_transfer *t, const qi_box *box)
{
    qi_transfer flat = *t;
    flat.from = as_host_memory(&t->from);
    quire_result result = sync_rows(&t->from, box, &box->from, begin_reading);
    return result ? result : copy_by_backend(&flat, box, t->to.memory, call_copy_pages);
}

static quire_result copy_from_page_at_once(const qi_transfer *t, const qi_box *box)
{
    qi_transfer flat = *t;
    flat.to = as_host_memory(&t->to);
    quire_result result = copy_by_backend(&flat, box, t->from.memory, call_copy_pages);
    return result ? result : sync_rows(&t->to, box, &box->to, end_writing);
}

static bool takes_rows(const quire_memory *memory, const qi_box *box)
{
    return box->rows * box->slices > 1 && qi_device_offers(memory->device, QUIRE_BACKEND_ROWS) &&
           qi_device_offers(memory->device, QUIRE_BACKEND_COPY_PAGES);
}

/* Where a call takes rows but not these, they go one by one. */
static quire_result copy_to_rows(const qi_transfer *t, const qi_box *box)
{
    if (!takes_rows(t->to.memory, box))
        return copy_rows(t, box, copy_to_page);
    qi_error before = qi_error_save();
    quire_result result = copy_to_page_at_once(t, box);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    qi_error_restore(&before);
    return copy_rows(t, box, copy_to_page);
}

static quire_result copy_from_rows(const qi_transfer *t, const qi_box *box)
{
    if (!takes_rows(t->from.memory, box))
        return copy_rows(t, box, copy_from_page);
    qi_error before = qi_error_save();
    quire_result result = copy_from_page_at_once(t, box);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    qi_error_restore(&before);
    return copy_rows(t, box, copy_from_page);
}

/* ---- through host memory ------------------------------------------------------------------ */

static quire_result take_bounce(qi_transfer *t)
{
    uint64_t bytes = qi_box_bytes(&t->box);
    if (t->bounce)
        return QUIRE_SUCCESS;
    t->bounce_size = bytes < BOUNCE_SIZE ? bytes : BOUNCE_SIZE;
    t->bounce = qi_host_allocate(&t->to.memory->host, t->bounce_size, 1);
    return t->bounce ? QUIRE_SUCCESS
                     : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                    "no host memory for %b to copy through", t->bounce_size);
}

void qi_transfer_finish(qi_transfer *transfer)
{
    if (transfer->bounce)
        qi_host_release(&transfer->to.memory->host, transfer->bounce, transfer->bounce_size, 1);
    transfer->bounce = NULL;
}

/* A part that fits: its rows lie there one after the other. */
static quire_result bounce_part(const qi_transfer *t, const qi_box *part)
{
    const qi_box_side packed = {.row = part->size, .slice = part->size * part->rows};
    qi_transfer reading = *t, writing = *t;
    qi_box in = *part, out = *part;
    reading.to = (qi_end){.host = t->bounce};
    writing.from = (qi_end){.host = t->bounce};
    in.to = out.from = packed;
    qi_box_merge(&in);
    qi_box_merge(&out);
    quire_result result = copy_from_rows(&reading, &in);
    return result ? result : copy_to_rows(&writing, &out);
}

static quire_result copy_by_bounce(qi_transfer *t, const qi_box *box)
{
    uint64_t bytes = qi_box_bytes(box);
    quire_result result = take_bounce(t);
    for (uint64_t done = 0; done < bytes && !result;) {
        qi_box part = qi_box_part(box, done, t->bounce_size);
        result = bounce_part(t, &part);
        done += qi_box_bytes(&part);
    }
    return result;
}

/* ---- all of them -------------------------------------------------------------------------- */

static quire_result copy_by(qi_transfer *t, const qi_box *box, qi_way way)
{
    switch (way) {
    case QI_WAY_PAGES:
        return copy_by_backend(t, box, t->to.memory, call_copy_pages);
    case QI_WAY_PEER:
        return copy_by_backend(t, box, t->to.memory, call_copy_peer);
    case QI_WAY_HOST:
        return copy_rows(t, box, copy_by_host);
    case QI_WAY_TO_PAGE:
        return copy_to_rows(t, box);
    case QI_WAY_FROM_PAGE:
        return copy_from_rows(t, box);
    case QI_WAY_NONE:
    case QI_WAY_BOUNCE:
        break;
    }
    return copy_by_bounce(t, box);
}

quire_result qi_transfer_copy(qi_transfer *transfer, const qi_box *part)
{
    const quire_memory *to = transfer->to.memory, *from = transfer->from.memory;
    qi_way way = qi_way_first(to, from), next = qi_way_next(way, to, from);
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
