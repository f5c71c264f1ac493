/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory.h - the options and the parts of bench_memory, bench_vulkan and bench_cuda.
 *
 * Each part measures one family on the suitable memories, prints a block of text and adds rows to
 * its array of the JSON document.
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
    uint64_t threads;    /* maximum number of threads */
    uint64_t max_pairs;  /* pairs timed in one repeat */
    uint64_t latency_ms; /* of the slow driver */
    uint64_t patience_s; /* waiting for idle processors before a repeat on a contended lock */
    document out;
} memory_bench;

/* The subjects that are present, requested, and shared in one of the given ways (TAKE_ bits). */
roster memories_of(const memory_bench *b, unsigned sharing);

/* As memories_of, without the subjects that differ only in their VMA strategy. */
roster plain_memories_of(const memory_bench *b, unsigned sharing);

enum {
    TAKE_ONE = 1 << SHARE_ONE,
    TAKE_STREAM = 1 << SHARE_STREAM,
    TAKE_ANY = 1 << SHARE_ONE | 1 << SHARE_LOCK | 1 << SHARE_SHARDS | 1 << SHARE_NOTHING
};

/* ---- the parts ---------------------------------------------------------------------------- */

/* memory_pages.c: cost by number of pages, as an array of the document named `part` */
void measure_pages(memory_bench *b, const char *part);
void measure_threads(memory_bench *b);      /* memory_threads.c: throughput of several threads */
void measure_locks(memory_bench *b);        /* memory_locks.c: cost of an uncontended lock */
void measure_lock_latency(memory_bench *b); /* lock_latency.c: waiting for a contended lock */
void measure_transient(memory_bench *b);    /* memory_transient.c: driver calls in a steady state */
void measure_slow(memory_bench *b);         /* memory_slow.c: waiting during page creation */
void measure_find(memory_bench *b);         /* memory_find.c: look-ups by address */
void measure_free_at(memory_bench *b);      /* memory_free_at.c: frees by address */
void measure_record(memory_bench *b);       /* memory_record.c: the cost of a recording */
void measure_chunks(memory_bench *b);       /* memory_chunks.c: growth of elastic memories */
void measure_compaction(memory_bench *b);   /* memory_compaction.c: holes that compaction ends */
void measure_fill(memory_bench *b);         /* memory_fill.c: refusals near a limit */
void measure_vulkan_writes(memory_bench *b); /* vulkan_writes.c: small writes to device memory */

#endif
