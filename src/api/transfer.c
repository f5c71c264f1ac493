/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * transfer.c - the public functions of quire/transfer.h (copies, fills, and rows of linear images):
 * they check pointers, and the core checks options, handles and ranges. With the handles it refuses
 * those of a device that did not survive a fork.
 */
#include "quire/transfer.h"

#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/copy/copy.h"
#include "src/core/copy/copy_batch.h"
#include "src/core/object/object.h"

/* ---- copies ------------------------------------------------------------------------------- */

quire_result quire_copy(const quire_copy_options *options, quire_point *done)
{
    if (done)
        *done = (quire_point){0};
    if (!options)
        return qi_fail_null("quire_copy", "options");
    return options->stream ? qi_copy_on_stream(options->stream, options, done)
                           : qi_copy_now(options);
}

quire_result quire_copy_get_path(const quire_memory *to, const quire_memory *from,
                                 quire_copy_path *path)
{
    if (path)
        *path = QUIRE_COPY_DIRECT;
    if (!path)
        return qi_fail_null("quire_copy_get_path", "path");
    if (!to && !from)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_copy_get_path: both memories are null, which is host memory");
    if ((to && to->device->is_disabled) || (from && from->device->is_disabled))
        return qi_refuse_disabled();
    *path = qi_copy_path_between(to, from);
    return QUIRE_SUCCESS;
}

/* ---- fills -------------------------------------------------------------------------------- */

quire_result quire_fill(quire_memory *memory, quire_allocation allocation,
                        const quire_fill_options *options, quire_point *done)
{
    if (done)
        *done = (quire_point){0};
    if (!memory || !options)
        return qi_fail_null("quire_fill", !memory ? "memory" : "options");
    quire_result result = qi_check_unused(options, "quire_fill_options");
    if (result)
        return result;
    const qi_stream_fill fill = {
        .offset = options->offset, .size = options->size, .value = options->value};
    return options->stream ? qi_fill_on_stream(options->stream, memory, allocation, fill, done)
                           : qi_access_fill(memory, allocation, fill.offset, fill.size, fill.value);
}

/* ---- batches ------------------------------------------------------------------------------ */

quire_result quire_write_batch(quire_memory *memory, const quire_write_item *items, uint64_t count,
                               quire_stream *stream, quire_point *done)
{
    const qi_copy_batch batch = {.memory = memory, .writes = items, .count = count};
    if (done)
        *done = (quire_point){0};
    if (!memory || (!items && count))
        return qi_fail_null("quire_write_batch", !memory ? "memory" : "items");
    return stream ? qi_copy_batch_on_stream(stream, &batch, done) : qi_copy_batch_now(&batch);
}

quire_result quire_read_batch(quire_memory *memory, const quire_read_item *items, uint64_t count)
{
    const qi_copy_batch batch = {.memory = memory, .reads = items, .count = count};
    if (!memory || (!items && count))
        return qi_fail_null("quire_read_batch", !memory ? "memory" : "items");
    return qi_copy_batch_now(&batch);
}

/* ---- rows of images ----------------------------------------------------------------------- */

quire_result quire_image_get_rows(const quire_memory *memory, quire_image image,
                                  const quire_image_region *region, quire_image_rows *rows)
{
    if (rows)
        *rows = (quire_image_rows){0};
    if (!memory || !rows)
        return qi_fail_null("quire_image_get_rows", !memory ? "memory" : "rows");
    return qi_image_get_rows(qi_memory_queried(memory), image, region, rows);
}

quire_result quire_image_write(quire_memory *memory, quire_image image,
                               const quire_image_region *region, const void *data,
                               uint64_t row_pitch, uint64_t slice_pitch)
{
    const quire_copy_options host = {.host_from = data,
                                     .from = {.row_pitch = row_pitch, .slice_pitch = slice_pitch}};
    if (!memory || !data)
        return qi_fail_null("quire_image_write", !memory ? "memory" : "data");
    return qi_image_copy(memory, image, region, &host);
}

quire_result quire_image_read(quire_memory *memory, quire_image image,
                              const quire_image_region *region, void *data, uint64_t row_pitch,
                              uint64_t slice_pitch)
{
    const quire_copy_options host = {.host_to = data,
                                     .to = {.row_pitch = row_pitch, .slice_pitch = slice_pitch}};
    if (!memory || !data)
        return qi_fail_null("quire_image_read", !memory ? "memory" : "data");
    return qi_image_copy(memory, image, region, &host);
}
