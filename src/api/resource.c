/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource.c - the public functions of quire/resource.h (buffers and images), and
 * quire_object_create of quire/backend.h: each zeroes its outputs and checks pointers, and the core
 * resolves and checks options.
 */
#include "quire/resource.h"

#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/object/object.h"

/* ---- buffers ------------------------------------------------------------------------------ */

quire_result quire_buffer_create(quire_memory *memory, const quire_buffer_options *options,
                                 quire_buffer *buffer)
{
    if (buffer)
        *buffer = (quire_buffer){0};
    if (!memory || !options || !buffer)
        return zero_info(refuse_null_request("quire_buffer_create", memory, options, "buffer"),
                         options ? options->info : NULL, 1);
    if (options->info)
        *options->info = (quire_allocation_info){0};
    return qi_buffer_create(memory, options, buffer);
}

quire_result quire_buffer_create_fallback(quire_memory *const *memories, uint32_t count,
                                          const quire_buffer_options *options, uint32_t *chosen,
                                          quire_buffer *buffer)
{
    if (buffer)
        *buffer = (quire_buffer){0};
    qi_object_build build;
    quire_result result =
        qi_fallback_check("quire_buffer_create_fallback", memories, count, options, chosen, buffer);
    if (!result)
        result = qi_buffer_begin(options, &build);
    if (!result)
        result = qi_object_fallback(&build, memories, count, chosen, &buffer->allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_buffer_get_info(const quire_memory *memory, quire_buffer buffer,
                                   quire_buffer_info *info)
{
    if (info)
        *info = (quire_buffer_info){0};
    if (!memory || !info)
        return qi_fail_null("quire_buffer_get_info", !memory ? "memory" : "info");
    return qi_buffer_get_info(qi_memory_queried(memory), buffer, info);
}

/* ---- images ------------------------------------------------------------------------------- */

uint32_t quire_channel_size(quire_channel_type type)
{
    return qi_channel_size(type);
}

quire_result quire_image_get_requirements(const quire_device *device,
                                          const quire_image_options *options,
                                          quire_requirements *requirements)
{
    if (requirements)
        *requirements = (quire_requirements){0};
    if (!device || !options || !requirements)
        return qi_fail_null("quire_image_get_requirements", !device    ? "device"
                                                            : !options ? "options"
                                                                       : "requirements");
    if (device->is_disabled)
        return qi_refuse_disabled();
    return qi_image_get_requirements(qi_device_queried(device), options, requirements);
}

quire_result quire_image_create(quire_memory *memory, const quire_image_options *options,
                                quire_image *image)
{
    if (image)
        *image = (quire_image){0};
    if (!memory || !options || !image)
        return zero_info(refuse_null_request("quire_image_create", memory, options, "image"),
                         options ? options->info : NULL, 1);
    quire_result result = qi_image_create(memory, options, image);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_image_create_fallback(quire_memory *const *memories, uint32_t count,
                                         const quire_image_options *options, uint32_t *chosen,
                                         quire_image *image)
{
    if (image)
        *image = (quire_image){0};
    qi_object_build build;
    quire_result result =
        qi_fallback_check("quire_image_create_fallback", memories, count, options, chosen, image);
    if (!result)
        result = qi_image_begin(options, &build);
    if (!result)
        result = qi_object_fallback(&build, memories, count, chosen, &image->allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_image_get_info(const quire_memory *memory, quire_image image,
                                  quire_image_info *info)
{
    if (info)
        *info = (quire_image_info){0};
    if (!memory || !info)
        return qi_fail_null("quire_image_get_info", !memory ? "memory" : "info");
    return qi_image_get_info(qi_memory_queried(memory), image, info);
}

/* ---- objects ------------------------------------------------------------------------------ */

quire_result quire_object_create(quire_memory *memory, const quire_object_options *options,
                                 quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !allocation)
        return zero_info(refuse_null_request("quire_object_create", memory, options, "allocation"),
                         options ? options->info : NULL, 1);
    quire_result result = qi_object_create(memory, options, allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_object_create_fallback(quire_memory *const *memories, uint32_t count,
                                          const quire_object_options *options, uint32_t *chosen,
                                          quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    qi_object_build build;
    quire_result result = qi_fallback_check("quire_object_create_fallback", memories, count,
                                            options, chosen, allocation);
    if (!result)
        result = qi_object_begin(options, &build);
    if (!result)
        result = qi_object_fallback(&build, memories, count, chosen, allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}
