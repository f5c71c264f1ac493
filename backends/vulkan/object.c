/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * object.c - buffers and images: quire's options become a create info, and from there on are
 * treated as the caller's create infos are. The object is checked, created, queried for its
 * requirements and bound. A table keeps the limits of kinds of images, so that the driver is asked
 * once for most.
 */
#include "backends/vulkan/object.h"

#include <string.h>

#include "backends/vulkan/functions.h"
#include "backends/vulkan/queues.h"
#include "src/base/result.h"

/* ---- sparse flags ------------------------------------------------------------------------- */

/* The flags have the same values for buffers and images. */
static const VkFlags SPARSE_FLAGS = VK_BUFFER_CREATE_SPARSE_BINDING_BIT |
                                    VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT |
                                    VK_BUFFER_CREATE_SPARSE_ALIASED_BIT;
_Static_assert(
    (int)VK_BUFFER_CREATE_SPARSE_BINDING_BIT == (int)VK_IMAGE_CREATE_SPARSE_BINDING_BIT &&
        (int)VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT == (int)VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT &&
        (int)VK_BUFFER_CREATE_SPARSE_ALIASED_BIT == (int)VK_IMAGE_CREATE_SPARSE_ALIASED_BIT,
    "buffers and images share the checks");

bool qi_vulkan_is_sparse(VkFlags flags)
{
    return flags & SPARSE_FLAGS;
}

static quire_result refuse(const char *feature)
{
    return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                        "a sparse object: the device was created without the feature %s", feature);
}

/* Each sample count above 1 has a feature of its own. */
static quire_result check_samples(const qi_vulkan_enabled *enabled, VkSampleCountFlags samples)
{
    if (samples == VK_SAMPLE_COUNT_1_BIT || enabled->sparse_samples & samples)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "a sparse image: the device was created without the feature "
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
        return qi_fail(QUIRE_ERROR_UNSUPPORTED, "Vulkan has no residency for 1D images");
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
                            "a sparse buffer of %b: sparseAddressSpaceSize is %b",
                            own->buffer->size, vulkan->limits.sparseAddressSpaceSize);
    return flags & VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT ? check_residency(vulkan, own)
                                                         : QUIRE_SUCCESS;
}

/* ---- buffers ------------------------------------------------------------------------------ */

/* Buffers of quire's options get a device address if the feature is enabled. */
static VkBufferUsageFlags buffer_usage(const qi_vulkan *vulkan, quire_usage usage)
{
    VkBufferUsageFlags flags =
        vulkan->enabled.device_address ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0;
    flags |= usage & QUIRE_USAGE_TRANSFER_SOURCE ? VK_BUFFER_USAGE_TRANSFER_SRC_BIT : 0;
    flags |= usage & QUIRE_USAGE_TRANSFER_TARGET ? VK_BUFFER_USAGE_TRANSFER_DST_BIT : 0;
    flags |= usage & QUIRE_USAGE_STORAGE ? VK_BUFFER_USAGE_STORAGE_BUFFER_BIT : 0;
    flags |= usage & QUIRE_USAGE_UNIFORM ? VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT : 0;
    flags |= usage & QUIRE_USAGE_VERTEX ? VK_BUFFER_USAGE_VERTEX_BUFFER_BIT : 0;
    flags |= usage & QUIRE_USAGE_INDEX ? VK_BUFFER_USAGE_INDEX_BUFFER_BIT : 0;
    return flags;
}

/* VkBufferUsageFlags2CreateInfo of Vulkan 1.4, which older headers lack. */
typedef struct usage2 {
    VkStructureType sType;
    const void *pNext;
    uint64_t usage;
} usage2;

#define USAGE2 ((VkStructureType)1000470006)

static const usage2 *find_usage2(const VkBufferCreateInfo *info)
{
    const VkBaseInStructure *link = info->pNext;
    while (link && link->sType != USAGE2)
        link = link->pNext;
    return (const usage2 *)(const void *)link;
}

VkBufferUsageFlags qi_vulkan_usage_of(const VkBufferCreateInfo *info)
{
    const usage2 *wide = find_usage2(info);
    return wide ? (VkBufferUsageFlags)wide->usage : info->usage;
}

/*
 * Returns the create info of a buffer of quire's options or of the caller's description. quire's
 * copies on a dedicated page go through this buffer, so that it gets the transfer usages. Two
 * create infos stay as they are: one with the usage in its chain, and one in exportable memory,
 * because the importer of the buffer repeats it.
 */
static VkBufferCreateInfo buffer_info(const qi_vulkan *vulkan, const quire_object_request *request)
{
    const qi_vulkan_description *own = request->description;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    };
    if (own)
        info = *own->buffer;
    else {
        qi_vulkan_share(vulkan, &info);
        info.size = request->buffer->size;
        info.usage = buffer_usage(vulkan, request->buffer->usage);
    }
    if (!own || (!request->exportable && own->usage && !find_usage2(&info)))
        info.usage |= QI_VULKAN_TRANSFERS;
    return info;
}

/* UNSUPPORTED for a buffer that is larger than Vulkan allows, without a promise that the driver
   refuses it. */
static quire_result check_buffer(const qi_vulkan *vulkan, const VkBufferCreateInfo *info)
{
    if (info->size <= vulkan->max_buffer_size)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "a buffer of %b (%u byte%s): the largest buffer of the device has %b",
                        info->size, info->size, vulkan->max_buffer_size);
}

/* ---- limits of images --------------------------------------------------------------------- */

/*
 * The limits by format, type, tiling, usage and flags are constant for a physical device. Programs
 * create many images of few kinds: the driver is asked once for each kind. A kind of image has one
 * possible entry in the table. The first kind that needs an entry keeps it; for another one the
 * driver is asked each time. A full entry is never written again.
 */

enum { LOG_ENTRIES = 6, ENTRIES = 1 << LOG_ENTRIES };

typedef enum phase { EMPTY = 0, FILLING, FULL } phase;

/* What the limits depend on. No padding: the keys are compared as bytes. */
typedef struct image_key {
    uint32_t format, type, tiling, usage, flags;
} image_key;

/* The thread that changes the phase to FILLING owns the other members until it is FULL. */
typedef struct entry {
    qi_atomic_u32 phase;
    image_key key;
    VkImageFormatProperties limits;
} entry;

struct qi_vulkan_image_limits {
    entry entries[ENTRIES];
};

quire_result qi_vulkan_image_limits_init(qi_vulkan *vulkan)
{
    vulkan->image_limits = qi_host_allocate(&vulkan->host, 1, sizeof *vulkan->image_limits);
    return vulkan->image_limits
               ? QUIRE_SUCCESS
               : qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a Vulkan device");
}

void qi_vulkan_image_limits_finish(qi_vulkan *vulkan)
{
    qi_host_release(&vulkan->host, vulkan->image_limits, 1, sizeof *vulkan->image_limits);
    vulkan->image_limits = NULL;
}

static VkResult query(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                      VkImageFormatProperties *limits)
{
    const VkPhysicalDeviceImageFormatInfo2 asked = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
        .format = info->format,
        .type = info->imageType,
        .tiling = info->tiling,
        .usage = info->usage,
        .flags = info->flags,
    };
    VkImageFormatProperties2 answer = {.sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2};
    VkResult code =
        vulkan->f.GetPhysicalDeviceImageFormatProperties2(vulkan->physical_device, &asked, &answer);
    *limits = answer.imageFormatProperties;
    return code;
}

/* Multiplies each member by an odd number, so that images that differ in one member differ in the
   upper bits. */
static entry *entry_of(const qi_vulkan *vulkan, const image_key *key)
{
    uint32_t hash = key->format * UINT32_C(0x9e3779b1) ^ key->usage * UINT32_C(0x85ebca6b) ^
                    key->flags * UINT32_C(0xc2b2ae35) ^
                    (key->type * 4 + key->tiling) * UINT32_C(0x27d4eb2f);
    return &vulkan->image_limits->entries[hash >> (32 - LOG_ENTRIES)];
}

/* Writes the limits of images with these properties. Fails with the code of the driver. */
static VkResult get_limits(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
                           VkImageFormatProperties *limits)
{
    const image_key key = {(uint32_t)info->format, (uint32_t)info->imageType,
                           (uint32_t)info->tiling, info->usage, info->flags};
    entry *e = entry_of(vulkan, &key);
    if (qi_atomic_load_acquire_u32(&e->phase) == FULL && !memcmp(&e->key, &key, sizeof key)) {
        *limits = e->limits;
        return VK_SUCCESS;
    }
    VkResult code = query(vulkan, info, limits);
    if (!code && qi_atomic_take_u32(&e->phase, EMPTY, FILLING)) {
        e->key = key;
        e->limits = *limits;
        qi_atomic_store_release_u32(&e->phase, FULL);
    }
    return code;
}

/* ---- images ------------------------------------------------------------------------------- */

/* The formats of a channel type with one to four channels. The table has the order of
   quire_channel_type. */
#define FORMATS(bits, suffix)                                                                      \
    {                                                                                              \
        VK_FORMAT_R##bits##suffix, VK_FORMAT_R##bits##G##bits##suffix,                             \
            VK_FORMAT_R##bits##G##bits##B##bits##suffix,                                           \
            VK_FORMAT_R##bits##G##bits##B##bits##A##bits##suffix                                   \
    }

enum { MAX_CHANNELS = 4 };

static const VkFormat FORMAT_TABLE[][MAX_CHANNELS] = {
    FORMATS(8, _UINT),    FORMATS(8, _SINT),  FORMATS(16, _UINT),   FORMATS(16, _SINT),
    FORMATS(16, _SFLOAT), FORMATS(32, _UINT), FORMATS(32, _SINT),   FORMATS(32, _SFLOAT),
    FORMATS(64, _UINT),   FORMATS(64, _SINT), FORMATS(64, _SFLOAT),
};

/* Returns VK_FORMAT_UNDEFINED for an unknown type or channel count. */
VkFormat quire_vulkan_format(quire_channel_type type, uint32_t channel_count)
{
    bool is_known = (size_t)type < sizeof FORMAT_TABLE / sizeof *FORMAT_TABLE && channel_count &&
                    channel_count <= MAX_CHANNELS;
    return is_known ? FORMAT_TABLE[type][channel_count - 1] : VK_FORMAT_UNDEFINED;
}

static VkImageUsageFlags image_usage(quire_usage usage)
{
    static const struct {
        quire_usage ours;
        VkImageUsageFlags theirs;
    } table[] = {
        {QUIRE_USAGE_TRANSFER_SOURCE, VK_IMAGE_USAGE_TRANSFER_SRC_BIT},
        {QUIRE_USAGE_TRANSFER_TARGET, VK_IMAGE_USAGE_TRANSFER_DST_BIT},
        {QUIRE_USAGE_STORAGE, VK_IMAGE_USAGE_STORAGE_BIT},
        {QUIRE_USAGE_SAMPLED, VK_IMAGE_USAGE_SAMPLED_BIT},
    };
    VkImageUsageFlags flags = 0;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (usage & table[i].ours)
            flags |= table[i].theirs;
    return flags;
}

/* Translates quire's image options: its own images have one mip level, one layer, one sample. */
static VkImageCreateInfo image_info(const quire_image_options *options)
{
    return (VkImageCreateInfo){
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = options->depth > 1    ? VK_IMAGE_TYPE_3D
                     : options->height > 1 ? VK_IMAGE_TYPE_2D
                                           : VK_IMAGE_TYPE_1D,
        .format = quire_vulkan_format(options->channel_type, options->channel_count),
        .extent = {options->width, options->height, options->depth},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = options->tiling == QUIRE_TILING_LINEAR ? VK_IMAGE_TILING_LINEAR
                                                         : VK_IMAGE_TILING_OPTIMAL,
        .usage = image_usage(options->usage),
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
        .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
    };
}

/* Whether an image respects the limits. */
static bool is_within(const VkImageCreateInfo *info, const VkImageFormatProperties *limits)
{
    return info->extent.width <= limits->maxExtent.width &&
           info->extent.height <= limits->maxExtent.height &&
           info->extent.depth <= limits->maxExtent.depth &&
           info->mipLevels <= limits->maxMipLevels && info->arrayLayers <= limits->maxArrayLayers &&
           info->samples & limits->sampleCounts;
}

/* Checks what the query for limits does not cover. */
static quire_result check_flags(const qi_vulkan *vulkan, const VkImageCreateInfo *info)
{
    if (!info->extent.width || !info->extent.height || !info->extent.depth)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "an image of %u x %u x %u texels",
                            info->extent.width, info->extent.height, info->extent.depth);
    if (info->flags & VK_IMAGE_CREATE_DISJOINT_BIT)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "a disjoint image: bind its planes to raw ranges yourself");
    return qi_vulkan_check_sparse(vulkan, &(qi_vulkan_description){.image = info});
}

/* UNSUPPORTED if the device does not support such an image. */
static quire_result check_image(const qi_vulkan *vulkan, const VkImageCreateInfo *info)
{
    quire_result result = check_flags(vulkan, info);
    /* For DRM format modifiers and external formats the query needs pNext structs that only the
       caller knows. */
    if (result || info->format == VK_FORMAT_UNDEFINED ||
        info->tiling == VK_IMAGE_TILING_DRM_FORMAT_MODIFIER_EXT)
        return result;
    VkImageFormatProperties limits;
    VkResult code = get_limits(vulkan, info, &limits);
    if (code)
        return qi_vulkan_fail(
            code, "an image of format %d, %s tiling, usage 0x%x", (int)info->format,
            info->tiling == VK_IMAGE_TILING_LINEAR ? "linear" : "optimal", info->usage);
    if (!is_within(info, &limits))
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "an image of %u x %u x %u texels, %u level%s, %u layer%s: the "
                            "device offers %u x %u x %u, %u, %u",
                            info->extent.width, info->extent.height, info->extent.depth,
                            info->mipLevels, qi_plural(info->mipLevels), info->arrayLayers,
                            qi_plural(info->arrayLayers), limits.maxExtent.width,
                            limits.maxExtent.height, limits.maxExtent.depth, limits.maxMipLevels,
                            limits.maxArrayLayers);
    return QUIRE_SUCCESS;
}

/* ---- names -------------------------------------------------------------------------------- */

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

/* ---- requirements ------------------------------------------------------------------------- */

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

/* ---- creation ----------------------------------------------------------------------------- */

/* Create native objects and name them. */
static quire_result create_buffer(const qi_vulkan *vulkan, const VkBufferCreateInfo *info,
                                  const char *name, VkBuffer *buffer)
{
    quire_result result = check_buffer(vulkan, info);
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
    quire_result result = check_image(vulkan, info);
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
    VkBufferCreateInfo info = buffer_info(vulkan, request);
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
    VkImageCreateInfo info = own ? *own->image : image_info(request->image);
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

/* ---- binding and destruction -------------------------------------------------------------- */

quire_result qi_vulkan_object_bind(void *state, quire_object object, uint64_t native,
                                   const quire_native_page *page, uint64_t offset)
{
    const qi_vulkan *vulkan = state;
    if (qi_vulkan_page_of(page)->elastic)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "a %s cannot lie in an elastic page, whose chunks are a "
                                  "VkDeviceMemory each: allocate a range and use the buffer of "
                                  "quire_vulkan_page_buffer, or request a dedicated page",
                                  object == QUIRE_OBJECT_BUFFER ? "VkBuffer" : "VkImage");
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

/* ---- requirements of an object that is not kept ------------------------------------------- */

/* Without maintenance4 Vulkan reports requirements only for an object that exists. */
quire_result qi_vulkan_query_buffer(const qi_vulkan *vulkan, const VkBufferCreateInfo *info,
                                    quire_requirements *out)
{
    if (vulkan->enabled.maintenance4) {
        quire_result result = check_buffer(vulkan, info);
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
        quire_result result = check_image(vulkan, info);
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
    const VkImageCreateInfo info = image_info(options);
    return qi_vulkan_query_image(state, &info, requirements);
}
