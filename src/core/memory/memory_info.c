/*
 * memory_info.c - describes a memory: its options as they were resolved, and its pages.
 */
#include "src/core/memory/memory_life.h"
#include "src/core/page/sizes.h"

quire_memory_info qi_memory_get_info(quire_memory *memory)
{
    qi_shard *shard = qi_shard_mine(memory);
    qi_lock_acquire(&shard->lock);
    qi_lock_acquire(&memory->pages.lock);
    uint64_t page_size = qi_page_policy_size(shard);
    uint64_t page_count = memory->pages.stats.page_count;
    qi_lock_release(&memory->pages.lock);
    qi_lock_release(&shard->lock);
    return (quire_memory_info){
        .name = memory->name,
        .device = memory->device,
        .kind = memory->kind,
        .flags = memory->flags,
        .mappable = (memory->flags & QUIRE_HOST_VISIBLE) != 0,
        .exportable = memory->exportable,
        .checked = qi_checked_is_on(memory),
        .within_budget = memory->within_budget,
        .fit = memory->fit,
        .page_size = page_size,
        .granule = memory->granule,
        .page_count = (uint32_t)page_count,
        .shards = qi_shard_count(memory) - memory->first_shard,
        .limit = qi_atomic_load_u64(&memory->account.limit),
        .address_space = memory->address_space,
    };
}
