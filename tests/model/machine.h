/*
 * machine.h - what the two halves of the model share: model.c decides who makes the next step,
 * words.c makes it.
 */
#ifndef QUIRE_TESTS_MODEL_MACHINE_H
#define QUIRE_TESTS_MODEL_MACHINE_H

#include <setjmp.h>

#include "tests/model/model.h"

enum {
    MAX_PLACES = 64,   /* words of one execution */
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
    view known; /* what an acquire that reads it gets to know */
} message;

typedef struct place {
    const void *at;
    uint32_t count;
    message messages[MAX_MESSAGES];
} place;

typedef enum state { READY, ASLEEP, NAPPING, WOKEN, ENDED } state;

typedef struct thread {
    jmp_buf stopped_at;
    bool has_begun;
    state state;
    uint32_t place; /* of the step it is about to make, or of its sleep */
    bool writes;
    const uint32_t *needs; /* the lock that this step takes; or NULL */
    view known;
    char locals[MODEL_MAX_LOCALS][LOCAL_BYTES];
} thread;

/* A decision: which thread makes a step (by masks), or one of `count` possibilities. */
typedef struct decision {
    uint32_t chosen;
    uint32_t count; /* 0: it is about threads */
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
    bool is_running; /* inside a thread; else operations just work */
    decision decisions[MAX_STEPS];
    uint32_t made, planned; /* decisions of this execution, and those given by the plan */
    char violation[512];
} machine;

extern machine model;

/* One of `count` possibilities. */
uint32_t model_choose(uint32_t count);

/* Gives the turn back to the scheduler. */
void model_leave(void);

#endif
