/*
 * model.h - every interleaving of a small scenario: a scheduler behind the atomic operations.
 *
 * A program that finds tests/model before the root among its include folders compiles the library's
 * own sources against tests/model/src/base/atomic.h. Two or three logical threads (coroutines) then
 * stop before each atomic operation, and the scheduler tries every order of these steps, running
 * the scenario from its start each time: depth first, no bound on preemptions unless a scenario
 * sets one. Orders that differ only in steps that do not touch the same word are tried once (sleep
 * sets).
 *
 * Memory is weaker than the order of the steps. Each word has the list of the values it was given;
 * a load may read any of them that is not older than what its thread knows of the word. A thread
 * knows what it wrote and read itself, and, through an acquire that reads from a release (or from
 * the exchanges that follow one), what the other thread knew. An exchange works on the newest
 * value. Not modelled: loads that read what is stored only later, exchanges that fail for no reason
 * or after an old value, sleepers that wake without cause.
 *
 * What is not atomic is checked by model_read and model_write: the thread must know the last write,
 * or there is a race.
 */
#ifndef QUIRE_TESTS_MODEL_MODEL_H
#define QUIRE_TESTS_MODEL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MODEL_MAX_THREADS = 3 };

/* Orders, to be combined. */
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
 * A lock as one word, 0 while it is free: to take it is one step, which no thread makes while
 * another holds it. To give it back is no step of its own.
 */
void model_acquire(uint32_t *lock);
void model_release(uint32_t *lock);

/* Ends the execution as one that breaks a promise. In a thread it does not return. */
void model_violated(const char *sentence);
#define MODEL_CHECK(condition) ((condition) ? (void)0 : model_violated("not true: " #condition))

/* What can be made wrong, to show that a checker finds it. */
typedef enum model_fault {
    MODEL_NO_FAULT = 0,
    MODEL_TORN_EXCHANGE, /* comparing, adding and swapping are a load and a store */
    MODEL_NO_ACQUIRE,
    MODEL_NO_RELEASE,
    MODEL_NO_WAKE,    /* sleepers are not woken */
    MODEL_BLIND_SLEEP /* they sleep without looking whether the word has changed */
} model_fault;

/* A variable of which each thread has its own, at most 8 bytes. */
enum { MODEL_MAX_LOCALS = 2 };
typedef struct model_local {
    void *at; /* NULL: none */
    size_t size;
} model_local;

typedef struct model_scenario {
    const char *name;
    void (*begin)(void);                       /* before each execution */
    void (*threads[MODEL_MAX_THREADS])(void); /* NULL: no more */
    void (*judge)(void);                       /* after each one that came to its end; or NULL */
    void (*end)(void);                         /* after each one; or NULL */
    uint32_t preemptions; /* 0: any number; else most changes away from a thread that could go on */
    bool is_strong;       /* loads read the newest value only */
    bool runs_out;        /* `end` needs threads that came to their end, also in executions that are
                             cut short because what is left was seen; not after a violation */
    int looks;            /* QI_LOCK_LOOKS */
    model_local locals[MODEL_MAX_LOCALS]; /* what each thread has of its own */
} model_scenario;

/* Both run a scenario in every way and tell how many there were, and what was found. */
void model_holds(const model_scenario *scenario);
void model_finds(const model_scenario *scenario, model_fault fault, const char *part);

/* A case of the program; skipped under valgrind, which does not follow stacks that change. */
void model_case(const char *name, void (*body)(void));

/* What QI_LOCK_LOOKS is in these programs. */
extern int model_looks;

/* Which thread runs, from 0. */
uint32_t model_self(void);

#endif
