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
    VkQueue queue;      /* of family 0 */
    VkCommandPool pool; /* of family 0, made when it is needed */
} fv_fixture;

/*
 * A driver with the layout (NULL: "amd-bar") and flags, and a device of it with all it offers:
 * every extension and feature, and both queues of every family.
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

/* A buffer in memory of its own, of this type. */
VkBuffer fv_fixture_bound(fv_fixture *f, uint64_t size, uint32_t type, VkDeviceMemory *memory);

/* A coherent buffer, all bytes 0, and where the host sees it. */
typedef struct fv_visible {
    VkBuffer buffer;
    VkDeviceMemory memory;
    unsigned char *bytes;
} fv_visible;

fv_visible fv_fixture_visible(fv_fixture *f, uint64_t size);
void fv_fixture_hide(fv_fixture *f, const fv_visible *visible);

/* Its four bytes number index. */
uint32_t fv_word(const fv_visible *visible, uint32_t index);

/* Destroys both; either may be VK_NULL_HANDLE. */
void fv_fixture_free(fv_fixture *f, VkBuffer buffer, VkDeviceMemory memory);

/*
 * A command buffer that records, from a pool of the fixture's; and its end: submitted and waited
 * for.
 */
VkCommandBuffer fv_fixture_begin(fv_fixture *f);
void fv_fixture_run(fv_fixture *f, VkCommandBuffer commands);

/* The first memory type that has exactly these flags. */
uint32_t fv_fixture_type(const fv_fixture *f, VkMemoryPropertyFlags flags);

/* The first that the host sees without flushing, whatever else it is. */
uint32_t fv_fixture_coherent(const fv_fixture *f);

#endif
