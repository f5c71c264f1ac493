/*
 * image_limits.c - a table of the limits of images: see image_limits.h.
 *
 * A kind of image has one possible entry. The first kind that needs an entry keeps it; for another
 * one the driver is asked each time. A full entry is never written again.
 */
#include "backends/vulkan/image_limits.h"

#include <string.h>

#include "src/base/result.h"

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

VkResult qi_vulkan_image_limits_get(const qi_vulkan *vulkan, const VkImageCreateInfo *info,
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
