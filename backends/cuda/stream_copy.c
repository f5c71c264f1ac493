/*
 * stream_copy.c - copies and fills that are submitted to a stream.
 *
 * Pages of host memory have device addresses too, so every page is device memory to the driver. The
 * driver reads pageable host memory before the call returns, or waits for the copy: such a copy
 * completes earlier than it must.
 */
#include "backends/cuda/page.h"
#include "backends/cuda/stream.h"
#include "src/base/result.h"

/* Source or target of a copy: a device address or host memory. */
typedef struct operand {
    qi_cu_ptr address;
    const char *host; /* NULL: `address` */
    uint64_t row, slice;
    qi_cu_context context;
} operand;

/* The device of an operand; NULL means the device of the stream. */
static const qi_cuda *state_of(const qi_cuda *cuda, const void *named)
{
    return named ? named : cuda;
}

static operand target_of(const qi_cuda *cuda, const quire_copy_job *job)
{
    operand s = {
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

static operand source_of(const qi_cuda *cuda, const quire_copy_job *job)
{
    operand s = {
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

/* The operand at a row and slice. */
static operand at(const operand *s, uint64_t row, uint64_t slice)
{
    operand moved = *s;
    uint64_t offset = row * s->row + slice * s->slice;
    moved.address += offset;
    moved.host = s->host ? s->host + offset : NULL;
    return moved;
}

static bool is_between_devices(const operand *to, const operand *from)
{
    return !to->host && !from->host && to->context != from->context;
}

static qi_cu_result copy_row(const qi_cuda *cuda, qi_cu_stream stream, const operand *to,
                             const operand *from, uint64_t size)
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
static bool is_plane(const qi_cuda *cuda, const operand *to, const operand *from, uint64_t size)
{
    return cuda->f.Memcpy2DAsync && !is_between_devices(to, from) && to->row >= size &&
           from->row >= size && to->row <= INT32_MAX && from->row <= INT32_MAX;
}

static qi_cu_result copy_plane(const qi_cuda *cuda, qi_cu_stream stream, const operand *to,
                               const operand *from, uint64_t size, uint64_t rows)
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

/* Copies each slice in one call where the driver can, or row by row. */
static qi_cu_result copy_slices(const qi_cuda *cuda, qi_cu_stream stream, const quire_copy_job *job)
{
    operand to = target_of(cuda, job), from = source_of(cuda, job);
    bool has_planes = job->rows > 1 && is_plane(cuda, &to, &from, job->size);
    uint64_t steps = has_planes ? 1 : job->rows;
    qi_cu_result code = QI_CUDA_SUCCESS;
    for (uint64_t slice = 0; slice < job->slices && !code; slice++)
        for (uint64_t row = 0; row < steps && !code; row++) {
            operand row_to = at(&to, row, slice), row_from = at(&from, row, slice);
            code = has_planes ? copy_plane(cuda, stream, &row_to, &row_from, job->size, job->rows)
                              : copy_row(cuda, stream, &row_to, &row_from, job->size);
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
        code = copy_slices(cuda, qi_cuda_stream_handle(stream), job);
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
