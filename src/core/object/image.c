/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * image.c - images from quire_image_options (see object.h).
 *
 * If the backend has no native objects an image is a raw range with the size and alignment that the
 * backend reports for it.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/copy/copy.h"
#include "src/core/object/object.h"

/* ---- rows --------------------------------------------------------------------------------- */

/*
 * Images of optimal tiling have no rows: only the backend knows where their texels lie.
 */

/* Resolves the size of a region in one dimension: 0 means up to the end. */
static quire_result resolve(const char *what, uint64_t limit, uint64_t begin, uint32_t *size)
{
    if (!*size && begin < limit)
        *size = (uint32_t)(limit - begin);
    if (*size && qi_range_fits(begin, *size, limit))
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_OUT_OF_RANGE,
                        "the region has %u texels of %s from %llu on, and the image has %llu",
                        *size, what, (unsigned long long)begin, (unsigned long long)limit);
}

/* Only images of quire_image_create have known texels, and only linear ones have rows. */
static quire_result check_rows(const quire_image_info *info)
{
    if (!info->channel_count)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the image was not created by quire_image_create: its texels are unknown");
    if (!info->row_pitch)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the texels of the image lie in the backend's own order: "
                       "quire_lluvia_image_write and quire_lluvia_image_read copy them, and images "
                       "of linear tiling have rows");
    return QUIRE_SUCCESS;
}

quire_result qi_image_get_rows(quire_memory *memory, quire_image image,
                               const quire_image_region *region, quire_image_rows *rows)
{
    quire_image_region r = region ? *region : (quire_image_region){0};
    quire_image_info info;
    quire_result result = qi_image_get_info(memory, image, &info);
    if (!result)
        result = check_rows(&info);
    if (!result)
        result = resolve("width", info.width, r.x, &r.width);
    if (!result)
        result = resolve("height", info.height, r.y, &r.height);
    if (!result)
        result = resolve("depth", info.depth, r.z, &r.depth);
    if (result)
        return result;
    uint64_t texel = (uint64_t)info.channel_count * qi_channel_size(info.channel_type);
    *rows = (quire_image_rows){
        .end = {.memory = memory,
                .allocation = image.allocation,
                .offset = r.z * info.slice_pitch + r.y * info.row_pitch + r.x * texel,
                .row_pitch = info.row_pitch,
                .slice_pitch = info.depth > 1 ? info.slice_pitch : 0},
        .size = r.width * texel, /* bytes of one row */
        .rows = r.height,
        .slices = r.depth,
    };
    return QUIRE_SUCCESS;
}

quire_result qi_image_copy(quire_memory *memory, quire_image image,
                           const quire_image_region *region, const quire_copy_options *host)
{
    quire_image_rows rows;
    quire_copy_options options = *host;
    quire_result result = qi_image_get_rows(memory, image, region, &rows);
    if (result)
        return result;
    *(host->host_from ? &options.to : &options.from) = rows.end;
    options.size = rows.size;
    options.rows = rows.rows;
    options.slices = rows.slices;
    return qi_copy_now(&options);
}

/* ---- images ------------------------------------------------------------------------------- */

static const quire_usage IMAGE_USAGES = QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET |
                                        QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED;

enum { MAX_CHANNELS = 4 };

uint32_t qi_channel_size(quire_channel_type type)
{
    switch (type) {
    case QUIRE_UINT8:
    case QUIRE_INT8:
        return 1;
    case QUIRE_UINT16:
    case QUIRE_INT16:
    case QUIRE_FLOAT16:
        return 2;
    case QUIRE_UINT32:
    case QUIRE_INT32:
    case QUIRE_FLOAT32:
        return 4;
    case QUIRE_UINT64:
    case QUIRE_INT64:
    case QUIRE_FLOAT64:
        return 8;
    }
    return 0;
}

/* Replaces zeros by what they mean: sizes and channels of 1, and every usage that an image has. */
static quire_image_options resolve_image(const quire_image_options *options)
{
    quire_image_options out = *options;
    out.height += !out.height;
    out.depth += !out.depth;
    out.channel_count += !out.channel_count;
    if (!out.usage)
        out.usage = QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED | QUIRE_USAGE_TRANSFER_SOURCE |
                    QUIRE_USAGE_TRANSFER_TARGET;
    return out;
}

/* Computes the bytes of all texels without padding; returns true if they exceed 64 bits. */
static bool texels_overflow(const quire_image_options *o, uint64_t *bytes)
{
    return qi_multiply_overflows(o->width, o->height, bytes) ||
           qi_multiply_overflows(*bytes, o->depth, bytes) ||
           qi_multiply_overflows(*bytes, o->channel_count * qi_channel_size(o->channel_type),
                                 bytes);
}

/* Checks resolved options. *minimum receives the bytes of the texels without padding. */
static quire_result check_image(const quire_image_options *options, uint64_t *minimum)
{
    quire_result result = qi_check_unused(options, "quire_image_options");
    if (result)
        return result;
    if (!options->width)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an image of width 0 is requested");
    if (options->channel_count > MAX_CHANNELS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "an image of %u channel%s: %u at most",
                            options->channel_count, MAX_CHANNELS);
    if (!qi_channel_size(options->channel_type))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no channel type %u",
                            (uint64_t)options->channel_type);
    if (options->tiling != QUIRE_TILING_OPTIMAL && options->tiling != QUIRE_TILING_LINEAR)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no tiling %u",
                            (uint64_t)options->tiling);
    if (options->usage & ~IMAGE_USAGES)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "usage %x is not of images",
                            options->usage & ~IMAGE_USAGES);
    if (texels_overflow(options, minimum))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "an image of %u x %u x %u texels: its size exceeds 64 bits",
                            options->width, options->height, options->depth);
    return QUIRE_SUCCESS;
}

/* The information that the slot keeps. The pitches are added when the backend has reported them,
   and `place` when it is queried. */
static quire_image_info describe_image(const quire_image_options *o, uint64_t minimum)
{
    return (quire_image_info){
        .width = o->width,
        .height = o->height,
        .depth = o->depth,
        .channel_count = o->channel_count,
        .channel_type = o->channel_type,
        .tiling = o->tiling,
        .usage = o->usage,
        .dimensions = o->depth > 1    ? 3
                      : o->height > 1 ? 2
                                      : 1,
        .minimum_size = minimum,
    };
}

quire_result qi_image_get_requirements(quire_device *device, const quire_image_options *options,
                                       quire_requirements *requirements)
{
    quire_image_options resolved = resolve_image(options);
    uint64_t minimum = 0;
    quire_result result = check_image(&resolved, &minimum);
    if (!result)
        result = qi_device_image_requirements(device, NULL, &resolved, requirements);
    if (result)
        *requirements = (quire_requirements){0};
    return result;
}

/*
 * The request is checked before the backend is called, with the least size that the image can have.
 * Its size becomes the backend's afterwards, and qi_object_try checks it again.
 */
quire_result qi_image_begin(const quire_image_options *requested, qi_object_build *build)
{
    const quire_image_options *options = &build->options.image;
    uint64_t minimum = 0;
    build->options.image = resolve_image(requested);
    quire_result result = check_image(options, &minimum);
    if (result)
        return result;
    qi_object_init(build, QUIRE_OBJECT_IMAGE, 1);
    build->native_request.image = options;
    build->request.range.requested = minimum;
    QI_REQUEST_TAKE(&build->request, options);
    build->stream = options->stream;
    build->info = options->info;
    build->optimal = options->tiling == QUIRE_TILING_OPTIMAL;
    build->described = describe_image(options, minimum);
    build->image = &build->described;
    return QUIRE_SUCCESS;
}

quire_result qi_image_create(quire_memory *memory, const quire_image_options *options,
                             quire_image *image)
{
    qi_object_build build; /* not initialised: qi_image_begin does it */
    quire_result result = qi_image_begin(options, &build);
    return result ? result : qi_object_finish(&build, memory, &image->allocation);
}

/* All but the place. */
static quire_image_info info_of(const qi_slot_image *image)
{
    return (quire_image_info){
        .width = image->width,
        .height = image->height,
        .depth = image->depth,
        .channel_count = image->channel_count,
        .channel_type = (quire_channel_type)image->channel_type,
        .tiling = (quire_tiling)image->tiling,
        .usage = image->usage,
        .dimensions = image->dimensions,
        .minimum_size = image->minimum_size,
        .row_pitch = image->row_pitch,
        .slice_pitch = image->slice_pitch,
        .native_format = image->native_format,
    };
}

quire_result qi_image_get_info(quire_memory *memory, quire_image image, quire_image_info *info)
{
    uint32_t slot = 0;
    quire_result result = qi_object_begin_use(memory, image.allocation, QUIRE_OBJECT_IMAGE, &slot);
    if (result)
        return result;
    *info = info_of(qi_memory_slot(memory, slot)->meta->image);
    qi_allocation_describe(memory, slot, &info->place);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}
