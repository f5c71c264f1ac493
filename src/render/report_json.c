/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report_json.c - writes the facts of a memory (report_facts.h) as JSON: a memory with
 * quire_memory_write_report_json, the heaps and all memories of a device with
 * quire_device_write_report_json.
 *
 * docs/formats.md lists the keys. No lock is held while the sink runs.
 */
#include "quire/insight.h"
#include "src/base/bits.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/core/allocate/oom_report.h"
#include "src/core/state/memory.h"
#include "src/render/json_parts.h"
#include "src/render/report_facts.h"

/* Words of qi_limit; NULL: none. */
static const char *limit_word(qi_limit limit)
{
    static const char *const WORDS[] = {
        [QI_LIMIT_NONE] = NULL,
        [QI_LIMIT_HEAP_SIZE] = "heap_size",
        [QI_LIMIT_PAGE_SIZE] = "page_size",
        [QI_LIMIT_HEAP] = "heap",
        [QI_LIMIT_BUDGET] = "budget",
        [QI_LIMIT_MEMORY] = "memory",
        [QI_LIMIT_NAMES] = "names",
        [QI_LIMIT_MEMORY_PAGES] = "memory_pages",
        [QI_LIMIT_DEVICE_PAGES] = "device_pages",
        [QI_LIMIT_ADDRESSES] = "addresses",
        [QI_LIMIT_ALLOCATIONS] = "allocations",
    };
    return WORDS[limit];
}

/* NULL, which JSON has as null, for an empty text. */
static const char *text_or_null(const char *text)
{
    return *text ? text : NULL;
}

/* ---- the last refusal --------------------------------------------------------------------- */

/* The steps of QI_TRIED_..., in their order. */
static void write_steps(qi_json *json, uint32_t tried)
{
    static const char *const WORDS[] = {"empty_pages", "smaller_page", "other_memories",
                                        "full_search", "other_shards", "beyond_budget",
                                        "callback"};
    qi_json_array(json, "steps");
    for (uint32_t left = tried; left; left &= left - 1)
        qi_json_text(json, NULL, WORDS[qi_lowest_bit(left)]);
    qi_json_end_array(json);
}

static void write_kinds(qi_json *json, uint32_t kinds)
{
    qi_json_array(json, "kinds");
    for (uint32_t left = kinds; left; left &= left - 1)
        qi_json_number(json, NULL, qi_lowest_bit(left));
    qi_json_end_array(json);
}

static void write_limit(qi_json *json, const qi_oom_record *last)
{
    if (!last->limit) {
        qi_json_null(json, "limit");
        return;
    }
    qi_json_object(json, "limit");
    qi_json_text(json, "of", limit_word(last->limit));
    qi_json_number(json, "max", last->limit_max);
    qi_json_end_object(json);
}

static void write_refusal(qi_json *json, qi_oom_record *last)
{
    if (!last->number) {
        qi_json_null(json, "refusal");
        return;
    }
    qi_json_object(json, "refusal");
    qi_json_number(json, "number", last->number);
    qi_json_text(json, "result", quire_result_name(last->code));
    qi_json_text(json, "sentence", qi_error_text(&last->report));
    qi_json_text(json, "name", text_or_null(last->name));
    qi_json_number(json, "size", last->size);
    qi_json_number(json, "alignment", last->alignment);
    qi_json_bool(json, "dedicated", last->is_dedicated);
    write_kinds(json, last->kinds);
    write_steps(json, last->tried);
    write_limit(json, last);
    qi_json_number(json, "largest_free", last->largest_free);
    qi_json_number(json, "free_bytes", last->free_bytes);
    qi_json_number(json, "page_count", last->page_count);
    qi_json_number(json, "compactable_pages", last->compactable_pages);
    qi_json_number(json, "compactable_bytes", last->compactable_bytes);
    qi_json_end_object(json);
}

/* ---- pages and names ---------------------------------------------------------------------- */

static void write_side(qi_json *json, const char *key, const qi_report_side *side)
{
    if (!side->is_live) {
        qi_json_null(json, key);
        return;
    }
    qi_json_object(json, key);
    qi_json_text(json, "name", text_or_null(side->name));
    qi_json_number(json, "offset", side->offset);
    qi_json_number(json, "size", side->size);
    qi_json_number(json, "left_padding", side->left_padding);
    qi_json_number(json, "allocation", side->allocation.id);
    qi_json_end_object(json);
}

static void write_page(qi_json *json, const qi_report_page *page)
{
    qi_json_object(json, NULL);
    qi_json_number(json, "page", page->number);
    qi_json_bool(json, "dedicated", page->dedicated);
    qi_json_number(json, "bytes", page->size);
    qi_json_number(json, "live_bytes", page->live);
    qi_json_number(json, "free_bytes", page->free);
    qi_json_number(json, "largest_free", page->largest_free);
    qi_json_number(json, "largest_offset", page->largest_offset);
    write_side(json, "before", &page->before);
    write_side(json, "after", &page->after);
    qi_json_end_object(json);
}

static void write_pages(qi_json *json, const qi_report_facts *facts)
{
    qi_json_number(json, "page_count", facts->pages);
    qi_json_array(json, "pages");
    for (uint32_t i = 0; i < facts->listed_count; i++)
        write_page(json, &facts->listed[i]);
    qi_json_end_array(json);
}

static void write_owner(qi_json *json, const qi_owner_sum *sum)
{
    qi_json_object(json, NULL);
    qi_json_text(json, "name", text_or_null(sum->name));
    qi_json_number(json, "live_bytes", sum->live_bytes);
    qi_json_number(json, "allocation_count", sum->count);
    qi_json_end_object(json);
}

static void write_owners(qi_json *json, qi_owners *owners)
{
    uint64_t names = 0;
    qi_json_number(json, "name_count", owners->count);
    qi_json_array(json, "names");
    for (uint64_t i = 0; i < owners->count && i < QI_REPORT_NAMES; i++)
        write_owner(json, qi_owners_take_largest(owners));
    qi_json_end_array(json);
    const qi_owner_sum rest = qi_owners_rest(owners, &names);
    qi_json_object(json, "other_names");
    qi_json_number(json, "count", names);
    qi_json_number(json, "live_bytes", rest.live_bytes);
    qi_json_number(json, "allocation_count", rest.count);
    qi_json_end_object(json);
}

static void write_compactable(qi_json *json, const qi_report_facts *facts)
{
    if (!facts->can_compact) {
        qi_json_null(json, "compaction");
        return;
    }
    qi_json_object(json, "compaction");
    qi_json_number(json, "pages", facts->compactable.pages);
    qi_json_number(json, "page_bytes", facts->compactable.page_bytes);
    qi_json_number(json, "moves", facts->compactable.moves);
    qi_json_number(json, "move_bytes", facts->compactable.move_bytes);
    qi_json_end_object(json);
}

/* What would free more. */
static void write_remedies(qi_json *json, const qi_report_facts *facts)
{
    if (facts->together) {
        qi_json_object(json, "moved_together");
        qi_json_number(json, "page", facts->together_page);
        qi_json_number(json, "largest_free", facts->together);
        qi_json_end_object(json);
    } else {
        qi_json_null(json, "moved_together");
    }
    write_compactable(json, facts);
    qi_json_object(json, "elastic");
    qi_json_bool(json, "supported", facts->can_be_elastic);
    qi_json_number(json, "chunk", facts->chunk);
    qi_json_number(json, "reserved_bytes", facts->reserved - facts->unneeded);
    qi_json_number(json, "unneeded_bytes", facts->unneeded);
    qi_json_end_object(json);
}

/* ---- documents ---------------------------------------------------------------------------- */

static void write_facts(qi_json *json, qi_report_facts *facts)
{
    const quire_memory *memory = facts->memory;
    qi_json_object(json, NULL);
    qi_json_number(json, "schema", QUIRE_JSON_SCHEMA);
    qi_json_text(json, "what", "report");
    qi_json_text(json, "name", memory->name);
    qi_json_text(json, "device", memory->device->info.name);
    qi_json_number(json, "kind", memory->kind);
    qi_json_flags(json, "flags", memory->flags);
    qi_json_memory_stats(json, &facts->stats);
    qi_json_object(json, "heap");
    qi_json_number(json, "heap", facts->heap);
    qi_json_heap(json, &facts->budget, facts->has_budget);
    qi_json_end_object(json);
    qi_json_number(json, "limit", facts->limit);
    write_refusal(json, &facts->last_oom);
    write_pages(json, facts);
    write_remedies(json, facts);
    write_owners(json, &facts->owners);
    qi_json_end_object(json);
}

/* Collects everything, then writes. */
static quire_result write_memory(qi_json *json, const quire_memory *memory)
{
    qi_report_facts facts;
    quire_result result = qi_report_collect(memory, &facts);
    if (!result)
        write_facts(json, &facts);
    qi_report_forget(&facts);
    return result;
}

quire_result quire_memory_write_report_json(const quire_memory *memory, quire_sink sink, void *user)
{
    qi_json json;
    if (!memory || !sink)
        return qi_fail_null("quire_memory_write_report_json", !memory ? "memory" : "sink");
    qi_json_init(&json, sink, user);
    quire_result result = write_memory(&json, memory);
    return result ? result : qi_json_finish(&json);
}

typedef struct device_report {
    qi_json json;
    quire_result result; /* of the memories so far */
} device_report;

/* Stops once the sink has failed. */
static bool write_memory_of_device(void *user, quire_memory *memory)
{
    device_report *r = user;
    r->result = write_memory(&r->json, memory);
    return !r->result && !r->json.writer.failed;
}

static void write_heaps(qi_json *json, quire_device *device)
{
    qi_json_array(json, "heaps");
    for (uint32_t heap = 0; heap < device->info.heap_count; heap++) {
        quire_budget_info budget;
        bool has_budget = qi_device_describe_heap(device, heap, &budget);
        qi_json_object(json, NULL);
        qi_json_heap(json, &budget, has_budget);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}

quire_result quire_device_write_report_json(const quire_device *device, quire_sink sink, void *user)
{
    device_report r = {.result = QUIRE_SUCCESS};
    qi_json *json = &r.json;
    if (!device || !sink)
        return qi_fail_null("quire_device_write_report_json", !device ? "device" : "sink");
    qi_json_init(json, sink, user);
    qi_json_object(json, NULL);
    qi_json_number(json, "schema", QUIRE_JSON_SCHEMA);
    qi_json_text(json, "what", "device_report");
    qi_json_text(json, "name", device->info.name);
    qi_json_text(json, "backend", device->info.backend);
    write_heaps(json, qi_device_queried(device));
    qi_json_array(json, "reports");
    quire_result result = quire_device_walk(device, write_memory_of_device, &r);
    qi_json_end_array(json);
    qi_json_end_object(json);
    if (!result)
        result = r.result;
    return result ? result : qi_json_finish(json);
}
