/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * machine.h - shared by the two halves of the model: model.c decides which thread makes the next
 * step, words.c executes it.
 */
#ifndef QUIRE_TESTS_MODEL_MACHINE_H
#define QUIRE_TESTS_MODEL_MACHINE_H

#include <setjmp.h>

#include "tests/model/model.h"

enum {
    MAX_PLACES = 96,   /* words of one execution */
    MAX_MESSAGES = 48, /* values given to one of them */
    MAX_STEPS = 1000,
    LOCAL_BYTES = 8
};

/* Of each word, the index of the oldest value that may still be read. */
typedef struct view {
    uint16_t oldest[MAX_PLACES];
} view;

typedef struct message {
    uint64_t value;
    view known; /* what an acquire that reads it learns */
} message;

typedef struct place {
    const void *at;
    uint32_t count;
    message messages[MAX_MESSAGES];
} place;

typedef enum state { READY, ASLEEP, POLLING, WOKEN, ENDED } state;

typedef struct thread {
    jmp_buf stopped_at;
    bool has_begun;
    state state;
    uint32_t place; /* of the step it is about to make, or of its sleep */
    bool writes;
    const uint32_t *needs; /* the lock that this step takes, or NULL */
    view known;
    char locals[MODEL_MAX_LOCALS][LOCAL_BYTES];
} thread;

/* A decision: which thread makes a step (by masks), or one of `count` alternatives. */
typedef struct decision {
    uint32_t chosen;
    uint32_t count; /* 0 means a choice of threads */
    uint32_t ready, asleep, tried;
} decision;

typedef struct machine {
    const model_scenario *scenario;
    model_fault fault;
    jmp_buf scheduler;
    thread threads[MODEL_MAX_THREADS];
    place places[MAX_PLACES];
    uint32_t place_count;
    uint32_t thread_count;
    uint32_t self;
    bool is_running; /* inside a thread; otherwise operations take effect without a step */
    decision decisions[MAX_STEPS];
    uint32_t made, planned; /* decisions of this execution, and those that the plan gives */
    char violation[512];
} machine;

extern machine model;

/* Chooses one of `count` alternatives. */
uint32_t model_choose(uint32_t count);

/* Returns to the scheduler. */
void model_leave(void);

#endif
