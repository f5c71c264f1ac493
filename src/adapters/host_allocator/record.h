/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * record.h - the record of an allocator, its trace and the fork handlers.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_RECORD_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_RECORD_H

#include <pthread.h>
#include <stdatomic.h>

#include "quire/base.h"
#include "src/adapters/host_allocator/blocks.h"

/* ---- the trace ---------------------------------------------------------------------------- */

/* Writes allocations and frees to a file (docs/formats.md). */
typedef struct host_trace {
    atomic_bool is_open;   /* changes under the mutex */
    pthread_mutex_t mutex; /* the numbers and times of rows increase from row to row */
    int file;
    bool has_failed;
    uint64_t count; /* of allocations in all traces: the number of the last one */
    uint64_t first; /* the number before the first one of this trace */
    uint64_t start_ns;
} host_trace;

static inline bool host_trace_is_open(host_trace *trace)
{
    return atomic_load_explicit(&trace->is_open, memory_order_relaxed);
}

/* Errors: BAD_FILE (the file cannot be written, or a row was not), WRONG_STATE (start: a trace is
   being recorded; stop: none is). */
QUIRE_MUST_USE quire_result host_trace_start(host_trace *trace, const char *path);
QUIRE_MUST_USE quire_result host_trace_stop(host_trace *trace);

/* Writes a row, if a trace is being recorded, and returns the number of the allocation, or 0. */
uint64_t host_trace_allocated(host_trace *trace, uint64_t size, uint64_t alignment);

/* Writes a row, if the allocation of this number is in the trace. */
void host_trace_freed(host_trace *trace, uint64_t number);

/* ---- the record --------------------------------------------------------------------------- */

struct host_allocator {
    quire_device *device;
    quire_memory *memory;
    host_marks marks;
    host_caches caches;
    host_trace trace;
    host_allocator *next; /* in the list of all allocators */
};

/* ---- forks -------------------------------------------------------------------------------- */

/* Calls the fork handlers for the allocator from now on, until it is removed. Adding fails with
   OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result host_fork_add(host_allocator *allocator);
void host_fork_remove(host_allocator *allocator);

#endif
