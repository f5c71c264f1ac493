/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.c - copies and fills. Without a stream the host itself copies bytes that it reaches; the
 * driver copies the others in the default stream, and the call returns when they are done. On a
 * stream the driver copies everything. Rows need as few calls as their pitches allow.
 */
#include "backends/cuda/copy.h"

#include <limits.h>
#include <string.h>

#include "backends/cuda/stream.h"
#include "src/base/result.h"

/* ---- between the host and pages ----------------------------------------------------------- */

/*
 * These complete before they return. Pages that the host reaches are copied by the host.
 *
 * The driver's copies run in the context's default stream, after the work of its blocking streams,
 * as cuMemcpy does. A copy to the device may return when the driver has read the bytes, and a fill
 * before it has run; quire therefore waits for the stream. While a capture makes the default stream
 * unusable, they are NOT_PERMITTED.
 */

/* Returns true if the default stream is to be awaited again: while another thread captures a graph
   in a stream that waits for it, which a pause outlasts, and once after any other error. */
static bool waits_again(qi_cu_result code, uint32_t *pauses)
{
    if (!code)
        return false;
    return qi_cuda_result(code) == QUIRE_ERROR_NOT_PERMITTED ? qi_cuda_pause(pauses, NULL)
                                                             : !(*pauses)++;
}

/* Waits for the default stream, also after an error, because earlier calls may have left work in
   it, and leaves the context. Returns `code`, or else the error of the wait. */
static qi_cu_result finish_default(const qi_cuda *cuda, qi_cu_result code)
{
    uint32_t pauses = 0;
    qi_cu_result waited;
    do
        waited = cuda->f.StreamSynchronize(NULL);
    while (waits_again(waited, &pauses));
    qi_cuda_leave(cuda);
    return code ? code : waited;
}

static quire_result finish(const qi_cuda *cuda, qi_cu_result code, const char *what, uint64_t size)
{
    code = finish_default(cuda, code);
    return code ? qi_cuda_fail(&cuda->f, code, "%s of %s", what, qi_bytes(size).text)
                : QUIRE_SUCCESS;
}

quire_result qi_cuda_copy_to_page(void *state, const quire_native_page *native, uint64_t offset,
                                  const void *data, uint64_t size)
{
    const qi_cuda *cuda = state;
    const qi_cuda_page *page = qi_cuda_page_of(native);
    if (page->host) {
        memcpy((char *)page->host + offset, data, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_cuda_enter_default(cuda);
    if (result)
        return result;
    return finish(cuda, cuda->f.MemcpyHtoD(page->address + offset, data, size), "a copy to a page",
                  size);
}

quire_result qi_cuda_copy_from_page(void *state, const quire_native_page *native, uint64_t offset,
                                    void *data, uint64_t size)
{
    const qi_cuda *cuda = state;
    const qi_cuda_page *page = qi_cuda_page_of(native);
    if (page->host) {
        memcpy(data, (const char *)page->host + offset, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_cuda_enter_default(cuda);
    if (result)
        return result;
    qi_cu_result code = cuda->f.MemcpyDtoH(data, page->address + offset, size);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "a copy of %s from a page", qi_bytes(size).text)
                : QUIRE_SUCCESS;
}

quire_result qi_cuda_fill_page(void *state, const quire_native_page *native, uint64_t offset,
                               uint64_t size, uint8_t value)
{
    const qi_cuda *cuda = state;
    const qi_cuda_page *page = qi_cuda_page_of(native);
    if (page->host) {
        memset((char *)page->host + offset, value, size);
        return QUIRE_SUCCESS;
    }
    quire_result result = qi_cuda_enter_default(cuda);
    if (result)
        return result;
    return finish(cuda, cuda->f.MemsetD8(page->address + offset, value, size), "a fill", size);
}

/* ---- between pages ------------------------------------------------------------------------ */

/*
 * Between pages of one device or of two, and of many rows to and from the host. The default stream
 * is used and awaited here too: copies within a device return before they are done.
 */

/* The largest pitch in bytes that drivers accept: CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices so
   far. */
static const uint64_t MAX_PITCH = INT_MAX;

/* Source or target of a copy: a place in a page, or host memory. */
typedef struct operand {
    qi_cu_ptr address; /* on the device; 0: none */
    char *host;        /* NULL: the host cannot reach it */
    uint64_t row, slice;
} operand;

static operand operand_of(const quire_native_page *native, uint64_t offset, const void *host)
{
    if (!native)
        return (operand){.host = (char *)(uintptr_t)host};
    const qi_cuda_page *page = qi_cuda_page_of(native);
    return (operand){.address = page->address + offset,
                     .host = page->host ? (char *)page->host + offset : NULL};
}

static operand target_of(const quire_copy_job *job)
{
    operand target = operand_of(job->to, job->to_offset, job->host_to);
    target.row = job->to_row;
    target.slice = job->to_slice;
    return target;
}

static operand source_of(const quire_copy_job *job)
{
    operand source = operand_of(job->from, job->from_offset, job->host_from);
    source.row = job->from_row;
    source.slice = job->from_slice;
    return source;
}

/* The operand at a row and slice. */
static operand row_of(const operand *e, uint64_t row, uint64_t slice)
{
    uint64_t offset = row * e->row + slice * e->slice;
    operand at = *e;
    at.address += e->address ? offset : 0;
    at.host = e->host ? e->host + offset : NULL;
    return at;
}

static qi_cu_result copy_row(const qi_cuda *cuda, const operand *to, const operand *from,
                             uint64_t size)
{
    if (to->host && from->host) {
        memcpy(to->host, from->host, size);
        return 0;
    }
    if (from->host)
        return cuda->f.MemcpyHtoD(to->address, from->host, size);
    return to->host ? cuda->f.MemcpyDtoH(to->host, from->address, size)
                    : cuda->f.MemcpyDtoD(to->address, from->address, size);
}

/* Rows from the start of one slice to the start of the next. */
static size_t height_of(const quire_copy_job *job, const operand *e)
{
    return job->slices == 1 ? job->rows : e->slice / e->row;
}

/* Copies rows and slices in one call. */
static qi_cu_result copy_region(const qi_cuda *cuda, const quire_copy_job *job, const operand *to,
                                const operand *from)
{
    const qi_cu_memcpy3d region = {
        .srcMemoryType = from->host ? QI_CU_MEMORYTYPE_HOST : QI_CU_MEMORYTYPE_DEVICE,
        .srcHost = from->host,
        .srcDevice = from->address,
        .srcPitch = from->row,
        .srcHeight = height_of(job, from),
        .dstMemoryType = to->host ? QI_CU_MEMORYTYPE_HOST : QI_CU_MEMORYTYPE_DEVICE,
        .dstHost = to->host,
        .dstDevice = to->address,
        .dstPitch = to->row,
        .dstHeight = height_of(job, to),
        .WidthInBytes = job->size,
        .Height = job->rows,
        .Depth = job->slices,
    };
    return cuda->f.Memcpy3D(&region);
}

/* Returns true if one call can copy the slices: they lie whole rows apart. */
static bool is_region(const quire_copy_job *job, const operand *e)
{
    return e->row <= MAX_PITCH && (job->slices == 1 || e->slice % e->row == 0);
}

/* Copies between two host pointers never go to the driver. */
static qi_cu_result copy_rows(const qi_cuda *cuda, const quire_copy_job *job, const operand *to,
                              const operand *from)
{
    bool many = job->rows > 1, both = to->host && from->host;
    if (many && !both && cuda->f.Memcpy3D && is_region(job, to) && is_region(job, from))
        return copy_region(cuda, job, to, from);
    qi_cu_result code = 0;
    for (uint64_t slice = 0; slice < job->slices && !code; slice++)
        for (uint64_t row = 0; row < job->rows && !code; row++) {
            operand target = row_of(to, row, slice), source = row_of(from, row, slice);
            code = copy_row(cuda, &target, &source, job->size);
        }
    return code;
}

static quire_result finish_job(const qi_cuda *cuda, qi_cu_result code, const quire_copy_job *job)
{
    code = finish_default(cuda, code);
    return code ? qi_cuda_fail(&cuda->f, code, "a copy of %llu slice%s of %llu row%s of %s",
                               (unsigned long long)job->slices, qi_plural(job->slices),
                               (unsigned long long)job->rows, qi_plural(job->rows),
                               qi_bytes(job->size).text)
                : QUIRE_SUCCESS;
}

quire_result qi_cuda_copy_pages(void *state, const quire_copy_job *job)
{
    const qi_cuda *cuda = state;
    quire_result result = qi_cuda_enter_default(cuda);
    if (result)
        return result;
    operand to = target_of(job), from = source_of(job);
    return finish_job(cuda, copy_rows(cuda, job, &to, &from), job);
}

/* One context reaches both pages of its own. Host memory is reachable from either device. */
static qi_cu_result copy_peers(const qi_cuda *cuda, const quire_copy_job *job)
{
    const qi_cuda *other = job->from_state;
    operand to = target_of(job), from = source_of(job);
    if (cuda->context == other->context || from.host)
        return copy_rows(cuda, job, &to, &from);
    qi_cu_result code = 0;
    for (uint64_t slice = 0; slice < job->slices && !code; slice++)
        for (uint64_t row = 0; row < job->rows && !code; row++) {
            operand target = row_of(&to, row, slice), source = row_of(&from, row, slice);
            code = cuda->f.MemcpyPeer(target.address, cuda->context, source.address, other->context,
                                      job->size);
        }
    return code;
}

/* A copy between devices uses the default streams of both contexts. Enters that of the target. */
static quire_result enter_both(const qi_cuda *to, const qi_cuda *from)
{
    quire_result result = qi_cuda_enter_default(from);
    if (result)
        return result;
    qi_cuda_leave(from);
    return qi_cuda_enter_default(to);
}

/* The driver goes through host memory if the devices cannot access each other. */
quire_result qi_cuda_copy_peer(void *state, const quire_copy_job *job)
{
    const qi_cuda *cuda = state;
    if (!cuda->f.MemcpyPeer)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the driver has no copy between devices");
    if (qi_cuda_page_of(job->to)->host && !qi_cuda_page_of(job->from)->host) {
        const qi_cuda *other = job->from_state; /* the device whose memory is read */
        quire_result result = qi_cuda_enter_default(other);
        operand to = target_of(job), from = source_of(job);
        return result ? result : finish_job(other, copy_rows(other, job, &to, &from), job);
    }
    quire_result result = enter_both(cuda, job->from_state);
    return result ? result : finish_job(cuda, copy_peers(cuda, job), job);
}

/* ---- on streams --------------------------------------------------------------------------- */

/*
 * The driver reads pageable host memory before the call returns, or waits for the copy: such a copy
 * completes earlier than it must.
 */

/* Source or target of a copy: a device address or host memory. */
typedef struct place {
    qi_cu_ptr address;
    const char *host; /* NULL: `address` */
    uint64_t row, slice;
    qi_cu_context context;
} place;

/* The device of a place; NULL means the device of the stream. */
static const qi_cuda *state_of(const qi_cuda *cuda, const void *named)
{
    return named ? named : cuda;
}

static place target_place(const qi_cuda *cuda, const quire_copy_job *job)
{
    place s = {
        .host = job->host_to,
        .row = job->to_row,
        .slice = job->to_slice,
        .context = state_of(cuda, job->to_state)->context,
    };
    if (job->to)
        s.address = qi_cuda_page_of(job->to)->address + job->to_offset;
    s.host = job->to ? NULL : s.host;
    return s;
}

static place source_place(const qi_cuda *cuda, const quire_copy_job *job)
{
    place s = {
        .host = job->host_from,
        .row = job->from_row,
        .slice = job->from_slice,
        .context = state_of(cuda, job->from_state)->context,
    };
    if (job->from)
        s.address = qi_cuda_page_of(job->from)->address + job->from_offset;
    s.host = job->from ? NULL : s.host;
    return s;
}

/* The place at a row and slice. */
static place at(const place *s, uint64_t row, uint64_t slice)
{
    place moved = *s;
    uint64_t offset = row * s->row + slice * s->slice;
    moved.address += offset;
    moved.host = s->host ? s->host + offset : NULL;
    return moved;
}

static bool is_between_devices(const place *to, const place *from)
{
    return !to->host && !from->host && to->context != from->context;
}

static qi_cu_result submit_row(const qi_cuda *cuda, qi_cu_stream stream, const place *to,
                               const place *from, uint64_t size)
{
    const qi_cuda_functions *f = &cuda->f;
    if (is_between_devices(to, from))
        return f->MemcpyPeerAsync(to->address, to->context, from->address, from->context, size,
                                  stream);
    if (from->host)
        return f->MemcpyHtoDAsync(to->address, from->host, size, stream);
    if (to->host)
        return f->MemcpyDtoHAsync((void *)(uintptr_t)to->host, from->address, size, stream);
    return f->MemcpyDtoDAsync(to->address, from->address, size, stream);
}

/* Returns true if one call can copy the rows: they do not overlap, and their pitches fit into 31
   bits. */
static bool is_plane(const qi_cuda *cuda, const place *to, const place *from, uint64_t size)
{
    return cuda->f.Memcpy2DAsync && !is_between_devices(to, from) && to->row >= size &&
           from->row >= size && to->row <= INT32_MAX && from->row <= INT32_MAX;
}

static qi_cu_result submit_plane(const qi_cuda *cuda, qi_cu_stream stream, const place *to,
                                 const place *from, uint64_t size, uint64_t rows)
{
    const qi_cu_memcpy2d plane = {
        .srcMemoryType = from->host ? QI_CU_MEMORYTYPE_HOST : QI_CU_MEMORYTYPE_DEVICE,
        .srcHost = from->host,
        .srcDevice = from->host ? 0 : from->address,
        .srcPitch = from->row,
        .dstMemoryType = to->host ? QI_CU_MEMORYTYPE_HOST : QI_CU_MEMORYTYPE_DEVICE,
        .dstHost = (void *)(uintptr_t)to->host,
        .dstDevice = to->host ? 0 : to->address,
        .dstPitch = to->row,
        .WidthInBytes = size,
        .Height = rows,
    };
    return cuda->f.Memcpy2DAsync(&plane, stream);
}

/* Copies each slice in one call if the driver can, or else row by row. */
static qi_cu_result submit_slices(const qi_cuda *cuda, qi_cu_stream stream,
                                  const quire_copy_job *job)
{
    place to = target_place(cuda, job), from = source_place(cuda, job);
    bool has_planes = job->rows > 1 && is_plane(cuda, &to, &from, job->size);
    uint64_t steps = has_planes ? 1 : job->rows;
    qi_cu_result code = QI_CUDA_SUCCESS;
    for (uint64_t slice = 0; slice < job->slices && !code; slice++)
        for (uint64_t row = 0; row < steps && !code; row++) {
            place row_to = at(&to, row, slice), row_from = at(&from, row, slice);
            code = has_planes ? submit_plane(cuda, stream, &row_to, &row_from, job->size, job->rows)
                              : submit_row(cuda, stream, &row_to, &row_from, job->size);
        }
    return code;
}

/* Returns true if a copy is between pages of two contexts, which cuMemcpyPeerAsync requires. */
static bool is_peer_job(const qi_cuda *cuda, const quire_copy_job *job)
{
    return job->to && job->from &&
           state_of(cuda, job->to_state)->context != state_of(cuda, job->from_state)->context;
}

quire_result qi_cuda_stream_copy(void *state, uint64_t number, const quire_copy_job *job)
{
    const qi_cuda *cuda = state;
    const qi_cuda_stream *stream = qi_cuda_stream_of(number);
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (is_peer_job(cuda, job) && !cuda->f.MemcpyPeerAsync)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the CUDA driver has no cuMemcpyPeerAsync");
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = qi_cuda_check_capture(cuda, stream);
    if (!result)
        code = submit_slices(cuda, qi_cuda_stream_handle(stream), job);
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "a copy of %s on a stream", qi_bytes(job->size).text)
                : result;
}

quire_result qi_cuda_stream_fill(void *state, uint64_t number, const quire_native_page *native,
                                 uint64_t offset, uint64_t size, uint8_t value)
{
    const qi_cuda *cuda = state;
    const qi_cuda_stream *stream = qi_cuda_stream_of(number);
    qi_cu_result code = QI_CUDA_SUCCESS;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result = qi_cuda_check_capture(cuda, stream);
    if (!result)
        code = cuda->f.MemsetD8Async(qi_cuda_page_of(native)->address + offset, value, size,
                                     qi_cuda_stream_handle(stream));
    qi_cuda_leave(cuda);
    return code ? qi_cuda_fail(&cuda->f, code, "a fill of %s on a stream", qi_bytes(size).text)
                : result;
}
