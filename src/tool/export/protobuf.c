/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * protobuf.c - writes messages of Protocol Buffers (see protobuf.h).
 */
#include "src/tool/export/protobuf.h"

#include <stdlib.h>
#include <string.h>

#include "src/base/result.h"

/* The wire types of fields, and the largest number of bytes of a varint. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_LENGTH = 2, MAX_VARINT = 10 };

static bool reserve(protobuf *p, size_t more)
{
    if (p->room - p->count >= more || p->failed)
        return !p->failed;
    const size_t room = 2 * p->room + more + 64;
    char *larger = realloc(p->bytes, room);
    p->failed = !larger;
    if (larger) {
        p->bytes = larger;
        p->room = room;
    }
    return !p->failed;
}

static void put(protobuf *p, const char *bytes, size_t count)
{
    if (!reserve(p, count))
        return;
    memcpy(p->bytes + p->count, bytes, count);
    p->count += count;
}

/* Seven bits per byte, the lowest first. The high bit says that another byte follows. */
static size_t encode(uint64_t value, char out[MAX_VARINT])
{
    size_t count = 0;
    for (; value > 0x7f; value >>= 7)
        out[count++] = (char)((value & 0x7f) | 0x80);
    out[count++] = (char)value;
    return count;
}

static void put_varint(protobuf *p, uint64_t value)
{
    char bytes[MAX_VARINT];
    put(p, bytes, encode(value, bytes));
}

static void put_key(protobuf *p, uint32_t field, uint32_t wire)
{
    put_varint(p, (uint64_t)field << 3 | wire);
}

/* ---- fields ------------------------------------------------------------------------------- */

void protobuf_begin(protobuf *p, quire_sink sink, void *user)
{
    *p = (protobuf){.bytes = NULL};
    qi_writer_init(&p->writer, sink, user);
}

void protobuf_open(protobuf *p, uint32_t field)
{
    put_key(p, field, WIRE_LENGTH);
    p->begins[p->depth++] = p->count;
}

/* The contents move by the bytes of their length, which are one or two for most messages. */
void protobuf_close(protobuf *p)
{
    char length[MAX_VARINT];
    const size_t begin = p->begins[--p->depth], size = p->count - begin;
    const size_t digits = encode(size, length);
    if (!reserve(p, digits))
        return;
    memmove(p->bytes + begin + digits, p->bytes + begin, size);
    memcpy(p->bytes + begin, length, digits);
    p->count += digits;
    if (p->depth)
        return;
    qi_write(&p->writer, p->bytes, p->count);
    p->count = 0;
}

void protobuf_number(protobuf *p, uint32_t field, uint64_t value)
{
    put_key(p, field, WIRE_VARINT);
    put_varint(p, value);
}

void protobuf_fixed64(protobuf *p, uint32_t field, uint64_t value)
{
    char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (char)(value >> (8 * i) & 0xff);
    put_key(p, field, WIRE_FIXED64);
    put(p, bytes, sizeof bytes);
}

void protobuf_text(protobuf *p, uint32_t field, const char *text)
{
    const size_t size = strlen(text);
    put_key(p, field, WIRE_LENGTH);
    put_varint(p, size);
    put(p, text, size);
}

quire_result protobuf_finish(protobuf *p)
{
    const quire_result result = qi_writer_finish(&p->writer);
    free(p->bytes);
    p->bytes = NULL;
    return p->failed ? qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a message")
                     : result;
}
