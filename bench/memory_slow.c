/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_slow.c - how long a call waits while another thread creates a page. One thread requests a
 * range that needs a new page from a slow driver. During that time a second thread frees a range,
 * or allocates one that fits into the existing page. Each of the two calls is timed in a separate
 * run; in one run the first call would wait for both.
 */
#include <pthread.h>
#include <stdlib.h>

#include "bench/children.h"
#include "bench/memory.h"
#include "bench/mock_driver.h"
#include "src/base/system.h"

#define MIB (UINT64_C(1) << 20)
#define PAGE_SIZE (64 * MIB)
#define SMALL_SIZE (1 * MIB)
#define LARGE_SIZE (48 * MIB) /* does not fit next to the small ranges */

enum { ALIGNMENT = 256, SMALL_COUNT = 32 };

typedef enum waiting_call { CALL_FREE, CALL_ALLOCATE, CALL_COUNT } waiting_call;
static const char *const CALL_NAMES[] = {"free", "allocate"};

typedef struct run {
    const memory_bench *bench;
    roster roster;
    double *ms; /* shared: [call][subject][rep] time of the call; 0 if it failed */
} run;

/* ---- one repeat, in a child --------------------------------------------------------------- */

typedef struct slow_request {
    const subject *on;
    void *state;
    uint64_t handle;
} slow_request;

static void *ask_for_page(void *user)
{
    slow_request *request = user;
    uint64_t offset;
    request->handle = request->on->allocate(request->state, LARGE_SIZE, ALIGNMENT, &offset);
    return NULL;
}

/* Creates a memory with one page that is half full. Returns false on failure. */
static bool fill(const subject *on, void **state, uint64_t *handles)
{
    uint64_t offset;
    bool good = true;
    *state = on->create(on, &(subject_arena){.size = PAGE_SIZE});
    for (int i = 0; *state && i < SMALL_COUNT; i++) {
        handles[i] = on->allocate(*state, SMALL_SIZE, ALIGNMENT, &offset);
        good = good && handles[i];
    }
    return *state && good && mock_pieces() == 1;
}

static double time_call(const subject *on, void *state, waiting_call call, uint64_t handle)
{
    uint64_t offset, made = 1, since = qi_clock();
    if (call == CALL_FREE)
        on->free(state, handle);
    else
        made = on->allocate(state, SMALL_SIZE, ALIGNMENT, &offset);
    return made ? (double)(qi_clock() - since) / 1e6 : 0;
}

/*
 * Waits until the first thread is inside the driver, then times the call. The result counts only
 * if the first thread's request created a second page.
 */
static void measure(const run *r, const subject *on, waiting_call call, double *ms)
{
    slow_request request = {.on = on};
    uint64_t handles[SMALL_COUNT];
    if (!fill(on, &request.state, handles))
        return;
    the_driver.latency_ns = r->bench->latency_ms * 1000000;
    pthread_t thread;
    if (pthread_create(&thread, NULL, ask_for_page, &request))
        return;
    while (!qi_atomic_load_u64(&the_driver.inside)) {
    }
    double waited = time_call(on, request.state, call, handles[SMALL_COUNT / 2]);
    pthread_join(thread, NULL);
    if (request.handle && mock_pieces() == 2)
        *ms = waited;
}

static void measure_index(void *user, size_t index)
{
    const run *r = user;
    size_t jobs = CALL_COUNT * r->roster.count, rep = index / jobs, turn = (index + rep) % jobs;
    size_t call = turn / r->roster.count, who = turn % r->roster.count;
    measure(r, r->roster.items[who], (waiting_call)call, &r->ms[turn * r->bench->reps + rep]);
}

/* ---- results ------------------------------------------------------------------------------ */

static void report_one(memory_bench *b, const run *r, size_t call, size_t who)
{
    const char *name = r->roster.items[who]->name;
    double values[MAX_REPS];
    size_t count = 0;
    for (size_t i = 0; i < b->reps; i++) {
        double ms = r->ms[(call * r->roster.count + who) * b->reps + i];
        if (ms > 0)
            values[count++] = ms;
    }
    if (!count) {
        printf("  %-28s %-10s failed\n", name, CALL_NAMES[call]);
        return;
    }
    spread waited = spread_of(values, count);
    printf("  %-28s %-10s %10.4f %10.4f\n", name, CALL_NAMES[call], waited.min, waited.median);
    qi_json_object(&b->out.json, NULL);
    qi_json_text(&b->out.json, "subject", name);
    qi_json_text(&b->out.json, "call", CALL_NAMES[call]);
    qi_json_number(&b->out.json, "latency_ms", b->latency_ms);
    qi_json_number(&b->out.json, "reps", count);
    write_spread(&b->out.json, "waited_ms", waited);
    qi_json_end_object(&b->out.json);
}

static void report(memory_bench *b, const run *r)
{
    printf("\nslow-driver: ms of a call while another thread creates a page, which takes %u ms\n",
           (unsigned)b->latency_ms);
    printf("  %-28s %-10s %10s %10s\n", "", "", "min", "median");
    for (size_t who = 0; who < r->roster.count; who++)
        for (size_t call = 0; call < CALL_COUNT; call++)
            report_one(b, r, call, who);
}

/* ---- the part ----------------------------------------------------------------------------- */

void measure_slow(memory_bench *b)
{
    qi_json_array(&b->out.json, "slow_driver");
    if (is_wanted(&b->wanted_families, "slow-driver")) {
        run r = {.bench = b, .roster = plain_memories_of(b, TAKE_ONE)};
        size_t count = CALL_COUNT * r.roster.count * b->reps;
        r.ms = shared_memory(count, sizeof *r.ms);
        in_children(count, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.ms, count, sizeof *r.ms);
    }
    qi_json_end_array(&b->out.json);
}
