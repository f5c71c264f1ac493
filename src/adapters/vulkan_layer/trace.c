/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * trace.c - writes the ranges that a program allocates and frees as a trace for `quire replay`
 * (docs/formats.md).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/process.h"
#include "src/base/system.h"

enum { MAX_ROW = 128, SUFFIX = 40 };

/* ---- the file -------------------------------------------------------------------------------- */

/* A forked child has its parent's open file and must not write to it. */
static bool is_writing(const layer_trace *trace)
{
    return trace->is_open && trace->process == getpid();
}

/* Writes each row immediately: a killed process loses nothing, and a fork does not duplicate a
   buffer. Requires the mutex. */
QUIRE_PRINTF(2, 3) static void write_row(layer_trace *trace, const char *format, ...)
{
    char row[MAX_ROW];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(row, sizeof row, format, args);
    va_end(args);
    if (!trace->has_failed)
        trace->has_failed = qi_output_write(trace->file, row, (size_t)length) != 0;
}

/* The mutex ensures that the numbers and times of rows increase from row to row. */
void layer_trace_open(layer_device *device)
{
    layer_trace *trace = &device->trace;
    char path[LAYER_MAX_PATH + SUFFIX];
    const char *name = device->settings.trace_file;
    if (!*name || !device->quire)
        return;
    if (device->number == 1)
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s.%" PRIu32, name, device->number);
    trace->file = qi_output_open_own(path, sizeof path, device->number == 1 ? 0 : O_NOFOLLOW);
    if (trace->file < 0) {
        layer_warn_file(path);
        return;
    }
    trace->is_open = true;
    trace->process = getpid();
    trace->has_failed =
        ftruncate(trace->file, 0) && errno != EINVAL; /* a pipe cannot be truncated */
    write_row(trace, "op,id,size,alignment,time_ns,stream,label\n");
}

/* Returns the nanoseconds since the first row. Requires the mutex. */
static uint64_t elapsed(layer_trace *trace)
{
    uint64_t now = qi_clock();
    if (!trace->start_ns)
        trace->start_ns = now;
    return now - trace->start_ns;
}

void layer_trace_close(layer_device *device)
{
    layer_trace *trace = &device->trace;
    if (!layer_lock_at_end(&trace->mutex))
        return; /* the rows so far are in the file */
    bool is_written = !is_writing(trace) || !trace->has_failed;
    if (trace->is_open && close(trace->file))
        is_written = false;
    if (!is_written)
        layer_say("the trace cannot be written");
    trace->is_open = false;
    pthread_mutex_unlock(&trace->mutex);
}

/* ---- rows ------------------------------------------------------------------------------------ */

void layer_trace_allocated(layer_device *device, layer_memory *memory, uint64_t alignment)
{
    layer_trace *trace = &device->trace;
    if (!*device->settings.trace_file)
        return;
    pthread_mutex_lock(&trace->mutex);
    memory->number = ++trace->count;
    if (is_writing(trace))
        write_row(trace,
                  "alloc,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",0,type-%" PRIu32 "\n",
                  memory->number, memory->size, alignment, elapsed(trace), memory->store->kind);
    pthread_mutex_unlock(&trace->mutex);
}

void layer_trace_freed(layer_device *device, const layer_memory *memory)
{
    layer_trace *trace = &device->trace;
    if (!*device->settings.trace_file)
        return;
    pthread_mutex_lock(&trace->mutex);
    if (is_writing(trace))
        write_row(trace, "free,%" PRIu64 ",,,%" PRIu64 ",0,\n", memory->number, elapsed(trace));
    pthread_mutex_unlock(&trace->mutex);
}
