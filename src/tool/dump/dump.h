/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * dump.h - the JSON of a live memory or device (docs/formats.md): its reader, and its page.
 *
 * quire_memory_write_json and quire_device_write_json write a moment of a running program. It
 * becomes a course with that moment alone: every page and every range begins at moment 0 and stays.
 */
#ifndef QUIRE_SRC_TOOL_DUMP_DUMP_H
#define QUIRE_SRC_TOOL_DUMP_DUMP_H

#include "quire/device.h"
#include "src/tool/import/import.h"
#include "src/tool/page/course.h"

/* ---- statistics --------------------------------------------------------------------------- */

typedef enum dump_unit { DUMP_COUNT, DUMP_BYTES, DUMP_LIMIT, DUMP_SHARE } dump_unit;

/* A member of "stats"; those of its object "fragmentation" begin with a dot. */
typedef struct dump_stat {
    const char *key;
    const char *what; /* in the table of the page */
    dump_unit unit;
} dump_stat;

enum { DUMP_STAT_COUNT = 34 };

extern const dump_stat dump_stats[DUMP_STAT_COUNT]; /* in the order of the table */

typedef struct dump_value {
    bool is_there;
    uint64_t number; /* unless it is a share */
    double share;
} dump_value;

/* ---- the dump ----------------------------------------------------------------------------- */

enum { DUMP_MOST_FLAGS = 128, DUMP_MOST_WORD = 16 };

typedef struct dump_memory {
    char *name; /* printable, "" if it has none */
    char flags[DUMP_MOST_FLAGS];
    char fit[DUMP_MOST_WORD];
    uint64_t kind, granule, page_size;
    dump_value stats[DUMP_STAT_COUNT];
    uint64_t page_count, range_count; /* read from its pages; ranges that are not free */
    uint64_t reserved, held;          /* bytes of those that have memory */
} dump_memory;

/* The members of a heap, in the order of docs/formats.md. Those that are null are not there. */
enum { DUMP_HEAP_VALUES = 6 };

extern const dump_stat dump_heap_stats[DUMP_HEAP_VALUES];

typedef struct dump_heap {
    dump_value values[DUMP_HEAP_VALUES];
} dump_heap;

typedef struct dump {
    bool is_device;
    char *name, *backend; /* of the device, or NULL */
    dump_value stats[DUMP_STAT_COUNT];
    dump_heap heaps[QUIRE_MAX_HEAPS];
    uint32_t heap_count;
    dump_memory *memories; /* one if it is no device */
    uint64_t memory_count, memory_room;
    char **labels; /* of the memories, for `course` */
    course course;
} dump;

/*
 * Reads a dump, twice, from a file that can be rewound. Returns false after the source refused it:
 * bad JSON, JSON of something else, members that are missing, and ranges that overlap or lie
 * outside their page. Names of more than 255 bytes are cut. `dump_end` frees what was read in
 * either case.
 */
bool dump_read(dump *d, import_source *source);
void dump_end(dump *d);

/* ---- the page ----------------------------------------------------------------------------- */

typedef struct dump_source {
    const dump *dump;
    const char *path;
} dump_source;

/* Writes the page of a dump_source. */
quire_result dump_write_html(void *source, quire_sink sink, void *user);

#endif
