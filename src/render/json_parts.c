/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * json_parts.c - see json_parts.h. A key that is removed or changes its meaning raises
 * QUIRE_JSON_SCHEMA.
 */
#include "src/render/json_parts.h"

void qi_json_flags(qi_json *json, const char *key, quire_memory_flags flags)
{
    qi_json_array(json, key);
    for (quire_memory_flags flag = 1; quire_memory_flag_name(flag); flag <<= 1)
        if (flags & flag)
            qi_json_text(json, NULL, quire_memory_flag_name(flag));
    qi_json_end_array(json);
}

/* The keys are the names of the fields, so that both are documented in one place. */
void qi_json_memory_stats(qi_json *json, const quire_memory_stats *stats)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"live_bytes", stats->live_bytes},
        {"deferred_bytes", stats->deferred_bytes},
        {"requested_bytes", stats->requested_bytes},
        {"asleep_bytes", stats->asleep_bytes},
        {"reserved_bytes", stats->reserved_bytes},
        {"free_bytes", stats->free_bytes},
        {"empty_bytes", stats->empty_bytes},
        {"largest_free", stats->largest_free},
        {"allocation_count", stats->allocation_count},
        {"deferred_count", stats->deferred_count},
        {"asleep_count", stats->asleep_count},
        {"page_count", stats->page_count},
        {"peak_live_bytes", stats->peak_live_bytes},
        {"peak_requested_bytes", stats->peak_requested_bytes},
        {"peak_reserved_bytes", stats->peak_reserved_bytes},
        {"peak_allocation_count", stats->peak_allocation_count},
        {"peak_page_count", stats->peak_page_count},
        {"allocations", stats->allocations},
        {"frees", stats->frees},
        {"failures", stats->failures},
        {"full_passes", stats->full_passes},
        {"full_pass_hits", stats->full_pass_hits},
        {"pages_created", stats->pages_created},
        {"pages_destroyed", stats->pages_destroyed},
        {"pages_over_budget", stats->pages_over_budget},
        {"backend_calls", stats->backend_calls},
        {"backend_nanoseconds", stats->backend_nanoseconds},
        {"metadata_bytes", stats->metadata_bytes},
        {"metadata_peak", stats->metadata_peak},
    };
    qi_json_object(json, "stats");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        qi_json_number(json, numbers[i].key, numbers[i].value);
    qi_json_object(json, "fragmentation");
    qi_json_real(json, "reserved", stats->fragmentation.reserved);
    qi_json_real(json, "free", stats->fragmentation.free);
    qi_json_number(json, "internal", stats->fragmentation.internal);
    qi_json_number(json, "split", stats->fragmentation.split);
    qi_json_end_object(json);
    qi_json_end_object(json);
}

void qi_json_heap(qi_json *json, const quire_budget_info *budget, bool has_budget)
{
    qi_json_number(json, "size", budget->size);
    qi_json_number(json, "limit", budget->limit);
    qi_json_number(json, "reserved", budget->reserved);
    const struct {
        const char *key;
        uint64_t value;
    } reported[] = {
        {"budget", budget->budget}, {"usage", budget->usage}, {"available", budget->available}};
    for (size_t i = 0; i < sizeof reported / sizeof *reported; i++)
        if (has_budget)
            qi_json_number(json, reported[i].key, reported[i].value);
        else
            qi_json_null(json, reported[i].key);
}
