/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * record.c - writes each row of a trace at once, so that a killed process loses nothing; and takes
 * the locks of all allocators before a fork, so that the child finds every list whole.
 */
#include "src/adapters/host_allocator/record.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "quire/backend.h"
#include "src/base/process.h"

/* ---- the trace ---------------------------------------------------------------------------- */

enum { MAX_ROW = 128 };

/* Writes each row at once: a killed process loses nothing. Requires the mutex. */
QUIRE_PRINTF(2, 3) static void write_row(host_trace *trace, const char *format, ...)
{
    char row[MAX_ROW];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(row, sizeof row, format, args);
    va_end(args);
    if (!trace->has_failed)
        trace->has_failed = qi_output_write(trace->file, row, (size_t)length) != 0;
}

/* Returns the nanoseconds since the first row. Requires the mutex. */
static uint64_t elapsed(host_trace *trace)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    uint64_t now = (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
    if (!trace->start_ns)
        trace->start_ns = now;
    return now - trace->start_ns;
}

/* Requires the mutex. */
static quire_result start(host_trace *trace, const char *path)
{
    if (host_trace_is_open(trace))
        return quire_backend_fail(QUIRE_ERROR_WRONG_STATE, 0, "a trace is being recorded already");
    int file = qi_output_open(path, O_TRUNC);
    if (file < 0)
        return quire_backend_fail(QUIRE_ERROR_BAD_FILE, errno, "%s cannot be written: %s", path,
                                  strerror(errno));
    trace->file = file;
    trace->has_failed = false;
    trace->first = trace->count;
    trace->start_ns = 0;
    write_row(trace, "op,id,size,alignment,time_ns,stream,label\n");
    atomic_store(&trace->is_open, true);
    return QUIRE_SUCCESS;
}

quire_result host_trace_start(host_trace *trace, const char *path)
{
    pthread_mutex_lock(&trace->mutex);
    quire_result result = start(trace, path);
    pthread_mutex_unlock(&trace->mutex);
    return result;
}

quire_result host_trace_stop(host_trace *trace)
{
    pthread_mutex_lock(&trace->mutex);
    bool was_open = host_trace_is_open(trace);
    bool is_written = !trace->has_failed;
    atomic_store(&trace->is_open, false);
    if (was_open && close(trace->file))
        is_written = false;
    pthread_mutex_unlock(&trace->mutex);
    if (!was_open)
        return quire_backend_fail(QUIRE_ERROR_WRONG_STATE, 0, "no trace is being recorded");
    return is_written ? QUIRE_SUCCESS
                      : quire_backend_fail(QUIRE_ERROR_BAD_FILE, 0,
                                           "the trace cannot be written completely");
}

uint64_t host_trace_allocated(host_trace *trace, uint64_t size, uint64_t alignment)
{
    uint64_t number = 0;
    pthread_mutex_lock(&trace->mutex);
    if (host_trace_is_open(trace)) {
        number = ++trace->count;
        write_row(trace, "alloc,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",0,\n", number, size,
                  alignment, elapsed(trace));
    }
    pthread_mutex_unlock(&trace->mutex);
    return number;
}

void host_trace_freed(host_trace *trace, uint64_t number)
{
    pthread_mutex_lock(&trace->mutex);
    if (host_trace_is_open(trace) && number > trace->first)
        write_row(trace, "free,%" PRIu64 ",,,%" PRIu64 ",0,\n", number, elapsed(trace));
    pthread_mutex_unlock(&trace->mutex);
}

/* In the child of a fork, with the mutex: ends the trace without a write. */
static void abandon(host_trace *trace)
{
    if (host_trace_is_open(trace))
        close(trace->file);
    atomic_store(&trace->is_open, false);
}

/* ---- forks -------------------------------------------------------------------------------- */

/*
 * Before a fork the handlers take the locks of the allocators, so that the child finds every list
 * whole. No thread calls quire while it holds one of these locks, and no thread takes one while it
 * holds a lock of quire. The order of these handlers and those of quire thus does not matter.
 */

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static host_allocator *first;

static void prepare(void)
{
    pthread_mutex_lock(&list_mutex);
    for (host_allocator *a = first; a; a = a->next) {
        pthread_mutex_lock(&a->trace.mutex);
        host_caches_lock_all(&a->caches);
    }
}

static void in_parent(void)
{
    for (host_allocator *a = first; a; a = a->next) {
        host_caches_unlock_all(&a->caches);
        pthread_mutex_unlock(&a->trace.mutex);
    }
    pthread_mutex_unlock(&list_mutex);
}

static void in_child(void)
{
    for (host_allocator *a = first; a; a = a->next) {
        host_caches_unlock_in_child(&a->caches);
        abandon(&a->trace);
        pthread_mutex_unlock(&a->trace.mutex);
    }
    pthread_mutex_unlock(&list_mutex);
}

quire_result host_fork_add(host_allocator *allocator)
{
    static bool is_registered; /* requires list_mutex */
    pthread_mutex_lock(&list_mutex);
    if (!is_registered)
        is_registered = !pthread_atfork(prepare, in_parent, in_child);
    if (is_registered) {
        allocator->next = first;
        first = allocator;
    }
    bool is_added = is_registered;
    pthread_mutex_unlock(&list_mutex);
    return is_added ? QUIRE_SUCCESS
                    : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                         "the fork handlers cannot be registered");
}

void host_fork_remove(host_allocator *allocator)
{
    pthread_mutex_lock(&list_mutex);
    host_allocator **place = &first;
    while (*place && *place != allocator)
        place = &(*place)->next;
    if (*place)
        *place = allocator->next;
    pthread_mutex_unlock(&list_mutex);
}
