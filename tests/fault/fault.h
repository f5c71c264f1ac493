/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fault.h - the harness of the fault tests. A fault test is a table of scenarios. Each scenario
 * runs once without a fault, which counts the calls that can fail, and then once for each of these
 * calls, which fails. A program adds its scenarios and a function that runs one with a fault.
 *
 *     fault-NAME [--scenario NUMBER] [--stride N] [--first INDEX] [--last INDEX]
 *
 * --scenario runs one scenario of the table. --stride N lets every N-th call fail; the first index
 * differs from sweep to sweep, so that a run reaches early and late calls. --first and --last bound
 * the indices. Not thread-safe.
 */
#ifndef QUIRE_TESTS_FAULT_FAULT_H
#define QUIRE_TESTS_FAULT_FAULT_H

#include "tests/support/plain.h"

/* The number of calls is unknown: a sweep ends at the first index that is not reached. */
#define FAULT_UNKNOWN UINT64_MAX

/* Runs a scenario while the call with this index (from 1) fails; returns whether it was reached. */
typedef bool fault_run(void *context, uint64_t call);

/* Reads the options and prints those that are not the default. */
void fault_begin(int argc, char **argv);

/*
 * Runs each scenario of a table as a case, or the one of --scenario. The first member of a scenario
 * is its name (const char *).
 */
void fault_table(const void *scenarios, size_t count, size_t size, void (*sweep)(const void *));

#define FAULT_TABLE(scenarios, sweep)                                                              \
    fault_table((scenarios), sizeof(scenarios) / sizeof *(scenarios), sizeof *(scenarios), (sweep))

/* Lets each of `calls` calls fail in turn, within the options; returns how many were reached. */
uint64_t fault_sweep(fault_run *run, void *context, uint64_t calls);

/* Whether a sweep lets every call fail: without a stride and bounds. */
bool fault_is_complete(void);

/* Whether the other cases of the program run: they do unless --scenario chose one scenario. */
bool fault_runs_all(void);

/* Prints how many calls failed and the plan; returns the exit status of the program. */
int fault_end(void);

#endif
