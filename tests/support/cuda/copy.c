/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.c - see copy.h. Every copy is a copy of a box; a row is a box of height and depth 1.
 */
#include "tests/support/cuda/copy.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/array.h"
#include "tests/support/cuda/capture.h"
#include "tests/support/cuda/span.h"

/* Source or target of a copy. */
typedef struct side {
    qi_cu_memory_type type;
    unsigned char *host;
    uint64_t address;
    uint64_t array;
    uint64_t x, y, z, level, pitch, height;
    int device; /* the device whose access rights apply */
    bool writes;
} side;

static side source_of(const qi_cu_memcpy3d *copy, int device)
{
    return (side){.type = copy->srcMemoryType,
                  .host = (unsigned char *)(uintptr_t)copy->srcHost,
                  .address = copy->srcDevice,
                  .array = FC_NUMBER(copy->srcArray),
                  .x = copy->srcXInBytes,
                  .y = copy->srcY,
                  .z = copy->srcZ,
                  .level = copy->srcLOD,
                  .pitch = copy->srcPitch,
                  .height = copy->srcHeight,
                  .device = device};
}

static side target_of(const qi_cu_memcpy3d *copy, int device)
{
    return (side){.type = copy->dstMemoryType,
                  .host = copy->dstHost,
                  .address = copy->dstDevice,
                  .array = FC_NUMBER(copy->dstArray),
                  .x = copy->dstXInBytes,
                  .y = copy->dstY,
                  .z = copy->dstZ,
                  .level = copy->dstLOD,
                  .pitch = copy->dstPitch,
                  .height = copy->dstHeight,
                  .device = device,
                  .writes = true};
}

/* The offset of byte x of row y of slice z from the start of the side. */
static uint64_t offset_in(const side *s, uint64_t x, uint64_t y, uint64_t z)
{
    return ((s->z + z) * s->height + s->y + y) * s->pitch + s->x + x;
}

/* Returns the address, and in *run the bytes that follow in one piece; NULL if access is not
   permitted. */
static unsigned char *reach(const side *s, uint64_t x, uint64_t y, uint64_t z, uint64_t *run)
{
    *run = UINT64_MAX;
    if (s->type == QI_CU_MEMORYTYPE_HOST)
        return s->host + offset_in(s, x, y, z);
    if (s->type == QI_CU_MEMORYTYPE_DEVICE)
        return fc_reach(s->address + offset_in(s, x, y, z), s->device, s->writes, run);
    return fc_array_reach(s->array, (fc_texel){s->x + x, s->y + y, s->z + z, s->level}, run);
}

/* ---- doing -------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool copy_row(const side *to, const side *from, uint64_t y, uint64_t z, uint64_t width)
{
    for (uint64_t x = 0; x < width;) {
        uint64_t to_run, from_run;
        unsigned char *target = reach(to, x, y, z, &to_run);
        const unsigned char *source = reach(from, x, y, z, &from_run);
        uint64_t run = least(width - x, least(to_run, from_run));
        if (!target || !source)
            return false;
        memmove(target, source, (size_t)run);
        x += run;
    }
    return true;
}

static bool run_copy(fc_work *work)
{
    const qi_cu_memcpy3d *copy = &work->copy;
    side to = target_of(copy, work->to_device), from = source_of(copy, work->from_device);
    for (uint64_t z = 0; z < copy->Depth; z++)
        for (uint64_t y = 0; y < copy->Height; y++)
            if (!copy_row(&to, &from, y, z, copy->WidthInBytes))
                return false;
    return true;
}

static bool side_touches(const side *s, const qi_cu_memcpy3d *copy, uint64_t base, uint64_t size)
{
    if (s->type != QI_CU_MEMORYTYPE_DEVICE || !copy->WidthInBytes)
        return false;
    uint64_t begin = s->address + offset_in(s, 0, 0, 0);
    uint64_t end = s->address + offset_in(s, copy->WidthInBytes, copy->Height - 1, copy->Depth - 1);
    return begin < base + size && base < end;
}

static bool run_fill(fc_work *work);

bool fc_copy_touches(const fc_work *work, uint64_t base, uint64_t size)
{
    if (work->run == run_fill)
        return work->fill.to < base + size &&
               base < work->fill.to + work->fill.count * work->fill.width;
    if (work->run != run_copy)
        return false;
    side to = target_of(&work->copy, 0), from = source_of(&work->copy, 0);
    return side_touches(&to, &work->copy, base, size) ||
           side_touches(&from, &work->copy, base, size);
}

/* ---- checking ----------------------------------------------------------------------------- */

static bool may_reach_row(const side *s, uint64_t y, uint64_t z, uint64_t width)
{
    uint64_t run, begin = offset_in(s, 0, y, z);
    if (s->type == QI_CU_MEMORYTYPE_HOST)
        return fc_host_may(s->host + begin, width, s->writes);
    if (s->type == QI_CU_MEMORYTYPE_DEVICE)
        return fc_may_reach(s->address + begin, width, s->device, s->writes);
    for (uint64_t x = 0; x < width; x += run)
        if (!reach(s, x, y, z, &run))
            return false;
    return true;
}

/* Rows and slices must not overlap if there are several. */
static bool has_form(const side *s, const qi_cu_memcpy3d *copy)
{
    if (s->type == QI_CU_MEMORYTYPE_ARRAY)
        return fc_array_holds(s->array, (fc_texel){s->x, s->y, s->z, s->level},
                              (fc_texel){copy->WidthInBytes, copy->Height, copy->Depth, 0});
    if (s->type == QI_CU_MEMORYTYPE_HOST ? !s->host : !s->address)
        return false;
    return (copy->Height * copy->Depth <= 1 || s->pitch >= s->x + copy->WidthInBytes) &&
           (copy->Depth <= 1 || s->height >= s->y + copy->Height);
}

static bool may_reach_box(const side *s, const qi_cu_memcpy3d *copy)
{
    if (s->type == QI_CU_MEMORYTYPE_ARRAY) /* the mapping is checked when the copy runs */
        return true;
    for (uint64_t z = 0; z < copy->Depth; z++)
        for (uint64_t y = 0; y < copy->Height; y++)
            if (!may_reach_row(s, y, z, copy->WidthInBytes))
                return false;
    return true;
}

static void resolve_unified(qi_cu_memcpy3d *copy)
{
    if (copy->srcMemoryType == QI_CU_MEMORYTYPE_UNIFIED) {
        copy->srcMemoryType =
            fc_span_at(copy->srcDevice) ? QI_CU_MEMORYTYPE_DEVICE : QI_CU_MEMORYTYPE_HOST;
        copy->srcHost = (const void *)(uintptr_t)copy->srcDevice;
    }
    if (copy->dstMemoryType == QI_CU_MEMORYTYPE_UNIFIED) {
        copy->dstMemoryType =
            fc_span_at(copy->dstDevice) ? QI_CU_MEMORYTYPE_DEVICE : QI_CU_MEMORYTYPE_HOST;
        copy->dstHost = (void *)(uintptr_t)copy->dstDevice;
    }
}

static bool is_type(qi_cu_memory_type type)
{
    return type >= QI_CU_MEMORYTYPE_HOST && type <= QI_CU_MEMORYTYPE_UNIFIED;
}

static bool check(fc_work *work)
{
    qi_cu_memcpy3d *copy = &work->copy;
    if (!is_type(copy->srcMemoryType) || !is_type(copy->dstMemoryType) || copy->reserved0 ||
        copy->reserved1)
        return false;
    resolve_unified(copy);
    side to = target_of(copy, work->to_device), from = source_of(copy, work->from_device);
    return has_form(&to, copy) && has_form(&from, copy) && may_reach_box(&to, copy) &&
           may_reach_box(&from, copy);
}

/* ---- queueing ----------------------------------------------------------------------------- */

static bool is_pageable(const void *pointer)
{
    return !fc_span_at((uintptr_t)pointer);
}

/* The driver reads pageable memory before the call returns. */
static void stage(fc_work *work)
{
    qi_cu_memcpy3d *copy = &work->copy;
    size_t row = copy->WidthInBytes;
    if (copy->srcMemoryType != QI_CU_MEMORYTYPE_HOST || !is_pageable(copy->srcHost))
        return;
    side from = source_of(copy, 0);
    work->staged = malloc(row * copy->Height * copy->Depth + 1);
    if (!work->staged)
        abort();
    for (uint64_t z = 0; z < copy->Depth; z++)
        for (uint64_t y = 0; y < copy->Height; y++)
            memcpy(work->staged + (z * copy->Height + y) * row,
                   from.host + offset_in(&from, 0, y, z), row);
    copy->srcHost = work->staged;
    copy->srcXInBytes = copy->srcY = copy->srcZ = 0;
    copy->srcPitch = row;
    copy->srcHeight = copy->Height;
}

qi_cu_result fc_copy(fc_context *context, fc_call call, const qi_cu_memcpy3d *copy, int to_device,
                     int from_device, qi_cu_stream stream, bool waits)
{
    fc_work work = {.call = call,
                    .run = run_copy,
                    .copy = *copy,
                    .to_device = to_device,
                    .from_device = from_device};
    if (!fc_line_of(call, context, stream))
        return QI_CUDA_ERROR_INVALID_HANDLE;
    if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
        return 0;
    if (!check(&work))
        return QI_CUDA_ERROR_INVALID_VALUE;
    /* the host waits for no copy from device memory to device memory (cuda.h 13.0, "API
       synchronization behavior"; seen on an H100) */
    waits &= work.copy.dstMemoryType == QI_CU_MEMORYTYPE_HOST ||
             work.copy.srcMemoryType == QI_CU_MEMORYTYPE_HOST;
    /* a copy to pageable memory is complete when the call returns */
    waits |= work.copy.dstMemoryType == QI_CU_MEMORYTYPE_HOST && is_pageable(work.copy.dstHost);
    /* a node of a graph reads the memory of the host in each launch */
    const bool is_captured = fc_is_capturing(call, context, stream);
    if (!waits && !is_captured)
        stage(&work);
    qi_cu_result result = fc_queue(context, stream, &work);
    return result || !waits || is_captured ? result : fc_finish_stream(context, stream);
}

qi_cu_memcpy3d fc_row(qi_cu_memory_type to_type, void *to_host, qi_cu_ptr to,
                      qi_cu_memory_type from_type, const void *from_host, qi_cu_ptr from,
                      size_t size)
{
    return (qi_cu_memcpy3d){.dstMemoryType = to_type,
                            .dstHost = to_host,
                            .dstDevice = to,
                            .srcMemoryType = from_type,
                            .srcHost = from_host,
                            .srcDevice = from,
                            .WidthInBytes = size,
                            .Height = 1,
                            .Depth = 1};
}

/* ---- fills -------------------------------------------------------------------------------- */

static bool run_fill(fc_work *work)
{
    const fc_fill *fill = &work->fill;
    uint64_t size = fill->count * fill->width;
    const unsigned char *value = (const unsigned char *)&fill->value;
    for (uint64_t at = 0; at < size;) {
        uint64_t run;
        unsigned char *bytes = fc_reach(fill->to + at, work->device, true, &run);
        if (!bytes)
            return false;
        run = least(run, size - at);
        if (fill->width == 1)
            memset(bytes, *value, (size_t)run);
        else /* pieces consist of whole elements */
            for (uint64_t i = 0; i < run; i++)
                bytes[i] = value[(at + i) % sizeof fill->value];
        at += run;
    }
    return true;
}

/* A synchronous fill is complete on return in these alone (cuda.h 13.0, "API synchronization
   behavior"). */
static bool is_host_or_managed(uint64_t address)
{
    const fc_span *span = fc_span_at(address);
    return span->kind == FC_PINNED || span->kind == FC_REGISTERED || span->kind == FC_MANAGED;
}

static qi_cu_result fill(fc_call call, const fc_fill *what, qi_cu_stream stream, bool waits)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(call, &result);
    FC_REFUSE_IF(!fc_line_of(call, context, stream), INVALID_HANDLE);
    FC_REFUSE_IF(what->to % what->width || what->count > UINT64_MAX / what->width ||
                     !fc_may_reach(what->to, what->count * what->width, context->device, true),
                 INVALID_VALUE);
    if (!result && what->count)
        result =
            fc_queue(context, stream, &(fc_work){.call = call, .run = run_fill, .fill = *what});
    if (!result && waits && what->count && is_host_or_managed(what->to))
        result = fc_finish_stream(context, stream);
    return fc_leave(result);
}

qi_cu_result fc_MemsetD8_v2(qi_cu_ptr to, unsigned char value, size_t count)
{
    return fill(FC_CALL_MemsetD8_v2, &(fc_fill){to, count, value, 1}, NULL, true);
}

qi_cu_result fc_MemsetD32_v2(qi_cu_ptr to, unsigned int value, size_t count)
{
    return fill(FC_CALL_MemsetD32_v2, &(fc_fill){to, count, value, 4}, NULL, true);
}

qi_cu_result fc_MemsetD8Async(qi_cu_ptr to, unsigned char value, size_t count, qi_cu_stream stream)
{
    return fill(FC_CALL_MemsetD8Async, &(fc_fill){to, count, value, 1}, stream, false);
}

qi_cu_result fc_MemsetD32Async(qi_cu_ptr to, unsigned int value, size_t count, qi_cu_stream stream)
{
    return fill(FC_CALL_MemsetD32Async, &(fc_fill){to, count, value, 4}, stream, false);
}
