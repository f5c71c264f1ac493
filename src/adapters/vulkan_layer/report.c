/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report.c - the statistics of a device, as text or as JSON, at the end and in between.
 *
 * The numbers come from quire and from the layer. No Vulkan function is called, so that the report
 * can be written at process exit, when the driver may be unloaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/json.h"
#include "src/base/process.h"
#include "src/base/result.h"
#include "src/base/system.h"
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

/* ---- text --------------------------------------------------------------------------------- */

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

/* ---- JSON --------------------------------------------------------------------------------- */

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

/* ---- writing ------------------------------------------------------------------------------ */

/* As qi_output_open, as a stream; `mode` is that of fdopen(3). Returns NULL and sets errno on
   failure. */
static FILE *open_stream(const char *path, int flags, const char *mode)
{
    int file = qi_output_open(path, flags);
    FILE *stream = file < 0 ? NULL : fdopen(file, mode);
    if (!stream && file >= 0)
        close(file);
    return stream;
}

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

/* ---- the statistics so far ---------------------------------------------------------------- */

/*
 * They serve a process that ends without the layer's knowledge: by _exit, by a signal, or by
 * executing another program.
 *
 * Beside the file of the statistics there is one for each device and process, FILE.PID-N.partial.
 * It is replaced by renaming, so that it is complete at every moment, and removed when the final
 * statistics are written. It is rewritten when the number of calls has grown by 1/SHARE, so that
 * the cost per call does not depend on their number, and at the first call after INTERVAL_NS. It
 * lacks at most the calls of that time, and at most 1/SHARE of all.
 */

enum { SHARE = 64, MAX_NAMES = 1000 };
static const uint64_t INTERVAL_NS = 10 * 1000 * 1000;
static const long EXIT_WAIT_NS = 500 * 1000 * 1000, NS_PER_SECOND = 1000 * 1000 * 1000;
static const char NEW[] = ".new"; /* what the path is extended by until the file is complete */

/* Creates an empty file under a name that is free. The name can be taken by a program that this
   process executed before, which had the same number. */
static bool create(layer_interim *interim, const char *beside, uint32_t number)
{
    for (uint32_t i = 0; i < MAX_NAMES; i++) {
        snprintf(interim->path, sizeof interim->path, "%s.%ld-%" PRIu32 ".partial", beside,
                 (long)getpid(), number + i);
        int file = qi_output_open(interim->path, O_EXCL);
        if (file >= 0)
            return !close(file);
        if (errno != EEXIST)
            return false;
    }
    return false;
}

/* Requires the mutex. The name can be guessed: what exists under it, a link above all, is removed
   and not opened. */
static bool replace(const layer_device *device)
{
    const char *path = device->interim.path;
    char other[sizeof device->interim.path + sizeof NEW];
    snprintf(other, sizeof other, "%s%s", path, NEW);
    unlink(other);
    FILE *file = open_stream(other, O_EXCL | O_NOFOLLOW, "w");
    if (!file)
        return false;
    bool is_written = layer_write_statistics(device, file);
    return !fclose(file) && is_written && !rename(other, path);
}

/* From now on the file is never due. */
static void stop(layer_interim *interim)
{
    qi_atomic_store_release_u64(&interim->due_calls, UINT64_MAX);
    qi_atomic_store_release_u64(&interim->due_ns, UINT64_MAX);
}

/* Requires the mutex. After a failure the file is not written again. */
static void write_now(layer_device *device)
{
    layer_interim *interim = &device->interim;
    uint64_t calls = qi_atomic_load_u64(&interim->calls);
    if (replace(device)) {
        qi_atomic_store_release_u64(&interim->due_calls, calls + 1 + calls / SHARE);
        qi_atomic_store_release_u64(&interim->due_ns, qi_clock() + INTERVAL_NS);
        return;
    }
    layer_say("%s cannot be written", interim->path);
    stop(interim);
}

static bool is_due(const layer_interim *interim)
{
    return qi_atomic_load_u64(&interim->calls) >= qi_atomic_load_u64(&interim->due_calls) ||
           qi_clock() >= qi_atomic_load_u64(&interim->due_ns);
}

/* Pipes and terminals get only the final statistics. */
void layer_interim_open(layer_device *device)
{
    layer_interim *interim = &device->interim;
    const char *path = device->settings.statistics_file;
    struct stat found;
    if (device->settings.statistics == LAYER_NO_STATISTICS || !*path ||
        (!stat(path, &found) && !S_ISREG(found.st_mode)))
        return;
    if (!create(interim, path, device->number)) {
        layer_say("%s cannot be written", interim->path);
        return;
    }
    interim->is_on = true;
    write_now(device);
}

/* A forked child must not write the file of its parent. It does not take the mutex either, which
   another thread of the parent may have held. */
void layer_interim_update(layer_device *device)
{
    layer_interim *interim = &device->interim;
    if (!interim->is_on)
        return;
    qi_atomic_add_u64(&interim->calls, 1);
    if (!is_due(interim) || device->process != getpid())
        return;
    pthread_mutex_lock(&interim->mutex);
    if (is_due(interim))
        write_now(device);
    pthread_mutex_unlock(&interim->mutex);
}

bool layer_lock_at_end(pthread_mutex_t *mutex)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += EXIT_WAIT_NS;
    until.tv_sec += until.tv_nsec / NS_PER_SECOND;
    until.tv_nsec %= NS_PER_SECOND;
    return !pthread_mutex_timedlock(mutex, &until);
}

void layer_interim_remove(layer_device *device)
{
    layer_interim *interim = &device->interim;
    if (!interim->is_on)
        return;
    bool is_locked = layer_lock_at_end(&interim->mutex);
    stop(interim);
    unlink(interim->path);
    if (is_locked)
        pthread_mutex_unlock(&interim->mutex);
}

/* ---- the final statistics ----------------------------------------------------------------- */

void layer_report(layer_device *device)
{
    const char *path = device->settings.statistics_file;
    if (device->settings.statistics == LAYER_NO_STATISTICS)
        return;
    /* Appends to the file, because a process can have several devices and children. */
    FILE *file = *path ? open_stream(path, O_APPEND, "a") : stderr;
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
