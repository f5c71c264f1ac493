/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recorder.c - one lock puts the events of all threads into the order of the records (see
 * recorder.h; docs/formats.md has the format).
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

#include "src/base/process.h"
#include "src/base/result.h"
#include "src/core/record/blocks.h"

enum { MAX_PATH = 4096, MAX_STREAMS = 255 };

struct quire_recorder {
    qi_watcher watcher; /* the first member: a watcher's functions get a pointer to it */
    quire_device *device;
    qi_lock lock; /* protects the fields below */
    qi_blocks blocks;
    const quire_stream *streams[MAX_STREAMS]; /* their numbers are their places, from 1 */
};

/* ---- records ------------------------------------------------------------------------------ */

/* Requires the lock. Returns the number of a stream. Streams that find no place share the number
   after the last. */
static uint16_t stream_of(quire_recorder *r, const quire_stream *stream)
{
    uint16_t i = 0;
    while (i < MAX_STREAMS && r->streams[i] && r->streams[i] != stream)
        i++;
    if (i < MAX_STREAMS)
        r->streams[i] = stream;
    return i + 1;
}

static void record(qi_watcher *watcher, const qi_watched_event *event)
{
    quire_recorder *r = (quire_recorder *)watcher;
    qi_lock_acquire(&r->lock);
    if (qi_atomic_load_u32(&watcher->is_on)) {
        uint16_t stream = event->stream ? stream_of(r, event->stream) : 0;
        if (event->kind == QUIRE_EVENT_ALLOCATED)
            qi_blocks_alloc(&r->blocks, event->allocation, event->requested, event->alignment,
                            stream, event->name);
        else
            qi_blocks_free(&r->blocks, event->allocation, stream);
    }
    qi_lock_release(&r->lock);
}

void qi_recorder_frame(quire_recorder *r)
{
    qi_lock_acquire(&r->lock);
    if (qi_atomic_load_u32(&r->watcher.is_on))
        qi_blocks_frame(&r->blocks);
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
    qi_blocks_flush(&r->blocks);
    if (!r->blocks.failed)
        return QUIRE_SUCCESS;
    if (r->blocks.error)
        return fail_file(r->blocks.error, "the trace cannot be written: %s",
                         strerror(r->blocks.error));
    return qi_fail(QUIRE_ERROR_BAD_FILE, "the sink of the trace refused a piece");
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
    const int file = r->blocks.output.file;
    if (file != QI_NO_FILE && close(file) && !result)
        result = fail_file(errno, "the trace cannot be written: %s", strerror(errno));
    qi_blocks_release(&r->blocks, &r->device->host);
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

/* Not for a recorder that threads can still report to. */
static void release(quire_recorder *r)
{
    qi_host *host = &r->device->host;
    if (r->blocks.bytes)
        qi_blocks_release(&r->blocks, host);
    qi_host_release(host, r, 1, sizeof *r);
}

/* A forked child must not write to the file of its parent. Its lock may belong to a thread that it
   does not have. */
static void end(qi_watcher *watcher, bool is_child)
{
    quire_recorder *r = (quire_recorder *)watcher;
    quire_device *device = r->device;
    bool is_on = qi_atomic_load_u32(&watcher->is_on);
    if (is_child) {
        qi_lock_init(&r->lock, "recorder", QI_RANK_RECORDER);
        qi_atomic_store_release_u32(&watcher->is_on, 0);
        if (is_on && r->blocks.output.file != QI_NO_FILE)
            close(r->blocks.output.file);
        return;
    }
    if (is_on && finish(r))
        qi_log(&device->log, QUIRE_LOG_WARNING, "device '%s': %s", device->info.name,
               qi_error_sentence());
    release(r);
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

static quire_recorder *make(quire_device *device, uint32_t block_count)
{
    quire_recorder *r = qi_host_allocate(&device->host, 1, sizeof *r);
    if (!r)
        return NULL;
    r->watcher = (qi_watcher){.event = record, .end = end};
    r->device = device;
    qi_lock_init(&r->lock, "recorder", QI_RANK_RECORDER);
    if (qi_blocks_make(&r->blocks, &device->host, block_count))
        return r;
    qi_host_release(&device->host, r, 1, sizeof *r);
    return NULL;
}

/* Requires the lock of the used one. `made` gets the blocks that it has, in a fork for example. */
static void exchange_blocks(quire_recorder *used, quire_recorder *made)
{
    unsigned char *bytes = used->blocks.bytes;
    uint32_t count = used->blocks.count;
    used->blocks.bytes = made->blocks.bytes;
    used->blocks.count = made->blocks.count;
    made->blocks.bytes = bytes;
    made->blocks.count = count;
}

/* Requires the recorder's lock. The file of `output` becomes the recorder's. */
static void begin(quire_recorder *r, qi_blocks_output output)
{
    memset(r->streams, 0, sizeof r->streams);
    qi_blocks_begin(&r->blocks, output);
    qi_atomic_store_release_u32(&r->watcher.is_on, 1);
}

/* The blocks of a ring, or 1. */
static uint32_t block_count_of(const quire_record_options *options)
{
    if (!options->ring_bytes)
        return 1;
    uint64_t count = options->ring_bytes / QI_RECORDING_BLOCK;
    return count < 2 ? 2 : count > UINT16_MAX ? UINT16_MAX : (uint32_t)count;
}

static quire_result start(const quire_record_options *options, int file, quire_recorder **recorder)
{
    quire_memory *memory = options->memory;
    quire_device *device = memory ? memory->device : options->device;
    quire_recorder *made = make(device, block_count_of(options));
    if (!made)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a recorder");
    qi_lock_acquire(&device->lock);
    quire_recorder *ended = find_ended(device, memory);
    quire_recorder *used = ended ? ended : made;
    qi_lock_acquire(&used->lock);
    if (ended)
        exchange_blocks(ended, made);
    begin(used, (qi_blocks_output){file, options->sink, options->user});
    qi_lock_release(&used->lock);
    if (!ended)
        qi_event_add_watcher(device, memory, &made->watcher);
    qi_lock_release(&device->lock);
    if (ended)
        release(made);
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
    int file = QI_NO_FILE;
    if (options->path)
        file = qi_output_open(options->path, O_TRUNC);
    if (options->path && file == QI_NO_FILE)
        return refuse_file(options->path);
    quire_result result = start(options, file, recorder);
    if (result && file != QI_NO_FILE)
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
    return QI_NO_FILE;
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
    if (file == QI_NO_FILE || (ftruncate(file, 0) && errno != EINVAL)) /* a pipe has no length */
        result = refuse_file(path);
    if (!result)
        result = start(&(quire_record_options){.device = device}, file, &recorder);
    if (result && file != QI_NO_FILE)
        close(file);
    if (result)
        qi_log(&device->log, QUIRE_LOG_WARNING, "QUIRE_TRACE: %s", qi_error_sentence());
    else
        qi_log(&device->log, QUIRE_LOG_INFO, "device '%s' is recorded in '%s'", device->info.name,
               path);
    qi_error_restore(&error);
}
