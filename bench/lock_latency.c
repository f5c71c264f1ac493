/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lock_latency.c - the time from requesting a contended lock to holding it: quire's lock, the lock
 * of its version 0.1.0, a mutex with three states with and without spinning, and a pthread_mutex.
 *
 * Threads acquire one lock in a loop, hold it, release it and do something else for a random time,
 * twice the hold on average. Optionally another process keeps a processor busy half of the time.
 */
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/children.h"
#include "bench/memory.h"
#include "bench/reference_locks.h"
#include "bench/ticks.h"
#include "src/base/histogram.h"
#include "src/base/lock.h"

enum {
    RUN_MS = 200,      /* of one repeat */
    BUSY_NS = 5000000, /* the other process computes and sleeps for this time in turn */
    MAX_THREADS = 8,
    LOOK_MS = 100,      /* over which the load of other processes is measured before a repeat */
    LARGEST_OTHERS = 10 /* percent of the processors' time; above it a repeat counts as disturbed */
};

/* ---- the locks ------------------------------------------------------------------------------ */

static struct {
    _Alignas(64) qi_lock quire;
    _Alignas(64) three_lock three;
    _Alignas(64) napping_lock napping;
    _Alignas(64) pthread_mutex_t mutex;
} locks = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void quire_acquire(void)
{
    qi_lock_acquire(&locks.quire);
}

static void quire_release(void)
{
    qi_lock_release(&locks.quire);
}

static void spinning_acquire(void)
{
    three_acquire(&locks.three);
}

static void sleeping_acquire(void)
{
    three_acquire_asleep(&locks.three);
}

static void three_states_release(void)
{
    three_release(&locks.three);
}

static void former_acquire(void)
{
    napping_acquire(&locks.napping);
}

static void former_release(void)
{
    napping_release(&locks.napping);
}

static void mutex_acquire(void)
{
    pthread_mutex_lock(&locks.mutex);
}

static void mutex_release(void)
{
    pthread_mutex_unlock(&locks.mutex);
}

typedef struct lock_kind {
    const char *name;
    void (*acquire)(void);
    void (*release)(void);
} lock_kind;

static const lock_kind KINDS[] = {
    {"quire's", quire_acquire, quire_release},
    {"quire's of version 0.1.0", former_acquire, former_release},
    {"three states, spins", spinning_acquire, three_states_release},
    {"three states", sleeping_acquire, three_states_release},
    {"pthread_mutex", mutex_acquire, mutex_release},
};

typedef struct scene {
    uint32_t threads;
    uint64_t hold_ns;
    bool busy; /* another process uses half of a processor */
} scene;

static const scene SCENES[] = {
    {2, 40, false},   {4, 40, false},   {8, 40, false},  {2, 2000, false},
    {4, 2000, false}, {8, 2000, false}, {2, 40, true},   {4, 40, true},
    {8, 40, true},    {2, 2000, true},  {4, 2000, true}, {8, 2000, true},
};

enum {
    KIND_COUNT = sizeof KINDS / sizeof *KINDS,
    SCENE_COUNT = sizeof SCENES / sizeof *SCENES,
    CASES = KIND_COUNT * SCENE_COUNT
};

static const double SHARES[] = {0.5, 0.99, 0.999, 1};
static const char *const SHARE_KEYS[] = {"p50_ns", "p99_ns", "p999_ns", "max_ns"};
enum { SHARE_COUNT = sizeof SHARES / sizeof *SHARES };

/* ---- one repeat, in a child ----------------------------------------------------------------- */

typedef struct latency_result {
    bool good, disturbed;
    double ns[SHARE_COUNT];
} latency_result;

typedef struct run {
    const memory_bench *bench;
    latency_result *results; /* shared: [scene][kind][rep] */
} run;

typedef struct worker {
    const lock_kind *kind;
    const scene *scene;
    uint64_t ends, rounds, seed;
    qi_histogram waits; /* in ticks */
} worker;

static void compute(uint64_t ticks)
{
    for (uint64_t since = ticks_now(); ticks_now() - since < ticks;) {
    }
}

static void *contend(void *user)
{
    worker *w = user;
    uint64_t hold = (uint64_t)((double)w->scene->hold_ns / the_clock.ns);
    for (uint64_t i = 0; i < w->rounds && qi_clock() < w->ends; i++) {
        uint64_t since = ticks_now();
        w->kind->acquire();
        uint64_t wait = ticks_spent(since);
        compute(hold);
        w->kind->release();
        qi_histogram_add(&w->waits, wait);
        w->seed = w->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        compute((w->seed >> 33) % (4 * hold + 1));
    }
    return NULL;
}

static void merge(qi_histogram *into, const qi_histogram *from)
{
    for (int i = 0; i < QI_HISTOGRAM_ROWS * QI_HISTOGRAM_STEPS; i++)
        into->buckets[i] += from->buckets[i];
    into->count += from->count;
    into->max = into->max > from->max ? into->max : from->max;
}

/* Runs the threads; their waits are then in the first worker's histogram. */
static void run_threads(worker *workers, uint32_t count)
{
    pthread_t ids[MAX_THREADS];
    for (uint32_t i = 0; i < count; i++)
        if (pthread_create(&ids[i], NULL, contend, &workers[i]))
            _exit(1);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(ids[i], NULL);
    for (uint32_t i = 1; i < count; i++)
        merge(&workers[0].waits, &workers[i].waits);
}

/* ---- other load on the machine -------------------------------------------------------------- */

static pid_t start_busy(void)
{
    pid_t child = fork();
    while (child == 0) {
        compute((uint64_t)((double)BUSY_NS / the_clock.ns));
        nanosleep(&(struct timespec){.tv_nsec = BUSY_NS}, NULL);
    }
    return child;
}

static void end_busy(pid_t child)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
}

static double seconds_of(int who)
{
    struct rusage use;
    getrusage(who, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

/* Seconds that the processors have spent in all processes; 0 where the system does not tell. */
static double seconds_of_all(void)
{
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0, irq = 0, soft = 0, stolen = 0;
    FILE *file = fopen("/proc/stat", "r");
    if (!file)
        return 0;
    int found = fscanf(file, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle,
                       &wait, &irq, &soft, &stolen);
    fclose(file);
    double ticks = user + nice + system + irq + soft + stolen;
    return found == 8 ? ticks / (double)sysconf(_SC_CLK_TCK) : 0;
}

typedef struct look {
    uint64_t at;
    double others; /* seconds of processes other than this one and its ended children */
} look;

static look look_around(void)
{
    double own = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
    return (look){.at = qi_clock(), .others = seconds_of_all() - own};
}

/* True if other processes used the processors too much since then. */
static bool is_disturbed(const look *since)
{
    look now = look_around();
    double room = (double)(now.at - since->at) / 1e9 * (double)processor_count();
    return (now.others - since->others) * 100 > room * (double)LARGEST_OTHERS;
}

/* Waits until other processes leave the processors idle. */
static void await_quiet(uint64_t limit_s)
{
    uint64_t ends = qi_clock() + limit_s * 1000000000;
    for (bool disturbed = true; disturbed && qi_clock() < ends;) {
        look since = look_around();
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
        disturbed = is_disturbed(&since);
    }
}

/* ---- a repeat ------------------------------------------------------------------------------- */

static void measure(const run *r, const scene *s, const lock_kind *kind, latency_result *out)
{
    static worker workers[MAX_THREADS];
    qi_lock_init(&locks.quire, "bench", QI_RANK_SHARD);
    if (r->bench->max_pairs == UINT64_MAX)
        await_quiet(r->bench->patience_s);
    look since = look_around();
    pid_t busy = s->busy ? start_busy() : 0;
    for (uint32_t i = 0; i < s->threads; i++)
        workers[i] = (worker){.kind = kind,
                              .scene = s,
                              .ends = since.at + RUN_MS * UINT64_C(1000000),
                              .rounds = r->bench->max_pairs,
                              .seed = i + 1};
    run_threads(workers, s->threads);
    end_busy(busy);
    out->disturbed = is_disturbed(&since);
    const qi_histogram *waits = &workers[0].waits;
    for (int i = 0; i < SHARE_COUNT; i++)
        out->ns[i] = (double)qi_histogram_percentile(waits, SHARES[i]) * the_clock.ns;
    out->good = waits->count > 0;
}

static latency_result *result_at(const run *r, size_t of_scene, size_t kind, size_t rep)
{
    return &r->results[(of_scene * KIND_COUNT + kind) * r->bench->reps + rep];
}

static void measure_index(void *user, size_t index)
{
    const run *r = user;
    size_t rep = index / CASES, s = index % CASES / KIND_COUNT, kind = (index + rep) % KIND_COUNT;
    measure(r, &SCENES[s], &KINDS[kind], result_at(r, s, kind, rep));
}

/* ---- results -------------------------------------------------------------------------------- */

typedef struct latency_row {
    size_t reps;      /* the undisturbed repeats, or all if every one is disturbed */
    size_t disturbed; /* of all successful repeats */
    bool is_valid;    /* not every repeat is disturbed */
    spread ns[SHARE_COUNT];
} latency_row;

static latency_row row_of(const run *r, size_t of_scene, size_t kind)
{
    latency_row row = {.reps = 0};
    double ns[SHARE_COUNT][MAX_REPS];
    for (size_t rep = 0; rep < r->bench->reps; rep++)
        row.disturbed += result_at(r, of_scene, kind, rep)->disturbed;
    row.is_valid = row.disturbed < r->bench->reps;
    for (int all = 0; all < 2 && !row.reps; all++)
        for (size_t rep = 0; rep < r->bench->reps; rep++) {
            const latency_result *one = result_at(r, of_scene, kind, rep);
            if (!one->good || (one->disturbed && !all))
                continue;
            for (int i = 0; i < SHARE_COUNT; i++)
                ns[i][row.reps] = one->ns[i];
            row.reps++;
        }
    for (int i = 0; i < SHARE_COUNT && row.reps; i++)
        row.ns[i] = spread_of(ns[i], row.reps);
    return row;
}

static void write_row(qi_json *json, const scene *s, const lock_kind *kind, const latency_row *row)
{
    qi_json_object(json, NULL);
    qi_json_text(json, "lock", kind->name);
    qi_json_number(json, "threads", s->threads);
    qi_json_number(json, "hold_ns", s->hold_ns);
    qi_json_bool(json, "busy", s->busy);
    qi_json_number(json, "reps", row->reps);
    qi_json_number(json, "disturbed", row->disturbed);
    qi_json_bool(json, "is_valid", row->is_valid);
    for (int i = 0; i < SHARE_COUNT; i++)
        write_spread(json, SHARE_KEYS[i], row->ns[i]);
    qi_json_end_object(json);
}

static void report(memory_bench *b, const run *r, size_t of_scene)
{
    const scene *s = &SCENES[of_scene];
    printf("\nlock-latency: %" PRIu32 " threads, held for %" PRIu64 " ns%s\n", s->threads,
           s->hold_ns, s->busy ? ", half of a processor is busy" : "");
    printf("  %-26s %10s %10s %10s %10s   ns, medians\n", "", "p50", "p99", "p99.9", "max");
    for (size_t kind = 0; kind < KIND_COUNT; kind++) {
        latency_row row = row_of(r, of_scene, kind);
        printf("  %-26s", KINDS[kind].name);
        if (!row.reps) {
            printf(" failed\n");
            continue;
        }
        for (int i = 0; i < SHARE_COUNT; i++)
            printf(" %10.0f", row.ns[i].median);
        if (row.disturbed)
            printf("   %zu disturbed", row.disturbed);
        printf("\n");
        write_row(&b->out.json, s, &KINDS[kind], &row);
    }
}

/* ---- the part ------------------------------------------------------------------------------- */

void measure_lock_latency(memory_bench *b)
{
    qi_json_array(&b->out.json, "lock_latency");
    if (is_wanted(&b->wanted_families, "lock-latency")) {
        run r = {.bench = b, .results = shared_memory(CASES * b->reps, sizeof *r.results)};
        in_children(CASES * b->reps, 1, measure_index, &r);
        for (size_t i = 0; i < SCENE_COUNT; i++)
            report(b, &r, i);
        shared_release(r.results, CASES * b->reps, sizeof *r.results);
    }
    qi_json_end_array(&b->out.json);
}
