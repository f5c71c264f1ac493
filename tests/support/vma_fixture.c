/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_fixture.c - see vma_fixture.h.
 */
#include "tests/support/vma_fixture.h"

#include <stdlib.h>

#include "tests/support/check.h"

static void begin_with(vma_fixture *v, const fv_options *options)
{
    *v = (vma_fixture){.allocator = NULL};
    fv_fixture_open_with(&v->vulkan, options);
    v->functions = (VmaVulkanFunctions){.vkGetInstanceProcAddr = v->vulkan.get,
                                        .vkGetDeviceProcAddr = v->vulkan.get_of_device};
    v->info = (VmaAllocatorCreateInfo){.physicalDevice = v->vulkan.physical,
                                       .device = v->vulkan.device,
                                       .pVulkanFunctions = &v->functions,
                                       .instance = v->vulkan.instance,
                                       .vulkanApiVersion = VK_API_VERSION_1_3};
}

void vma_fixture_begin(vma_fixture *v, const char *layout, uint32_t driver_flags)
{
    const fv_layout *found = fv_layout_named(layout ? layout : "amd-bar");
    CHECK(found);
    begin_with(v, &(fv_options){.layouts = {found}, .flags = driver_flags});
}

void vma_fixture_open_driver(vma_fixture *v, const char *layout, uint32_t driver_flags)
{
    vma_fixture_begin(v, layout, driver_flags);
    CHECK_VK(vmaCreateAllocator(&v->info, &v->allocator));
}

void vma_fixture_open_granular(vma_fixture *v, uint64_t granularity)
{
    fv_layout layout = *fv_layout_named("nvidia-rebar");
    layout.granularity = granularity;
    begin_with(v, &(fv_options){.layouts = {&layout}});
    CHECK_VK(vmaCreateAllocator(&v->info, &v->allocator));
}

void vma_fixture_open(vma_fixture *v, const char *layout, VmaAllocatorCreateFlags flags)
{
    vma_fixture_begin(v, layout, 0);
    v->info.flags = flags;
    CHECK_VK(vmaCreateAllocator(&v->info, &v->allocator));
}

void vma_fixture_end_held(vma_fixture *v)
{
    while (v->held_count) {
        v->held_count--;
        vmaDestroyBuffer(v->allocator, v->held[v->held_count].buffer,
                         v->held[v->held_count].allocation);
    }
}

void vma_fixture_close(vma_fixture *v)
{
    vma_fixture_end_held(v);
    vmaDestroyAllocator(v->allocator);
    fv_fixture_close(&v->vulkan);
}

VkBufferCreateInfo vma_fixture_buffer_info(VkDeviceSize size)
{
    return (VkBufferCreateInfo){.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                .size = size,
                                .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                         VK_BUFFER_USAGE_TRANSFER_DST_BIT};
}

VkImageCreateInfo vma_fixture_image_info(uint32_t width, VkImageTiling tiling)
{
    return (VkImageCreateInfo){.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                               .imageType = VK_IMAGE_TYPE_2D,
                               .format = VK_FORMAT_R8G8B8A8_UNORM,
                               .extent = {.width = width, .height = width, .depth = 1},
                               .mipLevels = 1,
                               .arrayLayers = 1,
                               .samples = VK_SAMPLE_COUNT_1_BIT,
                               .tiling = tiling,
                               .usage =
                                   VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
}

VmaAllocation vma_fixture_buffer(vma_fixture *v, VkDeviceSize size,
                                 const VmaAllocationCreateInfo *options, VkBuffer *buffer)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(size);
    VmaAllocation allocation;
    CHECK_VK(vmaCreateBuffer(v->allocator, &info, options, buffer, &allocation, NULL));
    return allocation;
}

VmaAllocation vma_fixture_hold(vma_fixture *v, VkDeviceSize size,
                               const VmaAllocationCreateInfo *options)
{
    CHECK(v->held_count < VMA_FIXTURE_HELD);
    VmaAllocation allocation = vma_fixture_buffer(v, size, options, &v->held[v->held_count].buffer);
    v->held[v->held_count++].allocation = allocation;
    return allocation;
}

VmaAllocationInfo vma_fixture_info(vma_fixture *v, VmaAllocation allocation)
{
    VmaAllocationInfo info;
    vmaGetAllocationInfo(v->allocator, allocation, &info);
    return info;
}

void vma_fixture_refuse(vma_fixture *v, VkDeviceSize size, const VmaAllocationCreateInfo *options,
                        VkResult expected)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(size);
    VkBuffer buffer;
    VmaAllocation allocation;
    CHECK_EQ(vmaCreateBuffer(v->allocator, &info, options, &buffer, &allocation, NULL), expected);
    CHECK(!buffer && !allocation);
}

static void *VKAPI_CALL allocate(void *user, size_t size, size_t alignment,
                                 VkSystemAllocationScope scope)
{
    vma_host *host = user;
    host->calls++;
    host->scopes |= UINT32_C(1) << scope;
    if (host->calls == host->fail_at || (host->from_then && host->calls > host->fail_at))
        return NULL;
    host->blocks++;
    return aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}

static void VKAPI_CALL release(void *user, void *pointer)
{
    vma_host *host = user;
    host->blocks -= pointer != NULL;
    free(pointer);
}

const VkAllocationCallbacks *vma_host_begin(vma_host *host, uint32_t fail_at, bool from_then)
{
    *host = (vma_host){.fail_at = fail_at, .from_then = from_then};
    host->callbacks =
        (VkAllocationCallbacks){.pUserData = host, .pfnAllocation = allocate, .pfnFree = release};
    return &host->callbacks;
}
