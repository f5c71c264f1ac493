/*
 * candidate.h - the ways to set up a memory that quire tune tries on a trace: fits crossed with
 * page sizes and page policies. Numbers and text only: no device, no memory.
 */
#ifndef QUIRE_SRC_CLI_CANDIDATE_H
#define QUIRE_SRC_CLI_CANDIDATE_H

#include "quire/memory.h"

/* What becomes of empty pages until the next page is made, before which all are given back. */
typedef enum retention {
    RETENTION_DEFAULT = 0, /* kept */
    RETENTION_NONE,        /* given back at once */
    RETENTION_SOME         /* kept up to so many bytes */
} retention;

typedef struct candidate {
    quire_fit fit;
    retention retention;
    uint64_t page_size;           /* the largest one's where pages grow; never 0 */
    uint64_t first_page_size;     /* pages double from here on up to page_size; 0: they do not */
    uint64_t dedicated_threshold; /* 0: none */
    uint64_t retained_bytes;      /* of RETENTION_SOME */
    bool is_default_size;
} candidate;

/* Every fit, for candidate_scope. */
#define ANY_FIT ((quire_fit)UINT32_MAX)

/* What the candidates depend on. */
typedef struct candidate_scope {
    uint64_t peak_bytes; /* of the trace: most live at one time, and the largest of them */
    uint64_t largest;
    uint64_t default_page_size; /* of the device: what a memory without options has */
    uint64_t least_page;        /* no page is smaller, or larger */
    uint64_t max_page;
    uint64_t max_pages; /* 0: no limit */
    quire_fit fit;      /* what the caller wants: this fit, or ANY_FIT */
    uint64_t page_size; /* this page size; 0: several */
} candidate_scope;

/* 3 fits, 9 page sizes, grown or not, dedicated or not, 3 retentions; and 3 linear ones. */
enum { MAX_CANDIDATES = 3 * 9 * 2 * 2 * 3 + 3 };

/*
 * Fills the list and returns its length. The order is fixed: what sets fewer options is no later
 * than what differs from it in that alone. Linear candidates are there where one page can hold
 * everything that the trace has live at one time.
 */
size_t make_candidates(const candidate_scope *scope, candidate list[MAX_CANDIDATES]);

/* How many decisions differ from the library's defaults; 0: it is the default. */
uint32_t candidate_options_set(const candidate *c);

/* The options of a memory that is set up so. */
quire_memory_options candidate_options(const candidate *c);

/* Use as candidate_c_text(c).text within one expression. */
typedef struct candidate_text {
    char text[512];
} candidate_text;

/* Growth, threshold and retention in words; "default" when all three are. */
candidate_text candidate_policy_text(const candidate *c);

/* A C initializer of quire_memory_options that sets what differs from the defaults. */
candidate_text candidate_c_text(const candidate *c);

#endif
