/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layer_main.c - bench_layer: what the calls on memory objects of a Vulkan device cost a program
 * that has one for each buffer. It does not use quire; it is run with the Vulkan layer and without
 * (bench/layer_tables.py). A JSON document goes to standard output.
 *
 * The device is the first one of the loader, by VK_ICD_FILENAMES.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <vulkan/vulkan.h>

#include "bench/options.h"
#include "src/base/system.h"

static const usage USAGE = {
    "bench_layer",
    "usage: bench_layer [options]\n"
    "  --reps N     repeats, of which the fastest counts (default 20)\n"
    "  --objects N  memory objects that exist at once (default 1000)\n"
    "  --size N     bytes of each (default 65536)\n",
};

#define CALLS(X) X(allocate) X(bind) X(map) X(unmap) X(free)
typedef enum call {
#define X(name) CALL_##name,
    CALLS(X)
#undef X
        CALL_COUNT
} call;

typedef struct bench_layer {
    uint64_t reps, objects, size;
    char device_name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkBuffer *buffers;
    VkDeviceMemory *memories;
    VkMemoryAllocateInfo info;
    uint64_t least[CALL_COUNT]; /* nanoseconds for all objects */
} bench_layer;

static void must(VkResult code, const char *what)
{
    if (!code)
        return;
    fprintf(stderr, "bench_layer: %s gives %d\n", what, code);
    exit(1);
}

#define MUST(call) must((call), #call)

static void open_device(bench_layer *b)
{
    const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                           .apiVersion = VK_API_VERSION_1_1};
    const VkInstanceCreateInfo instance = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                           .pApplicationInfo = &application};
    const float priority = 1;
    const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                           .queueCount = 1,
                                           .pQueuePriorities = &priority};
    const VkDeviceCreateInfo device = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                       .queueCreateInfoCount = 1,
                                       .pQueueCreateInfos = &queue};
    VkPhysicalDeviceProperties properties;
    uint32_t one = 1;
    MUST(vkCreateInstance(&instance, NULL, &b->instance));
    VkResult code = vkEnumeratePhysicalDevices(b->instance, &one, &b->physical);
    must(code < 0 || !one ? VK_ERROR_INITIALIZATION_FAILED : VK_SUCCESS, "the list of devices");
    vkGetPhysicalDeviceProperties(b->physical, &properties);
    snprintf(b->device_name, sizeof b->device_name, "%s", properties.deviceName);
    MUST(vkCreateDevice(b->physical, &device, NULL, &b->device));
}

static VkBuffer make_buffer(const bench_layer *b)
{
    VkBuffer buffer = VK_NULL_HANDLE;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .size = b->size,
                                     .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
    MUST(vkCreateBuffer(b->device, &info, NULL, &buffer));
    return buffer;
}

/* Chooses a host-visible memory type for the buffers. */
static void choose_memory(bench_layer *b)
{
    VkPhysicalDeviceMemoryProperties all;
    VkMemoryRequirements needs;
    VkBuffer buffer = make_buffer(b);
    vkGetBufferMemoryRequirements(b->device, buffer, &needs);
    vkDestroyBuffer(b->device, buffer, NULL);
    vkGetPhysicalDeviceMemoryProperties(b->physical, &all);
    uint32_t type = 0;
    while (type < all.memoryTypeCount &&
           !(needs.memoryTypeBits >> type & 1 &&
             all.memoryTypes[type].propertyFlags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT))
        type++;
    must(type == all.memoryTypeCount ? VK_ERROR_FEATURE_NOT_PRESENT : VK_SUCCESS,
         "the search for host-visible memory");
    b->info = (VkMemoryAllocateInfo){.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                     .allocationSize = needs.size,
                                     .memoryTypeIndex = type};
}

static void make_call(bench_layer *b, call which, uint64_t i)
{
    void *pointer = NULL;
    switch (which) {
    case CALL_allocate:
        MUST(vkAllocateMemory(b->device, &b->info, NULL, &b->memories[i]));
        break;
    case CALL_bind:
        MUST(vkBindBufferMemory(b->device, b->buffers[i], b->memories[i], 0));
        break;
    case CALL_map:
        MUST(vkMapMemory(b->device, b->memories[i], 0, VK_WHOLE_SIZE, 0, &pointer));
        break;
    case CALL_unmap:
        vkUnmapMemory(b->device, b->memories[i]);
        break;
    default:
        vkFreeMemory(b->device, b->memories[i], NULL);
        break;
    }
}

/* Buffers are created and destroyed outside of the measured times. */
static void run_once(bench_layer *b)
{
    for (uint64_t i = 0; i < b->objects; i++)
        b->buffers[i] = make_buffer(b);
    for (call which = 0; which < CALL_COUNT; which++) {
        for (uint64_t i = 0; which == CALL_free && i < b->objects; i++)
            vkDestroyBuffer(b->device, b->buffers[i], NULL);
        uint64_t start = qi_clock();
        for (uint64_t i = 0; i < b->objects; i++)
            make_call(b, which, i);
        uint64_t spent = qi_clock() - start;
        if (!b->least[which] || spent < b->least[which])
            b->least[which] = spent;
    }
}

static void print(const bench_layer *b)
{
    static const char *const NAMES[] = {
#define X(name) #name,
        CALLS(X)
#undef X
    };
    printf("{\"device\": \"%s\", \"objects\": %" PRIu64 ", \"size\": %" PRIu64
           ", \"reps\": %" PRIu64,
           b->device_name, b->objects, b->size, b->reps);
    for (call which = 0; which < CALL_COUNT; which++)
        printf(", \"%s\": %.1f", NAMES[which], (double)b->least[which] / (double)b->objects);
    printf("}\n");
}

int main(int argc, char **argv)
{
    enum { MAX_OBJECTS = 4000, MAX_SIZE = 1 << 24, MAX_REPEATS = 1000 };
    bench_layer b = {.reps = 20, .objects = 1000, .size = 65536};
    const option_rule rules[] = {
        {"reps", .number = &b.reps, .max = MAX_REPEATS},
        {"objects", .number = &b.objects, .max = MAX_OBJECTS},
        {"size", .number = &b.size, .max = MAX_SIZE},
    };
    options_parse(&USAGE, rules, sizeof rules / sizeof *rules, argc, argv);
    open_device(&b);
    b.buffers = calloc(b.objects, sizeof *b.buffers);
    b.memories = calloc(b.objects, sizeof *b.memories);
    must(b.buffers && b.memories ? VK_SUCCESS : VK_ERROR_OUT_OF_HOST_MEMORY, "the list of objects");
    choose_memory(&b);
    for (uint64_t i = 0; i < b.reps; i++)
        run_once(&b);
    print(&b);
    free(b.buffers);
    free(b.memories);
    vkDestroyDevice(b.device, NULL);
    vkDestroyInstance(b.instance, NULL);
    return 0;
}
