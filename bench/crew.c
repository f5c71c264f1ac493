/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * crew.c - see crew.h.
 */
#include "bench/crew.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "bench/memory_lists.h"
#include "src/base/atomic.h"
#include "src/base/system.h"

/* ---- handing over ------------------------------------------------------------------------- */

/* CACHE_LINE is two lines, because the processor prefetches the second with the first. */
enum { RING_ROOM = 4096, SHOWN_AT_ONCE = 16, CACHE_LINE = 128 };

/*
 * A queue of handles from one thread to another. It has a fixed capacity. Producer and consumer
 * read the other's counter only when their own copy is used up, and the producer publishes several
 * handles together, so that the benchmark measures the free in another thread and not the queue.
 */
typedef struct ring {
    _Alignas(CACHE_LINE) qi_atomic_u64 put;      /* handles published */
    _Alignas(CACHE_LINE) qi_atomic_u64 taken;    /* handles consumed */
    _Alignas(CACHE_LINE) uint64_t next, room_to; /* of the producer: its position and its limit */
    _Alignas(CACHE_LINE) uint64_t first, end;    /* of the consumer: its position and its limit */
    _Alignas(CACHE_LINE) uint64_t handles[RING_ROOM];
} ring;

/* Returns false if the queue is full. */
static bool ring_put(ring *r, uint64_t handle)
{
    if (r->next == r->room_to)
        r->room_to = qi_atomic_load_acquire_u64(&r->taken) + RING_ROOM;
    if (r->next == r->room_to)
        return false;
    r->handles[r->next++ % RING_ROOM] = handle;
    return true;
}

/* Publishes the handles put so far once there are SHOWN_AT_ONCE of them. */
static void ring_show(ring *r)
{
    if (r->next - qi_atomic_load_u64(&r->put) >= SHOWN_AT_ONCE)
        qi_atomic_store_release_u64(&r->put, r->next);
}

/* Returns 0 if the queue is empty. */
static uint64_t ring_take(ring *r)
{
    if (r->first == r->end)
        r->end = qi_atomic_load_acquire_u64(&r->put);
    if (r->first == r->end)
        return 0;
    uint64_t handle = r->handles[r->first++ % RING_ROOM];
    if (r->first == r->end)
        qi_atomic_store_release_u64(&r->taken, r->first);
    return handle;
}

/* ---- one thread --------------------------------------------------------------------------- */

/*
 * Involuntary context switches per thread up to which a run counts as undisturbed. A thread alone
 * on its processor has few, a thread that shares it has many.
 */
enum { MAX_PREEMPTIONS = 3 };

typedef struct crew crew;

typedef struct worker {
    _Alignas(CACHE_LINE) crew *crew;
    const workload *list;
    uint64_t *slots;
    void *state;          /* the memory it allocates from */
    void *before;         /* the memory of the thread before it */
    ring *inbox, *outbox; /* NULL if the thread frees all its ranges itself */
    uint64_t frees, refused;
    /* of the timed part */
    uint64_t begun, ended, pairs;
    uint64_t preemptions; /* involuntary context switches */
} worker;

struct crew {
    const subject *on;
    uint32_t threads;
    pthread_barrier_t start;
    _Alignas(CACHE_LINE) qi_atomic_u64 done; /* threads that have finished their list */
    worker workers[MAX_CREW];
    ring rings[MAX_CREW]; /* rings[i] is the inbox of workers[i] */
};

static void free_one(worker *w, uint64_t handle)
{
    if (!handle) /* the allocation failed */
        return;
    bool handed = w->outbox && ++w->frees % HANDED_EVERY == 0 && ring_put(w->outbox, handle);
    if (!handed)
        w->crew->on->free(w->state, handle);
}

static void play_group(worker *w, const workload_step *steps, uint32_t count)
{
    const subject *on = w->crew->on;
    for (uint64_t handle; w->inbox && (handle = ring_take(w->inbox)) != 0;)
        on->free(w->before, handle);
    for (uint32_t i = 0; i < count; i++)
        free_one(w, w->slots[steps[i].slot]);
    if (w->outbox)
        ring_show(w->outbox);
    for (uint64_t i = count, offset; i < 2 * count; i++) {
        uint64_t handle = on->allocate(w->state, steps[i].size, steps[i].alignment, &offset);
        w->slots[steps[i].slot] = handle;
        w->refused += !handle;
    }
}

static void warm_up(worker *w)
{
    const workload *list = w->list;
    const workload_step *steps = list->steps;
    uint32_t group = list_group(list->slots);
    for (uint64_t i = 0, offset; i < list->slots; i++)
        w->slots[steps[i].slot] =
            w->crew->on->allocate(w->state, steps[i].size, steps[i].alignment, &offset);
    for (size_t i = list->slots; i < list->timed_from; i += 2 * group)
        play_group(w, &steps[i], group);
}

static uint64_t count_preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : (uint64_t)usage.ru_nivcsw;
}

static void *work(void *user)
{
    worker *w = user;
    const workload *list = w->list;
    uint32_t group = list_group(list->slots);
    warm_up(w);
    pthread_barrier_wait(&w->crew->start);
    w->preemptions = count_preemptions();
    w->begun = qi_clock();
    size_t i = list->timed_from;
    for (; i < list->count && !qi_atomic_load_u64(&w->crew->done); i += 2 * group)
        play_group(w, &list->steps[i], group);
    qi_atomic_add_u64(&w->crew->done, 1);
    w->ended = qi_clock();
    w->preemptions = count_preemptions() - w->preemptions;
    w->pairs = (i - list->timed_from) / 2;
    return NULL;
}

/* ---- all threads -------------------------------------------------------------------------- */

static bool equip(crew *c, const workload *lists, bool handed)
{
    bool shared = how_of(c->on)->sharing != SHARE_NOTHING;
    for (uint32_t i = 0; i < c->threads; i++) {
        worker *w = &c->workers[i];
        *w = (worker){.crew = c, .list = &lists[i]};
        w->slots = calloc(lists[i].slots, sizeof *w->slots);
        subject_arena arena = {.unit = lists[i].granule};
        w->state = shared && i ? c->workers[0].state : c->on->create(c->on, &arena);
        if (!w->slots || !w->state)
            return false;
    }
    for (uint32_t i = 0; i < c->threads; i++) {
        worker *w = &c->workers[i];
        w->before = c->workers[(i + c->threads - 1) % c->threads].state;
        w->inbox = handed ? &c->rings[i] : NULL;
        w->outbox = handed ? &c->rings[(i + 1) % c->threads] : NULL;
    }
    return true;
}

static crew_result sum_up(const crew *c)
{
    uint64_t begun = UINT64_MAX, ended = 0, pairs = 0, refused = 0, preemptions = 0;
    for (uint32_t i = 0; i < c->threads; i++) {
        const worker *w = &c->workers[i];
        begun = w->begun < begun ? w->begun : begun;
        ended = w->ended > ended ? w->ended : ended;
        pairs += w->pairs;
        refused += w->refused;
        preemptions += w->preemptions;
    }
    return (crew_result){.good = pairs && !refused,
                         .disturbed = preemptions > (uint64_t)MAX_PREEMPTIONS * c->threads,
                         .pair_ns = (double)(ended - begun) / (double)pairs,
                         .pairs = pairs};
}

/* Frees nothing, because it runs in a separate process that then exits. */
crew_result crew_run(const subject *on, const workload *lists, uint32_t threads, bool handed)
{
    crew *c = aligned_alloc(CACHE_LINE, sizeof *c);
    if (!c)
        return (crew_result){.good = false};
    memset(c, 0, sizeof *c);
    c->on = on;
    c->threads = threads;
    pthread_barrier_init(&c->start, NULL, threads);
    if (!equip(c, lists, handed))
        return (crew_result){.good = false};
    pthread_t ids[MAX_CREW];
    for (uint32_t i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, work, &c->workers[i]))
            exit(1); /* the other threads wait for this one at the barrier */
    for (uint32_t i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    return sum_up(c);
}
