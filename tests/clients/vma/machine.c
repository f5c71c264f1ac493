/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * machine.c - see machine.h.
 */
#include "tests/clients/vma/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const LAYER = "VK_LAYER_KHRONOS_validation";

void machine_must(VkResult code, const char *call)
{
    if (!code)
        return;
    fprintf(stderr, "%s: %d\n", call, (int)code);
    exit(1);
}

static void skip(const char *reason)
{
    printf("skipped: %s\n", reason);
    exit(MACHINE_SKIPPED);
}

static VKAPI_ATTR VkBool32 VKAPI_CALL hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                           VkDebugUtilsMessageTypeFlagsEXT types,
                                           const VkDebugUtilsMessengerCallbackDataEXT *data,
                                           void *user)
{
    machine *m = user;
    (void)severity;
    (void)types;
    m->messages++;
    fprintf(stderr, "validation: %s\n", data->pMessage);
    return VK_FALSE;
}

/* ---- instance and device ------------------------------------------------------------------- */

static void require_layer(void)
{
    VkLayerProperties layers[64];
    uint32_t count = 64;
    VkResult code = vkEnumerateInstanceLayerProperties(&count, layers);
    for (uint32_t i = 0; code >= 0 && i < count; i++)
        if (!strcmp(layers[i].layerName, LAYER))
            return;
    skip("there is no validation layer");
}

static void make_instance(machine *m)
{
    static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                             VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
    static const VkValidationFeatureEnableEXT enables[] = {
        VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
    const VkDebugUtilsMessengerCreateInfoEXT messenger = {
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
        .pfnUserCallback = hear,
        .pUserData = m,
    };
    const VkValidationFeaturesEXT features = {
        .sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
        .enabledValidationFeatureCount = 1,
        .pEnabledValidationFeatures = enables,
    };
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_3};
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = &features,
        .pApplicationInfo = &application,
        .enabledLayerCount = 1,
        .ppEnabledLayerNames = &LAYER,
        .enabledExtensionCount = 2,
        .ppEnabledExtensionNames = extensions,
    };
    if (vkCreateInstance(&info, NULL, &m->instance))
        skip("there is no Vulkan driver");
    PFN_vkCreateDebugUtilsMessengerEXT create =
        (PFN_vkCreateDebugUtilsMessengerEXT)vkGetInstanceProcAddr(m->instance,
                                                                  "vkCreateDebugUtilsMessengerEXT");
    MUST(create(m->instance, &messenger, NULL, &m->messenger));
}

static bool has_extension(VkPhysicalDevice device, const char *name)
{
    uint32_t count = 0;
    bool found = false;
    MUST(vkEnumerateDeviceExtensionProperties(device, NULL, &count, NULL));
    VkExtensionProperties *all = calloc(count, sizeof *all);
    MUST_HOLD(all || !count);
    MUST(vkEnumerateDeviceExtensionProperties(device, NULL, &count, all));
    for (uint32_t i = 0; i < count; i++)
        found |= !strcmp(all[i].extensionName, name);
    free(all);
    return found;
}

static void make_device(machine *m)
{
    static const char *const budget = VK_EXT_MEMORY_BUDGET_EXTENSION_NAME;
    static const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    VkPhysicalDeviceVulkan13Features features = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
        .dynamicRendering = VK_TRUE,
    };
    m->has_budget = has_extension(m->physical_device, budget);
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &features,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = m->has_budget,
        .ppEnabledExtensionNames = &budget,
    };
    MUST(vkCreateDevice(m->physical_device, &info, NULL, &m->device));
    vkGetDeviceQueue(m->device, 0, 0, &m->queue);
}

static void make_commands(machine *m)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
    };
    MUST(vkCreateCommandPool(m->device, &pool, NULL, &m->pool));
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = m->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    MUST(vkAllocateCommandBuffers(m->device, &commands, &m->commands));
}

void machine_open(machine *m)
{
    VkPhysicalDeviceProperties properties;
    uint32_t count = 1;
    memset(m, 0, sizeof *m);
    require_layer();
    make_instance(m);
    if (vkEnumeratePhysicalDevices(m->instance, &count, &m->physical_device) < 0 || !count)
        skip("there is no Vulkan device");
    vkGetPhysicalDeviceProperties(m->physical_device, &properties);
    if (properties.apiVersion < VK_API_VERSION_1_3)
        skip("the device is below Vulkan 1.3");
    m->limits = properties.limits;
    make_device(m);
    make_commands(m);
}

int machine_close(machine *m)
{
    PFN_vkDestroyDebugUtilsMessengerEXT destroy =
        (PFN_vkDestroyDebugUtilsMessengerEXT)vkGetInstanceProcAddr(
            m->instance, "vkDestroyDebugUtilsMessengerEXT");
    vkDestroyCommandPool(m->device, m->pool, NULL);
    vkDestroyDevice(m->device, NULL);
    destroy(m->instance, m->messenger, NULL);
    vkDestroyInstance(m->instance, NULL);
    return m->messages > 0;
}

/* ---- commands ------------------------------------------------------------------------------ */

void machine_begin(machine *m)
{
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    MUST(vkBeginCommandBuffer(m->commands, &info));
}

void machine_submit(machine *m)
{
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &m->commands,
    };
    machine_barrier(m);
    MUST(vkEndCommandBuffer(m->commands));
    MUST(vkQueueSubmit(m->queue, 1, &info, VK_NULL_HANDLE));
    MUST(vkQueueWaitIdle(m->queue));
}

static const VkPipelineStageFlags STAGES =
    VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT;
static const VkAccessFlags ACCESSES = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT |
                                      VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;

void machine_barrier(const machine *m)
{
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = ACCESSES,
                                     .dstAccessMask = ACCESSES};
    vkCmdPipelineBarrier(m->commands, STAGES, STAGES, 0, 1, &barrier, 0, NULL, 0, NULL);
}

void machine_transition(const machine *m, VkImage image, VkImageAspectFlags aspect,
                        VkImageLayout from, VkImageLayout to)
{
    const VkImageMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcAccessMask = ACCESSES,
        .dstAccessMask = ACCESSES,
        .oldLayout = from,
        .newLayout = to,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = image,
        .subresourceRange = {aspect, 0, 1, 0, 1},
    };
    vkCmdPipelineBarrier(m->commands, STAGES, STAGES, 0, 0, NULL, 0, NULL, 1, &barrier);
}

VkShaderModule machine_shader(const machine *m, const uint32_t *words, size_t bytes)
{
    const VkShaderModuleCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = bytes,
        .pCode = words,
    };
    VkShaderModule shader = VK_NULL_HANDLE;
    MUST(vkCreateShaderModule(m->device, &info, NULL, &shader));
    return shader;
}

void machine_print_hash(const char *name, const void *bytes, size_t size)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211u;
    printf("%s %016" PRIx64 "\n", name, hash);
}
