/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_defragmentation.c - passes of moves: what is offered, the three operations, limits, maps,
 * images, several memory types, other calls between the begin and the end of a pass and between
 * passes, refusals, and statistics.
 */
#include <string.h>

#include "src/core/checked.h"
#include "tests/support/unit.h"
#include "tests/support/vma_fixture.h"

enum { BLOCK = 1 << 20, PART = BLOCK / 8, ALL = 16, LEFT = 8 };

static vma_fixture v;

static void open_fixture(void)
{
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    vma_fixture_open(&v, NULL, 0);
}

#define CASE(name) UNIT_WITHIN(vma_defragmentation, name, open_fixture(), vma_fixture_close(&v))

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

/* Of the pool of a scene, with a first pass that has moves. */
static VmaDefragmentationContext begin_with_moves(const scene *s,
                                                  VmaDefragmentationPassMoveInfo *pass)
{
    VmaDefragmentationContext context = begin(&(VmaDefragmentationInfo){.pool = s->pool});
    CHECK_EQ(vmaBeginDefragmentationPass(v.allocator, context, pass), VK_INCOMPLETE);
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
    VmaDefragmentationContext context = begin_with_moves(&s, &pass);
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
    VmaDefragmentationContext context = begin_with_moves(&s, &pass);
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
    context = begin_with_moves(&s, &pass);
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
        VmaDefragmentationContext context = begin_with_moves(&s, &pass);
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
    VmaDefragmentationContext context = begin_with_moves(&s, &pass);
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
    VmaDefragmentationContext context = begin_with_moves(&s, &pass);
    VmaStatistics stats;
    vmaGetPoolStatistics(v.allocator, s.pool, &stats);
    CHECK_EQ(stats.allocationCount, LEFT + 4);
    CHECK_EQ(end(context).allocationsMoved, 0);
    vmaGetPoolStatistics(v.allocator, s.pool, &stats);
    CHECK_EQ(stats.allocationCount, LEFT);
    end_scene(&s);
}

/* ---- many allocations --------------------------------------------------------------------- */

enum { HERD = 256 };

/* An allocation with its buffer or its image. It is the user data of the allocation. */
typedef struct item {
    VmaAllocation allocation;
    VkBuffer buffer;
    VkImage image;
    VkBufferCreateInfo buffer_info;
    VkImageCreateInfo image_info;
    bool stays; /* its moves are ignored */
} item;

typedef struct herd {
    item items[HERD];
    uint32_t count;
} herd;

static herd h;

static item *add_buffer(VkDeviceSize size, VmaAllocationCreateInfo options)
{
    item *made = &h.items[h.count++];
    CHECK(h.count <= HERD);
    *made = (item){.buffer_info = vma_fixture_buffer_info(size)};
    options.pUserData = made;
    made->allocation = vma_fixture_buffer(&v, size, &options, &made->buffer);
    return made;
}

static item *add_image(uint32_t width, VmaAllocationCreateInfo options)
{
    item *made = &h.items[h.count++];
    CHECK(h.count <= HERD);
    *made = (item){.image_info = vma_fixture_image_info(width, VK_IMAGE_TILING_OPTIMAL)};
    options.pUserData = made;
    CHECK_VK(vmaCreateImage(v.allocator, &made->image_info, &options, &made->image,
                            &made->allocation, NULL));
    return made;
}

static void drop(item *gone)
{
    if (gone->image)
        vmaDestroyImage(v.allocator, gone->image, gone->allocation);
    else
        vmaDestroyBuffer(v.allocator, gone->buffer, gone->allocation);
    *gone = (item){.allocation = NULL};
}

/* Keeps every `step`th item. */
static void thin_out(uint32_t step)
{
    for (uint32_t i = 0; i < h.count; i++)
        if (i % step && h.items[i].allocation)
            drop(&h.items[i]);
}

static void end_herd(void)
{
    for (uint32_t i = 0; i < h.count; i++)
        if (h.items[i].allocation)
            drop(&h.items[i]);
    h.count = 0;
}

/* Makes the object of an item anew at the target of its move. */
static void move_object(item *moved, VmaAllocation target)
{
    if (moved->image) {
        FV(&v.vulkan, vkDestroyImage)(v.vulkan.device, moved->image, NULL);
        CHECK_VK(
            FV(&v.vulkan, vkCreateImage)(v.vulkan.device, &moved->image_info, NULL, &moved->image));
        CHECK_VK(vmaBindImageMemory(v.allocator, target, moved->image));
    } else {
        FV(&v.vulkan, vkDestroyBuffer)(v.vulkan.device, moved->buffer, NULL);
        CHECK_VK(FV(&v.vulkan, vkCreateBuffer)(v.vulkan.device, &moved->buffer_info, NULL,
                                               &moved->buffer));
        CHECK_VK(vmaBindBufferMemory(v.allocator, target, moved->buffer));
    }
}

/* What a program knows of its moves; the statistics must say the same. */
typedef struct tally {
    uint32_t passes, moves, images;
    VkDeviceSize bytes;
} tally;

static void run_moves(const VmaDefragmentationPassMoveInfo *pass, tally *t)
{
    for (uint32_t i = 0; i < pass->moveCount; i++) {
        const VmaAllocationInfo from = vma_fixture_info(&v, pass->pMoves[i].srcAllocation);
        const VmaAllocationInfo to = vma_fixture_info(&v, pass->pMoves[i].dstTmpAllocation);
        item *moved = from.pUserData;
        CHECK_EQ(moved->allocation, pass->pMoves[i].srcAllocation);
        CHECK(to.memoryType == from.memoryType && to.deviceMemory != from.deviceMemory);
        if (moved->stays) {
            pass->pMoves[i].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
            continue;
        }
        move_object(moved, pass->pMoves[i].dstTmpAllocation);
        t->moves++;
        t->images += moved->image != VK_NULL_HANDLE;
        t->bytes += from.size;
    }
}

/* Runs passes until one says that there is no more to do, with calls of `between` in and after
   each. */
static VmaDefragmentationStats defragment(const VmaDefragmentationInfo *info,
                                          void (*between)(bool in_pass), tally *t)
{
    VmaDefragmentationPassMoveInfo pass;
    VmaDefragmentationContext context = begin(info);
    *t = (tally){.passes = 0};
    while (vmaBeginDefragmentationPass(v.allocator, context, &pass) == VK_INCOMPLETE) {
        const uint32_t before = t->moves;
        CHECK(++t->passes < 500);
        run_moves(&pass, t);
        if (between)
            between(true);
        const VkResult result = vmaEndDefragmentationPass(v.allocator, context, &pass);
        CHECK_EQ(result, t->moves > before ? VK_INCOMPLETE : VK_SUCCESS);
        if (result == VK_SUCCESS)
            break;
        if (between)
            between(false);
    }
    const VmaDefragmentationStats stats = end(context);
    CHECK_EQ(stats.allocationsMoved, t->moves);
    CHECK_EQ(stats.bytesMoved, t->bytes);
    return stats;
}

static VmaTotalStatistics totals(void)
{
    VmaTotalStatistics stats;
    vmaCalculateStatistics(v.allocator, &stats);
    return stats;
}

/* Four blocks of 25 places, every second one free: the two blocks with 12 allocations move, and
   nothing else, whatever the algorithm. */
CASE(the_fewest_allocations_move)
{
    for (VmaDefragmentationFlags flags = 1; flags <= 8; flags *= 2) {
        tally t;
        VmaPool pool = make_pool(VMA_MEMORY_USAGE_AUTO, 0);
        for (int i = 0; i < 100; i++)
            add_buffer(BLOCK / 25 & ~255u, (VmaAllocationCreateInfo){.pool = pool});
        thin_out(2);
        CHECK_EQ(totals().total.statistics.blockCount, 4);
        const VmaDefragmentationStats stats =
            defragment(&(VmaDefragmentationInfo){.flags = flags, .pool = pool}, NULL, &t);
        CHECK_EQ(stats.allocationsMoved, 24);
        CHECK_EQ(stats.deviceMemoryBlocksFreed, 2);
        CHECK_EQ(totals().total.statistics.blockCount, 2);
        end_herd();
        vmaDestroyPool(v.allocator, pool);
    }
}

/* Buffers and images beside each other. */
CASE(images_move_as_buffers_do)
{
    tally t;
    VmaPool pool = make_pool(VMA_MEMORY_USAGE_AUTO, 0);
    for (int i = 0; i < 40; i++) {
        add_image(128, (VmaAllocationCreateInfo){.pool = pool});
        add_buffer(PART / 2, (VmaAllocationCreateInfo){.pool = pool});
    }
    thin_out(3);
    const VmaTotalStatistics before = totals();
    const VmaDefragmentationStats stats =
        defragment(&(VmaDefragmentationInfo){.pool = pool}, NULL, &t);
    const VmaTotalStatistics after = totals();
    CHECK(t.images && t.images < t.moves);
    CHECK_EQ(after.total.statistics.blockCount + stats.deviceMemoryBlocksFreed,
             before.total.statistics.blockCount);
    CHECK_EQ(after.total.statistics.blockBytes + stats.bytesFreed,
             before.total.statistics.blockBytes);
    CHECK_EQ(after.total.statistics.allocationBytes, before.total.statistics.allocationBytes);
    CHECK(after.total.statistics.blockBytes < before.total.statistics.blockBytes / 2);
    end_herd();
    vmaDestroyPool(v.allocator, pool);
}

/* Without a pool: buffers of a type for the device and of one for the host, these persistently
   mapped, which stay in their type. */
CASE(all_memory_types_are_defragmented)
{
    tally t;
    uint32_t types[2] = {0, 0};
    for (int i = 0; i < 120; i++) {
        types[0] =
            vma_fixture_info(
                &v, add_buffer(PART, (VmaAllocationCreateInfo){.usage = VMA_MEMORY_USAGE_AUTO})
                        ->allocation)
                .memoryType;
        types[1] = vma_fixture_info(
                       &v, add_buffer(PART,
                                      (VmaAllocationCreateInfo){
                                          .usage = VMA_MEMORY_USAGE_AUTO_PREFER_HOST,
                                          .flags = VMA_ALLOCATION_CREATE_MAPPED_BIT |
                                                   VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT})
                               ->allocation)
                       .memoryType;
    }
    CHECK(types[0] != types[1]);
    thin_out(5);
    const VmaTotalStatistics before = totals();
    const VmaDefragmentationStats stats = defragment(&(VmaDefragmentationInfo){0}, NULL, &t);
    const VmaTotalStatistics after = totals();
    CHECK(stats.bytesFreed > 0);
    for (int i = 0; i < 2; i++)
        CHECK(after.memoryType[types[i]].statistics.blockBytes <
              before.memoryType[types[i]].statistics.blockBytes);
    for (uint32_t i = 0; i < h.count; i++)
        if (h.items[i].allocation)
            CHECK_EQ(vma_fixture_info(&v, h.items[i].allocation).pMappedData != NULL, i % 2);
    end_herd();
}

static VmaPool busy_pool;

/* A program that goes on: it makes a buffer, and destroys another one, that no pass moves. */
static void make_and_destroy(bool in_pass)
{
    if (h.count < HERD)
        add_buffer(PART / 4, (VmaAllocationCreateInfo){.pool = busy_pool});
    for (uint32_t i = 1; !in_pass && i < h.count; i += 7)
        if (h.items[i].allocation && !h.items[i].stays) {
            drop(&h.items[i]);
            return;
        }
}

/* Some that stay, others that come and go in the passes, and limits of a pass. */
CASE(it_ends_beside_other_calls_and_ignored_moves)
{
    tally t;
    VmaPool pool = busy_pool = make_pool(VMA_MEMORY_USAGE_AUTO, 0);
    for (int i = 0; i < 120; i++)
        add_buffer(PART / (VkDeviceSize)(1 + i % 3), (VmaAllocationCreateInfo){.pool = pool});
    thin_out(3);
    for (uint32_t i = 0; i < h.count; i += 30)
        h.items[i].stays = true;
    const VmaTotalStatistics before = totals();
    const VmaDefragmentationStats stats = defragment(
        &(VmaDefragmentationInfo){.pool = pool, .maxAllocationsPerPass = 4}, make_and_destroy, &t);
    CHECK(stats.deviceMemoryBlocksFreed > 0);
    CHECK(totals().total.statistics.blockCount < before.total.statistics.blockCount);
    end_herd();
    vmaDestroyPool(v.allocator, pool);
}

/* What stays is in a few blocks; the others become free, and only these allocations remain. */
CASE(allocations_that_stay_keep_their_blocks_only)
{
    tally t;
    VmaPool pool = make_pool(VMA_MEMORY_USAGE_AUTO, 0);
    for (int i = 0; i < 96; i++)
        add_buffer(PART, (VmaAllocationCreateInfo){.pool = pool});
    thin_out(4);
    h.items[0].stays = h.items[40].stays = true;
    const VmaAllocationInfo first = vma_fixture_info(&v, h.items[0].allocation);
    const VmaDefragmentationStats stats =
        defragment(&(VmaDefragmentationInfo){.pool = pool}, NULL, &t);
    CHECK_EQ(totals().total.statistics.blockCount, 12 - stats.deviceMemoryBlocksFreed);
    CHECK(totals().total.statistics.blockCount <= 5); /* 24 allocations of 8 places, and two stay */
    CHECK_EQ(vma_fixture_info(&v, h.items[0].allocation).deviceMemory, first.deviceMemory);
    CHECK_EQ(vma_fixture_info(&v, h.items[0].allocation).offset, first.offset);
    end_herd();
    vmaDestroyPool(v.allocator, pool);
}

/* ---- refusals ----------------------------------------------------------------------------- */

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
