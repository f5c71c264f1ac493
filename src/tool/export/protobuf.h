/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * protobuf.h - writes messages of Protocol Buffers into a sink. The encoding is described in
 * https://protobuf.dev/programming-guides/encoding.
 *
 * The length of a message precedes it. So an outermost message stays in host memory until it is
 * closed, and goes to the sink then. After host memory ran out or the sink refused bytes, nothing
 * more is written. The caller opens and closes in order. A writer belongs to one thread.
 */
#ifndef QUIRE_SRC_TOOL_EXPORT_PROTOBUF_H
#define QUIRE_SRC_TOOL_EXPORT_PROTOBUF_H

#include "src/base/json.h"

enum { PROTOBUF_DEPTH = 4 }; /* of open messages */

typedef struct protobuf {
    qi_writer writer;
    char *bytes; /* of the open messages */
    size_t count, room;
    size_t begins[PROTOBUF_DEPTH]; /* of the contents of each open message, in `bytes` */
    uint32_t depth;
    bool failed; /* host memory is exhausted */
} protobuf;

void protobuf_begin(protobuf *p, quire_sink sink, void *user);

/* A field that is a message; the fields until it is closed are its own. */
void protobuf_open(protobuf *p, uint32_t field);
void protobuf_close(protobuf *p);

/* A field inside an open message. */
void protobuf_number(protobuf *p, uint32_t field, uint64_t value); /* int32 to uint64, bool, enum */
void protobuf_fixed64(protobuf *p, uint32_t field, uint64_t value);
void protobuf_text(protobuf *p, uint32_t field, const char *text); /* UTF-8 */

/* Passes the rest to the sink and frees the writer. BAD_FILE, OUT_OF_HOST_MEMORY. */
QUIRE_MUST_USE quire_result protobuf_finish(protobuf *p);

#endif
