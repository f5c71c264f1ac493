/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_misuse.c - arguments that contradict each other, overflow, or that VMA asserts.
 */
#include <pthread.h>

#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name, layout, flags) VMA_CASE(vma_misuse, name, layout, flags)
static const VmaAllocationCreateInfo AUTO = {.usage = VMA_MEMORY_USAGE_AUTO};
static const VmaAllocationCreateInfo ANY = {.flags = 0};

/* ---- sizes ---------------------------------------------------------------------------------- */

/* The granularity of the layout is above 1, so that sizes are rounded. */
CASE(sizes_that_overflow_are_out_of_memory, "nvidia-bar", 0)
{
    const VkDeviceSize sizes[] = {UINT64_MAX, UINT64_MAX - 5000, UINT64_MAX / 2 + 2};
    const VkPhysicalDeviceProperties *properties;
    VmaAllocation a;
    vmaGetPhysicalDeviceProperties(v.allocator, &properties);
    CHECK(properties->limits.bufferImageGranularity > 1);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const VkMemoryRequirements needs = {
            .size = sizes[i], .alignment = 256, .memoryTypeBits = UINT32_MAX};
        VmaAllocationCreateInfo options = ANY;
        for (int is_dedicated = 0; is_dedicated < 2; is_dedicated++) {
            options.flags = is_dedicated ? VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT : 0;
            CHECK_EQ(vmaAllocateMemory(v.allocator, &needs, &options, &a, NULL), FULL);
            options.flags |= VMA_ALLOCATION_CREATE_WITHIN_BUDGET_BIT;
            CHECK_EQ(vmaAllocateMemory(v.allocator, &needs, &options, &a, NULL), FULL);
            CHECK(!a);
        }
    }
}

CASE(an_alignment_of_0_is_1, NULL, 0)
{
    const VkMemoryRequirements needs = {.size = 256, .alignment = 0, .memoryTypeBits = UINT32_MAX};
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    VmaAllocation a, b;
    VkBuffer buffer;
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &ANY, &a, NULL));
    CHECK_VK(vmaCreateBufferWithAlignment(v.allocator, &info, &AUTO, 0, &buffer, &b, NULL));
    vmaFreeMemory(v.allocator, a);
    vmaDestroyBuffer(v.allocator, buffer, b);
}

/* The product of the number of blocks and their size is 2^64. */
CASE(more_blocks_than_numbers_are_out_of_memory, NULL, 0)
{
    const VmaPoolCreateInfo info = {.blockSize = 1 << 20, .minBlockCount = (size_t)1 << 44};
    VmaPool pool;
    CHECK_EQ(vmaCreatePool(v.allocator, &info, &pool), FULL);
    CHECK(!pool);
}

CASE(an_alias_ends_within_its_allocation, NULL, 0)
{
    const VkMemoryRequirements needs = {
        .size = 1 << 20, .alignment = 65536, .memoryTypeBits = UINT32_MAX};
    const VkBufferCreateInfo whole = vma_fixture_buffer_info(1 << 20);
    VmaAllocation a;
    VkBuffer buffer;
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &ANY, &a, NULL));
    CHECK_EQ(vmaCreateAliasingBuffer2(v.allocator, a, 65536, &whole, &buffer), INVALID);
    CHECK_HAS(quire_last_error(), "1048576 bytes at 65536 of an allocation");
    CHECK(!buffer);
    CHECK_VK(vmaCreateAliasingBuffer(v.allocator, a, &whole, &buffer));
    vmaDestroyBuffer(v.allocator, buffer, a);
}

/* ---- what the flags of the allocator exclude ------------------------------------------------ */

CASE(device_addresses_need_the_flag_of_the_allocator, NULL, 0)
{
    VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    const VkMemoryRequirements needs = {
        .size = 65536, .alignment = 65536, .memoryTypeBits = UINT32_MAX};
    VmaAllocation a, memory;
    VkBuffer buffer;
    info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &ANY, &memory, NULL));
    CHECK_EQ(vmaCreateBuffer(v.allocator, &info, &AUTO, &buffer, &a, NULL),
             VK_ERROR_INITIALIZATION_FAILED);
    CHECK_HAS(quire_last_error(), "BUFFER_DEVICE_ADDRESS_BIT");
    CHECK_EQ(vmaCreateAliasingBuffer(v.allocator, memory, &info, &buffer),
             VK_ERROR_INITIALIZATION_FAILED);
    CHECK(!buffer && !a);
    vmaFreeMemory(v.allocator, memory);
}

static void *VKAPI_CALL never(void *user, size_t size, size_t alignment,
                              VkSystemAllocationScope scope)
{
    (void)user, (void)size, (void)alignment, (void)scope;
    return NULL;
}

UNIT(vma_misuse, callbacks_without_functions_are_refused)
{
    const VkAllocationCallbacks empty = {.pUserData = NULL}, half = {.pfnAllocation = never};
    vma_fixture_begin(&v, NULL, 0);
    v.info.pAllocationCallbacks = &empty;
    CHECK_EQ(vmaCreateAllocator(&v.info, &v.allocator), INVALID);
    v.info.pAllocationCallbacks = &half;
    CHECK_EQ(vmaCreateAllocator(&v.info, &v.allocator), INVALID);
    CHECK_HAS(quire_last_error(), "pfnAllocation or pfnFree is null");
    CHECK(!v.allocator);
    vma_fixture_close(&v);
}

/* As in VMA: a block of an explicit size is shared, whatever the driver prefers. */
UNIT(vma_misuse, a_pool_of_blocks_has_no_object_that_requires_dedicated_memory)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    for (int is_required = 0; is_required < 2; is_required++) {
        VmaPoolCreateInfo create = {.blockSize = 1 << 20};
        VmaAllocationCreateInfo options = ANY;
        VmaAllocation a;
        VkBuffer buffer;
        vma_fixture_begin(&v, NULL,
                          FV_DEDICATED_BUFFERS |
                              (is_required ? FV_REQUIRE_DEDICATED : FV_PREFER_DEDICATED));
        CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
        CHECK_VK(vmaFindMemoryTypeIndexForBufferInfo(v.allocator, &info, &AUTO,
                                                     &create.memoryTypeIndex));
        CHECK_VK(vmaCreatePool(v.allocator, &create, &options.pool));
        VkResult result = vmaCreateBuffer(v.allocator, &info, &options, &buffer, &a, NULL);
        CHECK_EQ(result, is_required ? MISSING : VK_SUCCESS);
        vmaDestroyBuffer(v.allocator, buffer, a);
        vmaDestroyPool(v.allocator, options.pool);
        vma_fixture_close(&v);
    }
}

CASE(priorities_out_of_range_do_no_harm, NULL, VMA_ALLOCATOR_CREATE_EXT_MEMORY_PRIORITY_BIT)
{
    const float priorities[] = {-1, 0, 0.5F, 1, 2, __builtin_nanf("")};
    VmaAllocationCreateInfo options = AUTO;
    options.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT;
    for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++) {
        const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
        VmaAllocation a;
        VkBuffer buffer;
        options.priority = priorities[i];
        VkResult result = vmaCreateBuffer(v.allocator, &info, &options, &buffer, &a, NULL);
        CHECK_EQ(result, priorities[i] > 1 ? INVALID : VK_SUCCESS);
        vmaDestroyBuffer(v.allocator, buffer, a);
    }
}

/* ---- each refusal has its reason ------------------------------------------------------------ */

UNIT(vma_misuse, memory_that_must_be_dedicated_is_always_new)
{
    VmaAllocationCreateInfo options = AUTO;
    options.flags = VMA_ALLOCATION_CREATE_NEVER_ALLOCATE_BIT;
    vma_fixture_open_driver(&v, NULL, FV_DEDICATED_BUFFERS | FV_REQUIRE_DEDICATED);
    vma_fixture_refuse(&v, 1000, &options, MISSING);
    vma_fixture_close(&v);
}

UNIT(vma_misuse, a_limit_of_0_closes_the_heap)
{
    const VkDeviceSize limits[VK_MAX_MEMORY_HEAPS] = {0};
    vma_fixture_begin(&v, NULL, 0);
    v.info.pHeapSizeLimit = limits;
    CHECK_VK(vmaCreateAllocator(&v.info, &v.allocator));
    vma_fixture_refuse(&v, 1, &AUTO, FULL);
    vma_fixture_close(&v);
}

UNIT(vma_misuse, different_exports_of_memory_types_are_refused)
{
    const VkExternalMemoryHandleTypeFlags types[VK_MAX_MEMORY_TYPES] = {
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT};
    vma_fixture_begin(&v, NULL, 0);
    v.info.pTypeExternalMemoryHandleTypes = types;
    CHECK_EQ(vmaCreateAllocator(&v.info, &v.allocator), MISSING);
    CHECK_HAS(quire_last_error(), "different handle types");
    vma_fixture_close(&v);
}

CASE(the_mask_of_the_options_restricts_a_search, NULL, 0)
{
    VmaAllocationCreateInfo options = {.memoryTypeBits = 1 << 1};
    uint32_t type;
    CHECK_VK(vmaFindMemoryTypeIndex(v.allocator, UINT32_MAX, &options, &type));
    CHECK_EQ(type, 1);
    CHECK_EQ(vmaFindMemoryTypeIndex(v.allocator, 1, &options, &type), MISSING);
}

CASE(a_flush_at_the_end_of_an_image_does_nothing, NULL, 0)
{
    VmaAllocationCreateInfo options = AUTO;
    const VkImageCreateInfo info = vma_fixture_image_info(16, VK_IMAGE_TILING_LINEAR);
    VmaAllocation a;
    VkImage image;
    options.flags = VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT;
    CHECK_VK(vmaCreateImage(v.allocator, &info, &options, &image, &a, NULL));
    VmaAllocationInfo written;
    vmaGetAllocationInfo(v.allocator, a, &written);
    CHECK_VK(vmaFlushAllocation(v.allocator, a, written.size, VK_WHOLE_SIZE)); /* nothing is left */
    vmaDestroyImage(v.allocator, image, a);
}

/* The leak checker of the test finds a name that is lost. */
CASE(a_failed_allocation_loses_no_name, NULL, 0)
{
    char name[] = "a name of an allocation";
    const VkMemoryRequirements needs = {.size = 1, .alignment = 1, .memoryTypeBits = 0};
    const VmaAllocationCreateInfo options = {
        .flags = VMA_ALLOCATION_CREATE_USER_DATA_COPY_STRING_BIT, .pUserData = name};
    VmaAllocation a;
    for (int i = 0; i < 2; i++)
        CHECK_EQ(vmaAllocateMemory(v.allocator, &needs, &options, &a, NULL), MISSING);
}

/* ---- one handle, several threads ------------------------------------------------------------ */

static VmaPool shared;
static pthread_barrier_t start;

static void *destroy_shared(void *user)
{
    (void)user;
    pthread_barrier_wait(&start);
    vmaDestroyPool(v.allocator, shared);
    return NULL;
}

UNIT(vma_misuse, a_pool_that_all_destroy_is_destroyed_once)
{
    enum { THREADS = 3 };
    pthread_t threads[THREADS];
    const VmaPoolCreateInfo info = {.blockSize = 1 << 20, .minBlockCount = 1};
    VmaPool pools[THREADS];
    vma_fixture_open(&v, NULL, 0);
    pthread_barrier_init(&start, NULL, THREADS);
    for (uint32_t round = 0; round < TEST_ROUNDS(30); round++) {
        CHECK_VK(vmaCreatePool(v.allocator, &info, &shared));
        for (int i = 0; i < THREADS; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, destroy_shared, NULL), 0);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++)
            CHECK_VK(vmaCreatePool(v.allocator, &info, &pools[i]));
        CHECK(pools[0] != pools[1] && pools[0] != pools[2] && pools[1] != pools[2]);
        for (int i = 0; i < THREADS; i++)
            vmaDestroyPool(v.allocator, pools[i]);
    }
    pthread_barrier_destroy(&start);
    vma_fixture_close(&v);
}
