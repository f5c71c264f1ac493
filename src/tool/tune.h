/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tune.h - what the search of quire tune leaves for its output: candidates with their cost in every
 * replay, their ranking, and the recommendation.
 */
#ifndef QUIRE_SRC_TOOL_TUNE_H
#define QUIRE_SRC_TOOL_TUNE_H

#include "src/tool/candidate.h"
#include "src/tool/ranking.h"
#include "src/tool/replay_setup.h"

enum { MAX_TRACES = 16, MAX_REASONS = 8, SENTENCE = 512 };

/*
 * Every trace is replayed with its own sizes, with smaller and with larger ones. Page sizes that
 * suit exactly the recorded peak do not suit the others.
 */
enum { SCALES = 6, MAX_REPLAYS = MAX_TRACES * SCALES };
extern const uint32_t tune_scales[SCALES]; /* percent; the first is 100 */

typedef struct tuned_trace {
    const char *path;
    quire_trace *trace;
    quire_trace_info info;
} tuned_trace;

/* One candidate and its cost. */
typedef struct trial {
    candidate candidate;
    quire_replay_report report;   /* of the first trace with its own sizes */
    uint64_t mean_reserved_bytes; /* over the events of the first trace, likewise */
    replay_cost *costs;           /* of replay i: trace i / SCALES, scale i % SCALES */
} trial;

/* A reason for which candidates are not ranked, and their number. */
typedef struct skipped {
    uint32_t count;
    char reason[SENTENCE];
} skipped;

typedef struct tuning {
    replay_setup setup; /* its device and time; not its trace */
    tuned_trace traces[MAX_TRACES];
    size_t trace_count;
    quire_fit fit;      /* option --fit, or ANY_FIT */
    uint64_t page_size; /* option --page-size; 0 means several sizes */
    uint64_t seconds;   /* option --time-limit; 0 means none */
    bool all;           /* option --all: print every candidate */
    bool elastic;       /* option --elastic: try elastic memories too */
    bool json;
    progress bar;
    candidate *candidates;
    trial *trials;
    replay_cost *costs; /* of all trials */
    ranked *ranking;    /* of the trials, sorted; `number` is an index into them */
    uint32_t candidate_count, trial_count;
    bool counts[MAX_REPLAYS]; /* whether a replay counts: see rank */
    uint32_t recommended;     /* index into the ranking; trial_count means none */
    skipped reasons[MAX_REASONS];
    uint32_t reason_count;
    char refusal[SENTENCE]; /* first error of the trial with the fewest failures above 0 */
    uint64_t fewest_refusals;
    uint64_t wall_ns; /* of the search */
    /* the round and the candidate being tried */
    uint64_t deadline; /* of qi_clock in nanoseconds; UINT64_MAX means none */
    char title[48];    /* of the bar */
    uint32_t trying, replaying;
    uint64_t sum_reserved_bytes, samples;
    quire_memory *memory;
} tuning;

/* The number of replays of a candidate. */
size_t tuning_replays(const tuning *t);

/* Prints the table, the recommendation and a C initializer of the recommended options. */
void print_tuning(const tuning *t);

/* Prints one JSON object; docs/formats.md lists the keys. */
quire_result write_tuning(const tuning *t);

#endif
