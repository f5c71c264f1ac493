/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * main.c - a plain program that feeds a libFuzzer target random inputs, for builds without
 * libFuzzer. The seed reproduces a run.
 */
#include <stdio.h>

#include "tests/support/plain.h"
#include "tests/support/random.h"

enum { MAX_BYTES = 4096 };

static uint64_t inputs, seed;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(void)
{
    static uint8_t bytes[MAX_BYTES];
    test_random rng = {.state = seed};
    for (uint64_t i = 0; i < inputs; i++) {
        size_t size = random_size(&rng, MAX_BYTES);
        for (size_t j = 0; j < size; j++)
            bytes[j] = (uint8_t)(random_next(&rng) >> 56);
        LLVMFuzzerTestOneInput(bytes, size);
    }
}

int main(int argc, char **argv)
{
    inputs = plain_option(argc, argv, "steps", 5000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 " inputs\n", seed, inputs);
    plain_case("random inputs find no contradiction", feed);
    return plain_end();
}
