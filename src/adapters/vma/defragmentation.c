/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * defragmentation.c - passes of moves: quire offers them (quire/compact.h), the program copies, and
 * the end of the pass accepts or declines each.
 */
#include "quire/vma/defragmentation.h"

#include "src/adapters/vma/allocation.h"
#include "src/adapters/vma/memory.h"

/* Moves that are offered together. With a limit of bytes a pass has one group, because only quire
   knows before an offer how large it is. */
enum { GROUP = 256 };

/* A memory that is defragmented. */
typedef struct part {
    quire_memory *memory;
    quire_compaction *compaction;
} part;

/* A move of a pass, beside the one that the program sees. */
typedef struct move {
    quire_compaction *compaction;
    quire_compact_move quire;
} move;

struct qi_vma_defragmentation {
    part *parts;
    uint32_t part_count;
    VkDeviceSize max_bytes;
    uint32_t max_moves;
    PFN_vmaCheckDefragmentationBreakFunction breaks;
    void *user_data;
    /* of the pass that has not ended */
    move *moves;
    VmaDefragmentationMove *shown;
    uint32_t move_count, room;
    VmaDefragmentationStats stats; /* of moves, and of blocks that became free by DESTROY */
};

typedef struct qi_vma_defragmentation context;

/* ---- begin and end ------------------------------------------------------------------------ */

static VkResult check(VmaAllocator allocator, const VmaDefragmentationInfo *info,
                      const VmaDefragmentationContext *handle)
{
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info || !handle)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaBeginDefragmentation: pInfo or pContext is null");
    if (info->flags & ~(VmaDefragmentationFlags)VMA_DEFRAGMENTATION_FLAG_ALGORITHM_MASK)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT, "vmaBeginDefragmentation: flags 0x%x",
                           info->flags);
    if (info->flags & (info->flags - 1))
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaBeginDefragmentation: several algorithms");
    const qi_vma_pool *pool = info->pool ? qi_vma_pool_of(allocator, info->pool) : NULL;
    if (info->pool && !pool)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (pool && pool->is_linear)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "vmaBeginDefragmentation: the pool is linear");
    return VK_SUCCESS;
}

static void end_parts(VmaAllocator allocator, context *c)
{
    for (uint32_t i = 0; i < c->part_count; i++)
        quire_compact_end(&c->parts[i].compaction);
    qi_vma_host_release(&allocator->host, c->parts);
    c->parts = NULL;
    c->part_count = 0;
}

static VkResult begin_parts(VmaAllocator allocator, VmaPool pool, context *c)
{
    quire_memory *one = pool ? qi_vma_pool_of(allocator, pool)->memory : NULL;
    uint32_t count = 1;
    quire_memory **memories = pool ? &one : qi_vma_own_memories(allocator, &count);
    if (!memories)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    quire_result result = QUIRE_SUCCESS;
    c->parts = qi_vma_host_allocate(&allocator->host, (count + 1) * sizeof *c->parts);
    if (!c->parts)
        result = QUIRE_ERROR_OUT_OF_HOST_MEMORY;
    for (; c->part_count < count && !result; c->part_count += !result) {
        part *at = &c->parts[c->part_count];
        at->memory = memories[c->part_count];
        result = quire_compact_begin(at->memory, &at->compaction);
    }
    if (!pool)
        qi_vma_host_release(&allocator->host, memories);
    if (result)
        end_parts(allocator, c);
    return result == QUIRE_ERROR_BUSY ? VK_ERROR_VALIDATION_FAILED_EXT : qi_vma_result(result);
}

VkResult quire_vma_begin_defragmentation(VmaAllocator allocator, const VmaDefragmentationInfo *info,
                                         VmaDefragmentationContext *handle)
{
    uintptr_t number;
    if (handle)
        *handle = NULL;
    VkResult result = check(allocator, info, handle);
    if (result)
        return result;
    qi_vma_context *record = qi_vma_table_take(&allocator->defragmentations, &number);
    context *c = record ? qi_vma_host_allocate(&allocator->host, sizeof *c) : NULL;
    result = VK_ERROR_OUT_OF_HOST_MEMORY;
    if (c) {
        c->max_bytes = info->maxBytesPerPass ? info->maxBytesPerPass : UINT64_MAX;
        c->max_moves = info->maxAllocationsPerPass ? info->maxAllocationsPerPass : UINT32_MAX;
        c->breaks = info->pfnBreakCallback;
        c->user_data = info->pBreakCallbackUserData;
        record->defragmentation = c;
        result = begin_parts(allocator, info->pool, c);
    }
    if (!result) {
        *handle = (VmaDefragmentationContext)number;
        return VK_SUCCESS;
    }
    qi_vma_host_release(&allocator->host, c);
    if (record)
        qi_vma_table_give(&allocator->defragmentations, number);
    return result;
}

/* Returns what is behind a context. NULL and a last error: it, or the allocator, is bad. */
static context *context_of(VmaAllocator allocator, VmaDefragmentationContext handle)
{
    const qi_vma_context *record =
        qi_vma_is_allocator(allocator)
            ? qi_vma_table_find(&allocator->defragmentations, (uintptr_t)handle)
            : NULL;
    return record ? record->defragmentation : NULL;
}

/* ---- a pass begins ------------------------------------------------------------------------ */

/* Room for another group. */
static bool make_room(VmaAllocator allocator, context *c)
{
    if (c->room - c->move_count >= GROUP)
        return true;
    const uint32_t room = 2 * c->room + GROUP;
    move *moves = qi_vma_host_allocate(&allocator->host, room * sizeof *moves);
    VmaDefragmentationMove *shown =
        moves ? qi_vma_host_allocate(&allocator->host, room * sizeof *shown) : NULL;
    if (!shown) {
        qi_vma_host_release(&allocator->host, moves);
        return false;
    }
    for (uint32_t i = 0; i < c->move_count; i++) {
        moves[i] = c->moves[i];
        shown[i] = c->shown[i];
    }
    qi_vma_host_release(&allocator->host, c->moves);
    qi_vma_host_release(&allocator->host, c->shown);
    c->moves = moves;
    c->shown = shown;
    c->room = room;
    return true;
}

/* What a pass may still move. */
typedef struct allowance {
    VkDeviceSize bytes;
    uint32_t moves;
} allowance;

/* Adds an offer to the pass. Returns false if it is declined: the program has freed it meanwhile,
   there is no host memory for its target, or the pass has too few bytes left. */
static bool add(VmaAllocator allocator, context *c, const part *from,
                const quire_compact_move *offered, allowance *left)
{
    quire_allocation_info info;
    qi_vma_allocation *source = NULL, *target;
    if (!quire_allocation_get_info(from->memory, offered->source, &info))
        source = qi_vma_table_find(&allocator->allocations, (uintptr_t)info.user_data);
    if (!source || source->size > left->bytes ||
        qi_vma_take_target(allocator, source, offered->target, &target))
        return false;
    left->bytes -= source->size;
    left->moves--;
    c->moves[c->move_count] = (move){from->compaction, *offered};
    c->shown[c->move_count++] = (VmaDefragmentationMove){
        .srcAllocation = (VmaAllocation)source->handle,
        .dstTmpAllocation = (VmaAllocation)target->handle,
    };
    return true;
}

/* Offers of one memory, until the pass has enough. A declined one ends them. */
static VkResult collect(VmaAllocator allocator, context *c, const part *from, allowance *left)
{
    quire_compact_move group[GROUP];
    const quire_compact_limits limits = {.bytes = left->bytes};
    for (bool goes_on = true; goes_on && left->moves;) {
        uint64_t count = 0;
        if (c->breaks && c->breaks(c->user_data))
            break;
        if (!make_room(allocator, c))
            return VK_ERROR_OUT_OF_HOST_MEMORY;
        quire_result result =
            quire_compact_offer(from->compaction, &limits, group,
                                left->moves < GROUP ? left->moves : GROUP, &count, NULL);
        goes_on = count && !result && c->max_bytes == UINT64_MAX;
        for (uint64_t i = 0; i < count; i++)
            if (!add(allocator, c, from, &group[i], left)) {
                goes_on = false;
                if (quire_compact_decline(from->compaction, &group[i]))
                    qi_vma_print("vmaBeginDefragmentationPass");
            }
        if (result)
            return qi_vma_result(result);
    }
    return VK_SUCCESS;
}

VkResult quire_vma_begin_defragmentation_pass(VmaAllocator allocator,
                                              VmaDefragmentationContext handle,
                                              VmaDefragmentationPassMoveInfo *info)
{
    if (info)
        *info = (VmaDefragmentationPassMoveInfo){0};
    context *c = context_of(allocator, handle);
    if (!c)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info || c->move_count)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "vmaBeginDefragmentationPass: %s",
                           info ? "a pass has not ended" : "pPassInfo is null");
    allowance left = {c->max_bytes, c->max_moves};
    VkResult result = VK_SUCCESS;
    for (uint32_t i = 0; i < c->part_count && !result; i++) {
        if (c->move_count && c->max_bytes != UINT64_MAX)
            break;
        result = collect(allocator, c, &c->parts[i], &left);
    }
    if (!c->move_count)
        return result;
    info->moveCount = c->move_count;
    info->pMoves = c->shown;
    return VK_INCOMPLETE;
}

/* ---- a pass ends -------------------------------------------------------------------------- */

/* Gives the record of a target back, whose allocation of quire has ended or ends now. */
static qi_vma_allocation *target_of(VmaAllocator allocator, const VmaDefragmentationMove *shown)
{
    return qi_vma_table_find(&allocator->allocations, (uintptr_t)shown->dstTmpAllocation);
}

/* Returns whether the allocation has moved. One that was freed meanwhile has not. */
static bool accept(VmaAllocator allocator, context *c, const move *m,
                   const VmaDefragmentationMove *shown)
{
    qi_vma_allocation *source =
        qi_vma_table_find(&allocator->allocations, (uintptr_t)shown->srcAllocation);
    qi_vma_allocation *target = target_of(allocator, shown);
    if (!target || !qi_vma_end_target_map(target) ||
        quire_compact_accept(m->compaction, &m->quire, NULL))
        return false;
    if (source && qi_vma_take_place(source, target))
        qi_vma_print("vmaEndDefragmentationPass");
    c->stats.bytesMoved += target->size;
    c->stats.allocationsMoved++;
    return true;
}

static void decline(VmaAllocator allocator, const move *m, const VmaDefragmentationMove *shown)
{
    qi_vma_allocation *target = target_of(allocator, shown);
    if (target)
        qi_vma_end_target_map(target);
    quire_result result = quire_compact_decline(m->compaction, &m->quire);
    if (result && result != QUIRE_ERROR_INVALID_ARGUMENT) /* accepting has ended the move */
        qi_vma_print("vmaEndDefragmentationPass");
}

/* Ends one move. Returns whether the allocation was copied or destroyed. */
static bool end_move(VmaAllocator allocator, context *c, const move *m,
                     const VmaDefragmentationMove *shown)
{
    const bool copies = shown->operation == VMA_DEFRAGMENTATION_MOVE_OPERATION_COPY;
    const bool destroys = shown->operation == VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY;
    const bool has_moved = copies && accept(allocator, c, m, shown);
    if (!has_moved)
        decline(allocator, m, shown);
    if (target_of(allocator, shown))
        qi_vma_table_give(&allocator->allocations, (uintptr_t)shown->dstTmpAllocation);
    return has_moved || (destroys && qi_vma_free(allocator, shown->srcAllocation));
}

/* Frees the blocks that became empty by DESTROY. */
static void free_blocks(context *c)
{
    for (uint32_t i = 0; i < c->part_count; i++) {
        quire_memory_stats before, after;
        if (quire_memory_get_stats(c->parts[i].memory, &before) ||
            quire_memory_trim(c->parts[i].memory, 0, NULL) ||
            quire_memory_get_stats(c->parts[i].memory, &after))
            continue;
        c->stats.deviceMemoryBlocksFreed +=
            (uint32_t)(after.pages_destroyed - before.pages_destroyed);
        c->stats.bytesFreed += before.reserved_bytes - after.reserved_bytes;
    }
}

static VkResult end_pass(VmaAllocator allocator, context *c)
{
    bool any = false, destroys = false;
    for (uint32_t i = 0; i < c->move_count; i++) {
        any |= end_move(allocator, c, &c->moves[i], &c->shown[i]);
        destroys |= c->shown[i].operation == VMA_DEFRAGMENTATION_MOVE_OPERATION_DESTROY;
    }
    c->move_count = 0;
    if (destroys)
        free_blocks(c);
    return any ? VK_INCOMPLETE : VK_SUCCESS;
}

VkResult quire_vma_end_defragmentation_pass(VmaAllocator allocator,
                                            VmaDefragmentationContext handle,
                                            VmaDefragmentationPassMoveInfo *info)
{
    context *c = context_of(allocator, handle);
    if (!c)
        return VK_ERROR_VALIDATION_FAILED_EXT;
    if (!info)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaEndDefragmentationPass: pPassInfo is null");
    *info = (VmaDefragmentationPassMoveInfo){0};
    return end_pass(allocator, c);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* The moves of a pass that has not ended are ignored. */
void quire_vma_end_defragmentation(VmaAllocator allocator, VmaDefragmentationContext handle,
                                   VmaDefragmentationStats *stats)
{
    if (stats)
        *stats = (VmaDefragmentationStats){0};
    context *c = context_of(allocator, handle);
    if (!c) {
        if (handle)
            qi_vma_print("vmaEndDefragmentation");
        return;
    }
    for (uint32_t i = 0; i < c->move_count; i++)
        c->shown[i].operation = VMA_DEFRAGMENTATION_MOVE_OPERATION_IGNORE;
    end_pass(allocator, c);
    for (uint32_t i = 0; i < c->part_count; i++) {
        quire_compact_stats done;
        if (quire_compact_get_stats(c->parts[i].compaction, &done))
            continue;
        c->stats.deviceMemoryBlocksFreed += (uint32_t)done.pages_freed;
        c->stats.bytesFreed += done.bytes_freed;
    }
    if (stats)
        *stats = c->stats;
    end_parts(allocator, c);
    qi_vma_host_release(&allocator->host, c->moves);
    qi_vma_host_release(&allocator->host, c->shown);
    qi_vma_host_release(&allocator->host, c);
    qi_vma_table_give(&allocator->defragmentations, (uintptr_t)handle);
}
