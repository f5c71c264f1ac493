/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * bench.h - the options and the parts of bench_space.
 *
 * Each part measures one family of workloads on all suitable subjects. After each workload it
 * prints a block of text and adds rows to its array of the JSON document.
 */
#ifndef QUIRE_BENCH_BENCH_H
#define QUIRE_BENCH_BENCH_H

#include "bench/report.h"
#include "bench/subjects.h"
#include "bench/workload.h"

enum { SLOW_SLOTS = 2048 };

typedef struct bench {
    subject_list subjects;
    patterns wanted_subjects, unwanted_subjects, wanted_workloads;
    uint64_t reps;      /* repeats of each speed measurement */
    uint64_t jobs;      /* parallel measurements of fragmentation, which read no clock */
    uint64_t max_steps; /* of a ramp or a fill */
    const char *data;   /* folder of further workloads, or NULL */
    document out;
} bench;

/* Kinds of subjects, for roster_of (selection.c). */
enum {
    TAKE_SPACES = 1 << SUBJECT_SPACE,
    TAKE_PEERS = 1 << SUBJECT_PEER,
    TAKE_REFERENCES = 1 << SUBJECT_REFERENCE,
    TAKE_HEAPS = 1 << SUBJECT_HEAP,
    TAKE_FLOOR = 1 << SUBJECT_FLOOR,
    TAKE_BATCHES =
        1 << 16 /* includes subjects with free_batch, for workloads that free in groups */
};

/* The subjects that are present, requested, and of the given kinds. */
roster roster_of(const bench *b, unsigned kinds);

/* The first VMA block, the base of the ratios; NULL if it is absent. */
const subject *yardstick(const bench *b);

/* ---- the parts ---------------------------------------------------------------------------- */

void measure_speed(bench *b);         /* speed.c: nanoseconds per pair, metadata */
void measure_latency(bench *b);       /* latency.c: percentiles of single calls */
void measure_fragmentation(bench *b); /* fragmentation.c: ramps and fills */
void measure_arenas(bench *b);        /* arenas.c: the smallest arena that a workload fits in */
void measure_adversaries(bench *b);   /* adversaries.c: layouts with long searches */

#endif
