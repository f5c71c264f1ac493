/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * options.h - parses the command line of the programs in this folder. A rule per option names the
 * target of its value. Every program has --help.
 */
#ifndef QUIRE_BENCH_OPTIONS_H
#define QUIRE_BENCH_OPTIONS_H

#include "bench/report.h"
#include "bench/subjects.h"

/* An option with exactly one of the four targets. */
typedef struct option_rule {
    const char *name;
    uint64_t *number; /* from 1 to `max` */
    uint64_t max;
    patterns *list; /* repeatable */
    const char **text;
    bool *flag; /* takes no value */
} option_rule;

enum { MAX_OPTIONS = 15 };

/* Sets the targets of the given options. Exits the program after --help or a usage error. */
void options_parse(const usage *u, const option_rule *rules, size_t count, int argc, char **argv);

#endif
