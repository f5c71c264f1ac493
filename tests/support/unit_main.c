/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * unit_main.c - runs the unit tests of a program in one process, those of UNIT_ALONE first and
 * otherwise in their order, and prints TAP. It ends at the first failure.
 *
 * usage: PROGRAM [--filter=SUITE/NAME]     with the patterns of a shell
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/unit.h"

enum { FAILED = 1 }; /* an exit status */

static unit_test *first, **end = &first, *running;
static int number;         /* of the running test */
static jmp_buf after_test; /* where a test that is skipped goes on */
static char reason[512];   /* why it is skipped */

void unit_add(unit_test *test)
{
    *end = test;
    end = &test->next;
}

static void print_result(const char *result)
{
    printf("%s %d - %s::%s", result, number, running->suite, running->name);
}

_Noreturn void check_failed(const char *file, int line, const char *format, ...)
{
    const bool is_child = unit_is_child();
    fflush(stdout);
    fprintf(stderr, "# %s:%d: %s", file, line, is_child ? "in a forked child: " : "");
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "%s\n", unit_noted());
    if (is_child)
        _exit(FAILED);
    print_result("not ok");
    printf("\n1..%d\n", number);
    fflush(stdout);
    _exit(FAILED); /* without the leak check at exit, because the test has not ended */
}

_Noreturn void unit_leave(const char *why)
{
    snprintf(reason, sizeof reason, "%s", why);
    longjmp(after_test, 1);
}

static void run(void)
{
    unit_begin();
    if (!setjmp(after_test)) {
        running->body();
        unit_end();
        print_result("ok");
        printf("\n");
    } else {
        print_result("ok");
        printf(" # SKIP %s\n", reason);
    }
    fflush(stdout);
}

/* In a process of its own, which prints the result unless a signal ends it. */
static void run_alone(void)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        run();
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == FAILED)
        _exit(FAILED);
    if (status)
        check_failed(__FILE__, __LINE__, "the test's process ended with status %d", status);
}

static bool is_chosen(const unit_test *test, const char *pattern)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", test->suite, test->name);
    return !pattern || !fnmatch(pattern, path, 0);
}

static void run_chosen(const char *pattern, bool is_alone, void (*run_one)(void))
{
    for (running = first; running; running = running->next)
        if (running->is_alone == is_alone && is_chosen(running, pattern)) {
            number++;
            run_one();
        }
}

int main(int argc, char **argv)
{
    static const char option[] = "--filter=";
    const char *pattern = NULL;
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], option, sizeof option - 1)) {
            fprintf(stderr, "usage: %s [--filter=SUITE/NAME]\n", argv[0]);
            return 2;
        }
        pattern = argv[i] + sizeof option - 1;
    }
    run_chosen(pattern, true, run_alone);
    run_chosen(pattern, false, run);
    printf("1..%d\n", number);
    return 0;
}
