/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_path.c - tries the paths of a copy in this order: by the host, if it reaches both ends and
 * reads the source fast; by the backend from page to page; by the host and the backend's copies to
 * and from pages, through a bounce buffer if the host reaches neither end (see copy_path.h).
 *
 * An end that the host writes is flushed afterwards and an end that it reads is invalidated before,
 * if the memory kind is not coherent.
 */
#include "src/core/copy/copy_path.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/page/map.h"

/* ---- regions ------------------------------------------------------------------------------ */

/*
 * Overflow is checked once, when the extents are computed (qi_copy_region_extent_overflows). All
 * other functions rely on that.
 */

bool qi_copy_region_extent_overflows(const qi_copy_region *region, const qi_copy_region_side *side,
                                     uint64_t *extent)
{
    uint64_t rows = 0, slices = 0;
    return qi_multiply_overflows(region->rows - 1, side->row, &rows) ||
           qi_multiply_overflows(region->slices - 1, side->slice, &slices) ||
           qi_add_overflows(rows, slices, extent) ||
           qi_add_overflows(*extent, region->size, extent);
}

uint64_t qi_copy_region_extent(const qi_copy_region *region, const qi_copy_region_side *side)
{
    return (region->slices - 1) * side->slice + (region->rows - 1) * side->row + region->size;
}

/* Whether the rows of each slice follow each other without a gap. */
static bool are_rows_tight(const qi_copy_region *region, const qi_copy_region_side *side)
{
    return region->rows == 1 || side->row == region->size;
}

/*
 * Turns slices into rows of one slice if all rows have the same distance: slices of one row
 * each, or slices that follow each other at the distance of the rows.
 */
static void flatten(qi_copy_region *region)
{
    bool is_even = region->rows == 1 || (region->to.slice == region->rows * region->to.row &&
                                         region->from.slice == region->rows * region->from.row);
    if (region->slices == 1 || !is_even)
        return;
    if (region->rows == 1) {
        region->to.row = region->to.slice;
        region->from.row = region->from.slice;
    }
    region->rows *= region->slices;
    region->slices = 1;
}

void qi_copy_region_merge(qi_copy_region *region)
{
    if (are_rows_tight(region, &region->to) && are_rows_tight(region, &region->from)) {
        region->size *= region->rows;
        region->rows = 1;
    }
    flatten(region);
    if (are_rows_tight(region, &region->to) && are_rows_tight(region, &region->from)) {
        region->size *= region->rows; /* the slices became rows */
        region->rows = 1;
    }
}

qi_copy_region qi_copy_region_part(const qi_copy_region *region, uint64_t done, uint64_t room)
{
    uint64_t slice_bytes = region->size * region->rows;
    uint64_t slice = done / slice_bytes, in_slice = done % slice_bytes;
    uint64_t row = in_slice / region->size, byte = in_slice % region->size;
    qi_copy_region part = *region;
    part.to.offset = qi_copy_region_at(&region->to, row, slice) + byte;
    part.from.offset = qi_copy_region_at(&region->from, row, slice) + byte;
    if (!in_slice && room >= slice_bytes) {
        uint64_t slices = room / slice_bytes, left = region->slices - slice;
        part.slices = slices < left ? slices : left;
        return part;
    }
    part.slices = 1;
    if (!byte && room >= region->size) {
        uint64_t rows = room / region->size, left = region->rows - row;
        part.rows = rows < left ? rows : left;
        return part;
    }
    uint64_t left = region->size - byte;
    part.rows = 1;
    part.size = room < left ? room : left;
    return part;
}

/*
 * Whether a row of this end has a byte in [begin, begin + size). Rows ascend and do not overlap, so
 * only the last row that begins before the end of the range can.
 */
static bool reaches(const qi_copy_region *region, const qi_copy_region_side *side, uint64_t begin)
{
    uint64_t last = begin + region->size - 1;
    if (last < side->offset)
        return false;
    uint64_t distance = last - side->offset, slice = 0, row = 0;
    if (region->slices > 1)
        slice =
            distance / side->slice < region->slices ? distance / side->slice : region->slices - 1;
    distance -= slice * side->slice;
    if (region->rows > 1)
        row = distance / side->row < region->rows ? distance / side->row : region->rows - 1;
    return qi_copy_region_at(side, row, slice) + region->size > begin;
}

bool qi_copy_region_overlaps(const qi_copy_region *region)
{
    uint64_t to_end = region->to.offset + qi_copy_region_extent(region, &region->to);
    uint64_t from_end = region->from.offset + qi_copy_region_extent(region, &region->from);
    if (region->to.offset >= from_end || region->from.offset >= to_end)
        return false;
    for (uint64_t slice = 0; slice < region->slices; slice++)
        for (uint64_t row = 0; row < region->rows; row++)
            if (reaches(region, &region->from, qi_copy_region_at(&region->to, row, slice)))
                return true;
    return false;
}

/* ---- pages that are mapped on demand ------------------------------------------------------ */

static bool is_on_demand(const qi_end *end)
{
    return end->memory && end->memory->maps_on_demand;
}

static quire_result reach(qi_end *end)
{
    if (!is_on_demand(end) || end->host)
        return QUIRE_SUCCESS;
    return qi_page_map_begin(end->memory, qi_memory_page(end->memory, end->slot), &end->host);
}

static void leave(qi_end *end)
{
    if (!is_on_demand(end) || !end->host)
        return;
    qi_page_map_end_slot(end->memory, end->slot);
    end->host = NULL;
}

quire_result qi_copy_reach(qi_copy *copy, qi_copy_path path)
{
    bool is_by_host = path == QI_COPY_PATH_HOST;
    quire_result result = QUIRE_SUCCESS;
    if (is_by_host || path == QI_COPY_PATH_TO_PAGE)
        result = reach(&copy->from);
    if (!result && (is_by_host || path == QI_COPY_PATH_FROM_PAGE))
        result = reach(&copy->to);
    return result;
}

static void leave_ends(qi_copy *copy)
{
    leave(&copy->to);
    leave(&copy->from);
}

/* ---- the path ----------------------------------------------------------------------------- */

/* 1 MiB: bytes read from one page before they are written to another. */
static const uint64_t BOUNCE_SIZE = UINT64_C(1) << 20;

static bool is_host_visible(const quire_memory *memory)
{
    return !memory || memory->flags & QUIRE_HOST_VISIBLE;
}

/* The host reads uncached memory word by word, and device memory across the bus. */
static bool is_fast_to_read(const quire_memory *memory)
{
    return !memory || memory->flags & QUIRE_HOST_CACHED;
}

/* The path without copies between pages by the backend. */
static qi_copy_path by_host(const quire_memory *to, const quire_memory *from)
{
    if (is_host_visible(to) && is_host_visible(from))
        return QI_COPY_PATH_HOST;
    if (is_host_visible(from))
        return QI_COPY_PATH_TO_PAGE;
    return is_host_visible(to) ? QI_COPY_PATH_FROM_PAGE : QI_COPY_PATH_BOUNCE;
}

/*
 * The host copies if it reaches both ends and reads the source fast. Otherwise the backend
 * copies from page to page, if it can: within one device, or between two devices of one backend.
 */
qi_copy_path qi_copy_path_first(const quire_memory *to, const quire_memory *from)
{
    qi_copy_path host = by_host(to, from);
    if (!to || !from || (host == QI_COPY_PATH_HOST && is_fast_to_read(from)))
        return host;
    if (to->device == from->device)
        return qi_device_offers(to->device, QUIRE_BACKEND_COPY_PAGES) ? QI_COPY_PATH_PAGES : host;
    bool are_peers = to->device->original == from->device->original &&
                     qi_device_offers(to->device, QUIRE_BACKEND_COPY_PEER);
    return are_peers ? QI_COPY_PATH_PEER : host;
}

/* Only copies between pages have an alternative: a backend may refuse the kinds or devices. */
static qi_copy_path next_part(qi_copy_path path, const quire_memory *to, const quire_memory *from)
{
    return path == QI_COPY_PATH_PAGES || path == QI_COPY_PATH_PEER ? by_host(to, from)
                                                                   : QI_COPY_PATH_NONE;
}

/* The public path for a copy that one function of the backend makes. */
static quire_copy_path path_of_call(const quire_memory *memory, quire_backend_features needed)
{
    if (!qi_device_offers(memory->device, needed))
        return QUIRE_COPY_UNSUPPORTED;
    return qi_device_offers(memory->device, QUIRE_BACKEND_STAGES) ? QUIRE_COPY_STAGED
                                                                  : QUIRE_COPY_DIRECT;
}

quire_copy_path qi_copy_path_public(qi_copy_path path, const quire_memory *to,
                                    const quire_memory *from)
{
    switch (path) {
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
    bool offer_both = qi_device_offers(to->device, QUIRE_BACKEND_COPY_TO_PAGE) &&
                      qi_device_offers(from->device, QUIRE_BACKEND_COPY_FROM_PAGE);
    return offer_both ? QUIRE_COPY_HOST : QUIRE_COPY_UNSUPPORTED;
}

/* ---- by the backend ----------------------------------------------------------------------- */

/* An end in a page has an offset in it; an end on the host has a pointer to its first byte. */
static quire_copy_job job_of(const qi_copy *copy, const qi_copy_region *region)
{
    const qi_end *to = &copy->to, *from = &copy->from;
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

quire_result qi_copy_call(const qi_copy *copy, const qi_copy_region *part, const qi_job_call *call)
{
    bool takes_rows = qi_device_offers(call->device, QUIRE_BACKEND_ROWS);
    uint64_t bytes = qi_copy_region_bytes(part), room = takes_rows ? bytes : part->size;
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t done = 0; done < bytes && !result; done += room) {
        qi_copy_region piece = qi_copy_region_part(part, done, room);
        quire_copy_job job = job_of(copy, &piece);
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

/* Copies by a function of the backend. The call counts for `memory`. */
static quire_result copy_by_backend(const qi_copy *copy, const qi_copy_region *region,
                                    quire_memory *memory,
                                    quire_result (*call)(const qi_job_call *,
                                                         const quire_copy_job *))
{
    const qi_job_call calling = {.call = call, .device = memory->device, .calls = &memory->calls};
    return qi_copy_call(copy, region, &calling);
}

/* ---- row by row --------------------------------------------------------------------------- */

/* Called before the host reads bytes of an end. */
static quire_result begin_reading(const qi_end *end, uint64_t offset, uint64_t size)
{
    return end->memory ? qi_access_invalidate_page(end->memory, end->page, offset, size)
                       : QUIRE_SUCCESS;
}

/* Called after the host wrote bytes of an end. */
static quire_result end_writing(const qi_end *end, uint64_t offset, uint64_t size)
{
    return end->memory ? qi_access_flush_page(end->memory, end->page, offset, size) : QUIRE_SUCCESS;
}

/* Copies one row from offset `from` to offset `to`. */
typedef quire_result (*row_function)(const qi_copy *copy, uint64_t to, uint64_t from,
                                     uint64_t size);

static quire_result copy_by_host(const qi_copy *copy, uint64_t to, uint64_t from, uint64_t size)
{
    quire_result result = begin_reading(&copy->from, from, size);
    if (result)
        return result;
    memcpy(copy->to.host + to, copy->from.host + from, size);
    return end_writing(&copy->to, to, size);
}

static quire_result copy_to_page(const qi_copy *copy, uint64_t to, uint64_t from, uint64_t size)
{
    quire_memory *memory = copy->to.memory;
    quire_result result = begin_reading(&copy->from, from, size);
    return result ? result
                  : qi_device_copy_to_page(memory->device, &memory->calls, copy->to.page, to,
                                           copy->from.host + from, size);
}

static quire_result copy_from_page(const qi_copy *copy, uint64_t to, uint64_t from, uint64_t size)
{
    quire_memory *memory = copy->from.memory;
    quire_result result = qi_device_copy_from_page(memory->device, &memory->calls, copy->from.page,
                                                   from, copy->to.host + to, size);
    return result ? result : end_writing(&copy->to, to, size);
}

/* Copies every row by itself, up to the first failure. */
static quire_result copy_rows(const qi_copy *copy, const qi_copy_region *region,
                              row_function copy_row)
{
    quire_result result = QUIRE_SUCCESS;
    for (uint64_t slice = 0; slice < region->slices && !result; slice++)
        for (uint64_t row = 0; row < region->rows && !result; row++)
            result = copy_row(copy, qi_copy_region_at(&region->to, row, slice),
                              qi_copy_region_at(&region->from, row, slice), region->size);
    return result;
}

/* begin_reading or end_writing for every row of an end. The gaps between rows are left alone: they
   may hold bytes that the host wrote and did not flush. */
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

/* A mapped end as plain host memory: a job names a page or a pointer, not both. */
static qi_end as_host_memory(const qi_end *end)
{
    return (qi_end){.host = end->host};
}

/* Copies many rows between the host and a page in one call. */
static quire_result copy_to_page_at_once(const qi_copy *copy, const qi_copy_region *region)
{
    qi_copy flat = *copy;
    flat.from = as_host_memory(&copy->from);
    quire_result result = sync_rows(&copy->from, region, &region->from, begin_reading);
    return result ? result : copy_by_backend(&flat, region, copy->to.memory, call_copy_pages);
}

static quire_result copy_from_page_at_once(const qi_copy *copy, const qi_copy_region *region)
{
    qi_copy flat = *copy;
    flat.to = as_host_memory(&copy->to);
    quire_result result = copy_by_backend(&flat, region, copy->from.memory, call_copy_pages);
    return result ? result : sync_rows(&copy->to, region, &region->to, end_writing);
}

/* Whether one call can copy these rows between the host and a page of the memory. */
static bool takes_rows(const quire_memory *memory, const qi_copy_region *region)
{
    return region->rows * region->slices > 1 &&
           qi_device_offers(memory->device, QUIRE_BACKEND_ROWS) &&
           qi_device_offers(memory->device, QUIRE_BACKEND_COPY_PAGES);
}

/* If the backend answers UNSUPPORTED for these rows they are copied one by one. */
static quire_result copy_to_rows(const qi_copy *copy, const qi_copy_region *region)
{
    if (!takes_rows(copy->to.memory, region))
        return copy_rows(copy, region, copy_to_page);
    qi_error before;
    qi_error_save(&before);
    quire_result result = copy_to_page_at_once(copy, region);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    qi_error_restore(&before);
    return copy_rows(copy, region, copy_to_page);
}

/* Like copy_to_rows, in the other direction. */
static quire_result copy_from_rows(const qi_copy *copy, const qi_copy_region *region)
{
    if (!takes_rows(copy->from.memory, region))
        return copy_rows(copy, region, copy_from_page);
    qi_error before;
    qi_error_save(&before);
    quire_result result = copy_from_page_at_once(copy, region);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    qi_error_restore(&before);
    return copy_rows(copy, region, copy_from_page);
}

/* ---- through host memory ------------------------------------------------------------------ */

/* Allocates the bounce buffer, at most as large as the copy; it serves all parts. On this path both
   ends are in memories: the target's host callbacks allocate it. */
static quire_result allocate_bounce(qi_copy *copy)
{
    uint64_t bytes = qi_copy_region_bytes(&copy->region);
    if (copy->bounce)
        return QUIRE_SUCCESS;
    copy->bounce_size = bytes < BOUNCE_SIZE ? bytes : BOUNCE_SIZE;
    copy->bounce = qi_host_allocate(&copy->to.memory->host, copy->bounce_size, 1);
    return copy->bounce ? QUIRE_SUCCESS
                        : qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                       "no host memory for %b to copy through", copy->bounce_size);
}

void qi_copy_finish(qi_copy *copy)
{
    if (copy->bounce)
        qi_host_release(&copy->to.memory->host, copy->bounce, copy->bounce_size, 1);
    copy->bounce = NULL;
    leave_ends(copy);
}

/* Copies a part that fits into the bounce buffer, where its rows are packed without gaps. */
static quire_result bounce_part(const qi_copy *copy, const qi_copy_region *part)
{
    const qi_copy_region_side packed = {.row = part->size, .slice = part->size * part->rows};
    qi_copy reading = *copy, writing = *copy;
    qi_copy_region in = *part, out = *part;
    reading.to = (qi_end){.host = copy->bounce};
    writing.from = (qi_end){.host = copy->bounce};
    in.to = out.from = packed;
    qi_copy_region_merge(&in);
    qi_copy_region_merge(&out);
    quire_result result = copy_from_rows(&reading, &in);
    return result ? result : copy_to_rows(&writing, &out);
}

/* Copies piece by piece through the buffer: as many rows as it holds, or a part of one. */
static quire_result copy_by_bounce(qi_copy *copy, const qi_copy_region *region)
{
    uint64_t bytes = qi_copy_region_bytes(region);
    quire_result result = allocate_bounce(copy);
    for (uint64_t done = 0; done < bytes && !result;) {
        qi_copy_region part = qi_copy_region_part(region, done, copy->bounce_size);
        result = bounce_part(copy, &part);
        done += qi_copy_region_bytes(&part);
    }
    return result;
}

/* ---- all paths ---------------------------------------------------------------------------- */

static quire_result copy_by(qi_copy *copy, const qi_copy_region *region, qi_copy_path path)
{
    quire_result result = qi_copy_reach(copy, path);
    if (result)
        return result;
    switch (path) {
    case QI_COPY_PATH_PAGES:
        return copy_by_backend(copy, region, copy->to.memory, call_copy_pages);
    case QI_COPY_PATH_PEER:
        return copy_by_backend(copy, region, copy->to.memory, call_copy_peer);
    case QI_COPY_PATH_HOST:
        return copy_rows(copy, region, copy_by_host);
    case QI_COPY_PATH_TO_PAGE:
        return copy_to_rows(copy, region);
    case QI_COPY_PATH_FROM_PAGE:
        return copy_from_rows(copy, region);
    case QI_COPY_PATH_NONE:
    case QI_COPY_PATH_BOUNCE:
        break;
    }
    return copy_by_bounce(copy, region);
}

quire_result qi_copy_execute(qi_copy *copy, const qi_copy_region *part)
{
    const quire_memory *to = copy->to.memory, *from = copy->from.memory;
    qi_copy_path path = qi_copy_path_first(to, from), next = next_part(path, to, from);
    if (!next)
        return copy_by(copy, part, path);
    qi_error before;
    qi_error_save(&before);
    quire_result result = copy_by(copy, part, path);
    if (result != QUIRE_ERROR_UNSUPPORTED)
        return result;
    result = copy_by(copy, part, next);
    if (!result)
        qi_error_restore(&before); /* the other path worked: the failure does not count */
    return result;
}
