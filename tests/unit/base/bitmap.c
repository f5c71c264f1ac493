/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bitmap.c - a bitmap with summaries against one flag per number, for sizes around every border
 * between levels.
 */
#include "src/base/bitmap.h"

#include <stdlib.h>

#include "tests/support/random.h"
#include "tests/support/unit.h"

typedef struct naive {
    uint64_t *words;
    bool *has;
    uint32_t size, count;
} naive;

static naive make(uint32_t size)
{
    naive n = {.size = size};
    n.words = calloc(qi_bitmap_words(size), sizeof *n.words);
    n.has = calloc(size, sizeof *n.has);
    return n;
}

static void end(naive *n)
{
    free(n->words);
    free(n->has);
}

static void add(naive *n, uint32_t number)
{
    qi_bitmap_add(n->words, n->size, number);
    n->has[number] = true;
    n->count++;
}

static void drop(naive *n, uint32_t number)
{
    n->has[number] = false;
    n->count--;
    CHECK_EQ(qi_bitmap_remove(n->words, n->size, number), n->count == 0);
}

static void expect_neighbours(const naive *n, uint32_t from)
{
    uint32_t expected = from;
    while (expected < n->size && !n->has[expected])
        expected++;
    CHECK_EQ(qi_bitmap_next(n->words, n->size, from), expected < n->size ? expected : n->size);
    if (from == n->size)
        return;
    expected = from;
    while (expected > 0 && !n->has[expected])
        expected--;
    CHECK_EQ(qi_bitmap_previous(n->words, n->size, from), n->has[expected] ? expected : n->size);
}

UNIT(bitmap, every_level_has_a_bit_per_word_below)
{
    const uint32_t sizes[][2] = {{1, 1},     {64, 1},     {65, 3},        {128, 3},      {4096, 65},
                                 {4097, 68}, {8192, 131}, {262144, 4161}, {262145, 4165}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        CHECK_EQ(qi_bitmap_words(sizes[i][0]), sizes[i][1]);
    CHECK_EQ(qi_bitmap_words(UINT32_MAX), 67108864 + 1048576 + 16384 + 256 + 4 + 1);
}

UNIT(bitmap, a_single_number_is_found_from_every_start)
{
    const uint32_t sizes[] = {1, 2, 63, 64, 65, 4095, 4096, 4097, 262144, 262145, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        naive n = make(sizes[i]);
        const uint32_t numbers[] = {0, sizes[i] / 2, sizes[i] - 1};
        expect_neighbours(&n, 0);
        for (int j = 0; j < 3; j++) {
            add(&n, numbers[j]);
            CHECK(qi_bitmap_has(n.words, numbers[j]));
            for (uint32_t from = 0; from < sizes[i]; from += 1 + sizes[i] / 50)
                expect_neighbours(&n, from);
            for (uint32_t near = 0; near < 3 && near <= numbers[j]; near++)
                expect_neighbours(&n, numbers[j] - near);
            expect_neighbours(&n, numbers[j] + 1);
            drop(&n, numbers[j]);
            CHECK(!qi_bitmap_has(n.words, numbers[j]));
        }
        for (uint32_t j = 0; j < qi_bitmap_words(sizes[i]); j++)
            CHECK_EQ(n.words[j], 0); /* the summaries are empty */
        end(&n);
    }
}

static void live_long(uint32_t size, uint64_t most, uint64_t seed)
{
    naive n = make(size);
    test_random r = {seed};
    for (int i = 0; i < 20000; i++) {
        bool fills = i / 2000 % 2 == 0;
        uint32_t number = (uint32_t)random_below(&r, size);
        if (n.has[number])
            drop(&n, number);
        else if (fills && n.count < most)
            add(&n, number);
        else if (qi_bitmap_next(n.words, size, number) < size)
            drop(&n, qi_bitmap_next(n.words, size, number));
        expect_neighbours(&n, (uint32_t)random_below(&r, size));
        expect_neighbours(&n, 0);
        expect_neighbours(&n, size);
    }
    end(&n);
}

UNIT(bitmap, a_long_random_run_with_few_and_many_numbers)
{
    live_long(60, 60, 1);
    live_long(64, 10, 2);
    live_long(100, 100, 3);
    live_long(5000, 40, 4);
    live_long(5000, 5000, 5);
}
