/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plain.c - see plain.h.
 */
#include "tests/support/plain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/leaks.h"

static int cases;
static const char *running;

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
{
    fflush(stdout);
    fprintf(stderr, "# %s:%d: ", file, line);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    printf("not ok %d - %s\n1..%d\n", cases + 1, running ? running : "start", cases + 1);
    fflush(stdout);
    exit(1);
}

void plain_begin(const char *name)
{
    running = name;
}

void plain_case(const char *name, void (*body)(void))
{
    running = name;
    body();
    printf("ok %d - %s\n", ++cases, name);
    fflush(stdout);
}

void plain_skip(const char *name, const char *reason)
{
    printf("ok %d - %s # SKIP %s\n", ++cases, name, reason);
    fflush(stdout);
}

int plain_end(void)
{
    plain_begin("the end");
    if (leaks_found()) /* once, because it reads all memory, a driver's for example */
        check_failed(__FILE__, __LINE__, "the leak sanitizer found leaks");
    printf("1..%d\n", cases);
    return 0;
}

uint64_t plain_option(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, name))
            return strtoull(argv[i + 1], NULL, 0);
    return otherwise;
}
