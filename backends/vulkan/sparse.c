/*
 * sparse.c - sparse objects: made, placed, asked about, destroyed. See sparse.h.
 */
#include "backends/vulkan/sparse.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* The same bits for buffers and images. */
static const VkFlags SPARSE_FLAGS = VK_BUFFER_CREATE_SPARSE_BINDING_BIT |
                                    VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT |
                                    VK_BUFFER_CREATE_SPARSE_ALIASED_BIT;
_Static_assert(
    (int)VK_BUFFER_CREATE_SPARSE_BINDING_BIT == (int)VK_IMAGE_CREATE_SPARSE_BINDING_BIT &&
        (int)VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT == (int)VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT &&
        (int)VK_BUFFER_CREATE_SPARSE_ALIASED_BIT == (int)VK_IMAGE_CREATE_SPARSE_ALIASED_BIT,
    "one check for both");

enum { MAX_FAMILIES = 32 };

/* ---- what the device can ------------------------------------------------------------------ */

static quire_result refuse(const char *feature)
{
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "a sparse object: the device was made without the feature %s", feature);
}

static quire_result check_samples(const qi_vulkan_enabled *enabled, VkSampleCountFlags samples)
{
    if (samples == VK_SAMPLE_COUNT_1_BIT || enabled->sparse_samples & samples)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "a sparse image: the device was made without the feature "
                        "sparseResidency%uSamples",
                        (uint64_t)samples);
}

static quire_result check_residency(const qi_vulkan *vulkan, const qi_vulkan_description *own)
{
    const qi_vulkan_enabled *enabled = &vulkan->enabled;
    if (own->buffer)
        return enabled->sparse_buffer ? QUIRE_SUCCESS : refuse("sparseResidencyBuffer");
    switch (own->image->imageType) {
    case VK_IMAGE_TYPE_2D:
        return enabled->sparse_image_2d ? check_samples(enabled, own->image->samples)
                                        : refuse("sparseResidencyImage2D");
    case VK_IMAGE_TYPE_3D:
        return enabled->sparse_image_3d ? QUIRE_SUCCESS : refuse("sparseResidencyImage3D");
    default:
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "a sparse image of 1D with residency");
    }
}

quire_result qi_vulkan_check_sparse(const qi_vulkan *vulkan, const qi_vulkan_description *own)
{
    VkFlags flags = (own->buffer ? own->buffer->flags : own->image->flags) & SPARSE_FLAGS;
    if (!flags)
        return QUIRE_SUCCESS;
    if (!(flags & VK_BUFFER_CREATE_SPARSE_BINDING_BIT))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "SPARSE_RESIDENCY or SPARSE_ALIASED without SPARSE_BINDING");
    if (!vulkan->enabled.sparse_binding)
        return refuse("sparseBinding");
    if (flags & VK_BUFFER_CREATE_SPARSE_ALIASED_BIT && !vulkan->enabled.sparse_aliased)
        return refuse("sparseResidencyAliased");
    if (own->buffer && own->buffer->size > vulkan->limits.sparseAddressSpaceSize)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "a sparse buffer of %b: the device has room for %b", own->buffer->size,
                            vulkan->limits.sparseAddressSpaceSize);
    return flags & VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT ? check_residency(vulkan, own)
                                                         : QUIRE_SUCCESS;
}

bool qi_vulkan_is_sparse(VkFlags flags)
{
    return flags & SPARSE_FLAGS;
}

static quire_result check_queue(const qi_vulkan *vulkan)
{
    VkQueueFamilyProperties2 families[MAX_FAMILIES];
    uint32_t count = 0, family = vulkan->queue.family;
    if (!vulkan->queue.queue)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the device was wrapped without a queue, by which sparse objects are bound");
    for (int i = 0; i < MAX_FAMILIES; i++)
        families[i] =
            (VkQueueFamilyProperties2){.sType = VK_STRUCTURE_TYPE_QUEUE_FAMILY_PROPERTIES_2};
    vulkan->f.GetPhysicalDeviceQueueFamilyProperties2(vulkan->physical_device, &count, NULL);
    count = count < MAX_FAMILIES ? count : MAX_FAMILIES;
    vulkan->f.GetPhysicalDeviceQueueFamilyProperties2(vulkan->physical_device, &count, families);
    if (family < count &&
        families[family].queueFamilyProperties.queueFlags & VK_QUEUE_SPARSE_BINDING_BIT)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "the device's queue is of family %u, which cannot bind sparse objects",
                        family);
}

/* ---- made --------------------------------------------------------------------------------- */

void qi_vulkan_sparse_finish(quire_vulkan_sparse *s)
{
    qi_host *host = &s->vulkan->host;
    if (s->late.fence)
        s->vulkan->f.DestroyFence(s->vulkan->device, s->late.fence, s->vulkan->callbacks);
    qi_vulkan_change_end(&s->late);
    if (s->native)
        qi_vulkan_object_end(s->vulkan, s->object, s->native);
    qi_vulkan_parts_free(s, s->parts, s->part_count);
    qi_host_release(host, s->parts, s->part_room, sizeof *s->parts);
    qi_host_release(host, s->offsets, s->offset_room, sizeof *s->offsets);
    qi_host_release_text(host, s->name);
    pthread_mutex_destroy(&s->mutex);
    qi_host_release(host, s, 1, sizeof *s);
}

static void end(quire_attachment *attachment)
{
    quire_vulkan_sparse *s = (quire_vulkan_sparse *)attachment;
    quire_memory_detach(s->memory, attachment);
    if (!qi_vulkan_sparse_settle(s)) {
        qi_vulkan_sparse_finish(s);
        return;
    }
    s->part_count = s->late.count = 0; /* they go with the memory */
    qi_vulkan_late_keep(s);
}

/* Of an object that could not be made, and that the device may still be busy with. */
static void leave(quire_attachment *attachment)
{
    qi_error before = qi_error_save();
    if (!qi_vulkan_sparse_settle((quire_vulkan_sparse *)attachment))
        end(attachment);
    qi_error_restore(&before);
}

static quire_result check_options(const quire_vulkan_object_options *options,
                                  const quire_memory_info *info)
{
    if (options->alignment && !qi_is_power_of_two(options->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "alignment %u is no power of two",
                            options->alignment);
    if (options->name && strlen(options->name) > QUIRE_MAX_NAME)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "a name of more than %u bytes",
                            QUIRE_MAX_NAME);
    if ((options->host_read || options->host_write) && !info->mappable)
        return qi_fail_text(QUIRE_ERROR_NOT_HOST_VISIBLE, "memory '%s' cannot be mapped",
                            info->name);
    return qi_check_unused(options, "quire_vulkan_object_options");
}

/* What the object's parts are asked to be. */
static quire_result set_wish(quire_vulkan_sparse *s, const quire_vulkan_object_options *options)
{
    s->wish = (quire_allocation_options){
        .alignment = options->alignment,
        .user_data = options->user_data,
        .zero = options->zero,
        .dedicated = options->dedicated,
        .host_read = options->host_read,
        .host_write = options->host_write,
    };
    if (!options->name)
        return QUIRE_SUCCESS;
    s->name = qi_host_copy_text(&s->vulkan->host, options->name);
    s->wish.name = s->attachment.name = s->name;
    return s->name ? QUIRE_SUCCESS
                   : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                             "no host memory for the name of a sparse object");
}

static quire_result create_native(quire_vulkan_sparse *s, qi_vulkan_description *own,
                                  quire_requirements *needs)
{
    const quire_object_request request = {.object = s->object, .description = own};
    own->name = s->name;
    return qi_vulkan_object_create(s->vulkan, &request, &s->native, needs);
}

/* Blocks of memory that a neighbour of the other tiling shares nothing with. */
static void set_blocks(quire_vulkan_sparse *s, const qi_vulkan_description *own,
                       const quire_requirements *needs)
{
    bool is_optimal = own->image && own->image->tiling != VK_IMAGE_TILING_LINEAR;
    uint64_t granularity = is_optimal ? s->vulkan->limits.bufferImageGranularity : 1;
    s->block = needs->alignment;
    s->size = needs->size;
    s->granularity = granularity ? granularity : 1;
    if (s->wish.alignment < s->block)
        s->wish.alignment = s->block;
    if (s->wish.alignment < s->granularity)
        s->wish.alignment = s->granularity;
}

/* A table with a place for each block, none of which is bound. */
static quire_result make_blocks(quire_vulkan_sparse *s, const qi_vulkan_description *own)
{
    if (own->image) {
        quire_result result = qi_vulkan_tiles_read(s->vulkan, QI_VULKAN_HANDLE(VkImage, s->native),
                                                   own->image, s->block, &s->tiles);
        if (result)
            return result;
        s->size = qi_vulkan_tiles_count(&s->tiles) * s->block;
    }
    uint64_t count = s->size / s->block + (s->size % s->block != 0);
    if (count < UINT32_MAX)
        s->parts = qi_host_allocate(&s->vulkan->host, count, sizeof *s->parts);
    if (!s->parts)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                            "no host memory for the %u blocks of a sparse object", count);
    s->part_count = s->part_room = (uint32_t)count;
    return QUIRE_SUCCESS;
}

static quire_result make(quire_vulkan_sparse *s, qi_vulkan_description *own,
                         const quire_vulkan_object_options *options, const quire_memory_info *info)
{
    quire_requirements needs = {.size = 0};
    quire_result result = set_wish(s, options);
    if (!result)
        result = create_native(s, own, &needs);
    if (result)
        return result;
    if (!(needs.kind_mask >> info->kind & 1))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' is of kind %u, and the object can lie in kinds 0x%x",
                            info->name, info->kind, needs.kind_mask);
    set_blocks(s, own, &needs);
    return s->is_partial ? make_blocks(s, own) : qi_vulkan_sparse_place_whole(s);
}

static quire_result check_sparse(const qi_vulkan *vulkan, const qi_vulkan_description *own)
{
    if (!qi_vulkan_is_sparse(own->buffer ? own->buffer->flags : own->image->flags))
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a sparse object is created without the flag SPARSE_BINDING");
    if (own->buffer && !own->buffer->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a buffer of size 0 is asked for");
    quire_result result = qi_vulkan_check_sparse(vulkan, own);
    return result ? result : check_queue(vulkan);
}

static quire_result create(quire_memory *memory, qi_vulkan_description own,
                           const quire_vulkan_object_options *options, quire_vulkan_sparse **sparse)
{
    const quire_vulkan_object_options asked = options ? *options : (quire_vulkan_object_options){0};
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_memory(memory, &info, &vulkan);
    if (!result)
        result = check_options(&asked, &info);
    if (!result)
        result = check_sparse(vulkan, &own);
    if (result)
        return result;
    quire_vulkan_sparse *s = qi_host_allocate(&vulkan->host, 1, sizeof *s);
    if (!s)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a sparse object");
    VkFlags flags = own.buffer ? own.buffer->flags : own.image->flags;
    s->attachment.end = end;
    s->late.sparse = s;
    s->vulkan = vulkan;
    s->memory = memory;
    s->object = own.buffer ? QUIRE_OBJECT_BUFFER : QUIRE_OBJECT_IMAGE;
    s->is_partial = flags & VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT;
    pthread_mutex_init(&s->mutex, NULL);
    result = make(s, &own, &asked, &info);
    if (result) {
        qi_error said = qi_error_save();
        s->attachment.leave = leave;
        if (s->late.fence)
            quire_memory_attach(memory, &s->attachment);
        else
            qi_vulkan_sparse_finish(s);
        qi_error_restore(&said);
        return result;
    }
    quire_memory_attach(memory, &s->attachment);
    *sparse = s;
    return QUIRE_SUCCESS;
}

/* ---- public calls ------------------------------------------------------------------------- */

quire_result quire_vulkan_sparse_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                                               const quire_vulkan_object_options *options,
                                               quire_vulkan_sparse **sparse)
{
    if (sparse)
        *sparse = NULL;
    if (!memory || !info || !sparse)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_sparse_buffer_create: memory, info or sparse is null");
    return create(memory, (qi_vulkan_description){.buffer = info}, options, sparse);
}

quire_result quire_vulkan_sparse_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                                              const quire_vulkan_object_options *options,
                                              quire_vulkan_sparse **sparse)
{
    if (sparse)
        *sparse = NULL;
    if (!memory || !info || !sparse)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_sparse_image_create: memory, info or sparse is null");
    return create(memory, (qi_vulkan_description){.image = info}, options, sparse);
}

/* What is mapped cannot be freed, and nothing changes where it cannot. */
static quire_result check_maps(const quire_vulkan_sparse *s)
{
    for (uint32_t i = 0; i < s->part_count; i++) {
        uint32_t maps = 0;
        if (s->parts[i].id && !quire_allocation_get_map_count(s->memory, s->parts[i], &maps) &&
            maps)
            return qi_fail_text(QUIRE_ERROR_BUSY, "part %u of the sparse object '%s' is mapped", i,
                                s->name ? s->name : "(unnamed)");
    }
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_sparse_destroy(quire_vulkan_sparse **sparse)
{
    if (!sparse)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_vulkan_sparse_destroy: sparse is null");
    quire_vulkan_sparse *ending = *sparse;
    if (!ending)
        return QUIRE_SUCCESS;
    quire_result result = qi_vulkan_sparse_settle(ending);
    if (!result)
        result = check_maps(ending);
    if (result)
        return result;
    *sparse = NULL;
    end(&ending->attachment);
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_sparse_get_info(quire_vulkan_sparse *sparse,
                                          quire_vulkan_sparse_info *info)
{
    if (info)
        *info = (quire_vulkan_sparse_info){.size = 0};
    if (!sparse || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_sparse_get_info: sparse or info is null");
    quire_result result = qi_vulkan_check_process(sparse->vulkan);
    if (result)
        return result;
    bool is_buffer = sparse->object == QUIRE_OBJECT_BUFFER;
    pthread_mutex_lock(&sparse->mutex);
    *info = (quire_vulkan_sparse_info){
        .memory = sparse->memory,
        .buffer = QI_VULKAN_HANDLE(VkBuffer, is_buffer ? sparse->native : 0),
        .image = QI_VULKAN_HANDLE(VkImage, is_buffer ? 0 : sparse->native),
        .residency = sparse->is_partial,
        .size = sparse->size,
        .block = sparse->block,
        .bound = sparse->bound,
        .part_count = sparse->part_count,
        .aspect_count = sparse->tiles.count,
    };
    for (uint32_t i = 0; i < sparse->tiles.count; i++) {
        const qi_vulkan_aspect *aspect = &sparse->tiles.aspects[i];
        info->aspects[i] = (quire_vulkan_aspect){aspect->aspect, aspect->tile, aspect->levels};
    }
    pthread_mutex_unlock(&sparse->mutex);
    return QUIRE_SUCCESS;
}
