/*
 * object.c - buffers and images: creation, memory requirements, binding.
 *
 * Creating an object takes three Vulkan calls: create, requirements, bind.
 */
#include "backends/vulkan/object.h"

#include "backends/vulkan/result.h"

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

/*
 * Queries the row and slice pitch, which only linear images have. Programs use linear images to
 * access the bytes, which quire does through the buffer over the page. No such buffer can cover a
 * page that is dedicated to an image, so a linear image is dedicated only if the driver requires
 * it.
 */
static void query_pitches(const qi_vulkan *vulkan, VkImage image, quire_requirements *out)
{
    const VkImageSubresource first = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT};
    VkSubresourceLayout layout;
    vulkan->f.GetImageSubresourceLayout(vulkan->device, image, &first, &layout);
    out->prefers_dedicated = false;
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
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, info, vulkan->callbacks, buffer);
    if (code)
        return qi_vulkan_fail(code, "vkCreateBuffer of %llu bytes", (unsigned long long)info->size);
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

/* Buffers of quire's options get a device address wherever the feature is enabled. */
static VkBufferUsageFlags usage_of(const qi_vulkan *vulkan, quire_usage usage)
{
    static const struct {
        quire_usage ours;
        VkBufferUsageFlags theirs;
    } table[] = {
        {QUIRE_USAGE_TRANSFER_SOURCE, VK_BUFFER_USAGE_TRANSFER_SRC_BIT},
        {QUIRE_USAGE_TRANSFER_TARGET, VK_BUFFER_USAGE_TRANSFER_DST_BIT},
        {QUIRE_USAGE_STORAGE, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT},
        {QUIRE_USAGE_UNIFORM, VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT},
        {QUIRE_USAGE_VERTEX, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT},
        {QUIRE_USAGE_INDEX, VK_BUFFER_USAGE_INDEX_BUFFER_BIT},
    };
    VkBufferUsageFlags flags =
        vulkan->enabled.device_address ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (usage & table[i].ours)
            flags |= table[i].theirs;
    return flags;
}

/* Uses the caller's object or create info if there is one, otherwise quire's options. */
static quire_result make_buffer(const qi_vulkan *vulkan, const quire_object_request *request,
                                uint64_t *native, quire_requirements *out)
{
    const qi_vulkan_description *own = request->description;
    VkBuffer buffer = VK_NULL_HANDLE;
    quire_result result;
    if (own && own->existing) {
        buffer = QI_VULKAN_HANDLE(VkBuffer, own->existing);
        result = QUIRE_SUCCESS;
    } else if (own) {
        result = create_buffer(vulkan, own->buffer, own->name, &buffer);
    } else {
        const VkExternalMemoryBufferCreateInfo external = {
            .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
            .handleTypes = vulkan->settings.export_types,
        };
        const VkBufferCreateInfo info = {
            .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
            .pNext = request->exportable ? &external : NULL,
            .size = request->buffer->size,
            .usage = usage_of(vulkan, request->buffer->usage),
            .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
        };
        result = create_buffer(vulkan, &info, request->buffer->name, &buffer);
    }
    if (result)
        return result;
    query_created_buffer(vulkan, buffer, out);
    *native = QI_VULKAN_NUMBER(buffer);
    return QUIRE_SUCCESS;
}

/* Like make_buffer. An object in an exportable page must declare the handle types of the page. */
static quire_result make_image(const qi_vulkan *vulkan, const quire_object_request *request,
                               uint64_t *native, quire_requirements *out)
{
    const qi_vulkan_description *own = request->description;
    VkImage image = VK_NULL_HANDLE;
    quire_result result;
    if (own && own->existing) {
        image = QI_VULKAN_HANDLE(VkImage, own->existing);
        result = QUIRE_SUCCESS;
    } else if (own) {
        result = create_image(vulkan, own->image, own->name, &image);
    } else {
        const VkExternalMemoryImageCreateInfo external = {
            .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO,
            .handleTypes = vulkan->settings.export_types,
        };
        VkImageCreateInfo info = qi_vulkan_image_info(request->image);
        info.pNext = request->exportable ? &external : NULL;
        result = create_image(vulkan, &info, request->image->name, &image);
    }
    if (result)
        return result;
    query_created_image(vulkan, image, out);
    if (!own && request->image->tiling == QUIRE_TILING_LINEAR)
        query_pitches(vulkan, image, out);
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
        query_pitches(vulkan, image, out);
    vulkan->f.DestroyImage(vulkan->device, image, vulkan->callbacks);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_image_requirements(void *state, const quire_image_options *options,
                                          quire_requirements *requirements)
{
    const VkImageCreateInfo info = qi_vulkan_image_info(options);
    return qi_vulkan_query_image(state, &info, requirements);
}
