/*
 * transfer.c - the public functions of quire/transfer.h: copies, fills, and rows of linear images.
 *
 * Pointers are checked here. The core checks options, handles and ranges, and with them refuses the
 * handles of a device that did not survive a fork.
 */
#include "quire/transfer.h"

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/copy/copy.h"
#include "src/core/object/object.h"

/* ---- copies ------------------------------------------------------------------------------- */

quire_result quire_copy(const quire_copy_options *options)
{
    if (!options)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_copy: options is null");
    return qi_copy_now(options);
}

quire_result quire_copy_on(quire_stream *stream, const quire_copy_options *options,
                           quire_point *done)
{
    if (done)
        *done = (quire_point){0};
    if (!stream || !options)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_copy_on: stream or options is null");
    return qi_copy_on_stream(stream, options, done);
}

quire_result quire_copy_get_path(quire_memory *to, quire_memory *from, quire_copy_path *path)
{
    if (path)
        *path = QUIRE_COPY_DIRECT;
    if (!path)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_copy_get_path: path is null");
    if (!to && !from)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_copy_get_path: both memories are null, which is host memory");
    if ((to && to->device->is_disabled) || (from && from->device->is_disabled))
        return qi_refuse_disabled();
    *path = qi_copy_path_between(to, from);
    return QUIRE_SUCCESS;
}

/* ---- fills -------------------------------------------------------------------------------- */

quire_result quire_fill(quire_memory *memory, quire_allocation allocation, uint64_t offset,
                        uint64_t size, uint8_t value)
{
    return memory ? qi_access_fill(memory, allocation, offset, size, value) : refuse_null_memory();
}

quire_result quire_fill_on(quire_stream *stream, quire_memory *memory, quire_allocation allocation,
                           uint64_t offset, uint64_t size, uint8_t value, quire_point *done)
{
    const qi_stream_fill fill = {.offset = offset, .size = size, .value = value};
    if (done)
        *done = (quire_point){0};
    if (!stream || !memory)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_fill_on: stream or memory is null");
    return qi_fill_on_stream(stream, memory, allocation, fill, done);
}

/* ---- rows of images ----------------------------------------------------------------------- */

quire_result quire_image_get_rows(quire_memory *memory, quire_image image,
                                  const quire_image_region *region, quire_image_rows *rows)
{
    if (rows)
        *rows = (quire_image_rows){0};
    if (!memory || !rows)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_image_get_rows: memory or rows is null");
    return qi_image_get_rows(memory, image, region, rows);
}

static quire_result refuse_null_image(void)
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
    return memory && data ? qi_image_copy(memory, image, region, &host) : refuse_null_image();
}

quire_result quire_image_read(quire_memory *memory, quire_image image,
                              const quire_image_region *region, void *data, uint64_t row_pitch,
                              uint64_t slice_pitch)
{
    const quire_copy_options host = {.host_to = data,
                                     .to = {.row_pitch = row_pitch, .slice_pitch = slice_pitch}};
    return memory && data ? qi_image_copy(memory, image, region, &host) : refuse_null_image();
}
