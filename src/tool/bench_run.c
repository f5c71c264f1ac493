/*
 * bench_run.c - see bench_run.h.
 */
#include "src/tool/bench_run.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/workload.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/result.h"
#include "src/base/system.h"
#include "src/tool/tool.h"

/* ---- steps -------------------------------------------------------------------------------- */

/* A space or a memory that steps run on. */
typedef struct subject {
    quire_space *space; /* NULL if the subject is a memory */
    quire_memory *memory;
    uint64_t *slots; /* a handle in each, 0 after a refusal */
    uint64_t failures;
} subject;

/* Stores the handle in the slot of the step, 0 if the allocation fails. */
static void allocate(subject *s, const workload_step *step)
{
    quire_result result;
    s->slots[step->slot] = 0;
    if (s->space) {
        quire_placement at;
        result = quire_space_allocate(s->space, step->size, step->alignment, step->slot, &at);
        s->slots[step->slot] = at.range.id;
    } else {
        quire_allocation allocation;
        result = quire_allocate(
            s->memory,
            &(quire_allocation_options){.size = step->size, .alignment = step->alignment},
            &allocation);
        s->slots[step->slot] = allocation.id;
    }
    s->failures += result != QUIRE_SUCCESS;
}

/* Skips slots without an allocation, because the workload frees every slot that it allocated. */
static void release(subject *s, const workload_step *step)
{
    uint64_t id = s->slots[step->slot];
    if (!id)
        return; /* the allocation failed */
    quire_result result = s->space ? quire_space_free(s->space, (quire_range){id})
                                   : quire_free(s->memory, (quire_allocation){id});
    s->failures += result != QUIRE_SUCCESS;
}

/* The end of a group: up to BENCH_GROUP successive steps, all allocations or all frees. */
static size_t group_end(const workload *w, size_t begin)
{
    size_t end = begin + 1;
    while (end < w->count && end - begin < BENCH_GROUP &&
           !w->steps[end].size == !w->steps[begin].size)
        end++;
    return end;
}

/*
 * Runs steps [begin, end) in groups and returns their nanoseconds. Adds the mean of its group to a
 * histogram for each step, unless the histogram is NULL.
 */
static uint64_t run_steps(subject *s, const workload *w, size_t begin, size_t end,
                          qi_histogram *alloc_ns, qi_histogram *free_ns)
{
    uint64_t total = 0;
    while (begin < end) {
        size_t stop = group_end(w, begin);
        bool allocating = w->steps[begin].size != 0;
        uint64_t started = qi_clock();
        for (size_t i = begin; i < stop; i++)
            allocating ? allocate(s, &w->steps[i]) : release(s, &w->steps[i]);
        uint64_t spent = qi_clock() - started;
        total += spent;
        qi_histogram *histogram = allocating ? alloc_ns : free_ns;
        for (size_t i = begin; histogram && i < stop; i++)
            qi_histogram_add(histogram, spent / (stop - begin));
        begin = stop;
    }
    return total;
}

/* Each timed allocation counts as one pair, because workloads free as often as they allocate. */
static uint64_t timed_pairs(const workload *w)
{
    uint64_t pairs = 0;
    for (size_t i = w->timed_from; i < w->count; i++)
        pairs += w->steps[i].size != 0;
    return pairs;
}

/* ---- a bare space ------------------------------------------------------------------------- */

/*
 * Runs the whole workload on a new space; only the steps after the warm-up are timed. The metadata
 * is read before the space is destroyed, while the last live ranges of the workload exist.
 */
static bool repeat_on_space(const bench_options *b, const workload *w, outcome *o, uint64_t repeat)
{
    quire_space_options options = {.fit.algorithm = b->fit, .size = w->arena};
    bool is_exact = b->fit == QUIRE_FIT_FIRST || b->fit == QUIRE_FIT_LINEAR; /* byte-exact */
    if (!is_exact && w->granule)
        options.fit.granule = w->granule;
    subject s = {.slots = calloc(w->slots, sizeof *s.slots)};
    bool good = s.slots && !quire_space_create(&options, &s.space);
    if (good) {
        run_steps(&s, w, 0, w->timed_from, NULL, NULL);
        uint64_t spent = run_steps(&s, w, w->timed_from, w->count, &o->alloc_ns, &o->free_ns);
        quire_space_stats stats;
        qi_ignore(quire_space_get_stats(s.space, &stats));
        o->pair_ns[repeat] = (double)spent / (double)o->pairs;
        o->failures += s.failures;
        o->live_count = stats.live_count;
        o->metadata_bytes = stats.metadata_bytes;
    }
    quire_space_destroy(&s.space);
    free(s.slots);
    return good;
}

bool run_on_space(const bench_options *b, outcome *o)
{
    workload w;
    bool good = workload_make(b->workload, 0, &w);
    o->pairs = timed_pairs(&w);
    for (uint64_t i = 0; i < b->repeats && good; i++)
        good = repeat_on_space(b, &w, o, i);
    workload_free(&w);
    return good;
}

/* ---- threads on one memory ---------------------------------------------------------------- */

typedef struct worker {
    pthread_t thread;
    workload workload;
    subject subject;
    pthread_barrier_t *start;
    uint64_t begun, ended;
} worker;

/* Warms up alone. The barrier then starts the timed part of all threads together. */
static void *work(void *user)
{
    worker *w = user;
    run_steps(&w->subject, &w->workload, 0, w->workload.timed_from, NULL, NULL);
    pthread_barrier_wait(w->start);
    w->begun = qi_clock();
    run_steps(&w->subject, &w->workload, w->workload.timed_from, w->workload.count, NULL, NULL);
    w->ended = qi_clock();
    return NULL;
}

/* Allocates all slots before it starts the first thread, so that a failure needs no join. */
static bool start_workers(worker *workers, uint64_t count, quire_memory *memory,
                          pthread_barrier_t *start)
{
    for (uint64_t i = 0; i < count; i++) {
        worker *w = &workers[i];
        w->start = start;
        w->subject = (subject){.memory = memory};
        w->subject.slots = calloc(w->workload.slots, sizeof *w->subject.slots);
        if (!w->subject.slots)
            return false;
    }
    for (uint64_t i = 0; i < count; i++)
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i])) {
            fprintf(stderr, "quire: thread %" PRIu64 " cannot be started\n", i);
            exit(EXIT_FAILED); /* the started threads wait at the barrier for this one */
        }
    return true;
}

/* The time of a repeat lasts from the first start to the last end of a thread. */
static void join_workers(worker *workers, uint64_t count, outcome *o, uint64_t repeat)
{
    uint64_t begun = UINT64_MAX, ended = 0;
    for (uint64_t i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        begun = workers[i].begun < begun ? workers[i].begun : begun;
        ended = workers[i].ended > ended ? workers[i].ended : ended;
        o->failures += workers[i].subject.failures;
    }
    o->pair_ns[repeat] = (double)(ended - begun) / (double)o->pairs;
}

/* Runs one repeat on a new memory, so that repeats do not inherit pages or metadata. */
static bool repeat_on_memory(const bench_options *b, quire_device *device, worker *workers,
                             outcome *o, uint64_t repeat)
{
    quire_memory *memory = NULL;
    pthread_barrier_t start;
    bool good =
        !quire_memory_create(device, &(quire_memory_options){.fit.algorithm = b->fit}, &memory);
    pthread_barrier_init(&start, NULL, (unsigned)b->threads);
    good = good && start_workers(workers, b->threads, memory, &start);
    if (good) {
        join_workers(workers, b->threads, o, repeat);
        quire_memory_stats stats;
        qi_ignore(quire_memory_get_stats(memory, &stats));
        o->live_count = stats.allocation_count;
        o->metadata_bytes = stats.metadata_bytes;
    }
    for (uint64_t i = 0; i < b->threads; i++) {
        free(workers[i].subject.slots);
        workers[i].subject.slots = NULL;
    }
    pthread_barrier_destroy(&start);
    quire_memory_destroy_all(&memory);
    return good;
}

bool run_on_memory(const bench_options *b, outcome *o)
{
    quire_device *device = NULL;
    worker *workers = calloc(b->threads, sizeof *workers);
    bool good = workers && !quire_host_open(NULL, &device);
    for (uint64_t i = 0; i < b->threads && good; i++) {
        good = workload_make(b->workload, i, &workers[i].workload);
        o->pairs += timed_pairs(&workers[i].workload);
    }
    for (uint64_t i = 0; i < b->repeats && good; i++)
        good = repeat_on_memory(b, device, workers, o, i);
    for (uint64_t i = 0; workers && i < b->threads; i++)
        workload_free(&workers[i].workload);
    free(workers);
    quire_device_destroy(&device);
    return good;
}
