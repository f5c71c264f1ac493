/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_heaps.c - see host_heaps.h. The libraries are loaded by name at run time, so that each can
 * be missing and none replaces the malloc of the program.
 */
#include "bench/host_heaps.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIZE_DIVISOR = 16, PLAIN_ALIGNMENT = 16, MAX_NAMES = 4 };

typedef struct heap_how {
    const char *libraries[MAX_NAMES]; /* file names to try; empty for the C library */
} heap_how;

typedef struct heap_state {
    void *(*malloc)(size_t size);
    void *(*aligned_alloc)(size_t alignment, size_t size);
    void (*free)(void *memory);
    uint64_t divisor;
} heap_state;

/* ---- libraries ---------------------------------------------------------------------------- */

static void *open_library(const heap_how *how)
{
    void *library = NULL;
    for (int i = 0; i < MAX_NAMES && how->libraries[i] && !library; i++)
        library = dlopen(how->libraries[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

static const char *absent(const subject *self)
{
    static char reason[256];
    if (open_library(self->how))
        return NULL;
    const char *error = dlerror();
    snprintf(reason, sizeof reason, "%s", error ? error : "the library cannot be loaded");
    return reason;
}

/* C does not convert the object pointer of dlsym to a function pointer, hence the void **. */
static void look_up(void *library, const char *name, void *function)
{
    *(void **)function = dlsym(library, name);
}

/* ---- the subject -------------------------------------------------------------------------- */

static void *create(const subject *self, const subject_arena *arena)
{
    const heap_how *how = self->how;
    heap_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    *state = (heap_state){malloc, aligned_alloc, free, SIZE_DIVISOR};
    void *library = open_library(how);
    if (library) {
        look_up(library, "malloc", &state->malloc);
        look_up(library, "aligned_alloc", &state->aligned_alloc);
        look_up(library, "free", &state->free);
    }
    if (arena->unit <= PLAIN_ALIGNMENT) /* small ranges fit into host memory undivided */
        state->divisor = 1;
    return state;
}

static uint64_t allocate(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const heap_state *state = user;
    size = (size + state->divisor - 1) / state->divisor;
    alignment /= state->divisor;
    void *memory = alignment <= PLAIN_ALIGNMENT
                       ? state->malloc(size)
                       : state->aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
    *offset = (uint64_t)memory;
    return (uint64_t)memory;
}

static void release(void *user, uint64_t handle)
{
    const heap_state *state = user;
    state->free((void *)handle); /* NOLINT: the handle is the address */
}

#define HEAP(title, loads, ...)                                                                    \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_HEAP, .how = &(const heap_how){{__VA_ARGS__}},            \
        .absent = (loads), .create = create, .destroy = free, .allocate = allocate,                \
        .free = release                                                                            \
    }

const subject HOST_HEAPS[] = {
    HEAP("mimalloc", absent, "libmimalloc.so", "libmimalloc.so.3", "libmimalloc.so.2"),
    HEAP("jemalloc", absent, "libjemalloc.so", "libjemalloc.so.2"),
    HEAP("C library", NULL, NULL),
};

const size_t HOST_HEAP_COUNT = sizeof HOST_HEAPS / sizeof *HOST_HEAPS;
