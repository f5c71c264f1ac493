/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * model.h - every interleaving of a small scenario: a scheduler behind the atomic operations.
 *
 * A program that has tests/model before the root in its include path compiles the library's own
 * sources against tests/model/src/base/atomic.h. Two or three logical threads (coroutines) then
 * stop before each atomic operation. The scheduler tries every order of these steps and runs the
 * scenario from its start each time: depth first, without a bound on preemptions unless a scenario
 * sets one. Orders that differ only in steps on different words are tried once (sleep sets).
 *
 * Memory is weaker than the order of the steps. Each word has the list of the values it was given.
 * A load may read any of them that is not older than what its thread knows of the word. A thread
 * knows what it wrote and read itself, and, through an acquire that reads from a release (or from
 * the exchanges that follow one), what the other thread knew. An exchange works on the newest
 * value. Not modelled: loads that read values stored later, exchanges that fail spuriously or after
 * an old value, sleepers that wake without cause.
 *
 * model_read and model_write check data that is not atomic: the thread must know the last write,
 * otherwise it is a race.
 */
#ifndef QUIRE_TESTS_MODEL_MODEL_H
#define QUIRE_TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_MAX_THREADS = 3 };

/* Memory orders; a mask. */
enum { MODEL_RELAXED = 0, MODEL_ACQUIRE = 1, MODEL_RELEASE = 2 };

uint64_t model_load(const void *at, size_t size, int order);
void model_store(void *at, size_t size, uint64_t value, int order);
uint64_t model_add(void *at, size_t size, uint64_t value, int order);
uint64_t model_swap(void *at, size_t size, uint64_t value, int order);
bool model_exchange_if(void *at, size_t size, uint64_t *seen, uint64_t value, int order);

/* Data that is not atomic. */
uint64_t model_read(const uint64_t *at);
void model_write(uint64_t *at, uint64_t value);

/*
 * A lock as one word, 0 while it is free. Taking it is one step, which no thread makes while
 * another holds it. Releasing it is no separate step.
 */
void model_acquire(uint32_t *lock);
void model_release(uint32_t *lock);

/* Ends the execution as a violation. Does not return inside a thread. */
void model_violated(const char *message);
#define MODEL_CHECK(condition) ((condition) ? (void)0 : model_violated("not true: " #condition))

/* Faults that can be injected, to show that a checker finds them. */
typedef enum model_fault {
    MODEL_NO_FAULT = 0,
    MODEL_TORN_EXCHANGE, /* comparing, adding and swapping become a load and a store */
    MODEL_NO_ACQUIRE,
    MODEL_NO_RELEASE,
    MODEL_NO_WAKE,    /* sleepers are not woken */
    MODEL_BLIND_SLEEP /* sleepers do not check whether the word has changed */
} model_fault;

/* A variable with a value per thread, at most 8 bytes. */
enum { MODEL_MAX_LOCALS = 2 };
typedef struct model_local {
    void *at; /* NULL means none */
    size_t size;
} model_local;

typedef struct model_scenario {
    const char *name;
    void (*begin)(void);                      /* before each execution */
    void (*threads[MODEL_MAX_THREADS])(void); /* NULL means no further thread */
    void (*judge)(void);                      /* after each complete execution; or NULL */
    void (*end)(void);                        /* after every execution; or NULL */
    /* 0 means no bound; otherwise the maximum number of switches away from a thread that could
       continue */
    uint32_t preemptions;
    bool is_strong; /* loads read the newest value only */
    /* `end` needs threads that ran to their end, also in executions that are cut short because an
       earlier one covered the rest; not after a violation */
    bool runs_out;
    int looks;                            /* QI_LOCK_LOOKS */
    model_local locals[MODEL_MAX_LOCALS]; /* the variables with a value per thread */
} model_scenario;

/* Both run a scenario in every way and report the number of executions and the result. */
void model_holds(const model_scenario *scenario);
void model_finds(const model_scenario *scenario, model_fault fault, const char *part);

/* A case of the program. Skipped under valgrind, which does not follow switching stacks. */
void model_case(const char *name, void (*body)(void));

/* The value of QI_LOCK_LOOKS in these programs. */
extern int model_looks;

/* The running thread, from 0. */
uint32_t model_self(void);

#endif
