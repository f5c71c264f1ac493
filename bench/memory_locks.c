/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_locks.c - the cost of an uncontended lock: quire's lock in both of its forms, a mutex with
 * three states, a plain mutex, the lock that VMA uses, and a loop without a lock. Each is measured
 * in a process with one thread, where the C library avoids atomic operations for some of them, and
 * in a process with two threads. lock_latency.c measures contended locks.
 */
#include <pthread.h>

#include "bench/children.h"
#include "bench/memory.h"
#include "bench/reference_locks.h"
#include "bench/ticks.h"
#include "src/base/lock.h"
#include "src/base/result.h"

enum { ROUNDS = 200000 };

/* ---- the locks ---------------------------------------------------------------------------- */

/* Keeps the compiler from merging the increments of several rounds. */
static inline void guarded(uint64_t *count)
{
    ++*count;
    __asm__ volatile("" : : "r"(count) : "memory");
}

static void count_alone(uint64_t *count, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        guarded(count);
}

static void count_locked(uint64_t *count, uint64_t rounds)
{
    static qi_lock lock;
    qi_lock_init(&lock, "bench", QI_RANK_SHARD);
    for (uint64_t i = 0; i < rounds; i++) {
        qi_lock_acquire(&lock);
        guarded(count);
        qi_lock_release(&lock);
    }
}

/* As after a wait. */
static void count_in_second_form(uint64_t *count, uint64_t rounds)
{
    static qi_lock lock;
    qi_lock_init(&lock, "bench", QI_RANK_SHARD);
    qi_atomic_store_release_u32(&lock.form, QI_LOCK_EXCHANGED);
    for (uint64_t i = 0; i < rounds; i++) {
        qi_lock_acquire(&lock);
        guarded(count);
        qi_lock_release(&lock);
    }
}

static void count_with_napping_lock(uint64_t *count, uint64_t rounds)
{
    static napping_lock lock;
    for (uint64_t i = 0; i < rounds; i++) {
        napping_acquire(&lock);
        guarded(count);
        napping_release(&lock);
    }
}

static void count_with_three_states(uint64_t *count, uint64_t rounds)
{
    static three_lock lock;
    for (uint64_t i = 0; i < rounds; i++) {
        three_acquire(&lock);
        guarded(count);
        three_release(&lock);
    }
}

static void count_with_mutex(uint64_t *count, uint64_t rounds)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        guarded(count);
        pthread_mutex_unlock(&mutex);
    }
}

static void count_with_rwlock(uint64_t *count, uint64_t rounds)
{
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_rwlock_wrlock(&lock);
        guarded(count);
        pthread_rwlock_unlock(&lock);
    }
}

static const struct {
    const char *name;
    void (*count)(uint64_t *count, uint64_t rounds);
} LOCKS[] = {
    {"none", count_alone}, /* its time is subtracted from that of the others */
    {"quire's", count_locked},
    {"quire's, after a wait", count_in_second_form},
    {"quire's of version 0.1.0", count_with_napping_lock},
    {"three states", count_with_three_states},
    {"pthread_mutex", count_with_mutex},
    {"pthread_rwlock, to write", count_with_rwlock},
};

enum { LOCK_COUNT = sizeof LOCKS / sizeof *LOCKS, KINDS = 2 * LOCK_COUNT };

/* ---- one repeat, in a child --------------------------------------------------------------- */

typedef struct run {
    const memory_bench *bench;
    double *ns; /* shared: [with threads][lock][rep], per round; 0 if it failed */
} run;

/* The first LOCK_COUNT kinds run without a second thread. */
static void measure_index(void *user, size_t index)
{
    const run *r = user;
    size_t rep = index / KINDS, kind = (index + rep) % KINDS;
    if (kind >= LOCK_COUNT)
        have_second_thread();
    uint64_t max = r->bench->max_pairs, rounds = max < ROUNDS ? max : ROUNDS, count = 0;
    LOCKS[kind % LOCK_COUNT].count(&count, rounds); /* warms up lazy binding, caches, predictors */
    uint64_t since = ticks_now();
    LOCKS[kind % LOCK_COUNT].count(&count, rounds);
    r->ns[kind * r->bench->reps + rep] = (double)ticks_spent(since) * the_clock.ns / (double)rounds;
}

/* ---- results ------------------------------------------------------------------------------ */

static spread spread_at(const run *r, size_t kind)
{
    double values[MAX_REPS];
    for (size_t i = 0; i < r->bench->reps; i++)
        values[i] = r->ns[kind * r->bench->reps + i];
    return spread_of(values, r->bench->reps);
}

static void write_row(qi_json *json, size_t kind, spread round, spread over)
{
    qi_json_object(json, NULL);
    qi_json_text(json, "lock", LOCKS[kind % LOCK_COUNT].name);
    qi_json_bool(json, "threads", kind >= LOCK_COUNT);
    write_spread(json, "round_ns", round);
    write_spread(json, "over_none_ns", over);
    qi_json_end_object(json);
}

static void report(memory_bench *b, const run *r)
{
    printf("\nlocks: ns to acquire and release an uncontended lock\n");
    printf("  %-26s %-18s %8s %8s\n", "", "", "min", "median");
    for (size_t kind = 0; kind < KINDS; kind++) {
        bool threaded = kind >= LOCK_COUNT;
        spread round = spread_at(r, kind), none = spread_at(r, threaded ? LOCK_COUNT : 0);
        spread over = {round.min - none.min, round.median - none.median};
        printf("  %-26s %-18s %8.2f %8.2f\n", LOCKS[kind % LOCK_COUNT].name,
               threaded ? "two threads" : "one thread", kind % LOCK_COUNT ? over.min : round.min,
               kind % LOCK_COUNT ? over.median : round.median);
        write_row(&b->out.json, kind, round, over);
    }
}

/* ---- the part ----------------------------------------------------------------------------- */

void measure_locks(memory_bench *b)
{
    qi_json_array(&b->out.json, "locks");
    if (is_wanted(&b->wanted_families, "locks")) {
        run r = {.bench = b, .ns = shared_memory(KINDS * b->reps, sizeof *r.ns)};
        in_children(KINDS * b->reps, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.ns, KINDS * b->reps, sizeof *r.ns);
    }
    qi_json_end_array(&b->out.json);
}
