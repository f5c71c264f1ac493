/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * csv.c - copies a line, then cuts the copy in place: its commas become zero bytes (see csv.h).
 */
#include "src/trace/csv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/base/text.h"

enum { MIN_ROOM = 256 };

/* Appends "..." if it truncates; the struct has room for it. */
qi_csv_shown qi_csv_show(const char *field)
{
    qi_csv_shown out;
    size_t i = 0;
    for (; field[i] && i < QI_CSV_SHOWN; i++)
        out.text[i] = field[i] >= 0x20 && field[i] < 0x7f ? field[i] : '?';
    strcpy(out.text + i, field[i] ? "..." : "");
    return out;
}

/* Columns count bytes from 1. `where` points into the copy of the line. */
quire_result qi_csv_refuse(const qi_csv *csv, const char *where, const char *format, ...)
{
    char what[QI_ERROR_TEXT / 2];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return qi_fail_text(QUIRE_ERROR_BAD_FILE, "%s:%" PRIu64 ":%zu: %s", csv->name, csv->line,
                        (size_t)(where - csv->copy) + 1, what);
}

quire_result qi_csv_no_memory(const qi_csv *csv)
{
    return qi_fail_text(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "%s:%" PRIu64 ": no host memory left",
                        csv->name, csv->line);
}

void qi_csv_finish(qi_csv *csv)
{
    qi_host_release(csv->host, csv->copy, csv->room, 1);
    csv->copy = NULL;
    csv->room = 0;
}

/* Rejects zero bytes and invalid UTF-8. The line ends with a zero byte at `end`. */
static quire_result check_text(const qi_csv *csv, const char *line, const char *end)
{
    for (const char *at = line;;) {
        const char *before = at;
        uint32_t c = qi_next_code_point(&at);
        if (!c && at == end)
            return QUIRE_SUCCESS;
        if (!c || (c == QI_REPLACEMENT && at == before + 1))
            return qi_csv_refuse(csv, before, "byte 0x%02x is not text",
                                 (unsigned)(unsigned char)*before);
    }
}

/* Replaces the copy of the line; its room at least doubles. False if host memory is exhausted. */
static bool copy_line(qi_csv *csv, const char *begin, size_t length)
{
    if (length >= csv->room) {
        uint64_t room = csv->room * 2 > MIN_ROOM ? csv->room * 2 : MIN_ROOM;
        room = room > length ? room : (uint64_t)length + 1;
        qi_csv_finish(csv);
        csv->copy = qi_host_allocate(csv->host, room, 1);
        if (!csv->copy)
            return false;
        csv->room = room;
    }
    memcpy(csv->copy, begin, length);
    csv->copy[length] = '\0';
    return true;
}

/* Accepts LF and CRLF. The last line needs no line end. */
quire_result qi_csv_next_line(qi_csv *csv, char **line, char **line_end)
{
    const char *begin = csv->at, *end = memchr(begin, '\n', (size_t)(csv->end - begin));
    csv->line++;
    csv->at = end ? end + 1 : csv->end;
    if (!end)
        end = csv->end;
    else if (end > begin && end[-1] == '\r')
        end--;
    if (!copy_line(csv, begin, (size_t)(end - begin)))
        return qi_csv_no_memory(csv);
    *line = csv->copy;
    *line_end = csv->copy + (end - begin);
    return check_text(csv, *line, *line_end);
}

/* Cuts in place: commas in the copy become zero bytes. The seventh field ends at the next comma. */
quire_result qi_csv_split(qi_csv *csv, char *line, const char *line_end)
{
    if (!*line)
        return qi_csv_refuse(csv, line, "empty line; expected an event");
    for (int i = 0; i < QI_CSV_FIELDS; i++) {
        csv->fields[i] = line;
        char *comma = strchr(line, ',');
        if (!comma && i + 1 < QI_CSV_FIELDS)
            return qi_csv_refuse(csv, line_end, "the line ends after field %d (%s) of %d", i + 1,
                                 csv->names[i], QI_CSV_FIELDS);
        if (!comma)
            break;
        *comma = '\0';
        line = comma + 1;
    }
    return QUIRE_SUCCESS;
}

/* Accepts digits only: no sign, no blanks, no prefix. *number is unspecified after an error. */
quire_result qi_csv_number(const qi_csv *csv, int field, uint64_t *number)
{
    const char *text = csv->fields[field], *name = csv->names[field];
    *number = 0;
    if (*text == '-')
        return qi_csv_refuse(csv, text, "%s is negative: '%s'", name, qi_csv_show(text).text);
    if (!*text)
        return qi_csv_refuse(csv, text, "%s is missing", name);
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9')
            return qi_csv_refuse(csv, p, "%s is not a decimal number: '%s'", name,
                                 qi_csv_show(text).text);
        if (qi_multiply_overflows(*number, 10, number) ||
            qi_add_overflows(*number, (uint64_t)(*p - '0'), number))
            return qi_csv_refuse(csv, text, "%s does not fit 64 bits: '%s'", name,
                                 qi_csv_show(text).text);
    }
    return QUIRE_SUCCESS;
}
