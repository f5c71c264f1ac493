/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_free_at.c - pairs of an allocation and a free by address, for one and for several threads:
 * with quire_free_at_address, and with a hash table of the program's own, under a mutex, that leads
 * from the address to the handle. Pairs that free by handle show what the address costs.
 */
#include <inttypes.h>
#include <pthread.h>

#include "bench/address_table.h"
#include "bench/children.h"
#include "bench/crew.h"
#include "bench/memory.h"
#include "bench/ticks.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/system.h"

enum { LIVE = 2000, PAIRS = 200000, MOST = 4096, MAX_COUNTS = 2 };

enum { BY_HANDLE, OWN_TABLE, FREE_AT, WAYS };

static const char *const NAMES[WAYS] = {"free by handle", "own table and mutex",
                                        "quire_free_at_address"};

/* ---- one thread --------------------------------------------------------------------------- */

typedef struct scene {
    quire_memory *memory;
    int way;
    uint64_t pairs; /* of each thread */
    pthread_barrier_t start;
    pthread_mutex_t mutex; /* protects the table */
    address_table table;
} scene;

typedef struct worker {
    scene *scene;
    uint64_t random;
    uint64_t live[LIVE]; /* a handle, or with the other ways an address */
    uint64_t begun, ended;
    bool good;
} worker;

static bool allocate(worker *w, uint64_t *kept)
{
    scene *s = w->scene;
    quire_allocation made;
    quire_allocation_info info;
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const quire_allocation_options options = {.size = 1 + (w->random >> 33) % MOST,
                                              .info = s->way == BY_HANDLE ? NULL : &info};
    if (quire_allocate(s->memory, &options, &made))
        return false;
    *kept = s->way == BY_HANDLE ? made.id : info.address;
    if (s->way == OWN_TABLE) {
        pthread_mutex_lock(&s->mutex);
        address_table_put(&s->table, info.address, made.id);
        pthread_mutex_unlock(&s->mutex);
    }
    return true;
}

static bool release(worker *w, uint64_t kept)
{
    scene *s = w->scene;
    quire_allocation allocation = {kept};
    if (s->way == FREE_AT)
        return !quire_free_at_address(s->memory, kept, NULL);
    if (s->way == OWN_TABLE) {
        pthread_mutex_lock(&s->mutex);
        allocation.id = address_table_take(&s->table, kept);
        pthread_mutex_unlock(&s->mutex);
    }
    return !quire_free(s->memory, allocation);
}

static void *work(void *user)
{
    worker *w = user;
    w->good = true;
    for (int i = 0; i < LIVE; i++)
        w->good &= allocate(w, &w->live[i]);
    pthread_barrier_wait(&w->scene->start);
    w->begun = qi_clock();
    for (uint64_t i = 0; i < w->scene->pairs && w->good; i++) {
        uint64_t *at = &w->live[(w->random >> 20) % LIVE];
        w->good = release(w, *at) && allocate(w, at);
    }
    w->ended = qi_clock();
    return NULL;
}

/* ---- one repeat, in a child --------------------------------------------------------------- */

typedef struct run {
    const memory_bench *bench;
    uint32_t counts[MAX_COUNTS]; /* numbers of threads */
    size_t count;
    double *ns; /* shared: [rep][number of threads][way], per pair; 0 if it failed */
} run;

/* Returns the wall time divided by the pairs of all threads, or 0. */
static double pair_ns(scene *s, uint32_t threads)
{
    static worker workers[MAX_CREW];
    pthread_t ids[MAX_CREW];
    uint64_t begun = UINT64_MAX, ended = 0;
    bool good = true;
    pthread_barrier_init(&s->start, NULL, threads);
    for (uint32_t i = 0; i < threads; i++) {
        workers[i] = (worker){.scene = s, .random = i + 1};
        if (pthread_create(&ids[i], NULL, work, &workers[i]))
            exit(1);
    }
    for (uint32_t i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        good &= workers[i].good;
        begun = workers[i].begun < begun ? workers[i].begun : begun;
        ended = workers[i].ended > ended ? workers[i].ended : ended;
    }
    return good ? (double)(ended - begun) / (double)(s->pairs * threads) : 0;
}

static void measure_index(void *user, size_t index)
{
    const run *r = user;
    size_t jobs = r->count * WAYS, rep = index / jobs, turn = (index + rep) % jobs;
    uint32_t threads = r->counts[turn / WAYS];
    uint64_t max = r->bench->max_pairs;
    static scene s;
    quire_device *device = NULL;
    s = (scene){.way = (int)(turn % WAYS), .pairs = max < PAIRS ? max : PAIRS};
    s.table = address_table_make((uint64_t)LIVE * threads);
    pthread_mutex_init(&s.mutex, NULL);
    const quire_memory_options options = {.kind.required = QUIRE_HOST_VISIBLE,
                                          .shards = threads,
                                          .find_by_address = s.way == FREE_AT};
    if (quire_host_open(NULL, &device) || quire_memory_create(device, &options, &s.memory))
        return;
    r->ns[rep * jobs + turn] = pair_ns(&s, threads);
    quire_memory_destroy_all(&s.memory);
    quire_device_destroy(&device);
    address_table_end(&s.table);
}

/* ---- results ------------------------------------------------------------------------------ */

static spread spread_at(const run *r, size_t job, size_t *reps)
{
    double values[MAX_REPS];
    *reps = 0;
    for (size_t rep = 0; rep < r->bench->reps; rep++) {
        double ns = r->ns[rep * r->count * WAYS + job];
        if (ns > 0)
            values[(*reps)++] = ns;
    }
    return *reps ? spread_of(values, *reps) : (spread){0, 0};
}

static void report(memory_bench *b, const run *r)
{
    printf("\nfree-at: ns for a pair, %d live allocations per thread\n", LIVE);
    printf("  %-28s %7s %9s %9s\n", "", "threads", "min", "median");
    for (size_t job = 0; job < r->count * WAYS; job++) {
        size_t reps = 0;
        spread pair = spread_at(r, job, &reps);
        if (!reps)
            printf("  %-28s failed\n", NAMES[job % WAYS]);
        else
            printf("  %-28s %7" PRIu32 " %9.1f %9.1f\n", NAMES[job % WAYS], r->counts[job / WAYS],
                   pair.min, pair.median);
        qi_json_object(&b->out.json, NULL);
        qi_json_text(&b->out.json, "way", NAMES[job % WAYS]);
        qi_json_number(&b->out.json, "threads", r->counts[job / WAYS]);
        qi_json_number(&b->out.json, "reps", reps);
        write_spread(&b->out.json, "pair_ns", pair);
        qi_json_end_object(&b->out.json);
    }
}

/* ---- the part ----------------------------------------------------------------------------- */

void measure_free_at(memory_bench *b)
{
    qi_json_array(&b->out.json, "free_at");
    if (is_wanted(&b->wanted_families, "free-at")) {
        run r = {.bench = b, .counts = {1, (uint32_t)b->threads}};
        r.count = b->threads > 1 ? 2 : 1;
        size_t jobs = r.count * WAYS;
        r.ns = shared_memory(jobs * b->reps, sizeof *r.ns);
        in_children(jobs * b->reps, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.ns, jobs * b->reps, sizeof *r.ns);
    }
    qi_json_end_array(&b->out.json);
}
