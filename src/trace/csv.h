/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * csv.h - splits a text into lines and fields, and reports errors with their position. parse.c
 * builds the trace reader on it. The names of the fields are all that it knows of traces.
 *
 * The text is only read: each line is copied before it is split. So it needs host memory for the
 * longest line, independent of the number of lines.
 */
#ifndef QUIRE_SRC_TRACE_CSV_H
#define QUIRE_SRC_TRACE_CSV_H

#include "src/base/host_memory.h"

enum { QI_CSV_FIELDS = 7, QI_CSV_SHOWN = 32 };

typedef struct qi_csv {
    const char *name;            /* of the text, for error messages */
    const char *const *names;    /* of the fields */
    qi_host *host;               /* for the copy of the line */
    const char *at;              /* start of the next line */
    const char *end;             /* of the text */
    uint64_t line;               /* number of the current line, from 1 */
    char *copy;                  /* of the current line, with a zero byte at its end */
    uint64_t room;               /* bytes of `copy` */
    char *fields[QI_CSV_FIELDS]; /* of the current line, in its copy */
} qi_csv;

/* Frees the copy of the line. */
void qi_csv_finish(qi_csv *csv);

/*
 * Copies the next line and checks that it is UTF-8 text. The copy ends with a zero byte at
 * *line_end. BAD_FILE, OUT_OF_HOST_MEMORY.
 */
QUIRE_MUST_USE quire_result qi_csv_next_line(qi_csv *csv, char **line, char **line_end);

/* Splits a line into its first seven fields and ignores further ones. BAD_FILE. */
QUIRE_MUST_USE quire_result qi_csv_split(qi_csv *csv, char *line, const char *line_end);

/* Parses a field as a decimal number of 64 bits. BAD_FILE. */
QUIRE_MUST_USE quire_result qi_csv_number(const qi_csv *csv, int field, uint64_t *number);

/* Fails with BAD_FILE and "NAME:LINE:COLUMN: ..."; `where` points into the current line. */
quire_result qi_csv_refuse(const qi_csv *csv, const char *where, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/* Fails with OUT_OF_HOST_MEMORY at the current line. */
quire_result qi_csv_no_memory(const qi_csv *csv);

/*
 * A field as printable ASCII, with '?' for other bytes, truncated after QI_CSV_SHOWN bytes. Use it
 * as qi_csv_show(field).text within one expression.
 */
typedef struct qi_csv_shown {
    char text[QI_CSV_SHOWN + 4];
} qi_csv_shown;

qi_csv_shown qi_csv_show(const char *field);

#endif
