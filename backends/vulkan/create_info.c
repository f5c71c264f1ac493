/*
 * create_info.c - public functions on objects that the caller describes with Vulkan's create infos,
 * or created itself: requirements, creation, placement.
 *
 * The core allocates: it passes the description back to qi_vulkan_object_create, places the object
 * by the requirements that this function returns, and binds it.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/object.h"
#include "src/base/result.h"

/* ---- requirements ---------------------------------------------------------------------------- */

/* Vulkan forbids buffers of size 0. */
static quire_result check_buffer_info(const VkBufferCreateInfo *info)
{
    if (!info->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "the size of the buffer is 0");
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_buffer_requirements(quire_device *device, const VkBufferCreateInfo *info,
                                              quire_requirements *requirements)
{
    if (!info || !requirements)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_buffer_requirements: info or requirements is null");
    *requirements = (quire_requirements){0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    if (!vulkan)
        return quire_last_result();
    quire_result result = check_buffer_info(info);
    if (!result)
        result = qi_vulkan_check_sparse(vulkan, &(qi_vulkan_description){.buffer = info});
    return result ? result : qi_vulkan_query_buffer(vulkan, info, requirements);
}

quire_result quire_vulkan_image_requirements(quire_device *device, const VkImageCreateInfo *info,
                                             quire_requirements *requirements)
{
    if (!info || !requirements)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_image_requirements: info or requirements is null");
    *requirements = (quire_requirements){0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    return vulkan ? qi_vulkan_query_image(vulkan, info, requirements) : quire_last_result();
}

/* ---- creation and placement ------------------------------------------------------------------ */

/* An allocation is one range; a sparse object has several parts. */
static quire_result refuse_sparse(VkFlags flags)
{
    return qi_vulkan_is_sparse(flags)
               ? qi_fail(QUIRE_ERROR_UNSUPPORTED,
                         "a sparse object has parts: see quire_vulkan_sparse_buffer_create and "
                         "quire_vulkan_sparse_image_create")
               : QUIRE_SUCCESS;
}

/* Creates an object for the public functions below. `object` contains what the options lack. */
static quire_result create(quire_memory *memory, const qi_vulkan_description *description,
                           const quire_vulkan_object_options *options, quire_object_options *object,
                           quire_allocation *allocation)
{
    const quire_vulkan_object_options given = options ? *options : (quire_vulkan_object_options){0};
    qi_vulkan_description own = *description;
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_check_unused(&given, "quire_vulkan_object_options");
    if (!result)
        result = qi_vulkan_of_memory(memory, &info, &vulkan);
    if (result)
        return result;
    own.name = given.name;
    object->description = &own;
    object->borrowed = own.existing != 0;
    object->alignment = given.alignment;
    object->name = given.name;
    object->user_data = given.user_data;
    object->zero = given.zero;
    object->dedicated = given.dedicated;
    object->host_read = given.host_read;
    object->host_write = given.host_write;
    return quire_object_create(memory, object, allocation);
}

static quire_result refuse_null(const char *call)
{
    return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                        "%s: memory, description, object or output is null", call);
}

quire_result quire_vulkan_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                                        const quire_vulkan_object_options *options,
                                        quire_buffer *buffer)
{
    if (buffer)
        *buffer = (quire_buffer){0};
    if (!memory || !info || !buffer)
        return refuse_null("quire_vulkan_buffer_create");
    quire_result result = check_buffer_info(info);
    if (!result)
        result = refuse_sparse(info->flags);
    if (result)
        return result;
    quire_object_options object = {.object = QUIRE_OBJECT_BUFFER,
                                   .info = {.buffer = {.size = info->size}}};
    return create(memory, &(qi_vulkan_description){.buffer = info}, options, &object,
                  &buffer->allocation);
}

/* Describes an image of the caller's for quire_image_get_info. The channels stay unknown. */
static quire_image_info info_of(const VkImageCreateInfo *info)
{
    return (quire_image_info){
        .width = info->extent.width,
        .height = info->extent.height,
        .depth = info->extent.depth,
        .tiling =
            info->tiling == VK_IMAGE_TILING_LINEAR ? QUIRE_TILING_LINEAR : QUIRE_TILING_OPTIMAL,
        .dimensions = (uint32_t)info->imageType + 1,
        .native_format = (uint32_t)info->format,
    };
}

quire_result quire_vulkan_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                                       const quire_vulkan_object_options *options,
                                       quire_image *image)
{
    if (image)
        *image = (quire_image){0};
    if (!memory || !info || !image)
        return refuse_null("quire_vulkan_image_create");
    quire_result result = refuse_sparse(info->flags);
    if (result)
        return result;
    quire_object_options object = {
        .object = QUIRE_OBJECT_IMAGE,
        .optimal = info->tiling != VK_IMAGE_TILING_LINEAR,
        .info = {.image = info_of(info)},
    };
    return create(memory, &(qi_vulkan_description){.image = info}, options, &object,
                  &image->allocation);
}

/* A placed object belongs to the caller: quire binds it and does not destroy it. */
quire_result quire_vulkan_buffer_place(quire_memory *memory, VkBuffer native,
                                       const quire_vulkan_object_options *options,
                                       quire_buffer *buffer)
{
    if (buffer)
        *buffer = (quire_buffer){0};
    if (!memory || !native || !buffer)
        return refuse_null("quire_vulkan_buffer_place");
    quire_object_options object = {.object = QUIRE_OBJECT_BUFFER};
    return create(memory, &(qi_vulkan_description){.existing = QI_VULKAN_NUMBER(native)}, options,
                  &object, &buffer->allocation);
}

quire_result quire_vulkan_image_place(quire_memory *memory, VkImage native, bool optimal,
                                      const quire_vulkan_object_options *options,
                                      quire_image *image)
{
    if (image)
        *image = (quire_image){0};
    if (!memory || !native || !image)
        return refuse_null("quire_vulkan_image_place");
    quire_object_options object = {.object = QUIRE_OBJECT_IMAGE, .optimal = optimal};
    return create(memory, &(qi_vulkan_description){.existing = QI_VULKAN_NUMBER(native)}, options,
                  &object, &image->allocation);
}
