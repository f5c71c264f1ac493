/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * export_protobuf.c - the bytes of fields and nested messages, which are those that the encoding's
 * documentation shows, lengths of several bytes, and sinks that refuse.
 */
#include "src/tool/export/protobuf.h"

#include <stdio.h>

#include "tests/support/gather.h"
#include "tests/support/unit.h"

static protobuf out;

static void begin(uint64_t refuse)
{
    gather_anew(refuse);
    protobuf_begin(&out, gather, NULL);
}

static void expect_bytes(const char *bytes, size_t size)
{
    CHECK_OK(protobuf_finish(&out));
    CHECK_EQ(gathered.length, size);
    CHECK(!memcmp(gathered.text, bytes, size));
}

#define EXPECT(text) expect_bytes(text, sizeof text - 1)

UNIT(export_protobuf, numbers_have_seven_bits_per_byte)
{
    begin(0);
    protobuf_open(&out, 1);
    protobuf_number(&out, 1, 0);
    protobuf_number(&out, 1, 127);
    protobuf_number(&out, 1, 128);
    protobuf_number(&out, 1, 150);
    protobuf_number(&out, 16, UINT64_MAX);
    protobuf_close(&out);
    EXPECT("\x0a\x16"
           "\x08\0\x08\x7f\x08\x80\x01\x08\x96\x01"
           "\x80\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

UNIT(export_protobuf, texts_and_fixed_numbers)
{
    begin(0);
    protobuf_open(&out, 2);
    protobuf_text(&out, 2, "testing");
    protobuf_text(&out, 3, "");
    protobuf_fixed64(&out, 5, UINT64_C(0x8877665544332211));
    protobuf_close(&out);
    EXPECT("\x12\x14"
           "\x12\x07testing\x1a\0"
           "\x29\x11\x22\x33\x44\x55\x66\x77\x88");
}

UNIT(export_protobuf, messages_nest_and_may_be_empty)
{
    begin(0);
    protobuf_open(&out, 1);
    protobuf_open(&out, 3);
    protobuf_open(&out, 4);
    protobuf_open(&out, 5);
    protobuf_number(&out, 1, 1);
    protobuf_close(&out);
    protobuf_close(&out);
    protobuf_number(&out, 1, 2);
    protobuf_close(&out);
    protobuf_close(&out);
    CHECK_EQ(out.count, 0);
    protobuf_open(&out, 1);
    protobuf_close(&out);
    EXPECT("\x0a\x0a\x1a\x08\x22\x04\x2a\x02\x08\x01\x08\x02\x0a\0");
}

UNIT(export_protobuf, a_length_may_have_several_bytes)
{
    static char text[20001];
    memset(text, 'x', sizeof text - 1);
    begin(0);
    protobuf_open(&out, 1);
    protobuf_open(&out, 1);
    protobuf_text(&out, 1, text);
    protobuf_close(&out);
    protobuf_close(&out);
    CHECK_OK(protobuf_finish(&out));
    CHECK_EQ(gathered.length, 20000 + 3 * 4);
    CHECK(!memcmp(gathered.text, "\x0a\xa8\x9c\x01\x0a\xa4\x9c\x01\x0a\xa0\x9c\x01xxx", 15));
}

UNIT(export_protobuf, a_sink_may_refuse)
{
    begin(1);
    for (int i = 0; i < 1000; i++) {
        protobuf_open(&out, 1);
        protobuf_fixed64(&out, 1, 0);
        protobuf_close(&out);
    }
    CHECK_EQ(protobuf_finish(&out), QUIRE_ERROR_BAD_FILE);
}

UNIT(export_protobuf, after_host_memory_ran_out_nothing_is_written)
{
    begin(0);
    out.failed = true; /* as realloc leaves it */
    protobuf_open(&out, 1);
    protobuf_text(&out, 1, "lost");
    protobuf_close(&out);
    CHECK_EQ(protobuf_finish(&out), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(gathered.length, 0);
}
