/*
 * report.c - the statistics of a device, as text or as JSON.
 *
 * The numbers come from quire and from the layer. No Vulkan function is called, so that the report
 * can be written at process exit, when the driver may be unloaded.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/adapters/vulkan_layer/output.h"
#include "src/base/json.h"
#include "src/base/result.h"
#include "src/base/text.h"

static const char *const KEYS[] = {
#define X(name, key, text) key,
    LAYER_OUTCOMES(X)
#undef X
};

static const char *const SENTENCES[] = {
#define X(name, key, text) text,
    LAYER_OUTCOMES(X)
#undef X
};

typedef struct totals {
    uint64_t client; /* allocations of the program */
    uint64_t driver; /* resulting allocations of the driver */
    uint64_t passed;
    uint64_t live; /* ranges in pages that were not freed */
    uint64_t pages, pages_destroyed;
    uint64_t reserved, peak_reserved, peak_live;
} totals;

/* Other threads may count at the same time. Each count is read once, and the frees before the
   allocations, so that no difference is negative. */
static totals add_up(const layer_device *device)
{
    totals f = {.client = 0};
    uint64_t freed = qi_atomic_load_acquire_u64(&device->counts.freed);
    uint64_t in_a_page = qi_atomic_load_u64(&device->counts.calls[LAYER_IN_A_PAGE]);
    for (int i = 0; i < LAYER_OUTCOME_COUNT; i++)
        if (i != LAYER_IN_A_PAGE)
            f.passed += qi_atomic_load_u64(&device->counts.calls[i]);
    f.client = in_a_page + f.passed;
    f.live = in_a_page - freed;
    for (uint32_t i = 0; i < qi_atomic_load_acquire_u32(&device->store_count); i++) {
        quire_memory_stats stats;
        qi_ignore(quire_memory_get_stats(device->stores[i].memory, &stats));
        f.pages += stats.pages_created;
        f.pages_destroyed += stats.pages_destroyed;
        f.reserved += stats.reserved_bytes;
        f.peak_reserved += stats.peak_reserved_bytes;
        f.peak_live += stats.peak_requested_bytes;
    }
    f.driver = f.passed + f.pages;
    return f;
}

/* ---- text ------------------------------------------------------------------------------------ */

static void write_store(qi_writer *w, const layer_store *store)
{
    quire_memory_stats stats;
    qi_ignore(quire_memory_get_stats(store->memory, &stats));
    qi_write_format(w,
                    "  type %" PRIu32 ", priority %.2f: %" PRIu64 " allocation%s in %" PRIu64
                    " page%s, at most %s requested",
                    store->kind, (double)store->priority, stats.allocations,
                    qi_plural(stats.allocations), stats.pages_created,
                    qi_plural(stats.pages_created), qi_bytes(stats.peak_requested_bytes).text);
    qi_write_format(w, " in %s\n", qi_bytes(stats.peak_reserved_bytes).text);
}

static void write_text(const layer_device *device, qi_writer *w)
{
    const totals f = add_up(device);
    char name[sizeof device->info.name];
    memcpy(name, device->info.name, sizeof name);
    qi_make_printable(name);
    qi_write_format(w, "VK_LAYER_QUIRE_suballocate: device %" PRIu32 " '", device->number);
    qi_write_text(w, name);
    qi_write_format(w,
                    "'\n  %" PRIu64 " allocation%s of the program, %" PRIu64
                    " of the driver: %" PRIu64 " page%s and %" PRIu64 " passed on\n",
                    f.client, qi_plural(f.client), f.driver, f.pages, qi_plural(f.pages), f.passed);
    for (int i = 0; i < LAYER_OUTCOME_COUNT; i++) {
        uint64_t calls = qi_atomic_load_u64(&device->counts.calls[i]);
        if (calls)
            qi_write_format(w, "  %8" PRIu64 "  %10s  %s\n", calls,
                            qi_bytes(qi_atomic_load_u64(&device->counts.bytes[i])).text,
                            SENTENCES[i]);
    }
    for (uint32_t i = 0; i < qi_atomic_load_acquire_u32(&device->store_count); i++)
        write_store(w, &device->stores[i]);
    qi_write_format(w, "  %" PRIu64 " range%s never freed\n", f.live, qi_plural(f.live));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_json_stores(const layer_device *device, qi_json *json)
{
    qi_json_array(json, "types");
    for (uint32_t i = 0; i < qi_atomic_load_acquire_u32(&device->store_count); i++) {
        const layer_store *store = &device->stores[i];
        quire_memory_stats stats;
        qi_ignore(quire_memory_get_stats(store->memory, &stats));
        qi_json_object(json, NULL);
        qi_json_number(json, "type", store->kind);
        qi_json_real(json, "priority", (double)store->priority);
        qi_json_number(json, "threshold", store->threshold);
        qi_json_number(json, "allocations", stats.allocations);
        qi_json_number(json, "pages", stats.pages_created);
        qi_json_number(json, "peak_requested_bytes", stats.peak_requested_bytes);
        qi_json_number(json, "peak_reserved_bytes", stats.peak_reserved_bytes);
        qi_json_end_object(json);
    }
    qi_json_end_array(json);
}

static void write_json(const layer_device *device, qi_json *json)
{
    const totals f = add_up(device);
    qi_json_object(json, NULL);
    qi_json_number(json, "schema", 1);
    qi_json_number(json, "device", device->number);
    qi_json_text(json, "name", device->info.name);
    qi_json_number(json, "client_allocations", f.client);
    qi_json_number(json, "driver_allocations", f.driver);
    qi_json_number(json, "pages", f.pages);
    qi_json_number(json, "pages_given_back", f.pages_destroyed);
    qi_json_number(json, "passed_on", f.passed);
    qi_json_number(json, "passed_on_freed", qi_atomic_load_u64(&device->counts.passed_free));
    qi_json_number(json, "failed", qi_atomic_load_u64(&device->counts.failed));
    qi_json_number(json, "never_freed", f.live);
    qi_json_number(json, "reserved_bytes", f.reserved);
    qi_json_number(json, "peak_reserved_bytes", f.peak_reserved);
    qi_json_number(json, "peak_requested_bytes", f.peak_live);
    qi_json_object(json, "outcomes");
    for (int i = 0; i < LAYER_OUTCOME_COUNT; i++) {
        qi_json_object(json, KEYS[i]);
        qi_json_number(json, "allocations", qi_atomic_load_u64(&device->counts.calls[i]));
        qi_json_number(json, "bytes", qi_atomic_load_u64(&device->counts.bytes[i]));
        qi_json_end_object(json);
    }
    qi_json_end_object(json);
    write_json_stores(device, json);
    qi_json_end_object(json);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A quire_sink: returns whether everything was written. */
static bool to_file(void *user, const char *text, size_t size)
{
    return fwrite(text, 1, size, user) == size;
}

bool layer_write_statistics(const layer_device *device, FILE *file)
{
    quire_result result;
    if (device->settings.statistics == LAYER_JSON) {
        qi_json json;
        qi_json_init(&json, to_file, file);
        write_json(device, &json);
        result = qi_json_finish(&json);
    } else {
        qi_writer writer;
        qi_writer_init(&writer, to_file, file);
        write_text(device, &writer);
        result = qi_writer_finish(&writer);
    }
    return !result && !fflush(file);
}

void layer_report(layer_device *device)
{
    const char *path = device->settings.statistics_file;
    if (device->settings.statistics == LAYER_NO_STATISTICS)
        return;
    /* Appends to the file, because a process can have several devices and children. */
    FILE *file = *path ? layer_open_stream(path, O_APPEND, "a") : stderr;
    if (!file) {
        layer_warn_file(path);
        return;
    }
    bool is_written = layer_write_statistics(device, file);
    if (!(*path && fclose(file)) && is_written)
        layer_interim_remove(device);
    else
        layer_say("the statistics cannot be written: %s", *path ? path : "stderr");
}
