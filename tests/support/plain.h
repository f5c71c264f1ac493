/*
 * plain.h - tests as plain programs: what Criterion cannot run (thread sanitizer, millions of
 * steps, failures at every call). Each program prints TAP, one line per case, and ends at the first
 * failure.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLAIN_H
#define QUIRE_TESTS_SUPPORT_PLAIN_H

#include "tests/support/check.h"
#include "tests/support/host_memory.h"

/* Runs one case and prints its line. */
void plain_case(const char *name, void (*body)(void));

/* What runs now, outside of cases: named where a check fails. */
void plain_begin(const char *name);

/* A case that cannot run here; the reason is printed. */
void plain_skip(const char *name, const char *reason);

/* Looks for leaks, where the program has a leak sanitizer, and prints the plan; returns the exit
   status of the program. */
int plain_end(void);

/* A number from the command line or the environment ("--steps 1000"), or the given one. */
uint64_t plain_option(int argc, char **argv, const char *name, uint64_t otherwise);

#endif
