/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * ranking.h - ranks the candidates of quire tune by their cost in several replays, and chooses the
 * one to recommend: numbers only, without a device or a memory.
 *
 * A replay is one trace with its sizes scaled to one percentage. The score of a candidate in a
 * replay is
 *
 *     peak reserved / peak requested  +  backend calls / (allocations + frees)
 *
 * Lower is better. One percent more memory weighs as much as one more backend call in a hundred
 * operations. Times are ignored, so that the same traces give the same ranking on every machine.
 *
 * The score of a candidate is the mean over the replays. The worst replay would decide by the
 * shortest trace alone, where a few backend calls are most of the score. A candidate that one of
 * the replays shows to be worse than the defaults is excluded by is_safe instead.
 */
#ifndef QUIRE_SRC_TOOL_RANKING_H
#define QUIRE_SRC_TOOL_RANKING_H

#include "quire/base.h"

/* Scores that differ by less count as equal when a candidate is recommended. */
#define WORTH_AN_OPTION 0.01

/*
 * A candidate whose score is not this much below that of the defaults is not recommended. The ratio
 * of one memory differs by about as much between runs of different sizes, so that a smaller gain
 * says little about the next run.
 */
#define WORTH_A_CHANGE 0.08

/* Likewise for the sizes of the traces alone. Other sizes are no multiples of what the program
   rounds to, which can cost the defaults more than any run of it would. */
#define WORTH_A_CHANGE_ITSELF 0.04

#define NOT_ALIKE UINT32_MAX

/* The cost of a candidate in one replay. */
typedef struct replay_cost {
    uint64_t failures;        /* refused allocations */
    uint64_t requested_bytes; /* peak of the requested bytes; above 0 */
    uint64_t reserved_bytes;  /* peak of the reserved bytes */
    uint64_t backend_calls;
    uint64_t operations; /* allocations and frees of the trace; above 0 */
} replay_cost;

typedef struct ranked {
    /* set by the caller */
    uint32_t number;          /* the caller's number of the candidate; breaks ties */
    uint32_t options_set;     /* number of options that differ from the defaults */
    const replay_cost *costs; /* one for each replay */
    /* set by rank, over the replays that count */
    uint64_t failures;      /* sum; above 0 the candidate is never recommended */
    uint64_t backend_calls; /* sum */
    double ratio;           /* mean of peak reserved / peak requested */
    double score;           /* mean */
    double own_score;       /* mean over the replays that always count: those with the sizes of the
                               traces */
    bool is_safe;   /* in no replay the defaults reserve less or score less, or they are not in the
                     list, or have failures */
    uint32_t alike; /* index of the first candidate with the same cost, or NOT_ALIKE */
    bool pareto;    /* Pareto-optimal in ratio and backend_calls */
} ranked;

/*
 * Scores and sorts the list. Candidates without failures come first, by score, options set and
 * number. The others follow, by failures and number. Candidates have the same cost if their
 * failures, ratio and backend calls are equal. Only the first of them can be `pareto`; the others
 * refer to it with `alike`.
 *
 * counts[i] says whether replay i counts. On entry it is set for those that always count. rank
 * sets it for the others too, except where every candidate has failures: nothing can serve sizes
 * that the device cannot hold.
 */
void rank(ranked *list, size_t count, bool *counts, size_t replays);

/* The index of the candidate without options set; `count` if there is none. */
size_t find_defaults(const ranked *list, size_t count);

/*
 * Takes a sorted list. Returns the index of the candidate to recommend; `count` if every candidate
 * has failures. Eligible are the candidates without failures that are safe and score at least
 * WORTH_A_CHANGE below the defaults, and WORTH_A_CHANGE_ITSELF in own_score. Of those that score
 * less than WORTH_AN_OPTION above the best eligible one, the one with the fewest options set is
 * returned, and the defaults if none is eligible. Without defaults in the list, or if they have
 * failures, every candidate without failures is eligible.
 */
size_t recommend(const ranked *list, size_t count);

#endif
