/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_subjects.c - the subjects that are built into bench_space.
 */
#include <stdlib.h>

#include "bench/best_fit.h"
#include "bench/host_heaps.h"
#include "bench/quire_spaces.h"
#include "bench/subjects.h"
#include "bench/vma.h"

/* ---- a subject that does nothing: the cost of the harness --------------------------------- */

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

void subjects_of_spaces(subject_list *list)
{
    list->count = 0;
    subjects_add(list, QUIRE_SPACES, QUIRE_SPACE_COUNT);
    subjects_add(list, VMA_BLOCKS, VMA_BLOCK_COUNT);
    subjects_add(list, &BEST_FIT, 1);
    subjects_add(list, HOST_HEAPS, HOST_HEAP_COUNT);
    subjects_add(list, &NOTHING, 1);
}
