/*
 * tuning.h - the state of quire tune. tune.c replays the trace with each candidate and fills it in;
 * tune_print.c prints it.
 */
#ifndef QUIRE_SRC_TOOL_TUNING_H
#define QUIRE_SRC_TOOL_TUNING_H

#include "src/tool/candidate.h"
#include "src/tool/replay_setup.h"
#include "src/tool/ranking.h"

enum { MAX_REASONS = 8, SENTENCE = 512 };

/* One candidate and its cost. */
typedef struct trial {
    candidate candidate;
    quire_replay_report report;
    uint64_t mean_reserved_bytes; /* over the events of the trace */
} trial;

/* A reason for which candidates are not ranked, and their number. */
typedef struct skipped {
    uint32_t count;
    char reason[SENTENCE];
} skipped;

typedef struct tuning {
    replay_setup setup;
    quire_fit fit;      /* option --fit, or ANY_FIT */
    uint64_t page_size; /* option --page-size; 0 means several sizes */
    uint64_t seconds;   /* option --time-limit; 0 means none */
    bool all;           /* option --all: print every candidate */
    bool json;
    progress bar;
    candidate *candidates;
    trial *trials;
    ranked *ranking; /* of the trials, sorted; `number` is an index into them */
    uint32_t candidate_count, trial_count;
    uint32_t recommended; /* index into the ranking; trial_count means none */
    skipped reasons[MAX_REASONS];
    uint32_t reason_count;
    char refusal[SENTENCE]; /* first error of the trial with the fewest failures above 0 */
    uint64_t fewest_refusals;
    /* the round and the candidate being tried */
    uint64_t deadline; /* of qi_clock in nanoseconds; UINT64_MAX means none */
    char title[48];    /* of the bar */
    uint32_t trying;
    uint64_t sum_reserved_bytes, samples;
    quire_memory *memory;
} tuning;

/* Prints the table, the recommendation and a C initializer of the recommended options. */
void print_tuning(const tuning *t);

/* Prints one JSON object; docs/formats.md lists the keys. */
quire_result write_tuning(const tuning *t);

#endif
