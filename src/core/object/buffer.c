/*
 * buffer.c - buffers from quire_buffer_options (see object.h).
 *
 * Where the backend has no objects a buffer is a raw range with the device's buffer alignment.
 */
#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/allocate/fallback.h"
#include "src/core/object/object.h"

static quire_result check_buffer(const quire_buffer_options *options)
{
    quire_result result = qi_check_unused(options, "quire_buffer_options");
    if (result)
        return result;
    if (!options->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a buffer of size 0 is requested");
    return qi_check_buffer_usage(options->usage);
}

/* Replaces zeros by what they mean: usage for storage and transfers, alignment of 1. */
static quire_buffer_options resolve_buffer(const quire_buffer_options *options)
{
    quire_buffer_options out = *options;
    if (!out.usage)
        out.usage = QUIRE_USAGE_STORAGE | QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET;
    if (!out.alignment)
        out.alignment = 1;
    return out;
}

/* A native buffer reports its own requirements. */
static quire_result buffer_needs(qi_object_build *build)
{
    if (qi_object_backend_has(build->memory))
        return qi_object_build_native(build);
    build->needs = (quire_requirements){
        .size = build->native_request.buffer->size,
        .alignment = build->memory->device->info.limits.buffer_alignment,
        .kind_mask = UINT32_MAX,
    };
    return QUIRE_SUCCESS;
}

quire_result qi_buffer_create(quire_memory *memory, const quire_buffer_options *requested,
                              bool is_unaided, quire_buffer *buffer)
{
    quire_buffer_options options = resolve_buffer(requested);
    qi_object_build build = {
        .memory = memory,
        .native_request = {.object = QUIRE_OBJECT_BUFFER,
                           .buffer = &options,
                           .exportable = memory->exportable},
        .request = {.size = options.size,
                    .alignment = options.alignment,
                    .name = options.name,
                    .user_data = options.user_data,
                    .zero = options.zero,
                    .dedicated = options.dedicated,
                    .host_access = options.host_read || options.host_write,
                    .is_unaided = is_unaided,
                    .object = QUIRE_OBJECT_BUFFER},
    };
    quire_result result = check_buffer(&options);
    if (!result)
        result = qi_request_check(memory, &build.request);
    if (!result)
        result = buffer_needs(&build);
    if (result)
        return result;
    uint32_t slot = 0;
    result = qi_object_build_place(&build, false, &slot);
    if (!result)
        qi_memory_slot(memory, slot)->usage = (uint8_t)options.usage; /* fits: see slot.h */
    return qi_object_build_finish(&build, result, slot, &buffer->allocation);
}

/* One attempt of qi_buffer_create_fallback. */
static quire_result create_in(const qi_fallback *fallback, quire_memory *memory, bool is_unaided)
{
    return qi_buffer_create(memory, fallback->options, is_unaided, fallback->made);
}

quire_result qi_buffer_create_fallback(quire_memory *const *memories, uint32_t count,
                                       const quire_buffer_options *options, uint32_t *chosen,
                                       quire_buffer *buffer)
{
    const qi_fallback fallback = {memories, count, options, buffer, create_in};
    return qi_fallback_run(&fallback, chosen);
}

quire_result qi_buffer_get_info(quire_memory *memory, quire_buffer buffer, quire_buffer_info *info)
{
    uint32_t slot = 0;
    quire_result result =
        qi_object_begin_use(memory, buffer.allocation, QUIRE_OBJECT_BUFFER, &slot);
    if (result)
        return result;
    info->size = qi_memory_slot(memory, slot)->requested;
    info->usage = qi_memory_slot(memory, slot)->usage;
    qi_allocation_describe(memory, slot, &info->place);
    qi_slot_end_use(&memory->slots, slot);
    return QUIRE_SUCCESS;
}
