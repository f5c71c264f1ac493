/*
 * image_rows.c - texels of linear images as rows of bytes, and copies of them (see object.h).
 *
 * Images of optimal tiling have no rows: only the backend knows where their texels lie.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/copy/copy.h"
#include "src/core/object/object.h"

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
static quire_result check_image(const quire_image_info *info)
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
        result = check_image(&info);
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
