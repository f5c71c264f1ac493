/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_text.c - imports of texts in memory (see import_text.h).
 */
#include "tests/support/import_text.h"

#include <string.h>

#include "quire/trace.h"
#include "tests/support/check.h"

#define HEADER "op,id,size,alignment,time_ns,stream,label\n"

typedef struct whole_trace {
    size_t length;
    char text[IMPORT_MOST_ROWS];
} whole_trace;

static bool append(void *user, const char *text, size_t size)
{
    whole_trace *t = user;
    CHECK(size < sizeof t->text - t->length);
    memcpy(t->text + t->length, text, size);
    t->length += size;
    t->text[t->length] = '\0';
    return true;
}

static void check_trace(const whole_trace *whole, const import_rows *rows)
{
    quire_trace *trace = NULL;
    quire_trace_info info;
    CHECK(!strncmp(whole->text, HEADER, strlen(HEADER)));
    CHECK_OK(quire_trace_parse("rows", whole->text, whole->length, NULL, &trace));
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.alloc_count, rows->allocations);
    CHECK_EQ(info.free_count, rows->frees);
    CHECK_EQ(info.event_count, rows->allocations + rows->frees);
    quire_trace_destroy(&trace);
}

const import_result *import_device(import_reader *read, const char *device, const char *text,
                                   size_t size)
{
    static import_result result;
    static whole_trace whole;
    static import_source source;
    import_rows rows;
    FILE *file = size ? fmemopen((void *)(uintptr_t)text, size, "rb") : fopen("/dev/null", "rb");
    CHECK(file);
    import_begin(&source, file);
    source.device = device;
    whole.length = 0;
    import_rows_begin(&rows, append, &whole);
    result.is_good = import_file(read, &source, &rows);
    CHECK_OK(qi_writer_finish(&rows.writer));
    fclose(file);
    CHECK_EQ(result.is_good, !source.sentence[0]);
    memcpy(result.sentence, source.sentence, sizeof result.sentence);
    if (result.is_good)
        check_trace(&whole, &rows);
    memcpy(result.note, rows.note, sizeof result.note);
    result.allocations = rows.allocations;
    result.frees = rows.frees;
    result.left_out = rows.left_out;
    result.length = whole.length - strlen(HEADER);
    memcpy(result.rows, whole.text + strlen(HEADER), result.length + 1);
    return &result;
}

const import_result *import_text(import_reader *read, const char *text, size_t size)
{
    return import_device(read, NULL, text, size);
}

void import_gives(import_reader *read, const char *text, const char *rows)
{
    const import_result *result = import_text(read, text, strlen(text));
    CHECK_STR(result->sentence, "");
    CHECK_STR(result->rows, rows);
}

void import_refuses(import_reader *read, const char *text, const char *sentence)
{
    CHECK_STR(import_text(read, text, strlen(text))->sentence, sentence);
}

void import_all_beginnings(import_reader *read, const char *text)
{
    const size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        import_text(read, text, i);
    CHECK(import_text(read, text, size)->is_good);
}
