/*
 * callbacks_scene.h - what callbacks.c, which has the callbacks, and callbacks_places.c, which has
 * the places where they are called, share.
 */
#ifndef QUIRE_TESTS_SUPPORT_CALLBACKS_SCENE_H
#define QUIRE_TESTS_SUPPORT_CALLBACKS_SCENE_H

#include "tests/support/callbacks.h"

typedef enum heard {
    OPENED = 1 << 0, /* lines of the log */
    CLOSED = 1 << 1,
    DEVICE_BUSY = 1 << 2,
    MEMORY_MADE = 1 << 3,
    MEMORY_ENDED = 1 << 4,
    STILL_HOLDS = 1 << 5,
    PAGE_LINE = 1 << 6,
    GROWN_LINE = 1 << 7,
    GIVEN_LINE = 1 << 8,
    SHORTAGE = 1 << 9,
    VISITED = 1 << 10,
    WRITTEN = 1 << 11,
    ALLOCATED = 1 << 12, /* events, in the order of their kinds */
    FREED = 1 << 13,
    REFUSED = 1 << 14,
    PAGE_MADE = 1 << 15,
    PAGE_GONE = 1 << 16,
    PAGE_RESIZED = 1 << 17,
    PROGRESS = 1 << 18
} heard;

/* What a callback does, or'ed together. */
enum {
    LOOK = 1 << 0,      /* figures, a report, JSON, a walk, a check */
    SMALL = 1 << 1,     /* allocates, maps, unmaps and frees */
    KEEP = 1 << 2,      /* allocates and frees what it allocated the last time */
    DEDICATED = 1 << 3, /* makes a page and leaves it empty */
    HOPELESS = 1 << 4,  /* asks for more than can be had */
    TRIM = 1 << 5
};

typedef struct scene {
    const callbacks_subject *subject;
    uint64_t page;
    quire_device *device;
    quire_memory *memory;
    quire_memory *in_use; /* what callbacks use: the memory, also while it ends */
    quire_allocation kept;
    uint32_t habits, shards;
    uint32_t seen;  /* heard */
    uint32_t calls; /* of callbacks at this place */
    bool is_inside;
    quire_stream *stream;
} scene;

extern scene callbacks_scene;

/* An allocation. False: it is refused, for a reason that there may be. */
bool callbacks_can_have(quire_memory *memory, const quire_allocation_options *options,
                        quire_allocation *allocation);

/* A visitor, a text sink and the progress of a copy that act as their habit says. */
bool callbacks_visit(void *user, const quire_item *item);
bool callbacks_take_text(void *user, const char *piece, size_t size);
bool callbacks_go_on(void *user, uint64_t done, uint64_t total);

enum { CONTIGUOUS = 1 };

typedef struct place {
    const char *name;
    void (*visit)(void);
    uint32_t flags;
    uint32_t pages;    /* at most; 0: any number */
    uint64_t limit;    /* of the memory, in pages; 0: none */
    uint64_t retained; /* bytes */
    uint32_t tells;    /* heard: where callbacks only look */
} place;

/* Ends with one without a name. */
extern const place callbacks_places[];

#endif
