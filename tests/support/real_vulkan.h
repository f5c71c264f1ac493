/*
 * real_vulkan.h - a Vulkan driver of this machine under the validation layer, wrapped as a quire
 * device. Any message of the layer fails the test.
 *
 * Which driver that is, the loader's environment says (VK_ICD_FILENAMES); tests/meson.build sets
 * it. Without a loader, a driver or the layer there is nothing to test: real_begin says why.
 */
#ifndef QUIRE_TESTS_SUPPORT_REAL_VULKAN_H
#define QUIRE_TESTS_SUPPORT_REAL_VULKAN_H

#include <pthread.h>

#include "quire/quire.h"
#include "quire/vulkan.h"
#include "tests/support/unit.h"

enum { REAL_MOST_EXTENSIONS = 5 };

typedef struct real_vulkan {
    PFN_vkGetInstanceProcAddr get;
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDeviceProperties properties;
    pthread_mutex_t queue_mutex;
    uint64_t locked;     /* times that quire took the queue */
    bool best_practices; /* asked for too, but for what `allowed` contains */
    uint64_t messages;
    char first[2048]; /* the first message */
    quire_device *quire;

    /* what the two were made with */
    VkApplicationInfo application;
    VkInstanceCreateInfo instance_info;
    VkDeviceCreateInfo device_info;
    const char *extensions[REAL_MOST_EXTENSIONS]; /* that the driver has of those wanted */
    VkPhysicalDeviceBufferDeviceAddressFeatures address;
    VkPhysicalDeviceMaintenance4Features maintenance4;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceFeatures features; /* those of sparse objects, where the driver has them */
    quire_vulkan_wrap_options wrap;    /* of quire; to be changed before real_wrap */
} real_vulkan;

/* The same, with the layer's best practices. */
bool real_begin_strict(real_vulkan *r);

/* False: this machine has not got what it takes; the test is skipped, with the reason. */
bool real_begin(real_vulkan *r);

/* True: the driver has no such extension; the test is skipped, which is said. */
bool real_lacks(const real_vulkan *r, const char *extension);

/* Wraps it. real_begin_wrapped does both. */
void real_wrap(real_vulkan *r);
bool real_begin_wrapped(real_vulkan *r);

/* Ends everything, and fails the test where the layer had something to say. */
void real_end(real_vulkan *r);

/* A function of the device. */
#define REAL(r, name) ((PFN_##name)real_function((r), #name))
PFN_vkVoidFunction real_function(const real_vulkan *r, const char *name);

quire_memory *real_memory(real_vulkan *r, const quire_memory_options *options);

/* Ends a memory in which nothing is left. */
void real_memory_end(quire_memory *memory);

#endif
