/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * default_memory.c - the public functions of quire/default_memory.h, and quire_device_object_create
 * of quire/backend.h: each zeroes its outputs and checks pointers, and the core resolves and checks
 * options.
 */
#include "quire/default_memory.h"

#include "quire/backend.h"
#include "src/api/check.h"
#include "src/base/result.h"
#include "src/core/memory/default_memory.h"

quire_result quire_device_default_memory(quire_device *device, uint32_t kind, quire_memory **memory)
{
    if (memory)
        *memory = NULL;
    if (!device || !memory)
        return qi_fail_null("quire_device_default_memory", !device ? "device" : "memory");
    if (device->is_disabled)
        return qi_refuse_disabled();
    if (kind >= device->info.kind_count)
        return qi_fail_text(QUIRE_ERROR_OUT_OF_RANGE, "device '%s' has %u memory kind%s, not %u",
                            device->info.name, device->info.kind_count,
                            qi_plural(device->info.kind_count), kind);
    return qi_default_memory(device, kind, memory);
}

quire_result quire_device_set_default_options(quire_device *device,
                                              const quire_memory_options *options)
{
    const quire_memory_options none = {.name = NULL};
    quire_result result = check_device(device, "quire_device_set_default_options");
    return result ? result : qi_default_set_options(device, options ? options : &none);
}

/* Zeroes the outputs and checks the pointers that the calls below share; `call` is their name. */
static quire_result begin(quire_device *device, const void *options, quire_memory **memory,
                          quire_allocation *allocation, const char *call)
{
    if (memory)
        *memory = NULL;
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!device || !options || !memory || !allocation)
        return qi_fail_null(call, !device    ? "device"
                                  : !options ? "options"
                                  : !memory  ? "memory"
                                             : "the output for the handle");
    return device->is_disabled ? qi_refuse_disabled() : QUIRE_SUCCESS;
}

quire_result quire_device_allocate(quire_device *device, const quire_kind_request *kinds,
                                   const quire_allocation_options *options, quire_memory **memory,
                                   quire_allocation *allocation)
{
    quire_kind_request request;
    quire_result result = begin(device, options, memory, allocation, "quire_device_allocate");
    if (!result)
        result = qi_by_kind_resolve(
            device, kinds, options->host_read,
            qi_host_writes(options->host_read, options->host_write, options->mapped), &request);
    if (!result)
        result = qi_by_kind_allocate(device, &request, options, memory, allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_device_buffer_create(quire_device *device, const quire_kind_request *kinds,
                                        const quire_buffer_options *options, quire_memory **memory,
                                        quire_buffer *buffer)
{
    quire_kind_request request;
    qi_object_build build;
    quire_allocation *allocation = buffer ? &buffer->allocation : NULL;
    quire_result result = begin(device, options, memory, allocation, "quire_device_buffer_create");
    if (!result)
        result = qi_by_kind_resolve(
            device, kinds, options->host_read,
            qi_host_writes(options->host_read, options->host_write, options->mapped), &request);
    if (!result)
        result = qi_buffer_begin(options, &build);
    if (!result)
        result = qi_by_kind_build(device, &request, &build, memory, allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_device_image_create(quire_device *device, const quire_kind_request *kinds,
                                       const quire_image_options *options, quire_memory **memory,
                                       quire_image *image)
{
    quire_kind_request request;
    qi_object_build build;
    quire_allocation *allocation = image ? &image->allocation : NULL;
    quire_result result = begin(device, options, memory, allocation, "quire_device_image_create");
    if (!result)
        result = qi_by_kind_resolve(
            device, kinds, options->host_read,
            qi_host_writes(options->host_read, options->host_write, options->mapped), &request);
    if (!result)
        result = qi_image_begin(options, &build);
    if (!result)
        result = qi_by_kind_build(device, &request, &build, memory, allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}

quire_result quire_device_object_create(quire_device *device, const quire_kind_request *kinds,
                                        const quire_object_options *options, quire_memory **memory,
                                        quire_allocation *allocation)
{
    quire_kind_request request;
    qi_object_build build;
    quire_result result = begin(device, options, memory, allocation, "quire_device_object_create");
    if (!result)
        result = qi_by_kind_resolve(
            device, kinds, options->host_read,
            qi_host_writes(options->host_read, options->host_write, options->mapped), &request);
    if (!result)
        result = qi_object_begin(options, &build);
    if (!result)
        result = qi_by_kind_build(device, &request, &build, memory, allocation);
    return result ? zero_info(result, options ? options->info : NULL, 1) : QUIRE_SUCCESS;
}
