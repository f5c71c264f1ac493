/*
 * name_usage.c - the functions of limits by name that read a whole memory.
 *
 * A new limit starts with the sum over the allocations that exist. From then on allocations and
 * frees keep its account (slot/name_limit.h).
 */
#include "src/core/stats/name_usage.h"

#include <string.h>

#include "src/base/result.h"
#include "src/core/page/range.h"

/* Requires the locks of all shards. Sums over the allocations whose names start with the prefix. */
static quire_name_usage sum_of(const quire_memory *memory, const char *prefix)
{
    quire_name_usage sum = {0};
    size_t length = strlen(prefix);
    uint32_t top = qi_slots_top(&memory->slots);
    for (uint32_t i = 0; i < top; i++) {
        if (qi_slot_phase(&memory->slots, i) == QI_PHASE_FREE)
            continue;
        const qi_slot *record = qi_memory_slot(memory, i);
        if (!record->meta || !qi_name_begins(record->meta->name, prefix, length))
            continue;
        sum.held_bytes += qi_name_held_by(record);
        sum.requested_bytes += record->requested;
        sum.allocation_count++;
    }
    return sum;
}

static quire_name_usage usage_of(const qi_name_limit *limit)
{
    return (quire_name_usage){
        .limit = qi_atomic_load_u64(&limit->held.limit),
        .held_bytes = qi_account_used(&limit->held),
        .requested_bytes = qi_atomic_load_u64(&limit->requested),
        .allocation_count = qi_atomic_load_u64(&limit->count),
    };
}

bool qi_names_agree(const quire_memory *memory)
{
    for (const qi_name_limit *limit = memory->names.first; limit; limit = limit->next) {
        quire_name_usage sum = sum_of(memory, limit->prefix), kept = usage_of(limit);
        if (sum.held_bytes != kept.held_bytes || sum.requested_bytes != kept.requested_bytes ||
            sum.allocation_count != kept.allocation_count)
            return false;
    }
    return true;
}

/*
 * Requires the locks of all shards. Sets the limit; uses `made` if the prefix had none. Returns the
 * record that the caller releases, or NULL.
 */
static qi_name_limit *set(quire_memory *memory, const char *prefix, uint64_t bytes,
                          qi_name_limit *made)
{
    qi_name_limit **link = qi_name_limit_find(&memory->names, prefix), *limit = *link;
    if (!bytes) {
        *link = limit ? limit->next : NULL;
        return limit;
    }
    if (!limit) {
        quire_name_usage sum = sum_of(memory, prefix);
        qi_atomic_init_u64(&made->requested, sum.requested_bytes);
        qi_atomic_init_u64(&made->count, sum.allocation_count);
        qi_atomic_init_u64(&made->held.used, sum.held_bytes);
        *link = limit = made;
        made = NULL;
    }
    qi_account_set_limit(&limit->held, bytes);
    return made;
}

quire_result qi_name_limit_set(quire_memory *memory, const char *prefix, uint64_t bytes)
{
    qi_name_limit *made = bytes ? qi_name_limit_create(&memory->host, prefix) : NULL;
    if (bytes && !made)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for the limit of a name");
    qi_shards_acquire(memory);
    qi_name_limit *left = set(memory, prefix, bytes, made);
    qi_shards_release(memory);
    if (left)
        qi_name_limit_release(left, &memory->host);
    return QUIRE_SUCCESS;
}

quire_name_usage qi_name_usage_of(quire_memory *memory, const char *prefix)
{
    qi_shards_acquire(memory);
    const qi_name_limit *limit = *qi_name_limit_find(&memory->names, prefix);
    quire_name_usage usage = limit ? usage_of(limit) : sum_of(memory, prefix);
    qi_shards_release(memory);
    return usage;
}
