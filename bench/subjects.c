/*
 * subjects.c - see subjects.h.
 */
#include "bench/subjects.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/best_fit.h"
#include "bench/host_heaps.h"
#include "bench/quire_spaces.h"
#include "bench/vma.h"

/* ---- nothing: what the harness itself costs ----------------------------------------------- */

static void *floor_create(const subject *self, const subject_arena *arena)
{
    (void)self;
    (void)arena;
    return malloc(1);
}

static uint64_t floor_allocate(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    (void)state;
    (void)size;
    (void)alignment;
    *offset = 0;
    return 1;
}

static void floor_free(void *state, uint64_t handle)
{
    (void)state;
    (void)handle;
}

static const subject NOTHING = {.name = "harness alone",
                                .kind = SUBJECT_FLOOR,
                                .create = floor_create,
                                .destroy = free,
                                .allocate = floor_allocate,
                                .free = floor_free};

/* ---- the list ----------------------------------------------------------------------------- */

static void add(subject_list *list, const subject *s)
{
    if (list->count == MOST_SUBJECTS)
        return;
    subject_entry *entry = &list->entries[list->count++];
    *entry = (subject_entry){.subject = s};
    const char *reason = s->absent ? s->absent(s) : NULL;
    if (reason)
        snprintf(entry->absent, sizeof entry->absent, "%s", reason);
}

void subjects_init(subject_list *list)
{
    list->count = 0;
    for (size_t i = 0; i < QUIRE_SPACE_COUNT; i++)
        add(list, &QUIRE_SPACES[i]);
    for (size_t i = 0; i < VMA_BLOCK_COUNT; i++)
        add(list, &VMA_BLOCKS[i]);
    add(list, &BEST_FIT);
    for (size_t i = 0; i < HOST_HEAP_COUNT; i++)
        add(list, &HOST_HEAPS[i]);
    add(list, &NOTHING);
}

bool subjects_load(subject_list *list, const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const subject *s = library ? dlsym(library, "bench_subject") : NULL;
    if (!s) {
        fprintf(stderr, "bench_space: %s\n", dlerror());
        return false;
    }
    add(list, s);
    return true;
}
