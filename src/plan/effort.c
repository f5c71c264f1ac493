/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * effort.c - the clock, and parts of an effort.
 */
#include "src/plan/effort.h"

#include "src/base/system.h"

/* Some 0.1 ms of work. */
static const uint64_t STEPS_BETWEEN_LOOKS = 1 << 15;
static const uint64_t TIME_BETWEEN_CALLS = 10000000;

void qi_plan_look(qi_plan_effort *effort)
{
    qi_plan_watch *watch = effort->watch;
    effort->next_look = effort->steps + STEPS_BETWEEN_LOOKS;
    if (effort->deadline == UINT64_MAX && !watch)
        return;
    const uint64_t now = qi_clock();
    effort->is_over |= now >= effort->deadline;
    if (!watch)
        return;
    if (watch->progress && watch->best.peak_bytes && now >= watch->next_call && !watch->is_ended) {
        watch->next_call = now + TIME_BETWEEN_CALLS;
        watch->best.steps = effort->steps;
        watch->best.wall_ns = now - watch->began;
        watch->is_ended = !watch->progress(watch->user, &watch->best);
    }
    effort->is_over |= watch->is_ended;
}

qi_plan_effort qi_plan_effort_part(const qi_plan_effort *whole, uint64_t parts)
{
    qi_plan_effort part = *whole;
    if (whole->steps < whole->step_limit)
        part.step_limit = whole->steps + (whole->step_limit - whole->steps) / parts;
    if (whole->deadline != UINT64_MAX) {
        uint64_t now = qi_clock();
        part.deadline = now < whole->deadline ? now + (whole->deadline - now) / parts : now;
    }
    return part;
}

void qi_plan_effort_end_part(qi_plan_effort *whole, const qi_plan_effort *part)
{
    whole->steps = part->steps;
    whole->next_look = part->steps;
    qi_plan_spend(whole, 0);
}
