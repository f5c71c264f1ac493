/*
 * tuning.h - what quire tune found out: tune.c replays the trace with each candidate, tune_print.c
 * shows the outcome.
 */
#ifndef QUIRE_SRC_CLI_TUNING_H
#define QUIRE_SRC_CLI_TUNING_H

#include "src/cli/candidate.h"
#include "src/cli/playing.h"
#include "src/cli/ranking.h"

enum { MAX_REASONS = 8, SENTENCE = 512 };

/* One candidate and what it cost. */
typedef struct trial {
    candidate candidate;
    quire_replay_report report;
    uint64_t mean_reserved_bytes;
} trial;

/* Why candidates were not tried, or are of no use. */
typedef struct left_out {
    uint32_t count;
    char reason[SENTENCE];
} left_out;

typedef struct tuning {
    playing playing;
    bool all; /* show every candidate */
    bool json;
    progress bar;
    candidate *candidates;
    trial *trials;
    ranked *ranking; /* of the trials; `number` is the place in them */
    uint32_t candidate_count, trial_count;
    uint32_t served;      /* trials that refused nothing */
    uint32_t recommended; /* place in the ranking; trial_count: none */
    left_out reasons[MAX_REASONS];
    uint32_t reason_count;
    char refusal[SENTENCE]; /* the first of the trial with the fewest, when each has one */
    uint64_t fewest_refusals;
    uint32_t trying; /* for the progress bar: this candidate */
    uint64_t sum_reserved_bytes, samples;
    quire_memory *memory; /* of the candidate being tried */
} tuning;

/* Prints the table, the recommendation and the options for it. */
void print_tuning(const tuning *t);

/* The same as one JSON object. */
quire_result write_tuning(const tuning *t);

#endif
