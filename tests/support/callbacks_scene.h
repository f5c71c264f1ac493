/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * callbacks_scene.h - shared by callbacks.c, which owns the callbacks, and callbacks_places.c,
 * which owns the places where the library calls them.
 */
#ifndef QUIRE_TESTS_SUPPORT_CALLBACKS_SCENE_H
#define QUIRE_TESTS_SUPPORT_CALLBACKS_SCENE_H

#include "tests/support/callbacks.h"

typedef enum occurrence {
    OPENED = 1 << 0, /* lines of the log */
    CLOSED = 1 << 1,
    DEVICE_BUSY = 1 << 2,
    MEMORY_MADE = 1 << 3,
    MEMORY_DESTROYED = 1 << 4,
    STILL_HOLDS = 1 << 5,
    PAGE_LINE = 1 << 6,
    GROWN_LINE = 1 << 7,
    GIVEN_LINE = 1 << 8,
    NO_MEMORY = 1 << 9,
    VISITED = 1 << 10,
    WRITTEN = 1 << 11,
    ALLOCATED = 1 << 12, /* events, in the order of their kinds */
    FREED = 1 << 13,
    REFUSED = 1 << 14,
    PAGE_MADE = 1 << 15,
    PAGE_GONE = 1 << 16,
    PAGE_RESIZED = 1 << 17,
    PROGRESS = 1 << 18
} occurrence;

/* What a callback does; a mask. */
enum {
    LOOK = 1 << 0,      /* reads statistics, a report, JSON, a walk, a check */
    SMALL = 1 << 1,     /* allocates, maps, unmaps and frees */
    KEEP = 1 << 2,      /* allocates, and frees its previous allocation */
    DEDICATED = 1 << 3, /* creates a page and leaves it empty */
    HOPELESS = 1 << 4,  /* requests more than the device has */
    TRIM = 1 << 5
};

typedef struct scene {
    const callbacks_subject *subject;
    uint64_t page;
    quire_device *device;
    quire_memory *memory;
    quire_memory *in_use; /* the memory that callbacks use, also while it is being destroyed */
    quire_allocation kept;
    uint32_t actions, shards;
    uint32_t seen;  /* a mask of occurrences */
    uint32_t calls; /* of callbacks at this place */
    bool is_inside;
    quire_stream *stream;
} scene;

extern scene callbacks_scene;

/* Allocates. Returns false if the request fails for an allowed reason. */
bool callbacks_allocate(quire_memory *memory, const quire_allocation_options *options,
                        quire_allocation *allocation);

/* A visitor, a text sink and the progress of a copy that perform the actions. */
bool callbacks_visit(void *user, const quire_item *item);
bool callbacks_visit_memory(void *user, quire_memory *memory);
bool callbacks_take_text(void *user, const char *piece, size_t size);
bool callbacks_progress(void *user, uint64_t done, uint64_t total);

enum { ELASTIC = 1 };

typedef struct place {
    const char *name;
    void (*visit)(void);
    uint32_t flags;
    uint32_t pages;    /* maximum; 0 means any number */
    uint64_t limit;    /* of the memory, in pages; 0 means none */
    uint64_t retained; /* bytes */
    uint32_t expected; /* occurrences that a run of LOOK alone must see */
} place;

/* The last entry has no name. */
extern const place callbacks_places[];

#endif
