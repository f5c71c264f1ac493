/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import.h - readers of files that other programs write about their allocations. Each turns a file
 * into the rows of a trace (docs/formats.md).
 *
 * A reader takes its file from an import_source in one pass, keeps what it needs, and gives rows to
 * an import_rows in the order of their times. It trusts nothing: lengths, depths and references of
 * the file are checked, and a malformed file is refused with the position of the mistake. Readers
 * have no state of their own, so that tests and fuzzers call them in memory.
 */
#ifndef QUIRE_SRC_TOOL_IMPORT_IMPORT_H
#define QUIRE_SRC_TOOL_IMPORT_IMPORT_H

#include <stdio.h>

#include "src/base/json.h"

/* ---- the file ----------------------------------------------------------------------------- */

enum { IMPORT_BUFFER = 1 << 16, IMPORT_MAX_SENTENCE = 256 };

/* A file that is read from its start to its end, with the position for errors. */
typedef struct import_source {
    FILE *file;
    const char *device; /* the one to import, of a file of several; NULL: the reader chooses */
    uint64_t position;  /* of the next byte */
    uint64_t line;      /* of the next byte, from 1; for readers of text */
    uint64_t column;    /* likewise */
    char sentence[IMPORT_MAX_SENTENCE]; /* the first refusal: "LINE:COLUMN: what is wrong" for text,
                                           "byte N: what is wrong" for binary files; "" if none */
    size_t length, next;                /* of the buffer */
    unsigned char buffer[IMPORT_BUFFER];
} import_source;

void import_begin(import_source *source, FILE *file);

/* Returns the next byte, or EOF at the end of the file. import_peek does not advance. */
int import_next(import_source *source);
int import_peek(import_source *source);

/* Refuse the file: they keep the first sentence, and return false for the reader to return. The
   second is for binary files. */
bool import_refuse(import_source *source, const char *format, ...) QUIRE_PRINTF(2, 3);
bool import_refuse_byte(import_source *source, const char *format, ...) QUIRE_PRINTF(2, 3);

/* ---- the trace ---------------------------------------------------------------------------- */

/* Writes rows. Ids are positive and not live; sizes are above 0; times do not fall. Labels may be
   any bytes: those that a trace cannot contain are replaced. */
typedef struct import_rows {
    qi_writer writer;
    uint64_t allocations, frees; /* written so far */
    uint64_t bytes;              /* of all allocations; readers of traces need it to fit 64 bits */
    bool is_too_large;           /* it does not */
    uint64_t left_out;           /* frees of unknown addresses, for the note of the command */
    char note[IMPORT_MAX_SENTENCE]; /* what the reader chose or made up, likewise; "": nothing */
} import_rows;

void import_rows_begin(import_rows *rows, quire_sink sink, void *user);
void import_alloc(import_rows *rows, uint64_t id, uint64_t size, uint64_t alignment,
                  uint64_t time_ns, uint64_t stream, const char *label);
void import_free(import_rows *rows, uint64_t id, uint64_t time_ns, uint64_t stream);

/* ---- the readers -------------------------------------------------------------------------- */

/* Reads the whole file. Returns false after a refusal; the rows written until then are lost. */
typedef bool import_reader(import_source *source, import_rows *rows);

/* Calls the reader. Refuses what no trace can contain: 2^64 bytes in all allocations together. */
bool import_file(import_reader *read, import_source *source, import_rows *rows);

import_reader import_memory_viz; /* torch.cuda.memory._dump_snapshot: pickle */
import_reader import_rmm;        /* RMM's logging_resource_adaptor: CSV */
import_reader import_kineto;     /* torch.profiler: JSON of Chrome */
import_reader import_minimalloc; /* ranges with known lifetimes: CSV */
import_reader import_vma;        /* vmaBuildStatsString: JSON */

#endif
