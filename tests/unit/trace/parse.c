/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * parse.c - reading traces: what is accepted and what it means, and each rule of the format broken
 * once, reported at exactly this line and column, with no host memory kept.
 */
#include <stdio.h>
#include <stdlib.h>

#include "quire/trace.h"
#include "tests/support/unit.h"

#define HEADER "op,id,size,alignment,time_ns,stream,label"

/* Parses a copy that ends at the end of the text, so that a sanitizer sees a read after it. */
static quire_result parse_bytes(const char *text, size_t size, quire_trace **trace)
{
    char *copy = malloc(size ? size : 1);
    memcpy(copy, text, size);
    quire_result result = quire_trace_parse("t.csv", copy, size, unit_memory(), trace);
    memset(copy, 'x', size); /* no longer used */
    free(copy);
    return result;
}

static quire_trace *accept(const char *text)
{
    quire_trace *trace = NULL;
    CHECK_OK(parse_bytes(text, strlen(text), &trace));
    CHECK(trace != NULL);
    return trace;
}

/* The text is rejected at a place, "LINE:COLUMN", with a message about a subject. */
static void refuse_bytes(const char *text, size_t size, const char *place, const char *about)
{
    char begin[64];
    quire_trace *trace = (quire_trace *)(uintptr_t)1;
    CHECK_FAILS(parse_bytes(text, size, &trace), QUIRE_ERROR_BAD_FILE);
    CHECK(!trace);
    CHECK_EQ(unit_memory_state()->blocks, 0);
    snprintf(begin, sizeof begin, "t.csv:%s: ", place);
    if (strncmp(quire_last_error(), begin, strlen(begin)))
        check_failed(__FILE__, __LINE__, "'%s' is not at %s: '%s'", quire_last_error(), place,
                     text);
    CHECK_HAS(quire_last_error() + strlen(begin), about);
}

typedef struct bad_text {
    const char *text; /* lines joined by \n */
    const char *place;
    const char *about;
} bad_text;

/* The text with each \n replaced by the given line end, and a final line end if requested. */
static void refuse_with(const char *head, const bad_text *r, const char *line_end, bool ended)
{
    char text[1024] = "";
    strcat(strcat(text, head), *head ? line_end : "");
    size_t length = strlen(text);
    for (const char *p = r->text; *p; p++)
        length += (size_t)snprintf(text + length, sizeof text - length, "%s",
                                   *p == '\n' ? line_end : (char[]){*p, '\0'});
    if (ended)
        strcat(text, line_end);
    refuse_bytes(text, strlen(text), r->place, r->about);
}

/* With LF and CRLF, with and without a final line end: the place is always the same. */
static void refuse_all(const char *head, const bad_text *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        refuse_with(head, &rows[i], "\n", true);
        refuse_with(head, &rows[i], "\n", false);
        refuse_with(head, &rows[i], "\r\n", true);
        refuse_with(head, &rows[i], "\r\n", false);
    }
}

#define REFUSE_ALL(head, ...)                                                                      \
    refuse_all((head), (const bad_text[]){__VA_ARGS__},                                            \
               sizeof((const bad_text[]){__VA_ARGS__}) / sizeof(bad_text))

/* ---- rejected texts ----------------------------------------------------------------------- */

UNIT(parse, rejects_bad_headers)
{
    REFUSE_ALL("", {"op,id,size", "1:11", "header"}, {"alloc,1,16,,0,0,", "1:1", HEADER},
               {"OP,id,size,alignment,time_ns,stream,label", "1:1", "header"},
               {"op,ID,size,alignment,time_ns,stream,label", "1:4", "header"},
               {" " HEADER, "1:1", "header"}, {"op;id", "1:3", "header"},
               {"op,id,size,alignment,time_ns,stream,", "1:37", "header"},
               {HEADER "s", "1:42", "header"}, {HEADER " ", "1:42", "header"},
               {"\"op\",id", "1:1", "header"}, {"x\n" HEADER, "1:1", "header"},
               {"op,size,id,alignment,time_ns,stream,label", "1:4", "header"});
    refuse_bytes("\n", 1, "1:1", "header");
    refuse_bytes("\r\n", 2, "1:1", "header");
    refuse_bytes("\n" HEADER "\n", sizeof HEADER + 1, "1:1", "header");
}

UNIT(parse, rejects_a_byte_order_mark)
{
    REFUSE_ALL("", {"\xef\xbb\xbf" HEADER, "1:1", "header"});
}

UNIT(parse, rejects_lines_that_end_early)
{
    REFUSE_ALL(HEADER, {"alloc", "2:6", "field 1 (op)"}, {",", "2:2", "field 2 (id)"},
               {"alloc,1,16", "2:11", "field 3 (size)"}, {"alloc,1,16,", "2:12", "(alignment)"},
               {"alloc,1,16,,0", "2:14", "(time_ns)"},
               {"alloc,1,16,,0,0", "2:16", "field 6 (stream) of 7"}, {" ", "2:2", "field 1 (op)"},
               {"alloc,1,16,,0,0,\nfree,1", "3:7", "(id)"});
}

UNIT(parse, rejects_empty_lines)
{
    const char *const texts[] = {HEADER "\n\n", HEADER "\r\n\r\n", HEADER "\n\r\n", HEADER "\n\n\n",
                                 HEADER "\n\nalloc,1,16,,0,0,\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refuse_bytes(texts[i], strlen(texts[i]), "2:1", "empty line");
}

UNIT(parse, rejects_unknown_operations)
{
    REFUSE_ALL(HEADER, {"malloc,1,16,,0,0,", "2:1", "'malloc'"}, {",1,16,,0,0,", "2:1", "op is ''"},
               {"Alloc,1,16,,0,0,", "2:1", "'Alloc'"}, {" alloc,1,16,,0,0,", "2:1", "' alloc'"},
               {"alloc ,1,16,,0,0,", "2:1", "'alloc '"}, {"allocs,1,16,,0,0,", "2:1", "free, use"},
               {"\"alloc\",1,16,,0,0,", "2:1", "alloc"},
               {"# a remark,,,,,,", "2:1", "'# a remark'"}, {HEADER, "2:1", "'op'"},
               {"\xc3\xa4lloc,1,16,,0,0,", "2:1", "'??lloc'"});
}

UNIT(parse, rejects_bad_ids)
{
    REFUSE_ALL(HEADER, {"alloc,-1,16,,0,0,", "2:7", "id is negative: '-1'"},
               {"alloc,,16,,0,0,", "2:7", "id is missing"}, {"alloc,0,16,,0,0,", "2:7", "positive"},
               {"alloc,000,16,,0,0,", "2:7", "positive"},
               {"alloc,1x,16,,0,0,", "2:8", "not a decimal number: '1x'"},
               {"alloc,+1,16,,0,0,", "2:7", "decimal"}, {"alloc, 1,16,,0,0,", "2:7", "decimal"},
               {"alloc,1 ,16,,0,0,", "2:8", "decimal"}, {"alloc,0x1,16,,0,0,", "2:8", "decimal"},
               {"alloc,1.0,16,,0,0,", "2:8", "decimal"}, {"alloc,1e3,16,,0,0,", "2:8", "decimal"},
               {"alloc,\xd9\xa1,16,,0,0,", "2:7", "decimal"},
               {"alloc,18446744073709551616,16,,0,0,", "2:7", "64 bits"},
               {"alloc,18446744073709551620,16,,0,0,", "2:7", "64 bits"},
               {"alloc,1234567890123456789012345678901234567,16,,0,0,", "2:7",
                "'12345678901234567890123456789012...'"});
}

UNIT(parse, rejects_bad_sizes_and_alignments)
{
    REFUSE_ALL(HEADER, {"alloc,1,0,,0,0,", "2:9", "at least 1"},
               {"alloc,1,,,0,0,", "2:9", "size is missing"},
               {"alloc,1,-5,,0,0,", "2:9", "size is negative"},
               {"alloc,1,4K,,0,0,", "2:10", "size is not a decimal"},
               {"alloc,1,18446744073709551616,,0,0,", "2:9", "size does not fit 64 bits"},
               {"alloc,1,16,0,0,0,", "2:12", "alignment 0 is not a power of two"},
               {"alloc,1,16,3,0,0,", "2:12", "alignment 3 is not"},
               {"alloc,1,16,18446744073709551615,0,0,", "2:12", "power of two"},
               {"alloc,1,16,18446744073709551616,0,0,", "2:12", "alignment does not fit"},
               {"alloc,1,16,-8,0,0,", "2:12", "alignment is negative"},
               {"alloc,1,16, ,0,0,", "2:12", "alignment is not a decimal"});
}

UNIT(parse, rejects_live_bytes_above_64_bits)
{
    REFUSE_ALL(HEADER,
               {"alloc,1,18446744073709551615,,0,0,\nalloc,2,1,,0,0,", "3:9", "do not fit 64"},
               {"alloc,1,1,,0,0,\nalloc,2,18446744073709551615,,0,0,", "3:9", "live bytes"});
}

UNIT(parse, rejects_bad_times_and_streams)
{
    REFUSE_ALL(
        HEADER, {"alloc,1,16,,,0,", "2:13", "time_ns is missing"},
        {"alloc,1,16,,-1,0,", "2:13", "negative"}, {"alloc,1,16,,0s,0,", "2:14", "decimal"},
        {"alloc,1,16,,18446744073709551616,0,", "2:13", "64 bits"},
        {"alloc,1,16,,0,0,\nfree,1,,,9,0,\nalloc,1,16,,8,0,", "4:13", "decreases from 9 to 8"},
        {"frame,,,,0,,\nframe,,,,1,,\nframe,,,,0,,", "4:10", "decreases from 1 to 0"},
        {"alloc,1,16,,7,0,\nfree,1,,,6,0,", "3:10", "decreases from 7 to 6"},
        {"frame,,,,18446744073709551615,,\nframe,,,,0,,", "3:10", "decreases from 184"},
        {"frame,,,,-1,,", "2:10", "negative"}, {"alloc,1,16,,0,-1,", "2:15", "stream is negative"},
        {"alloc,1,16,,0,gpu,", "2:15", "stream is not a decimal"},
        {"alloc,1,16,,0,18446744073709551616,", "2:15", "stream does not fit"});
}

UNIT(parse, rejects_bad_labels)
{
    REFUSE_ALL(HEADER, {"alloc,1,16,,0,0,a\"b", "2:18", "'a\"b'"},
               {"alloc,1,16,,0,0,\"kv\"", "2:17", "quotes"},
               {"alloc,1,16,,0,0,a\rb", "2:18", "'a?b'"},
               {"alloc,1,16,,0,0,\nfree,1,,,0,0,\"", "3:14", "quotes"});
    refuse_bytes(HEADER "\nalloc,1,16,,0,0,a\r\r\n", sizeof HEADER + 20, "2:18", "line ends");
}

UNIT(parse, rejects_allocs_of_live_and_frees_of_dead_ids)
{
    REFUSE_ALL(HEADER, {"free,1,,,0,0,", "2:6", "id 1 is not live"},
               {"use,77,,,0,0,", "2:5", "id 77 is not live"},
               {"alloc,1,16,,0,0,\nfree,1,,,0,0,\nfree,1,,,0,0,", "4:6", "id 1 is not live"},
               {"alloc,1,16,,0,0,\nfree,1,,,0,0,\nuse,1,,,0,0,", "4:5", "id 1 is not live"},
               {"alloc,1,16,,0,0,\nfree,2,,,0,0,", "3:6", "id 2 is not live"},
               {"alloc,9,16,,0,0,\nalloc,8,16,,0,0,\nalloc,9,16,,0,0,", "4:7",
                "id 9 is already live since line 2"},
               {"alloc,9,1,,0,0,\nfree,9,,,0,0,\nalloc,9,1,,0,0,\nalloc,9,1,,0,0,", "5:7",
                "since line 4"});
}

UNIT(parse, rejects_fields_that_must_be_empty)
{
    REFUSE_ALL(
        HEADER,
        {"alloc,1,16,,0,0,\nfree,1,16,,0,0,", "3:8", "size of 'free' must be empty, not '16'"},
        {"alloc,1,16,,0,0,\nfree,1,,8,0,0,", "3:9", "alignment of 'free'"},
        {"alloc,1,16,,0,0,\nuse,1,0,,0,0,", "3:7", "size of 'use'"},
        {"alloc,1,16,,0,0,\nuse,1,,1,0,0,", "3:8", "alignment of 'use'"},
        {"frame,1,,,0,,", "2:7", "id of 'frame'"}, {"frame,,1,,0,,", "2:8", "size of"},
        {"frame,,,1,0,,", "2:9", "alignment of"}, {"frame,,,,0,gpu,", "2:12", "stream is not"},
        {"frame,,,,0,,x", "2:13", "label of"}, {"frame,,,,0,7,x", "2:14", "label of"},
        {"frame,,,,,,", "2:10", "time_ns is missing"});
}

UNIT(parse, rejects_bytes_that_are_no_text)
{
    REFUSE_ALL(HEADER, {"alloc,1,16,,0,0,\xff", "2:17", "byte 0xff is not text"},
               {"alloc,1,16,,0,0,a\x80", "2:18", "0x80"}, {"\xc0\xaf", "2:1", "0xc0"},
               {"alloc,1,16,,0,0,\xed\xa0\x80", "2:17", "0xed"},
               {"alloc,1,16,,0,0,\xf4\x90\x80\x80", "2:17", "0xf4"},
               {"alloc,1,16,,0,0,\xe2\x82", "2:17", "0xe2"},
               {"alloc,1,16,,0,0,,ignored \xfe", "2:26", "0xfe"},
               {"alloc,1,16,,0,0,\nfree\xf0,1,,,0,0,", "3:5", "0xf0"});
    REFUSE_ALL("",
               {"\x7f"
                "ELF\x02\x01\x01",
                "1:1", "header"},
               {HEADER ",\xff", "1:43", "0xff"});
    refuse_bytes(HEADER "\nalloc,1,16,,0,0,a\0b\n", sizeof HEADER + 20, "2:18", "byte 0x00");
    refuse_bytes(HEADER "\n\0", sizeof HEADER + 1, "2:1", "byte 0x00");
    refuse_bytes(HEADER "\0", sizeof HEADER, "1:42", "byte 0x00");
    refuse_bytes("\0\0\0\0", 4, "1:1", "byte 0x00");
}

UNIT(parse, rejects_an_empty_text_without_a_place)
{
    quire_trace *trace = (quire_trace *)(uintptr_t)1;
    CHECK_FAILS(parse_bytes("", 0, &trace), QUIRE_ERROR_BAD_FILE);
    CHECK(!trace);
    CHECK_STR(quire_last_error(), "t.csv: the file is empty");
    CHECK_FAILS(quire_trace_parse("t.csv", NULL, 0, NULL, &trace), QUIRE_ERROR_BAD_FILE);
}

/* ---- accepted texts ----------------------------------------------------------------------- */

UNIT(parse, a_header_alone_is_a_trace_without_events)
{
    const char *const texts[] = {HEADER,        HEADER "\n",     HEADER "\r\n",
                                 HEADER ",a,b", HEADER ",\"a\"", HEADER ",\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        quire_trace *trace = accept(texts[i]);
        quire_trace_info info, none = {0};
        quire_trace_event event;
        CHECK_OK(quire_trace_get_info(trace, &info));
        CHECK(!memcmp(&info, &none, sizeof info));
        CHECK_FAILS(quire_trace_get_event(trace, 0, &event), QUIRE_ERROR_OUT_OF_RANGE);
        quire_trace_destroy(&trace);
    }
}

static void expect_event(const quire_trace *trace, uint64_t number, quire_trace_event expected)
{
    quire_trace_event event;
    CHECK_OK(quire_trace_get_event(trace, number, &event));
    CHECK_EQ(event.op, expected.op);
    CHECK_EQ(event.range, expected.range);
    CHECK_EQ(event.id, expected.id);
    CHECK_EQ(event.size, expected.size);
    CHECK_EQ(event.alignment, expected.alignment);
    CHECK_EQ(event.time_ns, expected.time_ns);
    CHECK_EQ(event.stream, expected.stream);
    CHECK_STR(event.label, expected.label);
}

UNIT(parse, events_are_what_the_lines_say)
{
    const char *const texts[] = {
        HEADER ",more\nalloc,5,100,64,0,3,key\xc3\xa9s,x,\"y\"\nuse,5,,,10,,\nframe,,,,10,,\n"
               "free,5,,,4000,3,gone\nalloc,5,7,,4000,0,",
        HEADER "\r\nalloc,5,100,64,0,3,key\xc3\xa9s\r\nuse,5,,,10,,,,,\r\nframe,,,,10,,,\r\r\n"
               "free,5,,,4000,3,gone\r\nalloc,5,7,,4000,0,\r\n"};
    for (int i = 0; i < 2; i++) {
        quire_trace *trace = accept(texts[i]);
        expect_event(trace, 0, (quire_trace_event){0, 0, 5, 100, 64, 0, 3, "key\xc3\xa9s"});
        expect_event(trace, 1, (quire_trace_event){QUIRE_TRACE_USE, 0, 5, 0, 0, 10, 0, ""});
        expect_event(trace, 2, (quire_trace_event){QUIRE_TRACE_FRAME, 0, 0, 0, 0, 10, 0, ""});
        expect_event(trace, 3, (quire_trace_event){QUIRE_TRACE_FREE, 0, 5, 0, 0, 4000, 3, "gone"});
        expect_event(trace, 4, (quire_trace_event){0, 0, 5, 7, 1, 4000, 0, ""});
        quire_trace_destroy(&trace);
    }
}

UNIT(parse, the_largest_and_the_most_padded_numbers)
{
    quire_trace *trace =
        accept(HEADER "\nalloc,18446744073709551615,18446744073709551615,9223372036854775808,000,"
                      "18446744073709551615,\xef\xbf\xbd\xf0\x9f\x8d\x8e\n"
                      "free,00000000000018446744073709551615,,,18446744073709551615,,\n"
                      "alloc,0007,010,01,18446744073709551615,007,\t\x1b\x7f'\n");
    expect_event(trace, 0,
                 (quire_trace_event){0, 0, UINT64_MAX, UINT64_MAX, UINT64_C(1) << 63, 0, UINT64_MAX,
                                     "\xef\xbf\xbd\xf0\x9f\x8d\x8e"});
    expect_event(trace, 1,
                 (quire_trace_event){QUIRE_TRACE_FREE, 0, UINT64_MAX, 0, 0, UINT64_MAX, 0, ""});
    expect_event(trace, 2, (quire_trace_event){0, 0, 7, 10, 1, UINT64_MAX, 7, "\t\x1b\x7f'"});
    quire_trace_info info;
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.peak_bytes, UINT64_MAX);
    CHECK_EQ(info.largest, UINT64_MAX);
    CHECK_EQ(info.end_ns, UINT64_MAX);
    CHECK_EQ(info.left_bytes, 10);
    quire_trace_destroy(&trace);
}

/* The first time may have any value; the API reports times relative to it. */
UNIT(parse, times_count_from_the_first)
{
    quire_trace *trace = accept(HEADER "\nalloc,1,16,,5000,2,\nuse,1,,,5000,2,\nframe,,,,5007,,\n"
                                       "free,1,,,9000,2,\n");
    quire_trace_info info;
    expect_event(trace, 0, (quire_trace_event){0, 0, 1, 16, 1, 0, 2, ""});
    expect_event(trace, 1, (quire_trace_event){QUIRE_TRACE_USE, 0, 1, 0, 0, 0, 2, ""});
    expect_event(trace, 2, (quire_trace_event){QUIRE_TRACE_FRAME, 0, 0, 0, 0, 7, 0, ""});
    expect_event(trace, 3, (quire_trace_event){QUIRE_TRACE_FREE, 0, 1, 0, 0, 4000, 2, ""});
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.end_ns, 4000);
    quire_trace_destroy(&trace);
    trace = accept(HEADER "\nframe,,,,18446744073709551615,,\nframe,,,,18446744073709551615,,\n");
    expect_event(trace, 1, (quire_trace_event){QUIRE_TRACE_FRAME, 0, 0, 0, 0, 0, 0, ""});
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.end_ns, 0);
    quire_trace_destroy(&trace);
    trace = accept(HEADER "\nframe,,,,1,,\nframe,,,,18446744073709551615,,\n");
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.end_ns, UINT64_MAX - 1);
    quire_trace_destroy(&trace);
}

UNIT(parse, a_frame_may_have_a_stream)
{
    quire_trace *trace = accept(HEADER "\nframe,,,,0,,\nframe,,,,1,7,\n"
                                       "frame,,,,1,18446744073709551615,,more\n");
    expect_event(trace, 0, (quire_trace_event){QUIRE_TRACE_FRAME, 0, 0, 0, 0, 0, 0, ""});
    expect_event(trace, 1, (quire_trace_event){QUIRE_TRACE_FRAME, 0, 0, 0, 0, 1, 7, ""});
    expect_event(trace, 2, (quire_trace_event){QUIRE_TRACE_FRAME, 0, 0, 0, 0, 1, UINT64_MAX, ""});
    quire_trace_destroy(&trace);
}

UNIT(parse, totals_and_the_peak)
{
    /* 100, 150, 150, 50, 150, 150, 150, 100, 0, 1, 3, 149 live bytes: the peak is event 1 */
    quire_trace *trace = accept(HEADER "\nalloc,1,100,,0,0,\nalloc,2,50,,1,0,\nframe,,,,1,,\n"
                                       "free,1,,,2,0,\nalloc,3,100,,3,0,\nuse,3,,,3,0,\n"
                                       "use,2,,,3,1,\nfree,2,,,4,0,\nfree,3,,,5,0,\n"
                                       "alloc,1,1,,6,0,\nalloc,2,2,,6,0,\nalloc,3,146,,7,0,\n");
    quire_trace_info info;
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.event_count, 12);
    CHECK_EQ(info.alloc_count, 6);
    CHECK_EQ(info.free_count, 3);
    CHECK_EQ(info.use_count, 2);
    CHECK_EQ(info.frame_count, 1);
    CHECK_EQ(info.peak_bytes, 150);
    CHECK_EQ(info.peak_event, 1);
    CHECK_EQ(info.peak_ranges, 3);
    CHECK_EQ(info.left_count, 3);
    CHECK_EQ(info.left_bytes, 149);
    CHECK_EQ(info.largest, 146);
    CHECK_EQ(info.end_ns, 7);
    quire_trace_destroy(&trace);
}

/* A trace of `count` allocations that are freed in order, with at most `live` live at a time. */
static char *long_text(uint32_t count, uint32_t live, size_t *size)
{
    size_t room = sizeof HEADER + (size_t)count * 80, length = 0;
    char *text = malloc(room);
    length += (size_t)snprintf(text, room, HEADER "\n");
    for (uint32_t i = 1; i <= count; i++) {
        length += (size_t)snprintf(text + length, room - length,
                                   "alloc,%" PRIu32 ",%" PRIu32 ",8,%" PRIu32 ",0,n%" PRIu32 "\n",
                                   i * 7, i, i - 1, i);
        if (i > live)
            length +=
                (size_t)snprintf(text + length, room - length,
                                 "free,%" PRIu32 ",,,%" PRIu32 ",0,\n", (i - live) * 7, i - 1);
    }
    *size = length;
    return text;
}

UNIT(parse, range_numbers_are_dense_and_unique_among_the_live)
{
    enum { COUNT = 20000, LIVE = 300 };
    static bool used[LIVE + 1];
    size_t size = 0;
    char *text = long_text(COUNT, LIVE, &size);
    quire_trace *trace = NULL;
    quire_trace_info info;
    CHECK_OK(parse_bytes(text, size, &trace));
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.peak_ranges, LIVE + 1);
    CHECK_EQ(info.left_count, LIVE);
    for (uint64_t i = 0; i < info.event_count; i++) {
        quire_trace_event event;
        CHECK_OK(quire_trace_get_event(trace, i, &event));
        CHECK(event.range < info.peak_ranges);
        CHECK_EQ(used[event.range], event.op == QUIRE_TRACE_FREE);
        used[event.range] = event.op == QUIRE_TRACE_ALLOC;
    }
    quire_trace_destroy(&trace);
    free(text);
}

/* ---- arguments and host memory ------------------------------------------------------------ */

UNIT(parse, each_failed_host_allocation_is_handled)
{
    size_t size = 0;
    char *text = long_text(700, 600, &size);
    for (int from_then = 0; from_then < 2; from_then++) {
        uint64_t call = 0;
        quire_trace *trace = NULL;
        for (quire_result result = QUIRE_ERROR_OUT_OF_HOST_MEMORY; result;) {
            test_memory_fail(unit_memory_state(), ++call, from_then);
            result = parse_bytes(text, size, &trace);
            if (!result)
                break;
            CHECK_FAILS(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
            CHECK_HAS(quire_last_error(), "host memory");
            CHECK(!trace);
            CHECK_EQ(unit_memory_state()->blocks, 0);
        }
        CHECK(call > 15); /* trace, line, and what grows: events, ids, ranges, labels */
        test_memory_fail(unit_memory_state(), 0, false);
        quire_trace_destroy(&trace);
    }
    free(text);
}

UNIT(parse, a_rejected_text_leaks_no_host_memory)
{
    /* the same text with an error in its last line */
    size_t size = 0;
    char *text = long_text(700, 600, &size);
    text[size - 2] = '"';
    for (uint64_t call = 1; call < 20; call++) {
        quire_trace *trace = NULL;
        test_memory_fail(unit_memory_state(), call, false);
        CHECK(parse_bytes(text, size, &trace) != QUIRE_SUCCESS);
        CHECK(!trace);
        CHECK_EQ(unit_memory_state()->blocks, 0);
    }
    test_memory_fail(unit_memory_state(), 0, false);
    free(text);
}
