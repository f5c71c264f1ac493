/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/page_policy.h - the page policy of a memory: how large its pages are, which allocations get
 * a page of their own, and which empty pages it keeps. Included by quire/memory.h, whose
 * quire_memory_options contain it. A policy of {0} suits most programs.
 */
#ifndef QUIRE_PAGE_POLICY_H
#define QUIRE_PAGE_POLICY_H

#include "quire/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which allocations get a dedicated page, that is, a page of their own. */
typedef enum quire_dedicated {
    QUIRE_DEDICATED_BY_SIZE = 0, /* those of dedicated_threshold bytes or more */
    QUIRE_DEDICATED_ALWAYS,      /* all */
    /* Only those for which the backend requires one. Its preference is ignored, and options that
       ask for a dedicated page are INVALID_ARGUMENT. */
    QUIRE_DEDICATED_NEVER
} quire_dedicated;

/* What growth_percent refers to. Only shared pages count, not dedicated ones. */
typedef enum quire_growth {
    QUIRE_GROWTH_LAST = 0, /* the shared page created last, live or not */
    /*
     * Page sizes are steps: first_page_size, then growth_percent more, and so on. A new page has
     * the smallest step above the largest live shared page. A memory without live shared pages
     * starts again at first_page_size. Without growth_percent there are two sizes: first_page_size
     * for a page that is alone, page_size for a page beside others.
     */
    QUIRE_GROWTH_LARGEST,
    /*
     * All bytes of live shared pages: a new page is this share of them, so that 100 doubles the
     * memory. A page that is the only one has first_page_size. Requires growth_percent.
     */
    QUIRE_GROWTH_RESERVED
} quire_growth;

/* A range of request sizes and the size of the pages created for them, instead of the next page
   size of the policy. */
typedef struct quire_page_class {
    /* The largest request of the class, in bytes with padding and rounding. Must be above that of
       the previous class. 0: this class and all after it are unused. */
    uint64_t max_request;
    uint64_t page_size; /* bytes, at least max_request */
} quire_page_class;

#define QUIRE_MAX_PAGE_CLASSES 4

/* The value of retained_empty_bytes that keeps every empty page until another page is created. */
#define QUIRE_RETAIN_ALL UINT64_MAX

/* The value of retained_empty_bytes that keeps no empty page: each is released by the call that
   empties it. */
#define QUIRE_RETAIN_NONE UINT64_C(1)

/*
 * How a memory creates and keeps pages. All sizes are in bytes and are rounded up to the page
 * granularity. A page always holds the request it is created for. Where the backend is out of
 * memory, quire halves the page size, down to what the request needs. It remembers the size that
 * the backend refused, until pages of the heap are destroyed or a limit is set: later requests
 * begin below it. quire/preset.h has the policies of other allocators.
 *
 * By default page sizes follow use: if page_size, first_page_size, growth_percent, growth, max_page
 * and max_pages are 0, the first page of a shard has 1 MiB. A further page is a share of the bytes
 * of all shared pages of the memory, from a twelfth to 30 percent of them, at least 1 MiB, at most
 * 32 MiB and at most an eighth of the heap. docs/policies.md has the exact rule. Set page_size for
 * pages of one size.
 */
typedef struct quire_page_policy {
    /* 0: pages that follow use; where another of the six fields is set, and with the linear fit:
       32 MiB or an eighth of the heap, whichever is less. */
    uint64_t page_size;
    uint64_t first_page_size; /* size of the first page; 0: page_size */
    /* 0: pages after the first have page_size. Otherwise each page is this much larger than what
       `growth` names, up to max_page, which must be above first_page_size. At most 1000. */
    uint32_t growth_percent;
    uint32_t max_pages; /* maximum number of live pages; 0: only the limit of the device */
    uint64_t max_page;  /* growth stops here; 0: the larger of page_size and first_page_size */
    quire_growth growth;
    /* Growth skips steps until the page is this many times as large as its request, or is the
       largest page. 0 or 1: no step is skipped. Requires growth_percent, excludes
       QUIRE_GROWTH_RESERVED. */
    uint32_t request_factor;
    /*
     * Page sizes are multiples of it, also if a large request determines the size; other sizes
     * occur only where the backend is out of memory. A power of two; 0 or a value below the
     * granularity of the backend means that granularity.
     */
    uint64_t page_granularity;
    quire_page_class classes[QUIRE_MAX_PAGE_CLASSES]; /* {0}: none; excludes ALWAYS */
    quire_dedicated dedicated;
    uint64_t dedicated_threshold; /* bytes; requests of this size or more get a dedicated page; 0:
                                     no threshold; only with BY_SIZE */
    uint64_t size_granularity;    /* request sizes are rounded up to a multiple of it; any number;
                                     0: no rounding */
    uint64_t extra_padding;       /* bytes added at the end of each request, before rounding */
    /*
     * Retention. The memory keeps empty pages, dedicated ones too, for later requests. It releases
     * empty pages before it creates a page: those of the shard, or those of all shards if the
     * backend refuses the page. These two fields bound what is kept until then: the total bytes of
     * empty pages (QUIRE_RETAIN_NONE, QUIRE_RETAIN_ALL), and the time that a page stays empty.
     * Each shard has an equal share of the bytes. If only one of them is 0, it is no bound.
     *
     * If both are 0, pages that have been empty for a second leave until a tenth of the memory's
     * bytes and one page are left. A program that uses its pages again each frame or step keeps
     * them; one that has ended a level or a model gives them back.
     *
     * The bytes are applied by a free that empties a page, the time by one in 16 frees, both by the
     * creation of a page and by quire_memory_trim. In an elastic memory one in 16 frees applies
     * both to the free chunks. No thread does it: a program that stops allocating and freeing calls
     * quire_memory_trim.
     *
     * The work of a single call is limited. A call that creates a page releases as many bytes as
     * its request needs and at most 32 further pages. A call that frees releases at most 32 pages
     * beyond a bound. Later calls release the rest. All empty pages are released before a request
     * is refused, by quire_memory_trim with a target of 0, and when the memory is destroyed. If the
     * device has no room for a page of another memory, empty pages of this one are released, too:
     * quire_memory_preallocate keeps pages from that.
     */
    uint64_t retained_empty_bytes;
    uint64_t retention_nanoseconds;
    uint64_t unused[4]; /* must be zero */
} quire_page_policy;

#ifdef __cplusplus
}
#endif

#endif
