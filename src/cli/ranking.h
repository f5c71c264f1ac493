/*
 * ranking.h - which of several ways to set up a memory served a trace best. Numbers only.
 *
 * The score of one is
 *
 *     most reserved / most asked for  +  backend calls / (allocations and frees asked for)
 *
 * Lower is better: one percent more memory weighs as much as one more backend call in a hundred
 * operations. Times take no part, so that the same trace gets the same answer everywhere.
 */
#ifndef QUIRE_SRC_CLI_RANKING_H
#define QUIRE_SRC_CLI_RANKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Scores that differ by less are as good as each other: then what sets fewer options is better. */
#define WORTH_AN_OPTION 0.01

#define NOT_ALIKE UINT32_MAX

typedef struct ranked {
    /* given */
    uint32_t number;         /* the caller's; of equals the lower one stands first */
    uint32_t options_set;    /* by it, beyond the defaults */
    uint64_t failures;       /* one that refuses allocations is never recommended */
    uint64_t asked_bytes;    /* most at one time; above 0 */
    uint64_t reserved_bytes; /* likewise */
    uint64_t backend_calls;
    uint64_t operations; /* above 0 */
    /* found */
    double score;
    uint32_t alike; /* place in the sorted list of the first that has the same figures */
    bool pareto;    /* none is better in reserved_bytes or backend_calls and as good in the other */
} ranked;

/*
 * Finds what is to be found and sorts: what refuses nothing by score, then by options set and
 * number; then the others by failures and number. Of those with the same figures only the first can
 * be `pareto`, and `alike` of the others leads to it; its own is NOT_ALIKE.
 */
void rank(ranked *list, size_t count);

/*
 * Of a sorted list, the place of what sets the fewest options among those that score less than
 * WORTH_AN_OPTION above the best; `count` when each refuses something.
 */
size_t recommend(const ranked *list, size_t count);

#endif
