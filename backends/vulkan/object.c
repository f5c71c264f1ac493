/*
 * object.c - buffers and images: creation, memory requirements, binding.
 *
 * Creating an object takes three Vulkan calls: create, requirements, bind.
 */
#include "backends/vulkan/object.h"

#include "backends/vulkan/functions.h"
#include "src/base/result.h"

void qi_vulkan_set_name(const qi_vulkan *vulkan, VkObjectType type, uint64_t native,
                        const char *name)
{
    if (!vulkan->enabled.debug_utils || !name)
        return;
    const VkDebugUtilsObjectNameInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = type,
        .objectHandle = native,
        .pObjectName = name,
    };
    vulkan->f.SetDebugUtilsObjectNameEXT(vulkan->device, &info); /* a failure loses only the name */
}

/* ---- requirements ---------------------------------------------------------------------------- */

/* Memory requirements with the struct that is chained to them. */
typedef struct vulkan_requirements {
    VkMemoryDedicatedRequirements dedicated;
    VkMemoryRequirements2 requirements;
} vulkan_requirements;

static void prepare(vulkan_requirements *r)
{
    /* lavapipe 22.3 does not write this struct for an object that does not exist yet. */
    r->dedicated =
        (VkMemoryDedicatedRequirements){.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    r->requirements.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
    r->requirements.pNext = &r->dedicated;
}

/* Copies the requirements into quire's struct. */
static void translate(const vulkan_requirements *r, quire_requirements *out)
{
    out->size = r->requirements.memoryRequirements.size;
    out->alignment = r->requirements.memoryRequirements.alignment;
    out->kind_mask = r->requirements.memoryRequirements.memoryTypeBits;
    out->dedicated = r->dedicated.requiresDedicatedAllocation;
    out->prefers_dedicated = r->dedicated.prefersDedicatedAllocation;
}

static void query_created_buffer(const qi_vulkan *vulkan, VkBuffer buffer, quire_requirements *out)
{
    const VkBufferMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = buffer};
    vulkan_requirements r;
    prepare(&r);
    vulkan->f.GetBufferMemoryRequirements2(vulkan->device, &info, &r.requirements);
    translate(&r, out);
}

static void query_created_image(const qi_vulkan *vulkan, VkImage image, quire_requirements *out)
{
    const VkImageMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = image};
    vulkan_requirements r;
    prepare(&r);
    vulkan->f.GetImageMemoryRequirements2(vulkan->device, &info, &r.requirements);
    translate(&r, out);
}

void qi_vulkan_query_object(const qi_vulkan *vulkan, quire_object object, uint64_t native,
                            quire_requirements *out)
{
    if (object == QUIRE_OBJECT_BUFFER)
        query_created_buffer(vulkan, QI_VULKAN_HANDLE(VkBuffer, native), out);
    else
        query_created_image(vulkan, QI_VULKAN_HANDLE(VkImage, native), out);
}

/* Whether images of the format have the color aspect alone. The formats of extensions, some of
   which have planes instead, count as unknown. */
static bool is_plain_color(VkFormat format)
{
    const int first_of_extensions = 1000000000;
    return format < VK_FORMAT_D16_UNORM ||
           (format > VK_FORMAT_D32_SFLOAT_S8_UINT && (int)format < first_of_extensions);
}

/*
 * Queries the row and slice pitch, which only linear images have. Programs use linear images to
 * access the bytes, which quire does through the buffer over the page. No such buffer can cover a
 * page that is dedicated to an image, so a linear image is dedicated only if the driver requires
 * it.
 */
static void query_pitches(const qi_vulkan *vulkan, VkImage image, VkFormat format,
                          quire_requirements *out)
{
    const VkImageSubresource first = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT};
    VkSubresourceLayout layout;
    out->prefers_dedicated = false;
    if (!is_plain_color(format))
        return;
    vulkan->f.GetImageSubresourceLayout(vulkan->device, image, &first, &layout);
    /* quire_requirements has no field for the offset of the first row. All known drivers put that
       row at offset 0. For any other offset the pitches stay 0, which means unknown. */
    if (layout.offset)
        return;
    out->row_pitch = layout.rowPitch;
    out->slice_pitch = layout.depthPitch;
}

/* ---- creation -------------------------------------------------------------------------------- */

/* Create native objects and name them. */
static quire_result create_buffer(const qi_vulkan *vulkan, const VkBufferCreateInfo *info,
                                  const char *name, VkBuffer *buffer)
{
    quire_result result = qi_vulkan_check_buffer(vulkan, info);
    if (result)
        return result;
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, info, vulkan->callbacks, buffer);
    if (code)
        return qi_vulkan_fail(code, "vkCreateBuffer of %llu byte%s", (unsigned long long)info->size,
                              qi_plural(info->size));
    qi_vulkan_set_name(vulkan, VK_OBJECT_TYPE_BUFFER, QI_VULKAN_NUMBER(*buffer), name);
    return QUIRE_SUCCESS;
}

/* Checks the image first, because Vulkan forbids to create an image that the device does not
   support. */
static quire_result create_image(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                                 const char *name, VkImage *image)
{
    quire_result result = qi_vulkan_check_image(vulkan, info);
    if (result)
        return result;
    VkResult code = vulkan->f.CreateImage(vulkan->device, info, vulkan->callbacks, image);
    if (code)
        return qi_vulkan_fail(code, "vkCreateImage of %u x %u x %u texels", info->extent.width,
                              info->extent.height, info->extent.depth);
    qi_vulkan_set_name(vulkan, VK_OBJECT_TYPE_IMAGE, QI_VULKAN_NUMBER(*image), name);
    return QUIRE_SUCCESS;
}

/* The handle types of the page that an object will be in. */
static qi_vulkan_types types_of(const qi_vulkan *vulkan, const quire_object_request *request)
{
    const qi_vulkan_description *own = request->description;
    if (request->exportable)
        return qi_vulkan_export_types(vulkan);
    return own ? own->types : (qi_vulkan_types){.types = 0};
}

/* Creates the buffer, unless it is the caller's. */
static quire_result provide_buffer(const qi_vulkan *vulkan, const quire_object_request *request,
                                   VkBufferUsageFlags *usage, VkBuffer *buffer)
{
    const qi_vulkan_description *own = request->description;
    const qi_vulkan_types types = types_of(vulkan, request);
    qi_vulkan_declaration declaration;
    if (own && own->existing) {
        *buffer = QI_VULKAN_HANDLE(VkBuffer, own->existing);
        *usage = own->buffer ? qi_vulkan_usage_of(own->buffer) : 0;
        return qi_vulkan_check_existing(types.types, own->buffer ? own->buffer->pNext : NULL);
    }
    VkBufferCreateInfo info = qi_vulkan_buffer_info(vulkan, request);
    *usage = qi_vulkan_usage_of(&info);
    quire_result result = qi_vulkan_declare_buffer(vulkan, types, &info, &declaration);
    return result ? result
                  : create_buffer(vulkan, &info, own ? own->name : request->buffer->name, buffer);
}

/*
 * Uses the caller's object or create info if there is one, otherwise quire's options. A buffer that
 * copies cannot use, or whose usage is unknown, gets a dedicated page only if the driver requires
 * it: in a shared page copies use a buffer of quire's own.
 */
static quire_result make_buffer(const qi_vulkan *vulkan, const quire_object_request *request,
                                uint64_t *native, quire_requirements *out)
{
    const qi_vulkan_description *own = request->description;
    VkBuffer buffer = VK_NULL_HANDLE;
    VkBufferUsageFlags usage = 0;
    quire_result result = provide_buffer(vulkan, request, &usage, &buffer);
    if (result)
        return result;
    query_created_buffer(vulkan, buffer, out);
    if (QI_VULKAN_TRANSFERS & ~usage)
        out->prefers_dedicated = false;
    if (own && own->usage)
        *own->usage = usage;
    *native = QI_VULKAN_NUMBER(buffer);
    return QUIRE_SUCCESS;
}

/* Creates the image, unless it is the caller's. */
static quire_result provide_image(const qi_vulkan *vulkan, const quire_object_request *request,
                                  VkImage *image)
{
    const qi_vulkan_description *own = request->description;
    const qi_vulkan_types types = types_of(vulkan, request);
    qi_vulkan_declaration declaration;
    if (own && own->existing) {
        *image = QI_VULKAN_HANDLE(VkImage, own->existing);
        return qi_vulkan_check_existing(types.types, own->image ? own->image->pNext : NULL);
    }
    VkImageCreateInfo info = own ? *own->image : qi_vulkan_image_info(request->image);
    quire_result result = qi_vulkan_declare_image(vulkan, types, &info, &declaration);
    return result ? result
                  : create_image(vulkan, &info, own ? own->name : request->image->name, image);
}

/* Like make_buffer. Copies reach a linear image through the buffer over a shared page. */
static quire_result make_image(const qi_vulkan *vulkan, const quire_object_request *request,
                               uint64_t *native, quire_requirements *out)
{
    const qi_vulkan_description *own = request->description;
    VkImage image = VK_NULL_HANDLE;
    quire_result result = provide_image(vulkan, request, &image);
    if (result)
        return result;
    query_created_image(vulkan, image, out);
    if (!own && request->image->tiling == QUIRE_TILING_LINEAR)
        query_pitches(
            vulkan, image,
            quire_vulkan_format(request->image->channel_type, request->image->channel_count), out);
    if (own && own->is_linear)
        out->prefers_dedicated = false;
    *native = QI_VULKAN_NUMBER(image);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_object_create(void *state, const quire_object_request *request,
                                     uint64_t *native, quire_requirements *requirements)
{
    return request->object == QUIRE_OBJECT_BUFFER
               ? make_buffer(state, request, native, requirements)
               : make_image(state, request, native, requirements);
}

/* ---- binding and destruction ----------------------------------------------------------------- */

quire_result qi_vulkan_object_bind(void *state, quire_object object, uint64_t native,
                                   const quire_native_page *page, uint64_t offset)
{
    const qi_vulkan *vulkan = state;
    VkDeviceMemory memory = QI_VULKAN_HANDLE(VkDeviceMemory, page->handle);
    if (object == QUIRE_OBJECT_BUFFER) {
        VkResult code = vulkan->f.BindBufferMemory(
            vulkan->device, QI_VULKAN_HANDLE(VkBuffer, native), memory, offset);
        return code ? qi_vulkan_fail(code, "vkBindBufferMemory") : QUIRE_SUCCESS;
    }
    VkResult code = vulkan->f.BindImageMemory(vulkan->device, QI_VULKAN_HANDLE(VkImage, native),
                                              memory, offset);
    return code ? qi_vulkan_fail(code, "vkBindImageMemory") : QUIRE_SUCCESS;
}

void qi_vulkan_object_destroy_now(const qi_vulkan *vulkan, quire_object object, uint64_t native)
{
    if (object == QUIRE_OBJECT_BUFFER)
        vulkan->f.DestroyBuffer(vulkan->device, QI_VULKAN_HANDLE(VkBuffer, native),
                                vulkan->callbacks);
    else
        vulkan->f.DestroyImage(vulkan->device, QI_VULKAN_HANDLE(VkImage, native),
                               vulkan->callbacks);
}

/* ---- requirements of an object that is not kept ---------------------------------------------- */

/* Without maintenance4 Vulkan reports requirements only for an object that exists. */
quire_result qi_vulkan_query_buffer(const qi_vulkan *vulkan, const VkBufferCreateInfo *info,
                                    quire_requirements *out)
{
    if (vulkan->enabled.maintenance4) {
        quire_result result = qi_vulkan_check_buffer(vulkan, info);
        if (result)
            return result;
        const VkDeviceBufferMemoryRequirements query = {
            .sType = VK_STRUCTURE_TYPE_DEVICE_BUFFER_MEMORY_REQUIREMENTS, .pCreateInfo = info};
        vulkan_requirements r;
        prepare(&r);
        vulkan->f.GetDeviceBufferMemoryRequirements(vulkan->device, &query, &r.requirements);
        translate(&r, out);
        return QUIRE_SUCCESS;
    }
    VkBuffer buffer = VK_NULL_HANDLE;
    quire_result result = create_buffer(vulkan, info, NULL, &buffer);
    if (result)
        return result;
    query_created_buffer(vulkan, buffer, out);
    vulkan->f.DestroyBuffer(vulkan->device, buffer, vulkan->callbacks);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_query_image(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                                   quire_requirements *out)
{
    bool is_linear = info->tiling == VK_IMAGE_TILING_LINEAR;
    /* maintenance4 has no query for the pitches of a linear image. */
    if (vulkan->enabled.maintenance4 && !is_linear) {
        quire_result result = qi_vulkan_check_image(vulkan, info);
        if (result)
            return result;
        const VkDeviceImageMemoryRequirements query = {
            .sType = VK_STRUCTURE_TYPE_DEVICE_IMAGE_MEMORY_REQUIREMENTS, .pCreateInfo = info};
        vulkan_requirements r;
        prepare(&r);
        vulkan->f.GetDeviceImageMemoryRequirements(vulkan->device, &query, &r.requirements);
        translate(&r, out);
        return QUIRE_SUCCESS;
    }
    VkImage image = VK_NULL_HANDLE;
    quire_result result = create_image(vulkan, info, NULL, &image);
    if (result)
        return result;
    query_created_image(vulkan, image, out);
    if (is_linear)
        query_pitches(vulkan, image, info->format, out);
    vulkan->f.DestroyImage(vulkan->device, image, vulkan->callbacks);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_image_requirements(void *state, const quire_image_options *options,
                                          quire_requirements *requirements)
{
    const VkImageCreateInfo info = qi_vulkan_image_info(options);
    return qi_vulkan_query_image(state, &info, requirements);
}
