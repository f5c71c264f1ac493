/*
 * csv.h - lines and fields of a text, with places for error sentences: what the trace reader stands
 * on. Knows nothing of traces but the names of their fields.
 *
 * The text is cut in place: commas and line ends become ends of fields.
 */
#ifndef QUIRE_SRC_TRACE_CSV_H
#define QUIRE_SRC_TRACE_CSV_H

#include "quire/base.h"

enum { QI_CSV_FIELDS = 7, QI_CSV_SHOWN = 32 };

typedef struct qi_csv {
    const char *name;         /* of the text, for sentences */
    const char *const *names; /* of the fields */
    char *at;                 /* begin of the next line */
    char *end;                /* of the text; the byte there may be written */
    char *line_begin;
    uint64_t line;
    char *fields[QI_CSV_FIELDS]; /* of the current line */
} qi_csv;

/* Moves to the next line, which must be text; ends it with 0 at *line_end. */
QUIRE_MUST_USE quire_result qi_csv_next_line(qi_csv *csv, char **line, char **line_end);

/* Cuts a line into its first seven fields; what follows them is ignored. */
QUIRE_MUST_USE quire_result qi_csv_split(qi_csv *csv, char *line, const char *line_end);

/* A field as a decimal number of 64 bits. */
QUIRE_MUST_USE quire_result qi_csv_number(const qi_csv *csv, int field, uint64_t *number);

/* Fails with BAD_FILE and "NAME:LINE:COLUMN: ..." for a place in the current line. */
quire_result qi_csv_refuse(const qi_csv *csv, const char *where, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/* What a field holds, fit to be printed. Use as qi_csv_show(field).text within one expression. */
typedef struct qi_csv_shown {
    char text[QI_CSV_SHOWN + 4];
} qi_csv_shown;

qi_csv_shown qi_csv_show(const char *field);

#endif
