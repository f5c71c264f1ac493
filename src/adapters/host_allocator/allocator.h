/*
 * allocator.h - the record of an allocator.
 */
#ifndef QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_ALLOCATOR_H
#define QUIRE_SRC_ADAPTERS_HOST_ALLOCATOR_ALLOCATOR_H

#include "src/adapters/host_allocator/cache.h"
#include "src/adapters/host_allocator/marks.h"
#include "src/adapters/host_allocator/trace.h"

struct host_allocator {
    quire_device *device;
    quire_memory *memory;
    host_marks marks;
    host_caches caches;
    host_trace trace;
    host_allocator *next; /* in the list of fork.c */
};

/* Calls the fork handlers for the allocator from now on, until it is removed. Adding fails with
   OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result host_fork_add(host_allocator *allocator);
void host_fork_remove(host_allocator *allocator);

#endif
