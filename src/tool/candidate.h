/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * candidate.h - the memory options that quire tune tries on traces: numbers and text, without a
 * device or a memory.
 */
#ifndef QUIRE_SRC_TOOL_CANDIDATE_H
#define QUIRE_SRC_TOOL_CANDIDATE_H

#include "quire/memory.h"

/* ---- candidates --------------------------------------------------------------------------- */

/* Fits crossed with page sizes and page policies. */

/*
 * Which empty pages a memory keeps until it creates the next page. Before it creates one it
 * destroys all empty pages.
 */
typedef enum retention {
    RETENTION_DEFAULT = 0, /* as quire_memory_options of {0} */
    RETENTION_NONE,        /* none */
    RETENTION_SOME         /* up to candidate.retained_bytes */
} retention;

typedef struct candidate {
    quire_fit fit;
    bool elastic; /* page_size is then the size of a chunk; 0: the default */
    retention retention;
    uint64_t page_size;       /* the maximum if page sizes double; 0: pages follow use */
    uint64_t first_page_size; /* page sizes double from here to page_size; 0 means they do not */
    /* A page is this share of the bytes of all pages, and the first page has first_page_size; 0:
       other growth. With page_size 0. */
    uint32_t reserved_percent;
    uint64_t dedicated_threshold; /* 0 means none */
    uint64_t retained_bytes;      /* 0 unless retention is RETENTION_SOME */
} candidate;

/* Stands for every fit that can create another page in candidate_scope: all but linear. */
#define ANY_FIT ((quire_fit)UINT32_MAX)

/* The properties of trace, device and command line that the candidates depend on. */
typedef struct candidate_scope {
    /* of the trace */
    uint64_t peak_bytes; /* requested bytes that are live at the same time; above 0 */
    uint64_t largest;    /* size of the largest request */
    /* of the device */
    uint64_t least_page; /* smallest page in bytes */
    uint64_t max_page;   /* largest page in bytes */
    uint64_t max_pages;  /* maximum number of pages; 0 means no limit */
    /* of the command line */
    quire_fit fit;      /* or ANY_FIT */
    bool elastic;       /* elastic memories too */
    uint64_t page_size; /* 0 means several sizes */
} candidate_scope;

/*
 * 3 fits with pages that follow use, or grow by one of 3 shares, and 3 retentions; 3 fits, 8 page
 * sizes, page sizes doubling or not, a dedicated threshold or not, 3 retentions; 4 sizes of chunks
 * and 3 retentions.
 */
enum { MAX_CANDIDATES = 3 * (1 + 3) * 3 + 3 * 8 * 2 * 2 * 3 + 4 * 3 };

/*
 * Fills the list and returns its length. The order is fixed. Of two candidates that differ in one
 * option, the one that leaves it at its default comes first. The linear fit has one page and
 * refuses a run with a higher peak, so it is listed only if the scope names it. Without a page size
 * in the scope, the list is then empty if no page of the device can hold the peak of the trace.
 */
size_t make_candidates(const candidate_scope *scope, candidate list[MAX_CANDIDATES]);

/* The number of settings that differ from the library's defaults: 0 to 6. */
uint32_t candidate_options_set(const candidate *c);

/* The options of a memory for the candidate. */
quire_memory_options candidate_options(const candidate *c);

/* Returned by value. Use it as candidate_c_text(c).text within one expression. */
typedef struct candidate_text {
    char text[640];
} candidate_text;

/* Describes the size of a page, or of an elastic memory's chunk: bytes with their unit, "by use",
   "default", or the share by which pages grow as "+12 %". */
candidate_text candidate_pages_text(const candidate *c);

/* Describes growth, threshold and retention in words; "default" if none of them is set. */
candidate_text candidate_policy_text(const candidate *c);

/* A C initializer of quire_memory_options that sets only what differs from the defaults. */
candidate_text candidate_c_text(const candidate *c);

#endif
