/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_client.c - a program that allocates like programs without an allocator, one VkDeviceMemory
 * per object, and uses memory objects in every way that Vulkan allows. It does not use quire and
 * prints what it computed: the output is the same with the layer as without.
 *
 * usage: vulkan_client [--abandon | --plain | --map2 | --bare | --later | --end _exit|TERM|KILL]
 *  - --abandon: ends without destroying anything
 *  - --plain: uses only buffers
 *  - --map2: maps by VK_KHR_map_memory2, which old validation layers do not know
 *  - --bare: uses only buffers, and creates its instance without VkApplicationInfo, which means
 *    Vulkan 1.0
 *  - --later: uses only buffers, and requests Vulkan 1.4
 *  - --end: uses only buffers, allocates one more and ends by _exit or a signal
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <vulkan/vulkan.h>

enum { SMALL = 500, IMAGES = 40, SIDE = 24, THREADS = 4, MAX_EXTENSIONS = 512 };

typedef struct program {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkPhysicalDeviceFeatures features;
    VkPhysicalDeviceMemoryProperties memory;
    VkExtensionProperties extensions[MAX_EXTENSIONS];
    uint32_t extension_count;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    VkDebugUtilsMessengerEXT messenger;
    bool has_addresses, has_private_data, has_swapchain, uses_map2, is_bare;
    unsigned messages;
} program;

/* A buffer with its memory. */
typedef struct piece {
    VkBuffer buffer;
    VkDeviceMemory memory;
    VkDeviceSize size;
    VkMemoryRequirements needs;
} piece;

/* How a piece differs from a buffer that is only copied. */
typedef struct piece_options {
    bool is_visible;
    VkBufferUsageFlags usage;
    const void *buffer_chain, *memory_chain;
    uint32_t types; /* of memory; 0: all that the buffer can have */
} piece_options;

static const piece_options VISIBLE = {.is_visible = true}, LOCAL = {.is_visible = false};

static void must(VkResult code, const char *what)
{
    if (code) {
        fprintf(stderr, "%s gives %d\n", what, code);
        exit(1);
    }
}

#define MUST(call) must((call), #call)
#define FUNCTION(p, name) ((PFN_##name)vkGetDeviceProcAddr((p)->device, #name))
#define OF_INSTANCE(p, name) ((PFN_##name)vkGetInstanceProcAddr((p)->instance, #name))

static uint64_t mix(uint64_t sum, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ at[i]) * UINT64_C(1099511628211);
    return sum;
}

/* ---- instance and device --------------------------------------------------------------------- */

static VKAPI_ATTR VkBool32 VKAPI_CALL hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                           VkDebugUtilsMessageTypeFlagsEXT types,
                                           const VkDebugUtilsMessengerCallbackDataEXT *data,
                                           void *user)
{
    program *p = user;
    (void)severity;
    (void)types;
    p->messages++;
    fprintf(stderr, "%s: %s\n", data->pMessageIdName ? data->pMessageIdName : "", data->pMessage);
    return VK_FALSE;
}

/* Returns whether the driver has surfaces without a display. */
static bool has_headless(void)
{
    static VkExtensionProperties all[MAX_EXTENSIONS];
    uint32_t count = MAX_EXTENSIONS;
    bool headless = false, surface = false;
    if (vkEnumerateInstanceExtensionProperties(NULL, &count, all) < 0)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        headless |= !strcmp(all[i].extensionName, VK_EXT_HEADLESS_SURFACE_EXTENSION_NAME);
        surface |= !strcmp(all[i].extensionName, VK_KHR_SURFACE_EXTENSION_NAME);
    }
    return headless && surface;
}

/* Requests this version. 0: there is no VkApplicationInfo. */
static void make_instance(program *p, uint32_t version)
{
    static const char *const NAMES[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                        VK_KHR_SURFACE_EXTENSION_NAME,
                                        VK_EXT_HEADLESS_SURFACE_EXTENSION_NAME};
    p->has_swapchain = has_headless();
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = version};
    const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                       .pApplicationInfo = version ? &application : NULL,
                                       .enabledExtensionCount = p->has_swapchain ? 3 : 1,
                                       .ppEnabledExtensionNames = NAMES};
    uint32_t one = 1;
    MUST(vkCreateInstance(&info, NULL, &p->instance));
    const VkDebugUtilsMessengerCreateInfoEXT messages = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = hear,
        .pUserData = p,
    };
    MUST(OF_INSTANCE(p, vkCreateDebugUtilsMessengerEXT)(p->instance, &messages, NULL,
                                                        &p->messenger));
    if (vkEnumeratePhysicalDevices(p->instance, &one, &p->physical) < 0 || !one) {
        fprintf(stderr, "there is no device\n");
        exit(77);
    }
    vkGetPhysicalDeviceFeatures(p->physical, &p->features);
    vkGetPhysicalDeviceMemoryProperties(p->physical, &p->memory);
    p->extension_count = MAX_EXTENSIONS;
    vkEnumerateDeviceExtensionProperties(p->physical, NULL, &p->extension_count, p->extensions);
}

static bool has(const program *p, const char *extension)
{
    for (uint32_t i = 0; i < p->extension_count; i++)
        if (!strcmp(p->extensions[i].extensionName, extension))
            return true;
    return false;
}

/* Without features and names it is a device of Vulkan 1.0. */
static VkDevice make_device(const program *p, const VkPhysicalDeviceFeatures2 *features,
                            uint32_t count, const char *const *names)
{
    const float priority = 1;
    VkDevice device = NULL;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                     .pNext = features,
                                     .queueCreateInfoCount = 1,
                                     .pQueueCreateInfos = &queue,
                                     .enabledExtensionCount = count,
                                     .ppEnabledExtensionNames = names};
    MUST(vkCreateDevice(p->physical, &info, NULL, &device));
    return device;
}

static VkDevice make_full_device(program *p)
{
    static const char *const WANTED[] = {
        VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME,
        VK_EXT_MEMORY_PRIORITY_EXTENSION_NAME, "VK_KHR_map_memory2"};
    const char *names[5];
    uint32_t count = 0;
    p->has_swapchain &= has(p, VK_KHR_SWAPCHAIN_EXTENSION_NAME);
    if (p->has_swapchain)
        names[count++] = VK_KHR_SWAPCHAIN_EXTENSION_NAME;
    for (int i = 0; i < 3 + p->uses_map2; i++)
        if (has(p, WANTED[i]))
            names[count++] = WANTED[i];
    VkPhysicalDeviceVulkan13Features later = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
    VkPhysicalDeviceBufferDeviceAddressFeatures address = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, .pNext = &later};
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                          .pNext = &address};
    vkGetPhysicalDeviceFeatures2(p->physical, &features);
    p->has_addresses = address.bufferDeviceAddress;
    p->has_private_data = later.privateData;
    address.bufferDeviceAddressCaptureReplay = VK_FALSE;
    features.features.robustBufferAccess = VK_FALSE;
    later.robustImageAccess = VK_FALSE;
    return make_device(p, &features, count, names);
}

static void open_device(program *p)
{
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    p->device = p->is_bare ? make_device(p, NULL, 0, NULL) : make_full_device(p);
    vkGetDeviceQueue(p->device, 0, 0, &p->queue);
    MUST(vkCreateCommandPool(p->device, &info, NULL, &p->pool));
}

/* ---- commands -------------------------------------------------------------------------------- */

static VkCommandBuffer begin(const program *p)
{
    VkCommandBuffer commands = NULL;
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = p->pool,
                                              .commandBufferCount = 1};
    const VkCommandBufferBeginInfo start = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                            .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
    MUST(vkAllocateCommandBuffers(p->device, &info, &commands));
    MUST(vkBeginCommandBuffer(commands, &start));
    return commands;
}

static void barrier(VkCommandBuffer commands, bool to_host)
{
    const VkMemoryBarrier all = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                 .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                 .dstAccessMask = to_host ? VK_ACCESS_HOST_READ_BIT
                                                          : VK_ACCESS_TRANSFER_READ_BIT |
                                                                VK_ACCESS_TRANSFER_WRITE_BIT};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         to_host ? VK_PIPELINE_STAGE_HOST_BIT : VK_PIPELINE_STAGE_TRANSFER_BIT, 0,
                         1, &all, 0, NULL, 0, NULL);
}

static void end(const program *p, VkCommandBuffer commands)
{
    barrier(commands, true);
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands};
    MUST(vkEndCommandBuffer(commands));
    MUST(vkQueueSubmit(p->queue, 1, &submit, VK_NULL_HANDLE));
    MUST(vkQueueWaitIdle(p->queue));
    vkFreeCommandBuffers(p->device, p->pool, 1, &commands);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static uint32_t type_for(const program *p, uint32_t bits, bool visible)
{
    VkMemoryPropertyFlags wanted =
        visible ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    for (uint32_t i = 0; i < p->memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = p->memory.memoryTypes[i].propertyFlags;
        if (bits >> i & 1 && flags & wanted && !(flags & VK_MEMORY_PROPERTY_PROTECTED_BIT))
            return i;
    }
    fprintf(stderr, "there is no memory type\n");
    exit(1);
}

static VkDeviceMemory allocate(const program *p, VkDeviceSize size, uint32_t type,
                               const void *chain)
{
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = chain,
                                       .allocationSize = size,
                                       .memoryTypeIndex = type};
    VkDeviceMemory memory = VK_NULL_HANDLE;
    MUST(vkAllocateMemory(p->device, &info, NULL, &memory));
    return memory;
}

static piece make_piece(const program *p, VkDeviceSize size, const piece_options *how)
{
    piece made = {.size = size};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = how->buffer_chain,
                                     .size = size,
                                     .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT | how->usage};
    MUST(vkCreateBuffer(p->device, &info, NULL, &made.buffer));
    vkGetBufferMemoryRequirements(p->device, made.buffer, &made.needs);
    uint32_t types = made.needs.memoryTypeBits & (how->types ? how->types : UINT32_MAX);
    made.memory =
        allocate(p, made.needs.size, type_for(p, types, how->is_visible), how->memory_chain);
    MUST(vkBindBufferMemory(p->device, made.buffer, made.memory, 0));
    return made;
}

static void end_piece(const program *p, const piece *one)
{
    vkDestroyBuffer(p->device, one->buffer, NULL);
    vkFreeMemory(p->device, one->memory, NULL);
}

/* Maps the memory and returns its bytes as the device has left them. */
static void *map(const program *p, VkDeviceMemory memory)
{
    void *pointer = NULL;
    const VkMappedMemoryRange range = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = memory, .size = VK_WHOLE_SIZE};
    MUST(vkMapMemory(p->device, memory, 0, VK_WHOLE_SIZE, 0, &pointer));
    MUST(vkInvalidateMappedMemoryRanges(p->device, 1, &range));
    return pointer;
}

static uint64_t sum_of(const program *p, const piece *one)
{
    uint64_t sum = mix(0, map(p, one->memory), one->size);
    vkUnmapMemory(p->device, one->memory);
    return sum;
}

/* Hundreds of buffers that the host writes and the device copies to others and gathers in one. */
static void use_buffers(const program *p)
{
    static piece from[SMALL], to[SMALL];
    VkDeviceSize total = 0;
    for (unsigned i = 0; i < SMALL; i++) {
        void *pointer = NULL;
        from[i] = make_piece(p, 4 * (16 + i * 37 % 2000), &VISIBLE);
        to[i] = make_piece(p, from[i].size, &LOCAL);
        total += from[i].size;
        MUST(vkMapMemory(p->device, from[i].memory, 0, i & 1 ? VK_WHOLE_SIZE : from[i].needs.size,
                         0, &pointer));
        for (unsigned k = 0; k < from[i].size / 4; k++)
            ((uint32_t *)pointer)[k] = i * 2654435761u + k;
        const VkMappedMemoryRange range = {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
                                           .memory = from[i].memory,
                                           .size = VK_WHOLE_SIZE};
        MUST(vkFlushMappedMemoryRanges(p->device, 1, &range));
        if (i % 3)
            vkUnmapMemory(p->device, from[i].memory);
    }
    piece all = make_piece(p, total, &VISIBLE);
    VkCommandBuffer commands = begin(p);
    for (int i = 0; i < SMALL; i++)
        vkCmdCopyBuffer(commands, from[i].buffer, to[i].buffer, 1,
                        &(VkBufferCopy){.size = from[i].size});
    barrier(commands, false);
    VkDeviceSize at = 0;
    for (int i = 0; i < SMALL; at += to[i++].size)
        vkCmdCopyBuffer(commands, to[i].buffer, all.buffer, 1,
                        &(VkBufferCopy){.dstOffset = at, .size = to[i].size});
    end(p, commands);
    printf("buffers %016llx\n", (unsigned long long)sum_of(p, &all));
    for (int i = 0; i < SMALL; i++) {
        end_piece(p, &from[i]);
        end_piece(p, &to[i]);
    }
    end_piece(p, &all);
}

/* ---- images ---------------------------------------------------------------------------------- */

static VkImage make_image(const program *p, VkFormat format, VkImageTiling tiling,
                          VkImageUsageFlags usage, const void *chain)
{
    VkImage image = VK_NULL_HANDLE;
    const VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                    .pNext = chain,
                                    .imageType = VK_IMAGE_TYPE_2D,
                                    .format = format,
                                    .extent = {SIDE, SIDE, 1},
                                    .mipLevels = 1,
                                    .arrayLayers = 1,
                                    .samples = VK_SAMPLE_COUNT_1_BIT,
                                    .tiling = tiling,
                                    .usage = usage,
                                    .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED};
    MUST(vkCreateImage(p->device, &info, NULL, &image));
    return image;
}

static void set_layout(VkCommandBuffer commands, VkImage image, VkImageLayout from,
                       VkImageLayout to)
{
    const VkImageMemoryBarrier change = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = from ? VK_ACCESS_TRANSFER_WRITE_BIT : 0,
        .dstAccessMask = from ? VK_ACCESS_TRANSFER_READ_BIT : VK_ACCESS_TRANSFER_WRITE_BIT,
        .oldLayout = from,
        .newLayout = to,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT,
                         0, 0, NULL, 0, NULL, 1, &change);
}

/* Each image has its own memory; every fifth is dedicated; they are bound one by one and by array.
   */
static void use_images(const program *p)
{
    VkImage images[IMAGES];
    VkDeviceMemory memories[IMAGES];
    VkBindImageMemoryInfo binds[IMAGES];
    piece all = make_piece(p, IMAGES * SIDE * SIDE * 4, &VISIBLE);
    for (int i = 0; i < IMAGES; i++) {
        VkMemoryRequirements needs;
        images[i] = make_image(
            p, VK_FORMAT_R8G8B8A8_UNORM, i & 1 ? VK_IMAGE_TILING_OPTIMAL : VK_IMAGE_TILING_LINEAR,
            VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT, NULL);
        vkGetImageMemoryRequirements(p->device, images[i], &needs);
        const VkMemoryDedicatedAllocateInfo dedicated = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .image = images[i]};
        memories[i] = allocate(p, needs.size, type_for(p, needs.memoryTypeBits, false),
                               i % 5 ? NULL : &dedicated);
        binds[i] = (VkBindImageMemoryInfo){.sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO,
                                           .image = images[i],
                                           .memory = memories[i]};
        if (i < 8)
            MUST(vkBindImageMemory(p->device, images[i], memories[i], 0));
    }
    MUST(vkBindImageMemory2(p->device, IMAGES - 8, binds + 8));
    VkCommandBuffer commands = begin(p);
    for (int i = 0; i < IMAGES; i++) {
        const VkClearColorValue color = {.float32 = {(float)i / (float)IMAGES, 0.5f, 1, 0}};
        const VkImageSubresourceRange range = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        const VkBufferImageCopy copy = {.bufferOffset = (VkDeviceSize)i * SIDE * SIDE * 4,
                                        .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                        .imageExtent = {SIDE, SIDE, 1}};
        set_layout(commands, images[i], VK_IMAGE_LAYOUT_UNDEFINED,
                   VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
        vkCmdClearColorImage(commands, images[i], VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &color, 1,
                             &range);
        set_layout(commands, images[i], VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL,
                   VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
        vkCmdCopyImageToBuffer(commands, images[i], VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                               all.buffer, 1, &copy);
    }
    end(p, commands);
    printf("images %016llx\n", (unsigned long long)sum_of(p, &all));
    for (int i = 0; i < IMAGES; i++) {
        vkDestroyImage(p->device, images[i], NULL);
        vkFreeMemory(p->device, memories[i], NULL);
    }
    end_piece(p, &all);
}

/* ---- other uses of a memory object ----------------------------------------------------------- */

static uint32_t filled(const program *p, VkBuffer buffer, VkDeviceMemory memory)
{
    VkCommandBuffer commands = begin(p);
    vkCmdFillBuffer(commands, buffer, 0, VK_WHOLE_SIZE, 0xabcd1234);
    end(p, commands);
    uint32_t value = *(uint32_t *)map(p, memory);
    vkUnmapMemory(p->device, memory);
    return value;
}

static void use_export(const program *p)
{
    static const VkExternalMemoryHandleTypeFlagBits TYPE =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT;
    int descriptor = -1;
    if (!has(p, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME))
        return;
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = TYPE};
    const VkExportMemoryAllocateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = TYPE};
    piece_options how = {true, .buffer_chain = &external, .memory_chain = &exported};
    piece one = make_piece(p, 4096, &how);
    const VkMemoryGetFdInfoKHR get = {.sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
                                      .memory = one.memory,
                                      .handleType = TYPE};
    MUST(FUNCTION(p, vkGetMemoryFdKHR)(p->device, &get, &descriptor));
    const VkImportMemoryFdInfoKHR import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = TYPE, .fd = descriptor};
    how.memory_chain = &import;
    piece other = make_piece(p, 4096, &how);
    printf("export %x", filled(p, one.buffer, one.memory));
    printf(" import %x\n", *(uint32_t *)map(p, other.memory));
    end_piece(p, &one);
    end_piece(p, &other);
}

static void use_host_pointer(const program *p)
{
    static const VkExternalMemoryHandleTypeFlagBits TYPE =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT;
    enum { SIZE = 65536 };
    if (!has(p, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
        return;
    VkMemoryHostPointerPropertiesEXT can = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
    void *pointer = aligned_alloc(SIZE, SIZE);
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = TYPE};
    MUST(FUNCTION(p, vkGetMemoryHostPointerPropertiesEXT)(p->device, TYPE, pointer, &can));
    const VkImportMemoryHostPointerInfoEXT import = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
        .handleType = TYPE,
        .pHostPointer = pointer};
    piece one = make_piece(p, SIZE,
                           &(piece_options){true, .buffer_chain = &external,
                                            .memory_chain = &import, .types = can.memoryTypeBits});
    printf("host pointer %x", filled(p, one.buffer, one.memory));
    printf(" %x\n", *(uint32_t *)pointer);
    end_piece(p, &one);
    free(pointer);
}

static void use_addresses(const program *p)
{
    VkDeviceAddress addresses[8];
    piece pieces[8];
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const piece_options how = {.usage = VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
                               .memory_chain = &flags};
    int distinct = 0;
    if (!p->has_addresses)
        return;
    for (int i = 0; i < 8; i++) {
        pieces[i] = make_piece(p, 1000, &how);
        const VkBufferDeviceAddressInfo of_buffer = {
            .sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = pieces[i].buffer};
        const VkDeviceMemoryOpaqueCaptureAddressInfo of_memory = {
            .sType = VK_STRUCTURE_TYPE_DEVICE_MEMORY_OPAQUE_CAPTURE_ADDRESS_INFO,
            .memory = pieces[i].memory};
        addresses[i] = vkGetBufferDeviceAddress(p->device, &of_buffer);
        (void)vkGetDeviceMemoryOpaqueCaptureAddress(p->device, &of_memory);
        bool is_new = addresses[i] && addresses[i] % pieces[i].needs.alignment == 0;
        for (int k = 0; k < i; k++)
            is_new &= addresses[i] >= addresses[k] + 1000 || addresses[k] >= addresses[i] + 1000;
        distinct += is_new;
    }
    printf("addresses %d\n", distinct);
    for (int i = 0; i < 8; i++)
        end_piece(p, &pieces[i]);
}

/* Names, tags and private data: two memory objects in one page stay distinct. */
static void use_names(const program *p)
{
    piece pieces[2] = {make_piece(p, 100, &VISIBLE), make_piece(p, 100, &VISIBLE)};
    VkPrivateDataSlot slot = VK_NULL_HANDLE;
    const VkPrivateDataSlotCreateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_PRIVATE_DATA_SLOT_CREATE_INFO};
    if (p->has_private_data)
        MUST(FUNCTION(p, vkCreatePrivateDataSlot)(p->device, &info, NULL, &slot));
    uint64_t values[2] = {1, 1};
    for (unsigned i = 0; i < 2; i++) {
        const VkDebugUtilsObjectNameInfoEXT name = {
            .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
            .objectType = VK_OBJECT_TYPE_DEVICE_MEMORY,
            .objectHandle = (uint64_t)(uintptr_t)pieces[i].memory,
            .pObjectName = i ? "second" : "first"};
        MUST(OF_INSTANCE(p, vkSetDebugUtilsObjectNameEXT)(p->device, &name));
        if (slot)
            MUST(FUNCTION(p, vkSetPrivateData)(p->device, VK_OBJECT_TYPE_DEVICE_MEMORY,
                                               (uint64_t)(uintptr_t)pieces[i].memory, slot,
                                               100 + i));
    }
    for (int i = 0; slot && i < 2; i++)
        FUNCTION(p, vkGetPrivateData)
    (p->device, VK_OBJECT_TYPE_DEVICE_MEMORY, (uint64_t)(uintptr_t)pieces[i].memory, slot,
     &values[i]);
    printf("private data %llu %llu\n", (unsigned long long)values[0],
           (unsigned long long)values[1]);
    if (slot)
        FUNCTION(p, vkDestroyPrivateDataSlot)(p->device, slot, NULL);
    end_piece(p, &pieces[0]);
    end_piece(p, &pieces[1]);
}

static void use_sparse(const program *p)
{
    VkQueueFamilyProperties family;
    VkMemoryRequirements needs;
    uint32_t one = 1;
    vkGetPhysicalDeviceQueueFamilyProperties(p->physical, &one, &family);
    if (!p->features.sparseBinding || !(family.queueFlags & VK_QUEUE_SPARSE_BINDING_BIT))
        return;
    VkBuffer buffer = VK_NULL_HANDLE;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
                                     .size = 1 << 18,
                                     .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    MUST(vkCreateBuffer(p->device, &info, NULL, &buffer));
    vkGetBufferMemoryRequirements(p->device, buffer, &needs);
    VkDeviceMemory memory = allocate(p, needs.size, type_for(p, needs.memoryTypeBits, true), NULL);
    const VkSparseMemoryBind binds[] = {
        {.size = needs.size / 2, .memory = memory, .memoryOffset = needs.size / 2},
        {.resourceOffset = needs.size / 2, .size = needs.size / 2, .memory = memory}};
    const VkSparseBufferMemoryBindInfo of_buffer = {
        .buffer = buffer, .bindCount = 2, .pBinds = binds};
    const VkBindSparseInfo sparse = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
                                     .bufferBindCount = 1,
                                     .pBufferBinds = &of_buffer};
    MUST(vkQueueBindSparse(p->queue, 1, &sparse, VK_NULL_HANDLE));
    MUST(vkQueueWaitIdle(p->queue));
    printf("sparse %x\n", filled(p, buffer, memory));
    vkDestroyBuffer(p->device, buffer, NULL);
    vkFreeMemory(p->device, memory, NULL);
}

/* An image that the program creates on the memory of a swapchain: its bind names no memory. */
static void use_swapchain(const program *p)
{
    VkSurfaceKHR surface = VK_NULL_HANDLE;
    VkSwapchainKHR swapchain = VK_NULL_HANDLE;
    VkBool32 can_present = VK_FALSE;
    VkSurfaceCapabilitiesKHR needs;
    VkSurfaceFormatKHR format;
    uint32_t one = 1;
    if (!p->has_swapchain)
        return;
    const VkHeadlessSurfaceCreateInfoEXT headless = {
        .sType = VK_STRUCTURE_TYPE_HEADLESS_SURFACE_CREATE_INFO_EXT};
    MUST(OF_INSTANCE(p, vkCreateHeadlessSurfaceEXT)(p->instance, &headless, NULL, &surface));
    MUST(vkGetPhysicalDeviceSurfaceSupportKHR(p->physical, 0, surface, &can_present));
    MUST(vkGetPhysicalDeviceSurfaceCapabilitiesKHR(p->physical, surface, &needs));
    must(vkGetPhysicalDeviceSurfaceFormatsKHR(p->physical, surface, &one, &format) < 0, "formats");
    const VkSwapchainCreateInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_SWAPCHAIN_CREATE_INFO_KHR,
        .surface = surface,
        .minImageCount = needs.minImageCount,
        .imageFormat = format.format,
        .imageColorSpace = format.colorSpace,
        .imageExtent = {SIDE, SIDE},
        .imageArrayLayers = 1,
        .imageUsage = VK_IMAGE_USAGE_TRANSFER_DST_BIT,
        .preTransform = VK_SURFACE_TRANSFORM_IDENTITY_BIT_KHR,
        .compositeAlpha = VK_COMPOSITE_ALPHA_OPAQUE_BIT_KHR,
        .presentMode = VK_PRESENT_MODE_FIFO_KHR,
    };
    VkImage own[8];
    uint32_t count = 8;
    MUST(vkCreateSwapchainKHR(p->device, &info, NULL, &swapchain));
    must(vkGetSwapchainImagesKHR(p->device, swapchain, &count, own) < 0, "images of a swapchain");
    const VkImageSwapchainCreateInfoKHR of_image = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_SWAPCHAIN_CREATE_INFO_KHR, .swapchain = swapchain};
    VkImage image = make_image(p, format.format, VK_IMAGE_TILING_OPTIMAL,
                               VK_IMAGE_USAGE_TRANSFER_DST_BIT, &of_image);
    const VkBindImageMemorySwapchainInfoKHR to_swapchain = {
        .sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_SWAPCHAIN_INFO_KHR, .swapchain = swapchain};
    const VkBindImageMemoryInfo bind = {
        .sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO, .pNext = &to_swapchain, .image = image};
    MUST(vkBindImageMemory2(p->device, 1, &bind));
    printf("swapchain %d\n", can_present);
    vkDestroyImage(p->device, image, NULL);
    vkDestroySwapchainKHR(p->device, swapchain, NULL);
    vkDestroySurfaceKHR(p->instance, surface, NULL);
}

/* ---- devices and threads --------------------------------------------------------------------- */

static void use_second_device(const program *p)
{
    program second = *p;
    open_device(&second);
    piece here = make_piece(p, 1000, &VISIBLE), there = make_piece(&second, 1000, &VISIBLE);
    printf("devices %x", filled(&second, there.buffer, there.memory));
    printf(" %x\n", filled(p, here.buffer, here.memory));
    end_piece(&second, &there);
    end_piece(p, &here);
    vkDestroyCommandPool(second.device, second.pool, NULL);
    vkDestroyDevice(second.device, NULL);
}

static void *work(void *state)
{
    const program *p = state;
    for (unsigned i = 0; i < 100; i++) {
        piece pieces[3];
        for (unsigned k = 0; k < 3; k++) {
            pieces[k] = make_piece(p, 1000 + 900 * k, &VISIBLE);
            memset(map(p, pieces[k].memory), (int)k, 1000);
        }
        for (unsigned k = 0; k < 3; k++)
            end_piece(p, &pieces[k]);
    }
    return NULL;
}

static void use_threads(program *p)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, p);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("threads %d\n", THREADS);
}

/* The headers may be older than the extension. */
typedef struct map2 {
    VkStructureType sType;
    const void *pNext;
    VkFlags flags;
    VkDeviceMemory memory;
    VkDeviceSize offset, size;
} map2;

typedef struct unmap2 {
    VkStructureType sType;
    const void *pNext;
    VkFlags flags;
    VkDeviceMemory memory;
} unmap2;

static void use_map2(const program *p)
{
    typedef VkResult(VKAPI_PTR * map_function)(VkDevice, const map2 *, void **);
    typedef VkResult(VKAPI_PTR * unmap_function)(VkDevice, const unmap2 *);
    map_function map_it = (map_function)vkGetDeviceProcAddr(p->device, "vkMapMemory2KHR");
    unmap_function unmap_it = (unmap_function)vkGetDeviceProcAddr(p->device, "vkUnmapMemory2KHR");
    if (!map_it || !unmap_it) {
        printf("no vkMapMemory2KHR\n");
        return;
    }
    piece first = make_piece(p, 100, &VISIBLE), one = make_piece(p, 1000, &VISIBLE);
    uint32_t *pointer = NULL, value = filled(p, one.buffer, one.memory);
    const map2 to_map = {.sType = (VkStructureType)1000271000,
                         .memory = one.memory,
                         .offset = 64,
                         .size = VK_WHOLE_SIZE};
    const unmap2 to_unmap = {.sType = (VkStructureType)1000271001, .memory = one.memory};
    MUST(map_it(p->device, &to_map, (void **)&pointer));
    printf("map2 %d\n", *pointer == value);
    MUST(unmap_it(p->device, &to_unmap));
    MUST(map_it(p->device, &to_map, (void **)&pointer));
    end_piece(p, &one);
    end_piece(p, &first);
}

static void use_everything(program *p)
{
    use_images(p);
    use_export(p);
    use_host_pointer(p);
    use_addresses(p);
    use_names(p);
    use_sparse(p);
    use_swapchain(p);
    use_second_device(p);
    use_threads(p);
}

/* Ends like a program that the layer cannot know to end. */
static void end_by(const char *way)
{
    fflush(stdout);
    if (!strcmp(way, "_exit"))
        _exit(0);
    kill(getpid(), !strcmp(way, "TERM") ? SIGTERM : SIGKILL);
}

int main(int argc, char **argv)
{
    static program p;
    const char *mode = argc > 1 ? argv[1] : "";
    bool abandons = !strcmp(mode, "--abandon"), ends = argc > 2 && !strcmp(mode, "--end");
    bool is_later = !strcmp(mode, "--later");
    p.is_bare = !strcmp(mode, "--bare");
    p.uses_map2 = !strcmp(mode, "--map2");
    bool is_plain = !strcmp(mode, "--plain") || p.is_bare || is_later || ends;
    make_instance(&p, p.is_bare  ? 0
                      : is_later ? VK_MAKE_API_VERSION(0, 1, 4, 0)
                                 : VK_API_VERSION_1_3);
    p.uses_map2 &= has(&p, "VK_KHR_map_memory2");
    open_device(&p);
    use_buffers(&p);
    if (p.uses_map2)
        use_map2(&p);
    if (!is_plain)
        use_everything(&p);
    if (abandons || ends)
        make_piece(&p, 5000, &VISIBLE);
    if (ends)
        end_by(argv[2]);
    printf("messages %u\n", p.messages);
    fflush(stdout);
    if (abandons)
        return 0;
    vkDestroyCommandPool(p.device, p.pool, NULL);
    vkDestroyDevice(p.device, NULL);
    OF_INSTANCE(&p, vkDestroyDebugUtilsMessengerEXT)(p.instance, p.messenger, NULL);
    vkDestroyInstance(p.instance, NULL);
    return p.messages != 0;
}
