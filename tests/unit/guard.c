/*
 * guard.c - tests that must fail, each in a program of its own by GUARD_CASE: the proof that a unit
 * test that leaks, breaks a rule of C, or ends wrongly is not counted as passed.
 */
#include <stdlib.h>

#include "tests/support/unit.h"

#if GUARD_CASE == 1
UNIT(guard, a_wrong_value_fails)
{
    CHECK_EQ(1 + 1, 3);
}
#elif GUARD_CASE == 2
UNIT(guard, memory_of_the_callbacks_left_behind_fails)
{
    const quire_host_memory *memory = unit_memory();
    CHECK(memory->allocate(memory->user, 100, 64) != NULL);
}
#elif GUARD_CASE == 3
/* meaningful under a leak sanitizer only */
UNIT(guard, a_leak_fails)
{
    char *volatile leaked = malloc(100);
    CHECK(leaked != NULL);
    leaked = NULL;
}
#elif GUARD_CASE == 4
/* meaningful under the undefined behaviour sanitizer only */
UNIT(guard, a_signed_overflow_fails)
{
    volatile int large = 0x7fffffff;
    volatile int larger = large + 1;
    CHECK(larger != 0);
}
#endif
