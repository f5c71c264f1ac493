/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* cuda_array.c - CUDA arrays as images in tile pools: placed, mapped, written through the driver,
   destroyed; and the operations that tile pools refuse. */
#include <sys/wait.h>
#include <unistd.h>

#include "quire/cuda_array.h"
#include "tests/support/child.h"
#include "tests/support/cuda_bench.h"
#include "tests/support/on_stream.h"
#include "tests/support/unit.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

static const quire_memory_options SMALL = {.pages = {.page_size = 2 * MIB}};
static const quire_cuda_settings BOTH = {.kinds = CUDA_KIND(DEVICE) | CUDA_KIND(TILES)};

/* Opens a device of this model with tile pools, and a memory of them. */
static quire_memory *begin_with(cuda_bench *b, const fc_model *model, int version,
                                const quire_cuda_settings *settings)
{
    fc_options options = {.models = {model}, .flags = FC_DIRTY | FC_LATE, .version = version};
    cuda_bench_begin(b, &options);
    CHECK(cuda_bench_open(b, settings));
    b->fc->reset_counters(); /* without the trial allocations of the opening */
    return cuda_bench_memory(b, QUIRE_CUDA_TILES, &SMALL);
}

static quire_memory *begin(cuda_bench *b, const fc_model *model, int version)
{
    return begin_with(b, model, version, &BOTH);
}

static quire_memory *begin_h200(cuda_bench *b)
{
    return begin(b, fc_model_named("h200"), 0);
}

static quire_cuda_array_info info_of(quire_memory *memory, quire_image image)
{
    quire_cuda_array_info info;
    CHECK_OK(quire_cuda_array_get_info(memory, image, &info));
    return info;
}

static quire_image make(quire_memory *memory, const quire_cuda_array_options *options)
{
    quire_image image;
    CHECK_OK(quire_cuda_array_create(memory, options, &image));
    return image;
}

#define MAKE(memory, ...) make((memory), &(quire_cuda_array_options){__VA_ARGS__})

/* ---- texels, which only the driver reaches ------------------------------------------------ */

typedef struct extent {
    uint32_t width, height, depth;
} extent;

static uint32_t texels[64 * 1024], seen[64 * 1024];

/* Writes or checks all texels (4 bytes each) of an array or a level, derived from a key. */
static void copy_all(cuda_bench *b, void *array, extent e, uint32_t key, bool writes)
{
    size_t count = (size_t)e.width * e.height * e.depth;
    qi_cu_memcpy3d copy = {
        .srcPitch = e.width * 4,
        .srcHeight = e.height,
        .dstPitch = e.width * 4,
        .dstHeight = e.height,
        .WidthInBytes = e.width * 4,
        .Height = e.height,
        .Depth = e.depth,
    };
    CHECK(count <= sizeof texels / sizeof *texels);
    for (size_t i = 0; i < count; i++)
        texels[i] = key * UINT32_C(0x9E3779B9) + (uint32_t)i;
    copy.srcMemoryType = writes ? QI_CU_MEMORYTYPE_HOST : QI_CU_MEMORYTYPE_ARRAY;
    copy.dstMemoryType = writes ? QI_CU_MEMORYTYPE_ARRAY : QI_CU_MEMORYTYPE_HOST;
    copy.srcHost = texels;
    copy.dstHost = seen;
    copy.srcArray = copy.dstArray = array;
    cuda_bench_enter(b->device);
    CHECK_EQ(CUDA_BENCH_CALL(b, Memcpy3D, 3020)(&copy), 0);
    cuda_bench_leave();
    if (!writes)
        CHECK(!memcmp(texels, seen, count * 4));
}

/* The same for each level of an image. */
static void copy_levels(cuda_bench *b, quire_memory *memory, quire_image image,
                        const quire_cuda_array_options *o, uint32_t key, bool writes)
{
    quire_cuda_array_info info = info_of(memory, image);
    for (uint32_t level = 0; level < info.levels; level++) {
        uint32_t width = o->width >> level, height = o->height >> level, depth = o->depth >> level;
        extent e = {width + !width, height + !height, o->layers ? o->layers : depth + !depth};
        qi_cu_array array = info.array;
        cuda_bench_enter(b->device);
        if (info.mipmap)
            CHECK_EQ(CUDA_BENCH_CALL(b, MipmappedArrayGetLevel, 5000)(&array, info.mipmap, level),
                     0);
        cuda_bench_leave();
        copy_all(b, array, e, key * 32 + level, writes);
    }
}

/* ---- quire's own images ------------------------------------------------------------------- */

CUDA_UNIT_IN(cuda_array, images_of_optimal_tiling_are_arrays_side_by_side_in_one_page,
             begin_h200(b))
{
    enum { IMAGES = 5 };
    quire_image images[IMAGES];
    quire_requirements needs;
    quire_image_info told;
    const quire_image_options options = {.width = 100, .height = 60, .channel_count = 4};
    uint32_t kind;
    CHECK_OK(quire_cuda_find_kind(b->device, QUIRE_CUDA_TILES, -1, &kind));
    CHECK_OK(quire_image_get_requirements(b->device, &options, &needs));
    CHECK_EQ(needs.kind_mask, UINT32_C(1) << kind);
    CHECK(needs.size == 64 * KIB && needs.alignment == 64 * KIB && !needs.row_pitch);
    for (uint32_t i = 0; i < IMAGES; i++) {
        CHECK_OK(quire_image_create(memory, &options, &images[i]));
        copy_all(b, info_of(memory, images[i]).array, (extent){100, 60, 1}, i, true);
    }
    for (uint32_t i = 0; i < IMAGES; i++) {
        quire_cuda_array_info info = info_of(memory, images[i]);
        CHECK(info.array && !info.mipmap && !info.is_sparse);
        CHECK(info.handle == info_of(memory, images[0]).handle && info.size == 64 * KIB);
        CHECK_EQ(info.offset, i * 64 * KIB);
        copy_all(b, info.array, (extent){100, 60, 1}, i, false);
    }
    CHECK_OK(quire_image_get_info(memory, images[1], &told));
    CHECK(told.place.page == 0 && told.place.offset == 64 * KIB && !told.row_pitch);
    CHECK_EQ(told.minimum_size, 100 * 60 * 4);
    CHECK_EQ(b->fc->calls("cuMemCreate"), 1);
    CHECK_EQ(b->fc->calls("cuMemAddressReserve"), 0);
    CHECK_OK(quire_free(memory, images[1].allocation)); /* another image has its place */
    CHECK_OK(quire_image_create(memory, &options, &images[1]));
    CHECK_EQ(info_of(memory, images[1]).offset, 64 * KIB);
    copy_all(b, info_of(memory, images[1]).array, (extent){100, 60, 1}, 9, true);
    copy_all(b, info_of(memory, images[2]).array, (extent){100, 60, 1}, 2, false);
}

/* In the order of a stream an array takes the place of one whose work may still run, and the call
   says where it lies. */
CUDA_UNIT_IN(cuda_array, arrays_reuse_places_in_the_order_of_a_stream, begin_h200(b))
{
    quire_stream *stream = NULL;
    quire_allocation_info first, again;
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    MAKE(memory, .width = 64, .height = 64, .channel_count = 4);
    quire_image image = MAKE(memory, .width = 64, .height = 64, .channel_count = 4,
                             .name = "texture", .stream = stream, .info = &first);
    CHECK_EQ(first.offset, info_of(memory, image).offset);
    CHECK_EQ(first.object, QUIRE_OBJECT_IMAGE);
    CHECK_OK(quire_free_on_stream(memory, image.allocation, stream));
    image = MAKE(memory, .width = 64, .height = 64, .channel_count = 4, .stream = stream,
                 .info = &again);
    CHECK_EQ(again.offset, first.offset);
    CHECK(again.native != first.native);
    copy_all(b, info_of(memory, image).array, (extent){64, 64, 1}, 3, true);
    copy_all(b, info_of(memory, image).array, (extent){64, 64, 1}, 3, false);
    CHECK_OK(quire_free_on_stream(memory, image.allocation, stream));
    image = MAKE(memory, .width = 64, .height = 64, .channel_count = 4, .info = &first);
    CHECK(first.offset != again.offset); /* not on the stream */
    const quire_cuda_array_options none = {.width = 0, .info = &first};
    CHECK_FAILS(quire_cuda_array_create(memory, &none, &image), INVALID);
    CHECK_EQ(first.native, 0);
    quire_point point;
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
}

/* Of the default memories only that of tile pools can hold an array, with a choice or without. */
CUDA_UNIT_ON(cuda_array, an_image_needs_no_memory, begin_h200(b))
{
    quire_memory *memory = NULL;
    quire_memory_info info;
    quire_image image;
    uint32_t kind;
    const quire_image_options options = {.width = 100, .height = 60, .channel_count = 4};
    const quire_kind_request others = {.avoided = QUIRE_OBJECTS_ONLY};
    CHECK_OK(quire_cuda_find_kind(b->device, QUIRE_CUDA_TILES, -1, &kind));
    CHECK_OK(quire_device_image_create(b->device, NULL, &options, &memory, &image));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(info.kind, kind);
    CHECK(info_of(memory, image).array != NULL);
    CHECK_OK(quire_free(memory, image.allocation));
    CHECK_FAILS(quire_device_image_create(b->device, &others, &options, &memory, &image),
                UNSUPPORTED);
}

/* Images in formats that CUDA arrays lack, and images with rows, lie in pages with addresses. */
CUDA_UNIT(cuda_array, everything_else_is_a_range_of_other_pages)
{
    static const quire_image_options linear[] = {
        {.width = 32, .height = 8, .channel_count = 3},
        {.width = 32, .height = 8, .channel_type = QUIRE_FLOAT64},
        {.width = 32, .height = 8, .tiling = QUIRE_TILING_LINEAR},
    };
    quire_requirements needs;
    quire_buffer buffer;
    quire_image image;
    quire_cuda_array_info info;
    unsigned char bytes[64] = {7}, back[64];
    quire_memory *tiles = begin_h200(b);
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(quire_image_get_requirements(b->device, &linear[i], &needs));
        CHECK_EQ(needs.kind_mask, 1);
        CHECK_FAILS(quire_image_create(tiles, &linear[i], &image), UNSUPPORTED);
        CHECK_OK(quire_image_create(memory, &linear[i], &image));
        CHECK_FAILS(quire_cuda_array_get_info(memory, image, &info), UNSUPPORTED);
        CHECK_OK(quire_write(memory, image.allocation, 0, bytes, 64));
        CHECK_OK(quire_read(memory, image.allocation, 0, back, 64));
        CHECK(!memcmp(bytes, back, 64));
    }
    const quire_buffer_options options = {.size = 1000, .zero = true};
    CHECK_FAILS(quire_buffer_create(tiles, &options, &buffer), UNSUPPORTED);
    CHECK_OK(quire_buffer_create(memory, &options, &buffer));
    uint64_t calls = b->fc->calls(NULL);
    CHECK_OK(quire_free(memory, buffer.allocation));
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 1000}, &buffer));
    CHECK_EQ(b->fc->calls(NULL), calls); /* a buffer makes no call of the driver here either */
    CHECK_FAILS(quire_image_create(memory, &(quire_image_options){.width = 9}, &image),
                UNSUPPORTED); /* it is an array */
}

CUDA_UNIT_ON(cuda_array, a_device_of_tile_pools_alone_has_nothing_but_arrays,
             cuda_bench_begin(b, NULL))
{
    quire_buffer buffer;
    quire_image image;
    quire_requirements needs;
    CHECK(cuda_bench_open(b, &(quire_cuda_settings){.kinds = CUDA_KIND(TILES)}));
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_TILES, NULL);
    CHECK_FAILS(quire_buffer_create(memory, &(quire_buffer_options){.size = 9}, &buffer),
                UNSUPPORTED);
    CHECK_FAILS(
        quire_image_get_requirements(
            b->device, &(quire_image_options){.width = 9, .tiling = QUIRE_TILING_LINEAR}, &needs),
        UNSUPPORTED);
    CHECK_EQ(needs.row_pitch, 0);
    CHECK_OK(quire_image_create(memory, &(quire_image_options){.width = 9}, &image));
}

/* ---- layers and levels -------------------------------------------------------------------- */

static const quire_cuda_array_options FORMS[] = {
    {.width = 200, .height = 130, .channel_count = 4},
    {.width = 64, .height = 48, .layers = 3, .channel_count = 4},
    {.width = 40, .height = 36, .depth = 20, .channel_type = QUIRE_FLOAT32},
    {.width = 256, .height = 200, .levels = 9, .channel_count = 2, .channel_type = QUIRE_FLOAT16},
    {.width = 130, .height = 129, .layers = 2, .levels = 4, .channel_count = 4},
    {.width = 64, .height = 32, .depth = 16, .levels = 3, .channel_type = QUIRE_INT32},
};

enum { FORMS_COUNT = sizeof FORMS / sizeof *FORMS };

/* Creates all forms in one memory at once, writes one after the other, and checks them. */
static void all_forms(const fc_model *model, int version, bool sparse)
{
    cuda_bench b;
    quire_image images[FORMS_COUNT];
    quire_memory *memory = begin(&b, model, version);
    for (uint32_t i = 0; i < FORMS_COUNT; i++) {
        quire_cuda_array_options options = FORMS[i];
        options.sparse = sparse && version == 0;
        images[i] = make(memory, &options);
        quire_cuda_array_info info = info_of(memory, images[i]);
        CHECK_EQ(info.is_sparse, sparse);
        CHECK_EQ(info.tile_width != 0, sparse);
        CHECK_EQ(info.mipmap != NULL, FORMS[i].levels != 0);
        CHECK_EQ(info.array != NULL, FORMS[i].levels == 0);
        CHECK_EQ(info.levels, FORMS[i].levels ? FORMS[i].levels : 1);
        CHECK_EQ(info.layers, FORMS[i].layers ? FORMS[i].layers : 1);
        CHECK_EQ(info.size % (64 * KIB), 0);
        copy_levels(&b, memory, images[i], &FORMS[i], i, true);
    }
    for (uint32_t i = 0; i < FORMS_COUNT; i++) {
        quire_image_info told;
        copy_levels(&b, memory, images[i], &FORMS[i], i, false);
        CHECK_OK(quire_image_get_info(memory, images[i], &told));
        CHECK_EQ(told.dimensions, FORMS[i].depth ? 3 : 2);
        CHECK(told.minimum_size >= UINT64_C(4) * FORMS[i].width * FORMS[i].height);
        CHECK_OK(quire_free(memory, images[i].allocation));
    }
    cuda_bench_end(&b);
}

UNIT(cuda_array, arrays_of_all_forms_hold_their_texels)
{
    all_forms(fc_model_named("h200"), 0, false);
}

UNIT(cuda_array, sparse_ones_too)
{
    all_forms(fc_model_named("h200"), 0, true);
}

UNIT(cuda_array, also_where_one_tail_serves_all_layers)
{
    fc_model model = *fc_model_named("h200");
    model.features |= FC_SINGLE_TAIL;
    all_forms(&model, 0, true);
}

UNIT(cuda_array, drivers_without_deferred_mapping_have_sparse_ones_alone)
{
    all_forms(fc_model_named("a100"), 11020, true);
}

CUDA_UNIT_IN(cuda_array, sparse_arrays_tell_their_tiles, begin_h200(b))
{
    quire_image image =
        MAKE(memory, .width = 512, .height = 256, .levels = 10, .channel_count = 4, .sparse = true);
    quire_cuda_array_info info = info_of(memory, image);
    CHECK(info.tile_width == 128 && info.tile_height == 128 && info.tile_depth == 1);
    CHECK(info.tail_level == 2 && info.tail_size == 64 * KIB);
    CHECK_EQ(info.size, (8 + 2 + 1) * 64 * KIB);
}

/* The caller manages other tiles: a raw range reports handle and offset. */
CUDA_UNIT_IN(cuda_array, a_raw_range_of_a_tile_pool_is_for_the_callers_own_arrays, begin_h200(b))
{
    quire_allocation a;
    quire_cuda_range range;
    qi_cu_array array;
    const qi_cu_array3d_descriptor form = {.Width = 128,
                                           .Height = 128,
                                           .Format = QI_CU_AD_FORMAT_UNSIGNED_INT8,
                                           .NumChannels = 4,
                                           .Flags = QI_CUDA_ARRAY3D_SPARSE};
    (void)MAKE(memory, .width = 8);
    const quire_allocation_options options = {.size = 64 * KIB, .alignment = 64 * KIB};
    CHECK_OK(quire_allocate(memory, &options, &a));
    CHECK_OK(quire_cuda_get_range(memory, a, &range));
    CHECK(!range.address && !range.page_address && !range.host && range.handle);
    CHECK(range.page_offset == 64 * KIB && range.handle_count == 1 && !range.export_types);
    cuda_bench_enter(b->device);
    CHECK_EQ(CUDA_BENCH_CALL(b, Array3DCreate, 3020)(&array, &form), 0);
    qi_cu_array_map_info tile = {.resourceType = QI_CU_RESOURCE_TYPE_ARRAY,
                                 .resource = {.array = array},
                                 .memOperationType = QI_CU_MEM_OPERATION_TYPE_MAP,
                                 .memHandle = {range.handle},
                                 .offset = range.page_offset,
                                 .deviceBitMask = 1};
    tile.subresource.sparseLevel.extentWidth = tile.subresource.sparseLevel.extentHeight = 128;
    tile.subresource.sparseLevel.extentDepth = 1;
    CHECK_EQ(CUDA_BENCH_CALL(b, MemMapArrayAsync, 11010)(&tile, 1, NULL), 0);
    cuda_bench_leave();
    copy_all(b, array, (extent){128, 128, 1}, 3, true);
    copy_all(b, array, (extent){128, 128, 1}, 3, false);
    cuda_bench_enter(b->device);
    CHECK_EQ(CUDA_BENCH_CALL(b, ArrayDestroy, 2000)(array), 0);
    cuda_bench_leave();
}

/* ---- what is refused ---------------------------------------------------------------------- */

CUDA_UNIT_IN(cuda_array, a_tile_pool_has_no_bytes_and_nobody_else_gets_it, begin_h200(b))
{
    static const quire_intent exportable = QUIRE_INTENT_EXPORT;
    static const quire_cuda_access access = {QUIRE_CUDA_AT_DEVICE, 0, QUIRE_CUDA_READ};
    quire_image image;
    quire_allocation a, none;
    quire_kind_request wanted = {.required = QUIRE_DEVICE_LOCAL};
    unsigned char byte = 0;
    int descriptor;
    void *pointer;
    uint32_t kind, chosen;
    CHECK_OK(quire_cuda_find_kind(b->device, QUIRE_CUDA_TILES, -1, &kind));
    wanted.mask = UINT32_C(1) << kind;
    CHECK_FAILS(quire_device_choose_kind(b->device, &wanted, &chosen), UNSUPPORTED);
    wanted.required |= QUIRE_OBJECTS_ONLY;
    CHECK_OK(quire_device_choose_kind(b->device, &wanted, &chosen));
    a = MAKE(memory, .width = 8).allocation;
    CHECK_FAILS(quire_write(memory, a, 0, &byte, 1), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "objects only");
    CHECK_FAILS(quire_read(memory, a, 0, &byte, 1), UNSUPPORTED);
    CHECK_FAILS(quire_map(memory, a, &pointer), QUIRE_ERROR_NOT_HOST_VISIBLE);
    const quire_copy_options out = {
        .from = {.memory = memory, .allocation = a}, .host_to = &byte, .size = 1};
    const quire_copy_options within = {.from = {.memory = memory, .allocation = a},
                                       .to = {.memory = memory, .allocation = a, .offset = 4},
                                       .size = 1};
    CHECK_FAILS(quire_copy(&out, NULL), UNSUPPORTED);
    CHECK_FAILS(quire_copy(&within, NULL), UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "objects only");
    CHECK_FAILS(quire_fill(memory, a, &(quire_fill_options){.size = 1, .value = 7}, NULL),
                UNSUPPORTED);
    quire_stream *stream;
    quire_point done;
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    CHECK_FAILS(quire_fill(memory, a,
                           &(quire_fill_options){.size = 1, .value = 7, .stream = stream}, &done),
                UNSUPPORTED);
    CHECK_FAILS(copy_on_stream(stream, &out, &done), UNSUPPORTED);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_FAILS(
        quire_image_create(memory, &(quire_image_options){.width = 8, .zero = true}, &image),
        UNSUPPORTED);
    CHECK_FAILS(quire_cuda_set_access(memory, a, &access, 1), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_export_fd(memory, a, &descriptor), UNSUPPORTED);
    CHECK_FAILS(quire_cuda_export_dma_buf(memory, a, &descriptor), UNSUPPORTED);
    const quire_cuda_import import = {.type = QUIRE_CUDA_IMPORT_HANDLE,
                                      .handle = info_of(memory, (quire_image){a}).handle,
                                      .size = 2 * MIB};
    CHECK_FAILS(quire_cuda_import_range(memory, &import, &none), UNSUPPORTED);
    quire_memory_options options = SMALL;
    options.kind.intent = exportable;
    CHECK(!cuda_bench_memory(b, QUIRE_CUDA_TILES, &options));
    CHECK_EQ(b->result, UNSUPPORTED);
}

CUDA_UNIT(cuda_array, forms_that_no_array_has_are_refused_and_leave_nothing)
{
    static const struct {
        quire_cuda_array_options options;
        quire_result code;
    } cases[] = {
        {{.width = 0}, INVALID},
        {{.width = 8, .channel_count = 3}, INVALID},
        {{.width = 8, .channel_count = 5}, INVALID},
        {{.width = 8, .channel_type = QUIRE_UINT64}, INVALID},
        {{.width = 8, .channel_type = (quire_channel_type)99}, INVALID},
        {{.width = 8, .usage = QUIRE_USAGE_VERTEX}, INVALID},
        {{.width = 8, .depth = 2, .layers = 2}, INVALID},
        {{.width = 8, .levels = 5}, INVALID},
        {{.width = 8, .levels = 99}, INVALID},
        {{.width = 8, .unused = {0, 1}}, INVALID},
        {{.width = UINT32_MAX}, UNSUPPORTED},
        {{.width = 131072, .height = 131072, .channel_count = 4, .channel_type = QUIRE_FLOAT32},
         QUIRE_ERROR_OUT_OF_DEVICE_MEMORY},
    };
    quire_image image;
    quire_memory *tiles = begin_h200(b);
    quire_memory *memory = cuda_bench_memory(b, QUIRE_CUDA_DEVICE, &SMALL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image.allocation.id = 1;
        CHECK_FAILS(quire_cuda_array_create(tiles, &cases[i].options, &image), cases[i].code);
        CHECK_EQ(image.allocation.id, 0);
        CHECK_EQ(b->fc->live(FC_ARRAY) + b->fc->live(FC_MIPMAP), 0);
    }
    CHECK_FAILS(quire_cuda_array_create(memory, &(quire_cuda_array_options){.width = 8}, &image),
                UNSUPPORTED);
}

CUDA_UNIT(cuda_array, a_device_without_sparse_arrays_refuses_them)
{
    quire_image image;
    fc_model model = *fc_model_named("h200");
    model.features &= ~FC_SPARSE_ARRAYS;
    quire_memory *memory = begin(b, &model, 0);
    const quire_cuda_array_options options = {.width = 8, .sparse = true};
    CHECK_FAILS(quire_cuda_array_create(memory, &options, &image), UNSUPPORTED);
    (void)MAKE(memory, .width = 8);
}

/* ---- the end ------------------------------------------------------------------------------ */

UNIT(cuda_array, what_the_driver_does_not_take_back_is_gone_on_with_later)
{
    static const struct {
        const char *function;
        qi_cu_result code;
    } calls[] = {{"cuMemMapArrayAsync", QI_CUDA_ERROR_INVALID_VALUE},
                 {"cuStreamSynchronize", QI_CUDA_ERROR_INVALID_HANDLE},
                 {"cuArrayDestroy", QI_CUDA_ERROR_INVALID_HANDLE},
                 {"cuCtxSynchronize", QI_CUDA_ERROR_INVALID_CONTEXT},
                 {"cuCtxPushCurrent", QI_CUDA_ERROR_INVALID_VALUE}};
    quire_cuda_settings settings = BOTH;
    settings.wait_before_release = true;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        cuda_bench b;
        quire_memory *memory = begin_with(&b, fc_model_named("h200"), 0, &settings);
        quire_image image = MAKE(memory, .width = 200, .height = 200, .channel_count = 4);
        CHECK(b.fc->fail(
            &(fc_fault){.function = calls[i].function, .call = 1, .result = calls[i].code}));
        CHECK_OK(quire_free(memory, image.allocation));
        CHECK_EQ(b.fc->failed().times, 1);
        CHECK_EQ(b.fc->live(FC_ARRAY), 1);
        b.fc->heal();
        image = MAKE(memory, .width = 200, .height = 200, .channel_count = 4); /* destroys both */
        CHECK_EQ(b.fc->live(FC_ARRAY), 1);
        copy_all(&b, info_of(memory, image).array, (extent){200, 200, 1}, 1, true);
        copy_all(&b, info_of(memory, image).array, (extent){200, 200, 1}, 1, false);
        cuda_bench_end(&b);
    }
}

CUDA_UNIT_IN(cuda_array, a_forked_child_forgets_them, begin_h200(b))
{
    quire_image image = MAKE(memory, .width = 8);
    pid_t child = fork();
    if (!child) {
        quire_image other;
        const quire_cuda_array_options options = {.width = 8};
        bool refused =
            quire_cuda_array_create(memory, &options, &other) == QUIRE_ERROR_NOT_PERMITTED;
        quire_memory_destroy_all(&b->memories[0]);
        child_end(refused && !quire_device_destroy(&b->device) && !b->host_memory.blocks);
    }
    CHECK(child_was_well(child));
    copy_all(b, info_of(memory, image).array, (extent){2, 1, 1}, 1, true);
}
