/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_pool.c - pools.
 */
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

static vma_fixture v;
#define CASE(name) VMA_CASE(vma_pool, name, NULL, 0)

static uint32_t type_for(const VmaAllocationCreateInfo *options)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(1000);
    uint32_t type;
    CHECK_VK(vmaFindMemoryTypeIndexForBufferInfo(v.allocator, &info, options, &type));
    return type;
}

static uint32_t device_type(void)
{
    return type_for(&(VmaAllocationCreateInfo){.usage = VMA_MEMORY_USAGE_AUTO});
}

static VmaPool make(const VmaPoolCreateInfo *info)
{
    VmaPool pool;
    CHECK_VK(vmaCreatePool(v.allocator, info, &pool));
    CHECK(pool);
    return pool;
}

static VmaStatistics statistics(VmaPool pool)
{
    VmaStatistics stats;
    vmaGetPoolStatistics(v.allocator, pool, &stats);
    return stats;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* As in VMA, which frees every block that becomes empty beside another empty one. */
UNIT(vma_pool, a_pool_keeps_one_empty_block_or_its_minimum)
{
    enum { COUNT = 8 };
    for (uint32_t least = 0; least < 4; least++) {
        VkBuffer buffers[COUNT];
        VmaAllocation a[COUNT];
        vma_fixture_open(&v, NULL, 0);
        VmaPool pool = make(&(VmaPoolCreateInfo){
            .memoryTypeIndex = device_type(), .blockSize = 1 << 20, .minBlockCount = least});
        const VmaAllocationCreateInfo options = {.pool = pool};
        for (int i = 0; i < COUNT; i++)
            a[i] = vma_fixture_buffer(&v, 600000, &options, &buffers[i]);
        CHECK_EQ(statistics(pool).blockCount, COUNT);
        for (int i = 0; i < COUNT - 1; i++)
            vmaDestroyBuffer(v.allocator, buffers[i], a[i]);
        CHECK_EQ(statistics(pool).blockCount, least > 2 ? least : 2); /* one of them is used */
        vmaDestroyBuffer(v.allocator, buffers[COUNT - 1], a[COUNT - 1]);
        CHECK_EQ(statistics(pool).blockCount, least > 1 ? least : 1);
        vmaDestroyPool(v.allocator, pool);
        vma_fixture_close(&v);
    }
}

/* The size of a block is rounded up to a whole page, which must not count as more than one. */
UNIT(vma_pool, a_block_of_an_odd_size_is_kept)
{
    VkBuffer buffer;
    for (VkDeviceSize size = 257; size < 2000; size += 333) {
        vma_fixture_open(&v, NULL, 0);
        VmaPool pool =
            make(&(VmaPoolCreateInfo){.memoryTypeIndex = device_type(), .blockSize = size});
        const VmaAllocationCreateInfo options = {.pool = pool};
        for (int i = 0; i < 2; i++) {
            VmaAllocation a = vma_fixture_buffer(&v, 1, &options, &buffer);
            vmaDestroyBuffer(v.allocator, buffer, a);
            CHECK_EQ(statistics(pool).blockCount, 1);
        }
        vmaDestroyPool(v.allocator, pool);
        vma_fixture_close(&v);
    }
}

static void refuse_more_than_a_block(const VmaPoolCreateInfo *info)
{
    const VkMemoryRequirements needs = {
        .size = (1 << 20) + 1, .alignment = 1, .memoryTypeBits = UINT32_MAX};
    VkBuffer buffer;
    VmaAllocation a;
    VmaPool pool = make(info);
    const VmaAllocationCreateInfo options = {.pool = pool};
    vma_fixture_refuse(&v, (1 << 20) + 256, &options, FULL);
    CHECK_HAS(quire_last_error(), "1048832 bytes in a pool whose blockSize is 1048576");
    CHECK_EQ(vmaAllocateMemory(v.allocator, &needs, &options, &a, NULL), FULL);
    CHECK_EQ(statistics(pool).blockCount, 0);
    a = vma_fixture_buffer(&v, 1 << 20, &options, &buffer);
    CHECK_EQ(statistics(pool).blockBytes, 1 << 20);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vmaDestroyPool(v.allocator, pool);
}

CASE(a_block_size_limits_each_allocation)
{
    const uint32_t type = device_type();
    refuse_more_than_a_block(&(VmaPoolCreateInfo){.memoryTypeIndex = type, .blockSize = 1 << 20});
    refuse_more_than_a_block(
        &(VmaPoolCreateInfo){.memoryTypeIndex = type, .blockSize = 1 << 20, .maxBlockCount = 1});
    refuse_more_than_a_block(&(VmaPoolCreateInfo){.memoryTypeIndex = type,
                                                  .flags = VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT,
                                                  .blockSize = 1 << 20,
                                                  .maxBlockCount = 1});
}

/* VMA goes on with dedicated memory, which no number of blocks limits. */
CASE(a_number_of_blocks_without_a_size_is_no_limit)
{
    VmaPool pool = make(&(VmaPoolCreateInfo){.memoryTypeIndex = device_type(), .maxBlockCount = 1});
    const VmaAllocationCreateInfo options = {.pool = pool};
    for (int i = 0; i < 3; i++)
        vma_fixture_hold(&v, 100 << 20, &options);
    vma_fixture_end_held(&v);
    vmaDestroyPool(v.allocator, pool);
}

CASE(small_buffers_take_what_the_driver_asks_for)
{
    enum { BLOCK = 64 << 10, MOST = BLOCK / 16 };
    static VkBuffer buffers[MOST];
    static VmaAllocation a[MOST];
    VmaPool pool = make(&(VmaPoolCreateInfo){
        .memoryTypeIndex = device_type(), .blockSize = BLOCK, .maxBlockCount = 1});
    const VmaAllocationCreateInfo options = {.pool = pool};
    for (VkDeviceSize size = 16; size <= 1024; size *= 2) {
        VkBufferCreateInfo info = vma_fixture_buffer_info(size);
        VkDeviceSize count = 0;
        info.usage = VK_BUFFER_USAGE_VERTEX_BUFFER_BIT;
        while (count < MOST &&
               !vmaCreateBuffer(v.allocator, &info, &options, &buffers[count], &a[count], NULL))
            count++;
        CHECK_EQ(count, BLOCK / fv_fixture_needs(&v.vulkan, buffers[0]).size);
        while (count-- > 0)
            vmaDestroyBuffer(v.allocator, buffers[count], a[count]);
    }
    vmaDestroyPool(v.allocator, pool);
}

CASE(a_block_size_excludes_dedicated_memory)
{
    VkBuffer buffer;
    VmaAllocation a;
    VmaPool fixed =
        make(&(VmaPoolCreateInfo){.memoryTypeIndex = device_type(), .blockSize = 1 << 20});
    VmaPool free = make(&(VmaPoolCreateInfo){.memoryTypeIndex = device_type()});
    VmaAllocationCreateInfo options = {.flags = VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT,
                                       .pool = fixed};
    vma_fixture_refuse(&v, 1000, &options, MISSING);
    options.pool = free;
    a = vma_fixture_buffer(&v, 1000, &options, &buffer);
    VmaAllocationInfo2 placed;
    vmaGetAllocationInfo2(v.allocator, a, &placed);
    CHECK(placed.dedicatedMemory);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vmaDestroyPool(v.allocator, fixed);
    vmaDestroyPool(v.allocator, free);
}

CASE(the_alignment_of_a_pool_holds_for_every_allocation)
{
    VmaAllocationInfo info;
    VmaPool pool = make(
        &(VmaPoolCreateInfo){.memoryTypeIndex = device_type(), .minAllocationAlignment = 64 << 10});
    for (int i = 0; i < 3; i++) {
        VmaAllocation a = vma_fixture_hold(&v, 100, &(VmaAllocationCreateInfo){.pool = pool});
        vmaGetAllocationInfo(v.allocator, a, &info);
        CHECK_EQ(info.offset % (64 << 10), 0);
    }
    vma_fixture_end_held(&v);
    vmaDestroyPool(v.allocator, pool);
}

CASE(a_linear_pool_is_two_stacks)
{
    VmaAllocation a[4];
    VmaAllocationInfo info[4];
    VmaAllocationCreateInfo options = {.flags = VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT};
    options.pool = make(&(VmaPoolCreateInfo){.memoryTypeIndex = device_type(),
                                             .flags = VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT,
                                             .blockSize = 1 << 20,
                                             .maxBlockCount = 1});
    for (int i = 0; i < 4; i++) {
        a[i] = vma_fixture_hold(&v, 1000, &options);
        vmaGetAllocationInfo(v.allocator, a[i], &info[i]);
        options.flags ^= VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    }
    CHECK(info[0].offset > info[2].offset && info[0].offset >= (1 << 20) - 2000);
    CHECK(info[3].offset > info[1].offset && info[3].offset < 3000);
    vma_fixture_end_held(&v);
    vmaDestroyPool(v.allocator, options.pool);
}

/* Other pools and the allocator itself have no upper end. */
CASE(only_linear_pools_have_an_upper_end)
{
    const VmaPoolCreateInfo usual = {.memoryTypeIndex = 0};
    VmaPool pools[] = {NULL, make(&usual)};
    for (int i = 0; i < 2; i++) {
        const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO,
                                                 .flags = VMA_ALLOCATION_CREATE_UPPER_ADDRESS_BIT,
                                                 .pool = pools[i]};
        vma_fixture_refuse(&v, 1000, &options, MISSING);
        CHECK_HAS(quire_last_error(), "linear pool");
    }
    vmaDestroyPool(v.allocator, pools[1]);
}

CASE(the_chain_of_a_pool_reaches_its_memory)
{
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes =
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    const VkMemoryRequirements needs = {
        .size = 1000, .alignment = 256, .memoryTypeBits = UINT32_MAX};
    VmaAllocation a;
    VmaAllocationInfo info;
    fv_memory_info memory;
    VmaPool pool;
    VmaPoolCreateInfo create = {.memoryTypeIndex = device_type(), .pMemoryAllocateNext = &exported};
    pool = make(&create);
    CHECK_VK(vmaAllocateMemory(v.allocator, &needs, &(VmaAllocationCreateInfo){.pool = pool}, &a,
                               &info));
    CHECK(fv_memory_of(v.vulkan.driver, info.deviceMemory, &memory));
    CHECK_EQ(memory.exportable, VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT);
    vmaFreeMemory(v.allocator, a);
    vmaDestroyPool(v.allocator, pool);
    exported.handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT;
    CHECK_EQ(vmaCreatePool(v.allocator, &create, &pool), MISSING);
    CHECK_HAS(quire_last_error(), "this allocator exports 0x1");
}

/* ---- names, misuse -------------------------------------------------------------------------- */

CASE(a_pool_has_a_name)
{
    char text[] = "textures";
    const char *name = text;
    VmaPool pool = make(&(VmaPoolCreateInfo){.memoryTypeIndex = 0});
    vmaGetPoolName(v.allocator, pool, &name);
    CHECK(!name);
    vmaSetPoolName(v.allocator, pool, text);
    text[0] = 'x';
    vmaGetPoolName(v.allocator, pool, &name);
    CHECK_STR(name, "textures");
    vmaSetPoolName(v.allocator, pool, NULL);
    vmaGetPoolName(v.allocator, pool, &name);
    CHECK(!name);
    vmaDestroyPool(v.allocator, pool);
}

CASE(bad_options_are_refused)
{
    const VmaPoolCreateInfo unknown_flag = {.flags = 0x100};
    const VmaPoolCreateInfo no_type = {.memoryTypeIndex = 31};
    const VmaPoolCreateInfo more_than_most = {.minBlockCount = 3, .maxBlockCount = 2};
    const VmaPoolCreateInfo odd_alignment = {.minAllocationAlignment = 3};
    const VmaPoolCreateInfo linear_blocks = {.flags = VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT,
                                             .blockSize = 1 << 20};
    VmaPool pool;
    CHECK_EQ(vmaCreatePool(v.allocator, &unknown_flag, &pool), MISSING);
    CHECK_EQ(vmaCreatePool(v.allocator, &no_type, &pool), MISSING);
    CHECK_EQ(vmaCreatePool(v.allocator, &more_than_most, &pool), VK_ERROR_INITIALIZATION_FAILED);
    CHECK_EQ(vmaCreatePool(v.allocator, &odd_alignment, &pool), INVALID);
    CHECK_EQ(vmaCreatePool(v.allocator, &linear_blocks, &pool), MISSING);
    CHECK_EQ(vmaCreatePool(v.allocator, NULL, &pool), INVALID);
    CHECK_EQ(vmaCreatePool(NULL, &no_type, &pool), INVALID);
    CHECK(!pool);
}

CASE(a_pool_stays_while_an_allocation_lives_and_is_stale_afterwards)
{
    VkBuffer buffer;
    VmaPool pool = make(&(VmaPoolCreateInfo){.memoryTypeIndex = device_type()});
    const VmaAllocationCreateInfo options = {.pool = pool};
    VmaAllocation a = vma_fixture_buffer(&v, 1000, &options, &buffer);
    vmaDestroyPool(v.allocator, pool);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_BUSY);
    CHECK_EQ(statistics(pool).allocationCount, 1);
    vmaDestroyBuffer(v.allocator, buffer, a);
    vmaDestroyPool(v.allocator, pool);
    vma_fixture_refuse(&v, 1000, &options, INVALID);
    CHECK_HAS(quire_last_error(), "the pool was freed before");
    CHECK_EQ(statistics(pool).blockCount, 0);
    CHECK_EQ(vmaCheckPoolCorruption(v.allocator, pool), INVALID);
    vmaDestroyPool(v.allocator, pool);
    vmaDestroyPool(v.allocator, NULL);
}

CASE(a_pool_whose_type_cannot_hold_the_object_is_refused)
{
    VmaAllocation a;
    uint32_t type = device_type();
    VmaPool pool = make(&(VmaPoolCreateInfo){.memoryTypeIndex = type});
    const VkMemoryRequirements needs = {
        .size = 1000, .alignment = 256, .memoryTypeBits = ~(UINT32_C(1) << type)};
    CHECK_EQ(
        vmaAllocateMemory(v.allocator, &needs, &(VmaAllocationCreateInfo){.pool = pool}, &a, NULL),
        MISSING);
    vmaDestroyPool(v.allocator, pool);
}
