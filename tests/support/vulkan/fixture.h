/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fixture.h - a fake driver with an instance and a device, for tests of the fake and of programs on
 * it. The functions of the device are loaded once, only through the driver's own entry point.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_FIXTURE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_FIXTURE_H

#include "tests/support/check.h"
#include "tests/support/vulkan/fake_vulkan.h"

typedef struct fv_fixture {
    fv_driver *driver;
    PFN_vkGetInstanceProcAddr get;
    VkInstance instance;
    VkPhysicalDevice physical;
    PFN_vkGetDeviceProcAddr get_of_device;
    VkDevice device;
    VkQueue queue;      /* of family 0 */
    VkCommandPool pool; /* of family 0, created at the first use */
} fv_fixture;

/*
 * Creates a driver with the layout (NULL: "amd-bar") and flags, and a device with everything that
 * the driver offers: every extension and feature, and both queues of every family.
 */
void fv_fixture_open(fv_fixture *f, const char *layout, uint32_t flags);

/* Like the function above, with more options. */
void fv_fixture_open_with(fv_fixture *f, const fv_options *options);

/* Like the function above, with a layer between the test and the driver. NULL: no layer. */
void fv_fixture_open_over(fv_fixture *f, const fv_options *options,
                          PFN_vkGetInstanceProcAddr (*over)(PFN_vkGetInstanceProcAddr door));

/* Destroys everything. Fails if there was a message, or if an object is left. */
void fv_fixture_close(fv_fixture *f);

/* Destroys everything, with what the test has left. Fails if there was a message before. */
void fv_fixture_leave(fv_fixture *f);

/* Unit tests of a fixture `f`, which the body or the statement `begin` opens (see UNIT_ON); the end
   leaves it. */
#define FV_UNIT(suite, name) UNIT_ON(suite, name, fv_fixture, f, (void)f, fv_fixture_leave)
#define FV_UNIT_ON(suite, name, begin) UNIT_ON(suite, name, fv_fixture, f, begin, fv_fixture_leave)

/* Returns a function of the device or instance. Fails if it does not exist. */
PFN_vkVoidFunction fv_fixture_function(const fv_fixture *f, const char *name);

#define FV(f, function) ((PFN_##function)fv_fixture_function((f), #function))

/* Checks that the call succeeds. */
#define CHECK_VK(result) CHECK_EQ((uint32_t)(result), (uint32_t)VK_SUCCESS)

/* Checks that the only message is an error that contains the part, and removes it. */
void fv_fixture_expect(fv_fixture *f, const char *part);

/* Makes a call about which the driver writes such a message. */
#define FV_TOLD(f, part, call)                                                                     \
    do {                                                                                           \
        (void)(call);                                                                              \
        fv_fixture_expect(f, part);                                                                \
    } while (0)

/* Create objects and memory. A failure fails the test. */
VkDeviceMemory fv_fixture_memory(fv_fixture *f, uint64_t size, uint32_t type);
VkBuffer fv_fixture_buffer(fv_fixture *f, uint64_t size, VkBufferUsageFlags usage);
VkMemoryRequirements fv_fixture_needs(fv_fixture *f, VkBuffer buffer);

/* A buffer with its own memory of this type. */
VkBuffer fv_fixture_bound(fv_fixture *f, uint64_t size, uint32_t type, VkDeviceMemory *memory);

/* A host-coherent buffer of zeros, and its mapping. */
typedef struct fv_visible {
    VkBuffer buffer;
    VkDeviceMemory memory;
    unsigned char *bytes;
} fv_visible;

fv_visible fv_fixture_visible(fv_fixture *f, uint64_t size);
void fv_fixture_hide(fv_fixture *f, const fv_visible *visible);

/* Returns the 32-bit word with this index. */
uint32_t fv_word(const fv_visible *visible, uint32_t index);

/* Destroys both; either may be VK_NULL_HANDLE. */
void fv_fixture_free(fv_fixture *f, VkBuffer buffer, VkDeviceMemory memory);

/*
 * Begin a command buffer from a pool of the fixture; end it, submit it and wait for it.
 */
VkCommandBuffer fv_fixture_begin(fv_fixture *f);
void fv_fixture_run(fv_fixture *f, VkCommandBuffer commands);

/* Returns the first memory type with exactly these flags. */
uint32_t fv_fixture_type(const fv_fixture *f, VkMemoryPropertyFlags flags);

/* Returns the first host-coherent memory type, whatever its other flags. */
uint32_t fv_fixture_coherent(const fv_fixture *f);

#endif
