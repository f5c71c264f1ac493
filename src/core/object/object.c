/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * object.c - the steps in which buffers and images are built (see object.h), and objects created
 * from a backend's own description.
 */
#include "src/core/object/object.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/allocate/allocation.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/copy/access.h"
#include "src/core/find/addresses.h"
#include "src/core/page/range.h"

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
 * granularity, so that no linear resource shares such a stretch with them, unless they have pages
 * for themselves.
 */
static quire_result apply_granularity(qi_object_build *build, bool optimal)
{
    uint64_t granularity = build->memory->device->info.limits.buffer_image_granularity;
    if (!optimal || granularity <= 1 || build->memory->first_shard)
        return QUIRE_SUCCESS;
    if (build->request.range.alignment < granularity)
        build->request.range.alignment = granularity;
    if (qi_align_up_overflows(build->request.range.size, granularity, &build->request.range.size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "an image of %u byte%s is requested",
                            build->needs.size);
    return QUIRE_SUCCESS;
}

/* One attempt: in a dedicated page (`tied`), or in a shared one. */
static quire_result try_place(qi_object_build *build, bool tied, uint32_t *slot)
{
    qi_request *request = &build->request;
    request->tied = tied;
    request->range.size = build->needs.size;
    if (request->range.size < request->range.requested)
        request->range.size = request->range.requested;
    request->range.alignment =
        build->needs.alignment > build->alignment ? build->needs.alignment : build->alignment;
    quire_result result = apply_granularity(build, build->optimal && !tied);
    if (!result)
        result = qi_request_check(build->memory, request);
    return result ? result : qi_allocate(build->memory, request, QUIRE_SUCCESS, slot);
}

/*
 * Uses a dedicated page if the backend requires one. If the backend only prefers one, a
 * dedicated page is tried first, unless few pages are left or no page may be made, and then a
 * shared one. An image of optimal tiling that is to be zeroed shares a page: its own can have no
 * buffer to fill it through.
 */
static quire_result place(qi_object_build *build, uint32_t *slot)
{
    bool prefers = build->needs.prefers_dedicated && !build->needs.dedicated &&
                   !(build->request.zero && build->optimal) && !build->request.existing_pages &&
                   build->memory->policy.dedicated != QUIRE_DEDICATED_NEVER &&
                   !qi_budget_is_short_of_pages(build->memory->device);
    if (prefers) {
        qi_error before;
        qi_error_save(&before);
        quire_result result = try_place(build, true, slot);
        if (!qi_is_out_of_memory(result) && result != QUIRE_ERROR_TOO_MANY_PAGES)
            return result;
        qi_error_restore(&before);
    }
    return try_place(build, build->needs.dedicated, slot);
}

/*
 * With a stream the name is given after the placement (qi_allocate_on_complete), so that a slot is
 * renewed without one. Zeros exclude a reuse: the host writes them and would not wait for the
 * stream.
 */
static void prepare_stream(qi_object_build *build)
{
    qi_request *request = &build->request;
    if (!build->stream)
        return;
    if (request->name) { /* the first attempt */
        request->deferred_name = request->name;
        request->name = NULL;
    }
    request->stream = build->request.zero ? NULL : build->stream;
    request->reuse = &build->reuse;
    build->reuse.wait = NULL;
}

/* Does what can be done only once the object is bound: writes zeros, adds the object's own address,
   completes the order of a stream. */
static quire_result complete(qi_object_build *build, uint32_t slot)
{
    quire_memory *memory = build->memory;
    quire_result result = build->request.zero ? qi_access_fill_zero(memory, slot) : QUIRE_SUCCESS;
    if (!result && memory->addresses) {
        qi_addresses_learn(memory, slot);
        result = qi_addresses_add(memory, slot, true) ? QUIRE_SUCCESS : qi_addresses_refuse();
    }
    if (!result && build->stream)
        result = qi_allocate_on_complete(memory, slot, build->request.deferred_name, build->stream);
    if (result) /* the placement succeeded and has not counted the failure */
        qi_oom_count(memory);
    return result;
}

/* Destroys a native object that no allocation owns. A borrowed one is the caller's. */
static void discard(qi_object_build *build)
{
    uint64_t native = build->request.range.user_data;
    build->is_ready = false;
    build->request.range.user_data = 0;
    if (native && !(build->request.range.extras & QI_EXTRA_BORROWED))
        qi_device_object_destroy(build->device, build->memory ? &build->memory->calls : NULL,
                                 build->native_request.object, native);
}

/* Places the object, on the stream if it has one, and binds it, unless the caller does. On failure
   the place is released. The native object remains, unless a binding was tried: it cannot be bound
   again. */
static quire_result place_and_bind(qi_object_build *build, uint32_t *slot)
{
    prepare_stream(build);
    build->request.optimal = build->optimal;
    quire_result result = check_kind(build);
    if (!result)
        result = place(build, slot);
    if (result)
        return result;
    qi_memory_slot(build->memory, *slot)->usage = build->optimal ? 1 : build->usage;
    if (!build->unbound)
        result = qi_native_bind(build->memory, *slot, build->native_request.object,
                                build->request.range.user_data);
    if (!result && (build->request.zero || build->memory->addresses || build->stream))
        result = complete(build, *slot);
    if (result) {
        discard(build); /* before a page that is dedicated to it */
        qi_allocate_undo(build->memory, *slot, build->stream ? &build->reuse : NULL);
    }
    return result;
}

/* ---- the two parts ------------------------------------------------------------------------ */

/* Gets the requirements, and the native object if the backend has one of this sort. */
static quire_result get_needs(qi_object_build *build, qi_calls *calls)
{
    quire_device *device = build->device;
    const quire_object_request *native = &build->native_request;
    if (qi_device_offers(device, QUIRE_BACKEND_OBJECTS) &&
        (!native->image || qi_device_offers(device, QUIRE_BACKEND_IMAGES)))
        return qi_device_object_create(device, calls, native, &build->request.range.user_data,
                                       &build->needs);
    if (native->image)
        return qi_device_image_requirements(device, calls, native->image, &build->needs);
    if (!native->buffer)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no objects",
                            device->info.backend);
    build->needs = (quire_requirements){
        .size = native->buffer->size,
        .alignment = device->info.limits.buffer_alignment,
        .kind_mask = UINT32_MAX,
    };
    return QUIRE_SUCCESS;
}

quire_result qi_object_require(qi_object_build *build, quire_device *device, qi_calls *calls,
                               bool exportable)
{
    build->device = device;
    build->native_request.exportable = exportable;
    quire_result result = get_needs(build, calls);
    if (result)
        return result;
    build->is_ready = true;
    if (!build->is_sized)
        build->request.range.requested = build->needs.size;
    return QUIRE_SUCCESS;
}

/* Makes the first part that of the memory's device. */
static quire_result get_ready(qi_object_build *build, quire_memory *memory)
{
    if (build->is_ready && build->device == memory->device &&
        build->native_request.exportable == memory->exportable)
        return QUIRE_SUCCESS;
    if (build->is_ready)
        discard(build);
    return qi_object_require(build, memory->device, &memory->calls, memory->exportable);
}

/* What quire_image_get_info reports. Pitches are known from the requirements if the image has
   quire's own options; otherwise the backend has described them. */
static void keep_image(const qi_object_build *build, uint32_t slot)
{
    const quire_image_info *info = build->image;
    bool is_own = build->native_request.image;
    *qi_memory_slot(build->memory, slot)->meta->image = (qi_slot_image){
        .minimum_size = info->minimum_size,
        .row_pitch = is_own ? build->needs.row_pitch : info->row_pitch,
        .slice_pitch = is_own ? build->needs.slice_pitch : info->slice_pitch,
        .width = info->width,
        .height = info->height,
        .depth = info->depth,
        .native_format = info->native_format,
        .usage = info->usage,
        .channel_count = (uint8_t)info->channel_count,
        .channel_type = (uint8_t)info->channel_type,
        .tiling = (uint8_t)info->tiling,
        .dimensions = (uint8_t)info->dimensions,
    };
}

quire_result qi_object_try(qi_object_build *build, quire_memory *memory, bool skip_callback,
                           quire_allocation *allocation)
{
    uint32_t slot = 0;
    build->request.range.alignment = build->alignment;
    build->request.skip_callback = skip_callback;
    quire_result result = qi_request_check(memory, &build->request);
    if (!result)
        result = get_ready(build, memory);
    if (result)
        return result;
    build->memory = memory;
    if (build->native_request.buffer && !build->stream && (build->is_movable || memory->is_movable))
        build->request.range.extras |= QI_EXTRA_MOVABLE;
    else
        build->request.range.extras &= (uint8_t)~QI_EXTRA_MOVABLE;
    result = place_and_bind(build, &slot);
    if (result)
        return result;
    build->is_ready = false; /* the allocation owns the native object */
    if (build->image)
        keep_image(build, slot);
    if (build->stream && build->reuse.wait)
        qi_deferred_end_reuse(memory, slot, &build->reuse);
    qi_allocation_publish(memory, slot, QI_PHASE_LIVE, build->alignment, build->stream, build->info,
                          allocation);
    return QUIRE_SUCCESS;
}

quire_result qi_object_give_up(qi_object_build *build, quire_result result)
{
    if (build->is_ready)
        discard(build);
    return result;
}

/* ---- in one of several memories ----------------------------------------------------------- */

typedef struct several {
    qi_object_build *build;
    quire_allocation *allocation;
} several;

static quire_result try_in(void *work, quire_memory *memory, bool skip_callback)
{
    const several *all = work;
    return qi_object_try(all->build, memory, skip_callback, all->allocation);
}

quire_result qi_object_fallback(qi_object_build *build, quire_memory *const *memories,
                                uint32_t count, uint32_t *chosen, quire_allocation *allocation)
{
    several all = {build, allocation};
    const qi_fallback fallback = {memories, count, &all, try_in};
    return qi_object_give_up(build, qi_fallback_run(&fallback, chosen));
}

/* ---- checks and uses ---------------------------------------------------------------------- */

static const char *object_name(quire_object object)
{
    return object == QUIRE_OBJECT_BUFFER  ? "a buffer"
           : object == QUIRE_OBJECT_IMAGE ? "an image"
                                          : "a raw range";
}

/* Fails with INVALID_ARGUMENT if a usage is not one of buffers. */
static quire_result check_buffer_usage(quire_usage usage)
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
    return qi_fail_text(
        QUIRE_ERROR_INVALID_ARGUMENT, "allocation %#llx of memory '%s' is %s, not %s",
        (unsigned long long)allocation.id, memory->name, object_name(found), object_name(object));
}

/* ---- from a description of the backend ---------------------------------------------------- */

static quire_result check_object(const quire_object_options *options)
{
    if (options->object != QUIRE_OBJECT_BUFFER && options->object != QUIRE_OBJECT_IMAGE)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no object type %u",
                            (uint64_t)options->object);
    if (!options->description)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_object_options.description is null");
    if (options->unbound && !options->borrowed)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "unbound is set, and the object is not the caller's, who would bind it");
    if (options->unbound && options->zero)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "unbound and zero are set: zeros are written after the object is bound");
    quire_result result = qi_check_unused(options, "quire_object_options");
    return !result && options->object == QUIRE_OBJECT_BUFFER
               ? check_buffer_usage(options->described.buffer.usage)
               : result;
}

/* The caller may give the size of a buffer. The size of everything else is what the backend reports
   later; until then it is 1. */
quire_result qi_object_begin(const quire_object_options *options, qi_object_build *build)
{
    bool is_buffer = options->object == QUIRE_OBJECT_BUFFER;
    bool is_sized = is_buffer && options->described.buffer.size;
    quire_result result = check_object(options);
    if (result)
        return result;
    qi_object_init(build, options->object, options->alignment + !options->alignment);
    build->native_request.description = options->description;
    build->native_request.borrowed = options->borrowed;
    build->request.range.requested = is_sized ? options->described.buffer.size : 1;
    build->request.range.extras |= options->borrowed ? QI_EXTRA_BORROWED : 0;
    build->request.description = options->description;
    QI_REQUEST_TAKE(&build->request, options);
    build->unbound = options->unbound;
    build->stream = options->stream;
    build->info = options->info;
    build->optimal = options->optimal;
    build->is_sized = is_sized;
    if (is_buffer)
        build->usage = (uint8_t)options->described.buffer.usage;
    else
        build->image = &options->described.image;
    return QUIRE_SUCCESS;
}

quire_result qi_object_create(quire_memory *memory, const quire_object_options *options,
                              quire_allocation *allocation)
{
    qi_object_build build; /* not initialised: qi_object_begin does it */
    quire_result result = qi_object_begin(options, &build);
    return result ? result : qi_object_finish(&build, memory, allocation);
}

/* ---- buffers ------------------------------------------------------------------------------ */

/*
 * If the backend has no objects a buffer is a raw range with the device's buffer alignment.
 */

static quire_result check_buffer(const quire_buffer_options *options)
{
    quire_result result = qi_check_unused(options, "quire_buffer_options");
    if (result)
        return result;
    if (!options->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a buffer of size 0 is requested");
    return check_buffer_usage(options->usage);
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
    qi_object_init(build, QUIRE_OBJECT_BUFFER, options->alignment);
    build->native_request.buffer = options;
    build->request.range.requested = options->size;
    QI_REQUEST_TAKE(&build->request, options);
    build->stream = options->stream;
    build->info = options->info;
    build->usage = (uint8_t)options->usage; /* fits: see slot.h */
    build->is_movable = options->movable;
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
