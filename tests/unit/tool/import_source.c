/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_source.c - positions of a file that is read for an import, its first refusal, and the rows
 * that an import writes, which the reader of traces accepts.
 */
#include "src/tool/import/import.h"

#include <string.h>

#include "quire/trace.h"
#include "tests/support/unit.h"

static import_source source;

static FILE *open_text(const char *text, size_t size)
{
    FILE *file = tmpfile();
    CHECK(file && fwrite(text, 1, size, file) == size);
    rewind(file);
    import_begin(&source, file);
    return file;
}

UNIT(import_source, bytes_come_in_order_with_their_lines_and_columns)
{
    FILE *file = open_text("ab\nc", 4);
    CHECK_EQ(import_peek(&source), 'a');
    CHECK_EQ(import_next(&source), 'a');
    CHECK_EQ(import_next(&source), 'b');
    CHECK_EQ(source.column, 3);
    CHECK_EQ(import_next(&source), '\n');
    CHECK(source.line == 2 && source.column == 1 && source.position == 3);
    CHECK_EQ(import_next(&source), 'c');
    CHECK_EQ(import_next(&source), EOF);
    CHECK_EQ(import_peek(&source), EOF);
    CHECK_EQ(source.position, 4);
    fclose(file);
}

UNIT(import_source, a_file_may_be_longer_than_the_buffer)
{
    static char text[IMPORT_BUFFER * 2 + 3];
    memset(text, 'x', sizeof text);
    FILE *file = open_text(text, sizeof text);
    while (import_next(&source) == 'x')
        ;
    CHECK_EQ(source.position, sizeof text);
    fclose(file);
}

UNIT(import_source, the_first_refusal_stays_and_is_printable)
{
    FILE *file = open_text("ab", 2);
    import_next(&source);
    CHECK(!import_refuse(&source, "no '%s'", "\x1b[1m"));
    CHECK(!import_refuse_byte(&source, "a later one"));
    CHECK_STR(source.sentence, "1:2: no '?[1m'");
    fclose(file);
    file = open_text("ab", 2);
    import_next(&source);
    CHECK(!import_refuse_byte(&source, "no"));
    CHECK_STR(source.sentence, "byte 1: no");
    fclose(file);
}

typedef struct text_buffer {
    char text[512];
    size_t length;
} text_buffer;

static bool append(void *user, const char *text, size_t size)
{
    text_buffer *b = user;
    CHECK(b->length + size < sizeof b->text);
    memcpy(b->text + b->length, text, size);
    b->length += size;
    return true;
}

UNIT(import_source, rows_are_a_trace_whatever_the_label)
{
    static import_rows rows;
    text_buffer b = {.length = 0};
    import_rows_begin(&rows, append, &b);
    import_alloc(&rows, 7, UINT64_MAX, 1, 5, 3, "a,\"b\"\n\xff");
    import_free(&rows, 7, 9, 3);
    CHECK_OK(qi_writer_finish(&rows.writer));
    CHECK(rows.allocations == 1 && rows.frees == 1);
    quire_trace *trace = NULL;
    quire_trace_event event;
    CHECK_OK(quire_trace_parse("t", b.text, b.length, NULL, &trace));
    CHECK_OK(quire_trace_get_event(trace, 0, &event));
    CHECK(event.size == UINT64_MAX && event.stream == 3);
    CHECK_STR(event.label, "a__b__\xef\xbf\xbd");
    quire_trace_destroy(&trace);
}
