/*
 * writer.h - writes text to a sink in larger pieces: raw, printf-formatted and XML-escaped.
 *
 * Uses no host memory. After the sink refused a piece the writer does not call it again. A writer
 * belongs to one thread.
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

/* Writes at most 255 bytes per call. */
void qi_write_format(qi_writer *writer, const char *format, ...) QUIRE_PRINTF(2, 3);

/* Writes text from outside so that it is safe in XML and HTML elements and attributes. */
void qi_write_escaped(qi_writer *writer, const char *text);

/* Passes the rest to the sink. Returns BAD_FILE if the sink refused any piece. */
QUIRE_MUST_USE quire_result qi_writer_finish(qi_writer *writer);

#endif
