/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * unit.c - see unit.h: the checks at the end of a test, and the results of a test for Criterion.
 * unit_main.c reports them if all tests share one process.
 */
#include "tests/support/unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/result.h"
#include "tests/support/leaks.h"

static test_memory memory;
static pid_t process; /* of the running test, 0 between tests */
static char noted[64];

#ifndef UNIT_IN_ONE_PROCESS

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
{
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (unit_is_child()) { /* Criterion would never answer it */
        fprintf(stderr, "%s:%d: in a forked child: %s%s\n", file, line, text, unit_noted());
        _exit(1);
    }
    process = 0;
    cr_assert_fail("%s:%d: %s%s", file, line, text, unit_noted());
    __builtin_unreachable();
}

_Noreturn void unit_leave(const char *reason)
{
    cr_skip_test("%s", reason);
    __builtin_unreachable();
}

#endif

_Noreturn void unit_skip(const char *format, ...)
{
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    process = 0;
    unit_leave(reason);
}

void unit_note(const char *what, uint32_t number)
{
    snprintf(noted, sizeof noted, " (%s %u)", what, number);
}

const char *unit_noted(void)
{
    return noted;
}

const quire_host_memory *unit_memory(void)
{
    if (!memory.callbacks.allocate)
        test_memory_init(&memory);
    return &memory.callbacks;
}

test_memory *unit_memory_state(void)
{
    unit_memory();
    return &memory;
}

bool unit_is_child(void)
{
    return process && getpid() != process;
}

static void fail_early_end(void)
{
    if (!process || unit_is_child())
        return;
    fprintf(stderr, "# the test has ended its process\n");
    _exit(1);
}

void unit_begin(void)
{
    static const qi_error none;
    static bool has_handler;
    if (!has_handler)
        atexit(fail_early_end);
    has_handler = true;
    process = getpid();
    noted[0] = '\0';
    qi_error_restore(&none);
    test_memory_init(&memory);
}

void unit_end(void)
{
    if (memory.bytes || memory.blocks)
        check_failed(__FILE__, __LINE__, "%" PRIu64 " bytes in %" PRIu64 " blocks are left",
                     memory.bytes, memory.blocks);
    if (leaks_found())
        check_failed(__FILE__, __LINE__, "the leak sanitizer found leaks");
    process = 0;
}
