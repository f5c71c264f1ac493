/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recording.c - recordings made by hand: times, names, what is left out, and the refusal of each
 * mistake with its position. tests/unit/core/record/recorder.c reads what recorders write.
 */
#include <stdio.h>
#include <string.h>

#include "quire/trace.h"
#include "src/base/recording.h"
#include "tests/support/unit.h"

/* A file of one or two blocks. */
typedef struct recording {
    _Alignas(16) char bytes[2048];
    size_t size;
    qi_block_header *header; /* of the last block */
} recording;

static recording file;

static void add_block(uint64_t begin_ns, uint64_t end_ns, uint64_t ticks)
{
    file.header = (qi_block_header *)(void *)(file.bytes + file.size);
    *file.header = (qi_block_header){.order = QI_RECORDING_ORDER,
                                     .size = sizeof(qi_block_header),
                                     .begin_ns = begin_ns,
                                     .end_ns = end_ns,
                                     .ticks = ticks};
    memcpy(file.header->magic, QI_RECORDING_MAGIC, 8);
    file.size += sizeof(qi_block_header);
}

static void *add(const void *unit)
{
    void *at = memcpy(file.bytes + file.size, unit, QI_RECORDING_UNIT);
    file.size += QI_RECORDING_UNIT;
    file.header->size += QI_RECORDING_UNIT;
    return at;
}

static qi_record_size *add_alloc(uint64_t id, uint32_t ticks, uint64_t size, uint32_t name)
{
    add(&(qi_record){.id = id, .ticks = ticks, .alignment = 4, .kind = QI_RECORD_ALLOC});
    return add(&(qi_record_size){.size = size, .name = name});
}

static qi_record *add_record(uint64_t id, uint32_t ticks, qi_record_kind kind)
{
    return add(&(qi_record){.id = id, .ticks = ticks, .kind = (uint8_t)kind});
}

static void begin(void)
{
    file.size = 0;
    add_block(1000, 2000, 100);
}

static quire_trace *parse(void)
{
    quire_trace *trace = NULL;
    CHECK_OK(quire_trace_parse("f", file.bytes, file.size, NULL, &trace));
    return trace;
}

static quire_trace_event event_of(const quire_trace *trace, uint64_t number)
{
    quire_trace_event event;
    CHECK_OK(quire_trace_get_event(trace, number, &event));
    return event;
}

static void check_refused(const char *sentence)
{
    quire_trace *trace = NULL;
    CHECK_FAILS(quire_trace_parse("f", file.bytes, file.size, NULL, &trace), QUIRE_ERROR_BAD_FILE);
    CHECK(trace == NULL);
    CHECK_STR(quire_last_error(), sentence);
}

/* ---- what is read --------------------------------------------------------------------------- */

UNIT(recording, ticks_become_times_between_those_of_the_block)
{
    begin();
    add_alloc(77, 10, 5, 0);
    add_record(0, 60, QI_RECORD_FRAME);
    add_record(77, 100, QI_RECORD_FREE);
    add_block(5000, 5000, 0);
    add_record(0, 0, QI_RECORD_FRAME);
    quire_trace *trace = parse();
    quire_trace_info info;
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK(info.event_count == 4 && info.alloc_count == 1 && info.free_count == 1);
    CHECK(info.frame_count == 2 && info.cut_bytes == 0 && info.end_ns == 3900);
    quire_trace_event event = event_of(trace, 0);
    CHECK(event.op == QUIRE_TRACE_ALLOC && event.id == 1 && event.size == 5);
    CHECK(event.alignment == 16 && event.time_ns == 0);
    CHECK_EQ(event_of(trace, 1).time_ns, 500);
    CHECK(event_of(trace, 2).time_ns == 900 && event_of(trace, 2).id == 1);
    CHECK_EQ(event_of(trace, 3).time_ns, 3900);
    quire_trace_destroy(&trace);
}

UNIT(recording, frees_of_older_ranges_are_left_out)
{
    begin();
    add_record(5, 0, QI_RECORD_FREE);
    add_alloc(6, 50, 1, 0);
    quire_trace *trace = parse();
    CHECK(event_of(trace, 0).op == QUIRE_TRACE_ALLOC && event_of(trace, 0).time_ns == 0);
    quire_trace_destroy(&trace);
}

UNIT(recording, bytes_need_no_alignment)
{
    static char moved[2048];
    begin();
    add_alloc(6, 50, 1, 0);
    memcpy(moved + 1, file.bytes, file.size);
    quire_trace *trace = NULL;
    CHECK_OK(quire_trace_parse("f", moved + 1, file.size, NULL, &trace));
    quire_trace_destroy(&trace);
}

UNIT(recording, names_become_labels)
{
    begin();
    add_record(17, 0, QI_RECORD_NAME);
    add("a,b\"\n\xff/01234567");
    add("8\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    add_alloc(6, 0, 1, 64);
    add_alloc(7, 0, 1, 64);
    quire_trace *trace = parse();
    CHECK_STR(event_of(trace, 0).label, "a_b__\xef\xbf\xbd/01234567");
    CHECK_STR(event_of(trace, 1).label, event_of(trace, 0).label);
    quire_trace_destroy(&trace);
}

/* ---- mistakes ------------------------------------------------------------------------------- */

UNIT(recording, wrong_headers_are_refused)
{
    begin();
    file.header->order = 0x04030201;
    check_refused("f: byte 0: the recording has another byte order");
    for (uint32_t size = 0; size <= 72; size += 8) {
        begin();
        add_alloc(1, 0, 1, 0);
        file.header->size = size;
        if (size < 64 || size % 16)
            CHECK_FAILS(quire_trace_parse("f", file.bytes, file.size, NULL, &(quire_trace *){NULL}),
                        QUIRE_ERROR_BAD_FILE);
    }
    begin();
    file.header->size = QI_RECORDING_BLOCK + 16;
    check_refused("f: byte 0: a block of 65552 bytes");
    begin();
    file.header->end_ns = 999;
    check_refused("f: byte 0: the time of the block is before that of the last one");
    begin();
    add_block(1999, 3000, 1);
    check_refused("f: byte 64: the time of the block is before that of the last one");
    begin();
    add_block(2000, 3000, 1);
    file.header->magic[3] = 'x';
    check_refused("f: byte 64: no block of a recording begins here");
}

UNIT(recording, wrong_records_are_refused)
{
    static const struct {
        qi_record record;
        const char *says;
    } wrong[] = {
        {{.id = 1, .kind = 0}, "no record, or one that is longer than its block"},
        {{.id = 1, .kind = 5}, "no record, or one that is longer than its block"},
        {{.id = 256, .kind = QI_RECORD_NAME}, "no record, or one that is longer than its block"},
        {{.id = 1, .kind = QI_RECORD_NAME}, "no record, or one that is longer than its block"},
        {{.id = 1, .kind = QI_RECORD_ALLOC}, "no record, or one that is longer than its block"},
        {{.ticks = 9, .kind = QI_RECORD_FRAME}, "the time of the record is not that of its block"},
        {{.ticks = 101, .kind = QI_RECORD_FRAME},
         "the time of the record is not that of its block"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char sentence[128];
        begin();
        add_record(0, 10, QI_RECORD_FRAME);
        qi_record *record = add(&wrong[i].record);
        record->ticks += record->ticks ? 0 : 10;
        snprintf(sentence, sizeof sentence, "f: byte 80: %s", wrong[i].says);
        check_refused(sentence);
    }
}

UNIT(recording, wrong_allocations_are_refused)
{
    begin();
    add_alloc(0, 0, 1, 0);
    check_refused("f: byte 64: an allocation of 1 bytes, alignment 2^4, id 0");
    begin();
    add_alloc(1, 0, 0, 0);
    check_refused("f: byte 64: an allocation of 0 bytes, alignment 2^4, id 1");
    begin();
    add(&(qi_record){.id = 1, .alignment = 64, .kind = QI_RECORD_ALLOC});
    add(&(qi_record_size){.size = 1});
    check_refused("f: byte 64: an allocation of 1 bytes, alignment 2^64, id 1");
    begin();
    add_alloc(3, 0, 1, 0);
    add_alloc(3, 0, 1, 0);
    check_refused("f: byte 96: the range is live already, as allocation 1");
    begin();
    add_alloc(3, 0, UINT64_MAX, 0);
    add_alloc(4, 0, 1, 0);
    check_refused("f: byte 96: the live bytes do not fit 64 bits");
}

UNIT(recording, a_frame_has_no_id)
{
    begin();
    add_record(7, 0, QI_RECORD_FRAME);
    check_refused("f: byte 64: a frame with the id 7");
}

UNIT(recording, names_that_do_not_exist_are_refused)
{
    static const uint32_t offsets[] = {8, 64, 72, 96, UINT32_MAX - 15};
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        char sentence[128];
        begin();
        add_record(0, 0, QI_RECORD_FRAME); /* no name */
        add_record(3, 0, QI_RECORD_NAME);
        add("abc\0\0\0\0\0\0\0\0\0\0\0\0");
        add_alloc(1, 0, 1, offsets[i] == 96 ? 112 : offsets[i]);
        snprintf(sentence, sizeof sentence, "f: byte 112: no name is at byte %u of the block",
                 offsets[i] == 96 ? 112 : offsets[i]);
        check_refused(sentence);
    }
}
