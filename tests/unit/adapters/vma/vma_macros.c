/*
 * vma_macros.c - a program that defines macros of VMA before it includes the header.
 */
#define VMA_STATIC_VULKAN_FUNCTIONS 1
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include "quire/quire_vma.h"
#undef VMA_STATIC_VULKAN_FUNCTIONS

#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;

/* Stands for that of the loader, which the tests are not linked with. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char *name)
{
    return v.vulkan.get(instance, name);
}

/* VMA does not read these members then, and programs leave them uninitialized. */
UNIT(vma_macros, getters_are_not_read_without_dynamic_functions)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    VkBuffer buffer;
    vma_fixture_begin(&v, NULL, 0);
    memset(&v.functions.vkGetInstanceProcAddr, 0xcd, sizeof v.functions.vkGetInstanceProcAddr);
    memset(&v.functions.vkGetDeviceProcAddr, 0xcd, sizeof v.functions.vkGetDeviceProcAddr);
    v.functions.vkCreateBuffer = FV(&v.vulkan, vkCreateBuffer);
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    VmaAllocation a = vma_fixture_buffer(&v, 1000, &options, &buffer);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vma_fixture_close(&v);
}
