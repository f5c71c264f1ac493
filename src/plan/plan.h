/*
 * plan.h - plans: offsets for ranges whose lifetimes are known before the first is used.
 *
 * Times are numbers in the order in which a program uses the ranges. A lifetime is half open: a
 * range that ends at a time, and one that begins there, may have the same bytes. The peak of a plan
 * is the largest end of a range.
 *
 * The functions have no state and take no lock: arrays in, arrays out. Their scratch memory comes
 * from `host` and is released before they return. Equal arguments give equal plans.
 */
#ifndef QUIRE_SRC_PLAN_PLAN_H
#define QUIRE_SRC_PLAN_PLAN_H

#include "src/base/host_memory.h"

typedef struct qi_plan_item {
    uint64_t size;        /* bytes, above 0 */
    uint64_t alignment;   /* the offset is a multiple of it, any number; 0: 1 */
    uint64_t first, last; /* it lives from `first` until before `last` */
} qi_plan_item;

/*
 * Checks items: sizes above 0, lifetimes that are not empty, and sums of sizes and alignments below
 * 2^63, so that no function of plans overflows. Fails with INVALID_ARGUMENT, which names the item.
 */
QUIRE_MUST_USE quire_result qi_plan_check_items(const qi_plan_item *items, uint32_t count);

/*
 * Checks a plan: each offset is a multiple of its alignment, each range ends at or before
 * `capacity` (0: anywhere), and ranges that live at one time share no byte. Independent of the
 * functions that make plans. The items must have been checked. Fails with INVALID_ARGUMENT,
 * OUT_OF_RANGE, OVERLAP, which name the items, and OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_plan_check(const qi_plan_item *items, const uint64_t *offsets,
                                          uint32_t count, uint64_t capacity, qi_host *host);

/* ---- sections: sections.c ------------------------------------------------------------------ */

/*
 * A section is a largest set of items that live at one time: no other time has these items and
 * more. Every time lies in a section or in a part of one. Item i lives in the sections from
 * begin[i] until before end[i].
 */
typedef struct qi_plan_sections {
    uint32_t item_count, count;
    uint32_t *begin, *end;
    uint64_t *loads; /* of each section: the sum of the sizes */
} qi_plan_sections;

/* Fails with OUT_OF_HOST_MEMORY; the sections are empty then. */
QUIRE_MUST_USE quire_result qi_plan_sections_make(const qi_plan_item *items, uint32_t count,
                                                  qi_host *host, qi_plan_sections *sections);
void qi_plan_sections_release(qi_plan_sections *sections, qi_host *host);

/* The largest load: no plan has a lower peak. */
uint64_t qi_plan_lower_bound(const qi_plan_sections *sections);

/* ---- plans --------------------------------------------------------------------------------- */

/*
 * Places the items in several orders, the largest first among others, each item at its lowest free
 * offset. Writes the offsets and the peak of the best plan, which is never above that of the order
 * by size. O(count^2). The items must have been checked, and the sections are theirs. Fails with
 * OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_plan_by_orders(const qi_plan_item *items,
                                              const qi_plan_sections *sections, qi_host *host,
                                              uint64_t *offsets, uint64_t *peak);

/* ---- files: read.c -------------------------------------------------------------------------- */

/* A part of a text. */
typedef struct qi_plan_id {
    const char *text;
    size_t length;
} qi_plan_id;

typedef struct qi_plan_file {
    uint32_t count;
    uint32_t room; /* elements of each array */
    qi_plan_item *items;
    uint64_t *offsets; /* NULL: the file has none */
    qi_plan_id *ids;   /* parts of the file's text, which must outlive them */
} qi_plan_file;

/*
 * Reads MiniMalloc's format: CSV whose header has the columns id, lower, upper and size, and may
 * have alignment and offset, in any order. The items are checked. `name` is for the messages. Fails
 * with BAD_FILE, which names the line, INVALID_ARGUMENT as qi_plan_check_items, and
 * OUT_OF_HOST_MEMORY; the file is empty then.
 */
QUIRE_MUST_USE quire_result qi_plan_read(const char *name, const char *text, size_t size,
                                         qi_host *host, qi_plan_file *file);
void qi_plan_file_release(qi_plan_file *file, qi_host *host);

#endif
