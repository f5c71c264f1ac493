/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tile.c - the memory that arrays of the fake CUDA driver require and receive: tiles of sparse
 * arrays, and one piece for deferred arrays.
 */
#include <string.h>

#include "tests/support/cuda/array.h"
#include "tests/support/cuda/queue.h"

/* ---- form --------------------------------------------------------------------------------- */

/* The standard tile shapes: 64 KiB, as close to a square or a cube as possible. */
fc_texel fc_tile_extent(const fc_array *array)
{
    static const fc_texel FLAT[] = {
        {256, 256, 1, 0}, {256, 128, 1, 0}, {128, 128, 1, 0}, {128, 64, 1, 0}, {64, 64, 1, 0}};
    static const fc_texel DEEP[] = {
        {64, 32, 32, 0}, {32, 32, 32, 0}, {32, 32, 16, 0}, {32, 16, 16, 0}, {16, 16, 16, 0}};
    uint32_t i = 0;
    while (1u << i < array->element)
        i++;
    bool is_deep = array->desc.Depth && !fc_array_is_layered(array);
    return is_deep ? DEEP[i] : FLAT[i];
}

/* Returns true if one tail serves all layers; without levels the whole array is that tail. */
static bool has_single_tail(const fc_array *array)
{
    return fc.devices[array->device].model.features & FC_SINGLE_TAIL &&
           (array->object.kind == FC_ARRAY || fc_array_is_layered(array));
}

/* An array without levels has no tail: its last tiles are partly filled. */
uint64_t fc_tail_begin(const fc_array *array)
{
    if (array->object.kind == FC_ARRAY)
        return has_single_tail(array) ? 0 : array->levels;
    fc_texel tile = fc_tile_extent(array);
    uint64_t level = 0;
    for (; level < array->levels; level++) {
        fc_texel e = fc_array_extent(array, level);
        if (e.x < tile.x || e.y < tile.y || e.z < tile.z)
            break;
    }
    return level;
}

static uint64_t layers_of(const fc_array *array)
{
    return fc_array_is_layered(array) ? array->desc.Depth : 1;
}

/* Bytes of a level in the tail of one layer. */
static uint64_t tail_level_bytes(const fc_array *array, uint64_t level)
{
    return fc_array_level_bytes(array, level) / layers_of(array) + array->element;
}

uint64_t fc_tail_bytes(const fc_array *array)
{
    uint64_t bytes = 0;
    for (uint64_t i = fc_tail_begin(array); i < array->levels; i++)
        bytes += tail_level_bytes(array, i);
    return (bytes + FC_TILE_BYTES - 1) / FC_TILE_BYTES * FC_TILE_BYTES;
}

static uint64_t parts(uint64_t extent, uint64_t tile)
{
    return (extent + tile - 1) / tile;
}

/* Tiles of a level in each direction. */
static fc_texel grid_of(const fc_array *array, uint64_t level)
{
    fc_texel e = fc_array_extent(array, level), tile = fc_tile_extent(array);
    return (fc_texel){parts(e.x, tile.x), parts(e.y, tile.y), parts(e.z, tile.z), level};
}

static uint64_t tiles_before(const fc_array *array, uint64_t level)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < level; i++) {
        fc_texel grid = grid_of(array, i);
        count += grid.x * grid.y * grid.z;
    }
    return count;
}

static uint64_t tail_tiles(const fc_array *array)
{
    return fc_tail_bytes(array) / FC_TILE_BYTES;
}

uint64_t fc_tiles_of(const fc_array *array)
{
    return tiles_before(array, fc_tail_begin(array)) + tail_tiles(array) * layers_of(array);
}

static uint64_t tile_at(const fc_array *array, uint64_t x, uint64_t y, uint64_t z, uint64_t level)
{
    fc_texel grid = grid_of(array, level);
    return tiles_before(array, level) + (z * grid.y + y) * grid.x + x;
}

/* ---- reaching ----------------------------------------------------------------------------- */

static unsigned char *in_tile(const fc_backing *tile, uint64_t offset)
{
    return tile->memory ? fc_bytes_at(&tile->memory->bytes, tile->offset + offset) : NULL;
}

static unsigned char *reach_tail(const fc_array *array, fc_texel at, uint64_t *run)
{
    bool is_layered = fc_array_is_layered(array);
    fc_texel e = fc_array_extent(array, at.level);
    uint64_t layer = is_layered ? at.z : 0, slice = is_layered ? 0 : at.z;
    uint64_t offset = (slice * e.y + at.y) * e.x * array->element + at.x;
    for (uint64_t i = fc_tail_begin(array); i < at.level; i++)
        offset += tail_level_bytes(array, i);
    uint64_t first = tiles_before(array, fc_tail_begin(array)) + layer * tail_tiles(array);
    uint64_t row = e.x * array->element - at.x, rest = FC_TILE_BYTES - offset % FC_TILE_BYTES;
    *run = row < rest ? row : rest;
    return in_tile(&array->tiles[first + offset / FC_TILE_BYTES], offset % FC_TILE_BYTES);
}

unsigned char *fc_tile_reach(const fc_array *array, fc_texel at, uint64_t *run)
{
    if (at.level >= fc_tail_begin(array))
        return reach_tail(array, at, run);
    fc_texel tile = fc_tile_extent(array), e = fc_array_extent(array, at.level);
    uint64_t row = tile.x * array->element, inside = at.x % row;
    uint64_t offset = (at.z % tile.z * tile.y + at.y % tile.y) * row + inside;
    uint64_t left = e.x * array->element - at.x;
    *run = left < row - inside ? left : row - inside;
    return in_tile(
        &array->tiles[tile_at(array, at.x / row, at.y / tile.y, at.z / tile.z, at.level)], offset);
}

/* ---- mapping ------------------------------------------------------------------------------ */

static void put(fc_backing *backing, fc_memory *memory, uint64_t offset)
{
    fc_memory *before = backing->memory;
    *backing = (fc_backing){memory, memory ? offset : 0};
    if (memory)
        memory->uses++;
    if (before)
        fc_memory_unuse(before);
}

static fc_array *array_of(const qi_cu_array_map_info *info)
{
    if (info->resourceType == QI_CU_RESOURCE_TYPE_ARRAY)
        return fc_object_peek(FC_ARRAY, FC_NUMBER(info->resource.array));
    if (info->resourceType == QI_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
        return fc_object_peek(FC_MIPMAP, FC_NUMBER(info->resource.mipmap));
    return NULL;
}

/* The tiles of a box, in the order of their memory. */
typedef struct box {
    fc_texel begin, end; /* in tiles */
} box;

static bool edge(uint64_t offset, uint64_t extent, uint64_t tile, uint64_t whole)
{
    uint64_t end = offset + extent;
    return extent && offset % tile == 0 &&
           (extent % tile ? end == whole : end <= parts(whole, tile) * tile);
}

static bool box_of(const fc_array *array, const qi_cu_array_map_info *info, box *out)
{
    fc_texel tile = fc_tile_extent(array);
    uint64_t level = info->subresource.sparseLevel.level;
    uint64_t x = info->subresource.sparseLevel.offsetX, y = info->subresource.sparseLevel.offsetY;
    uint64_t width = info->subresource.sparseLevel.extentWidth;
    uint64_t height = info->subresource.sparseLevel.extentHeight;
    uint64_t z = info->subresource.sparseLevel.offsetZ;
    uint64_t depth = info->subresource.sparseLevel.extentDepth;
    if (level >= fc_tail_begin(array))
        return false;
    fc_texel e = fc_array_extent(array, level);
    if (fc_array_is_layered(array)) {
        if (z || depth != 1 || info->subresource.sparseLevel.layer >= array->desc.Depth)
            return false;
        z = info->subresource.sparseLevel.layer;
    } else if (info->subresource.sparseLevel.layer)
        return false;
    if (!edge(x, width, tile.x, e.x) || !edge(y, height, tile.y, e.y) ||
        !edge(z, depth, tile.z, e.z))
        return false;
    out->begin = (fc_texel){x / tile.x, y / tile.y, z / tile.z, level};
    out->end = (fc_texel){parts(x + width, tile.x), parts(y + height, tile.y),
                          parts(z + depth, tile.z), level};
    return true;
}

static uint64_t bytes_in(const box *b)
{
    return (b->end.x - b->begin.x) * (b->end.y - b->begin.y) * (b->end.z - b->begin.z) *
           FC_TILE_BYTES;
}

/* Bytes of a tail as the driver reports them. */
static uint64_t told_tail_bytes(const fc_array *array)
{
    return fc_tail_bytes(array) * (has_single_tail(array) ? layers_of(array) : 1);
}

static bool tail_of(const fc_array *array, const qi_cu_array_map_info *info, uint64_t *first)
{
    uint64_t layer = info->subresource.miptail.layer, offset = info->subresource.miptail.offset;
    uint64_t size = info->subresource.miptail.size;
    uint64_t tails = has_single_tail(array) ? 1 : layers_of(array);
    if (layer >= tails || offset % FC_TILE_BYTES || size % FC_TILE_BYTES || !size ||
        offset + size > told_tail_bytes(array))
        return false;
    *first = tiles_before(array, fc_tail_begin(array)) + layer * tail_tiles(array) +
             offset / FC_TILE_BYTES;
    return true;
}

/* Bytes of memory that a map call concerns; 0 if the call is invalid. */
static uint64_t bytes_about(const fc_array *array, const qi_cu_array_map_info *info)
{
    box b;
    uint64_t first;
    if (!fc_array_is_sparse(array))
        return fc_array_bytes(array);
    if (info->subresourceType == QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL)
        return tail_of(array, info, &first) ? info->subresource.miptail.size : 0;
    if (info->subresourceType != QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL)
        return 0;
    return box_of(array, info, &b) ? bytes_in(&b) : 0;
}

static bool is_wrong(const fc_context *context, const qi_cu_array_map_info *info)
{
    const fc_array *array = array_of(info);
    uint64_t bytes = array ? bytes_about(array, info) : 0;
    bool maps = info->memOperationType == QI_CU_MEM_OPERATION_TYPE_MAP;
    if (!bytes || array->parent || !array->desc.Height ||
        array->desc.Flags &
            QI_CUDA_ARRAY3D_CUBEMAP || /* only 2D, layered and 3D arrays can be mapped */
        !(array->desc.Flags & (QI_CUDA_ARRAY3D_SPARSE | QI_CUDA_ARRAY3D_DEFERRED_MAPPING)) ||
        info->flags || info->reserved[0] || info->reserved[1] ||
        info->memHandleType != QI_CU_MEM_HANDLE_TYPE_GENERIC ||
        info->deviceBitMask != 1u << context->device)
        return true;
    if (!maps)
        return info->memOperationType != QI_CU_MEM_OPERATION_TYPE_UNMAP ||
               info->memHandle.memHandle;
    const fc_memory *memory = fc_object_peek(FC_MEMORY, info->memHandle.memHandle);
    return !memory || !memory->references || memory->place != context->device ||
           !(memory->prop.allocFlags.usage & QI_CU_MEM_CREATE_USAGE_TILE_POOL) ||
           info->offset % FC_TILE_BYTES || info->offset > memory->size ||
           bytes > memory->size - info->offset;
}

static void map_box(fc_array *array, const box *b, fc_memory *memory, uint64_t offset)
{
    for (uint64_t z = b->begin.z; z < b->end.z; z++)
        for (uint64_t y = b->begin.y; y < b->end.y; y++)
            for (uint64_t x = b->begin.x; x < b->end.x; x++) {
                put(&array->tiles[tile_at(array, x, y, z, b->begin.level)], memory, offset);
                offset += FC_TILE_BYTES;
            }
}

static bool run_map(fc_work *work)
{
    const qi_cu_array_map_info *info = &work->tiles;
    fc_array *array = array_of(info);
    bool maps = info->memOperationType == QI_CU_MEM_OPERATION_TYPE_MAP;
    fc_memory *memory = maps ? fc_object_peek(FC_MEMORY, info->memHandle.memHandle) : NULL;
    box b;
    uint64_t first, size = info->subresource.miptail.size;
    if (!array || (maps && !memory))
        return false; /* destroyed too early */
    if (!fc_array_is_sparse(array))
        put(&array->whole, memory, info->offset);
    else if (info->subresourceType == QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL &&
             box_of(array, info, &b))
        map_box(array, &b, memory, info->offset);
    else if (tail_of(array, info, &first))
        for (uint64_t i = 0; i < size / FC_TILE_BYTES; i++)
            put(&array->tiles[first + i], memory, info->offset + i * FC_TILE_BYTES);
    return true;
}

qi_cu_result fc_MemMapArrayAsync(qi_cu_array_map_info *list, unsigned int count,
                                 qi_cu_stream stream)
{
    qi_cu_result result;
    fc_context *context = fc_enter_context(FC_CALL_MemMapArrayAsync, &result);
    FC_REFUSE_IF(!list || !count, INVALID_VALUE);
    for (unsigned int i = 0; !result && i < count; i++)
        if (is_wrong(context, &list[i]))
            result = QI_CUDA_ERROR_INVALID_VALUE;
    for (unsigned int i = 0; !result && i < count; i++)
        result = fc_queue(
            context, stream,
            &(fc_work){.call = FC_CALL_MemMapArrayAsync, .run = run_map, .tiles = list[i]});
    return fc_leave(result);
}

/* ---- asking ------------------------------------------------------------------------------- */

static qi_cu_result sparse_properties(fc_call call, qi_cu_sparse_properties *out, uint64_t handle)
{
    qi_cu_result result = fc_enter(call);
    const fc_array *array = result ? NULL : fc_array_peek(handle);
    FC_REFUSE_IF(!out || !array || array->parent || !fc_array_is_sparse(array), INVALID_VALUE);
    if (!result) {
        fc_texel tile = fc_tile_extent(array);
        *out = (qi_cu_sparse_properties){
            .tileExtent = {(unsigned)tile.x, (unsigned)tile.y, (unsigned)tile.z},
            .miptailFirstLevel =
                array->object.kind == FC_ARRAY ? 0 : (unsigned)fc_tail_begin(array),
            .miptailSize = told_tail_bytes(array),
            .flags = has_single_tail(array) ? QI_CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL : 0};
    }
    return fc_leave(result);
}

qi_cu_result fc_ArrayGetSparseProperties(qi_cu_sparse_properties *properties, qi_cu_array array)
{
    return sparse_properties(FC_CALL_ArrayGetSparseProperties, properties, FC_NUMBER(array));
}

qi_cu_result fc_MipmappedArrayGetSparseProperties(qi_cu_sparse_properties *properties,
                                                  qi_cu_mipmap mipmap)
{
    return sparse_properties(FC_CALL_MipmappedArrayGetSparseProperties, properties,
                             FC_NUMBER(mipmap));
}

static qi_cu_result requirements(fc_call call, qi_cu_array_requirements *out, uint64_t handle,
                                 qi_cu_device device)
{
    qi_cu_result result = fc_enter(call);
    const fc_array *array = result ? NULL : fc_array_peek(handle);
    FC_REFUSE_IF(!out || !array || array->parent || !fc_is_device(device) ||
                     !(array->desc.Flags & QI_CUDA_ARRAY3D_DEFERRED_MAPPING),
                 INVALID_VALUE);
    if (!result) {
        uint64_t bytes = fc_array_bytes(array);
        *out = (qi_cu_array_requirements){
            .size = (size_t)((bytes + FC_TILE_BYTES - 1) / FC_TILE_BYTES * FC_TILE_BYTES),
            .alignment = (size_t)FC_TILE_BYTES};
    }
    return fc_leave(result);
}

qi_cu_result fc_ArrayGetMemoryRequirements(qi_cu_array_requirements *out, qi_cu_array array,
                                           qi_cu_device device)
{
    return requirements(FC_CALL_ArrayGetMemoryRequirements, out, FC_NUMBER(array), device);
}

qi_cu_result fc_MipmappedArrayGetMemoryRequirements(qi_cu_array_requirements *out,
                                                    qi_cu_mipmap mipmap, qi_cu_device device)
{
    return requirements(FC_CALL_MipmappedArrayGetMemoryRequirements, out, FC_NUMBER(mipmap),
                        device);
}
