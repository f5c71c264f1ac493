/*
 * object.c - buffers and images: made, asked what they need, bound, destroyed.
 *
 * Making one costs three calls of Vulkan: create, requirements, bind.
 */
#include "backends/vulkan/vulkan.h"
#include "src/base/result.h"

void qi_vulkan_name(const qi_vulkan *vulkan, VkObjectType type, uint64_t native, const char *name)
{
    if (!vulkan->enabled.debug_utils || !name)
        return;
    const VkDebugUtilsObjectNameInfoEXT info = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
        .objectType = type,
        .objectHandle = native,
        .pObjectName = name,
    };
    vulkan->f.SetDebugUtilsObjectNameEXT(vulkan->device, &info); /* without a name it works, too */
}

/* ---- what an object needs ----------------------------------------------------------------- */

/* Vulkan's answer with what is chained to it. */
typedef struct answer {
    VkMemoryDedicatedRequirements dedicated;
    VkMemoryRequirements2 needs;
} answer;

static void prepare(answer *a)
{
    /* some drivers (lavapipe 22.3) leave it as it is where no object exists yet */
    a->dedicated =
        (VkMemoryDedicatedRequirements){.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    a->needs.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2;
    a->needs.pNext = &a->dedicated;
}

static void translate(const answer *a, quire_requirements *out)
{
    out->size = a->needs.memoryRequirements.size;
    out->alignment = a->needs.memoryRequirements.alignment;
    out->kind_mask = a->needs.memoryRequirements.memoryTypeBits;
    out->dedicated = a->dedicated.requiresDedicatedAllocation;
    out->prefers_dedicated = a->dedicated.prefersDedicatedAllocation;
}

static void ask_buffer(const qi_vulkan *vulkan, VkBuffer buffer, quire_requirements *out)
{
    const VkBufferMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = buffer};
    answer a;
    prepare(&a);
    vulkan->f.GetBufferMemoryRequirements2(vulkan->device, &info, &a.needs);
    translate(&a, out);
}

static void ask_image(const qi_vulkan *vulkan, VkImage image, quire_requirements *out)
{
    const VkImageMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = image};
    answer a;
    prepare(&a);
    vulkan->f.GetImageMemoryRequirements2(vulkan->device, &info, &a.needs);
    translate(&a, out);
}

/*
 * What only linear images have. They are there to be reached by their bytes, which goes through a
 * buffer over the page, and in a page of its own an image is alone: that is for a driver that
 * requires it.
 */
static void ask_pitches(const qi_vulkan *vulkan, VkImage image, quire_requirements *out)
{
    const VkImageSubresource first = {.aspectMask = VK_IMAGE_ASPECT_COLOR_BIT};
    VkSubresourceLayout layout;
    vulkan->f.GetImageSubresourceLayout(vulkan->device, image, &first, &layout);
    out->prefers_dedicated = false;
    if (layout.offset) /* rows are told from the first byte on, where every driver known has them */
        return;
    out->row_pitch = layout.rowPitch;
    out->slice_pitch = layout.depthPitch;
}

/* ---- making ------------------------------------------------------------------------------- */

static quire_result create_buffer(const qi_vulkan *vulkan, const VkBufferCreateInfo *info,
                                  const char *name, VkBuffer *buffer)
{
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, info, vulkan->callbacks, buffer);
    if (code)
        return qi_vulkan_fail(code, "vkCreateBuffer of %llu bytes", (unsigned long long)info->size);
    qi_vulkan_name(vulkan, VK_OBJECT_TYPE_BUFFER, QI_VULKAN_NUMBER(*buffer), name);
    return QUIRE_SUCCESS;
}

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
    qi_vulkan_name(vulkan, VK_OBJECT_TYPE_IMAGE, QI_VULKAN_NUMBER(*image), name);
    return QUIRE_SUCCESS;
}

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
    ask_buffer(vulkan, buffer, out);
    *native = QI_VULKAN_NUMBER(buffer);
    return QUIRE_SUCCESS;
}

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
    ask_image(vulkan, image, out);
    if (!own && request->image->tiling == QUIRE_TILING_LINEAR)
        ask_pitches(vulkan, image, out);
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

void qi_vulkan_object_destroy(void *state, quire_object object, uint64_t native)
{
    qi_vulkan_late_destroy(state, object, native);
}

void qi_vulkan_object_end(const qi_vulkan *vulkan, quire_object object, uint64_t native)
{
    if (object == QUIRE_OBJECT_BUFFER)
        vulkan->f.DestroyBuffer(vulkan->device, QI_VULKAN_HANDLE(VkBuffer, native),
                                vulkan->callbacks);
    else
        vulkan->f.DestroyImage(vulkan->device, QI_VULKAN_HANDLE(VkImage, native),
                               vulkan->callbacks);
}

/* ---- asking without keeping --------------------------------------------------------------- */

static quire_result check_buffer_info(const VkBufferCreateInfo *info)
{
    if (!info->size)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "a buffer of size 0 is asked for");
    return QUIRE_SUCCESS;
}

/* A handle stands for one range; sparse objects have parts. */
static quire_result refuse_sparse(VkFlags flags)
{
    return qi_vulkan_is_sparse(flags)
               ? qi_fail(QUIRE_ERROR_UNSUPPORTED,
                         "a sparse object has parts: see quire_vulkan_sparse_buffer_create and "
                         "quire_vulkan_sparse_image_create")
               : QUIRE_SUCCESS;
}

quire_result qi_vulkan_buffer_needs(const qi_vulkan *vulkan, const VkBufferCreateInfo *info,
                                    quire_requirements *out)
{
    if (vulkan->enabled.maintenance4) {
        const VkDeviceBufferMemoryRequirements asked = {
            .sType = VK_STRUCTURE_TYPE_DEVICE_BUFFER_MEMORY_REQUIREMENTS, .pCreateInfo = info};
        answer a;
        prepare(&a);
        vulkan->f.GetDeviceBufferMemoryRequirements(vulkan->device, &asked, &a.needs);
        translate(&a, out);
        return QUIRE_SUCCESS;
    }
    VkBuffer buffer = VK_NULL_HANDLE;
    quire_result result = create_buffer(vulkan, info, NULL, &buffer);
    if (result)
        return result;
    ask_buffer(vulkan, buffer, out);
    vulkan->f.DestroyBuffer(vulkan->device, buffer, vulkan->callbacks);
    return QUIRE_SUCCESS;
}

static quire_result image_needs(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                                quire_requirements *out)
{
    bool is_linear = info->tiling == VK_IMAGE_TILING_LINEAR;
    if (vulkan->enabled.maintenance4 && !is_linear) { /* which has no pitches to tell */
        quire_result result = qi_vulkan_check_image(vulkan, info);
        if (result)
            return result;
        const VkDeviceImageMemoryRequirements asked = {
            .sType = VK_STRUCTURE_TYPE_DEVICE_IMAGE_MEMORY_REQUIREMENTS, .pCreateInfo = info};
        answer a;
        prepare(&a);
        vulkan->f.GetDeviceImageMemoryRequirements(vulkan->device, &asked, &a.needs);
        translate(&a, out);
        return QUIRE_SUCCESS;
    }
    VkImage image = VK_NULL_HANDLE;
    quire_result result = create_image(vulkan, info, NULL, &image);
    if (result)
        return result;
    ask_image(vulkan, image, out);
    if (is_linear)
        ask_pitches(vulkan, image, out);
    vulkan->f.DestroyImage(vulkan->device, image, vulkan->callbacks);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_image_needs(void *state, const quire_image_options *options,
                                   quire_requirements *requirements)
{
    const VkImageCreateInfo info = qi_vulkan_image_info(options);
    return image_needs(state, &info, requirements);
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
    return result ? result : qi_vulkan_buffer_needs(vulkan, info, requirements);
}

quire_result quire_vulkan_image_requirements(quire_device *device, const VkImageCreateInfo *info,
                                             quire_requirements *requirements)
{
    if (!info || !requirements)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_vulkan_image_requirements: info or requirements is null");
    *requirements = (quire_requirements){0};
    const qi_vulkan *vulkan = qi_vulkan_of(device);
    return vulkan ? image_needs(vulkan, info, requirements) : quire_last_result();
}

/* ---- from the caller's own description ---------------------------------------------------- */

/* What the public calls below have in common. */
static quire_result create(quire_memory *memory, const qi_vulkan_description *description,
                           const quire_vulkan_object_options *options, quire_object_options *object,
                           quire_allocation *allocation)
{
    const quire_vulkan_object_options asked = options ? *options : (quire_vulkan_object_options){0};
    qi_vulkan_description own = *description;
    quire_memory_info info;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_check_unused(&asked, "quire_vulkan_object_options");
    if (!result)
        result = qi_vulkan_of_memory(memory, &info, &vulkan);
    if (result)
        return result;
    own.name = asked.name;
    object->description = &own;
    object->borrowed = own.existing != 0;
    object->alignment = asked.alignment;
    object->name = asked.name;
    object->user_data = asked.user_data;
    object->zero = asked.zero;
    object->dedicated = asked.dedicated;
    object->host_read = asked.host_read;
    object->host_write = asked.host_write;
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
