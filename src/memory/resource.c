/*
 * resource.c - buffers and images: what the backend asks for them, the native object where it has
 * any, and the place they are bound to.
 *
 * One order for both, with one way back: requirements (and object) - place - bind - commit. Every
 * step that fails undoes those before it.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/memory/access.h"
#include "src/memory/event.h"
#include "src/memory/place.h"
#include "src/memory/refusal.h"

static const quire_usage BUFFER_USAGES = QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET |
                                         QUIRE_USAGE_STORAGE | QUIRE_USAGE_UNIFORM |
                                         QUIRE_USAGE_VERTEX | QUIRE_USAGE_INDEX;
static const quire_usage IMAGE_USAGES = QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET |
                                        QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED;

enum { MOST_CHANNELS = 4 };

/* ---- the common way ----------------------------------------------------------------------- */

/* What is being made, step by step. */
typedef struct making {
    quire_memory *memory;
    quire_object_request request;
    quire_requirements needs;
    qi_wish wish; /* with the native object, once there is one */
} making;

static bool has_objects(const quire_memory *memory)
{
    return qi_device_offers(memory->device, QUIRE_BACKEND_OBJECTS);
}

static quire_result check_kind(const making *m)
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
static quire_result apply_granularity(making *m, bool optimal)
{
    uint64_t granularity = m->memory->device->info.limits.buffer_image_granularity;
    if (!optimal || granularity <= 1)
        return QUIRE_SUCCESS;
    if (m->wish.alignment < granularity)
        m->wish.alignment = granularity;
    if (qi_align_up_overflows(m->wish.held, granularity, &m->wish.held))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "an image of %u bytes is asked for",
                            m->needs.size);
    return QUIRE_SUCCESS;
}

static quire_result bind(const making *m, uint32_t slot)
{
    const qi_page *page = qi_memory_page(m->memory, slot);
    return m->wish.native ? qi_device_object_bind(m->memory->device, &m->memory->calls,
                                                  m->request.object, m->wish.native, &page->native,
                                                  qi_memory_slot(m->memory, slot)->offset)
                          : QUIRE_SUCCESS;
}

/* One attempt: in a page of the object's own, or beside others. */
static quire_result try_place(making *m, bool tied, bool optimal, uint32_t *slot)
{
    qi_wish *wish = &m->wish;
    wish->tied = tied;
    wish->held = m->needs.size;
    if (m->needs.alignment > wish->alignment)
        wish->alignment = m->needs.alignment;
    quire_result result = apply_granularity(m, optimal && !tied);
    if (!result)
        result = qi_wish_check(m->memory, wish);
    return result ? result : qi_place(m->memory, wish, QUIRE_SUCCESS, slot);
}

/* In a page of its own where the backend needs that, or would rather have it and it can be had. */
static quire_result find_place(making *m, bool optimal, uint32_t *slot)
{
    bool prefers = m->needs.prefers_dedicated && !m->needs.dedicated;
    if (prefers) {
        qi_error before = qi_error_save();
        quire_result result = try_place(m, true, optimal, slot);
        if (!qi_is_want_of_memory(result) && result != QUIRE_ERROR_TOO_MANY_PAGES)
            return result;
        qi_error_restore(&before);
    }
    return try_place(m, m->needs.dedicated, optimal, slot);
}

/*
 * Places and binds; the slot stays PRIVATE so that the caller can complete its record. Zeros come
 * last: a page that is tied to the object can be filled only through it.
 */
static quire_result place_and_bind(making *m, bool optimal, uint32_t *slot)
{
    bool zero = m->wish.zero;
    m->wish.zero = false;
    quire_result result = check_kind(m);
    if (!result)
        result = find_place(m, optimal, slot);
    if (result)
        return result;
    result = bind(m, *slot);
    if (!result && zero) {
        result = qi_access_fill_zero(m->memory, *slot);
        if (result)
            qi_refusal_count(m->memory);
    }
    if (result)
        qi_place_undo(m->memory, *slot);
    return result;
}

/* Ends a making: hands the allocation out, or destroys the object that found no place. */
static quire_result finish(making *m, quire_result result, uint32_t slot,
                           quire_allocation *allocation)
{
    if (result) {
        if (m->wish.native && !m->wish.borrowed)
            qi_device_object_destroy(m->memory->device, &m->memory->calls, m->request.object,
                                     m->wish.native);
        return result;
    }
    qi_event_slot(m->memory, QUIRE_EVENT_ALLOCATED, slot);
    *allocation = qi_slot_hand_out(&m->memory->slots, slot, QI_PHASE_LIVE);
    return QUIRE_SUCCESS;
}

static quire_result create_object(making *m)
{
    return qi_device_object_create(m->memory->device, &m->memory->calls, &m->request,
                                   &m->wish.native, &m->needs);
}

/* ---- buffers ------------------------------------------------------------------------------ */

static quire_result check_buffer(const quire_buffer_options *options)
{
    quire_result result = qi_check_reserved(options, "quire_buffer_options");
    if (result)
        return result;
    if (!options->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a buffer of size 0 is asked for");
    if (options->usage & ~BUFFER_USAGES)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "usage %x is not of buffers",
                            options->usage & ~BUFFER_USAGES);
    return QUIRE_SUCCESS;
}

static quire_buffer_options resolve_buffer(const quire_buffer_options *options)
{
    quire_buffer_options out = *options;
    if (!out.usage)
        out.usage = QUIRE_USAGE_STORAGE | QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET;
    if (!out.alignment)
        out.alignment = 1;
    return out;
}

static quire_result buffer_needs(making *m)
{
    if (has_objects(m->memory))
        return create_object(m);
    m->needs = (quire_requirements){
        .size = m->request.buffer->size,
        .alignment = m->memory->device->info.limits.buffer_alignment,
        .kind_mask = UINT32_MAX,
    };
    return QUIRE_SUCCESS;
}

/* What quire_buffer_get_info is to tell, of a slot that is not handed out yet. */
static void keep_buffer(quire_memory *memory, uint32_t slot, uint64_t size, quire_usage usage)
{
    qi_extra *extra = qi_memory_slot(memory, slot)->extra;
    extra->info.buffer.size = size;
    extra->info.buffer.usage = usage;
}

quire_result quire_buffer_create(quire_memory *memory, const quire_buffer_options *asked,
                                 quire_buffer *buffer)
{
    if (buffer)
        *buffer = (quire_buffer){0};
    if (!memory || !asked || !buffer)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_buffer_create: memory, options or buffer is null");
    quire_buffer_options options = resolve_buffer(asked);
    making m = {
        .memory = memory,
        .request = {.object = QUIRE_OBJECT_BUFFER,
                    .buffer = &options,
                    .exportable = memory->exportable},
        .wish = {.size = options.size,
                 .alignment = options.alignment,
                 .name = options.name,
                 .user_data = options.user_data,
                 .zero = options.zero,
                 .dedicated = options.dedicated,
                 .host_access = options.host_read || options.host_write,
                 .object = QUIRE_OBJECT_BUFFER},
    };
    quire_result result = check_buffer(&options);
    if (!result)
        result = qi_wish_check(memory, &m.wish);
    if (!result)
        result = buffer_needs(&m);
    if (result)
        return result;
    uint32_t slot = 0;
    result = place_and_bind(&m, false, &slot);
    if (!result)
        keep_buffer(memory, slot, options.size, options.usage);
    return finish(&m, result, slot, &buffer->allocation);
}

/* ---- images ------------------------------------------------------------------------------- */

uint32_t quire_channel_size(quire_channel_type type)
{
    switch (type) {
    case QUIRE_UINT8:
    case QUIRE_INT8:
        return 1;
    case QUIRE_UINT16:
    case QUIRE_INT16:
    case QUIRE_FLOAT16:
        return 2;
    case QUIRE_UINT32:
    case QUIRE_INT32:
    case QUIRE_FLOAT32:
        return 4;
    case QUIRE_UINT64:
    case QUIRE_INT64:
    case QUIRE_FLOAT64:
        return 8;
    }
    return 0;
}

static quire_image_options resolve_image(const quire_image_options *options)
{
    quire_image_options out = *options;
    out.height += !out.height;
    out.depth += !out.depth;
    out.channel_count += !out.channel_count;
    if (!out.usage)
        out.usage = QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED | QUIRE_USAGE_TRANSFER_SOURCE |
                    QUIRE_USAGE_TRANSFER_TARGET;
    return out;
}

static bool texels_overflow(const quire_image_options *o, uint64_t *bytes)
{
    return qi_multiply_overflows(o->width, o->height, bytes) ||
           qi_multiply_overflows(*bytes, o->depth, bytes) ||
           qi_multiply_overflows(*bytes, o->channel_count * quire_channel_size(o->channel_type),
                                 bytes);
}

/* For resolved options; *minimum gets the bytes of the texels alone. */
static quire_result check_image(const quire_image_options *options, uint64_t *minimum)
{
    quire_result result = qi_check_reserved(options, "quire_image_options");
    if (result)
        return result;
    if (!options->width)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an image of width 0 is asked for");
    if (options->channel_count > MOST_CHANNELS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "an image of %u channels: %u at most",
                            options->channel_count, MOST_CHANNELS);
    if (!quire_channel_size(options->channel_type))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no channel type %u",
                            (uint64_t)options->channel_type);
    if (options->tiling != QUIRE_TILING_OPTIMAL && options->tiling != QUIRE_TILING_LINEAR)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no tiling %u",
                            (uint64_t)options->tiling);
    if (options->usage & ~IMAGE_USAGES)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "usage %x is not of images",
                            options->usage & ~IMAGE_USAGES);
    if (texels_overflow(options, minimum))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "an image of %u x %u x %u texels: its bytes cannot be counted",
                            options->width, options->height, options->depth);
    return QUIRE_SUCCESS;
}

static quire_image_info describe_image(const quire_image_options *o,
                                       const quire_requirements *needs, uint64_t minimum)
{
    return (quire_image_info){
        .width = o->width,
        .height = o->height,
        .depth = o->depth,
        .channel_count = o->channel_count,
        .channel_type = o->channel_type,
        .tiling = o->tiling,
        .usage = o->usage,
        .dimensions = o->depth > 1    ? 3
                      : o->height > 1 ? 2
                                      : 1,
        .minimum_size = minimum,
        .row_pitch = needs->row_pitch,
        .slice_pitch = needs->slice_pitch,
    };
}

quire_result quire_image_get_requirements(quire_device *device, const quire_image_options *options,
                                          quire_requirements *requirements)
{
    if (requirements)
        *requirements = (quire_requirements){0};
    if (!device || !options || !requirements)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_image_get_requirements: device, options or requirements is null");
    quire_image_options resolved = resolve_image(options);
    uint64_t minimum = 0;
    quire_result result = check_image(&resolved, &minimum);
    if (!result)
        result = qi_device_image_requirements(device, NULL, &resolved, requirements);
    if (result)
        *requirements = (quire_requirements){0};
    return result;
}

static quire_result image_needs(making *m)
{
    if (has_objects(m->memory) && qi_device_offers(m->memory->device, QUIRE_BACKEND_IMAGES))
        return create_object(m);
    return qi_device_image_requirements(m->memory->device, &m->memory->calls, m->request.image,
                                        &m->needs);
}

quire_result quire_image_create(quire_memory *memory, const quire_image_options *asked,
                                quire_image *image)
{
    if (image)
        *image = (quire_image){0};
    if (!memory || !asked || !image)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_image_create: memory, options or image is null");
    quire_image_options options = resolve_image(asked);
    uint64_t minimum = 0;
    quire_result result = check_image(&options, &minimum);
    making m = {
        .memory = memory,
        .request = {.object = QUIRE_OBJECT_IMAGE,
                    .image = &options,
                    .exportable = memory->exportable},
        .wish = {.size = minimum,
                 .alignment = 1,
                 .name = options.name,
                 .user_data = options.user_data,
                 .zero = options.zero,
                 .dedicated = options.dedicated,
                 .host_access = options.host_read || options.host_write,
                 .object = QUIRE_OBJECT_IMAGE},
    };
    if (!result)
        result = qi_wish_check(memory, &m.wish);
    if (!result)
        result = image_needs(&m);
    if (result)
        return result;
    m.wish.size = m.needs.size; /* the rows' padding can be read and written too */
    uint32_t slot = 0;
    result = place_and_bind(&m, options.tiling == QUIRE_TILING_OPTIMAL, &slot);
    if (!result)
        qi_memory_slot(memory, slot)->extra->info.image =
            describe_image(&options, &m.needs, minimum);
    return finish(&m, result, slot, &image->allocation);
}

/* ---- from a backend's own description ----------------------------------------------------- */

static quire_result check_object(const quire_memory *memory, const quire_object_options *options)
{
    if (options->object != QUIRE_OBJECT_BUFFER && options->object != QUIRE_OBJECT_IMAGE)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no object %u to be made",
                            (uint64_t)options->object);
    if (!options->description)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "an object without a description");
    if (!has_objects(memory))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED, "backend %s has no objects",
                            memory->device->info.backend);
    return QUIRE_SUCCESS;
}

quire_result quire_object_create(quire_memory *memory, const quire_object_options *options,
                                 quire_allocation *allocation)
{
    if (allocation)
        *allocation = (quire_allocation){0};
    if (!memory || !options || !allocation)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_object_create: memory, options or allocation is null");
    making m = {
        .memory = memory,
        .request = {.object = options->object,
                    .description = options->description,
                    .borrowed = options->borrowed,
                    .exportable = memory->exportable},
        .wish = {.size = 1, /* until the backend has said */
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
        result = qi_wish_check(memory, &m.wish);
    if (!result)
        result = create_object(&m);
    if (result)
        return result;
    bool is_buffer = options->object == QUIRE_OBJECT_BUFFER;
    bool is_sized = is_buffer && options->info.buffer.size;
    m.wish.size = is_sized ? options->info.buffer.size : m.needs.size;
    uint32_t slot = 0;
    result = place_and_bind(&m, options->optimal, &slot);
    if (!result && is_buffer)
        keep_buffer(memory, slot, options->info.buffer.size, options->info.buffer.usage);
    else if (!result)
        qi_memory_slot(memory, slot)->extra->info.image = options->info.image;
    return finish(&m, result, slot, allocation);
}

/* ---- asking ------------------------------------------------------------------------------- */

static const char *object_name(quire_object object)
{
    return object == QUIRE_OBJECT_BUFFER  ? "a buffer"
           : object == QUIRE_OBJECT_IMAGE ? "an image"
                                          : "a raw range";
}

/* Pins an allocation that must be an object of the given sort; its extra part does not change. */
static quire_result pin_object(quire_memory *memory, quire_allocation allocation,
                               quire_object object, uint32_t *slot)
{
    quire_result result = qi_slot_pin(&memory->slots, allocation, QI_ACCEPT_LIVE, slot);
    if (result)
        return result;
    quire_allocation_info info;
    qi_allocation_describe(memory, *slot, &info);
    if (info.object == object)
        return QUIRE_SUCCESS;
    qi_slot_unpin(&memory->slots, *slot);
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT, "the handle is of %s, not of %s",
                        object_name(info.object), object_name(object));
}

quire_result quire_buffer_get_info(quire_memory *memory, quire_buffer buffer,
                                   quire_buffer_info *info)
{
    if (info)
        *info = (quire_buffer_info){0};
    if (!memory || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_buffer_get_info: memory or info is null");
    uint32_t slot = 0;
    quire_result result = pin_object(memory, buffer.allocation, QUIRE_OBJECT_BUFFER, &slot);
    if (result)
        return result;
    const qi_extra *extra = qi_memory_slot(memory, slot)->extra;
    info->size = extra->info.buffer.size;
    info->usage = extra->info.buffer.usage;
    qi_allocation_describe(memory, slot, &info->place);
    qi_slot_unpin(&memory->slots, slot);
    return QUIRE_SUCCESS;
}

quire_result quire_image_get_info(quire_memory *memory, quire_image image, quire_image_info *info)
{
    if (info)
        *info = (quire_image_info){0};
    if (!memory || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_image_get_info: memory or info is null");
    uint32_t slot = 0;
    quire_result result = pin_object(memory, image.allocation, QUIRE_OBJECT_IMAGE, &slot);
    if (result)
        return result;
    *info = qi_memory_slot(memory, slot)->extra->info.image;
    qi_allocation_describe(memory, slot, &info->place);
    qi_slot_unpin(&memory->slots, slot);
    return QUIRE_SUCCESS;
}
