/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * real_vulkan.h - a Vulkan driver of this machine under the validation layer, wrapped as a quire
 * device. Any message of the layer fails the test.
 *
 * The loader's environment selects the driver (VK_ICD_FILENAMES); tests/meson.build sets it.
 * Without a loader, a driver or the layer the test is skipped, and real_begin states the reason.
 */
#ifndef QUIRE_TESTS_SUPPORT_REAL_VULKAN_H
#define QUIRE_TESTS_SUPPORT_REAL_VULKAN_H

#include <pthread.h>

#include "quire/quire.h"
#include "quire/lluvia.h"
#include "tests/support/unit.h"

enum { REAL_MOST_EXTENSIONS = 5 };

typedef struct real_vulkan {
    PFN_vkGetInstanceProcAddr get;
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;                   /* of family 0 */
    quire_vulkan_queue sparse_queue; /* if family 0 does not bind and another one does */
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDeviceProperties properties;
    pthread_mutex_t queue_mutex;
    uint64_t locked;     /* how often quire used the queue */
    bool best_practices; /* enabled too, except for messages that contain a text of `allowed` */
    uint64_t messages;
    char first[2048]; /* the first message */
    quire_device *quire;

    /* created with these */
    VkApplicationInfo application;
    VkInstanceCreateInfo instance_info;
    VkDeviceCreateInfo device_info;
    const char *extensions[REAL_MOST_EXTENSIONS]; /* requested extensions that the driver has */
    VkPhysicalDeviceBufferDeviceAddressFeatures address;
    VkPhysicalDeviceMaintenance4Features maintenance4;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceFeatures features; /* the features of sparse objects that the driver has */
    quire_vulkan_wrap_options wrap;    /* of quire; may be changed before real_wrap */
} real_vulkan;

/* Skips the test, with the reason, if this machine lacks a requirement. */
void real_begin(real_vulkan *r);

/* The same, with the layer's best practices. */
void real_begin_strict(real_vulkan *r);

/* Skips the test, with a message, if the driver lacks the extension. */
void real_require(const real_vulkan *r, const char *extension);

/* Wraps the device. real_begin_wrapped does both. */
void real_wrap(real_vulkan *r);
void real_begin_wrapped(real_vulkan *r);

/* Destroys everything. Fails the test if the layer wrote a message. */
void real_end(real_vulkan *r);

/* Unit tests on a driver `r`, which the body or the statement `begin` begins (see UNIT_ON). */
#define REAL_UNIT(suite, name) UNIT_ON(suite, name, real_vulkan, r, (void)r, real_end)
#define REAL_UNIT_ON(suite, name, begin) UNIT_ON(suite, name, real_vulkan, r, begin, real_end)

/* A function of the device. */
#define REAL(r, name) ((PFN_##name)real_function((r), #name))
PFN_vkVoidFunction real_function(const real_vulkan *r, const char *name);

quire_memory *real_memory(real_vulkan *r, const quire_memory_options *options);

/* Destroys a memory without live allocations. */
void real_memory_end(quire_memory *memory);

#endif
