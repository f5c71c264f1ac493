/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_scenarios.c - the allocator and the objects of the scenarios, and those that find a memory
 * type: see vma_scenarios.h.
 */
#include "tests/support/vma_scenarios.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/vma_functions.h"

/* ---- the allocator --------------------------------------------------------------------------- */

VmaAllocator OF_SUBJECT(vma_open)(const vma_scene *scene, const VkDeviceSize *limits)
{
    const VmaVulkanFunctions functions =
        vma_functions_of(scene->instance, scene->get, scene->device, scene->get_of_device);
    const VmaAllocatorCreateInfo info = {
        .flags = scene->flags,
        .physicalDevice = scene->physical,
        .device = scene->device,
        .pHeapSizeLimit = limits,
        .pVulkanFunctions = &functions,
        .instance = scene->instance,
        .vulkanApiVersion = scene->api_version,
    };
    VmaAllocator allocator = NULL;
    VkResult result = vmaCreateAllocator(&info, &allocator);
    if (result) {
        fprintf(stderr, "vmaCreateAllocator: %d\n", result);
        abort();
    }
    return allocator;
}

/* ---- objects --------------------------------------------------------------------------------- */

const object OBJECTS[] = {
    {"upload", VK_BUFFER_USAGE_TRANSFER_SRC_BIT, BUFFER},
    {"readback", VK_BUFFER_USAGE_TRANSFER_DST_BIT, BUFFER},
    {"uniform", VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT, BUFFER},
    {"storage", VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT, BUFFER},
    {"texture", VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
     VK_IMAGE_TILING_OPTIMAL},
    {"target", VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT, VK_IMAGE_TILING_OPTIMAL},
    {"transient", VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSIENT_ATTACHMENT_BIT,
     VK_IMAGE_TILING_OPTIMAL},
    {"copied linear", VK_IMAGE_USAGE_TRANSFER_SRC_BIT, VK_IMAGE_TILING_LINEAR},
    {"sampled linear", VK_IMAGE_USAGE_SAMPLED_BIT, VK_IMAGE_TILING_LINEAR},
};
const uint32_t OBJECT_COUNT = COUNT_OF(OBJECTS);

VkBufferCreateInfo OF_SUBJECT(vma_buffer_info)(const object *of, VkDeviceSize size)
{
    return (VkBufferCreateInfo){
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size, .usage = of->usage};
}

VkImageCreateInfo OF_SUBJECT(vma_image_info)(const object *of, uint32_t width)
{
    return (VkImageCreateInfo){.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                               .imageType = VK_IMAGE_TYPE_2D,
                               .format = VK_FORMAT_R8G8B8A8_UNORM,
                               .extent = {.width = width, .height = 64, .depth = 1},
                               .mipLevels = 1,
                               .arrayLayers = 1,
                               .samples = VK_SAMPLE_COUNT_1_BIT,
                               .tiling = of->tiling,
                               .usage = of->usage};
}

/* ---- memory types ---------------------------------------------------------------------------- */

/* What the options may require and prefer. */
static const VkMemoryPropertyFlags FLAGS[][2] = {
    {0, 0},
    {0, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
    {0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
    {VK_MEMORY_PROPERTY_HOST_COHERENT_BIT, 0},
    {VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
    {VK_MEMORY_PROPERTY_HOST_CACHED_BIT, VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD},
    {VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, 0},
    {0, VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD},
};

/* A search accepts each of them, whatever the usage. */
static const VmaAllocationCreateFlags HOST_ACCESS[] = {
    0, WRITE, RANDOM, WRITE | INSTEAD, RANDOM | INSTEAD, WRITE | RANDOM, MAPPED,
};

static void find_plain(VmaAllocator allocator, VmaAllocationCreateInfo *options, vma_notes *notes)
{
    /* all types, all but the first, every second one */
    const uint32_t masks[] = {UINT32_MAX, UINT32_MAX - 1, 0x55555555};
    for (size_t i = 0; i < COUNT_OF(masks) && !is_auto(options->usage); i++) {
        uint32_t type = 0;
        vma_scenario(notes, "find 0x%x, usage %d, flags 0x%x, requires 0x%x, prefers 0x%x",
                     masks[i], (int)options->usage, options->flags, options->requiredFlags,
                     options->preferredFlags);
        NOTE("result", vmaFindMemoryTypeIndex(allocator, masks[i], options, &type));
        NOTE("memoryTypeIndex", type);
    }
}

static VkResult find_for(VmaAllocator allocator, const object *of,
                         const VmaAllocationCreateInfo *options, uint32_t *type)
{
    if (of->tiling == BUFFER) {
        VkBufferCreateInfo info = OF_SUBJECT(vma_buffer_info)(of, 4096);
        return vmaFindMemoryTypeIndexForBufferInfo(allocator, &info, options, type);
    }
    VkImageCreateInfo info = OF_SUBJECT(vma_image_info)(of, 64);
    return vmaFindMemoryTypeIndexForImageInfo(allocator, &info, options, type);
}

static void find_objects(VmaAllocator allocator, VmaAllocationCreateInfo *options, vma_notes *notes)
{
    for (uint32_t i = 0; i < OBJECT_COUNT; i++) {
        uint32_t type = 0;
        vma_scenario(notes, "find for '%s', usage %d, flags 0x%x, requires 0x%x, prefers 0x%x",
                     OBJECTS[i].name, (int)options->usage, options->flags, options->requiredFlags,
                     options->preferredFlags);
        NOTE("result", find_for(allocator, &OBJECTS[i], options, &type));
        NOTE("memoryTypeIndex", type);
    }
}

void OF_SUBJECT(vma_find_types)(const vma_scene *scene, vma_notes *notes)
{
    VmaAllocator allocator = OF_SUBJECT(vma_open)(scene, NULL);
    for (int usage = 0; usage <= VMA_MEMORY_USAGE_AUTO_PREFER_HOST; usage++)
        for (size_t i = 0; i < COUNT_OF(HOST_ACCESS); i++)
            for (size_t k = 0; k < COUNT_OF(FLAGS); k++) {
                VmaAllocationCreateInfo options = {.usage = (VmaMemoryUsage)usage,
                                                   .flags = HOST_ACCESS[i],
                                                   .requiredFlags = FLAGS[k][0],
                                                   .preferredFlags = FLAGS[k][1]};
                /* Only AUTO reads the access flags. */
                if (i && !is_auto(options.usage))
                    continue;
                find_plain(allocator, &options, notes);
                find_objects(allocator, &options, notes);
                options.memoryTypeBits = 0xAAAAAAAA;
                find_plain(allocator, &options, notes);
            }
    vmaDestroyAllocator(allocator);
}

/* ---- all ------------------------------------------------------------------------------------- */

void OF_SUBJECT(vma_run)(const vma_scene *scene, vma_notes *notes)
{
    OF_SUBJECT(vma_find_types)(scene, notes);
    OF_SUBJECT(vma_create_objects)(scene, notes);
    OF_SUBJECT(vma_use_limits)(scene, notes);
}
