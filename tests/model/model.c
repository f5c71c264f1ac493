/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * model.c - the scheduler (see model.h): decisions, coroutines, executions.
 */
#include "tests/model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "tests/model/machine.h"
#include "tests/support/plain.h"
#include "tests/support/valgrind.h"

enum { STACK_BYTES = 64 << 10 };

machine model;
static char stacks[MODEL_MAX_THREADS][STACK_BYTES];

int model_looks;

/* ---- decisions ------------------------------------------------------------------------------ */

/* The next decision; *is_new if the plan does not contain it. Returns NULL if the execution is too
   long. */
static decision *next_decision(bool *is_new)
{
    if (model.made == MAX_STEPS) {
        model_violated("the scenario does not end");
        return NULL;
    }
    *is_new = model.made == model.planned;
    model.planned += *is_new;
    return &model.decisions[model.made++];
}

uint32_t model_choose(uint32_t count)
{
    bool is_new = false;
    decision *d = count > 1 ? next_decision(&is_new) : NULL;
    if (!d)
        return 0;
    if (is_new)
        *d = (decision){.count = count};
    return d->chosen;
}

/* Changes the last decision that has an alternative left; returns false if all were tried. */
static bool plan_next(void)
{
    for (; model.planned; model.planned--) {
        decision *d = &model.decisions[model.planned - 1];
        if (d->count) {
            if (++d->chosen < d->count)
                return true;
            continue;
        }
        d->tried |= 1u << d->chosen;
        uint32_t left = d->ready & ~d->asleep & ~d->tried;
        if (left) {
            d->chosen = (uint32_t)__builtin_ctz(left);
            return true;
        }
    }
    return false;
}

/* A context only starts a thread. These jumps save no signals and cost no system call. */
void model_leave(void)
{
    if (!_setjmp(model.threads[model.self].stopped_at))
        _longjmp(model.scheduler, 1);
}

/* ---- one execution -------------------------------------------------------------------------- */

uint32_t model_self(void)
{
    return model.self;
}

void model_violated(const char *text)
{
    size_t length = 0, room = sizeof model.violation;
    if (*model.violation)
        return;
    length += (size_t)snprintf(model.violation, room, "%s; steps by thread:", text);
    for (uint32_t i = 0; i < model.made && length + 3 < room; i++)
        if (!model.decisions[i].count)
            length += (size_t)snprintf(model.violation + length, room - length, " %" PRIu32,
                                       model.decisions[i].chosen);
    if (model.is_running)
        model_leave();
}

static void enter(void)
{
    model.scenario->threads[model.self]();
    model.threads[model.self].state = ENDED;
    model_leave();
}

static void begin_thread(uint32_t index)
{
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks[index];
    context.uc_stack.ss_size = sizeof stacks[index];
    makecontext(&context, enter, 0);
    model.threads[index].has_begun = true;
    setcontext(&context);
}

static void jump_into(uint32_t index)
{
    model.self = index;
    model.is_running = true;
    if (_setjmp(model.scheduler))
        return;
    if (model.threads[index].has_begun)
        _longjmp(model.threads[index].stopped_at, 1);
    begin_thread(index);
}

/* Runs a thread up to the next point where it stops. */
static void resume(uint32_t index)
{
    const model_local *locals = model.scenario->locals;
    char(*own)[LOCAL_BYTES] = model.threads[index].locals;
    for (int i = 0; i < MODEL_MAX_LOCALS; i++)
        if (locals[i].at)
            memcpy(locals[i].at, own[i], locals[i].size);
    jump_into(index);
    model.is_running = false;
    for (int i = 0; i < MODEL_MAX_LOCALS; i++)
        if (locals[i].at)
            memcpy(own[i], locals[i].at, locals[i].size);
}

static void start(void)
{
    model.made = model.place_count = 0;
    for (uint32_t i = 0; i < model.thread_count; i++)
        model.threads[i] = (thread){.state = READY};
    for (uint32_t i = 0; i < model.thread_count; i++)
        resume(i);
}

static uint32_t threads_in(state s)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < model.thread_count; i++)
        mask |= (uint32_t)(model.threads[i].state == s) << i;
    return mask;
}

static bool are_independent(const thread *a, const thread *b)
{
    return a->place != b->place || (!a->writes && !b->writes);
}

/* Those of the threads whose next step does not touch the word of the chosen one's step. */
static uint32_t independent_of(uint32_t mask, uint32_t chosen)
{
    for (uint32_t i = 0; i < model.thread_count; i++)
        if (i == chosen || !are_independent(&model.threads[i], &model.threads[chosen]))
            mask &= ~(1u << i);
    return mask;
}

/* The threads that may make the next step; a bound on preemptions excludes more and more of them.
   */
static uint32_t candidates(uint32_t ready, uint32_t previous, uint32_t preempted)
{
    bool goes_on = ready >> previous & 1;
    return model.scenario->preemptions && goes_on && preempted == model.scenario->preemptions
               ? 1u << previous
               : ready;
}

/* The steps that need no turn: those of threads that were just woken, up to their next stop. */
static void resume_woken(void)
{
    for (uint32_t i = 0; i < model.thread_count; i++)
        if (model.threads[i].state == WOKEN) {
            model.threads[i].state = READY;
            resume(i);
        }
}

/* The threads whose next step takes a lock that another thread holds. */
static uint32_t blocked_threads(void)
{
    uint32_t mask = 0;
    for (uint32_t i = 0; i < model.thread_count; i++)
        mask |= (uint32_t)(model.threads[i].needs && *model.threads[i].needs) << i;
    return mask;
}

/* The threads that can make a step. */
static uint32_t ready_threads(void)
{
    resume_woken();
    return threads_in(READY) & ~blocked_threads();
}

/* Runs the rest of an execution that is cut short, in any order. */
static void run_out(void)
{
    for (uint32_t ready; (ready = ready_threads()) && !*model.violation;)
        resume((uint32_t)__builtin_ctz(ready));
}

/* Returns false if an earlier execution covered the rest. */
static bool run(void)
{
    uint32_t ready, asleep = 0, previous = 0, preempted = 0;
    start();
    while ((ready = ready_threads()) && !*model.violation) {
        uint32_t may = candidates(ready, previous, preempted);
        bool is_new = false;
        decision *d = may & ~asleep ? next_decision(&is_new) : NULL;
        if (!d && model.scenario->runs_out)
            run_out();
        if (!d)
            return false;
        if (is_new)
            *d = (decision){
                .chosen = (uint32_t)__builtin_ctz(may & ~asleep), .ready = may, .asleep = asleep};
        CHECK_EQ(d->ready, may);          /* otherwise the scenario differs between executions */
        if (!model.scenario->preemptions) /* the two options exclude each other */
            asleep = independent_of(d->asleep | d->tried, d->chosen);
        preempted += d->chosen != previous && ready >> previous & 1;
        previous = d->chosen;
        resume(d->chosen);
    }
    if ((threads_in(ASLEEP) || threads_in(POLLING)) && !*model.violation)
        model_violated("nobody wakes a thread that sleeps");
    if (threads_in(READY) && !*model.violation)
        model_violated("threads wait for each other's locks");
    return true;
}

static const char *explore(const model_scenario *scenario, model_fault fault)
{
    uint64_t executions = 0, cut_short = 0;
    model.scenario = scenario;
    model.fault = fault;
    model.planned = 0;
    model_looks = scenario->looks;
    model.violation[0] = '\0';
    for (int i = 0; i < MODEL_MAX_LOCALS; i++)
        CHECK(scenario->locals[i].size <= LOCAL_BYTES);
    for (model.thread_count = 0;
         model.thread_count < MODEL_MAX_THREADS && scenario->threads[model.thread_count];)
        model.thread_count++;
    do {
        scenario->begin();
        bool is_whole = run();
        executions += is_whole;
        cut_short += !is_whole;
        if (is_whole && !*model.violation && scenario->judge)
            scenario->judge();
        if (scenario->end)
            scenario->end();
    } while (!*model.violation && plan_next());
    printf("# %s: %" PRIu64 " executions, %" PRIu64 " cut short as seen before%s%s\n",
           scenario->name, executions, cut_short, *model.violation ? "; " : "", model.violation);
    fflush(stdout);
    return *model.violation ? model.violation : NULL;
}

void model_finds(const model_scenario *scenario, model_fault fault, const char *part)
{
    const char *violation = explore(scenario, fault);
    CHECK(violation != NULL);
    CHECK_HAS(violation, part);
}

void model_holds(const model_scenario *scenario)
{
    const char *violation = explore(scenario, MODEL_NO_FAULT);
    if (violation)
        check_failed(__FILE__, __LINE__, "%s: %s", scenario->name, violation);
}

void model_case(const char *name, void (*body)(void))
{
    if (under_valgrind())
        plain_skip(name, "valgrind does not follow switching stacks");
    else
        plain_case(name, body);
}
