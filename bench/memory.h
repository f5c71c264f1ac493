/*
 * memory.h - what the parts of bench_memory and bench_vulkan share: what was asked for, where
 * results go.
 *
 * Each part measures one family on the memories that it suits, prints a block of text as soon as it
 * is done and adds rows to its array of the JSON document.
 */
#ifndef QUIRE_BENCH_MEMORY_H
#define QUIRE_BENCH_MEMORY_H

#include "bench/memories.h"
#include "bench/report.h"
#include "bench/subjects.h"

typedef struct memory_bench {
    subject_list subjects;
    patterns wanted_subjects, unwanted_subjects, wanted_families;
    uint64_t reps;
    uint64_t threads;    /* most at a time */
    uint64_t max_pairs;  /* timed in one repeat */
    uint64_t latency_ms; /* of the slow driver */
    document out;
} memory_bench;

/* Those present and asked for that are shared in one of the ways (bits of memory_sharing). */
roster memories_of(const memory_bench *b, unsigned sharing);

/* Without those that differ from another one by their strategy alone. */
roster plain_memories_of(const memory_bench *b, unsigned sharing);

enum {
    TAKE_ONE = 1 << SHARE_ONE,
    TAKE_STREAM = 1 << SHARE_STREAM,
    TAKE_ANY = 1 << SHARE_ONE | 1 << SHARE_SHARDS | 1 << SHARE_NOTHING
};

/* ---- the parts ---------------------------------------------------------------------------- */

/* memory_pages.c: cost against the number of pages, as an array of the document named `part` */
void measure_pages(memory_bench *b, const char *part);
void measure_threads(memory_bench *b);   /* memory_threads.c: throughput of several threads */
void measure_locks(memory_bench *b);     /* memory_locks.c: a lock that nobody else wants */
void measure_transient(memory_bench *b); /* memory_transient.c: driver calls in a steady state */
void measure_slow(memory_bench *b);      /* memory_slow.c: who waits while a page is made */

#endif
