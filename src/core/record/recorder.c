/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recorder.c - one lock puts the events of all threads into the order of the rows, and a map has
 * the numbers of the live allocations (see recorder.h; docs/formats.md has the format).
 */
#include "src/core/record/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/id_map.h"
#include "src/base/json.h"
#include "src/base/process.h"
#include "src/base/result.h"

enum { NO_FILE = -1, MAX_PATH = 4096, MAX_STREAMS = 255 };

struct quire_recorder {
    qi_watcher watcher; /* the first member: qi_event_report passes a pointer to it */
    quire_device *device;
    qi_lock lock; /* protects the fields below */
    qi_writer writer;
    int file;            /* NO_FILE: the caller's sink */
    int error;           /* errno of the first failed write */
    quire_result result; /* the first failure: nothing is written after it */
    qi_id_map numbers;   /* of live allocations, by their handles */
    uint32_t last_number;
    uint64_t last_time;
    const quire_stream *streams[MAX_STREAMS]; /* their numbers are their places, from 1 */
};

/* ---- rows --------------------------------------------------------------------------------- */

/* Requires the lock. The sink of a file. */
static bool write_file(void *user, const char *text, size_t size)
{
    quire_recorder *r = user;
    r->error = qi_output_write(r->file, text, size);
    return !r->error;
}

/* Requires the lock. Returns the number of a stream; 0: no stream. Streams that find no place share
   the number after the last, because a free allocates no host memory. */
static uint32_t stream_of(quire_recorder *r, const quire_event *event)
{
    uint32_t i = 0;
    if (!event->stream)
        return 0;
    while (i < MAX_STREAMS && r->streams[i] && r->streams[i] != event->stream)
        i++;
    if (i < MAX_STREAMS)
        r->streams[i] = event->stream;
    return i + 1;
}

/* Requires the lock. */
static void write_allocated(quire_recorder *r, const quire_event *event)
{
    if (r->last_number == UINT32_MAX ||
        !qi_id_map_add(&r->numbers, &r->device->host, event->allocation.id, r->last_number + 1)) {
        r->result = QUIRE_ERROR_OUT_OF_HOST_MEMORY;
        return;
    }
    qi_write_format(
        &r->writer, "alloc,%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",",
        ++r->last_number, event->requested, event->alignment, r->last_time, stream_of(r, event));
    if (event->name)
        qi_write_label(&r->writer, event->name);
    qi_write_text(&r->writer, "\n");
}

/* Requires the lock. Writes nothing for what was allocated before the recording. */
static void write_freed(quire_recorder *r, const quire_event *event)
{
    const uint32_t *number = qi_id_map_find(&r->numbers, event->allocation.id);
    if (!number)
        return;
    qi_write_format(&r->writer, "free,%" PRIu32 ",,,%" PRIu64 ",%" PRIu32 ",\n", *number,
                    r->last_time, stream_of(r, event));
    qi_id_map_remove(&r->numbers, event->allocation.id);
}

/* The times of rows do not fall, although threads report events later than they happened. */
static void record(qi_watcher *watcher, const quire_event *event)
{
    quire_recorder *r = (quire_recorder *)watcher;
    qi_lock_acquire(&r->lock);
    if (qi_atomic_load_u32(&watcher->is_on) && !r->result) {
        r->last_time = event->time_ns > r->last_time ? event->time_ns : r->last_time;
        if (event->kind == QUIRE_EVENT_ALLOCATED)
            write_allocated(r, event);
        else
            write_freed(r, event);
    }
    qi_lock_release(&r->lock);
}

void qi_recorder_frame(quire_recorder *r)
{
    qi_lock_acquire(&r->lock);
    if (qi_atomic_load_u32(&r->watcher.is_on) && !r->result)
        qi_write_format(&r->writer, "frame,,,,%" PRIu64 ",0,\n", r->last_time);
    qi_lock_release(&r->lock);
}

/* ---- the end ------------------------------------------------------------------------------ */

QUIRE_PRINTF(2, 3) static quire_result fail_file(int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    quire_result result = qi_fail_native(QUIRE_ERROR_BAD_FILE, error, format, args);
    va_end(args);
    return result;
}

/* Requires the lock. Writes what is left, and says what has failed so far. */
static quire_result write_rest(quire_recorder *r)
{
    quire_result written = qi_writer_finish(&r->writer);
    if (r->error)
        return fail_file(r->error, "the trace cannot be written: %s", strerror(r->error));
    if (written)
        return qi_fail(QUIRE_ERROR_BAD_FILE, "the sink of the trace refused a piece");
    return r->result ? qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a recording")
                     : QUIRE_SUCCESS;
}

quire_result qi_recorder_flush(quire_recorder *r)
{
    qi_lock_acquire(&r->lock);
    quire_result result =
        qi_atomic_load_u32(&r->watcher.is_on)
            ? write_rest(r)
            : qi_fail(QUIRE_ERROR_NOT_PERMITTED, "the recording has ended: this process is a fork");
    qi_lock_release(&r->lock);
    return result;
}

/* Requires the lock. A file can fail when it is closed. */
static quire_result finish(quire_recorder *r)
{
    quire_result result = write_rest(r);
    qi_atomic_store_release_u32(&r->watcher.is_on, 0);
    if (r->file != NO_FILE && close(r->file) && !result)
        result = fail_file(errno, "the trace cannot be written: %s", strerror(errno));
    qi_id_map_finish(&r->numbers, &r->device->host);
    return result;
}

quire_result qi_recorder_stop(quire_recorder *r)
{
    quire_result result = QUIRE_SUCCESS;
    qi_lock_acquire(&r->lock);
    if (qi_atomic_load_u32(&r->watcher.is_on))
        result = finish(r);
    qi_lock_release(&r->lock);
    qi_event_refresh_all(r->device);
    return result;
}

/* A forked child must not write to the file of its parent. Its lock may belong to a thread that it
   does not have, and the maps may be incomplete: they are lost. */
static void end(qi_watcher *watcher, bool is_child)
{
    quire_recorder *r = (quire_recorder *)watcher;
    quire_device *device = r->device;
    bool is_on = qi_atomic_load_u32(&watcher->is_on);
    if (is_child) {
        qi_lock_init(&r->lock, "recorder", QI_RANK_RECORDER);
        r->numbers = (qi_id_map){0};
        qi_atomic_store_release_u32(&watcher->is_on, 0);
        if (is_on && r->file != NO_FILE)
            close(r->file);
        return;
    }
    if (is_on && finish(r))
        qi_log(&device->log, QUIRE_LOG_WARNING, "device '%s': %s", device->info.name,
               qi_error_sentence());
    qi_host_release(&device->host, r, 1, sizeof *r);
}

/* ---- the start ---------------------------------------------------------------------------- */

/* Requires the lock of the device. Returns a recorder whose recording has ended, or NULL. */
static quire_recorder *find_ended(const quire_device *device, const quire_memory *memory)
{
    qi_watcher *w = qi_event_watchers(device, memory);
    while (w && (w->event != record || qi_atomic_load_u32(&w->is_on)))
        w = w->next;
    return (quire_recorder *)w;
}

static quire_recorder *make(quire_device *device)
{
    quire_recorder *r = qi_host_allocate(&device->host, 1, sizeof *r);
    if (!r)
        return NULL;
    r->watcher = (qi_watcher){.event = record, .end = end};
    r->device = device;
    qi_lock_init(&r->lock, "recorder", QI_RANK_RECORDER);
    return r;
}

/* Requires the recorder's lock. `file` is NO_FILE, or becomes the recorder's. */
static void begin(quire_recorder *r, const quire_record_options *options, int file)
{
    r->file = file;
    r->error = 0;
    r->result = QUIRE_SUCCESS;
    r->last_number = 0;
    r->last_time = 0;
    memset(r->streams, 0, sizeof r->streams);
    if (file == NO_FILE)
        qi_writer_init(&r->writer, options->sink, options->user);
    else
        qi_writer_init(&r->writer, write_file, r);
    qi_write_text(&r->writer, "op,id,size,alignment,time_ns,stream,label\n");
    qi_atomic_store_release_u32(&r->watcher.is_on, 1);
}

static quire_result start(const quire_record_options *options, int file, quire_recorder **recorder)
{
    quire_memory *memory = options->memory;
    quire_device *device = memory ? memory->device : options->device;
    quire_recorder *r = make(device);
    if (!r)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a recorder");
    qi_lock_acquire(&device->lock);
    quire_recorder *ended = find_ended(device, memory);
    quire_recorder *used = ended ? ended : r;
    qi_lock_acquire(&used->lock);
    begin(used, options, file);
    qi_lock_release(&used->lock);
    if (!ended)
        qi_event_add_watcher(device, memory, &r->watcher);
    qi_lock_release(&device->lock);
    if (ended)
        qi_host_release(&device->host, r, 1, sizeof *r);
    qi_event_refresh_all(device);
    *recorder = used;
    return QUIRE_SUCCESS;
}

static quire_result refuse_file(const char *path)
{
    int error = errno;
    return fail_file(error, "the trace '%s' cannot be opened: %s", path, strerror(error));
}

quire_result qi_recorder_start(const quire_record_options *options, quire_recorder **recorder)
{
    int file = NO_FILE;
    if (options->path)
        file = qi_output_open(options->path, O_TRUNC);
    if (options->path && file == NO_FILE)
        return refuse_file(options->path);
    quire_result result = start(options, file, recorder);
    if (result && file != NO_FILE)
        close(file);
    return result;
}

/* ---- the variable QUIRE_TRACE ------------------------------------------------------------- */

/* `number` counts the devices of the process from 1. Writes the name that is used to `path`. */
static int open_own(const char *name, uint32_t number, char path[MAX_PATH])
{
    char suffix[16] = "";
    if (number > 1)
        snprintf(suffix, sizeof suffix, ".%" PRIu32, number);
    if (snprintf(path, MAX_PATH, "%s%s", name, suffix) < MAX_PATH)
        return qi_output_open_own(path, MAX_PATH, number > 1 ? O_NOFOLLOW : 0);
    errno = ENAMETOOLONG;
    return NO_FILE;
}

void qi_recorder_start_by_environment(quire_device *device)
{
    static qi_atomic_u32 devices;
    char path[MAX_PATH];
    quire_recorder *recorder = NULL;
    const char *name = secure_getenv("QUIRE_TRACE");
    if (!name || !*name)
        return;
    qi_error error;
    qi_error_save(&error);
    int file = open_own(name, qi_atomic_add_u32(&devices, 1) + 1, path);
    quire_result result = QUIRE_SUCCESS;
    if (file == NO_FILE || (ftruncate(file, 0) && errno != EINVAL)) /* a pipe has no length */
        result = refuse_file(path);
    if (!result)
        result = start(&(quire_record_options){.device = device}, file, &recorder);
    if (result && file != NO_FILE)
        close(file);
    if (result)
        qi_log(&device->log, QUIRE_LOG_WARNING, "QUIRE_TRACE: %s", qi_error_sentence());
    else
        qi_log(&device->log, QUIRE_LOG_INFO, "device '%s' is recorded in '%s'", device->info.name,
               path);
    qi_error_restore(&error);
}
