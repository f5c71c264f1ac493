/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * random.c - runs harnesses without CBMC: through all combinations of choices if they only choose
 * from few values, otherwise on random values, many of which lie at limits or close to the previous
 * one. Prints TAP; the seed reproduces a run.
 */
#include <setjmp.h>
#include <stdio.h>

#include "tests/cbmc/proof.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

enum { MAX_PROOFS = 64, MAX_CHOICES = 64 };

static struct {
    const char *name;
    void (*body)(void);
} proofs[MAX_PROOFS];

/* The choices of one run; the next run differs in the last choice that has an alternative left. */
static struct {
    uint64_t value, limit;
} choices[MAX_CHOICES];

static uint32_t proof_count, current, choice_count, choices_made;
static bool is_random;
static uint64_t steps, last_value, left;
static test_random rng;
static jmp_buf leave;

void proof_register(const char *name, void (*body)(void))
{
    CHECK(proof_count < MAX_PROOFS);
    proofs[proof_count].name = name;
    proofs[proof_count++].body = body;
}

void proof_leave(void)
{
    longjmp(leave, 1);
}

/* ---- values ------------------------------------------------------------------------------- */

uint64_t any_u64(void)
{
    uint64_t value = random_next(&rng);
    uint32_t shift = (uint32_t)random_below(&rng, 64);
    is_random = true; /* too many for all combinations */
    switch (random_below(&rng, 6)) {
    case 0:
        break;
    case 1:
        value >>= shift;
        break;
    case 2:
        value = (UINT64_C(1) << shift) + random_below(&rng, 3) - 1;
        break;
    case 3:
        value = UINT64_C(0) - random_below(&rng, 300);
        break;
    case 4:
        value = last_value;
        break;
    default:
        value = last_value + random_below(&rng, 65) - 32;
        break;
    }
    last_value = value;
    return value;
}

uint64_t any_below(uint64_t n)
{
    CHECK(n != 0);
    if (is_random)
        return random_below(&rng, n);
    if (choices_made == choice_count) {
        CHECK(choice_count < MAX_CHOICES);
        choices[choice_count].value = 0;
        choices[choice_count++].limit = n;
    }
    CHECK_EQ(choices[choices_made].limit, n); /* a run depends on its choices alone */
    return choices[choices_made++].value;
}

/* Advances to the next combination; returns false after the last one. */
static bool next_way(void)
{
    choices_made = 0;
    while (choice_count && choices[choice_count - 1].value + 1 == choices[choice_count - 1].limit)
        choice_count--;
    if (!choice_count)
        return false;
    choices[choice_count - 1].value++;
    return true;
}

/* ---- runs --------------------------------------------------------------------------------- */

static void run_once(void)
{
    if (setjmp(leave))
        left++;
    else
        proofs[current].body();
}

/* Returns whether all combinations were tried within the steps. */
static bool run_all_ways(uint64_t *runs)
{
    is_random = false;
    choice_count = choices_made = 0;
    for (*runs = 1; *runs <= steps; ++*runs) {
        run_once();
        if (is_random)
            return false;
        if (!next_way())
            return true;
    }
    return false;
}

static void run_proof(void)
{
    uint64_t runs = 0;
    left = 0;
    bool all = run_all_ways(&runs);
    if (!all) {
        is_random = true;
        left = 0;
        for (runs = 0; runs < steps; runs++)
            run_once();
    }
    printf("# %" PRIu64 " %s, of them %" PRIu64 " excluded by assumptions\n", runs,
           all ? "combinations, all there are" : "random runs", left);
    CHECK(left < runs - runs / 100); /* otherwise next to nothing was tried */
}

int main(int argc, char **argv)
{
    steps = plain_option(argc, argv, "steps", 1000000);
    rng.state = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", rng.state, steps);
    for (current = 0; current < proof_count; current++)
        plain_case(proofs[current].name, run_proof);
    return plain_end();
}
