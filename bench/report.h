/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * report.h - usage errors, the description of the machine, and the JSON document of the programs in
 * this folder.
 */
#ifndef QUIRE_BENCH_REPORT_H
#define QUIRE_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/spread.h"
#include "src/base/json.h"

enum { DEFAULT_REPS = 9, MAX_REPS = 99, EXIT_USAGE = 2 };

/* A program's name and its help text. */
typedef struct usage {
    const char *program;
    const char *text;
} usage;

/* Prints the error about a word of the command line and the help text, and exits. */
_Noreturn void usage_error(const usage *u, const char *what, const char *word);

/* Parses a number from 1 to `max`. Exits with a usage error if the text is invalid. */
uint64_t usage_number(const usage *u, const char *text, uint64_t max);

/* The number of online processors. */
uint64_t processor_count(void);

typedef struct document {
    qi_json json;
    const char *path; /* NULL means that nothing is written */
    FILE *file;
} document;

/*
 * Opens the file and an object with version, machine and repeats. Prints the error and returns
 * false if the file cannot be created.
 */
bool document_begin(document *d, const char *path, uint64_t reps);

/* Closes the object and the file. Returns the exit code of the program. */
int document_end(document *d, const char *program);

void report_clock(void); /* prints the clock and the cost of reading it */

void write_spread(qi_json *json, const char *key, spread s);

#endif
