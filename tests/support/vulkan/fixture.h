/*
 * fixture.h - a fake driver with an instance and a device, for tests of the fake itself and of what
 * runs on it. The functions of the device are found once, strictly through its own door.
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
    VkQueue queue; /* of family 0 */
} fv_fixture;

/*
 * A driver with the layout (NULL: "amd-bar") and flags, and a device of it with all it offers: every
 * extension and feature, and both queues of every family.
 */
void fv_fixture_open(fv_fixture *f, const char *layout, uint32_t flags);

/* The same with further options. */
void fv_fixture_open_with(fv_fixture *f, const fv_options *options);

/* The same with something between the test and the driver's door; NULL: nothing. */
void fv_fixture_open_over(fv_fixture *f, const fv_options *options,
                          PFN_vkGetInstanceProcAddr (*over)(PFN_vkGetInstanceProcAddr door));

/* Ends all; fails where a message was given or anything is left alive. */
void fv_fixture_close(fv_fixture *f);

/* A function of the device or instance, which must be there. */
PFN_vkVoidFunction fv_fixture_function(const fv_fixture *f, const char *name);

#define FV(f, function) ((PFN_##function)fv_fixture_function((f), #function))

/* The call succeeds. */
#define CHECK_VK(result) CHECK_EQ((uint32_t)(result), (uint32_t)VK_SUCCESS)

/* Exactly one message, an error that contains the part; it is forgotten then. */
void fv_fixture_expect(fv_fixture *f, const char *part);

/* Objects and memory that must come about. */
VkDeviceMemory fv_fixture_memory(fv_fixture *f, uint64_t size, uint32_t type);
VkBuffer fv_fixture_buffer(fv_fixture *f, uint64_t size, VkBufferUsageFlags usage);
VkMemoryRequirements fv_fixture_needs(fv_fixture *f, VkBuffer buffer);

/* The first memory type that has exactly these flags. */
uint32_t fv_fixture_type(const fv_fixture *f, VkMemoryPropertyFlags flags);

#endif
