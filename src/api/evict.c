/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* evict.c - the public functions of quire/evict.h: each checks its arguments and calls the core. */
#include "quire/evict.h"

#include "src/api/check.h"
#include "src/core/compact/evict.h"
#include "src/core/slot/recency.h"

/* ---- the order ---------------------------------------------------------------------------- */

quire_result quire_set_priority(quire_memory *memory, quire_allocation allocation, int8_t priority)
{
    uint32_t slot = 0;
    if (!memory)
        return qi_fail_null("quire_set_priority", "memory");
    quire_result result = qi_slot_begin_use(
        &memory->slots, allocation, QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED | QI_ACCEPT_ASLEEP, &slot);
    if (result)
        return result;
    result = qi_recency_set_priority(&memory->slots, &memory->host, slot, priority);
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result quire_touch(quire_memory *memory, quire_allocation allocation)
{
    uint32_t slot = 0;
    if (!memory)
        return qi_fail_null("quire_touch", "memory");
    quire_result result =
        qi_slot_begin_use(&memory->slots, allocation, QI_ACCEPT_LIVE | QI_ACCEPT_RESERVED, &slot);
    if (result)
        return result;
    result =
        qi_recency_touch(&memory->slots, &memory->host, slot, qi_atomic_load_u32(&memory->frame));
    qi_slot_end_use(&memory->slots, slot);
    return result;
}

quire_result quire_memory_frame(quire_memory *memory)
{
    if (!memory)
        return qi_fail_null("quire_memory_frame", "memory");
    uint32_t frame = qi_atomic_load_u32(&memory->frame);
    while (!qi_atomic_exchange_if_u32(&memory->frame, &frame, qi_recency_next_frame(frame)))
        continue;
    return QUIRE_SUCCESS;
}

/* ---- eviction ----------------------------------------------------------------------------- */

quire_result quire_memory_evict(quire_memory *memory, const quire_evict_options *options,
                                uint64_t *bytes)
{
    uint64_t evicted = 0;
    quire_result result = memory && options
                              ? qi_check_unused(options, "quire_evict_options")
                              : qi_fail_null("quire_memory_evict", !memory ? "memory" : "options");
    if (!result)
        result = check_sleep_mode("quire_memory_evict", options->mode);
    if (!result)
        result = qi_evict(memory, options, &evicted);
    if (bytes)
        *bytes = evicted;
    return result;
}

quire_result quire_wake(quire_memory *memory, quire_allocation allocation)
{
    if (!memory)
        return qi_fail_null("quire_wake", "memory");
    if (memory->is_elastic)
        return qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                            "memory '%s' is elastic: quire_memory_wake wakes its allocations",
                            memory->name);
    return qi_wake(memory, allocation);
}
