/*
 * unit.h - unit tests on Criterion, guarded against what Criterion lets pass.
 *
 * Criterion reports a leaking test as passed. UNIT(suite, name) therefore ends every test with two
 * checks of its own: nothing is left of what was allocated through unit_memory(), and, under a leak
 * sanitizer, nothing else is either. tests/unit/guard.c proves that both can fail.
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

/* Host memory callbacks that count; what is still held at the end fails the test. */
const quire_host_memory *unit_memory(void);

/* The counters behind them, to make a call fail. */
test_memory *unit_memory_state(void);

void unit_end(void);

#endif
