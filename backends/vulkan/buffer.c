/*
 * buffer.c - the create infos of buffers: translates quire's buffer options, adds to the caller's
 * create info what quire's copies need, and checks whether the device supports a buffer.
 */
#include "backends/vulkan/object.h"
#include "backends/vulkan/queues.h"
#include "src/base/result.h"

/* Buffers of quire's options get a device address wherever the feature is enabled. */
static VkBufferUsageFlags usage_of(const qi_vulkan *vulkan, quire_usage usage)
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
VkBufferCreateInfo qi_vulkan_buffer_info(const qi_vulkan *vulkan,
                                         const quire_object_request *request)
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
        info.usage = usage_of(vulkan, request->buffer->usage);
    }
    if (!own || (!request->exportable && own->usage && !find_usage2(&info)))
        info.usage |= QI_VULKAN_TRANSFERS;
    return info;
}

/* Vulkan forbids larger ones, without a promise that the driver refuses them. */
quire_result qi_vulkan_check_buffer(const qi_vulkan *vulkan, const VkBufferCreateInfo *info)
{
    if (info->size <= vulkan->max_buffer_size)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_UNSUPPORTED,
                        "a buffer of %b (%u byte%s): the largest buffer of the device has %b",
                        info->size, info->size, vulkan->max_buffer_size);
}
