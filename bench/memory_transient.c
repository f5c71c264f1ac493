/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_transient.c - driver calls in a steady state: frames that allocate and free their ranges,
 * and successive large allocations. It reads no clock. The first frames, in which every memory
 * creates its pages, are counted separately.
 */
#include <inttypes.h>

#include "bench/children.h"
#include "bench/memory.h"
#include "bench/mock_driver.h"

#define MIB (UINT64_C(1) << 20)

enum { ALIGNMENT = 256, FIRST_FRAMES = 10, MAX_PIECES = 64 };

typedef struct pattern {
    const char *name, *what;
    uint32_t frames, pieces; /* `pieces` ranges per frame, freed in the order of allocation */
    uint64_t size;
    bool dedicated;
} pattern;

static const pattern PATTERNS[] = {
    {"transient-frames", "100 frames, each 40 ranges of 16 MiB, 640 MiB in all", 100, 40, 16 * MIB,
     false},
    {"transient-large", "200 times one range of 200 MiB", 200, 1, 200 * MIB, false},
    {"transient-dedicated", "the same, requested as dedicated", 200, 1, 200 * MIB, true},
};

enum { PATTERN_COUNT = sizeof PATTERNS / sizeof *PATTERNS };

typedef struct counts {
    bool good;
    uint64_t made, given;               /* before the memory is destroyed */
    uint64_t steady_made, steady_given; /* after the first frames */
    uint64_t peak;                      /* bytes reserved */
} counts;

typedef struct run {
    const pattern *pattern;
    roster roster;
    counts *results; /* shared, by subject */
} run;

/* ---- in a child --------------------------------------------------------------------------- */

static bool play_frame(const pattern *p, const subject *on, void *state)
{
    uint64_t handles[MAX_PIECES], offset;
    bool good = true;
    for (uint32_t i = 0; i < p->pieces; i++) {
        handles[i] = on->allocate(state, p->size, ALIGNMENT, &offset);
        good = good && handles[i];
    }
    for (uint32_t i = 0; i < p->pieces; i++)
        if (handles[i])
            on->free(state, handles[i]);
    return good;
}

/* The memory is destroyed after the counts are read, and must then have freed every block. */
static void measure_index(void *user, size_t index)
{
    const run *r = user;
    memory_how how = *how_of(r->roster.items[index]);
    how.dedicated = r->pattern->dedicated;
    subject on = subject_with(r->roster.items[index], &how);
    void *state = on.create(&on, &(subject_arena){.size = 0});
    counts *out = &r->results[index];
    uint64_t made = 0, given = 0;
    bool good = state;
    for (uint32_t i = 0; i < r->pattern->frames && good; i++) {
        if (i == FIRST_FRAMES) {
            made = qi_atomic_load_u64(&the_driver.made);
            given = qi_atomic_load_u64(&the_driver.given);
        }
        good = play_frame(r->pattern, &on, state);
    }
    out->made = qi_atomic_load_u64(&the_driver.made);
    out->given = qi_atomic_load_u64(&the_driver.given);
    out->steady_made = out->made - made;
    out->steady_given = out->given - given;
    out->peak = qi_atomic_load_u64(&the_driver.peak);
    if (state)
        on.destroy(state);
    out->good = good && !mock_pieces();
}

/* ---- results ------------------------------------------------------------------------------ */

static void write_row(qi_json *json, const run *r, size_t index)
{
    const counts *c = &r->results[index];
    qi_json_object(json, NULL);
    qi_json_text(json, "pattern", r->pattern->name);
    qi_json_text(json, "subject", r->roster.items[index]->name);
    qi_json_number(json, "frames", r->pattern->frames);
    qi_json_number(json, "made", c->made);
    qi_json_number(json, "given_back", c->given);
    qi_json_number(json, "steady_frames", r->pattern->frames - FIRST_FRAMES);
    qi_json_number(json, "steady_calls", c->steady_made + c->steady_given);
    qi_json_number(json, "peak_reserved", c->peak);
    qi_json_end_object(json);
}

static void report(memory_bench *b, const run *r)
{
    printf("\n%s: %s; driver calls\n", r->pattern->name, r->pattern->what);
    printf("  %-28s %8s %10s %18s %12s\n", "", "created", "destroyed", "after frame 10",
           "peak MiB");
    for (size_t i = 0; i < r->roster.count; i++) {
        const counts *c = &r->results[i];
        if (!c->good) {
            printf("  %-28s failed\n", r->roster.items[i]->name);
            continue;
        }
        printf("  %-28s %8" PRIu64 " %10" PRIu64 " %18" PRIu64 " %12" PRIu64 "\n",
               r->roster.items[i]->name, c->made, c->given, c->steady_made + c->steady_given,
               c->peak / MIB);
        write_row(&b->out.json, r, i);
    }
}

/* ---- the part ----------------------------------------------------------------------------- */

void measure_transient(memory_bench *b)
{
    qi_json_array(&b->out.json, "transient");
    for (size_t i = 0; i < PATTERN_COUNT; i++) {
        if (!is_wanted(&b->wanted_families, PATTERNS[i].name))
            continue;
        run r = {.pattern = &PATTERNS[i], .roster = plain_memories_of(b, TAKE_ONE)};
        r.results = shared_memory(r.roster.count, sizeof *r.results);
        in_children(r.roster.count, 1, measure_index, &r);
        report(b, &r);
        shared_release(r.results, r.roster.count, sizeof *r.results);
    }
    qi_json_end_array(&b->out.json);
}
