/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * virtual_block.c - virtual blocks: each is a space of quire with one region and granules of 1
 * byte, so that sizes and offsets are exact. An allocation is the handle of its range.
 */
#include "quire/vma/virtual_block.h"

#include <stdio.h>

#include "quire/space.h"
#include "src/adapters/vma/base.h"

/* The largest alignment of a space, in bytes. */
enum { MAX_ALIGNMENT = 1 << 30 };

struct VmaVirtualBlock_T {
    qi_vma_host host;
    quire_space *space;
    bool is_linear;
};

/* ---- creation ------------------------------------------------------------------------------- */

static VkResult check_block(const VmaVirtualBlockCreateInfo *info)
{
    if (info->flags & ~(VkFlags)VMA_VIRTUAL_BLOCK_CREATE_ALGORITHM_MASK)
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "vmaCreateVirtualBlock: the flags 0x%x have unknown bits", info->flags);
    if (!info->size)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "vmaCreateVirtualBlock: the size is 0");
    return qi_vma_host_can_use(info->pAllocationCallbacks) ? VK_SUCCESS
                                                           : VK_ERROR_VALIDATION_FAILED_EXT;
}

/* The line of the segregated fit has 2^32 - 1 bytes; a larger block uses the first fit. */
static quire_fit fit_of(const VmaVirtualBlockCreateInfo *info)
{
    if (info->flags & VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT)
        return QUIRE_FIT_LINEAR;
    return info->size > UINT32_MAX ? QUIRE_FIT_FIRST : QUIRE_FIT_SEGREGATED;
}

VkResult quire_vma_create_virtual_block(const VmaVirtualBlockCreateInfo *pCreateInfo,
                                        VmaVirtualBlock *pVirtualBlock)
{
    if (pVirtualBlock)
        *pVirtualBlock = NULL;
    if (!pCreateInfo || !pVirtualBlock)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaCreateVirtualBlock: pCreateInfo or pVirtualBlock is null");
    VkResult result = check_block(pCreateInfo);
    if (result)
        return result;
    qi_vma_host host;
    qi_vma_host_begin(&host, pCreateInfo->pAllocationCallbacks);
    VmaVirtualBlock block = qi_vma_host_allocate(&host, sizeof *block);
    if (!block)
        return VK_ERROR_OUT_OF_HOST_MEMORY;
    qi_vma_host_begin(&block->host, pCreateInfo->pAllocationCallbacks);
    block->is_linear = pCreateInfo->flags & VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT;
    const quire_space_options options = {
        .size = pCreateInfo->size,
        .fit = {.algorithm = fit_of(pCreateInfo), .granule = 1, .max_alignment = MAX_ALIGNMENT},
        .host_memory = &block->host.memory,
    };
    result = qi_vma_result(quire_space_create(&options, &block->space));
    if (result)
        qi_vma_host_release(&host, block);
    else
        *pVirtualBlock = block;
    return result;
}

/* ---- the arguments of functions that return nothing ----------------------------------------- */

/* Returns the space of a block, or NULL after a line on stderr. */
static quire_space *space_of(VmaVirtualBlock block, const void *out, const char *function)
{
    if (block && out)
        return block->space;
    qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, block ? "the output is null" : "the block is null");
    qi_vma_print(function);
    return NULL;
}

/* Prints the sentence of a failure. */
static bool succeeds(quire_result result, const char *function)
{
    if (result)
        qi_vma_print(function);
    return !result;
}

static quire_range range_of(VmaVirtualAllocation allocation)
{
    return (quire_range){(uint64_t)allocation};
}

void quire_vma_destroy_virtual_block(VmaVirtualBlock virtualBlock, quire_vma_leak_log log)
{
    quire_space_stats stats;
    if (!virtualBlock ||
        !succeeds(quire_space_get_stats(virtualBlock->space, &stats), "vmaDestroyVirtualBlock"))
        return;
    if (stats.live_count) {
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                    "the block stays; live allocations, which vmaClearVirtualBlock frees: %llu",
                    (unsigned long long)stats.live_count);
        qi_vma_send_lines(log);
        qi_vma_print("vmaDestroyVirtualBlock");
        qi_vma_send_lines(NULL);
        return;
    }
    quire_space_destroy(&virtualBlock->space);
    qi_vma_host_release(&virtualBlock->host, virtualBlock);
}

/* ---- allocating and freeing ----------------------------------------------------------------- */

/* Checks what a space does not check itself, or would report by another name. */
static VkResult check_allocation(VmaVirtualBlock block, const VmaVirtualAllocationCreateInfo *info)
{
    const VkFlags upper = VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT;
    if (info->flags & ~(upper | VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MASK))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "vmaVirtualAllocate: the flags 0x%x have unknown bits", info->flags);
    if (info->flags & upper && !block->is_linear)
        return qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                           "vmaVirtualAllocate: UPPER_ADDRESS_BIT requires a block with "
                           "LINEAR_ALGORITHM_BIT");
    if (info->alignment > MAX_ALIGNMENT && !(info->alignment & (info->alignment - 1)))
        return qi_vma_fail(VK_ERROR_FEATURE_NOT_PRESENT,
                           "vmaVirtualAllocate: the alignment %llu is above 1 GiB",
                           (unsigned long long)info->alignment);
    return VK_SUCCESS;
}

static VkResult allocate(VmaVirtualBlock block, const VmaVirtualAllocationCreateInfo *info,
                         quire_placement *at)
{
    VkResult result = check_allocation(block, info);
    if (result)
        return result;
    uint64_t user = (uintptr_t)info->pUserData;
    const VkFlags special = VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT |
                            VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT;
    if (!(info->flags & special))
        return qi_vma_result(
            quire_space_allocate(block->space, info->size, info->alignment, user, at));
    const quire_range_options options = {
        .size = info->size,
        .alignment = info->alignment,
        .user = user,
        .upper = info->flags & VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT,
        .lowest = !block->is_linear, /* the linear algorithm has one place for a request */
    };
    return qi_vma_result(quire_space_allocate_with(block->space, &options, at));
}

VkResult quire_vma_virtual_allocate(VmaVirtualBlock virtualBlock,
                                    const VmaVirtualAllocationCreateInfo *pCreateInfo,
                                    VmaVirtualAllocation *pAllocation, VkDeviceSize *pOffset)
{
    quire_placement at = {.range = {0}};
    VkResult result = virtualBlock && pCreateInfo && pAllocation
                          ? allocate(virtualBlock, pCreateInfo, &at)
                          : qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                                        "vmaVirtualAllocate: the block, pCreateInfo or "
                                        "pAllocation is null");
    if (pAllocation)
        *pAllocation = (VmaVirtualAllocation)at.range.id;
    if (pOffset)
        *pOffset = result ? VK_WHOLE_SIZE : at.offset;
    return result;
}

void quire_vma_virtual_free(VmaVirtualBlock virtualBlock, VmaVirtualAllocation allocation)
{
    if (!allocation)
        return;
    quire_space *space = space_of(virtualBlock, virtualBlock, "vmaVirtualFree");
    if (space)
        succeeds(quire_space_free(space, range_of(allocation)), "vmaVirtualFree");
}

void quire_vma_clear_virtual_block(VmaVirtualBlock virtualBlock)
{
    quire_space *space = space_of(virtualBlock, virtualBlock, "vmaClearVirtualBlock");
    if (space)
        succeeds(quire_space_clear(space), "vmaClearVirtualBlock");
}

/* ---- information ---------------------------------------------------------------------------- */

VkBool32 quire_vma_is_virtual_block_empty(VmaVirtualBlock virtualBlock)
{
    quire_space *space = space_of(virtualBlock, virtualBlock, "vmaIsVirtualBlockEmpty");
    quire_space_stats stats = {.live_count = 0};
    if (space)
        succeeds(quire_space_get_stats(space, &stats), "vmaIsVirtualBlockEmpty");
    return stats.live_count == 0;
}

void quire_vma_get_virtual_allocation_info(VmaVirtualBlock virtualBlock,
                                           VmaVirtualAllocation allocation,
                                           VmaVirtualAllocationInfo *pVirtualAllocInfo)
{
    quire_space *space = space_of(virtualBlock, pVirtualAllocInfo, "vmaGetVirtualAllocationInfo");
    if (pVirtualAllocInfo)
        *pVirtualAllocInfo = (VmaVirtualAllocationInfo){.offset = VK_WHOLE_SIZE};
    quire_placement at;
    if (!space ||
        !succeeds(quire_space_get(space, range_of(allocation), &at), "vmaGetVirtualAllocationInfo"))
        return;
    *pVirtualAllocInfo = (VmaVirtualAllocationInfo){
        .offset = at.offset, .size = at.size, .pUserData = (void *)(uintptr_t)at.user};
}

void quire_vma_set_virtual_allocation_user_data(VmaVirtualBlock virtualBlock,
                                                VmaVirtualAllocation allocation, void *pUserData)
{
    quire_space *space = space_of(virtualBlock, virtualBlock, "vmaSetVirtualAllocationUserData");
    if (space)
        succeeds(quire_space_set_user(space, range_of(allocation), (uintptr_t)pUserData),
                 "vmaSetVirtualAllocationUserData");
}

void quire_vma_get_virtual_block_statistics(VmaVirtualBlock virtualBlock, VmaStatistics *pStats)
{
    quire_space *space = space_of(virtualBlock, pStats, "vmaGetVirtualBlockStatistics");
    if (pStats)
        *pStats = (VmaStatistics){.blockCount = 0};
    quire_space_stats stats;
    if (space && succeeds(quire_space_get_stats(space, &stats), "vmaGetVirtualBlockStatistics"))
        *pStats = (VmaStatistics){
            .blockCount = 1,
            .allocationCount = (uint32_t)stats.live_count,
            .blockBytes = stats.region_bytes,
            .allocationBytes = stats.live_bytes,
        };
}

typedef struct count {
    VmaDetailedStatistics *stats;
    VkDeviceSize unused; /* bytes since the last allocation */
} count;

static void end_unused_range(count *c)
{
    VmaDetailedStatistics *stats = c->stats;
    if (!c->unused)
        return;
    stats->unusedRangeCount++;
    if (c->unused < stats->unusedRangeSizeMin)
        stats->unusedRangeSizeMin = c->unused;
    if (c->unused > stats->unusedRangeSizeMax)
        stats->unusedRangeSizeMax = c->unused;
    c->unused = 0;
}

/* The left padding of an allocation is unused too, together with the free range before it. */
static bool count_item(void *user, const quire_space_item *item)
{
    count *c = user;
    if (item->is_free) {
        c->unused += item->size;
        return true;
    }
    c->unused += item->left_padding;
    end_unused_range(c);
    if (item->size < c->stats->allocationSizeMin)
        c->stats->allocationSizeMin = item->size;
    if (item->size > c->stats->allocationSizeMax)
        c->stats->allocationSizeMax = item->size;
    return true;
}

void quire_vma_calculate_virtual_block_statistics(VmaVirtualBlock virtualBlock,
                                                  VmaDetailedStatistics *pStats)
{
    quire_space *space = space_of(virtualBlock, pStats, "vmaCalculateVirtualBlockStatistics");
    if (!pStats)
        return;
    *pStats = (VmaDetailedStatistics){.allocationSizeMin = VK_WHOLE_SIZE,
                                      .unusedRangeSizeMin = VK_WHOLE_SIZE};
    if (!space)
        return;
    quire_vma_get_virtual_block_statistics(virtualBlock, &pStats->statistics);
    count c = {.stats = pStats};
    succeeds(quire_space_walk(space, count_item, &c), "vmaCalculateVirtualBlockStatistics");
    end_unused_range(&c);
}

/* ---- text ----------------------------------------------------------------------------------- */

/* Appends a member of an object; `before` has what precedes its value. */
static void add_number(qi_vma_text *text, const char *before, uint64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
    qi_vma_text_add(text, before);
    qi_vma_text_add(text, digits);
}

/* The least and the most of several sizes, which say nothing about one or none. */
static void add_extent(qi_vma_text *text, uint64_t sizes, const char *least, VkDeviceSize min,
                       const char *most, VkDeviceSize max)
{
    if (sizes < 2)
        return;
    add_number(text, least, min);
    add_number(text, most, max);
}

static void add_statistics(qi_vma_text *text, const VmaDetailedStatistics *stats)
{
    const VmaStatistics *s = &stats->statistics;
    add_number(text, "{\"Stats\": {\"BlockCount\": ", s->blockCount);
    add_number(text, ", \"BlockBytes\": ", s->blockBytes);
    add_number(text, ", \"AllocationCount\": ", s->allocationCount);
    add_number(text, ", \"AllocationBytes\": ", s->allocationBytes);
    add_number(text, ", \"UnusedRangeCount\": ", stats->unusedRangeCount);
    add_extent(text, s->allocationCount, ", \"AllocationSizeMin\": ", stats->allocationSizeMin,
               ", \"AllocationSizeMax\": ", stats->allocationSizeMax);
    add_extent(text, stats->unusedRangeCount,
               ", \"UnusedRangeSizeMin\": ", stats->unusedRangeSizeMin,
               ", \"UnusedRangeSizeMax\": ", stats->unusedRangeSizeMax);
    qi_vma_text_add(text, "}");
}

typedef struct list {
    qi_vma_text *text;
    VkDeviceSize end;    /* of the last allocation, in bytes from the start of the block */
    const char *between; /* what precedes the next range */
} list;

/* Lists the bytes between the last allocation and `offset`. */
static void add_unused(list *l, VkDeviceSize offset)
{
    if (offset == l->end)
        return;
    qi_vma_text_add(l->text, l->between);
    add_number(l->text, "{\"Offset\": ", l->end);
    add_number(l->text, ", \"Type\": \"FREE\", \"Size\": ", offset - l->end);
    qi_vma_text_add(l->text, "}");
    l->between = ",\n";
}

static bool add_item(void *user, const quire_space_item *item)
{
    list *l = user;
    char data[48] = "";
    if (item->is_free)
        return true;
    add_unused(l, item->offset);
    qi_vma_text_add(l->text, l->between);
    add_number(l->text, "{\"Offset\": ", item->offset);
    add_number(l->text, ", \"Size\": ", item->size);
    if (item->user)
        snprintf(data, sizeof data, ", \"CustomData\": \"%p\"", (void *)(uintptr_t)item->user);
    qi_vma_text_add(l->text, data);
    qi_vma_text_add(l->text, "}");
    l->end = item->offset + item->size;
    l->between = ",\n";
    return true;
}

static void add_details(qi_vma_text *text, const quire_space *space,
                        const VmaDetailedStatistics *stats)
{
    const VmaStatistics *s = &stats->statistics;
    list l = {.text = text, .between = "\n"};
    add_number(text, ",\n\"Details\": {\"TotalBytes\": ", s->blockBytes);
    add_number(text, ", \"UnusedBytes\": ", s->blockBytes - s->allocationBytes);
    add_number(text, ", \"Allocations\": ", s->allocationCount);
    add_number(text, ", \"UnusedRanges\": ", stats->unusedRangeCount);
    qi_vma_text_add(text, ", \"Suballocations\": [");
    if (quire_space_walk(space, add_item, &l))
        text->has_failed = true;
    add_unused(&l, s->blockBytes);
    qi_vma_text_add(text, "]}");
}

/* The members of VMA, because programs search for them. */
void quire_vma_build_virtual_block_stats_string(VmaVirtualBlock virtualBlock, char **ppStatsString,
                                                VkBool32 detailedMap)
{
    const quire_space *space =
        space_of(virtualBlock, ppStatsString, "vmaBuildVirtualBlockStatsString");
    VmaDetailedStatistics stats;
    if (ppStatsString)
        *ppStatsString = NULL;
    if (!space)
        return;
    qi_vma_text text = {.host = &virtualBlock->host};
    quire_vma_calculate_virtual_block_statistics(virtualBlock, &stats);
    add_statistics(&text, &stats);
    if (detailedMap)
        add_details(&text, space, &stats);
    qi_vma_text_add(&text, "}\n");
    *ppStatsString = qi_vma_text_end(&text);
    if (!*ppStatsString)
        qi_vma_print("vmaBuildVirtualBlockStatsString");
}

void quire_vma_free_virtual_block_stats_string(VmaVirtualBlock virtualBlock, char *pStatsString)
{
    if (virtualBlock)
        qi_vma_host_release(&virtualBlock->host, pStatsString);
}
