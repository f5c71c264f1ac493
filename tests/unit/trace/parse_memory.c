/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * parse_memory.c - the host memory that reading a trace takes: it is proportional to the events,
 * the labels and the longest line, never to the number of line ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "quire/trace.h"
#include "tests/support/unit.h"

#define HEADER "op,id,size,alignment,time_ns,stream,label\n"

enum { MIB = 1 << 20, SMALL = 16 << 10, AN_EVENT = 3 * sizeof(quire_trace_event) };

/* Host memory callbacks that record the peak. */
typedef struct meter {
    quire_host_memory callbacks;
    size_t bytes, peak;
} meter;

static void *metered_allocate(void *user, size_t size, size_t alignment)
{
    meter *m = user;
    m->bytes += size;
    m->peak = m->bytes > m->peak ? m->bytes : m->peak;
    return aligned_alloc(alignment, (size + alignment - 1) & ~(alignment - 1));
}

static void metered_release(void *user, void *pointer, size_t size, size_t alignment)
{
    meter *m = user;
    (void)alignment;
    m->bytes -= size;
    free(pointer);
}

static void meter_init(meter *m)
{
    *m = (meter){.callbacks = {metered_allocate, metered_release, m}};
}

/* A head, followed by a piece repeated up to the size. */
static char *repeat(const char *head, const char *piece, size_t size)
{
    char *text = malloc(size);
    size_t length = strlen(head), piece_length = strlen(piece);
    memcpy(text, head, length);
    for (size_t i = 0; length + i < size; i++)
        text[length + i] = piece[i % piece_length];
    return text;
}

static void refuse(const char *head, const char *piece, const char *place)
{
    enum { SIZE = 4 * MIB };
    meter m;
    char *text = repeat(head, piece, SIZE), begin[64];
    quire_trace *trace = NULL;
    meter_init(&m);
    CHECK_FAILS(quire_trace_parse("t", text, SIZE, &m.callbacks, &trace), QUIRE_ERROR_BAD_FILE);
    snprintf(begin, sizeof begin, "t:%s: ", place);
    CHECK_HAS(quire_last_error(), begin);
    CHECK(m.peak <= SMALL);
    CHECK_EQ(m.bytes, 0);
    free(text);
}

UNIT(parse_memory, line_ends_before_the_header_take_no_memory)
{
    refuse("", "\n", "1:1");
    refuse("", "\r\n", "1:1");
    refuse("# a remark\n", "#\n", "1:1");
}

UNIT(parse_memory, line_ends_after_the_header_take_no_memory)
{
    refuse(HEADER, "\n", "2:1");
    refuse(HEADER, "\r\n", "2:1");
    refuse(HEADER, "#\n", "2:2");
    refuse(HEADER "alloc,1,16,,0,0,\n", "\n", "3:1");
    refuse(HEADER "alloc,1,16,,0,0,\n", "alloc,1,16,,0,0,\n", "3:7");
}

UNIT(parse_memory, events_take_the_size_of_their_records)
{
    enum { PAIRS = 20000 };
    static const char pair[] = "alloc,1,16,,0,0,\nfree,1,,,0,0,\n";
    size_t size = sizeof HEADER - 1 + PAIRS * (sizeof pair - 1);
    char *text = repeat(HEADER, pair, size);
    quire_trace *trace = NULL;
    quire_trace_info info;
    meter m;
    meter_init(&m);
    CHECK_OK(quire_trace_parse("t", text, size, &m.callbacks, &trace));
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.event_count, 2 * PAIRS);
    /* while an array is copied to one of twice its size */
    CHECK(m.peak <= 2 * PAIRS * AN_EVENT + SMALL);
    quire_trace_destroy(&trace);
    CHECK_EQ(m.bytes, 0);
    free(text);
}

/* Text after the seventh field is no part of the trace. */
UNIT(parse_memory, ignored_columns_are_not_stored)
{
    enum { LINES = 64, COLUMN = 32 << 10 };
    char *text = malloc(sizeof HEADER + LINES * (COLUMN + 64));
    size_t size = (size_t)sprintf(text, HEADER);
    for (int i = 1; i <= LINES; i++) {
        size += (size_t)sprintf(text + size, "alloc,%d,16,,0,0,name,", i);
        memset(text + size, 'x', COLUMN);
        size += COLUMN;
        text[size++] = '\n';
    }
    quire_trace *trace = NULL;
    meter m;
    meter_init(&m);
    CHECK_OK(quire_trace_parse("t", text, size, &m.callbacks, &trace));
    CHECK(m.peak <= LINES * AN_EVENT + SMALL + 4 * COLUMN);
    CHECK(m.bytes <= LINES * AN_EVENT + SMALL);
    quire_trace_destroy(&trace);
    CHECK_EQ(m.bytes, 0);
    free(text);
}

/* Labels keep their address and text: short, long, repeated, and in any order. */
UNIT(parse_memory, consecutive_equal_labels_are_stored_once)
{
    enum { EVENTS = 3000, LONGEST = 1000, SAME = 8, LINE = LONGEST + 64 };
    static char expected[EVENTS][LONGEST + 1];
    char *text = malloc(sizeof HEADER + EVENTS * LINE);
    size_t size = (size_t)sprintf(text, HEADER), labels = 0;
    for (int i = 0; i < EVENTS; i++) {
        int which = i / SAME;
        memset(expected[i], 'a' + which % 26, (size_t)(which * 37 % LONGEST));
        labels += i % SAME ? 0 : strlen(expected[i]) + 1;
        size += (size_t)sprintf(text + size, "alloc,%d,16,,0,0,%s\n", i + 1, expected[i]);
    }
    quire_trace *trace = NULL;
    meter m;
    meter_init(&m);
    CHECK_OK(quire_trace_parse("t", text, size, &m.callbacks, &trace));
    free(text);
    for (int i = 0; i < EVENTS; i++) {
        quire_trace_event event;
        CHECK_OK(quire_trace_get_event(trace, (uint64_t)i, &event));
        CHECK_STR(event.label, expected[i]);
    }
    CHECK(m.bytes <= EVENTS * AN_EVENT + labels * 5 / 4 + 4 * SMALL + SMALL);
    quire_trace_destroy(&trace);
    CHECK_EQ(m.bytes, 0);
}
