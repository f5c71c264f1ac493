/*
 * bench.h - what the parts of bench_space share: what was asked for, where results go.
 *
 * Each part measures one family of workloads on all subjects that it suits, prints a block of text
 * for each workload as soon as it is done, and adds rows to its array of the JSON document.
 */
#ifndef QUIRE_BENCH_BENCH_H
#define QUIRE_BENCH_BENCH_H

#include "bench/report.h"
#include "bench/subjects.h"
#include "src/cli/workload.h"

enum { SLOW_SLOTS = 2048 };

typedef struct bench {
    subject_list subjects;
    patterns wanted_subjects, unwanted_subjects, wanted_workloads;
    uint64_t reps;      /* of each speed measurement */
    uint64_t jobs;      /* measurements of fragmentation, which no clock enters, at a time */
    uint64_t max_steps; /* of a ramp or a fill */
    const char *data;   /* folder of further workloads, or NULL */
    document out;
} bench;

/* A set of subjects, by kind. */
enum {
    TAKE_SPACES = 1 << SUBJECT_SPACE,
    TAKE_PEERS = 1 << SUBJECT_PEER,
    TAKE_REFERENCES = 1 << SUBJECT_REFERENCE,
    TAKE_HEAPS = 1 << SUBJECT_HEAP,
    TAKE_FLOOR = 1 << SUBJECT_FLOOR,
    TAKE_BATCHES = 1 << 16 /* those that free several at once too: where that makes a difference */
};

/* The subjects that are present, asked for, and of the kinds. */
roster roster_of(const bench *b, unsigned kinds);

/* The first VMA block, to which ratios are given; NULL: not present. */
const subject *yardstick(const bench *b);

/* ---- the parts ---------------------------------------------------------------------------- */

void measure_speed(bench *b);         /* speed.c: nanoseconds a pair, metadata */
void measure_latency(bench *b);       /* latency.c: percentiles of single calls */
void measure_fragmentation(bench *b); /* fragmentation.c: ramps and fills */
void measure_arenas(bench *b);        /* arenas.c: the smallest arena a workload runs in */
void measure_adversaries(bench *b);   /* adversaries.c: layouts that make a search long */

/* count.c: plays a workload once for an instruction counter; the exit code. */
int count_calls(const bench *b, const char *workload_name, const char *subject_name);

#endif
