/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * damage.h - the harness of the tests of the fits' checks: a row changes one field of the space
 * b.space for one check and states the words of the report; random damage changes any bytes of the
 * records.
 */
#ifndef QUIRE_TESTS_SUPPORT_DAMAGE_H
#define QUIRE_TESTS_SUPPORT_DAMAGE_H

#include <stdlib.h>
#include <string.h>

#include "quire/space.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

/* ---- a row ---------------------------------------------------------------------------------- */

static inline void expect_report(const quire_space *space, const char *words, const char *what,
                                 int line)
{
    quire_result result = quire_space_check(space);
    if (result != QUIRE_ERROR_CORRUPTED || !strstr(quire_last_error(), words))
        check_failed("row", line, "%s: result %d, \"%s\", not \"%s\"", what, (int)result,
                     result ? quire_last_error() : "", words);
}

static inline void store_number(void *field, size_t size, uint64_t value)
{
    const uint8_t byte = (uint8_t)value;
    const uint16_t half = (uint16_t)value;
    const uint32_t word = (uint32_t)value;
    const void *const from[] = {&byte, &half, &word, &value};
    memcpy(field, from[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3], size);
}

static inline void expect_damage(const quire_space *space, void *field, size_t size, uint64_t value,
                                 const char *words, const char *what, int line)
{
    char kept[8];
    memcpy(kept, field, size);
    store_number(field, size, value);
    expect_report(space, words, what, line);
    memcpy(field, kept, size);
    CHECK_OK(quire_space_check(space));
}

/* A row: the field, its value during one check, and words of the report. */
#define DAMAGE(field, value, words)                                                                \
    expect_damage(b.space, &(field), sizeof(field), (uint64_t)(value), (words),                    \
                  #field " = " #value, __LINE__)

/* The same for every value of an array. */
#define DAMAGE_BY_EACH(field, values, words)                                                       \
    do                                                                                             \
        for (size_t row = 0; row < sizeof(values) / sizeof *(values); row++)                       \
            DAMAGE(field, (values)[row], words);                                                   \
    while (0)

/* The same for every bit of a field. */
#define DAMAGE_EACH_BIT(field, words)                                                              \
    do                                                                                             \
        for (size_t row = 0; row < sizeof(field) * 8; row++)                                       \
            DAMAGE(field, (field) ^ UINT64_C(1) << row, words);                                    \
    while (0)

/* For damage of several fields, which the test makes itself. */
#define EXPECT_REPORT(words) expect_report(b.space, (words), "several fields", __LINE__)

/* ---- random damage -------------------------------------------------------------------------- */

/* Bytes of the records. The byte `bools` of each `stride` is a bool, which is not changed; stride 0
   means none. */
typedef struct damage_target {
    void *bytes;
    size_t size, stride, bools;
} damage_target;

enum { MOST_TARGETS = 24, MOST_CHANGES = 8 };

static inline void change_byte(const damage_target *t, test_random *random)
{
    size_t at = random_below(random, t->size);
    if (!t->stride || at % t->stride != t->bools)
        ((unsigned char *)t->bytes)[at] =
            (unsigned char)(random_next(random) & random_next(random));
}

/* Writes random bytes to a few places, checks, and restores all targets: a check may sort lists. */
static inline void survive_random_damage(const quire_space *space, const damage_target *targets,
                                         size_t count, uint64_t least_found)
{
    void *kept[MOST_TARGETS];
    uint64_t found = 0;
    test_random random = {17};
    CHECK(count <= MOST_TARGETS);
    for (size_t i = 0; i < count; i++) {
        CHECK(targets[i].size > 0 && (kept[i] = malloc(targets[i].size)) != NULL);
        memcpy(kept[i], targets[i].bytes, targets[i].size);
    }
    for (int round = 0; round < 50000; round++) {
        for (uint64_t left = 1 + random_below(&random, MOST_CHANGES); left > 0; left--)
            change_byte(&targets[random_below(&random, count)], &random);
        quire_result result = quire_space_check(space);
        CHECK(!result || result == QUIRE_ERROR_CORRUPTED);
        found += result != QUIRE_SUCCESS;
        for (size_t i = 0; i < count; i++)
            memcpy(targets[i].bytes, kept[i], targets[i].size);
    }
    CHECK(found >= least_found);
    for (size_t i = 0; i < count; i++)
        free(kept[i]);
}

#define SURVIVE_RANDOM_DAMAGE(targets, least_found)                                                \
    survive_random_damage(b.space, (targets), sizeof(targets) / sizeof *(targets), (least_found))

#endif
