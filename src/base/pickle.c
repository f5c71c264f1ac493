/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * pickle.c - the opcodes of the values that quire writes (see pickle.h).
 */
#include "src/base/pickle.h"

#include "src/base/text.h"

/* The names are those of Python's Lib/pickletools.py. */
enum {
    OP_PROTO = 0x80,
    OP_STOP = '.',
    OP_MARK = '(',
    OP_EMPTY_DICT = '}',
    OP_SETITEMS = 'u',
    OP_EMPTY_LIST = ']',
    OP_APPENDS = 'e',
    OP_BININT = 'J',
    OP_LONG1 = 0x8a,
    OP_NEWTRUE = 0x88,
    OP_NEWFALSE = 0x89,
    OP_TUPLE2 = 0x86,
    OP_SHORT_BINUNICODE = 0x8c,
    OP_BINUNICODE = 'X',
    PROTOCOL = 4
};

/* Elements per group, as Python's own writer has. A reader in a browser passes a group as arguments
   of one call, whose number is limited. */
enum { GROUP = 1000 };

static void put_byte(qi_pickle *pickle, unsigned byte)
{
    char text = (char)byte;
    qi_write(&pickle->writer, &text, 1);
}

/* The low `count` bytes of a number, the lowest first. */
static void put_bytes(qi_pickle *pickle, uint64_t value, int count)
{
    for (int i = 0; i < count; i++)
        put_byte(pickle, (unsigned)(value >> (8 * i)) & 0xff);
}

/* A number of LONG1 has a sign: its highest bit must be 0. */
static void put_number(qi_pickle *pickle, uint64_t value)
{
    int count = 5;
    if (value <= INT32_MAX) {
        put_byte(pickle, OP_BININT);
        put_bytes(pickle, value, 4);
        return;
    }
    while (count < 9 && value >> (8 * count - 1))
        count++;
    put_byte(pickle, OP_LONG1);
    put_byte(pickle, (unsigned)count);
    put_bytes(pickle, value, count < 8 ? count : 8);
    if (count == 9)
        put_byte(pickle, 0);
}

static uint64_t utf8_size(const char *text)
{
    char bytes[4];
    uint64_t size = 0;
    for (uint32_t c; (c = qi_next_code_point(&text)) != 0;)
        size += qi_put_code_point(c, bytes);
    return size;
}

static void put_text(qi_pickle *pickle, const char *text)
{
    char bytes[4];
    const uint64_t size = utf8_size(text);
    const bool is_short = size <= 0xff;
    put_byte(pickle, is_short ? OP_SHORT_BINUNICODE : OP_BINUNICODE);
    put_bytes(pickle, size, is_short ? 1 : 4);
    for (uint32_t c; (c = qi_next_code_point(&text)) != 0;)
        qi_write(&pickle->writer, bytes, qi_put_code_point(c, bytes));
}

/* Writes the key, or counts an element of a list and begins a new group after a full one. */
static void begin_value(qi_pickle *pickle, const char *key)
{
    if (key) {
        put_text(pickle, key);
        return;
    }
    if (pickle->grouped[pickle->depth] == GROUP) {
        put_byte(pickle, OP_APPENDS);
        put_byte(pickle, OP_MARK);
        pickle->grouped[pickle->depth] = 0;
    }
    pickle->grouped[pickle->depth]++;
}

static void open_container(qi_pickle *pickle, const char *key, unsigned opcode)
{
    begin_value(pickle, key);
    put_byte(pickle, opcode);
    put_byte(pickle, OP_MARK);
    pickle->grouped[++pickle->depth] = 0;
}

static void close_container(qi_pickle *pickle, unsigned opcode)
{
    put_byte(pickle, opcode);
    pickle->depth--;
}

void qi_pickle_init(qi_pickle *pickle, quire_sink sink, void *user)
{
    qi_writer_init(&pickle->writer, sink, user);
    pickle->depth = 0;
    pickle->grouped[0] = 0;
    put_byte(pickle, OP_PROTO);
    put_byte(pickle, PROTOCOL);
}

void qi_pickle_dict(qi_pickle *pickle, const char *key)
{
    open_container(pickle, key, OP_EMPTY_DICT);
}

void qi_pickle_end_dict(qi_pickle *pickle)
{
    close_container(pickle, OP_SETITEMS);
}

void qi_pickle_list(qi_pickle *pickle, const char *key)
{
    open_container(pickle, key, OP_EMPTY_LIST);
}

void qi_pickle_end_list(qi_pickle *pickle)
{
    close_container(pickle, OP_APPENDS);
}

void qi_pickle_number(qi_pickle *pickle, const char *key, uint64_t value)
{
    begin_value(pickle, key);
    put_number(pickle, value);
}

void qi_pickle_bool(qi_pickle *pickle, const char *key, bool value)
{
    begin_value(pickle, key);
    put_byte(pickle, value ? OP_NEWTRUE : OP_NEWFALSE);
}

void qi_pickle_text(qi_pickle *pickle, const char *key, const char *value)
{
    begin_value(pickle, key);
    put_text(pickle, value);
}

void qi_pickle_pair(qi_pickle *pickle, const char *key, uint64_t first, uint64_t second)
{
    begin_value(pickle, key);
    put_number(pickle, first);
    put_number(pickle, second);
    put_byte(pickle, OP_TUPLE2);
}

quire_result qi_pickle_finish(qi_pickle *pickle)
{
    put_byte(pickle, OP_STOP);
    return qi_writer_finish(&pickle->writer);
}
