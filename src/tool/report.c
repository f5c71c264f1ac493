/*
 * report.c - see report.h.
 */
#include "src/tool/report.h"

static void write_latency(qi_json *json, const char *key, const quire_latency *ns)
{
    qi_json_object(json, key);
    qi_json_number(json, "p50", ns->p50);
    qi_json_number(json, "p99", ns->p99);
    qi_json_number(json, "p999", ns->p999);
    qi_json_number(json, "max", ns->max);
    qi_json_end_object(json);
}

static void write_numbers(qi_json *json, const quire_replay_report *o)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"operations", o->operations},
        {"allocations", o->allocations},
        {"frees", o->frees},
        {"uses", o->uses},
        {"frames", o->frames},
        {"failures", o->failures},
        {"peak_live_bytes", o->peak_live_bytes},
        {"peak_requested_bytes", o->peak_requested_bytes},
        {"peak_reserved_bytes", o->peak_reserved_bytes},
        {"pages_created", o->pages_created},
        {"pages_destroyed", o->pages_destroyed},
        {"peak_pages", o->peak_pages},
        {"backend_calls", o->backend_calls},
        {"wall_ns", o->wall_ns},
        {"left_at_end", o->left_at_end},
        {"left_bytes", o->left_bytes},
        {"metadata_bytes_peak", o->metadata_bytes_peak},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        qi_json_number(json, numbers[i].key, numbers[i].value);
}

void write_report(qi_json *json, const quire_replay_report *o)
{
    write_numbers(json, o);
    write_latency(json, "alloc_ns", &o->alloc_ns);
    write_latency(json, "free_ns", &o->free_ns);
    qi_json_object(json, "fragmentation");
    qi_json_real(json, "reserved", o->fragmentation.reserved);
    qi_json_real(json, "free", o->fragmentation.free);
    qi_json_number(json, "internal", o->fragmentation.internal);
    qi_json_number(json, "split", o->fragmentation.split);
    qi_json_end_object(json);
}
