/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vkfft_client.c - transforms by VkFFT, each buffer with its own VkDeviceMemory, compared with the
 * same in double precision: prints the largest error of each length. It does not use quire.
 *
 * tests/tool/vulkan_programs.py compiles it if VkFFT's headers are installed, with
 * -DVKFFT_BACKEND=0.
 */
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <vkFFT.h>

#include <glslang/Include/glslang_c_interface.h>

enum { FIRST_BITS = 6, LAST_BITS = 16, LARGEST = 1 << LAST_BITS };

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static VkCommandPool pool;
static VkFence fence;

static void must(int code, const char *what)
{
    if (code) {
        fprintf(stderr, "%s gives %d\n", what, code);
        exit(1);
    }
}

#define MUST(call) must((int)(call), #call)

static void open_device(void)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance_info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                                .pApplicationInfo = &application};
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                                .queueCount = 1,
                                                .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device_info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                            .queueCreateInfoCount = 1,
                                            .pQueueCreateInfos = &queue_info};
    const VkCommandPoolCreateInfo pool_info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
    const VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    uint32_t one = 1;
    MUST(vkCreateInstance(&instance_info, NULL, &instance));
    must(vkEnumeratePhysicalDevices(instance, &one, &physical) < 0 || !one, "no device");
    MUST(vkCreateDevice(physical, &device_info, NULL, &device));
    vkGetDeviceQueue(device, 0, 0, &queue);
    MUST(vkCreateCommandPool(device, &pool_info, NULL, &pool));
    MUST(vkCreateFence(device, &fence_info, NULL, &fence));
}

/* The reference: in place, for a power of two. */
static void transform(double complex *x, unsigned count)
{
    for (unsigned i = 1, k = 0; i < count; i++) {
        unsigned bit = count >> 1;
        for (; k & bit; bit >>= 1)
            k ^= bit;
        k ^= bit;
        if (i < k) {
            double complex swapped = x[i];
            x[i] = x[k];
            x[k] = swapped;
        }
    }
    for (unsigned width = 2; width <= count; width <<= 1)
        for (unsigned i = 0; i < count; i += width)
            for (unsigned k = 0; k < width / 2; k++) {
                double complex turned =
                    x[i + k + width / 2] * cexp(-2 * M_PI * I * (double)k / (double)width);
                x[i + k + width / 2] = x[i + k] - turned;
                x[i + k] += turned;
            }
}

static VkBuffer make_buffer(VkDeviceSize size, VkDeviceMemory *memory)
{
    VkBuffer buffer = VK_NULL_HANDLE;
    VkMemoryRequirements needs;
    VkPhysicalDeviceMemoryProperties all;
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = size,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                              VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    MUST(vkCreateBuffer(device, &info, NULL, &buffer));
    vkGetBufferMemoryRequirements(device, buffer, &needs);
    vkGetPhysicalDeviceMemoryProperties(physical, &all);
    uint32_t type = 0;
    while (!(needs.memoryTypeBits >> type & 1) ||
           (all.memoryTypes[type].propertyFlags & wanted) != wanted)
        type++;
    const VkMemoryAllocateInfo allocate_info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                                .allocationSize = needs.size,
                                                .memoryTypeIndex = type};
    MUST(vkAllocateMemory(device, &allocate_info, NULL, memory));
    MUST(vkBindBufferMemory(device, buffer, *memory, 0));
    return buffer;
}

static void run(VkFFTApplication *application, VkBuffer *buffer)
{
    VkCommandBuffer commands = NULL;
    const VkCommandBufferAllocateInfo info = {.sType =
                                                  VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                              .commandPool = pool,
                                              .commandBufferCount = 1};
    const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
    VkFFTLaunchParams launch = {.commandBuffer = &commands, .buffer = buffer};
    MUST(vkAllocateCommandBuffers(device, &info, &commands));
    MUST(vkBeginCommandBuffer(commands, &begin));
    MUST(VkFFTAppend(application, -1, &launch));
    MUST(vkEndCommandBuffer(commands));
    const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                 .commandBufferCount = 1,
                                 .pCommandBuffers = &commands};
    MUST(vkQueueSubmit(queue, 1, &submit, fence));
    MUST(vkWaitForFences(device, 1, &fence, VK_TRUE, UINT64_MAX));
    MUST(vkResetFences(device, 1, &fence));
    vkFreeCommandBuffers(device, pool, 1, &commands);
}

/* The largest error relative to the largest value. */
static double error_of(unsigned count)
{
    static double complex expected[LARGEST];
    VkDeviceMemory memory = VK_NULL_HANDLE;
    pfUINT size = sizeof(float complex) * count;
    VkBuffer buffer = make_buffer(size, &memory);
    float complex *values = NULL;
    VkFFTApplication application = {0};
    VkFFTConfiguration configuration = {.FFTdim = 1,
                                        .size = {count},
                                        .physicalDevice = &physical,
                                        .device = &device,
                                        .queue = &queue,
                                        .commandPool = &pool,
                                        .fence = &fence,
                                        .isCompilerInitialized = 1,
                                        .buffer = &buffer,
                                        .bufferSize = &size};
    MUST(initializeVkFFT(&application, configuration));
    MUST(vkMapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&values));
    for (unsigned i = 0; i < count; i++) {
        values[i] = (float)(i * 2654435761u >> 8 & 0xffff) / 65536 -
                    I * (float)(i * 40503u & 0xffff) / 65536;
        expected[i] = values[i];
    }
    run(&application, &buffer);
    transform(expected, count);
    double largest = 0, error = 0;
    for (unsigned i = 0; i < count; i++) {
        largest = fmax(largest, cabs(expected[i]));
        error = fmax(error, cabs(expected[i] - values[i]));
    }
    vkUnmapMemory(device, memory);
    deleteVkFFT(&application);
    vkDestroyBuffer(device, buffer, NULL);
    vkFreeMemory(device, memory, NULL);
    return error / largest;
}

int main(void)
{
    bool good = true;
    open_device();
    must(!glslang_initialize_process(), "glslang_initialize_process");
    for (unsigned bits = FIRST_BITS; bits <= LAST_BITS; bits += 2) {
        double error = error_of(1u << bits);
        printf("%u %.6e\n", 1u << bits, error);
        good &= error < 1e-3; /* coarse enough for drivers with imprecise sines */
    }
    glslang_finalize_process();
    vkDestroyFence(device, fence, NULL);
    vkDestroyCommandPool(device, pool, NULL);
    vkDestroyDevice(device, NULL);
    vkDestroyInstance(instance, NULL);
    return !good;
}
