/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * trace_fuzz.c - input bytes become a trace, as text or as a recording. What is read is written as
 * text, which must read back to the same events.
 *
 * The first byte selects the form: text after the header line, a recording as it is, or records in
 * a block with a right header.
 *
 * A target of libFuzzer (meson option fuzz) that aborts at the first contradiction; without it a
 * plain program that generates inputs from a seed.
 */
#include <string.h>

#include "quire/trace.h"
#include "src/base/recording.h"
#include "tests/support/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_INPUT = 1 << 13, MOST_BYTES = 1 << 21 };

typedef struct text_buffer {
    char bytes[MOST_BYTES];
    size_t size;
} text_buffer;

static bool append(void *user, const char *text, size_t size)
{
    text_buffer *b = user;
    CHECK(b->size + size <= sizeof b->bytes);
    memcpy(b->bytes + b->size, text, size);
    b->size += size;
    return true;
}

static quire_trace_event event_of(const quire_trace *trace, uint64_t number)
{
    quire_trace_event event;
    CHECK_OK(quire_trace_get_event(trace, number, &event));
    return event;
}

static void check_same(const quire_trace *one, const quire_trace *other)
{
    quire_trace_info info, info_of_other;
    CHECK_OK(quire_trace_get_info(one, &info));
    CHECK_OK(quire_trace_get_info(other, &info_of_other));
    info.cut_bytes = 0;
    CHECK(!memcmp(&info, &info_of_other, sizeof info));
    for (uint64_t i = 0; i < info.event_count; i++) {
        const quire_trace_event a = event_of(one, i), b = event_of(other, i);
        CHECK(a.op == b.op && a.range == b.range && a.id == b.id && a.size == b.size);
        CHECK(a.alignment == b.alignment && a.time_ns == b.time_ns && a.stream == b.stream);
        CHECK(!strcmp(a.label, b.label));
    }
}

static void read_and_write(const char *bytes, size_t size)
{
    static text_buffer written;
    quire_trace *trace = NULL, *again = NULL;
    quire_result result = quire_trace_parse("trace", bytes, size, NULL, &trace);
    CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_BAD_FILE);
    if (result)
        return;
    written.size = 0;
    CHECK_OK(quire_trace_write_csv(trace, append, &written));
    CHECK_OK(quire_trace_parse("written", written.bytes, written.size, NULL, &again));
    check_same(trace, again);
    quire_trace_destroy(&trace);
    quire_trace_destroy(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char header[] = "op,id,size,alignment,time_ns,stream,label\n";
    static char bytes[MOST_INPUT + 128];
    if (!size || size > MOST_INPUT)
        return 0;
    size_t length = 0;
    if (data[0] % 4 == 0) {
        length = sizeof header - 1;
        memcpy(bytes, header, length);
    } else if (data[0] % 4 == 1) {
        length = sizeof QI_RECORDING_MAGIC - 1;
        memcpy(bytes, QI_RECORDING_MAGIC, length);
    } else {
        qi_block_header block = {.order = QI_RECORDING_ORDER, .end_ns = 1000, .ticks = UINT32_MAX};
        memcpy(block.magic, QI_RECORDING_MAGIC, sizeof block.magic);
        block.size = (uint32_t)(sizeof block + (size - 1) / QI_RECORDING_UNIT * QI_RECORDING_UNIT);
        length = sizeof block;
        memcpy(bytes, &block, length);
    }
    memcpy(bytes + length, data + 1, size - 1);
    read_and_write(bytes, length + size - 1);
    return 0;
}
