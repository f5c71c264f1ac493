/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * guard.c - tests that must fail. They prove that a unit test that leaks, breaks a rule of C, or
 * ends wrongly is not counted as passed. tests/unit/meson.build runs each one alone.
 */
#include <signal.h>
#include <stdlib.h>

#include "tests/support/unit.h"

UNIT(guard, wrong_value)
{
    CHECK_EQ(1 + 1, 3);
}

UNIT(guard, lost_callback_memory)
{
    const quire_host_memory *memory = unit_memory();
    CHECK(memory->allocate(memory->user, 100, 64) != NULL);
}

UNIT(guard, early_end)
{
    exit(0);
}

UNIT_ALONE(guard, early_end_alone)
{
    exit(0);
}

UNIT_ALONE(guard, signal_alone)
{
    raise(SIGKILL);
}

/* Fails only under a leak sanitizer. */
UNIT(guard, leak)
{
    char *volatile leaked = malloc(100);
    CHECK(leaked != NULL);
    leaked = NULL;
}

/* Fails only under the undefined behaviour sanitizer. */
UNIT(guard, signed_overflow)
{
    volatile int large = 0x7fffffff;
    volatile int larger = large + 1;
    CHECK(larger != 0);
}
