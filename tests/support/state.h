/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * state.h - shared by the fault and misuse tests: a fingerprint of the observable state of a memory
 * or a space, a bench on which the n-th call of a scenario fails, and the record of rejected calls
 * that proves that every public function was called.
 *
 * A scenario is a chain of bench_ calls joined by &&. Each of them makes public calls one after the
 * other by TRY. The call that the planned fault hits must fail as documented, with zeroed outputs
 * and no change. It is then repeated (single fault) or ends the scenario (permanent fault). Not
 * thread-safe.
 */
#ifndef QUIRE_TESTS_SUPPORT_STATE_H
#define QUIRE_TESTS_SUPPORT_STATE_H

#include "quire/host.h"
#include "quire/quire.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"

/* ---- fingerprints --------------------------------------------------------------------------- */

/*
 * Of a memory: every range of the pages that hold an allocation, with handles, names, map counts
 * and everything that quire_allocation_get_info reports, and the statistics of live allocations.
 * Excluded is what a failed call may change: empty pages and the free end of an elastic page
 * (releasing them, or keeping new ones unused, is invisible to allocations), and with them
 * reserved_bytes, page_count, free_bytes, largest_free and fragmentation; peaks, failures, full
 * passes, backend calls and times, metadata; `allocations` and `frees`, which count a placement
 * that was undone.
 */
uint64_t state_of_memory(quire_memory *memory);

/* Of a space: every range, and all statistics except metadata and full passes. */
uint64_t state_of_space(const quire_space *space);

/* Whether all bytes are 0. */
bool state_is_zero(const void *bytes, size_t size);

/* ---- the bench ------------------------------------------------------------------------------ */

enum { BENCH_MAX_HELD = 1024, BENCH_MAX_STEPS = 8192, BENCH_MAX_MEMORIES = 4 };

/* How a call may handle a fault below it; strict, unless a step says otherwise. */
typedef enum bench_tolerance {
    BENCH_STRICT = 0,
    BENCH_MAY_SUCCEED, /* it counts failures and continues, as a replay does */
    BENCH_NEVER_FAILS  /* it works without, as a trim does */
} bench_tolerance;

typedef struct bench_held {
    quire_memory *memory;
    quire_allocation allocation;
    uint64_t size;
    uint32_t maps;
    bool reserved;
} bench_held;

typedef struct bench {
    test_memory host;
    fake_backend fake;
    bool on_fake;
    quire_device *device;
    quire_memory *memories[BENCH_MAX_MEMORIES];
    quire_memory *memory; /* the one created last, which the calls below use */
    quire_space *space;
    bench_held held[BENCH_MAX_HELD];
    uint32_t held_count;

    /* the plan: call `fail_at` (0 means none) of the host memory or of the backend returns `code`
       */
    bool in_backend;
    uint64_t fail_at;
    bool from_then;
    quire_result code;
    /* every call of the scenario may succeed: several shards can help each other */
    bool does_without;
    bool on_demand;        /* the memories map their pages on demand; set by the scenario */
    quire_result accepted; /* an error that belongs to the scenario, for the next TRY */

    /* the outcome */
    bool hit;                  /* the planned call was reached */
    bool stopped;              /* the scenario ended there */
    bench_tolerance tolerance; /* of the next TRY */
    uint32_t step;
    uint64_t calls_before[BENCH_MAX_STEPS]; /* of the fault-free run, by step */
    uint64_t before;                        /* fingerprint before the step, if needed */
    uint64_t objects;                       /* buffers and images seen by the last fingerprint */
    bool objects_wait;  /* freed objects wait for a stream: the backend has more than were seen */
    uint64_t recovered; /* faults after which the call still succeeded, over all runs */
} bench;

typedef bool (*bench_scenario)(bench *t);

/*
 * Runs a scenario while the call `fail_at` (0 means none) fails as planned. Returns whether the run
 * reached that call. A run without a fault fills calls_before.
 */
bool bench_run(bench *t, bench_scenario scenario, bool on_fake, uint64_t fail_at);

/* A bench without faults, for tests that need objects to misuse. */
void bench_begin(bench *t, bool on_fake);

/*
 * Unmaps, frees, trims and destroys everything while every host allocation and every fallible
 * backend call fails, and checks that nothing remains.
 */
void bench_end(bench *t);

/* All memories and the space in one number. Checks every record and that the backend agrees. */
uint64_t bench_fingerprint(bench *t);

void bench_before(bench *t);
bool bench_after(bench *t, const char *call, quire_result result, void *out, size_t size);

/* Makes a call as a step of the scenario; returns false from the function if the scenario ends. */
#define TRY_OUT(t, out, call)                                                                      \
    do {                                                                                           \
        bench_before(t);                                                                           \
        do                                                                                         \
            memset(&(out), 0xaa, sizeof(out));                                                     \
        while (bench_after((t), #call, (call), &(out), sizeof(out)));                              \
        if ((t)->stopped)                                                                          \
            return false;                                                                          \
    } while (0)

#define TRY(t, call)                                                                               \
    do {                                                                                           \
        bench_before(t);                                                                           \
        while (bench_after((t), #call, (call), NULL, 0)) {                                         \
        }                                                                                          \
        if ((t)->stopped)                                                                          \
            return false;                                                                          \
    } while (0)

/* Steps. `index` counts the allocations of this run, from 0. */
bool bench_open(bench *t);
bool bench_memory(bench *t, const quire_memory_options *options);
bool bench_allocate(bench *t, uint32_t count, const quire_allocation_options *options);
bool bench_reserve(bench *t, const quire_allocation_options *options);
bool bench_commit(bench *t, uint32_t index);
bool bench_abort(bench *t, uint32_t index);
bool bench_buffer(bench *t, uint32_t count, const quire_buffer_options *options);
bool bench_image(bench *t, uint32_t count, const quire_image_options *options);
/* Buffers, images and raw ranges that reuse each other's ranges on a stream. Not held. */
bool bench_ordered_objects(bench *t, quire_stream *stream);
bool bench_free(bench *t, uint32_t index);
bool bench_free_every(bench *t, uint32_t nth); /* every nth live allocation */
bool bench_map(bench *t, uint32_t index);
bool bench_unmap(bench *t, uint32_t index);
bool bench_write(bench *t, uint32_t index); /* and flushes if needed */
bool bench_read(bench *t, uint32_t index);  /* and invalidates if needed */
bool bench_name(bench *t, uint32_t index, const char *name);
bool bench_look(bench *t); /* walk, JSON, SVG, statistics, owner: everything of quire/insight.h */
/* Gives memory to every second chunk, from `first` on, of each lazy allocation, or takes it. All of
   them are one list of ranges. `chunk`: bytes. */
bool bench_back_chunks(bench *t, uint64_t chunk, uint32_t first);
bool bench_unback_chunks(bench *t, uint64_t chunk, uint32_t first);
/* Of allocations whose names start with the prefix; NULL: of all. */
bool bench_sleep(bench *t, const char *prefix, bool discards);
bool bench_wake(bench *t, const char *prefix);
bool bench_trim(bench *t);
bool bench_keep(bench *t, uint64_t bytes); /* quire_memory_preallocate */

/* ---- rejected calls ------------------------------------------------------------------------- */

/*
 * The call fails with exactly this code and a message, its output is zeroed and the bench is
 * unchanged. Counts the function as misused.
 */
#define REFUSED_OUT(t, code, out, call)                                                            \
    (memset(&(out), 0xaa, sizeof(out)),                                                            \
     refusal_check(__FILE__, __LINE__, (t), #call, (call), (code), &(out), sizeof(out)))
#define REFUSED(t, code, call)                                                                     \
    refusal_check(__FILE__, __LINE__, (t), #call, (call), (code), NULL, 0)

/* A call that cannot fail accepts the argument and has no effect. */
#define HARMLESS(t, call) ((call), refusal_count(__FILE__, __LINE__, (t), #call))

void refusal_check(const char *file, int line, bench *t, const char *call, quire_result actual,
                   quire_result expected, const void *out, size_t size);
void refusal_count(const char *file, int line, bench *t, const char *call);

/* Call it after every intended change by a test: takes a new fingerprint. */
void refusal_begin(bench *t);

/* Forgets which functions were called. */
void refusal_forget(void);

/* Single checks so far in this program. */
uint32_t refusal_checks(void);

/*
 * Reads ROOT/include/quire/HEADER and checks that every function declared in it with QUIRE_API was
 * called by one of the macros above. Returns their number.
 */
uint32_t refusal_covers(const char *root, const char *header);

/* The text after --root on the command line, or ".". */
const char *state_root(int argc, char **argv);

#endif
