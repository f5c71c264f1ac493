/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * libfuzzer.c - how a check ends a target of libFuzzer: it aborts, and libFuzzer keeps the input.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/check.h"

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    abort();
}
