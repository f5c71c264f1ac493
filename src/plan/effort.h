/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * effort.h - how long a plan is worked on.
 *
 * Work is counted in steps, which are the same on every machine: equal problems, seeds and step
 * limits give equal plans. The clock, and the caller of quire_plan, only end the work.
 */
#ifndef QUIRE_SRC_PLAN_EFFORT_H
#define QUIRE_SRC_PLAN_EFFORT_H

#include "quire/plan.h"
#include "src/plan/line.h"

/* What the caller learns meanwhile. */
typedef struct qi_plan_watch {
    bool (*progress)(void *user, const quire_plan_info *best); /* NULL: none */
    void *user;
    quire_plan_info best; /* peak_bytes is 0 until there is a plan */
    uint64_t began;       /* by the clock */
    uint64_t next_call;
    bool is_ended; /* the caller wants no more */
} qi_plan_watch;

typedef struct qi_plan_effort {
    uint64_t steps;
    uint64_t step_limit;
    uint64_t deadline;    /* by the clock; UINT64_MAX: none */
    uint64_t next_look;   /* the steps at which the clock is read again */
    qi_plan_watch *watch; /* NULL: nobody watches */
    bool is_over;
} qi_plan_effort;

/* Reads the clock, and calls the watcher if it is time. */
void qi_plan_look(qi_plan_effort *effort);

/* Counts steps. Returns false if the effort is over. */
static inline bool qi_plan_spend(qi_plan_effort *effort, uint64_t steps)
{
    effort->steps += steps;
    if (effort->steps >= effort->next_look)
        qi_plan_look(effort);
    effort->is_over |= effort->steps >= effort->step_limit;
    return !effort->is_over;
}

/* One part in `parts` of what is left of an effort. It is spent on its own until it ends. */
qi_plan_effort qi_plan_effort_part(const qi_plan_effort *whole, uint64_t parts);
void qi_plan_effort_end_part(qi_plan_effort *whole, const qi_plan_effort *part);

#endif
