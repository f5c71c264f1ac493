/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_record.c - what a recording costs: pairs of an allocation and a free of a memory that is
 * not recorded, and of one that is recorded into a ring, into a ring with names, and into a file.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/children.h"
#include "bench/memory.h"
#include "bench/ticks.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/base/system.h"

enum { LIVE = 2000, PAIRS = 500000, MOST = 4096, NAMES = 64, RING_BYTES = 16 << 20 };

enum { NOTHING, RING, RING_NAMED, FILE_WRITTEN, UNRECORDED_NAMED, WAYS };

static const char *const WAY_NAMES[WAYS] = {[NOTHING] = "not recorded",
                                            [UNRECORDED_NAMED] = "not recorded, named",
                                            [RING] = "recorded into a ring",
                                            [RING_NAMED] = "into a ring, named",
                                            [FILE_WRITTEN] = "into a file"};

/* The way without a recording that a way is compared with. */
static int base_of(int way)
{
    return way == RING_NAMED || way == UNRECORDED_NAMED ? UNRECORDED_NAMED : NOTHING;
}

typedef struct run {
    const memory_bench *bench;
    double *ns; /* shared: [rep][way], per pair; 0 if it failed */
} run;

/* ---- one repeat, in a child --------------------------------------------------------------- */

typedef struct scene {
    quire_memory *memory;
    bool is_named;
    char names[NAMES][16];
    quire_allocation live[LIVE];
    uint64_t random;
} scene;

static bool allocate(scene *s, quire_allocation *made)
{
    s->random = s->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const quire_allocation_options options = {
        .size = 1 + (s->random >> 33) % MOST,
        .name = s->is_named ? s->names[(s->random >> 50) % NAMES] : NULL};
    return !quire_allocate(s->memory, &options, made);
}

/* Returns nanoseconds per pair, or 0. */
static double pair_ns(scene *s, uint64_t pairs)
{
    bool good = true;
    for (int i = 0; i < NAMES; i++)
        snprintf(s->names[i], sizeof s->names[i], "tensor/%d", i);
    for (int i = 0; i < LIVE && good; i++)
        good = allocate(s, &s->live[i]);
    uint64_t begun = qi_clock();
    for (uint64_t i = 0; i < pairs && good; i++) {
        quire_allocation *at = &s->live[(s->random >> 20) % LIVE];
        good = !quire_free(s->memory, *at) && allocate(s, at);
    }
    return good ? (double)(qi_clock() - begun) / (double)pairs : 0;
}

static bool discard(void *user, const char *text, size_t size)
{
    (void)user, (void)text, (void)size;
    return true;
}

static bool start(int way, quire_memory *memory, char *path, quire_recorder **recorder)
{
    quire_record_options options = {.memory = memory};
    if (way == NOTHING || way == UNRECORDED_NAMED)
        return true;
    if (way == FILE_WRITTEN) {
        int file = mkstemp(path);
        if (file < 0 || close(file))
            return false;
        options.path = path;
    } else {
        options.sink = discard;
        options.ring_bytes = RING_BYTES;
    }
    return !quire_record_start(&options, recorder);
}

static void measure_index(void *user, size_t index)
{
    const run *r = user;
    size_t rep = index / WAYS, turn = (index + rep) % WAYS;
    char path[] = "/tmp/quire-bench-record-XXXXXX";
    static scene s;
    quire_device *device = NULL;
    quire_recorder *recorder = NULL;
    const uint64_t pairs = r->bench->max_pairs < PAIRS ? r->bench->max_pairs : PAIRS;
    s = (scene){.is_named = turn == RING_NAMED || turn == UNRECORDED_NAMED};
    if (quire_host_open(NULL, &device) || quire_memory_create(device, NULL, &s.memory) ||
        !start((int)turn, s.memory, path, &recorder))
        return;
    double ns = pair_ns(&s, pairs);
    r->ns[rep * WAYS + turn] = quire_record_stop(&recorder) ? 0 : ns;
    if (turn == FILE_WRITTEN)
        unlink(path);
    quire_memory_destroy_all(&s.memory);
    quire_device_destroy(&device);
}

/* ---- results ------------------------------------------------------------------------------ */

static spread spread_at(const run *r, int way, size_t *reps)
{
    double values[MAX_REPS];
    *reps = 0;
    for (size_t rep = 0; rep < r->bench->reps; rep++)
        if (r->ns[rep * WAYS + (size_t)way] > 0)
            values[(*reps)++] = r->ns[rep * WAYS + (size_t)way];
    return *reps ? spread_of(values, *reps) : (spread){0, 0};
}

/* A pair is two events. */
static void report(memory_bench *b, const run *r)
{
    printf(
        "\nrecord: ns for a pair, and for each of its two events beyond no recording (minima)\n");
    printf("  %-28s %9s %9s %9s\n", "", "min", "median", "event");
    for (int way = 0; way < WAYS; way++) {
        size_t reps = 0, base_reps = 0;
        spread pair = spread_at(r, way, &reps), base = spread_at(r, base_of(way), &base_reps);
        double event = (pair.min - base.min) / 2;
        if (!reps || !base_reps)
            printf("  %-28s failed\n", WAY_NAMES[way]);
        else
            printf("  %-28s %9.1f %9.1f %9.1f\n", WAY_NAMES[way], pair.min, pair.median, event);
        qi_json_object(&b->out.json, NULL);
        qi_json_text(&b->out.json, "way", WAY_NAMES[way]);
        qi_json_number(&b->out.json, "reps", reps);
        write_spread(&b->out.json, "pair_ns", pair);
        qi_json_real(&b->out.json, "event_ns", reps && base_reps ? event : 0);
        qi_json_end_object(&b->out.json);
    }
}

void measure_record(memory_bench *b)
{
    qi_json_array(&b->out.json, "record");
    if (is_wanted(&b->wanted_families, "record")) {
        run r = {.bench = b};
        r.ns = shared_memory(WAYS * b->reps, sizeof *r.ns);
        in_children(WAYS * b->reps, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.ns, WAYS * b->reps, sizeof *r.ns);
    }
    qi_json_end_array(&b->out.json);
}
