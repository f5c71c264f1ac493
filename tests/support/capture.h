/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * capture.h - what a test writes to the standard error stream. UNIT runs each test in a process of
 * its own.
 */
#ifndef QUIRE_TESTS_SUPPORT_CAPTURE_H
#define QUIRE_TESTS_SUPPORT_CAPTURE_H

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

typedef struct capture {
    int before; /* the stream as it was */
    FILE *file;
    char text[16384];
} capture;

/* From now on the stream goes to a file. Returns whether that succeeded. */
static inline bool capture_start(capture *c)
{
    fflush(stderr);
    c->before = dup(STDERR_FILENO);
    c->file = tmpfile();
    return c->before >= 0 && c->file && dup2(fileno(c->file), STDERR_FILENO) >= 0;
}

/* Restores the stream, and returns what was written since capture_start. */
static inline const char *capture_end(capture *c)
{
    fflush(stderr);
    dup2(c->before, STDERR_FILENO);
    close(c->before);
    rewind(c->file);
    c->text[fread(c->text, 1, sizeof c->text - 1, c->file)] = 0;
    fclose(c->file);
    return c->text;
}

#endif
