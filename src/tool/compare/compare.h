/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compare.h - what quire compare finds in two traces, and how it writes the findings.
 */
#ifndef QUIRE_SRC_TOOL_COMPARE_COMPARE_H
#define QUIRE_SRC_TOOL_COMPARE_COMPARE_H

#include "src/base/histogram.h"
#include "src/tool/replay_setup.h"

enum { SIDE_A, SIDE_B, SIDE_COUNT };

/* Class k has the sizes above 2^(k-1), up to 2^k bytes. */
enum { SIZE_CLASSES = 65 };

/* What a trace says without a replay. */
typedef struct census {
    quire_trace_info info;
    uint64_t bytes; /* of all allocations; UINT64_MAX if the sum is larger */
    uint64_t ranges_at_peak;
    uint64_t sizes[SIZE_CLASSES]; /* allocations of each class */
    qi_histogram lifetime_ns;     /* of the ranges that are freed */
    qi_histogram lifetime_events; /* likewise: events from the allocation to the free */
} census;

/* What the ranges of one name have on one side. */
typedef struct name_share {
    uint64_t allocations; /* in the whole trace */
    uint64_t peak_ranges; /* live at the peak of the trace */
    uint64_t peak_bytes;  /* theirs, as requested */
} name_share;

typedef struct name_row {
    const char *name; /* not terminated; valid as long as the traces */
    size_t length;
    name_share shares[SIDE_COUNT];
} name_row;

typedef struct findings {
    census sides[SIDE_COUNT];
    name_row *names; /* largest difference at the peaks first, then by name */
    size_t name_count;
} findings;

/*
 * Reads two traces. With `first_parts`, a name ends before the first '/', '.' or ':' that follows
 * another character. Prints the error and returns false without host memory.
 */
bool find_differences(const quire_trace *const traces[SIDE_COUNT], bool first_parts, findings *f);

/* Frees the names. Zeroed findings are allowed. */
void release_findings(findings *f);

/* The bytes by which B differs from A at the peaks. */
uint64_t peak_difference(const name_row *row);

/* The largest size of a class. */
uint64_t class_limit(size_t class);

/* ---- writing ------------------------------------------------------------------------------ */

/* Both replays had the same memory options. */
typedef struct comparison {
    replay_setup setups[SIDE_COUNT];
    findings findings;
    quire_replay_report reports[SIDE_COUNT];
    quire_memory_info memory; /* before the first event */
    uint64_t top;             /* names that the text and the page list; 0: all */
    char *pages[SIDE_COUNT];  /* of write_html; NULL: not wanted */
} comparison;

void print_comparison(const comparison *c);
quire_result write_comparison(const comparison *c);

/* Writes an HTML page with both pages side by side below the largest differences of names. */
quire_result write_comparison_page(void *comparison, quire_sink sink, void *user);

#endif
