/*
 * csv.h - lines and fields of a text, with places for error sentences: what the trace reader stands
 * on. Knows nothing of traces but the names of their fields.
 *
 * Each line is copied before it is cut into fields, so that the text is only read, and host memory
 * is needed for the longest line, whatever the number of lines.
 */
#ifndef QUIRE_SRC_TRACE_CSV_H
#define QUIRE_SRC_TRACE_CSV_H

#include "src/base/host_memory.h"

enum { QI_CSV_FIELDS = 7, QI_CSV_SHOWN = 32 };

typedef struct qi_csv {
    const char *name;         /* of the text, for sentences */
    const char *const *names; /* of the fields */
    qi_host *host;            /* for the copy of the line */
    const char *at;           /* begin of the next line */
    const char *end;          /* of the text */
    uint64_t line;
    char *copy; /* of the current line, ended with 0 */
    uint64_t room;
    char *fields[QI_CSV_FIELDS]; /* of the current line, in its copy */
} qi_csv;

/* Gives back the copy of the line. */
void qi_csv_finish(qi_csv *csv);

/* Copies the next line, which must be text; its copy ends with 0 at *line_end. */
QUIRE_MUST_USE quire_result qi_csv_next_line(qi_csv *csv, char **line, char **line_end);

/* Cuts a line into its first seven fields; what follows them is ignored. */
QUIRE_MUST_USE quire_result qi_csv_split(qi_csv *csv, char *line, const char *line_end);

/* A field as a decimal number of 64 bits. */
QUIRE_MUST_USE quire_result qi_csv_number(const qi_csv *csv, int field, uint64_t *number);

/* Fails with BAD_FILE and "NAME:LINE:COLUMN: ..." for a place in the current line. */
quire_result qi_csv_refuse(const qi_csv *csv, const char *where, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/* Fails with OUT_OF_HOST_MEMORY at the current line. */
quire_result qi_csv_no_memory(const qi_csv *csv);

/* What a field holds, fit to be printed. Use as qi_csv_show(field).text within one expression. */
typedef struct qi_csv_shown {
    char text[QI_CSV_SHOWN + 4];
} qi_csv_shown;

qi_csv_shown qi_csv_show(const char *field);

#endif
