/*
 * report.h - what the programs of this folder have in common besides their measurements: numbers on
 * the command line, what is said of the machine, the JSON document.
 */
#ifndef QUIRE_BENCH_REPORT_H
#define QUIRE_BENCH_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/spread.h"
#include "src/base/json.h"

enum { DEFAULT_REPS = 9, MAX_REPS = 99, EXIT_USAGE = 2 };

/* How a program was told to run and how to say that it was told wrong. */
typedef struct usage {
    const char *program;
    const char *text;
} usage;

/* Tells what is wrong with which word, and how the program is called; ends it. */
_Noreturn void usage_error(const usage *u, const char *what, const char *word);

/* A number from 1 to `most`. Ends the program with the usage when the text is none. */
uint64_t usage_number(const usage *u, const char *text, uint64_t most);

/* Processors that are there. */
uint64_t processor_count(void);

typedef struct document {
    qi_json json;
    const char *path; /* NULL: written nowhere */
    FILE *file;
} document;

/* Begins an object with version, machine and repeats in it; false when the file cannot be made. */
bool document_begin(document *d, const char *path, uint64_t reps);

/* Ends it; the exit code of the program. */
int document_end(document *d, const char *program);

void report_clock(void); /* a line on what times are taken with */

void write_spread(qi_json *json, const char *key, spread s);

#endif
