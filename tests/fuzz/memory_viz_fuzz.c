/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_viz_fuzz.c - input bytes are a snapshot of PyTorch. It is refused with a sentence, or its
 * rows are a trace, which the reader of traces accepts. Nothing leaks.
 *
 * A target of libFuzzer (meson option fuzz) that aborts at the first contradiction; without it a
 * plain program that generates inputs from a seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quire/trace.h"
#include "src/tool/import/memory_viz.h"
#include "tests/support/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char text[1 << 20]; /* of the rows; larger ones are cut */
static size_t length;

static bool append(void *user, const char *piece, size_t size)
{
    (void)user;
    if (size >= sizeof text - length)
        return false;
    memcpy(text + length, piece, size);
    length += size;
    return true;
}

static void check_rows(const import_rows *rows)
{
    quire_trace *trace = NULL;
    if (!rows->allocations)
        return;
    CHECK_OK(quire_trace_parse("rows", text, length, NULL, &trace));
    quire_trace_destroy(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static import_source source;
    static import_rows rows;
    static uint8_t copy[1 << 16];
    if (!size || size > sizeof copy)
        return 0;
    memcpy(copy, data, size);
    FILE *file = fmemopen(copy, size, "rb");
    CHECK(file != NULL);
    qi_host host;
    CHECK_OK(qi_host_init(&host, NULL));
    length = 0;
    import_begin(&source, file);
    import_rows_begin(&rows, append, NULL);
    const bool read = memory_viz_read(&source, &rows, &host);
    CHECK_EQ(read, !source.sentence[0]);
    CHECK_EQ(qi_atomic_load_u64(&host.bytes), 0);
    if (!qi_writer_finish(&rows.writer) && read)
        check_rows(&rows);
    fclose(file);
    return 0;
}
