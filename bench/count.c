/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * count.c - runs a workload once under an instruction counter. All counted instructions are below
 * counted_allocate and counted_free, where bench/instructions.py switches the counter on. The
 * script subtracts the cost of the harness.
 */
#include "bench/count.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not inlined, and with an increment after the inner call, so that it is not a tail call. */
#define COUNTED __attribute__((noinline))

static volatile uint64_t returns;

COUNTED uint64_t counted_allocate(const subject *s, void *state, const workload_step *step,
                                  uint64_t *offset);
COUNTED void counted_free(const subject *s, void *state, uint64_t handle);

uint64_t counted_allocate(const subject *s, void *state, const workload_step *step,
                          uint64_t *offset)
{
    uint64_t handle = s->allocate(state, step->size, step->alignment, offset);
    returns++;
    return handle;
}

void counted_free(const subject *s, void *state, uint64_t handle)
{
    s->free(state, handle);
    returns++;
}

static void play_counted(const subject *s, const workload *w, void *state, uint64_t *slots)
{
    uint64_t allocations = 0, frees = 0, offset;
    for (size_t i = 0; i < w->count; i++) {
        const workload_step *step = &w->steps[i];
        uint64_t *slot = &slots[step->slot];
        if (step->size) {
            *slot = counted_allocate(s, state, step, &offset);
            allocations++;
        } else if (*slot) {
            counted_free(s, state, *slot);
            frees++;
        }
    }
    printf("%" PRIu64 " %" PRIu64 "\n", allocations, frees);
}

static int complain(const char *what, const char *name)
{
    fprintf(stderr, "unknown %s '%s'\n", what, name);
    return 2;
}

int count_calls(const subject_list *list, const char *workload_name, const char *subject_name)
{
    const subject *s = NULL;
    for (size_t i = 0; i < list->count; i++)
        if (is_present(&list->entries[i]) && !strcmp(list->entries[i].subject->name, subject_name))
            s = list->entries[i].subject;
    if (!s)
        return complain("subject", subject_name);
    workload w;
    if (!workload_make(workload_name, 0, &w)) {
        workload_free(&w);
        return complain("workload", workload_name);
    }
    uint64_t *slots = calloc(w.slots, sizeof *slots);
    void *state = s->create(s, &(subject_arena){w.arena, w.granule ? w.granule : 256, w.slots});
    if (slots && state)
        play_counted(s, &w, state, slots);
    free(slots);
    if (state)
        s->destroy(state);
    workload_free(&w);
    return slots && state ? 0 : 1;
}
