/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * order.h - the orders in which ranges are placed.
 *
 * An order is a list of keys. Ranges with larger keys come first; those with a fixed offset come
 * before all others.
 */
#ifndef QUIRE_SRC_PLAN_ORDER_H
#define QUIRE_SRC_PLAN_ORDER_H

#include "src/plan/line.h"

typedef enum qi_plan_key {
    QI_PLAN_KEY_NONE,
    QI_PLAN_KEY_LOAD,          /* the largest load of its sections */
    QI_PLAN_KEY_SECTIONS,      /* their number */
    QI_PLAN_KEY_SIZE,          /* bytes */
    QI_PLAN_KEY_SIZE_BITS,     /* the binary logarithm of the size, rounded down */
    QI_PLAN_KEY_LIFETIME,      /* the number of times */
    QI_PLAN_KEY_LIFETIME_BITS, /* twice its binary logarithm, rounded down */
    QI_PLAN_KEY_AREA,          /* size times lifetime */
    QI_PLAN_KEY_LATE,          /* the latest begin first */
    QI_PLAN_KEY_EARLY,         /* the earliest begin first */
    QI_PLAN_KEY_LATE_END       /* the latest end first */
} qi_plan_key;

enum { QI_PLAN_KEYS = 3 };

typedef struct qi_plan_sorter {
    const qi_plan_line *line;
    double *heaviest; /* of each range: QI_PLAN_KEY_LOAD */
    struct qi_plan_turn *turns;
} qi_plan_sorter;

/* Fails with OUT_OF_HOST_MEMORY. Release it in each case. The line is prepared. */
QUIRE_MUST_USE quire_result qi_plan_sorter_make(qi_plan_sorter *sorter, const qi_plan_line *line,
                                                qi_host *host);
void qi_plan_sorter_release(qi_plan_sorter *sorter, qi_host *host);

/*
 * Writes the ranges in an order. With `random` each key is first multiplied by a random factor
 * between 0.78 and 1.28; NULL: not.
 */
void qi_plan_sort(qi_plan_sorter *sorter, const qi_plan_key keys[QI_PLAN_KEYS], uint64_t *random,
                  uint32_t *order);

/* The next number of a random sequence (splitmix64). */
static inline uint64_t qi_plan_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

#endif
