/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * debug_pattern.h - spans of a page in checked builds: fills them with a byte, compares them with
 * it, and poisons them for the tools that watch host memory (base/poison.h).
 *
 * Called by checked.c and quarantine.c without a lock; the caller owns the span.
 * Host-visible pages are reached through their map, with flush or invalidate if the kind is not
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

/* Like the two functions above, for the first and the last QI_DEBUG_PATTERN_EDGE bytes of a
   span, or for all of a shorter span. */
bool qi_debug_pattern_put_edges(quire_memory *memory, qi_page *page, qi_span span,
                                unsigned char byte);

/* 128 KiB: bytes filled at each end. A large range costs a bounded time, and the pages of the
   operating system between its ends stay untouched. */
#define QI_DEBUG_PATTERN_EDGE (UINT64_C(128) << 10)

/* Allows or forbids a span for the tools. Does nothing on pages that are not mapped, or on
   demand only: other data could come to lie at a poisoned address. */
void qi_debug_pattern_unpoison(const qi_page *page, qi_span span);
void qi_debug_pattern_poison(const qi_page *page, qi_span span);

/* ---- corruption --------------------------------------------------------------------------- */

/*
 * Finds bytes of a checked memory that were written outside of any live allocation, describes the
 * finding and reports it.
 *
 * Called by checked.c and quarantine.c without a lock, for slots whose records do not change while
 * the function runs.
 */

typedef enum qi_corruption_place {
    QI_CORRUPTION_BEFORE,    /* in the red zone before the first byte */
    QI_CORRUPTION_AFTER,     /* in the red zone after the last byte */
    QI_CORRUPTION_AFTER_FREE /* in the bytes of a freed allocation */
} qi_corruption_place;

typedef struct qi_corruption {
    qi_corruption_place place;
    qi_difference difference;
} qi_corruption;

/* A sentence. Use within one expression, as qi_corruption_describe(...).text. */
typedef struct qi_corruption_sentence {
    char text[QI_CORRUPTION_TEXT];
} qi_corruption_sentence;

/* Compares the red zones of a slot, and the bytes of one in quarantine, with their patterns.
   Returns whether one differs; *corruption receives the first that does. */
bool qi_corruption_find(quire_memory *memory, uint32_t slot, qi_corruption *corruption);

/* Describes a finding with the name of the allocation. Takes the lock of its shard. */
qi_corruption_sentence qi_corruption_describe(quire_memory *memory, uint32_t slot,
                                              const qi_corruption *corruption);

/* Logs a sentence. Without a log sink it is printed to standard error, so that it is not missed. */
void qi_corruption_report(const quire_memory *memory, const char *sentence);

#endif
