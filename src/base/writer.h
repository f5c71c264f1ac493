/*
 * writer.h - text to a sink, gathered into larger pieces; printf, raw and XML-escaped.
 *
 * Allocates nothing. Once the sink refused a piece the writer stays failed and calls it no more.
 */
#ifndef QUIRE_SRC_BASE_WRITER_H
#define QUIRE_SRC_BASE_WRITER_H

#include "quire/base.h"

enum { QI_WRITER_BUFFER = 1024 };

typedef struct qi_writer {
    quire_sink sink;
    void *user;
    bool failed;
    size_t length;
    char buffer[QI_WRITER_BUFFER];
} qi_writer;

void qi_writer_init(qi_writer *writer, quire_sink sink, void *user);
void qi_write(qi_writer *writer, const char *text, size_t size);
void qi_write_text(qi_writer *writer, const char *text);

/* At most 256 bytes a call. */
void qi_write_format(qi_writer *writer, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Text from outside, safe inside XML and HTML elements and attributes. */
void qi_write_escaped(qi_writer *writer, const char *text);

/* Hands the rest to the sink. BAD_FILE when the sink ever refused. */
QUIRE_MUST_USE quire_result qi_writer_finish(qi_writer *writer);

#endif
