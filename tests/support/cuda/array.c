/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * array.c - see array.h.
 */
#include "tests/support/cuda/array.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/cuda/context.h"
#include "tests/support/cuda/queue.h"

#define LEVEL_ALIGNMENT 512
#define MAX_LEVELS 17
#define MAX_EXTENT 131072
#define ALL_FLAGS                                                                                  \
    (unsigned)(QI_CUDA_ARRAY3D_LAYERED | QI_CUDA_ARRAY3D_SURFACE_LDST | QI_CUDA_ARRAY3D_CUBEMAP |  \
               QI_CUDA_ARRAY3D_TEXTURE_GATHER | QI_CUDA_ARRAY3D_SPARSE |                           \
               QI_CUDA_ARRAY3D_DEFERRED_MAPPING)
#define MAPPED_LATER (unsigned)(QI_CUDA_ARRAY3D_SPARSE | QI_CUDA_ARRAY3D_DEFERRED_MAPPING)

/* ---- form --------------------------------------------------------------------------------- */

static uint32_t bytes_of(qi_cu_array_format format)
{
    switch (format) {
    case QI_CU_AD_FORMAT_UNSIGNED_INT8:
    case QI_CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case QI_CU_AD_FORMAT_UNSIGNED_INT16:
    case QI_CU_AD_FORMAT_SIGNED_INT16:
    case QI_CU_AD_FORMAT_HALF:
        return 2;
    case QI_CU_AD_FORMAT_UNSIGNED_INT32:
    case QI_CU_AD_FORMAT_SIGNED_INT32:
    case QI_CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

bool fc_array_is_layered(const fc_array *array)
{
    return array->desc.Flags & (QI_CUDA_ARRAY3D_LAYERED | QI_CUDA_ARRAY3D_CUBEMAP);
}

bool fc_array_is_sparse(const fc_array *array)
{
    return array->desc.Flags & QI_CUDA_ARRAY3D_SPARSE;
}

static uint64_t at_least_one(uint64_t value)
{
    return value ? value : 1;
}

fc_texel fc_array_extent(const fc_array *array, uint64_t level)
{
    const qi_cu_array3d_descriptor *desc = &array->desc;
    uint64_t depth = fc_array_is_layered(array) ? desc->Depth : desc->Depth >> level;
    return (fc_texel){at_least_one(desc->Width >> level), at_least_one(desc->Height >> level),
                      at_least_one(depth), level};
}

uint64_t fc_array_level_bytes(const fc_array *array, uint64_t level)
{
    fc_texel e = fc_array_extent(array, level);
    uint64_t bytes = e.x * e.y * e.z * array->element;
    return (bytes + LEVEL_ALIGNMENT - 1) / LEVEL_ALIGNMENT * LEVEL_ALIGNMENT;
}

uint64_t fc_array_bytes(const fc_array *array)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < array->levels; i++)
        bytes += fc_array_level_bytes(array, i);
    return bytes;
}

/* ---- for copies --------------------------------------------------------------------------- */

fc_array *fc_array_peek(uint64_t handle)
{
    fc_array *array = fc_object_peek(FC_ARRAY, handle);
    return array ? array : fc_object_peek(FC_MIPMAP, handle);
}

/* Returns the array that owns the memory; the level of a mipmapped array becomes part of `at`. */
static fc_array *holder(uint64_t handle, fc_texel *at)
{
    fc_array *array = fc_object_peek(FC_ARRAY, handle);
    if (!array || !array->parent)
        return array;
    at->level = array->level;
    return fc_object_peek(FC_MIPMAP, array->parent);
}

bool fc_array_holds(uint64_t handle, fc_texel at, fc_texel extent)
{
    bool named_level = at.level;
    fc_array *array = holder(handle, &at);
    if (!array || named_level || at.level >= array->levels)
        return false;
    fc_texel e = fc_array_extent(array, at.level);
    uint64_t row = e.x * array->element;
    return at.x <= row && extent.x <= row - at.x && at.y <= e.y && extent.y <= e.y - at.y &&
           at.z <= e.z && extent.z <= e.z - at.z && at.x % array->element == 0 &&
           extent.x % array->element == 0;
}

unsigned char *fc_array_reach(uint64_t handle, fc_texel at, uint64_t *run)
{
    fc_array *array = holder(handle, &at);
    if (!array)
        return NULL; /* destroyed after the copy was queued */
    if (fc_array_is_sparse(array))
        return fc_tile_reach(array, at, run);
    fc_texel e = fc_array_extent(array, at.level);
    uint64_t offset = (at.z * e.y + at.y) * e.x * array->element + at.x;
    for (uint64_t i = 0; i < at.level; i++)
        offset += fc_array_level_bytes(array, i);
    *run = e.x * array->element - at.x;
    if (array->desc.Flags & QI_CUDA_ARRAY3D_DEFERRED_MAPPING)
        return array->whole.memory
                   ? fc_bytes_at(&array->whole.memory->bytes, array->whole.offset + offset)
                   : NULL;
    return fc_bytes_at(&array->own, offset);
}

/* ---- making ------------------------------------------------------------------------------- */

static bool is_form(const qi_cu_array3d_descriptor *desc, uint32_t levels)
{
    uint64_t longest = desc->Width > desc->Height ? desc->Width : desc->Height;
    bool is_layered = desc->Flags & (QI_CUDA_ARRAY3D_LAYERED | QI_CUDA_ARRAY3D_CUBEMAP);
    if (!is_layered && desc->Depth > longest)
        longest = desc->Depth;
    if (!desc->Width || longest > MAX_EXTENT || desc->Depth > MAX_EXTENT ||
        (!is_layered && desc->Depth && !desc->Height) || (is_layered && !desc->Depth))
        return false;
    if (!bytes_of(desc->Format) ||
        (desc->NumChannels != 1 && desc->NumChannels != 2 && desc->NumChannels != 4))
        return false;
    if (desc->Flags & ~ALL_FLAGS || (desc->Flags & MAPPED_LATER) == MAPPED_LATER)
        return false;
    if (desc->Flags & QI_CUDA_ARRAY3D_CUBEMAP &&
        (desc->Width != desc->Height || desc->Depth % 6 ||
         (desc->Depth != 6 && !(desc->Flags & QI_CUDA_ARRAY3D_LAYERED))))
        return false;
    /* one-dimensional arrays cannot be sparse */
    return levels && levels <= MAX_LEVELS && longest >> (levels - 1) &&
           (!(desc->Flags & QI_CUDA_ARRAY3D_SPARSE) || desc->Height);
}

static qi_cu_result check(const fc_context *context, const qi_cu_array3d_descriptor *desc,
                          uint32_t levels)
{
    uint32_t features = fc.devices[context->device].model.features;
    if (!desc || !is_form(desc, levels) ||
        (desc->Flags & QI_CUDA_ARRAY3D_SPARSE && !(features & FC_SPARSE_ARRAYS)) ||
        (desc->Flags & QI_CUDA_ARRAY3D_DEFERRED_MAPPING && !(features & FC_DEFERRED_ARRAYS)))
        return QI_CUDA_ERROR_INVALID_VALUE;
    return 0;
}

static qi_cu_result fill(fc_array *array)
{
    if (fc_array_is_sparse(array)) {
        array->tile_count = fc_tiles_of(array);
        array->tiles = calloc((size_t)array->tile_count, sizeof *array->tiles);
        return array->tiles ? 0 : QI_CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (array->desc.Flags & QI_CUDA_ARRAY3D_DEFERRED_MAPPING)
        return 0;
    if (!fc_take(array->device, fc_array_bytes(array)))
        return QI_CUDA_ERROR_OUT_OF_MEMORY;
    if (fc_bytes_make(&array->own, fc_array_bytes(array), false, 0))
        return 0;
    fc_give(array->device, fc_array_bytes(array));
    return QI_CUDA_ERROR_OUT_OF_MEMORY;
}

static qi_cu_result make(fc_context *context, fc_kind kind, const qi_cu_array3d_descriptor *desc,
                         uint32_t levels, fc_array **out)
{
    qi_cu_result result = check(context, desc, levels);
    if (result)
        return result;
    fc_array *array = fc_object_new(kind, sizeof *array);
    array->context = context->object.handle;
    array->device = context->device;
    array->desc = *desc;
    array->element = bytes_of(desc->Format) * desc->NumChannels;
    array->levels = levels;
    result = fill(array);
    if (result)
        (void)fc_array_end(&array->object);
    *out = array;
    return result;
}

qi_cu_result fc_Array3DCreate_v2(qi_cu_array *out, const qi_cu_array3d_descriptor *desc)
{
    qi_cu_result result;
    fc_array *array;
    fc_context *context = fc_enter_context(FC_CALL_Array3DCreate_v2, &result);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    if (!result)
        result = make(context, FC_ARRAY, desc, 1, &array);
    if (!result)
        *out = FC_HANDLE(qi_cu_array, &array->object);
    return fc_leave(result);
}

qi_cu_result fc_MipmappedArrayCreate(qi_cu_mipmap *out, const qi_cu_array3d_descriptor *desc,
                                     unsigned int levels)
{
    qi_cu_result result;
    fc_array *array;
    fc_context *context = fc_enter_context(FC_CALL_MipmappedArrayCreate, &result);
    FC_REFUSE_IF(!out, INVALID_VALUE);
    if (!result)
        result = make(context, FC_MIPMAP, desc, levels, &array);
    if (!result)
        *out = FC_HANDLE(qi_cu_mipmap, &array->object);
    return fc_leave(result);
}

/* ---- asking ------------------------------------------------------------------------------- */

static fc_array *find(fc_call call, fc_kind kind, uint64_t handle, qi_cu_result *result)
{
    fc_array *array = *result ? NULL : fc_object_find(call, kind, handle);
    if (!*result && !array)
        *result = QI_CUDA_ERROR_INVALID_HANDLE;
    return array;
}

qi_cu_result fc_Array3DGetDescriptor_v2(qi_cu_array3d_descriptor *desc, qi_cu_array handle)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_Array3DGetDescriptor_v2, &result);
    fc_array *array = find(FC_CALL_Array3DGetDescriptor_v2, FC_ARRAY, FC_NUMBER(handle), &result);
    FC_REFUSE_IF(!desc, INVALID_VALUE);
    if (!result)
        *desc = array->desc;
    return fc_leave(result);
}

/* Returns the same handle each time. The caller does not destroy it. */
static fc_array *level_of(fc_array *mipmap, uint32_t level)
{
    uint64_t index = 0;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index)) {
        fc_array *array = (fc_array *)object;
        if (object->kind == FC_ARRAY && array->parent == mipmap->object.handle &&
            array->level == level)
            return array;
    }
    fc_array *array = fc_object_new(FC_ARRAY, sizeof *array);
    fc.live[FC_ARRAY]--;
    fc_texel e = fc_array_extent(mipmap, level);
    array->context = mipmap->context;
    array->device = mipmap->device;
    array->desc = mipmap->desc;
    array->desc.Width = (size_t)e.x;
    array->desc.Height = mipmap->desc.Height ? (size_t)e.y : 0;
    array->desc.Depth = mipmap->desc.Depth ? (size_t)e.z : 0;
    array->element = mipmap->element;
    array->levels = 1;
    array->parent = mipmap->object.handle;
    array->level = level;
    return array;
}

qi_cu_result fc_MipmappedArrayGetLevel(qi_cu_array *out, qi_cu_mipmap handle, unsigned int level)
{
    qi_cu_result result;
    (void)fc_enter_context(FC_CALL_MipmappedArrayGetLevel, &result);
    fc_array *mipmap = find(FC_CALL_MipmappedArrayGetLevel, FC_MIPMAP, FC_NUMBER(handle), &result);
    FC_REFUSE_IF(!out || level >= mipmap->levels, INVALID_VALUE);
    if (!result)
        *out = FC_HANDLE(qi_cu_array, &level_of(mipmap, level)->object);
    return fc_leave(result);
}

/* ---- end ---------------------------------------------------------------------------------- */

uint64_t fc_array_context(const fc_object *object)
{
    return ((const fc_array *)object)->context;
}

bool fc_array_is_level(const fc_object *object)
{
    return object->kind == FC_ARRAY && ((const fc_array *)object)->parent;
}

static void end_levels(uint64_t mipmap)
{
    uint64_t index = 0;
    for (fc_object *object = fc_object_next(&index); object; object = fc_object_next(&index))
        if (object->kind == FC_ARRAY && ((fc_array *)object)->parent == mipmap) {
            fc.live[FC_ARRAY]++;
            fc_object_end(object);
            index = 0;
        }
}

bool fc_array_end(fc_object *object)
{
    fc_array *array = (fc_array *)object;
    end_levels(object->handle);
    if (array->own.size)
        fc_give(array->device, fc_array_bytes(array));
    fc_bytes_end(&array->own);
    if (array->whole.memory)
        fc_memory_unuse(array->whole.memory);
    for (uint64_t i = 0; i < array->tile_count && array->tiles; i++)
        if (array->tiles[i].memory)
            fc_memory_unuse(array->tiles[i].memory);
    free(array->tiles);
    fc_object_end(object);
    return true;
}

static qi_cu_result destroy(fc_call call, fc_kind kind, uint64_t handle)
{
    qi_cu_result result;
    (void)fc_enter_context(call, &result);
    fc_array *array = find(call, kind, handle, &result);
    if (!result && array->parent) {
        fc_say("fc-level", call, "a level goes with its mipmapped array");
        result = QI_CUDA_ERROR_INVALID_HANDLE;
    }
    if (!result) {
        fc_finish_device(array->device);
        (void)fc_array_end(&array->object);
    }
    return fc_leave(result);
}

qi_cu_result fc_ArrayDestroy(qi_cu_array array)
{
    return destroy(FC_CALL_ArrayDestroy, FC_ARRAY, FC_NUMBER(array));
}

qi_cu_result fc_MipmappedArrayDestroy(qi_cu_mipmap mipmap)
{
    return destroy(FC_CALL_MipmappedArrayDestroy, FC_MIPMAP, FC_NUMBER(mipmap));
}
