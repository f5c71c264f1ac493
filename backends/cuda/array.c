/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * array.c - an image is a CUDA array mapped to a part of a tile pool if its tiling is optimal and
 * arrays have its format. Any other image, and every buffer, is a range of a page.
 *
 * An array of deferred mapping requires one piece of memory, as large as the driver reports. A
 * sparse array requires whole tiles: those of each layer of each level above the mip tail, and the
 * tails, one per layer or one for all layers. The tiles are mapped one after the other in this
 * order.
 */
#include "backends/cuda/array.h"

#include "backends/cuda/device.h"
#include "backends/cuda/stream.h"
#include "quire/cuda_array.h"
#include "src/base/bits.h"
#include "src/base/log.h"
#include "src/base/result.h"

/* ---- the record --------------------------------------------------------------------------- */

/*
 * The native object of an image in a tile pool. Destruction releases what it has in the reverse
 * order of its creation, so that it can be interrupted by a failure and continued later.
 */
typedef struct qi_cuda_array {
    struct qi_cuda_array *next; /* in qi_cuda.deferred_arrays */
    qi_cu_array array;          /* exactly one of the two is set */
    qi_cu_mipmap mipmap;
    qi_cu_array3d_descriptor form;
    uint32_t levels, layers; /* at least 1 */
    uint32_t element;        /* bytes of a texel */
    bool is_sparse;
    bool is_mapped;
    bool was_bound;                /* work on the device may use it */
    qi_cu_sparse_properties tiles; /* if is_sparse */
    uint64_t size, alignment;      /* of the memory it requires, bytes */
    qi_cu_array_map_info *parts;   /* part_count of them; offsets are relative to its memory */
    uint32_t part_count;
} qi_cuda_array;

/* The driver's format for a channel type; 0 if arrays do not support the type. */
static qi_cu_array_format format_of(quire_channel_type type)
{
    switch (type) {
    case QUIRE_UINT8:
        return QI_CU_AD_FORMAT_UNSIGNED_INT8;
    case QUIRE_INT8:
        return QI_CU_AD_FORMAT_SIGNED_INT8;
    case QUIRE_UINT16:
        return QI_CU_AD_FORMAT_UNSIGNED_INT16;
    case QUIRE_INT16:
        return QI_CU_AD_FORMAT_SIGNED_INT16;
    case QUIRE_FLOAT16:
        return QI_CU_AD_FORMAT_HALF;
    case QUIRE_UINT32:
        return QI_CU_AD_FORMAT_UNSIGNED_INT32;
    case QUIRE_INT32:
        return QI_CU_AD_FORMAT_SIGNED_INT32;
    case QUIRE_FLOAT32:
        return QI_CU_AD_FORMAT_FLOAT;
    default:
        return 0;
    }
}

/* ---- the parts of a sparse array ---------------------------------------------------------- */

/* Counts the parts of a sparse array, and writes them to `list` unless it is NULL. */
typedef struct counting {
    const qi_cuda_array *array;
    qi_cu_array_map_info *list; /* NULL: count only */
    uint32_t count;
    uint64_t bytes;
} counting;

/* Appends a part at the end of the bytes counted so far. */
static void add(counting *c, const qi_cu_array_map_info *part, uint64_t bytes)
{
    if (c->list) {
        c->list[c->count] = *part;
        c->list[c->count].offset = c->bytes;
    }
    c->count++;
    c->bytes += bytes;
}

/* Tiles along one dimension of a level: at least one. */
static uint32_t tiles_along(uint64_t extent, uint32_t level, uint32_t tile)
{
    uint64_t texels = extent >> level;
    return (uint32_t)((texels + !texels + tile - 1) / tile);
}

/* Covers whole tiles, also if the level ends inside one. */
static void add_level(counting *c, uint32_t level, uint32_t layer)
{
    const qi_cuda_array *a = c->array;
    uint32_t width = a->tiles.tileExtent.width, height = a->tiles.tileExtent.height;
    uint32_t depth = a->tiles.tileExtent.depth;
    bool is_deep = a->form.Depth && !(a->form.Flags & QI_CUDA_ARRAY3D_LAYERED);
    uint32_t x = tiles_along(a->form.Width, level, width);
    uint32_t y = tiles_along(a->form.Height, level, height);
    uint32_t z = is_deep ? tiles_along(a->form.Depth, level, depth) : 1;
    qi_cu_array_map_info part = {.subresourceType =
                                     QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL};
    part.subresource.sparseLevel.level = level;
    part.subresource.sparseLevel.layer = layer;
    part.subresource.sparseLevel.extentWidth = x * width;
    part.subresource.sparseLevel.extentHeight = y * height;
    part.subresource.sparseLevel.extentDepth = is_deep ? z * depth : 1;
    uint64_t tile = (uint64_t)width * height * depth * a->element;
    add(c, &part, tile * x * y * z);
}

static void add_tail(counting *c, uint32_t layer)
{
    qi_cu_array_map_info part = {.subresourceType = QI_CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL};
    part.subresource.miptail.layer = layer;
    part.subresource.miptail.size = c->array->tiles.miptailSize;
    add(c, &part, c->array->tiles.miptailSize);
}

static counting count_parts(const qi_cuda_array *a, qi_cu_array_map_info *list)
{
    counting c = {.array = a, .list = list};
    bool has_tail = a->tiles.miptailSize != 0;
    bool has_one = (a->tiles.flags & QI_CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL) != 0;
    uint32_t end = has_tail ? a->tiles.miptailFirstLevel : a->levels;
    for (uint32_t level = 0; level < end; level++)
        for (uint32_t layer = 0; layer < a->layers; layer++)
            add_level(&c, level, layer);
    for (uint32_t layer = 0; has_tail && layer < (has_one ? 1 : a->layers); layer++)
        add_tail(&c, layer);
    return c;
}

/* ---- memory requirements of arrays -------------------------------------------------------- */

static quire_result create_list(qi_cuda *cuda, qi_cuda_array *a, uint32_t count)
{
    a->parts = qi_host_allocate(&cuda->host, count, sizeof *a->parts);
    if (!a->parts)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                  "no host memory for %u part%s of an array", count,
                                  qi_plural(count));
    a->part_count = count;
    return QUIRE_SUCCESS;
}

/* A deferred array is mapped as one part. */
static quire_result query_requirements(qi_cuda *cuda, qi_cuda_array *a)
{
    qi_cu_array_requirements needs = {.size = 0};
    qi_cu_result code =
        a->array ? cuda->f.ArrayGetMemoryRequirements(&needs, a->array, cuda->device)
                 : cuda->f.MipmappedArrayGetMemoryRequirements(&needs, a->mipmap, cuda->device);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "querying the memory requirements of an array");
    a->size = needs.size;
    a->alignment = needs.alignment;
    return create_list(cuda, a, 1);
}

/* Counts the parts, allocates the list, and fills it in. */
static quire_result query_tiles(qi_cuda *cuda, qi_cuda_array *a)
{
    qi_cu_result code = a->array ? cuda->f.ArrayGetSparseProperties(&a->tiles, a->array)
                                 : cuda->f.MipmappedArrayGetSparseProperties(&a->tiles, a->mipmap);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "querying the tiles of an array");
    const uint32_t width = a->tiles.tileExtent.width, height = a->tiles.tileExtent.height;
    a->alignment = (uint64_t)width * height * a->tiles.tileExtent.depth * a->element;
    counting c = {.count = 0};
    if (a->alignment)
        c = count_parts(a, NULL);
    if (!c.count || a->tiles.miptailFirstLevel > a->levels)
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0,
                                  "the driver reports tiles of %u x %u x %u texels and a tail "
                                  "from level %u of %u on",
                                  width, height, a->tiles.tileExtent.depth,
                                  a->tiles.miptailFirstLevel, a->levels);
    a->size = c.bytes;
    quire_result result = create_list(cuda, a, c.count);
    if (!result)
        (void)count_parts(a, a->parts);
    return result;
}

/* ---- mapping ------------------------------------------------------------------------------ */

/* Mapping is work of a stream. quire uses a stream of its own and waits for it. */

/* The default stream would serve as well, but captures can make it unusable. */
static qi_cu_result map_parts(const qi_cuda *cuda, qi_cuda_array *a)
{
    const qi_cuda_stream *stream = qi_cuda_stream_of(cuda->array_stream);
    return cuda->f.MemMapArrayAsync(a->parts, a->part_count, stream->native);
}

static qi_cu_result await_mapping(const qi_cuda *cuda)
{
    return cuda->f.StreamSynchronize(qi_cuda_stream_of(cuda->array_stream)->native);
}

/* Sets array and handle in all parts. Handle 0 unmaps them. */
static void fill_parts(const qi_cuda *cuda, qi_cuda_array *a, qi_cu_handle handle)
{
    for (uint32_t i = 0; i < a->part_count; i++) {
        qi_cu_array_map_info *part = &a->parts[i];
        part->resourceType =
            a->array ? QI_CU_RESOURCE_TYPE_ARRAY : QI_CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
        if (a->array)
            part->resource.array = a->array;
        else
            part->resource.mipmap = a->mipmap;
        part->memOperationType =
            handle ? QI_CU_MEM_OPERATION_TYPE_MAP : QI_CU_MEM_OPERATION_TYPE_UNMAP;
        part->memHandleType = QI_CU_MEM_HANDLE_TYPE_GENERIC;
        part->memHandle.memHandle = handle;
        part->deviceBitMask = UINT32_C(1) << cuda->device;
    }
}

/*
 * Maps the array at an offset of a page and waits until the mapping is complete. Destroying the
 * array undoes what a failure left mapped. In the context.
 */
static quire_result map_array(qi_cuda *cuda, qi_cuda_array *a, const qi_cuda_page *page,
                              uint64_t offset)
{
    fill_parts(cuda, a, page->chunks->handle);
    for (uint32_t i = 0; i < a->part_count; i++)
        a->parts[i].offset += offset; /* now relative to the page: an array is mapped once */
    qi_cu_result code = map_parts(cuda, a);
    a->is_mapped = !code; /* also if the wait fails: destruction must unmap it */
    if (!code)
        code = await_mapping(cuda);
    if (code)
        return qi_cuda_fail(&cuda->f, code, "cuMemMapArrayAsync of %u part%s", a->part_count,
                            qi_plural(a->part_count));
    a->was_bound = true;
    return QUIRE_SUCCESS;
}

/* ---- destroying arrays -------------------------------------------------------------------- */

/* Returns false if the driver refused. A lost device has nothing mapped. */
static bool unmap(qi_cuda *cuda, qi_cuda_array *a)
{
    if (!a->is_mapped)
        return true;
    fill_parts(cuda, a, 0);
    for (uint32_t i = 0; i < a->part_count; i++)
        a->parts[i].offset = 0;
    qi_cu_result code = map_parts(cuda, a);
    if (!code)
        code = await_mapping(cuda);
    a->is_mapped = code && !qi_cuda_is_lost(code);
    return !a->is_mapped;
}

/* Releases the record only. */
static void release_records(qi_cuda *cuda, qi_cuda_array *a)
{
    qi_host_release(&cuda->host, a->parts, a->part_count, sizeof *a->parts);
    qi_host_release(&cuda->host, a, 1, sizeof *a);
}

/* Destroys the array and its record. False: the driver refused a step; the rest can be retried. */
static bool destroy_native(qi_cuda *cuda, qi_cuda_array *a)
{
    if (a->was_bound && !qi_cuda_await_context(cuda))
        return false;
    a->was_bound = false;
    if (!unmap(cuda, a))
        return false;
    qi_cu_result code = QI_CUDA_SUCCESS;
    if (a->array)
        code = cuda->f.ArrayDestroy(a->array);
    else if (a->mipmap)
        code = cuda->f.MipmappedArrayDestroy(a->mipmap);
    if (code && !qi_cuda_is_lost(code))
        return false;
    release_records(cuda, a);
    return true;
}

static void defer(qi_cuda *cuda, qi_cuda_array *a)
{
    pthread_mutex_lock(&cuda->mutex);
    a->next = cuda->deferred_arrays;
    cuda->deferred_arrays = a;
    pthread_mutex_unlock(&cuda->mutex);
}

/* Destroys an array; defers what the driver refuses. Enters the context itself. A lost device runs
   no work, but the driver may still release the array. */
static void destroy_array(qi_cuda *cuda, qi_cuda_array *a)
{
    if (qi_cuda_has_forked(cuda)) {
        release_records(cuda, a);
        return;
    }
    qi_cu_result code = qi_cuda_push(cuda);
    bool is_lost = qi_cuda_is_lost(code) || code == QI_CUDA_ERROR_INVALID_CONTEXT;
    a->was_bound &= !is_lost;
    if ((code && !is_lost) || !destroy_native(cuda, a))
        defer(cuda, a);
    if (!code)
        qi_cuda_leave(cuda);
}

void qi_cuda_retry_deferred_arrays(qi_cuda *cuda, bool is_last)
{
    pthread_mutex_lock(&cuda->mutex);
    qi_cuda_array *a = cuda->deferred_arrays, *next = NULL;
    cuda->deferred_arrays = NULL;
    pthread_mutex_unlock(&cuda->mutex);
    for (; a; a = next) {
        next = a->next;
        if (!qi_cuda_has_forked(cuda) && destroy_native(cuda, a))
            continue;
        if (!is_last) {
            defer(cuda, a);
            continue;
        }
        if (!qi_cuda_has_forked(cuda))
            qi_log(&cuda->log, QUIRE_LOG_ERROR,
                   "device '%s': the driver refused to release an array of %s", cuda->name,
                   qi_bytes(a->size).text);
        release_records(cuda, a);
    }
}

/* ---- creating arrays ---------------------------------------------------------------------- */

static void describe(qi_cuda_array *a, const quire_cuda_array_options *o)
{
    a->levels = o->levels + !o->levels;
    a->layers = o->layers + !o->layers;
    a->element = o->channel_count * quire_channel_size(o->channel_type);
    a->form = (qi_cu_array3d_descriptor){
        .Width = o->width,
        .Height = o->height, /* at least 1: the driver maps no array of one dimension */
        .Depth = o->depth ? o->depth : o->layers,
        .Format = format_of(o->channel_type),
        .NumChannels = o->channel_count,
        .Flags = a->is_sparse ? QI_CUDA_ARRAY3D_SPARSE : QI_CUDA_ARRAY3D_DEFERRED_MAPPING,
    };
    if (o->layers)
        a->form.Flags |= QI_CUDA_ARRAY3D_LAYERED;
    if (o->usage & QUIRE_USAGE_STORAGE)
        a->form.Flags |= QI_CUDA_ARRAY3D_SURFACE_LDST;
}

/* CUDA_ERROR_INVALID_VALUE means that the driver has no array of this form. */
static quire_result create_native(const qi_cuda *cuda, qi_cuda_array *a, bool is_mipmapped)
{
    qi_cu_result code = is_mipmapped ? cuda->f.MipmappedArrayCreate(&a->mipmap, &a->form, a->levels)
                                     : cuda->f.Array3DCreate(&a->array, &a->form);
    if (!code)
        return QUIRE_SUCCESS;
    a->array = NULL; /* a failing driver may have written to them */
    a->mipmap = NULL;
    if (code == QI_CUDA_ERROR_INVALID_VALUE)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, code,
                                  "'%s' has no %s array of %zu x %zu x %zu texels, %u level%s",
                                  cuda->name, a->is_sparse ? "sparse" : "deferred", a->form.Width,
                                  a->form.Height, a->form.Depth, a->levels, qi_plural(a->levels));
    return qi_cuda_fail(&cuda->f, code, "creating an array");
}

/*
 * Creates an array that is not mapped. The options are valid and their defaults resolved. In the
 * context. UNSUPPORTED if the driver has no array of this form.
 */
static quire_result new_array(qi_cuda *cuda, const quire_cuda_array_options *options,
                              qi_cuda_array **out)
{
    if (options->sparse && !cuda->capabilities.sparse_arrays)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "'%s' has no sparse arrays",
                                  cuda->name);
    qi_cuda_array *a = qi_host_allocate(&cuda->host, 1, sizeof *a);
    if (!a)
        return quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0, "no host memory for an array");
    a->is_sparse = options->sparse || !cuda->capabilities.deferred_mapping_arrays;
    describe(a, options);
    quire_result result = create_native(cuda, a, options->levels != 0);
    if (!result)
        result = a->is_sparse ? query_tiles(cuda, a) : query_requirements(cuda, a);
    if (result)
        destroy_array(cuda, a); /* also what failed half way */
    else
        *out = a;
    return result;
}

/* ---- requirements of images --------------------------------------------------------------- */

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

/* ---- arrays of quire's own images --------------------------------------------------------- */

/* Returns true if an image is an array: optimal tiling, and a format that arrays have. */
static bool is_array(const qi_cuda *cuda, const quire_image_options *options)
{
    return options->tiling == QUIRE_TILING_OPTIMAL && kind_mask(cuda, true) &&
           format_of(options->channel_type) && options->channel_count != 3;
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
    result = new_array(cuda, options, array);
    qi_cuda_leave(cuda);
    return result;
}

/* ---- entries of the backend table --------------------------------------------------------- */

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
    destroy_array(cuda, array);
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
    result = map_array(cuda, (qi_cuda_array *)(uintptr_t)native, qi_cuda_page_of(page), offset);
    qi_cuda_leave(cuda);
    return result;
}

void qi_cuda_object_destroy(void *state, quire_object object, uint64_t native)
{
    (void)object;
    destroy_array(state, (qi_cuda_array *)(uintptr_t)native);
}

/* ---- public calls ------------------------------------------------------------------------- */

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
    if (!format_of(o->channel_type))
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
