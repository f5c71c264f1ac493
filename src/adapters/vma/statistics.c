/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * statistics.c - fast statistics are the sums that quire keeps, detailed ones come from a walk of
 * all ranges. Also heap budgets, checks, and descriptions as text.
 */
#include "quire/quire_vma.h"
#include "src/adapters/vma/memory.h"

/* ---- fast statistics ---------------------------------------------------------------------- */

static void add(VmaStatistics *sum, const VmaStatistics *more)
{
    sum->blockCount += more->blockCount;
    sum->allocationCount += more->allocationCount;
    sum->blockBytes += more->blockBytes;
    sum->allocationBytes += more->allocationBytes;
}

static VmaStatistics statistics_of(quire_memory *memory)
{
    quire_memory_stats stats;
    if (quire_memory_get_stats(memory, &stats))
        return (VmaStatistics){0};
    return (VmaStatistics){.blockCount = (uint32_t)stats.page_count,
                           .allocationCount = (uint32_t)stats.allocation_count,
                           .blockBytes = stats.reserved_bytes,
                           .allocationBytes = stats.requested_bytes};
}

/* ---- detailed statistics ------------------------------------------------------------------ */

static void begin(VmaDetailedStatistics *d)
{
    *d = (VmaDetailedStatistics){.allocationSizeMin = VK_WHOLE_SIZE,
                                 .unusedRangeSizeMin = VK_WHOLE_SIZE};
}

static VkDeviceSize smaller(VkDeviceSize a, VkDeviceSize b)
{
    return a < b ? a : b;
}

static VkDeviceSize larger(VkDeviceSize a, VkDeviceSize b)
{
    return a > b ? a : b;
}

static bool add_range(void *user, const quire_item *item)
{
    VmaDetailedStatistics *d = user;
    if (item->is_free) {
        d->unusedRangeCount++;
        d->unusedRangeSizeMin = smaller(d->unusedRangeSizeMin, item->size);
        d->unusedRangeSizeMax = larger(d->unusedRangeSizeMax, item->size);
        return true;
    }
    d->allocationSizeMin = smaller(d->allocationSizeMin, item->requested);
    d->allocationSizeMax = larger(d->allocationSizeMax, item->requested);
    return true;
}

static bool detail(quire_memory *memory, VmaDetailedStatistics *d)
{
    begin(d);
    d->statistics = statistics_of(memory);
    return !quire_memory_walk(memory, add_range, d);
}

static void add_detailed(VmaDetailedStatistics *sum, const VmaDetailedStatistics *more)
{
    add(&sum->statistics, &more->statistics);
    sum->unusedRangeCount += more->unusedRangeCount;
    sum->allocationSizeMin = smaller(sum->allocationSizeMin, more->allocationSizeMin);
    sum->allocationSizeMax = larger(sum->allocationSizeMax, more->allocationSizeMax);
    sum->unusedRangeSizeMin = smaller(sum->unusedRangeSizeMin, more->unusedRangeSizeMin);
    sum->unusedRangeSizeMax = larger(sum->unusedRangeSizeMax, more->unusedRangeSizeMax);
}

/* What is summed over the memories, with the allocator for the heaps of their types. */
typedef struct total {
    VmaAllocator allocator;
    VmaTotalStatistics *stats;
} total;

static void add_memory(void *user, quire_memory *memory, uint32_t type)
{
    const total *t = user;
    VmaDetailedStatistics d;
    if (!detail(memory, &d))
        return;
    uint32_t heap = t->allocator->memory.memoryTypes[type].heapIndex;
    add_detailed(&t->stats->memoryType[type], &d);
    add_detailed(&t->stats->memoryHeap[heap], &d);
    add_detailed(&t->stats->total, &d);
}

void quire_vma_calculate_statistics(VmaAllocator allocator, VmaTotalStatistics *stats)
{
    if (!qi_vma_is_allocator(allocator) || !stats) {
        qi_vma_print("vmaCalculateStatistics");
        return;
    }
    begin(&stats->total);
    for (uint32_t i = 0; i < VK_MAX_MEMORY_TYPES; i++)
        begin(&stats->memoryType[i]);
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++)
        begin(&stats->memoryHeap[i]);
    qi_vma_each_memory(allocator, add_memory, &(total){.allocator = allocator, .stats = stats});
}

/* ---- budgets ------------------------------------------------------------------------------ */

typedef struct heaps {
    VmaAllocator allocator;
    VmaBudget *budgets;
} heaps;

static void add_to_heap(void *user, quire_memory *memory, uint32_t type)
{
    const heaps *h = user;
    VmaStatistics more = statistics_of(memory);
    add(&h->budgets[h->allocator->memory.memoryTypes[type].heapIndex].statistics, &more);
}

void quire_vma_get_heap_budgets(VmaAllocator allocator, VmaBudget *budgets)
{
    if (!qi_vma_is_allocator(allocator) || !budgets) {
        qi_vma_print("vmaGetHeapBudgets");
        return;
    }
    for (uint32_t i = 0; i < allocator->memory.memoryHeapCount; i++)
        budgets[i] = (VmaBudget){.usage = 0};
    qi_vma_each_memory(allocator, add_to_heap,
                       &(heaps){.allocator = allocator, .budgets = budgets});
    bool has_budget = allocator->flags & VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT;
    for (uint32_t i = 0; i < allocator->memory.memoryHeapCount; i++) {
        quire_budget_info info;
        VkDeviceSize size = allocator->memory.memoryHeaps[i].size;
        budgets[i].usage = budgets[i].statistics.blockBytes;
        budgets[i].budget = qi_vma_usual_budget(allocator, i);
        if (!has_budget || quire_device_get_budget(allocator->quire, i, &info))
            continue;
        budgets[i].usage = info.usage;
        budgets[i].budget = smaller(info.budget, size);
    }
}

/* ---- pools -------------------------------------------------------------------------------- */

void quire_vma_get_pool_statistics(VmaAllocator allocator, VmaPool handle, VmaStatistics *stats)
{
    const qi_vma_pool *pool = qi_vma_pool_of(allocator, handle);
    if (stats)
        *stats = pool ? statistics_of(pool->memory) : (VmaStatistics){0};
    if (!pool || !stats)
        qi_vma_print("vmaGetPoolStatistics");
}

void quire_vma_calculate_pool_statistics(VmaAllocator allocator, VmaPool handle,
                                         VmaDetailedStatistics *stats)
{
    const qi_vma_pool *pool = qi_vma_pool_of(allocator, handle);
    if (stats)
        begin(stats);
    if (!pool || !stats || !detail(pool->memory, stats))
        qi_vma_print("vmaCalculatePoolStatistics");
}

/* ---- checks ------------------------------------------------------------------------------- */

/* Only a checked build of quire has red zones that could be damaged. */
static VkResult check(quire_memory *memory)
{
    quire_memory_info info;
    quire_result result = quire_memory_check(memory);
    if (!result)
        result = quire_memory_get_info(memory, &info);
    if (result)
        return qi_vma_result(result);
    return info.checked ? VK_SUCCESS : VK_ERROR_FEATURE_NOT_PRESENT;
}

VkResult quire_vma_check_pool_corruption(VmaAllocator allocator, VmaPool handle)
{
    const qi_vma_pool *pool = qi_vma_pool_of(allocator, handle);
    return pool ? check(pool->memory) : VK_ERROR_VALIDATION_FAILED_EXT;
}

typedef struct checks {
    uint32_t mask;
    VkResult result; /* the first that is not FEATURE_NOT_PRESENT and no success, if there is one */
} checks;

static void check_memory(void *user, quire_memory *memory, uint32_t type)
{
    checks *c = user;
    if (!(c->mask >> type & 1) ||
        (c->result != VK_SUCCESS && c->result != VK_ERROR_FEATURE_NOT_PRESENT))
        return;
    VkResult result = check(memory);
    if (result != VK_ERROR_FEATURE_NOT_PRESENT)
        c->result = result;
}

VkResult quire_vma_check_corruption(VmaAllocator allocator, uint32_t mask)
{
    checks c = {.mask = mask, .result = VK_ERROR_FEATURE_NOT_PRESENT};
    if (!qi_vma_is_allocator(allocator))
        return VK_ERROR_VALIDATION_FAILED_EXT;
    qi_vma_each_memory(allocator, check_memory, &c);
    return c.result;
}

/* ---- text --------------------------------------------------------------------------------- */

/* The JSON of VMA. The detailed map costs less than a form without it would in lines of code, and
   readers find its key by name: it is there either way. */
void quire_vma_build_stats_string(VmaAllocator allocator, char **string, VkBool32 detailed)
{
    (void)detailed;
    if (string)
        *string = NULL;
    if (!qi_vma_is_allocator(allocator) || !string) {
        qi_vma_print("vmaBuildStatsString");
        return;
    }
    qi_vma_text t = {.host = &allocator->host};
    t.has_failed = quire_device_write_vma(allocator->quire, qi_vma_text_write, &t) != QUIRE_SUCCESS;
    *string = qi_vma_text_end(&t);
    if (!*string)
        qi_vma_print("vmaBuildStatsString");
}

void quire_vma_free_stats_string(VmaAllocator allocator, char *string)
{
    if (string && qi_vma_is_allocator(allocator))
        qi_vma_host_release(&allocator->host, string);
}
