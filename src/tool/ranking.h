/*
 * ranking.h - ranks memory options by their cost on one trace. This module computes numbers only.
 *
 * The score of a candidate is
 *
 *     peak reserved / peak requested  +  backend calls / (allocations + frees)
 *
 * Lower is better. One percent more memory weighs as much as one more backend call in a hundred
 * operations. Times are ignored, so that the same trace gives the same ranking on every machine.
 */
#ifndef QUIRE_SRC_TOOL_RANKING_H
#define QUIRE_SRC_TOOL_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Scores that differ by less count as equal when a candidate is recommended. */
#define WORTH_AN_OPTION 0.01

#define NOT_ALIKE UINT32_MAX

typedef struct ranked {
    /* set by the caller */
    uint32_t number;          /* the caller's number of the candidate; breaks ties */
    uint32_t options_set;     /* number of options that differ from the defaults */
    uint64_t failures;        /* failed allocations; above 0 it is never recommended */
    uint64_t requested_bytes; /* peak of the requested bytes; above 0 */
    uint64_t reserved_bytes;  /* peak of the reserved bytes */
    uint64_t backend_calls;
    uint64_t operations; /* allocations and frees of the trace; above 0 */
    /* set by rank */
    double score;
    uint32_t alike; /* index of the first candidate with the same cost, or NOT_ALIKE */
    bool pareto;    /* Pareto-optimal in reserved_bytes and backend_calls */
} ranked;

/*
 * Scores and sorts the list. Candidates without failures come first, by score, options set and
 * number. The others follow, by failures and number. Candidates have the same cost if their
 * failures, reserved bytes and backend calls are equal. Only the first of them can be `pareto`;
 * the others refer to it with `alike`.
 */
void rank(ranked *list, size_t count);

/*
 * Takes a sorted list. Returns the index of the candidate with the fewest options set among those
 * that score less than WORTH_AN_OPTION above the best; `count` if every candidate has failures.
 */
size_t recommend(const ranked *list, size_t count);

#endif
