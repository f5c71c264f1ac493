/*
 * resource.c - see resource.h; and objects made from a backend's own description.
 */
#include "src/core/object/object.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/copy/access.h"
#include "src/core/state/event.h"
#include "src/core/allocate/oom_report.h"

static quire_result check_kind(const qi_object_build *m)
{
    if (m->needs.kind_mask >> m->memory->kind & 1)
        return QUIRE_SUCCESS;
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "memory '%s' is of kind %u, and the object can lie in kinds 0x%x",
                        m->memory->name, m->memory->kind, m->needs.kind_mask);
}

/*
 * Resources in the backend's own tiling keep the buffer-image granularity on both sides, so that no
 * linear neighbour shares a granule with them.
 */
static quire_result apply_granularity(qi_object_build *m, bool optimal)
{
    uint64_t granularity = m->memory->device->info.limits.buffer_image_granularity;
    if (!optimal || granularity <= 1)
        return QUIRE_SUCCESS;
    if (m->request.alignment < granularity)
        m->request.alignment = granularity;
    if (qi_align_up_overflows(m->request.held, granularity, &m->request.held))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "an image of %u bytes is asked for",
                            m->needs.size);
    return QUIRE_SUCCESS;
}

static quire_result bind(const qi_object_build *m, uint32_t slot)
{
    const qi_page *page = qi_memory_page(m->memory, slot);
    return m->request.native
               ? qi_device_object_bind(m->memory->device, &m->memory->calls,
                                       m->native_request.object, m->request.native, &page->native,
                                       qi_memory_slot(m->memory, slot)->offset)
               : QUIRE_SUCCESS;
}

/* One attempt: in a page of the object's own, or beside others. */
static quire_result try_place(qi_object_build *m, bool tied, bool optimal, uint32_t *slot)
{
    qi_request *request = &m->request;
    request->tied = tied;
    request->held = m->needs.size;
    if (m->needs.alignment > request->alignment)
        request->alignment = m->needs.alignment;
    quire_result result = apply_granularity(m, optimal && !tied);
    if (!result)
        result = qi_request_check(m->memory, request);
    return result ? result : qi_allocate(m->memory, request, QUIRE_SUCCESS, slot);
}

/* In a page of its own where the backend needs that, or would rather have it and it can be had. */
static quire_result find_place(qi_object_build *m, bool optimal, uint32_t *slot)
{
    bool prefers = m->needs.prefers_dedicated && !m->needs.dedicated &&
                   m->memory->policy.dedicated != QUIRE_DEDICATED_NEVER;
    if (prefers) {
        qi_error before = qi_error_save();
        quire_result result = try_place(m, true, optimal, slot);
        if (!qi_is_out_of_memory(result) && result != QUIRE_ERROR_TOO_MANY_PAGES)
            return result;
        qi_error_restore(&before);
    }
    return try_place(m, m->needs.dedicated, optimal, slot);
}

quire_result qi_object_build_place(qi_object_build *m, bool optimal, uint32_t *slot)
{
    bool zero = m->request.zero;
    m->request.zero = false;
    quire_result result = check_kind(m);
    if (!result)
        result = find_place(m, optimal, slot);
    if (result)
        return result;
    result = bind(m, *slot);
    if (!result && zero) {
        result = qi_access_fill_zero(m->memory, *slot);
        if (result)
            qi_oom_count(m->memory);
    }
    if (result)
        qi_release_unpublished(m->memory, *slot);
    return result;
}

quire_result qi_object_build_finish(qi_object_build *m, quire_result result, uint32_t slot,
                                    quire_allocation *allocation)
{
    if (result) {
        if (m->request.native && !m->request.borrowed)
            qi_device_object_destroy(m->memory->device, &m->memory->calls, m->native_request.object,
                                     m->request.native);
        return result;
    }
    qi_event_slot(m->memory, QUIRE_EVENT_ALLOCATED, slot);
    *allocation = qi_slot_publish(&m->memory->slots, slot, QI_PHASE_LIVE);
    return QUIRE_SUCCESS;
}

quire_result qi_object_build_native(qi_object_build *m)
{
    return qi_device_object_create(m->memory->device, &m->memory->calls, &m->native_request,
                                   &m->request.native, &m->needs);
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

/* ---- from a backend's own description ----------------------------------------------------- */

static quire_result check_object(const quire_memory *memory, const quire_object_options *options)
{
    if (options->object != QUIRE_OBJECT_BUFFER && options->object != QUIRE_OBJECT_IMAGE)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no object %u to be made",
                            (uint64_t)options->object);
    if (!options->description)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an object without a description");
    if (!qi_object_backend_has(memory))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no objects",
                            memory->device->info.backend);
    return options->object == QUIRE_OBJECT_BUFFER
               ? qi_check_buffer_usage(options->info.buffer.usage)
               : QUIRE_SUCCESS;
}

quire_result quire_object_create(quire_memory *memory, const quire_object_options *options,
                                 quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_object_create: memory, options or allocation is null");
    qi_object_build m = {
        .memory = memory,
        .native_request = {.object = options->object,
                           .description = options->description,
                           .borrowed = options->borrowed,
                           .exportable = memory->exportable},
        .request = {.size = 1, /* until the backend has said */
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
        result = qi_request_check(memory, &m.request);
    if (!result)
        result = qi_object_build_native(&m);
    if (result)
        return result;
    bool is_buffer = options->object == QUIRE_OBJECT_BUFFER;
    bool is_sized = is_buffer && options->info.buffer.size;
    m.request.size = is_sized ? options->info.buffer.size : m.needs.size;
    uint32_t slot = 0;
    result = qi_object_build_place(&m, options->optimal, &slot);
    if (!result && is_buffer)
        qi_memory_slot(memory, slot)->usage = (uint8_t)options->info.buffer.usage;
    else if (!result)
        *qi_memory_slot(memory, slot)->meta->image = options->info.image;
    return qi_object_build_finish(&m, result, slot, allocation);
}
