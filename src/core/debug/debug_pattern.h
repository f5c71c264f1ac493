/*
 * pattern.h - spans of a page in checked builds: filled with one byte, compared with it, and
 * opened or shut to the tools that watch host memory (base/poison.h).
 *
 * Called by checked.c, harm.c and quarantine.c, without a lock; whoever calls owns the span.
 * Pages that are mapped are reached by their pointer, with flush or invalidate where the kind is
 * not coherent, all others by the backend's copies. A failure of the backend is not passed on and
 * leaves the thread's last error as it is: watching must not make a call fail that would succeed
 * without it.
 */
#ifndef QUIRE_SRC_CORE_DEBUG_DEBUG_PATTERN_H
#define QUIRE_SRC_CORE_DEBUG_DEBUG_PATTERN_H

#include "src/core/state/memory.h"

/*
 * The bytes of fresh memory make NaN of every float format and -1 of every integer, so that using
 * what was never written shows in the results; those of freed memory make NaN of half precision
 * and -4.2e37 of single.
 */
enum { QI_FRESH = 0xff, QI_FREED = 0xfd, QI_ZONE = 0xb5 };

/* Bytes of a page from `begin` up to, not including, `end`. */
typedef struct qi_span {
    uint64_t begin, end;
} qi_span;

/* Where a span differs from what was written there. */
typedef struct qi_difference {
    uint64_t at;    /* the first byte of the page that does */
    uint64_t count; /* how many do */
    unsigned char value;
} qi_difference;

/* The span stays open. False: it could not be written. */
bool qi_debug_pattern_put(quire_memory *memory, const qi_page *page, qi_span span,
                          unsigned char byte);

/*
 * Looks for bytes that differ; false where all are the same or they cannot be read. The span is
 * shut afterwards. `beside_live`: the caller's own bytes may lie in the same atom, written by the
 * host and not flushed, and must not be invalidated.
 */
bool qi_debug_pattern_differs(quire_memory *memory, const qi_page *page, qi_span span,
                              unsigned char byte, bool beside_live, qi_difference *difference);

/* The same for both ends of a span, as far in as QI_DEBUG_PATTERN_EDGE: of a short one, for all. */
bool qi_debug_pattern_put_edges(quire_memory *memory, const qi_page *page, qi_span span,
                                unsigned char byte);
bool qi_debug_pattern_edges_differ(quire_memory *memory, const qi_page *page, qi_span span,
                                   unsigned char byte, bool beside_live, qi_difference *difference);

/* Bytes filled at each end, so that a large range costs no more than a bounded time and no RAM. */
#define QI_DEBUG_PATTERN_EDGE (UINT64_C(128) << 10)

/* Lets the tools know that a span may be used, or not. Nothing on pages that are not mapped. */
void qi_debug_pattern_open(const qi_page *page, qi_span span);
void qi_debug_pattern_shut(const qi_page *page, qi_span span);

#endif
