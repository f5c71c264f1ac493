/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * packing.c - see packing.h. Steps are ordered by time. At the same time frees come before
 * allocations, and both follow the order of the file.
 */
#include "bench/packing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ALIGNMENT = 1024, UNIT = 256, LINE = 256 };

typedef struct event {
    uint64_t time, size; /* size 0 means a free */
    uint32_t slot;
} event;

typedef struct events {
    event *items;
    size_t count, room;
} events;

static bool append(events *list, event e)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 1024;
        event *items = realloc(list->items, room * sizeof *items);
        if (!items)
            return false;
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = e;
    return true;
}

/* Adds two events per line. Lines without three numbers after the id are skipped. */
static bool read_events(FILE *file, events *list, uint32_t *slots)
{
    char line[LINE];
    bool good = true;
    while (good && fgets(line, sizeof line, file)) {
        uint64_t lower, upper, size;
        if (sscanf(line, "%*[^,],%" SCNu64 ",%" SCNu64 ",%" SCNu64, &lower, &upper, &size) != 3)
            continue; /* the header line */
        good = size && append(list, (event){lower, size, *slots}) &&
               append(list, (event){upper, 0, *slots});
        ++*slots;
    }
    return good && list->count;
}

/* Orders by time, frees first, then by slot, which follows the order of the file. */
static int compare(const void *one, const void *other)
{
    const event *a = one, *b = other;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    if (!a->size != !b->size)
        return a->size ? 1 : -1;
    return (a->slot > b->slot) - (a->slot < b->slot);
}

static bool make_steps(const events *list, workload *out)
{
    out->steps = calloc(list->count, sizeof *out->steps);
    if (!out->steps)
        return false;
    for (size_t i = 0; i < list->count; i++) {
        const event *e = &list->items[i];
        out->steps[out->count++] = (workload_step){e->size, e->slot, e->size ? ALIGNMENT : 0};
    }
    return true;
}

bool packing_read(const char *path, workload *out)
{
    *out = (workload){.name = path, .granule = UNIT};
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    events list = {.count = 0};
    bool good = read_events(file, &list, &out->slots);
    fclose(file);
    if (good) {
        qsort(list.items, list.count, sizeof *list.items, compare);
        good = make_steps(&list, out);
    }
    free(list.items);
    return good;
}
