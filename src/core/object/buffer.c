/*
 * buffer.c - buffers from quire_buffer_options (see object.h).
 *
 * Where the backend has no objects a buffer is a raw range with the device's buffer alignment.
 */
#include "src/base/result.h"
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
static inline void resolve_buffer(quire_buffer_options *options)
{
    if (!options->usage)
        options->usage =
            QUIRE_USAGE_STORAGE | QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET;
    if (!options->alignment)
        options->alignment = 1;
}

/* Inline, so that the compiler initialises a local build in place. */
QI_ALWAYS_INLINE quire_result begin(const quire_buffer_options *requested, qi_object_build *build)
{
    quire_buffer_options *options = &build->options.buffer;
    *options = *requested;
    resolve_buffer(options);
    quire_result result = check_buffer(options);
    if (result)
        return result;
    qi_object_init(build);
    build->native_request.object = QUIRE_OBJECT_BUFFER;
    build->native_request.buffer = options;
    build->request.size = options->size;
    build->request.alignment = build->alignment = options->alignment;
    build->request.name = options->name;
    build->request.user_data = options->user_data;
    build->request.dedicated = options->dedicated;
    build->request.existing_pages = options->existing_pages;
    build->request.within_budget = options->within_budget;
    build->request.host_use = qi_host_use(options->host_read, options->host_write, options->mapped);
    build->request.object = QUIRE_OBJECT_BUFFER;
    build->request.extras = QI_EXTRA_OBJECT;
    build->request.zero = options->zero;
    build->stream = options->stream;
    build->info = options->info;
    build->usage = (uint8_t)options->usage; /* fits: see slot.h */
    build->is_sized = true;
    return QUIRE_SUCCESS;
}

quire_result qi_buffer_begin(const quire_buffer_options *options, qi_object_build *build)
{
    return begin(options, build);
}

quire_result qi_buffer_create(quire_memory *memory, const quire_buffer_options *options,
                              quire_buffer *buffer)
{
    qi_object_build build; /* not initialised: `begin` does it */
    quire_result result = begin(options, &build);
    return result ? result : qi_object_finish(&build, memory, &buffer->allocation);
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
