/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * dump.c - writes JSON during the walk: the first range of another page ends the page before it.
 * quire_memory_write_json, quire_device_write_json and quire_space_write_json write a memory, a
 * device with its memories, or a space.
 *
 * docs/formats.md lists the keys. No lock is held while the sink runs. QUIRE_JSON_SCHEMA rises when
 * a key is removed or changes its meaning.
 */
#include "quire/insight.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/core/state/memory.h"
#include "src/render/json_parts.h"
#include "src/space/space.h"

static const char *fit_name(quire_fit fit)
{
    switch (fit) {
    case QUIRE_FIT_SEGREGATED:
        break;
    case QUIRE_FIT_FIRST:
        return "first";
    case QUIRE_FIT_BUDDY:
        return "buddy";
    case QUIRE_FIT_LINEAR:
        return "linear";
    }
    return "segregated";
}

static const char *object_name(quire_object object)
{
    return object == QUIRE_OBJECT_BUFFER  ? "buffer"
           : object == QUIRE_OBJECT_IMAGE ? "image"
                                          : "range";
}

/* ---- a memory ----------------------------------------------------------------------------- */

/* The state of a walk that writes ranges grouped by page, or by region of a space. */
typedef struct dump {
    qi_json json;
    bool any_page; /* the object of `page` is open */
    uint32_t page;
    quire_result result; /* of the memories of a device so far */
} dump;

static void end_page(dump *d)
{
    if (d->any_page) {
        qi_json_end_array(&d->json);
        qi_json_end_object(&d->json);
    }
}

/* The walk reports the ranges of a page one after the other, so a new number starts a new page. */
static void begin_page(dump *d, const quire_item *item)
{
    end_page(d);
    d->any_page = true;
    d->page = item->page;
    qi_json_object(&d->json, NULL);
    qi_json_number(&d->json, "page", item->page);
    qi_json_number(&d->json, "size", item->page_size);
    qi_json_number(&d->json, "bytes", item->page_bytes);
    qi_json_bool(&d->json, "dedicated", item->dedicated);
    qi_json_array(&d->json, "ranges");
}

/* Stops the walk once the sink has failed. */
static bool write_item(void *user, const quire_item *item)
{
    dump *d = user;
    qi_json *json = &d->json;
    if (!d->any_page || d->page != item->page)
        begin_page(d, item);
    qi_json_object(json, NULL);
    qi_json_number(json, "offset", item->offset);
    qi_json_number(json, "size", item->size);
    if (item->is_free) {
        qi_json_text(json, "kind", "free");
    } else {
        qi_json_text(json, "kind", object_name(item->object));
        qi_json_number(json, "left_padding", item->left_padding);
        qi_json_number(json, "requested", item->requested);
        if (item->backed != item->size) /* it is lazy, or sleeps */
            qi_json_number(json, "backed", item->backed);
        if (item->asleep)
            qi_json_bool(json, "asleep", true);
        qi_json_number(json, "allocation", item->allocation.id);
        qi_json_number(json, "user_data", item->user_data);
        qi_json_text(json, "name", item->name);
    }
    qi_json_end_object(json);
    return !json->writer.failed;
}

/* Info, statistics and walk are separate calls; they can differ while other threads allocate. */
static quire_result write_memory(dump *d, const quire_memory *memory)
{
    qi_json *json = &d->json;
    quire_memory_info info;
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_info(memory, &info));
    qi_ignore(quire_memory_get_stats(memory, &stats));
    qi_json_object(json, NULL);
    qi_json_number(json, "schema", QUIRE_JSON_SCHEMA);
    qi_json_text(json, "what", "memory");
    qi_json_text(json, "name", info.name);
    qi_json_number(json, "kind", info.kind);
    qi_json_flags(json, "flags", info.flags);
    qi_json_text(json, "fit", fit_name(info.fit));
    qi_json_number(json, "granule", info.granule);
    qi_json_number(json, "page_size", info.page_size);
    qi_json_memory_stats(json, &stats);
    qi_json_array(json, "pages");
    d->any_page = false;
    quire_result result = quire_memory_walk(memory, write_item, d);
    end_page(d);
    qi_json_end_array(json);
    qi_json_end_object(json);
    return result;
}

quire_result quire_memory_write_json(const quire_memory *memory, quire_sink sink, void *user)
{
    dump d;
    if (!memory || !sink)
        return qi_fail_null("quire_memory_write_json", !memory ? "memory" : "sink");
    qi_json_init(&d.json, sink, user);
    quire_result result = write_memory(&d, memory);
    return result ? result : qi_json_finish(&d.json);
}

/* ---- a device ----------------------------------------------------------------------------- */

static void write_device_stats(qi_json *json, const quire_device_stats *stats)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"live_bytes", stats->live_bytes},
        {"deferred_bytes", stats->deferred_bytes},
        {"requested_bytes", stats->requested_bytes},
        {"reserved_bytes", stats->reserved_bytes},
        {"free_bytes", stats->free_bytes},
        {"empty_bytes", stats->empty_bytes},
        {"allocation_count", stats->allocation_count},
        {"page_count", stats->page_count},
        {"memory_count", stats->memory_count},
        {"peak_reserved_bytes", stats->peak_reserved_bytes},
        {"allocations", stats->allocations},
        {"frees", stats->frees},
        {"failures", stats->failures},
        {"pages_created", stats->pages_created},
        {"pages_destroyed", stats->pages_destroyed},
        {"pages_over_budget", stats->pages_over_budget},
        {"backend_calls", stats->backend_calls},
        {"backend_nanoseconds", stats->backend_nanoseconds},
        {"metadata_bytes", stats->metadata_bytes},
    };
    qi_json_object(json, "stats");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        qi_json_number(json, numbers[i].key, numbers[i].value);
    qi_json_end_object(json);
}

static void write_heap(qi_json *json, quire_device *device, uint32_t heap)
{
    quire_budget_info budget;
    bool has_budget = qi_device_describe_heap(device, heap, &budget);
    qi_json_object(json, NULL);
    qi_json_heap(json, &budget, has_budget);
    qi_json_end_object(json);
}

static bool write_memory_of_device(void *user, quire_memory *memory)
{
    dump *d = user;
    d->result = write_memory(d, memory);
    return !d->result && !d->json.writer.failed;
}

quire_result quire_device_write_json(const quire_device *device, quire_sink sink, void *user)
{
    dump d = {.result = QUIRE_SUCCESS};
    qi_json *json = &d.json;
    quire_device_stats stats;
    if (!device || !sink)
        return qi_fail_null("quire_device_write_json", !device ? "device" : "sink");
    quire_result result = quire_device_get_stats(device, &stats);
    if (result)
        return result;
    qi_json_init(json, sink, user);
    qi_json_object(json, NULL);
    qi_json_number(json, "schema", QUIRE_JSON_SCHEMA);
    qi_json_text(json, "what", "device");
    qi_json_text(json, "name", device->info.name);
    qi_json_text(json, "backend", device->info.backend);
    write_device_stats(json, &stats);
    qi_json_array(json, "heaps");
    for (uint32_t heap = 0; heap < device->info.heap_count; heap++)
        write_heap(json, qi_device_queried(device), heap);
    qi_json_end_array(json);
    qi_json_array(json, "memories");
    result = quire_device_walk(device, write_memory_of_device, &d);
    qi_json_end_array(json);
    qi_json_end_object(json);
    if (!result)
        result = d.result;
    return result ? result : qi_json_finish(json);
}

/* ---- a space ------------------------------------------------------------------------------ */

static bool write_space_item(void *user, const quire_space_item *item)
{
    dump *d = user;
    qi_json *json = &d->json;
    if (!d->any_page || d->page != item->region) {
        end_page(d);
        d->any_page = true;
        d->page = item->region;
        qi_json_object(json, NULL);
        qi_json_number(json, "region", item->region);
        qi_json_array(json, "ranges");
    }
    qi_json_object(json, NULL);
    qi_json_number(json, "offset", item->offset);
    qi_json_number(json, "size", item->size);
    qi_json_text(json, "kind", item->is_free ? "free" : "range");
    if (!item->is_free) {
        qi_json_number(json, "left_padding", item->left_padding);
        qi_json_number(json, "range", item->range.id);
        qi_json_number(json, "user", item->user);
    }
    qi_json_end_object(json);
    return !json->writer.failed;
}

quire_result quire_space_write_json(const quire_space *space, quire_sink sink, void *user)
{
    if (!space || !sink)
        return qi_fail_null("quire_space_write_json", !space ? "space" : "sink");
    quire_space_stats stats;
    qi_space_get_stats(space, &stats);
    dump d = {.any_page = false};
    qi_json *json = &d.json;
    qi_json_init(json, sink, user);
    qi_json_object(json, NULL);
    qi_json_number(json, "schema", QUIRE_JSON_SCHEMA);
    qi_json_text(json, "what", "space");
    qi_json_number(json, "granule", stats.granule);
    qi_json_number(json, "region_bytes", stats.region_bytes);
    qi_json_number(json, "live_bytes", stats.live_bytes);
    qi_json_number(json, "padding_bytes", stats.padding_bytes);
    qi_json_number(json, "free_bytes", stats.free_bytes);
    qi_json_number(json, "largest_free", stats.largest_free);
    qi_json_number(json, "live_count", stats.live_count);
    qi_json_number(json, "free_count", stats.free_count);
    qi_json_number(json, "metadata_bytes", stats.metadata_bytes);
    qi_json_array(json, "regions");
    qi_space_walk(space, write_space_item, &d);
    end_page(&d);
    qi_json_end_array(json);
    qi_json_end_object(json);
    return qi_json_finish(json);
}
