/*
 * debug_pattern.h - spans of a page in checked builds: fills them with a byte, compares them with
 * it, and poisons them for the tools that watch host memory (base/poison.h).
 *
 * Called by checked.c, corruption.c and quarantine.c without a lock; the caller owns the span.
 * Host-visible pages are reached through their map, with flush or invalidate where the kind is not
 * coherent; all others through the backend's copies. A failure of the backend is not returned, and
 * the thread's last error stays: a check must not fail a call that succeeds without the check.
 */
#ifndef QUIRE_SRC_CORE_DEBUG_DEBUG_PATTERN_H
#define QUIRE_SRC_CORE_DEBUG_DEBUG_PATTERN_H

#include "src/core/state/memory.h"

/*
 * Fresh memory reads as NaN in every float format and as -1 in every integer, so that the use of
 * bytes that were never written shows in the results. Freed memory reads as NaN in half precision
 * and as -4.2e37 in single precision.
 */
enum { QI_FRESH = 0xff, QI_FREED = 0xfd, QI_ZONE = 0xb5 };

/* Bytes of a page from `begin` up to `end`, which is not included. */
typedef struct qi_span {
    uint64_t begin, end;
} qi_span;

/* How a span differs from its pattern. */
typedef struct qi_difference {
    uint64_t at;         /* position in the page of the first byte that differs */
    uint64_t count;      /* bytes that differ */
    unsigned char value; /* of the first one */
} qi_difference;

/* Fills a span, which stays unpoisoned. Returns false if it could not be written. */
bool qi_debug_pattern_put(quire_memory *memory, qi_page *page, qi_span span, unsigned char byte);

/*
 * Compares a span with a byte. Returns false if all bytes are equal, and if they cannot be read.
 * Poisons the span afterwards. `beside_live`: the same atom may hold bytes of the caller that the
 * host wrote and did not flush; that atom is then not invalidated.
 */
bool qi_debug_pattern_differs(quire_memory *memory, qi_page *page, qi_span span, unsigned char byte,
                              bool beside_live, qi_difference *difference);

/* Like the two functions above, for the first and the last QI_DEBUG_PATTERN_EDGE bytes of a
   span, or for all of a shorter span. */
bool qi_debug_pattern_put_edges(quire_memory *memory, qi_page *page, qi_span span,
                                unsigned char byte);
bool qi_debug_pattern_edges_differ(quire_memory *memory, qi_page *page, qi_span span,
                                   unsigned char byte, bool beside_live, qi_difference *difference);

/* 128 KiB: bytes filled at each end. A large range costs a bounded time, and the pages of the
   operating system between its ends stay untouched. */
#define QI_DEBUG_PATTERN_EDGE (UINT64_C(128) << 10)

/* Allows or forbids a span for the tools. Does nothing on pages that are not mapped, or on
   demand only: other data could come to lie at a poisoned address. */
void qi_debug_pattern_unpoison(const qi_page *page, qi_span span);
void qi_debug_pattern_poison(const qi_page *page, qi_span span);

#endif
