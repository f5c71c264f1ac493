/*
 * page_size.c - computes page sizes (see page_size.h). A size above 64 bits counts as UINT64_MAX,
 * which no heap has.
 */
#include "src/core/page/page_size.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/page/page_history.h"
#include "src/space/fit.h"
#include "src/space/space.h"

uint64_t qi_page_unit(const quire_memory *memory)
{
    uint64_t granularity = memory->device->info.limits.page_granularity;
    return granularity > memory->granule ? granularity : memory->granule;
}

uint64_t qi_page_alignment(const quire_memory *memory, uint64_t alignment)
{
    return alignment > memory->granule ? alignment : memory->granule;
}

/*
 * Computes the bytes of a page in which the request fits for every address that the backend may
 * give the page. Returns true if they exceed 64 bits.
 */
static bool page_overflows(const qi_shard *shard, uint64_t size, uint64_t alignment, bool dedicated,
                           uint64_t *total)
{
    const quire_memory *memory = shard->memory;
    uint64_t wanted = qi_page_alignment(memory, alignment),
             base = memory->device->info.limits.page_alignment;
    if (!base) /* no promise by the device: the page has the alignment that is requested for it */
        base = qi_page_alignment(memory, memory->max_alignment);
    if (!dedicated)
        return qi_space_region_overflows(shard->space, size, alignment, base, total);
    return qi_align_up_overflows(size, memory->granule, total) ||
           qi_add_overflows(*total, wanted > base ? wanted - base : 0, total);
}

static uint64_t heap_of(const quire_memory *memory)
{
    const quire_device_info *info = &memory->device->info;
    uint32_t index = info->kinds[memory->kind].heap;
    return qi_heap_size(&memory->device->heaps[index], info->heaps[index].size);
}

bool qi_page_can_exist(const quire_memory *memory, uint64_t size)
{
    uint64_t max = memory->device->info.limits.max_page;
    return size <= heap_of(memory) && (!max || size <= max);
}

quire_result qi_page_check_total(const quire_memory *memory, uint64_t size, uint64_t total)
{
    uint64_t heap = heap_of(memory), max = memory->device->info.limits.max_page;
    if (total > heap)
        return qi_fail_with(
            QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
            "%b (%u byte%s) can never fit: the heap of memory kind %u has %b in all", size, size,
            memory->kind, heap);
    if (max && total > max)
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                            "%b can never fit: the largest page of the device has %b", size, max);
    return QUIRE_SUCCESS;
}

quire_result qi_page_needed_size(const qi_shard *shard, uint64_t size, uint64_t alignment,
                                 bool dedicated, uint64_t *needed)
{
    uint64_t total = 0;
    if (page_overflows(shard, size, alignment, dedicated, &total) ||
        qi_align_up_overflows(total, qi_page_unit(shard->memory), &total))
        total = UINT64_MAX;
    quire_result result = qi_page_check_total(shard->memory, size, total);
    if (!result)
        *needed = total;
    return result;
}

/* Limits a size to what the device expects of pages and buffers, and to the free part of the
   space's line. A buffer can then cover the page. */
static uint64_t within_limits(const qi_shard *shard, uint64_t size)
{
    const quire_memory *memory = shard->memory;
    const quire_limits *limits = &memory->device->info.limits;
    const uint64_t list[] = {limits->max_page, limits->usual_page, limits->max_buffer};
    uint64_t largest = qi_space_line_left(shard->space);
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        if (list[i] && list[i] < largest)
            largest = list[i];
    return size > largest ? qi_align_down(largest, qi_page_unit(memory)) : size;
}

uint64_t qi_page_policy_size(const qi_shard *shard)
{
    const quire_memory *memory = shard->memory;
    qi_page_history had = qi_page_history_of(shard);
    return within_limits(shard, qi_policy_next_page(&memory->policy, &had, qi_page_unit(memory)));
}

/* The policy and the limits never make a page too small for its request. */
uint64_t qi_page_wanted_size(const qi_shard *shard, const qi_page *page, uint64_t size,
                             uint64_t needed)
{
    const quire_page_policy *policy = &shard->memory->policy;
    if (page->tied)
        return needed;
    uint64_t wanted = qi_policy_round(policy, needed);
    if (!page->dedicated)
        qi_raise(&wanted, qi_policy_page_for(policy, page->policy_size, size, needed,
                                             qi_page_unit(shard->memory)));
    wanted = within_limits(shard, wanted);
    return wanted > needed ? wanted : needed;
}
