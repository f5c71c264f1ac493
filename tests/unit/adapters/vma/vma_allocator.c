/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_allocator.c - creation and destruction of an allocator, and what it says about the device.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name) VMA_CASE(vma_allocator, name, NULL, 0)

/* ---- creation ------------------------------------------------------------------------------- */

CASE(tells_the_handles_and_properties_of_the_device)
{
    VmaAllocatorInfo info;
    const VkPhysicalDeviceProperties *properties;
    const VkPhysicalDeviceMemoryProperties *memory;
    VkMemoryPropertyFlags flags;
    vmaGetAllocatorInfo(v.allocator, &info);
    CHECK_EQ((uintptr_t)info.instance, (uintptr_t)v.vulkan.instance);
    CHECK_EQ((uintptr_t)info.physicalDevice, (uintptr_t)v.vulkan.physical);
    CHECK_EQ((uintptr_t)info.device, (uintptr_t)v.vulkan.device);
    vmaGetPhysicalDeviceProperties(v.allocator, &properties);
    CHECK_EQ(properties->deviceType, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    vmaGetMemoryProperties(v.allocator, &memory);
    CHECK(memory->memoryTypeCount > 1);
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
        vmaGetMemoryTypeProperties(v.allocator, i, &flags);
        CHECK_EQ(flags, memory->memoryTypes[i].propertyFlags);
    }
    vmaSetCurrentFrameIndex(v.allocator, 7);
}

UNIT(vma_allocator, null_arguments_and_handles_are_refused)
{
    VmaAllocator none = (VmaAllocator)(uintptr_t)1;
    vma_fixture_begin(&v, NULL, 0);
    CHECK_EQ(vmaCreateAllocator(NULL, &none), INVALID);
    CHECK(!none);
    CHECK_EQ(vmaCreateAllocator(&v.info, NULL), INVALID);
    VmaAllocatorCreateInfo info = v.info;
    info.device = VK_NULL_HANDLE;
    CHECK_EQ(vmaCreateAllocator(&info, &none), INVALID);
    CHECK_HAS(quire_last_error(), "device is null");
    info = v.info;
    info.instance = VK_NULL_HANDLE;
    CHECK_EQ(vmaCreateAllocator(&info, &none), INVALID);
    vmaDestroyAllocator(NULL);
    vma_fixture_close(&v);
}

UNIT(vma_allocator, flags_without_a_counterpart_are_named)
{
    VmaAllocator none;
    const VmaDeviceMemoryCallbacks empty = {.pUserData = &v};
    vma_fixture_begin(&v, NULL, 0);
    v.info.flags = 0x400;
    CHECK_EQ(vmaCreateAllocator(&v.info, &none), MISSING);
    CHECK_HAS(quire_last_error(), "flags 0x400");
    v.info.flags = VMA_ALLOCATOR_CREATE_KHR_EXTERNAL_MEMORY_WIN32_BIT;
    CHECK_EQ(vmaCreateAllocator(&v.info, &none), MISSING);
    v.info.flags = 0x1ff; /* all others */
    v.info.pDeviceMemoryCallbacks = &empty;
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    vma_fixture_close(&v);
}

/* ---- functions ------------------------------------------------------------------------------ */

UNIT(vma_allocator, a_missing_function_is_named)
{
    VmaAllocator none;
    vma_fixture_begin(&v, NULL, 0);
    fv_hide(v.vulkan.driver, "vkBindImageMemory2");
    CHECK_EQ(vmaCreateAllocator(&v.info, &none), VK_ERROR_INITIALIZATION_FAILED);
    CHECK_HAS(quire_last_error(), "vkBindImageMemory2");
    vma_fixture_close(&v);
}

static struct {
    PFN_vkCreateBuffer create_buffer;
    PFN_vkAllocateMemory allocate_memory;
    uint32_t buffers, memories;
} given;

static VkResult VKAPI_CALL create_buffer(VkDevice device, const VkBufferCreateInfo *info,
                                         const VkAllocationCallbacks *callbacks, VkBuffer *buffer)
{
    given.buffers++;
    return given.create_buffer(device, info, callbacks, buffer);
}

static VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo *info,
                                           const VkAllocationCallbacks *callbacks,
                                           VkDeviceMemory *memory)
{
    given.memories++;
    return given.allocate_memory(device, info, callbacks, memory);
}

UNIT(vma_allocator, functions_of_the_program_are_called)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    vma_fixture_begin(&v, NULL, 0);
    given.buffers = given.memories = 0;
    given.create_buffer = FV(&v.vulkan, vkCreateBuffer);
    given.allocate_memory = FV(&v.vulkan, vkAllocateMemory);
    v.functions.vkCreateBuffer = create_buffer;
    v.functions.vkAllocateMemory = allocate_memory;
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    vma_fixture_hold(&v, 1000, &options);
    CHECK(given.buffers >= 1); /* a checked build makes one of its own */
    CHECK_EQ(given.memories, 1);
    vma_fixture_close(&v);
}

/* A program that gives every function that VMA calls, and one getter. */
UNIT(vma_allocator, the_getter_of_the_device_is_found_by_that_of_the_instance)
{
    vma_fixture_begin(&v, NULL, 0);
    v.functions.vkGetDeviceProcAddr = NULL;
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    vma_fixture_close(&v);
}

/* ---- what the flags enable ------------------------------------------------------------------ */

static fv_memory_info memory_with(VmaAllocatorCreateFlags flags,
                                  const VmaAllocationCreateInfo *options)
{
    VkBuffer buffer;
    VmaAllocationInfo info;
    fv_memory_info memory;
    vma_fixture_open(&v, NULL, flags);
    VmaAllocation allocation = vma_fixture_buffer(&v, 1000, options, &buffer);
    vmaGetAllocationInfo(v.allocator, allocation, &info);
    CHECK(fv_memory_of(v.vulkan.driver, info.deviceMemory, &memory));
    vmaDestroyBuffer(v.allocator, buffer, allocation);
    vma_fixture_close(&v);
    return memory;
}

UNIT(vma_allocator, device_addresses_need_the_flag)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    CHECK(!memory_with(0, &options).addressed);
    CHECK(memory_with(VMA_ALLOCATOR_CREATE_BUFFER_DEVICE_ADDRESS_BIT, &options).addressed);
}

UNIT(vma_allocator, a_priority_needs_the_flag_and_dedicated_memory)
{
    const VmaAllocationCreateInfo shared = {.usage = VMA_MEMORY_USAGE_AUTO, .priority = 0.75f};
    const VmaAllocationCreateInfo dedicated = {.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT,
                                               .usage = VMA_MEMORY_USAGE_AUTO,
                                               .priority = 0.75f};
    const VmaAllocationCreateInfo least = {.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT,
                                           .usage = VMA_MEMORY_USAGE_AUTO};
    const VmaAllocatorCreateFlags flag = VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT;
    CHECK(memory_with(0, &dedicated).priority == 0.5f);
    CHECK(memory_with(flag, &shared).priority == 0.5f);
    CHECK(memory_with(flag, &dedicated).priority == 0.75f);
    CHECK(memory_with(flag, &least).priority < 0.001f);
}

UNIT(vma_allocator, device_coherent_types_need_the_flag)
{
    const VmaAllocationCreateInfo options = {.requiredFlags =
                                                 VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD};
    uint32_t type;
    vma_fixture_open(&v, "amd-bar", 0);
    CHECK_EQ(vmaFindMemoryTypeIndex(v.allocator, UINT32_MAX, &options, &type), MISSING);
    vma_fixture_close(&v);
    vma_fixture_open(&v, "amd-bar", VMA_ALLOCATOR_CREATE_AMD_DEVICE_COHERENT_MEMORY_BIT);
    CHECK_VK(vmaFindMemoryTypeIndex(v.allocator, UINT32_MAX, &options, &type));
    vma_fixture_close(&v);
}

/* ---- heap limits ---------------------------------------------------------------------------- */

UNIT(vma_allocator, a_heap_limit_is_the_size_of_the_heap)
{
    VkDeviceSize limits[VK_MAX_MEMORY_HEAPS];
    const VkPhysicalDeviceMemoryProperties *memory;
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO,
                                             .requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++)
        limits[i] = 1 << 20;
    vma_fixture_begin(&v, NULL, 0);
    v.info.pHeapSizeLimit = limits;
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    vmaGetMemoryProperties(v.allocator, &memory);
    CHECK_EQ(memory->memoryHeaps[0].size, 1 << 20);
    vma_fixture_refuse(&v, 2 << 20, &options, FULL);
    vma_fixture_close(&v);
}

/* ---- host memory ---------------------------------------------------------------------------- */

/* Returns the result of a short program whose n-th request for host memory fails. */
static VkResult run_without(vma_host *host, uint32_t fail_at)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    VkBuffer buffer;
    VmaAllocation allocation;
    vma_fixture_begin(&v, NULL, 0);
    v.info.pAllocationCallbacks = vma_host_begin(host, fail_at, false);
    VkResult result = vmaCreateAllocator(&v.info, &v.allocator);
    if (!result) {
        result = vmaCreateBuffer(v.allocator, &info, &options, &buffer, &allocation, NULL);
        if (!result)
            vmaSetAllocationName(v.allocator, allocation, "name");
        vmaDestroyBuffer(v.allocator, buffer, allocation);
    }
    vma_fixture_close(&v);
    return result;
}

UNIT(vma_allocator, each_failing_host_allocation_is_an_error_and_loses_nothing)
{
    vma_host host;
    CHECK_VK(run_without(&host, 0));
    const uint32_t calls = host.calls;
    CHECK_EQ(host.blocks, 0);
    CHECK(calls > 4);
    for (uint32_t n = 1; n <= calls; n++) {
        VkResult result = run_without(&host, n);
        CHECK_EQ(host.blocks, 0);
        CHECK(result == VK_ERROR_OUT_OF_HOST_MEMORY || n + 4 > calls);
    }
}

/* ---- destruction ---------------------------------------------------------------------------- */

CASE(stays_while_an_allocation_or_pool_lives)
{
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    const VmaPoolCreateInfo pool_info = {.memoryTypeIndex = 0};
    VmaAllocationInfo info;
    VkBuffer buffer;
    VmaPool pool;
    VmaAllocation allocation = vma_fixture_buffer(&v, 1000, &options, &buffer);
    vmaDestroyAllocator(v.allocator);
    CHECK_HAS(quire_last_error(), "live allocations: 1, pools: 0");
    vmaGetAllocationInfo(v.allocator, allocation, &info);
    CHECK(info.size >= 1000);
    vmaDestroyBuffer(v.allocator, buffer, allocation);
    CHECK_VK(vmaCreatePool(v.allocator, &pool_info, &pool));
    vmaDestroyAllocator(v.allocator);
    CHECK_HAS(quire_last_error(), "live allocations: 0, pools: 1");
    vmaDestroyPool(v.allocator, pool);
}
