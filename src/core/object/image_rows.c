/*
 * image_rows.c - texels of linear images as rows of bytes, for copies.
 */
#include "quire/transfer.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* One side of a region, 0 being to the end. */
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

static quire_result check_image(const quire_image_info *info)
{
    if (!info->channel_count)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the texels of an image that was not made by quire_image_create are not "
                       "known");
    if (!info->row_pitch)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the texels of the image lie in the backend's own order: "
                       "quire_vulkan_image_write and quire_vulkan_image_read copy them, and images "
                       "of linear tiling have rows");
    return QUIRE_SUCCESS;
}

quire_result quire_image_get_rows(quire_memory *memory, quire_image image,
                                  const quire_image_region *region, quire_image_rows *rows)
{
    if (rows)
        *rows = (quire_image_rows){0};
    if (!memory || !rows)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_image_get_rows: memory or rows is null");
    quire_image_region r = region ? *region : (quire_image_region){0};
    quire_image_info info;
    quire_result result = quire_image_get_info(memory, image, &info);
    if (!result)
        result = check_image(&info);
    if (!result)
        result = resolve("width", info.width, r.x, &r.width);
    if (!result)
        result = resolve("height", info.height, r.y, &r.height);
    if (!result)
        result = resolve("depth", info.depth, r.z, &r.depth);
    if (result)
        return result;
    uint64_t texel = (uint64_t)info.channel_count * quire_channel_size(info.channel_type);
    *rows = (quire_image_rows){
        .end = {.memory = memory,
                .allocation = image.allocation,
                .offset = r.z * info.slice_pitch + r.y * info.row_pitch + r.x * texel,
                .row_pitch = info.row_pitch,
                .slice_pitch = info.depth > 1 ? info.slice_pitch : 0},
        .size = r.width * texel,
        .rows = r.height,
        .slices = r.depth,
    };
    return QUIRE_SUCCESS;
}

/* Between a region and host memory: one of the two pointers is set. */
static quire_result copy(quire_memory *memory, quire_image image, const quire_image_region *region,
                         const quire_copy_options *host)
{
    quire_image_rows rows;
    quire_copy_options options = *host;
    quire_result result = quire_image_get_rows(memory, image, region, &rows);
    if (result)
        return result;
    *(host->host_from ? &options.to : &options.from) = rows.end;
    options.size = rows.size;
    options.rows = rows.rows;
    options.slices = rows.slices;
    return quire_copy(&options);
}

static quire_result refuse_null(void)
{
    return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_image_write or quire_image_read: memory or "
                                                 "data is null");
}

quire_result quire_image_write(quire_memory *memory, quire_image image,
                               const quire_image_region *region, const void *data,
                               uint64_t row_pitch, uint64_t slice_pitch)
{
    const quire_copy_options host = {.host_from = data,
                                     .from = {.row_pitch = row_pitch, .slice_pitch = slice_pitch}};
    return memory && data ? copy(memory, image, region, &host) : refuse_null();
}

quire_result quire_image_read(quire_memory *memory, quire_image image,
                              const quire_image_region *region, void *data, uint64_t row_pitch,
                              uint64_t slice_pitch)
{
    const quire_copy_options host = {.host_to = data,
                                     .to = {.row_pitch = row_pitch, .slice_pitch = slice_pitch}};
    return memory && data ? copy(memory, image, region, &host) : refuse_null();
}
