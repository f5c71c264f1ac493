/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * rmm.c - the CSV of RMM's logging_resource_adaptor.
 *
 * Its lines are "Thread,Time,Action,Pointer,Size,Stream" (rapidsai/rmm, logging_resource_adaptor).
 * The time is the local time of day: HH:MM:SS, then '.' or, in old versions, ':' and microseconds.
 * Pointers and streams are hexadecimal, with or without 0x. A decimal pointer is read in the same
 * way: different ones stay different, and nothing else matters, because ids replace them.
 *
 * Threads take the time before they wait for the log, so a line may be a little earlier than the
 * one before; it gets the time of that one. A line that is half a day earlier is of the next day.
 */
#include <inttypes.h>
#include <string.h>

#include "src/tool/import/import.h"
#include "src/tool/import/live.h"

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"

/* RMM promises this alignment of every allocation (CUDA_ALLOCATION_ALIGNMENT). */
enum { ALIGNMENT = 256, MOST_CELL = 63 };

static const uint64_t SECOND = 1000000000, DAY = 86400 * UINT64_C(1000000000);

typedef struct reader {
    import_source *source;
    import_rows *rows;
    import_live live;
    uint64_t day;          /* nanoseconds of the days before this one */
    uint64_t clock;        /* of the line before: since midnight */
    uint64_t time;         /* of the line before: as in the trace */
    uint64_t line, column; /* where the cell begins */
    char cell[MOST_CELL + 1];
} reader;

/* ---- cells -------------------------------------------------------------------------------- */

/* Refuses the cell at its first byte. */
static bool refuse_cell(reader *r, const char *what)
{
    r->source->line = r->line;
    r->source->column = r->column;
    return import_refuse(r->source, "%s, not '%s'", what, r->cell);
}

/* Reads a cell up to the comma, or the last one of a line up to the line end. */
static bool read_cell(reader *r, bool is_last)
{
    import_source *s = r->source;
    size_t length = 0;
    r->line = s->line;
    r->column = s->column;
    for (int c; (c = import_peek(s)) != EOF && c != ',' && c != '\n'; import_next(s)) {
        if (length == MOST_CELL || !c)
            return import_refuse(s, "the cell is longer than %d bytes, or has a zero byte",
                                 MOST_CELL);
        r->cell[length++] = (char)c;
    }
    if (is_last && length && r->cell[length - 1] == '\r')
        length--;
    r->cell[length] = '\0';
    const int end = import_peek(s);
    if (!is_last && end != ',')
        return import_refuse(s, "the line ends before its last column: " HEADER);
    if (is_last && end == ',')
        return import_refuse(s, "the line has more columns than " HEADER);
    import_next(s);
    return true;
}

static bool take_digits(const char **at, uint64_t base, uint64_t *number)
{
    const char *first = *at;
    *number = 0;
    for (;; ++*at) {
        const char c = **at;
        uint64_t digit = c >= '0' && c <= '9'   ? (uint64_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint64_t)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (uint64_t)(c - 'A') + 10
                                                : base;
        if (digit >= base)
            return *at > first;
        if (*number > (UINT64_MAX - digit) / base)
            return false;
        *number = *number * base + digit;
    }
}

static bool parse_decimal(const char *text, uint64_t *number)
{
    return take_digits(&text, 10, number) && !*text;
}

/* The C library of Linux prints "(nil)" for a null pointer. */
static bool parse_hexadecimal(const char *text, uint64_t *number)
{
    *number = 0;
    if (!strcmp(text, "(nil)"))
        return true;
    if (!strncmp(text, "0x", 2) || !strncmp(text, "0X", 2))
        text += 2;
    return take_digits(&text, 16, number) && !*text;
}

/* ---- times -------------------------------------------------------------------------------- */

static bool take_two(const char **at, uint64_t limit, char end, uint64_t *number)
{
    const char *first = *at;
    if (!take_digits(at, 10, number) || *at != first + 2 || *number >= limit)
        return false;
    const char found = **at;
    *at += found != '\0';
    return found == end || (end == '.' && (found == ':' || !found));
}

/* Parses HH:MM:SS with up to nine digits of a fraction into nanoseconds since midnight. */
static bool parse_clock(const char *text, uint64_t *clock)
{
    uint64_t hours, minutes, seconds, fraction = 0;
    if (!take_two(&text, 24, ':', &hours) || !take_two(&text, 60, ':', &minutes) ||
        !take_two(&text, 61, '.', &seconds)) /* 60 is a leap second */
        return false;
    uint64_t unit = SECOND;
    for (; *text >= '0' && *text <= '9' && unit > 1; text++) {
        unit /= 10;
        fraction += (uint64_t)(*text - '0') * unit;
    }
    *clock = ((hours * 60 + minutes) * 60 + seconds) * SECOND + fraction;
    return !*text;
}

static void advance(reader *r, uint64_t clock)
{
    if (clock < r->clock && r->clock - clock > DAY / 2)
        r->day += DAY;
    r->clock = clock;
    if (r->day + clock > r->time)
        r->time = r->day + clock;
}

/* ---- lines -------------------------------------------------------------------------------- */

typedef enum action { ALLOCATE, FREE, FAILURE } action;

static bool read_columns(reader *r, action *what, uint64_t *pointer, uint64_t *size,
                         uint64_t *stream)
{
    static const char *const actions[] = {"allocate", "free", "allocate failure"};
    uint64_t number;
    if (!read_cell(r, false))
        return false;
    if (!parse_decimal(r->cell, &number))
        return refuse_cell(r, "the thread must be a decimal number");
    if (!read_cell(r, false))
        return false;
    if (!parse_clock(r->cell, &number))
        return refuse_cell(r, "the time must be HH:MM:SS.microseconds");
    advance(r, number);
    if (!read_cell(r, false))
        return false;
    for (*what = ALLOCATE; *what <= FAILURE && strcmp(r->cell, actions[*what]); ++*what)
        ;
    if (*what > FAILURE)
        return refuse_cell(r, "the action must be allocate, free or allocate failure");
    if (!read_cell(r, false))
        return false;
    if (!parse_hexadecimal(r->cell, pointer))
        return refuse_cell(r, "the pointer must be a number of 64 bits");
    if (!read_cell(r, false))
        return false;
    if (!parse_decimal(r->cell, size))
        return refuse_cell(r, "the size must be a decimal number of 64 bits");
    if (!read_cell(r, true))
        return false;
    return parse_hexadecimal(r->cell, stream) ||
           refuse_cell(r, "the stream must be a hexadecimal number of 64 bits");
}

/* Refuses the line as a whole. */
static bool refuse_line(reader *r, const char *what, uint64_t pointer)
{
    r->source->line = r->line;
    r->source->column = 1;
    return import_refuse(r->source, "%s 0x%" PRIx64, what, pointer);
}

/* An allocation of 0 bytes has no memory, and often no pointer. */
static bool read_line(reader *r)
{
    action what = FAILURE;
    uint64_t pointer = 0, size = 0, stream = 0;
    if (!read_columns(r, &what, &pointer, &size, &stream))
        return false;
    if (what == FREE) {
        uint64_t id = import_live_remove(&r->live, pointer);
        if (id)
            import_free(r->rows, id, r->time, stream);
        else
            r->rows->left_out += size > 0;
        return true;
    }
    if (what == FAILURE || !size)
        return true;
    if (!pointer)
        return refuse_line(r, "bytes are allocated at", pointer);
    if (import_live_find(&r->live, pointer))
        return refuse_line(r, "there is a live allocation already at", pointer);
    uint64_t id = import_live_add(&r->live, pointer);
    if (!id)
        return refuse_line(r, "no host memory, or no id, for the allocation at", pointer);
    import_alloc(r->rows, id, size, ALIGNMENT, r->time, stream, "");
    return true;
}

static bool read_header(reader *r)
{
    import_source *s = r->source;
    for (const char *c = HEADER; *c; c++) {
        if (import_peek(s) != *c)
            return import_refuse(s, "the file must begin with " HEADER);
        import_next(s);
    }
    if (import_peek(s) == '\r')
        import_next(s);
    if (import_peek(s) != '\n' && import_peek(s) != EOF)
        return import_refuse(s, "the header must be " HEADER);
    import_next(s);
    return true;
}

bool import_rmm(import_source *source, import_rows *rows)
{
    reader r = {.source = source, .rows = rows};
    bool is_good = import_live_begin(&r.live) || import_refuse(source, "no host memory");
    is_good = is_good && read_header(&r);
    while (is_good && import_peek(source) != EOF)
        is_good = read_line(&r);
    import_live_end(&r.live);
    return is_good;
}
