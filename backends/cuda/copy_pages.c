/*
 * copy_pages.c - copies between pages of one device or of two, and of many rows to and from the
 * host.
 *
 * Every page has a device address, host memory included. As in copy.c the default stream is used
 * and awaited: copies within a device return before they are done.
 */
#include <limits.h>
#include <string.h>

#include "backends/cuda/page.h"
#include "src/base/result.h"

/* The largest pitch in bytes that drivers accept: CU_DEVICE_ATTRIBUTE_MAX_PITCH of all devices so
   far. */
static const uint64_t MAX_PITCH = INT_MAX;

/* ---- operands --------------------------------------------------------------------------- */

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

/* ---- rows ------------------------------------------------------------------------------- */

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

/* ---- entries of the backend table ------------------------------------------------------- */

static quire_result finish(const qi_cuda *cuda, qi_cu_result code, const quire_copy_job *job)
{
    code = qi_cuda_finish_default(cuda, code);
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
    return finish(cuda, copy_rows(cuda, job, &to, &from), job);
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
        return result ? result : finish(other, copy_rows(other, job, &to, &from), job);
    }
    quire_result result = enter_both(cuda, job->from_state);
    return result ? result : finish(cuda, copy_peers(cuda, job), job);
}
