/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * child.h - how a forked child reports success: by a signal. Its heap is a copy of its parent's. A
 * leak check at exit (valgrind) would report the blocks of a process that never frees them.
 */
#ifndef QUIRE_TESTS_SUPPORT_CHILD_H
#define QUIRE_TESTS_SUPPORT_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Ends the calling child. */
static inline void child_end(bool is_well)
{
    if (is_well)
        kill(getpid(), SIGKILL);
    _exit(1);
}

/* Waits for the end of a child; returns whether it succeeded. */
static inline bool child_was_well(pid_t child)
{
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGKILL;
}

/* Calls a function in a child, for at most so many seconds. Returns whether the child succeeded. */
static inline bool child_calls(void (*body)(void), unsigned patience)
{
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        alarm(patience);
        body();
        child_end(true);
    }
    return child_was_well(child);
}

#endif
