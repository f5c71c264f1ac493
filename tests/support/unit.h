/*
 * unit.h - unit tests on Criterion, with two checks that Criterion lacks.
 *
 * Criterion reports a leaking test as passed. UNIT(suite, name) therefore ends every test with two
 * checks: everything allocated through unit_memory() is released, and under a leak sanitizer
 * nothing else has leaked. tests/unit/guard.c proves that both can fail.
 */
#ifndef QUIRE_TESTS_SUPPORT_UNIT_H
#define QUIRE_TESTS_SUPPORT_UNIT_H

#include <criterion/criterion.h>

#include "tests/support/check.h"
#include "tests/support/host_memory.h"

#define UNIT(suite, name)                                                                          \
    static void suite##_##name(void);                                                              \
    Test(suite, name)                                                                              \
    {                                                                                              \
        suite##_##name();                                                                          \
        unit_end();                                                                                \
    }                                                                                              \
    static void suite##_##name(void)

/* Host memory callbacks that count; a block that is live at the end fails the test. */
const quire_host_memory *unit_memory(void);

/* The counters of these callbacks, which can make a call fail. */
test_memory *unit_memory_state(void);

void unit_end(void);

#endif
