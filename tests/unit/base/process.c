/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * process.c - settings from variables with a prefix, and the variables that nothing reads.
 */
#include "src/base/process.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/unit.h"

static const char *const NAMES[] = {"PAGE_SIZE", "FIT", "STATS", "STATS_FILE", "TRACE"};

static char said[4096];

static void add(void *user, const char *sentence)
{
    CHECK(user == said);
    size_t length = strlen(said);
    snprintf(said + length, sizeof said - length, "%s\n", sentence);
}

static const char *find(void)
{
    said[0] = 0;
    qi_find_unknown_variables("QUIRE_UNIT_", NAMES, sizeof NAMES / sizeof *NAMES, add, said);
    return said;
}

UNIT_ALONE(environment, a_variable_has_a_prefix_and_a_text)
{
    CHECK(!qi_variable("QUIRE_UNIT_", "FIT"));
    setenv("QUIRE_UNIT_FIT", "", 1);
    CHECK(!qi_variable("QUIRE_UNIT_", "FIT"));
    setenv("QUIRE_UNIT_FIT", "buddy", 1);
    CHECK_STR(qi_variable("QUIRE_UNIT_", "FIT"), "buddy");
}

UNIT_ALONE(environment, known_empty_and_other_variables_are_not_reported)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char name[64];
        snprintf(name, sizeof name, "QUIRE_UNIT_%s", NAMES[i]);
        setenv(name, "1", 1);
    }
    setenv("QUIRE_UNIT_PAGESIZE", "", 1);
    setenv("QUIRE_UNIT", "1", 1);
    setenv("QUIRE_UNITS_FIT", "1", 1);
    setenv("QUIRE_OTHER_PAGESIZE", "QUIRE_UNIT_PAGESIZE=1", 1);
    CHECK_STR(find(), "");
}

UNIT_ALONE(environment, an_unknown_variable_is_reported_with_the_one_that_it_resembles)
{
    static const char *const PAIRS[][2] = {
        {"PAGESIZE", "PAGE_SIZE"}, {"PAGE_SIZES", "PAGE_SIZE"},  {"page_size", "PAGE_SIZE"},
        {"STAT", "STATS"},         {"STATS_FIEL", "STATS_FILE"}, {"FIX", "FIT"},
        {"TRACES", "TRACE"},
    };
    for (size_t i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
        char name[64], expected[256];
        snprintf(name, sizeof name, "QUIRE_UNIT_%s", PAIRS[i][0]);
        snprintf(expected, sizeof expected,
                 "%s is unknown and has no effect; is QUIRE_UNIT_%s meant?\n", name, PAIRS[i][1]);
        setenv(name, "1", 1);
        CHECK_STR(find(), expected);
        unsetenv(name);
    }
}

UNIT_ALONE(environment, a_variable_that_resembles_none_is_reported_alone)
{
    static const char *const OTHERS[] = {"LOG", "A", "VERBOSE", "THREADS_OF_THE_PROGRAM"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++) {
        char name[64], expected[256];
        snprintf(name, sizeof name, "QUIRE_UNIT_%s", OTHERS[i]);
        snprintf(expected, sizeof expected, "%s is unknown and has no effect\n", name);
        setenv(name, "1", 1);
        CHECK_STR(find(), expected);
        unsetenv(name);
    }
    setenv("QUIRE_UNIT_", "1", 1);
    CHECK_STR(find(), "QUIRE_UNIT_ is unknown and has no effect\n");
}

UNIT_ALONE(environment, each_unknown_variable_has_a_sentence)
{
    setenv("QUIRE_UNIT_A", "1", 1);
    setenv("QUIRE_UNIT_FIT", "1", 1);
    setenv("QUIRE_UNIT_B", "1", 1);
    CHECK_HAS(find(), "QUIRE_UNIT_A is unknown and has no effect\n");
    CHECK_HAS(find(), "QUIRE_UNIT_B is unknown and has no effect\n");
    CHECK(!strstr(find(), "FIT"));
}

/* A parent can give a child any bytes as a name. */
UNIT_ALONE(environment, a_hostile_name_is_cut_and_printable)
{
    static char name[100000] = "QUIRE_UNIT_\x1b[31m\xc2\x9b";
    setenv(name, "1", 1);
    CHECK_STR(find(), "QUIRE_UNIT_?[31m?? is unknown and has no effect\n");
    unsetenv(name);
    size_t length = strlen(name);
    memset(name + length, 'x', sizeof name - 1 - length);
    setenv(name, "1", 1);
    CHECK_HAS(find(), "xxx is unknown and has no effect\n");
    CHECK_EQ(strlen(find()), QI_MAX_VARIABLE + strlen(" is unknown and has no effect\n"));
}
