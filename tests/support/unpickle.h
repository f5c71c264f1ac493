/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * unpickle.h - reads a pickle with the opcodes of src/base/pickle.c into a JSON value, without
 * sharing a line with the writer. Any other opcode, or a text that is not UTF-8, fails the test.
 */
#ifndef QUIRE_TESTS_SUPPORT_UNPICKLE_H
#define QUIRE_TESTS_SUPPORT_UNPICKLE_H

#include <jansson.h>

#include "tests/support/gather.h"

enum { UNPICKLE_MOST = 4096 }; /* values on the stack: a group of a list, and its surroundings */

static struct {
    json_t *stack[UNPICKLE_MOST];
    size_t marks[16];
    size_t height, marked, at;
} unpickling;

static inline uint64_t unpickle_bytes(size_t count)
{
    uint64_t value = 0;
    CHECK(unpickling.at + count <= gathered.length);
    for (size_t i = 0; i < count; i++)
        if (i < 8)
            value |= (uint64_t)(unsigned char)gathered.text[unpickling.at + i] << (8 * i);
        else
            CHECK_EQ(gathered.text[unpickling.at + i], 0);
    unpickling.at += count;
    return value;
}

static inline void unpickle_push(json_t *value)
{
    CHECK(value && unpickling.height < UNPICKLE_MOST);
    unpickling.stack[unpickling.height++] = value;
}

static inline void unpickle_push_text(size_t size)
{
    CHECK(unpickling.at + size <= gathered.length);
    unpickle_push(json_stringn(gathered.text + unpickling.at, size));
    unpickling.at += size;
}

/* Moves the values from `from` on into the list or the dictionary below them. */
static inline void unpickle_fill(size_t from)
{
    json_t **stack = unpickling.stack, *into = stack[from - 1];
    for (size_t i = from; i < unpickling.height; i += json_is_object(into) ? 2 : 1) {
        if (json_is_array(into)) {
            CHECK(!json_array_append_new(into, stack[i]));
            continue;
        }
        CHECK(i + 1 < unpickling.height && !json_object_get(into, json_string_value(stack[i])));
        CHECK(!json_object_set_new(into, json_string_value(stack[i]), stack[i + 1]));
        json_decref(stack[i]);
    }
    unpickling.height = from;
}

static inline void unpickle_pair(void)
{
    CHECK(unpickling.height >= 2);
    json_t *pair = json_array(), **last = unpickling.stack + unpickling.height - 2;
    CHECK(!json_array_append_new(pair, last[0]) && !json_array_append_new(pair, last[1]));
    unpickling.height -= 2;
    unpickle_push(pair);
}

/* Numbers above those of a signed integer do not fit JSON's and fail the test. */
static inline void unpickle_number(size_t bytes)
{
    const uint64_t value = unpickle_bytes(bytes);
    CHECK(value <= INT64_MAX && (bytes != 4 || value <= INT32_MAX));
    unpickle_push(json_integer((json_int_t)value));
}

static inline void unpickle_step(unsigned opcode)
{
    switch (opcode) {
    case '(':
        CHECK(unpickling.marked < 16);
        unpickling.marks[unpickling.marked++] = unpickling.height;
        break;
    case '}':
        unpickle_push(json_object());
        break;
    case ']':
        unpickle_push(json_array());
        break;
    case 'u':
    case 'e':
        CHECK(unpickling.marked > 0 && unpickling.marks[unpickling.marked - 1] > 0);
        unpickle_fill(unpickling.marks[--unpickling.marked]);
        break;
    case 'J':
        unpickle_number(4);
        break;
    case 0x8a:
        unpickle_number(unpickle_bytes(1));
        break;
    case 0x88:
    case 0x89:
        unpickle_push(json_boolean(opcode == 0x88));
        break;
    case 0x86:
        unpickle_pair();
        break;
    case 0x8c:
        unpickle_push_text(unpickle_bytes(1));
        break;
    case 'X':
        unpickle_push_text(unpickle_bytes(4));
        break;
    default:
        check_failed(__FILE__, __LINE__, "opcode %x at %zu", opcode, unpickling.at - 1);
    }
}

/* Reads what was gathered; the caller releases the value. */
static inline json_t *unpickle(void)
{
    unpickling.height = unpickling.marked = unpickling.at = 0;
    CHECK_EQ(unpickle_bytes(2), 0x0480); /* PROTO 4 */
    for (unsigned opcode; (opcode = (unsigned)unpickle_bytes(1)) != '.';)
        unpickle_step(opcode);
    CHECK_EQ(unpickling.at, gathered.length);
    CHECK_EQ(unpickling.height, 1);
    CHECK_EQ(unpickling.marked, 0);
    return unpickling.stack[0];
}

#endif
