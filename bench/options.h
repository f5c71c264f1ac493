/*
 * options.h - the command line of the programs of this folder: a rule for each option that says
 * where its value goes. --help is every program's.
 */
#ifndef QUIRE_BENCH_OPTIONS_H
#define QUIRE_BENCH_OPTIONS_H

#include "bench/report.h"
#include "bench/subjects.h"

/* One of the four is where the value goes. */
typedef struct option_rule {
    const char *name;
    uint64_t *number; /* from 1 to `most` */
    uint64_t most;
    patterns *list; /* repeatable */
    const char **text;
    bool *flag; /* takes no value */
} option_rule;

enum { MAX_OPTIONS = 15 };

/* Sets what is given; what is not keeps its value. Ends the program where it was called wrongly. */
void options_parse(const usage *u, const option_rule *rules, size_t count, int argc, char **argv);

#endif
