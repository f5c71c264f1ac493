/*
 * object.c - the steps in which buffers and images are built (see object.h), and objects created
 * from a backend's own description.
 */
#include "src/core/object/object.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/copy/access.h"
#include "src/core/native/native.h"
#include "src/core/release/release.h"
#include "src/core/state/event.h"

/* The backend must accept the memory kind for this object. */
static quire_result check_kind(const qi_object_build *build)
{
    if (build->needs.kind_mask >> build->memory->kind & 1)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "memory '%s' is of kind %u, and the object needs one of kinds 0x%x",
                        build->memory->name, build->memory->kind, build->needs.kind_mask);
}

/*
 * Images of optimal tiling in shared pages begin and end at multiples of the buffer-image
 * granularity, so that no linear resource shares such a stretch with them.
 */
static quire_result apply_granularity(qi_object_build *build, bool optimal)
{
    uint64_t granularity = build->memory->device->info.limits.buffer_image_granularity;
    if (!optimal || granularity <= 1)
        return QUIRE_SUCCESS;
    if (build->request.alignment < granularity)
        build->request.alignment = granularity;
    if (qi_align_up_overflows(build->request.held, granularity, &build->request.held))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "an image of %u bytes is requested",
                            build->needs.size);
    return QUIRE_SUCCESS;
}

/* One attempt: in a dedicated page (`tied`), or in a shared one. */
static quire_result try_place(qi_object_build *build, bool tied, bool optimal, uint32_t *slot)
{
    qi_request *request = &build->request;
    request->tied = tied;
    request->held = build->needs.size;
    if (build->needs.alignment > request->alignment)
        request->alignment = build->needs.alignment;
    quire_result result = apply_granularity(build, optimal && !tied);
    if (!result)
        result = qi_request_check(build->memory, request);
    return result ? result : qi_allocate(build->memory, request, QUIRE_SUCCESS, slot);
}

/*
 * Uses a dedicated page where the backend requires one. Where the backend only prefers one, a
 * dedicated page is tried first, and a shared one if there is no memory for it.
 */
static quire_result place(qi_object_build *build, bool optimal, uint32_t *slot)
{
    bool prefers = build->needs.prefers_dedicated && !build->needs.dedicated &&
                   build->memory->policy.dedicated != QUIRE_DEDICATED_NEVER;
    if (prefers) {
        qi_error before = qi_error_save();
        quire_result result = try_place(build, true, optimal, slot);
        if (!qi_is_out_of_memory(result) && result != QUIRE_ERROR_TOO_MANY_PAGES)
            return result;
        qi_error_restore(&before);
    }
    return try_place(build, build->needs.dedicated, optimal, slot);
}

quire_result qi_object_build_place(qi_object_build *build, bool optimal, uint32_t *slot)
{
    bool zero = build->request.zero;
    build->request.zero = false; /* the placement would write the zeros before the binding */
    quire_result result = check_kind(build);
    if (!result)
        result = place(build, optimal, slot);
    if (result)
        return result;
    result =
        qi_native_bind(build->memory, *slot, build->native_request.object, build->request.native);
    if (!result && zero) {
        result = qi_access_fill_zero(build->memory, *slot);
        if (result) /* the placement succeeded and has not counted the failure */
            qi_oom_count(build->memory);
    }
    if (result)
        qi_release_unpublished(build->memory, *slot);
    return result;
}

quire_result qi_object_build_finish(qi_object_build *build, quire_result result, uint32_t slot,
                                    quire_allocation *allocation)
{
    if (result) {
        if (build->request.native && !build->request.borrowed)
            qi_device_object_destroy(build->memory->device, &build->memory->calls,
                                     build->native_request.object, build->request.native);
        return result;
    }
    qi_event_slot(build->memory, QUIRE_EVENT_ALLOCATED, slot);
    *allocation = qi_slot_publish(&build->memory->slots, slot, QI_PHASE_LIVE);
    return QUIRE_SUCCESS;
}

quire_result qi_object_build_native(qi_object_build *build)
{
    return qi_device_object_create(build->memory->device, &build->memory->calls,
                                   &build->native_request, &build->request.native, &build->needs);
}

static const char *object_name(quire_object object)
{
    return object == QUIRE_OBJECT_BUFFER  ? "a buffer"
           : object == QUIRE_OBJECT_IMAGE ? "an image"
                                          : "a raw range";
}

quire_result qi_check_buffer_usage(quire_usage usage)
{
    quire_usage unknown = usage & ~QI_BUFFER_USAGES;
    return unknown
               ? qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "usage %x is not of buffers", unknown)
               : QUIRE_SUCCESS;
}

quire_result qi_object_begin_use(quire_memory *memory, quire_allocation allocation,
                                 quire_object object, uint32_t *slot)
{
    quire_result result = qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    quire_object found = qi_memory_slot(memory, *slot)->object;
    if (found == object)
        return QUIRE_SUCCESS;
    qi_slot_end_use(&memory->slots, *slot);
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "the handle is of %s, not of %s",
                        object_name(found), object_name(object));
}

/* ---- from a description of the backend ---------------------------------------------------- */

static quire_result check_object(const quire_memory *memory, const quire_object_options *options)
{
    if (options->object != QUIRE_OBJECT_BUFFER && options->object != QUIRE_OBJECT_IMAGE)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no object type %u",
                            (uint64_t)options->object);
    if (!options->description)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the object has no description");
    if (!qi_object_backend_has(memory))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no objects",
                            memory->device->info.backend);
    return options->object == QUIRE_OBJECT_BUFFER
               ? qi_check_buffer_usage(options->info.buffer.usage)
               : QUIRE_SUCCESS;
}

quire_result qi_object_create(quire_memory *memory, const quire_object_options *options,
                              quire_allocation *allocation)
{
    qi_object_build build = {
        .memory = memory,
        .native_request = {.object = options->object,
                           .description = options->description,
                           .borrowed = options->borrowed,
                           .exportable = memory->exportable},
        .request = {.size = 1, /* until the backend reports the size */
                    .alignment = options->alignment + !options->alignment,
                    .name = options->name,
                    .user_data = options->user_data,
                    .zero = options->zero,
                    .dedicated = options->dedicated,
                    .host_access = options->host_read || options->host_write,
                    .object = options->object,
                    .borrowed = options->borrowed},
    };
    quire_result result = check_object(memory, options);
    if (!result)
        result = qi_request_check(memory, &build.request);
    if (!result)
        result = qi_object_build_native(&build);
    if (result)
        return result;
    bool is_buffer = options->object == QUIRE_OBJECT_BUFFER;
    /* the caller may give the size of a buffer; otherwise the backend reports it */
    bool is_sized = is_buffer && options->info.buffer.size;
    build.request.size = is_sized ? options->info.buffer.size : build.needs.size;
    uint32_t slot = 0;
    result = qi_object_build_place(&build, options->optimal, &slot);
    if (!result && is_buffer)
        qi_memory_slot(memory, slot)->usage = (uint8_t)options->info.buffer.usage;
    else if (!result)
        *qi_memory_slot(memory, slot)->meta->image = options->info.image;
    return qi_object_build_finish(&build, result, slot, allocation);
}
