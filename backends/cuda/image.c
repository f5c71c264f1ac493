/*
 * image.c - images of a CUDA device. A linear image is a range of any page; an array is an object
 * in a tile pool. A buffer is a range too.
 */
#include "backends/cuda/array.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- requirements ----------------------------------------------------------------------- */

/* The kinds that are tile pools, or all other kinds. */
static uint32_t kind_mask(const qi_cuda *cuda, bool tiles)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < cuda->kind_count; i++)
        if ((cuda->kinds[i].page_kind == QUIRE_CUDA_TILES) == tiles)
            mask |= UINT32_C(1) << i;
    return mask;
}

/* Requirements of a range with an address. UNSUPPORTED if the device has tile pools only. */
static quire_result require_range(const qi_cuda *cuda, uint64_t size, uint64_t alignment,
                                  quire_requirements *out)
{
    *out = (quire_requirements){
        .size = size, .alignment = alignment, .kind_mask = kind_mask(cuda, false)};
    return out->kind_mask ? QUIRE_SUCCESS
                          : quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                               "'%s' was opened with tile pools only: they hold "
                                               "nothing but arrays",
                                               cuda->name);
}

/* Requirements of a linear image, as textures over linear memory need it. */
static quire_result require_rows(const qi_cuda *cuda, const quire_image_options *options,
                                 quire_requirements *out)
{
    uint64_t texel = (uint64_t)options->channel_count * quire_channel_size(options->channel_type);
    uint64_t row = options->width * texel, slice = 0, size = 0;
    if (qi_align_up_overflows(row, cuda->capabilities.row_alignment, &row) ||
        qi_multiply_overflows(row, options->height, &slice) ||
        qi_multiply_overflows(slice, options->depth, &size))
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0,
                                  "an image of %u x %u x %u texels: its size overflows 64 bits",
                                  options->width, options->height, options->depth);
    uint64_t alignment = cuda->capabilities.texture_alignment > QI_CUDA_ALIGNMENT
                             ? cuda->capabilities.texture_alignment
                             : QI_CUDA_ALIGNMENT;
    quire_result result = require_range(cuda, size, alignment, out);
    out->row_pitch = row;
    out->slice_pitch = slice;
    return result;
}

static void require_array(const qi_cuda *cuda, const qi_cuda_array *array, quire_requirements *out)
{
    *out = (quire_requirements){
        .size = array->size, .alignment = array->alignment, .kind_mask = kind_mask(cuda, true)};
}

/* ---- arrays of quire's own images ------------------------------------------------------- */

/* Returns true if an image is an array: optimal tiling, and a format that arrays have. */
static bool is_array(const qi_cuda *cuda, const quire_image_options *options)
{
    return options->tiling == QUIRE_TILING_OPTIMAL && kind_mask(cuda, true) &&
           qi_cuda_array_format(options->channel_type) && options->channel_count != 3;
}

static quire_cuda_array_options array_of_image(const quire_image_options *o)
{
    return (quire_cuda_array_options){
        .width = o->width,
        .height = o->height,
        .depth = o->depth > 1 ? o->depth : 0, /* arrays of depth 0 are 2D */
        .channel_count = o->channel_count,
        .channel_type = o->channel_type,
        .usage = o->usage,
    };
}

/* Enters the context and retries the deferred arrays first. */
static quire_result create_array(qi_cuda *cuda, const quire_cuda_array_options *options,
                                 qi_cuda_array **array)
{
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    qi_cuda_retry_deferred_arrays(cuda, false);
    result = qi_cuda_array_create(cuda, options, array);
    qi_cuda_leave(cuda);
    return result;
}

/* ---- entries of the backend table ------------------------------------------------------- */

/* The driver reports the requirements of existing arrays only, so one is created and destroyed. */
quire_result qi_cuda_image_requirements(void *state, const quire_image_options *options,
                                        quire_requirements *out)
{
    qi_cuda *cuda = state;
    qi_cuda_array *array = NULL;
    if (!is_array(cuda, options))
        return require_rows(cuda, options, out);
    const quire_cuda_array_options form = array_of_image(options);
    quire_result result = create_array(cuda, &form, &array);
    if (result)
        return result;
    require_array(cuda, array, out);
    qi_cuda_array_destroy(cuda, array);
    return QUIRE_SUCCESS;
}

/* Finds the options of the requested array. Returns false if the object is a range. */
static bool find_form(const qi_cuda *cuda, const quire_object_request *request,
                      quire_cuda_array_options *form)
{
    if (request->description)
        *form = *(const quire_cuda_array_options *)request->description;
    else if (request->image && is_array(cuda, request->image))
        *form = array_of_image(request->image);
    else
        return false;
    return true;
}

/* A handle of 0 says that the object is a range. */
quire_result qi_cuda_object_create(void *state, const quire_object_request *request,
                                   uint64_t *native, quire_requirements *out)
{
    qi_cuda *cuda = state;
    qi_cuda_array *array = NULL;
    quire_cuda_array_options form;
    *native = 0;
    if (request->object == QUIRE_OBJECT_BUFFER)
        return require_range(cuda, request->buffer->size, QI_CUDA_ALIGNMENT, out);
    if (!find_form(cuda, request, &form))
        return require_rows(cuda, request->image, out);
    quire_result result = create_array(cuda, &form, &array);
    if (result)
        return result;
    require_array(cuda, array, out);
    *native = (uintptr_t)array;
    return QUIRE_SUCCESS;
}

quire_result qi_cuda_object_bind(void *state, quire_object object, uint64_t native,
                                 const quire_native_page *page, uint64_t offset)
{
    qi_cuda *cuda = state;
    (void)object;
    quire_result result = qi_cuda_enter(cuda);
    if (result)
        return result;
    result =
        qi_cuda_array_map(cuda, (qi_cuda_array *)(uintptr_t)native, qi_cuda_page_of(page), offset);
    qi_cuda_leave(cuda);
    return result;
}

void qi_cuda_object_destroy(void *state, quire_object object, uint64_t native)
{
    (void)object;
    qi_cuda_array_destroy(state, (qi_cuda_array *)(uintptr_t)native);
}

/* ---- public calls ----------------------------------------------------------------------- */

/* Each level halves the longest side; the last level must be at least one texel. */
static quire_result check_extent(const quire_cuda_array_options *o)
{
    uint32_t longest = o->width > o->height ? o->width : o->height;
    if (!o->width)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an array of width 0");
    if (o->depth && o->layers)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an array has slices or layers, not both");
    if (o->depth > longest)
        longest = o->depth;
    if (o->levels > 32 || (o->levels && !(longest >> (o->levels - 1))))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "%u level%s of an array whose longest side is %u", o->levels, longest);
    return QUIRE_SUCCESS;
}

static quire_result check_array(const quire_cuda_array_options *o)
{
    const quire_usage usages = QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET |
                               QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED;
    quire_result result = qi_check_unused(o, "quire_cuda_array_options");
    if (!result)
        result = check_extent(o);
    if (result)
        return result;
    if (o->channel_count > 4 || o->channel_count == 3)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "an array of %u channel%s: 1, 2 and 4 are possible", o->channel_count);
    if (!qi_cuda_array_format(o->channel_type))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "arrays have no channels of type %u",
                            (uint64_t)o->channel_type);
    if (o->usage & ~usages)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "usage %x is not a usage of images",
                            o->usage & ~usages);
    return QUIRE_SUCCESS;
}

static quire_cuda_array_options resolve_array(const quire_cuda_array_options *requested)
{
    quire_cuda_array_options out = *requested;
    out.height += !out.height;
    out.channel_count += !out.channel_count;
    if (!out.usage)
        out.usage = QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED | QUIRE_USAGE_TRANSFER_SOURCE |
                    QUIRE_USAGE_TRANSFER_TARGET;
    return out;
}

/* Bytes of the texels of all levels; UINT64_MAX if they overflow. */
static uint64_t texel_bytes(const quire_cuda_array_options *o)
{
    uint64_t sum = 0, bytes = 0;
    for (uint32_t level = 0; level <= o->levels - !!o->levels; level++) {
        uint32_t width = o->width >> level, height = o->height >> level, depth = o->depth >> level;
        uint64_t deep = o->layers ? o->layers : depth + !depth;
        if (qi_multiply_overflows(width + !width, height + !height, &bytes) ||
            qi_multiply_overflows(bytes, deep, &bytes) ||
            qi_multiply_overflows(bytes, o->channel_count * quire_channel_size(o->channel_type),
                                  &bytes) ||
            qi_add_overflows(sum, bytes, &sum))
            return UINT64_MAX;
    }
    return sum;
}

static quire_image_info describe_array(const quire_cuda_array_options *o)
{
    return (quire_image_info){
        .width = o->width,
        .height = o->height,
        .depth = o->depth + !o->depth,
        .channel_count = o->channel_count,
        .channel_type = o->channel_type,
        .tiling = QUIRE_TILING_OPTIMAL,
        .usage = o->usage,
        .dimensions = o->depth > 1    ? 3
                      : o->height > 1 ? 2
                                      : 1,
        .minimum_size = texel_bytes(o),
    };
}

quire_result quire_cuda_array_create(quire_memory *memory, const quire_cuda_array_options *options,
                                     quire_image *image)
{
    if (image)
        *image = (quire_image){0};
    if (options && options->info)
        *options->info = (quire_allocation_info){0};
    if (!memory || !options || !image)
        return qi_fail_null("quire_cuda_array_create", !memory    ? "memory"
                                                       : !options ? "options"
                                                                  : "image");
    const quire_cuda_array_options resolved = resolve_array(options);
    quire_memory_info info;
    qi_cuda *cuda = NULL;
    quire_result result = qi_cuda_of_memory(memory, &info, &cuda);
    if (!result)
        result = check_array(&resolved);
    if (!result && cuda->kinds[info.kind].page_kind != QUIRE_CUDA_TILES)
        result = qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "memory '%s' is not of tile pools, which arrays require", info.name);
    if (result)
        return result;
    const quire_object_options object = {
        .object = QUIRE_OBJECT_IMAGE,
        .description = &resolved,
        .optimal = true,
        .name = resolved.name,
        .user_data = resolved.user_data,
        .dedicated = resolved.dedicated,
        .stream = resolved.stream,
        .info = resolved.info,
        .described = {.image = describe_array(&resolved)},
    };
    return quire_object_create(memory, &object, &image->allocation);
}

static quire_cuda_array_info array_info_of(const qi_cuda_array *a, const quire_native *native)
{
    quire_cuda_array_info info = {
        .array = a->array,
        .mipmap = a->mipmap,
        .levels = a->levels,
        .layers = a->layers,
        .handle = qi_cuda_page_of(&native->page)->chunks->handle,
        .offset = native->offset,
        .size = a->size,
        .is_sparse = a->is_sparse,
    };
    if (!a->is_sparse)
        return info;
    info.tile_width = a->tiles.tileExtent.width;
    info.tile_height = a->tiles.tileExtent.height;
    info.tile_depth = a->tiles.tileExtent.depth;
    info.tail_level = a->tiles.miptailSize ? a->tiles.miptailFirstLevel : a->levels;
    info.tail_size = a->tiles.miptailSize;
    return info;
}

quire_result quire_cuda_array_get_info(const quire_memory *memory, quire_image image,
                                       quire_cuda_array_info *info)
{
    if (info)
        *info = (quire_cuda_array_info){.array = NULL};
    if (!memory || !info)
        return qi_fail_null("quire_cuda_array_get_info", !memory ? "memory" : "info");
    quire_image_info image_info;
    quire_native native;
    qi_cuda *cuda = NULL;
    quire_memory *holding = (quire_memory *)(uintptr_t)memory; /* keeps the array until release */
    quire_result result = quire_image_get_info(memory, image, &image_info);
    if (!result)
        result = quire_allocation_hold(holding, image.allocation);
    if (result)
        return result;
    result = qi_cuda_find_native(memory, image.allocation, &native, &cuda);
    if (!result && !native.handle)
        result = qi_fail(QUIRE_ERROR_UNSUPPORTED, "the image is linear: it is not an array");
    if (!result)
        *info = array_info_of((const qi_cuda_array *)(uintptr_t)native.handle, &native);
    quire_result released = quire_allocation_release(holding, image.allocation);
    return result ? result : released;
}
