/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_defragmentation.c - passes of moves: what is offered, the three operations, limits, maps,
 * other calls between the begin and the end of a pass, refusals, and statistics.
 */
#include <string.h>

#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

enum { BLOCK = 1 << 20, PART = BLOCK / 8, ALL = 16, LEFT = 8 };

static vma_fixture v;
#define CASE(name) VMA_CASE(vma_defragmentation, name, NULL, 0)

/* Two blocks of a pool, each with every second of eight buffers left. */
typedef struct scene {
    VmaPool pool;
    VkBuffer buffers[LEFT];
    VmaAllocation made[LEFT];
} scene;

static VmaPool make_pool(VmaMemoryUsage usage, VmaPoolCreateFlags flags)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(PART);
    const VmaAllocationCreateInfo options = {.usage = usage,
                                             .flags =
                                                 usage == VMA_MEMORY_USAGE_AUTO_PREFER_HOST
                                                     ? VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT
                                                     : 0};
    VmaPoolCreateInfo pool = {.blockSize = BLOCK, .flags = flags, .maxBlockCount = flags ? 1 : 0};
    VmaPool made;
    CHECK_VK(
        vmaFindMemoryTypeIndexForBufferInfo(v.allocator, &info, &options, &pool.memoryTypeIndex));
    CHECK_VK(vmaCreatePool(v.allocator, &pool, &made));
    return made;
}

static void put(scene *s, VmaMemoryUsage usage, VmaAllocationCreateFlags flags)
{
    VkBuffer buffers[ALL];
    VmaAllocation made[ALL];
    s->pool = make_pool(usage, 0);
    for (uintptr_t i = 0; i < ALL; i++)
        made[i] = vma_fixture_buffer(
            &v, PART,
            &(VmaAllocationCreateInfo){.pool = s->pool, .flags = flags, .pUserData = (void *)i},
            &buffers[i]);
    for (int i = 0; i < ALL; i++)
        if (i % 2) {
            s->buffers[i / 2] = buffers[i];
            s->made[i / 2] = made[i];
        } else {
            vmaDestroyBuffer(v.allocator, buffers[i], made[i]);
        }
}

static uint32_t blocks(const scene *s)
{
    VmaStatistics stats;
    vmaGetPoolStatistics(v.allocator, s->pool, &stats);
    return stats.blockCount;
}

static void end_scene(scene *s)
{
    for (int i = 0; i < LEFT; i++)
        vmaDestroyBuffer(v.allocator, s->buffers[i], s->made[i]);
    vmaDestroyPool(v.allocator, s->pool);
}

static VmaDefragmentationContext begin(const VmaDefragmentationInfo *info)
{
    VmaDefragmentationContext context = NULL;
    CHECK_VK(vmaBeginDefragmentation(v.allocator, info, &context));
    CHECK(context);
    return context;
}

static VmaDefragmentationStats end(VmaDefragmentationContext context)
{
    VmaDefragmentationStats stats;
    vmaEndDefragmentation(v.allocator, context, &stats);
    return stats;
}

/* Binds a new buffer to the target of a move, and destroys the old one. */
static void move_buffer(scene *s, const VmaDefragmentationMove *move)
{
    const VkBufferCreateInfo info = vma_fixture_buffer_info(PART);
    VkBuffer buffer;
    int i = 0;
    while (i < LEFT && s->made[i] != move->srcAllocation)
        i++;
    CHECK(i < LEFT);
    CHECK_VK(FV(&v.vulkan, vkCreateBuffer)(v.vulkan.device, &info, NULL, &buffer));
    CHECK_VK(vmaBindBufferMemory(v.allocator, move->dstTmpAllocation, buffer));
    FV(&v.vulkan, vkDestroyBuffer)(v.vulkan.device, s->buffers[i], NULL);
    s->buffers[i] = buffer;
}

CASE(two_half_empty_blocks_become_one)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    VmaAllocationInfo was[LEFT];
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    for (int i = 0; i < LEFT; i++)
        was[i] = vma_fixture_info(&v, s.made[i]);
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){.pool = s.pool});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    CHECK_EQ(pass.moveCount, 4);
    for (uint32_t i = 0; i < pass.moveCount; i++) {
        const VmaAllocationInfo to = vma_fixture_info(&v, pass.pMoves[i].dstTmpAllocation);
        const VmaAllocationInfo from = vma_fixture_info(&v, pass.pMoves[i].srcAllocation);
        CHECK_EQ(pass.pMoves[i].operation, VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY);
        CHECK(to.deviceMemory != from.deviceMemory);
        CHECK_EQ(to.size, from.size);
        move_buffer(&s, &pass.pMoves[i]);
    }
    CHECK_EQ(blocks(&s), 2);
    CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    CHECK(!pass.moveCount && !pass.pMoves);
    CHECK_EQ(blocks(&s), 1);
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_SUCCESS);
    CHECK(!pass.moveCount && !pass.pMoves);
    const VmaDefragmentationStats stats = end(context);
    CHECK_EQ(stats.allocationsMoved, 4);
    CHECK_EQ(stats.bytesMoved, 4 * PART);
    CHECK_EQ(stats.deviceMemoryBlocksFreed, 1);
    CHECK_EQ(stats.bytesFreed, BLOCK);
    for (uintptr_t i = 0; i < LEFT; i++) {
        const VmaAllocationInfo info = vma_fixture_info(&v, s.made[i]);
        CHECK(info.pUserData == was[i].pUserData && info.size == was[i].size);
        CHECK(info.deviceMemory == vma_fixture_info(&v, s.made[0]).deviceMemory);
    }
    end_scene(&s);
}

/* A limit of one allocation, or of its bytes: four passes. */
CASE(limits_hold_in_each_pass)
{
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        scene s;
        VmaDefragmentationPassMoveInfo pass;
        put(&s, VMA_MEMORY_USAGE_AUTO, 0);
        VmaDefragmentationContext context =
            begin(&(VmaDefragmentationInfo){.pool = s.pool,
                                            .maxBytesPerPass = by_bytes ? PART : 0,
                                            .maxAllocationsPerPass = by_bytes ? 0 : 1});
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
            CHECK_EQ(pass.moveCount, 1);
            move_buffer(&s, &pass.pMoves[0]);
            CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
        }
        CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_SUCCESS);
        CHECK_EQ(end(context).allocationsMoved, 4);
        CHECK_EQ(blocks(&s), 1);
        end_scene(&s);
    }
}

CASE(a_smaller_limit_than_any_allocation_moves_nothing)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    VmaDefragmentationContext context =
        begin(&(VmaDefragmentationInfo){.pool = s.pool, .maxBytesPerPass = PART - 1});
    for (int i = 0; vmaBeginDefragmentationPass(v.allocator, context, &pass); i++) {
        CHECK(i < 3);
        CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_SUCCESS);
    }
    CHECK_EQ(end(context).allocationsMoved, 0);
    end_scene(&s);
}

/* The program destroys the buffer of a move whose allocation is to be freed. */
static void destroy(scene *s, VmaDefragmentationMove *move)
{
    int k = 0;
    while (s->made[k] != move->srcAllocation)
        k++;
    move->operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY;
    FV(&v.vulkan, vkDestroyBuffer)(v.vulkan.device, s->buffers[k], NULL);
    s->buffers[k] = VK_NULL_HANDLE;
    s->made[k] = NULL;
}

CASE(moves_that_are_ignored_end)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){.pool = s.pool});
    for (int passes = 0; vmaBeginDefragmentationPass(v.allocator, context, &pass); passes++) {
        CHECK(passes < 2); /* each block at most once */
        for (uint32_t i = 0; i < pass.moveCount; i++)
            pass.pMoves[i].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
        CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_SUCCESS);
    }
    const VmaDefragmentationStats stats = end(context);
    CHECK_EQ(stats.allocationsMoved + stats.bytesMoved + stats.deviceMemoryBlocksFreed, 0);
    CHECK_EQ(blocks(&s), 2);
    end_scene(&s);
}

CASE(allocations_are_destroyed_instead_of_moved)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){.pool = s.pool});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    CHECK_EQ(pass.moveCount, 4);
    pass.pMoves[0].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
    destroy(&s, &pass.pMoves[1]);
    destroy(&s, &pass.pMoves[2]);
    move_buffer(&s, &pass.pMoves[3]);
    CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    VmaDefragmentationStats stats = end(context);
    CHECK_EQ(stats.allocationsMoved, 1);
    CHECK_EQ(stats.bytesMoved, PART);
    CHECK_EQ(stats.deviceMemoryBlocksFreed, 0);
    context = begin(&(VmaDefragmentationInfo){.pool = s.pool});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    CHECK_EQ(pass.moveCount, 1);
    destroy(&s, &pass.pMoves[0]);
    CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    stats = end(context);
    CHECK_EQ(stats.allocationsMoved, 0);
    CHECK_EQ(stats.deviceMemoryBlocksFreed, 1);
    CHECK_EQ(stats.bytesFreed, BLOCK);
    CHECK_EQ(blocks(&s), 1);
    end_scene(&s);
}

/* Persistent maps, and maps by count: the pointers change, the counts stay. */
CASE(mapped_allocations_move_with_their_maps)
{
    for (int persistent = 0; persistent < 2; persistent++) {
        scene s;
        VmaDefragmentationPassMoveInfo pass;
        void *pointer;
        put(&s, VMA_MEMORY_USAGE_AUTO_PREFER_HOST,
            persistent ? VMA_ALLOCATION_CREATE_MAPPED_BIT : 0);
        for (int i = 0; i < LEFT; i++) {
            CHECK_VK(vmaMapMemory(v.allocator, s.made[i], &pointer));
            memset(pointer, 'a' + i, PART);
            if (i % 2)
                CHECK_VK(vmaMapMemory(v.allocator, s.made[i], &pointer));
        }
        VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){.pool = s.pool});
        CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
        CHECK_EQ(pass.moveCount, 4);
        for (uint32_t i = 0; i < pass.moveCount; i++) {
            const VmaAllocationInfo to = vma_fixture_info(&v, pass.pMoves[i].dstTmpAllocation);
            const VmaAllocationInfo from = vma_fixture_info(&v, pass.pMoves[i].srcAllocation);
            CHECK(to.pMappedData && to.pMappedData != from.pMappedData);
            memcpy(to.pMappedData, from.pMappedData, PART);
            move_buffer(&s, &pass.pMoves[i]);
        }
        CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
        CHECK_EQ(end(context).deviceMemoryBlocksFreed, 1);
        for (int i = 0; i < LEFT; i++) {
            const unsigned char *bytes = vma_fixture_info(&v, s.made[i]).pMappedData;
            CHECK(bytes && bytes[0] == 'a' + i && bytes[PART - 1] == 'a' + i);
            vmaUnmapMemory(v.allocator, s.made[i]);
            if (i % 2)
                vmaUnmapMemory(v.allocator, s.made[i]);
            CHECK((vma_fixture_info(&v, s.made[i]).pMappedData != NULL) == persistent);
            CHECK_VK(vmaMapMemory(v.allocator, s.made[i], &pointer));
            CHECK_EQ(*(unsigned char *)pointer, 'a' + i);
            vmaUnmapMemory(v.allocator, s.made[i]);
        }
        end_scene(&s);
    }
}

/* The allocator's own memories, and not the pools. */
CASE(without_a_pool_the_allocators_own_memories)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){0});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_SUCCESS);
    const VmaDefragmentationStats nothing = end(context);
    CHECK_EQ(nothing.bytesMoved + nothing.bytesFreed + nothing.allocationsMoved, 0);
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    vma_fixture_hold(&v, 1000, &(VmaAllocationCreateInfo){.usage = VMA_MEMORY_USAGE_AUTO});
    context = begin(&(VmaDefragmentationInfo){0});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_SUCCESS);
    end(context);
    CHECK_EQ(blocks(&s), 2);
    end_scene(&s);
}

static VkBool32 VKAPI_PTR stop(void *user)
{
    ++*(int *)user;
    return VK_TRUE;
}

CASE(a_callback_ends_the_collection_of_moves)
{
    scene s;
    int calls = 0;
    VmaDefragmentationPassMoveInfo pass;
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){
        .pool = s.pool, .pfnBreakCallback = stop, .pBreakCallbackUserData = &calls});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_SUCCESS);
    CHECK_EQ(calls, 1);
    end(context);
    end_scene(&s);
}

/* Frees and allocations come between; what was freed does not move. */
CASE(other_calls_between_begin_and_end_of_a_pass)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){.pool = s.pool});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    int k = 0;
    while (s.made[k] != pass.pMoves[0].srcAllocation)
        k++;
    vmaDestroyBuffer(v.allocator, s.buffers[k], s.made[k]);
    s.made[k] =
        vma_fixture_buffer(&v, PART, &(VmaAllocationCreateInfo){.pool = s.pool}, &s.buffers[k]);
    for (uint32_t i = 1; i < pass.moveCount; i++)
        move_buffer(&s, &pass.pMoves[i]);
    CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    CHECK_EQ(end(context).allocationsMoved, 3);
    end_scene(&s);
}

/* Ending a context ignores the moves of its pass. */
CASE(a_context_ends_amid_a_pass)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){.pool = s.pool});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    VmaStatistics stats;
    vmaGetPoolStatistics(v.allocator, s.pool, &stats);
    CHECK_EQ(stats.allocationCount, LEFT + 4);
    CHECK_EQ(end(context).allocationsMoved, 0);
    vmaGetPoolStatistics(v.allocator, s.pool, &stats);
    CHECK_EQ(stats.allocationCount, LEFT);
    end_scene(&s);
}

CASE(wrong_uses_are_refused)
{
    scene s;
    VmaDefragmentationPassMoveInfo pass;
    VmaDefragmentationStats stats;
    VmaDefragmentationContext context, other = NULL;
    const VmaDefragmentationContext none = NULL;
    put(&s, VMA_MEMORY_USAGE_AUTO, 0);
    VmaDefragmentationInfo info = {.pool = s.pool};
    CHECK_EQ(vmaBeginDefragmentation(v.allocator, NULL, &context), INVALID);
    CHECK_EQ(vmaBeginDefragmentation(v.allocator, &info, NULL), INVALID);
    CHECK_EQ(vmaBeginDefragmentation(NULL, &info, &context), INVALID);
    info.flags = 0x10;
    CHECK_EQ(vmaBeginDefragmentation(v.allocator, &info, &context), MISSING);
    info.flags =
        VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FAST_BIT | VMA_DEFRAGMENTATION_FLAG_ALGORITHM_FULL_BIT;
    CHECK_EQ(vmaBeginDefragmentation(v.allocator, &info, &context), INVALID);
    info.flags = VMA_DEFRAGMENTATION_FLAG_ALGORITHM_EXTENSIVE_BIT;
    context = begin(&info);
    CHECK_EQ(vmaBeginDefragmentation(v.allocator, &info, &other), INVALID);
    CHECK(!other);
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, none, &pass), INVALID);
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, NULL), INVALID);
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &pass), VK_INCOMPLETE);
    VmaDefragmentationPassMoveInfo again;
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, &again), INVALID);
    CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, NULL), INVALID);
    CHECK_EQ(vmaEndDefragmentationPass(v.allocator, none, &again), INVALID);
    vmaEndDefragmentation(v.allocator, context, NULL);
    CHECK_EQ(vmaEndDefragmentationPass(v.allocator, context, &pass), INVALID);
    vmaEndDefragmentation(v.allocator, none, &stats);
    CHECK_EQ(stats.bytesMoved, 0);
    end_scene(&s);
    VmaPool linear = make_pool(VMA_MEMORY_USAGE_AUTO, VMA_POOL_CREATE_LINEAR_ALGORITHM_BIT);
    CHECK_EQ(
        vmaBeginDefragmentation(v.allocator, &(VmaDefragmentationInfo){.pool = linear}, &context),
        MISSING);
    vmaDestroyPool(v.allocator, linear);
}

/* An allocator with a context stays. */
CASE(an_allocator_with_a_context_is_not_destroyed)
{
    const VmaAllocator kept = v.allocator;
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){0});
    vmaDestroyAllocator(v.allocator);
    CHECK_EQ(v.allocator, kept);
    vma_fixture_hold(&v, 1000, &(VmaAllocationCreateInfo){.usage = VMA_MEMORY_USAGE_AUTO});
    end(context);
}
