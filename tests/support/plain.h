/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plain.h - tests as plain programs, for what Criterion cannot run: thread sanitizer, millions of
 * steps, failures at every call. Each program prints TAP, one line per case, and ends at the first
 * failure.
 */
#ifndef QUIRE_TESTS_SUPPORT_PLAIN_H
#define QUIRE_TESTS_SUPPORT_PLAIN_H

#include "tests/support/check.h"
#include "tests/support/host_memory.h"

/* Runs one case and prints its line. */
void plain_case(const char *name, void (*body)(void));

/* Names the running part outside of cases, for the message of a failed check. */
void plain_begin(const char *name);

/* Reports a case that cannot run here, and prints the reason. */
void plain_skip(const char *name, const char *reason);

/* Checks for leaks if the program has a leak sanitizer, and prints the plan. Returns the exit
   status of the program. */
int plain_end(void);

/* A number from the command line or the environment ("--steps 1000"), or the given default. */
uint64_t plain_option(int argc, char **argv, const char *name, uint64_t otherwise);

#endif
