/*
 * array.c - creates, maps and destroys CUDA arrays.
 *
 * An array of deferred mapping requires one piece of memory, as large as the driver reports. A
 * sparse array requires whole tiles: those of each layer of each level above the mip tail, and the
 * tails, one per layer or one for all layers. The tiles are mapped one after the other in this
 * order.
 *
 * Mapping is work of a stream. quire uses a stream of its own and waits for it.
 */
#include "backends/cuda/array.h"

#include "backends/cuda/stream.h"
#include "src/base/log.h"
#include "src/base/result.h"

qi_cu_array_format qi_cuda_array_format(quire_channel_type type)
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

/* ---- the parts of a sparse array -------------------------------------------------------- */

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

/* Covers whole tiles, also where the level ends inside one. */
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

/* ---- memory requirements ---------------------------------------------------------------- */

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

/* ---- creation --------------------------------------------------------------------------- */

static void describe(qi_cuda_array *a, const quire_cuda_array_options *o)
{
    a->levels = o->levels + !o->levels;
    a->layers = o->layers + !o->layers;
    a->element = o->channel_count * quire_channel_size(o->channel_type);
    a->form = (qi_cu_array3d_descriptor){
        .Width = o->width,
        .Height = o->height, /* at least 1: the driver maps no array of one dimension */
        .Depth = o->depth ? o->depth : o->layers,
        .Format = qi_cuda_array_format(o->channel_type),
        .NumChannels = o->channel_count,
        .Flags = a->is_sparse ? QI_CUDA_ARRAY3D_SPARSE : QI_CUDA_ARRAY3D_DEFERRED_MAPPING,
    };
    if (o->layers)
        a->form.Flags |= QI_CUDA_ARRAY3D_LAYERED;
    if (o->usage & QUIRE_USAGE_STORAGE)
        a->form.Flags |= QI_CUDA_ARRAY3D_SURFACE_LDST;
}

/* CUDA_ERROR_INVALID_VALUE means that the driver has no array of this form. */
static quire_result create(const qi_cuda *cuda, qi_cuda_array *a, bool is_mipmapped)
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

quire_result qi_cuda_array_create(qi_cuda *cuda, const quire_cuda_array_options *options,
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
    quire_result result = create(cuda, a, options->levels != 0);
    if (!result)
        result = a->is_sparse ? query_tiles(cuda, a) : query_requirements(cuda, a);
    if (result)
        qi_cuda_array_destroy(cuda, a); /* also what failed half way */
    else
        *out = a;
    return result;
}

/* ---- mapping ---------------------------------------------------------------------------- */

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

quire_result qi_cuda_array_map(qi_cuda *cuda, qi_cuda_array *a, const qi_cuda_page *page,
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

/* ---- destruction ------------------------------------------------------------------------ */

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

/* A lost device runs no work, but the driver may still release the array. */
void qi_cuda_array_destroy(qi_cuda *cuda, qi_cuda_array *a)
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
