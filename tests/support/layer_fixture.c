/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layer_fixture.c - see layer_fixture.h.
 */
#include "tests/support/layer_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/mini_loader.h"

void lf_open(fv_fixture *f, const fv_layout *layout, uint32_t flags)
{
    fv_fixture_open_over(f, &(fv_options){.layouts = {layout}, .flags = flags}, mini_loader_over);
}

void lf_open_named(fv_fixture *f, const char *layout)
{
    lf_open(f, fv_layout_named(layout), 0);
}

void lf_open_bare(fv_fixture *f, const char *hidden)
{
    fv_driver *driver = fv_create(&(fv_options){.layouts = {fv_layout_named("amd-bar")}});
    const VkInstanceCreateInfo none = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue};
    uint32_t one = 1;
    *f = (fv_fixture){.driver = driver, .get = mini_loader_over(fv_door(driver))};
    CHECK_VK(FV(f, vkCreateInstance)(&none, NULL, &f->instance));
    CHECK_VK(FV(f, vkEnumeratePhysicalDevices)(f->instance, &one, &f->physical) < 0);
    f->get_of_device = FV(f, vkGetDeviceProcAddr);
    if (hidden)
        fv_hide(driver, hidden);
    CHECK_VK(FV(f, vkCreateDevice)(f->physical, &info, NULL, &f->device));
}

VkResult lf_try(void)
{
    fv_driver *driver = fv_create(&(fv_options){.layouts = {fv_layout_named("amd-bar")}});
    PFN_vkGetInstanceProcAddr get = mini_loader_over(fv_door(driver));
    const VkInstanceCreateInfo none = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO};
    VkInstance instance = NULL;
    VkPhysicalDevice physical = NULL;
    VkDevice device = NULL;
    uint32_t one = 1;
    CHECK_VK(((PFN_vkCreateInstance)get(NULL, "vkCreateInstance"))(&none, NULL, &instance));
    ((PFN_vkEnumeratePhysicalDevices)get(instance, "vkEnumeratePhysicalDevices"))(instance, &one,
                                                                                  &physical);
    VkResult code =
        ((PFN_vkCreateDevice)get(instance, "vkCreateDevice"))(physical, &info, NULL, &device);
    ((PFN_vkDestroyInstance)get(instance, "vkDestroyInstance"))(instance, NULL);
    CHECK_EQ(fv_live(driver, FV_DEVICE), 0);
    fv_destroy(driver);
    return code;
}

uint64_t lf_driver_allocations(fv_fixture *f)
{
    return fv_calls(f->driver, "vkAllocateMemory");
}

VkDeviceMemory lf_allocate(fv_fixture *f, uint64_t size, uint32_t type, const void *chain)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = chain,
                                       .allocationSize = size,
                                       .memoryTypeIndex = type};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    CHECK_VK(FV(f, vkAllocateMemory)(f->device, &info, NULL, &memory));
    return memory;
}

void lf_release(fv_fixture *f, VkDeviceMemory memory)
{
    FV(f, vkFreeMemory)(f->device, memory, NULL);
}

bool lf_is_passed(fv_fixture *f, VkDeviceMemory memory)
{
    fv_memory_info info;
    return fv_memory_of(f->driver, memory, &info);
}

lf_piece lf_make_piece(fv_fixture *f, uint64_t size, uint32_t type)
{
    lf_piece p = {.buffer = fv_fixture_buffer(f, size, COPIES), .size = size};
    VkMemoryRequirements needs = fv_fixture_needs(f, p.buffer);
    CHECK(needs.memoryTypeBits >> type & 1);
    p.needed = needs.size;
    p.memory = lf_allocate(f, needs.size, type, NULL);
    CHECK_VK(FV(f, vkBindBufferMemory)(f->device, p.buffer, p.memory, 0));
    return p;
}

void lf_end_piece(fv_fixture *f, const lf_piece *p)
{
    FV(f, vkDestroyBuffer)(f->device, p->buffer, NULL);
    lf_release(f, p->memory);
}

VkCommandBuffer lf_begin_commands(fv_fixture *f, VkCommandPool *pool)
{
    VkCommandBuffer commands = NULL;
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    CHECK_VK(FV(f, vkCreateCommandPool)(f->device, &info, NULL, pool));
    const VkCommandBufferAllocateInfo allocate_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = *pool,
        .commandBufferCount = 1};
    CHECK_VK(FV(f, vkAllocateCommandBuffers)(f->device, &allocate_info, &commands));
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    CHECK_VK(FV(f, vkBeginCommandBuffer)(commands, &begin));
    return commands;
}

void lf_run_commands(fv_fixture *f, VkCommandBuffer commands, VkCommandPool pool)
{
    CHECK_VK(FV(f, vkEndCommandBuffer)(commands));
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands};
    CHECK_VK(FV(f, vkQueueSubmit)(f->queue, 1, &submit, VK_NULL_HANDLE));
    CHECK_VK(FV(f, vkQueueWaitIdle)(f->queue));
    FV(f, vkDestroyCommandPool)(f->device, pool, NULL);
}

uint64_t lf_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

void lf_expect_passed(fv_fixture *f, uint64_t size, uint32_t type, const void *chain)
{
    VkDeviceMemory memory = lf_allocate(f, size, type, chain);
    CHECK(lf_is_passed(f, memory));
    lf_release(f, memory);
}

VkImage lf_make_image(fv_fixture *f, VkImageTiling tiling)
{
    VkImage image = VK_NULL_HANDLE;
    const VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = VK_FORMAT_R8G8B8A8_UNORM,
        .extent = {33, 17, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = tiling,
        .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
        .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
    };
    CHECK_VK(FV(f, vkCreateImage)(f->device, &info, NULL, &image));
    return image;
}

const char *lf_read(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    return text;
}

char *lf_name_file(const char *variable)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/quire-layer-XXXXXX");
    int file = mkstemp(path);
    CHECK(file >= 0 && !close(file));
    setenv(variable, path, 1);
    return path;
}
