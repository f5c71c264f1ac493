/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_fuzz.c - input bytes become a file of items and arenas, which are read, planned and checked.
 *
 * The first four bytes select the header, the arenas and a separation; the others are the file. A
 * plan must pass quire_plan_check, and its peak must be that of the check.
 *
 * A target of libFuzzer (meson option fuzz) that aborts at the first contradiction; without it a
 * plain program that generates inputs from a seed.
 */
#include <stdlib.h>

#include "quire/plan.h"
#include "src/plan/read.h"
#include "tests/support/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CHOICES = 4, MOST_ITEMS = 200, MOST_BYTES = 1 << 14 };

static const char *const HEADERS[] = {"", "id,lower,upper,size\n",
                                      "id,lower,upper,size,alignment\n",
                                      "size,lower,upper,alias,arena,offset,alignment,id\n"};

static void plan(const quire_plan_problem *problem)
{
    static quire_plan_place places[MOST_ITEMS];
    const quire_plan_options options = {.step_limit = 20000};
    uint64_t peaks[2] = {0};
    quire_plan_info info;
    quire_result result = quire_plan(problem, &options, places, &info);
    if (result) {
        CHECK(result == QUIRE_ERROR_INVALID_ARGUMENT || result == QUIRE_ERROR_OUT_OF_RANGE ||
              result == QUIRE_ERROR_OVERLAP || result == QUIRE_ERROR_NO_SPACE);
        return;
    }
    CHECK_OK(quire_plan_check(problem, places, peaks, NULL));
    CHECK_EQ(info.peak_bytes, peaks[0] + peaks[1]);
    CHECK(info.lower_bound_bytes <= info.peak_bytes);
    CHECK_EQ(info.proven_optimal, info.lower_bound_bytes == info.peak_bytes);
}

/* Arenas without a capacity, or with a small one. */
static void plan_items(const qi_plan_file *file, const uint8_t choices[CHOICES])
{
    const quire_plan_arena arenas[] = {{choices[1] / 4}, {choices[2] / 4}};
    const quire_plan_separation apart = {choices[3] % 16, choices[3] / 16};
    plan(&(quire_plan_problem){.items = file->items,
                               .arenas = arenas,
                               .separations = &apart,
                               .item_count = file->count < MOST_ITEMS ? file->count : MOST_ITEMS,
                               .arena_count = choices[0] / 4 % 3,
                               .separation_count = choices[0] / 16 % 2});
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[MOST_BYTES];
    if (size < CHOICES || size > MOST_BYTES / 2)
        return 0;
    const char *header = HEADERS[data[0] % 4];
    size_t length = strlen(header);
    memcpy(text, header, length);
    memcpy(text + length, data + CHOICES, size - CHOICES);
    qi_host host;
    qi_plan_file file;
    CHECK_OK(qi_host_init(&host, NULL));
    quire_result result = qi_plan_read("plan", text, length + size - CHOICES, &host, &file);
    CHECK(!result || result == QUIRE_ERROR_BAD_FILE);
    if (!result)
        plan_items(&file, data);
    qi_plan_file_release(&file, &host);
    CHECK_EQ(qi_atomic_load_u64(&host.bytes), 0);
    return 0;
}
