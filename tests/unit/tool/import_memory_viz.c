/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * import_memory_viz.c - PyTorch's snapshots as rows: small pickles written by hand, every refusal
 * with its position, truncation at every byte, and host memory that runs out at every call.
 *
 * Opcodes of a pickle: } dict, ] list, ( mark, u SETITEMS, s SETITEM, e APPENDS, a APPEND, \x94
 * MEMOIZE, h BINGET, \x8c text with a length of one byte, K and M numbers of one and two bytes,
 * . end.
 */
#include "src/tool/import/memory_viz.h"

#include <string.h>

#include "tests/support/host_memory.h"
#include "tests/support/unit.h"

#define HEADER "op,id,size,alignment,time_ns,stream,label\n"
#define TEXT(length, text) "\x8c" length text

/* The fields of an entry, without the number of addr, size and so on. */
#define ACTION TEXT("\6", "action")
#define ALLOC ACTION TEXT("\5", "alloc")
#define FREE ACTION TEXT("\16", "free_completed")
#define ADDR TEXT("\4", "addr")
#define SIZE TEXT("\4", "size")
#define STREAM TEXT("\6", "stream")
#define TIME TEXT("\7", "time_us")
#define FRAMES TEXT("\6", "frames")
#define NAME TEXT("\4", "name")
#define FILENAME TEXT("\10", "filename")
#define LINE TEXT("\4", "line")
#define TRACES TEXT("\15", "device_traces")
#define SEGMENTS TEXT("\10", "segments")
#define BLOCKS TEXT("\6", "blocks")
#define STATE TEXT("\5", "state")
#define LIVE STATE TEXT("\20", "active_allocated")

#define ENTRY(fields) "}(" fields "u"
/* A snapshot with one device, whose entries are in one batch. */
#define ONE_DEVICE(entries) "\x80\4}" TRACES "]](" entries "eas."

static import_source source;
static import_rows rows;
static char written[4096];
static size_t written_length;
static const char *named_device; /* of the next file */

static bool append(void *user, const char *text, size_t size)
{
    (void)user;
    CHECK(written_length + size < sizeof written);
    memcpy(written + written_length, text, size);
    written_length += size;
    written[written_length] = '\0';
    return true;
}

static bool read_with(qi_host *host, const char *bytes, size_t size)
{
    FILE *file = tmpfile();
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    rewind(file);
    written_length = 0;
    import_begin(&source, file);
    source.device = named_device;
    import_rows_begin(&rows, append, NULL);
    const bool read =
        host ? memory_viz_read(&source, &rows, host) : import_memory_viz(&source, &rows);
    CHECK_OK(qi_writer_finish(&rows.writer));
    CHECK_EQ(read, !source.sentence[0]);
    fclose(file);
    return read;
}

#define READS(pickle, text)                                                                        \
    do {                                                                                           \
        read_with(NULL, pickle, sizeof(pickle) - 1);                                               \
        CHECK_STR(source.sentence, "");                                                            \
        CHECK_STR(written, HEADER text);                                                           \
    } while (0)

#define REFUSES(pickle, expected)                                                                  \
    do {                                                                                           \
        CHECK(!read_with(NULL, pickle, sizeof(pickle) - 1));                                       \
        CHECK_STR(source.sentence, expected);                                                      \
    } while (0)

/* Two entries with a frame that is shared: the second list is the first again (memo 1). */
#define SHARED                                                                                     \
    ENTRY(ALLOC ADDR "M\0\2" SIZE "K\7" STREAM "M\0\3" TIME "K\5" FRAMES                           \
                     "]\x94(" ENTRY(NAME TEXT("\2", "??") FILENAME TEXT("\2", "??") LINE "K\0")    \
                         ENTRY(NAME TEXT("\1", "f") FILENAME TEXT("\6", "/a/b.c") LINE "K\11")     \
                             ENTRY(NAME TEXT("\1", "g") FILENAME TEXT("\1", "h") LINE "K\1") "e")  \
    ENTRY(ALLOC ADDR "M\0\4" SIZE "K\10" STREAM "K\0" TIME "K\4" FRAMES "h\0")                     \
    ENTRY(FREE ADDR "M\0\2" SIZE "K\7" STREAM "K\0" TIME "K\6")

UNIT(import_memory_viz, entries_become_rows_with_labels_streams_and_rising_times)
{
    READS(ONE_DEVICE(SHARED), "alloc,1,7,512,5000,0,f b.c:9\n"
                              "alloc,2,8,512,5000,1,f b.c:9\n"
                              "free,1,,,6000,1,\n");
    CHECK(rows.allocations == 2 && rows.frees == 1 && rows.left_out == 0);
}

UNIT(import_memory_viz, an_address_is_reused_and_unknown_frees_are_counted)
{
    /* a free before any alloc; an address given twice without a free; a free of it, and again */
    READS(ONE_DEVICE(ENTRY(FREE ADDR "K\1") ENTRY(ALLOC ADDR "K\1" SIZE "K\2") ENTRY(
              ALLOC ADDR "K\1" SIZE "K\3") ENTRY(FREE ADDR "K\1") ENTRY(FREE ADDR "K\1")),
          "alloc,1,2,512,0,0,\n"
          "free,1,,,0,0,\n"
          "alloc,2,3,512,0,0,\n"
          "free,2,,,0,0,\n");
    CHECK_EQ(rows.left_out, 2);
}

UNIT(import_memory_viz, other_actions_and_ranges_of_no_bytes_have_no_rows)
{
    READS(ONE_DEVICE(ENTRY(ACTION TEXT("\16", "free_requested") ADDR "K\1")
                         ENTRY(ACTION TEXT("\3", "oom") TEXT("\13", "device_free") "K\1")
                             ENTRY(ALLOC ADDR "K\1" SIZE "K\0") ENTRY(FREE ADDR "K\1")
                                 ENTRY(ACTION TEXT("\15", "segment_alloc") ADDR "K\1" SIZE "K\1")),
          "");
    CHECK_EQ(rows.left_out, 0);
}

UNIT(import_memory_viz, the_first_device_with_an_alloc_is_read)
{
    /* device 0: nothing; 1: a free and a snapshot; 2: an alloc; 3: another one, after a number of
       a field that is not looked at */
    READS("\x80\4}(" TRACES "](]](" ENTRY(FREE ADDR "K\1" TIME "K\1")
              ENTRY(ACTION TEXT("\10", "snapshot")) "e](" ENTRY(
                  ALLOC ADDR "K\1" SIZE "K\2") "e](" ENTRY(ALLOC ADDR "N" SIZE "K\4") "eeu.",
          "alloc,1,2,512,0,0,\n");
    CHECK_EQ(rows.left_out, 0);
    /* the device that the caller names */
    named_device = "1";
    READS("\x80\4}" TRACES "](](" ENTRY(ALLOC ADDR "K\1" SIZE "K\2") "e](" ENTRY(
              ALLOC ADDR "K\1" SIZE "K\3" TIME "K\4") "ees.",
          "alloc,1,3,512,4000,0,\n");
    REFUSES("\x80\4}" TRACES "](](" ENTRY(ALLOC ADDR "K\1" SIZE "K\2") "ees.",
            "byte 60: device 1 has no allocations");
    named_device = NULL;
    /* no device has an alloc: the frees count */
    READS("\x80\4}(" TRACES "](](" ENTRY(FREE ADDR "K\1") "e](" ENTRY(FREE ADDR "K\1") "eeu.", "");
    CHECK_EQ(rows.left_out, 2);
}

/* Two blocks of stream 7 on device 1, of which one is live, then one of device 0, then two more. */
#define BLOCK_FIELDS(size, state) ENTRY(SIZE size state)
#define WITHOUT_HISTORY                                                                            \
    "\x80\4}(" SEGMENTS "](" ENTRY(                                                                \
        TEXT("\6", "device") "K\1" STREAM "K\7" BLOCKS                                             \
                             "](" BLOCK_FIELDS("K\1", STATE TEXT("\10", "inactive"))               \
                                 ENTRY(SIZE "K\10" TEXT("\16", "requested_size") "K\5" LIVE) "e")  \
        ENTRY(TEXT("\6", "device") "K\0" BLOCKS "](" BLOCK_FIELDS("K\11", LIVE) "e")               \
            ENTRY(TEXT("\6", "device") "K\1" STREAM "K\6" BLOCKS "](" BLOCK_FIELDS(                \
                "K\2", LIVE FRAMES "](" ENTRY(NAME TEXT("\1", "f") FILENAME TEXT("\1", "c") LINE   \
                                              "K\3") "e") BLOCK_FIELDS("K\0", LIVE) "e") "e"

UNIT(import_memory_viz, without_history_the_live_blocks_of_a_device_are_rows)
{
    static const char expected[] = HEADER "alloc,1,5,512,0,0,\n"
                                          "alloc,2,2,512,0,1,f c:3\n";
    READS(WITHOUT_HISTORY "u.", "alloc,1,5,512,0,0,\n"
                                "alloc,2,2,512,0,1,f c:3\n");
    CHECK(read_with(NULL, WITHOUT_HISTORY TRACES "](]]eu.",
                    sizeof(WITHOUT_HISTORY TRACES "](]]eu.") - 1));
    CHECK_STR(written, expected);
    /* with history, the blocks are no rows */
    READS(WITHOUT_HISTORY TRACES "]](" ENTRY(ALLOC ADDR "K\1" SIZE "K\2") "eau.",
          "alloc,1,2,512,0,0,\n");
}

/* ---- other ways to write the same ---------------------------------------------------------- */

UNIT(import_memory_viz, opcodes_of_protocol_0_are_read)
{
    READS("(dp0\nVdevice_traces\np1\n(lp2\n(lp3\n(dp4\nVaction\np5\nValloc\np6\nsVaddr\np7\n"
          "L140737488355328L\nsVsize\nI512\nsVtime_us\nI3\nsVx\nF1.5\nsVy\nI-1\nsa(dp8\n"
          "g5\nVfree_completed\nsg7\nL140737488355328L\nsg6\nL99999999999999999999L\nsaas.",
          "alloc,1,512,512,3000,0,\n"
          "free,1,,,3000,0,\n");
}

UNIT(import_memory_viz, values_without_a_meaning_are_passed_over)
{
    /* in an entry: None, bools, reals, bytes, tuples, sets, lists and dicts, long and negative
       numbers, and a text of 300 bytes in a dict */
    READS(
        ONE_DEVICE(ENTRY(ALLOC ADDR "\x8a\6\0\0\0\0\1\0" SIZE "\x8b\2\0\0\0\0\1" STREAM "J\0\0\1\0"
                                    "K\1N"
                                    "K\2\x88"
                                    "K\3\x89"
                                    "K\4G\0\0\0\0\0\0\0\0"
                                    "K\5B\1\0\0\0x"
                                    "K\6"
                                    "C\1x"
                                    "K\7)"
                                    "K\10K\1\x85"
                                    "K\11K\1K\2\x86"
                                    "K\12NNN\x87"
                                    "K\13(NNNNt"
                                    "K\14\x8f(K\1K\2\x90"
                                    "K\15(N\x91"
                                    "K\16](NNe"
                                    "K\17}(NNNNu"
                                    "K\20\x8e\1\0\0\0\0\0\0\0x"
                                    "K\21\x96\0\0\0\0\0\0\0\0"
                                    "K\22\x8a\11\0\0\0\0\0\0\0\0\1"
                                    "K\23J\xff\xff\xff\xff"
                                    "K\24\x8a\1\xff"
                                    "K\25\x8a\0"
                                    "K\26X\1\0\0\0x"
                                    "K\27\x8d\1\0\0\0\0\0\0\0x"
                                    "K\30T\1\0\0\0x"
                                    "K\31U\1x"
                                    "\x95\0\0\0\0\0\0\0\0")),
        "alloc,1,256,512,0,0,\n");
}

UNIT(import_memory_viz, references_of_every_width_lead_to_the_memo)
{
    /* memo: 0 is action, 1 is addr, 2 is size, then 2 is put again as alloc, which replaces it */
    READS("\x80\2}" TRACES "]](}(" ACTION "q\0" TEXT("\5", "alloc") ADDR
          "r\1\0\0\0"
          "K\1" SIZE "q\2"
          "K\2u}(h\0" TEXT("\5", "alloc") "q\2"
                                          "j\1\0\0\0"
                                          "K\3" SIZE "K\4u}(h\0h\2h\1K\5" SIZE "K\6ueas.",
          "alloc,1,2,512,0,0,\n"
          "alloc,2,4,512,0,0,\n"
          "alloc,3,6,512,0,0,\n");
}

UNIT(import_memory_viz, long_texts_are_cut)
{
    static char pickle[6000], *end = pickle;
#define ADD(bytes) (memcpy(end, bytes, sizeof(bytes) - 1), end += sizeof(bytes) - 1)
    ADD("\x80\4}" TRACES "]]}(" ALLOC ADDR "K\1" SIZE "K\1" FRAMES "]}(" NAME "X\x88\x13\0\0");
    memset(end, 'n', 5000);
    end += 5000;
    ADD(FILENAME TEXT("\1", "c") "uauaas.");
    CHECK(read_with(NULL, pickle, (size_t)(end - pickle)));
    CHECK_EQ(strlen(written), strlen(HEADER "alloc,1,1,512,0,0,"
                                            " c:0\n") +
                                  1024);
}

/* ---- refusals ------------------------------------------------------------------------------ */

UNIT(import_memory_viz, opcodes_that_make_or_call_objects_are_refused)
{
    static const struct {
        const char *opcode, *name;
    } refused[] = {
        {"0", "POP"},
        {"1", "POP_MARK"},
        {"2", "DUP"},
        {"P", "PERSID"},
        {"Q", "BINPERSID"},
        {"R", "REDUCE"},
        {"S", "STRING"},
        {"b", "BUILD"},
        {"c", "GLOBAL"},
        {"i", "INST"},
        {"o", "OBJ"},
        {"\x81", "NEWOBJ"},
        {"\x82", "EXT1"},
        {"\x83", "EXT2"},
        {"\x84", "EXT4"},
        {"\x92", "NEWOBJ_EX"},
        {"\x93", "STACK_GLOBAL"},
        {"\x97", "NEXT_BUFFER"},
        {"\x98", "READONLY_BUFFER"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char pickle[] = "\x80\4}?", sentence[IMPORT_MAX_SENTENCE];
        pickle[3] = refused[i].opcode[0];
        CHECK(!read_with(NULL, pickle, 4));
        snprintf(sentence, sizeof sentence, "byte 4: a snapshot has no opcode %s", refused[i].name);
        CHECK_STR(source.sentence, sentence);
    }
    REFUSES("\x80\4{", "byte 3: 0x7b is no opcode of a pickle");
    REFUSES("\x80\6", "byte 2: protocol 6 is newer than 5");
}

UNIT(import_memory_viz, a_malformed_pickle_is_refused)
{
    REFUSES("", "byte 0: the file ends before STOP");
    REFUSES(".", "byte 1: STOP leaves 0 values on the stack, not one");
    REFUSES("NN.", "byte 3: STOP leaves 2 values on the stack, not one");
    REFUSES("(.", "byte 2: STOP leaves 1 values on the stack, not one");
    REFUSES("}.N", "byte 2: the file goes on after STOP");
    REFUSES("Ix\n", "byte 3: INT has no decimal number, but 'x'");
    REFUSES("I-\n", "byte 3: INT has no decimal number, but '-'");
    REFUSES("L1\0\n", "byte 4: LONG has no decimal number, but '1'");
    REFUSES("N\x86", "byte 2: TUPLE2 needs more values than the stack has");
    REFUSES("N(\x85", "byte 3: TUPLE1 needs more values than the stack has");
    REFUSES("t", "byte 1: TUPLE has no mark");
    REFUSES("\x91", "byte 1: FROZENSET has no mark");
    REFUSES("]e", "byte 2: APPENDS has no mark");
    REFUSES("l", "byte 1: LIST has no mark");
    REFUSES("(Nd", "byte 3: DICT with values is not supported");
    REFUSES("Na", "byte 2: APPEND has no list below its items");
    REFUSES("NNNs", "byte 4: SETITEM has no dict below its items");
    REFUSES("(Ns", "byte 3: SETITEM needs more values than the stack has");
    REFUSES("a", "byte 1: APPEND needs more values than the stack has");
    REFUSES("NNa", "byte 3: APPEND has no list below its items");
    REFUSES("(e", "byte 2: APPENDS has no list below its items");
    REFUSES("((e", "byte 3: APPENDS has no list below its items");
    REFUSES("](u", "byte 3: SETITEMS has no dict below its items");
    REFUSES("](\x90", "byte 3: ADDITEMS has no set below its items");
    REFUSES("}(Nu", "byte 4: SETITEMS has a key without a value");
    REFUSES("q\0", "byte 2: BINPUT needs more values than the stack has");
    REFUSES("Nq\1", "byte 3: BINPUT skips from 0 to 1");
    REFUSES("N\x94h\1", "byte 4: BINGET of 1, but 1 are remembered");
    REFUSES("Np-1\n", "byte 5: PUT skips from 0 to 18446744073709551615");
}

UNIT(import_memory_viz, what_no_snapshot_is_is_refused)
{
    REFUSES("].", "byte 2: the pickle holds no dict");
    REFUSES("}.", "byte 2: the dict has neither device_traces nor segments");
    REFUSES("}" TRACES "Ns.", "byte 18: the device_traces of a snapshot are no list of their own");
    REFUSES("}" SEGMENTS "}s.", "byte 13: the segments of a snapshot are no list of their own");
    REFUSES("}" SEGMENTS "](}" BLOCKS "Ns",
            "byte 24: the blocks of a snapshot are no list of their own");
    REFUSES("}(" SEGMENTS "]" SEGMENTS "]", "byte 24: there are two lists segments");
    REFUSES("}(" TRACES "]" TRACES "]", "byte 34: there are two lists device_traces");
    REFUSES("}" TRACES "]Na", "byte 19: the trace of a device is no list");
    REFUSES("}" TRACES "]](Ne", "byte 21: an entry of a trace is no dict");
    REFUSES("}" SEGMENTS "](Ke", "byte 15: the file ends before STOP");
    REFUSES("}" SEGMENTS "](Ne", "byte 15: a segment is no dict");
    REFUSES("}" SEGMENTS "](}" BLOCKS "](Ne", "byte 26: a block is no dict");
}

UNIT(import_memory_viz, parts_of_a_snapshot_have_one_place)
{
    REFUSES("}\x94h\0", "byte 4: BINGET refers to a part of the snapshot a second time");
    REFUSES("}\x85", "byte 2: TUPLE1 takes a part of the snapshot from its place");
    REFUSES("}" TRACES "](]t", "byte 20: TUPLE takes a part of the snapshot from its place");
    REFUSES("}" SEGMENTS "](}(}Nu",
            "byte 18: SETITEMS takes a part of the snapshot from its place");
    REFUSES("}"
            "(" SEGMENTS "]Nu",
            "byte 15: SETITEMS has a key without a value");
    REFUSES("}(K\1}" TRACES "]s", "byte 22: a part of the snapshot is in the wrong dict");
}

UNIT(import_memory_viz, fields_are_checked_where_they_matter)
{
    REFUSES(ONE_DEVICE("}"), "byte 23: an entry of a trace has no action");
    REFUSES(ONE_DEVICE(ENTRY(ALLOC)),
            "byte 40: the addr of an alloc is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(ALLOC ADDR "K\1")),
            "byte 48: the size of an alloc is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(ALLOC ADDR "N" SIZE "K\1")),
            "byte 55: the addr of an alloc is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(ALLOC ADDR "K\1" SIZE "J\xff\xff\xff\xff")),
            "byte 59: the size of an alloc is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(ALLOC ADDR "K\1" SIZE "K\1" STREAM "N")),
            "byte 65: the stream of an alloc is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(ALLOC ADDR "K\1" SIZE "K\1" TIME "N")),
            "byte 66: the time_us of an entry is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(ALLOC ADDR "K\1" SIZE "K\1" TIME "\x8a\7\0\0\0\0\0\0\x7f")),
            "byte 74: the time_us of an entry has more than 64 bits in ns");
    REFUSES(ONE_DEVICE(ENTRY(FREE)),
            "byte 49: the addr of a free_completed is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(FREE ADDR "K\1" STREAM "N")),
            "byte 66: the stream of a free_completed is no number from 0 to 2^63 - 1");
    REFUSES(ONE_DEVICE(ENTRY(FREE ADDR "K\1" TIME "N")),
            "byte 67: the time_us of an entry is no number from 0 to 2^63 - 1");
    REFUSES("}" SEGMENTS "](}(" BLOCKS "](}e", "byte 27: a block of a segment has no state");
    REFUSES("}" SEGMENTS "](}(" BLOCKS "](" ENTRY(LIVE) "e",
            "byte 54: the size of a block is no number from 0 to 2^63 - 1");
    REFUSES("}" SEGMENTS "](}(" BLOCKS
            "](" ENTRY(LIVE SIZE "K\1" TEXT("\16", "requested_size") "N") "e",
            "byte 79: the requested_size of a block is no number from 0 to 2^63 - 1");
    REFUSES("}" SEGMENTS "](" ENTRY(TEXT("\6", "device") "N") "e",
            "byte 26: the device of a segment is no number from 0 to 2^63 - 1");
    REFUSES("}" SEGMENTS "](" ENTRY(STREAM "N") "e",
            "byte 26: the stream of a segment is no number from 0 to 2^63 - 1");
}

static char many[(1 << 20) + 2];

UNIT(import_memory_viz, the_stack_and_its_marks_are_bounded)
{
    memset(many, '(', 65);
    CHECK(!read_with(NULL, many, 65));
    CHECK_STR(source.sentence, "byte 65: values are nested deeper than 64 levels");
    memset(many, 'N', sizeof many);
    CHECK(!read_with(NULL, many, sizeof many));
    CHECK_STR(source.sentence, "byte 1048577: more than 1048576 values wait on the stack");
}

UNIT(import_memory_viz, lengths_are_not_believed)
{
    static const char *const opcodes[] = {"\x8d", "\x8e", "\x96"};
    for (size_t i = 0; i < 3; i++) {
        char pickle[] = "?\xff\xff\xff\xff\xff\xff\xff\x7f"
                        "abc";
        pickle[0] = opcodes[i][0];
        CHECK(!read_with(NULL, pickle, sizeof pickle - 1));
        CHECK_HAS(source.sentence, "byte 12: the file ends within B");
    }
    REFUSES("\x8b\xff\xff\xff\xffz", "byte 6: the file ends within LONG4");
    REFUSES("X\xff\xff\xff\xffz", "byte 6: the file ends within BINUNICODE");
}

/* ---- every byte and every call ------------------------------------------------------------- */

static const char WHOLE[] = WITHOUT_HISTORY TRACES "]](" SHARED "eau.";

UNIT(import_memory_viz, a_file_cut_at_any_byte_is_refused_there)
{
    static const char zero[] =
        "(dp0\nVdevice_traces\np1\n(l(l(dVaction\nVoom\nsVx\nF1.5\nsVy\nI12\nsaas.";
    char place[32];
    for (size_t length = 0; length < sizeof WHOLE - 1; length++) {
        CHECK(!read_with(NULL, WHOLE, length));
        snprintf(place, sizeof place, "byte %zu: the file ends ", length);
        CHECK_HAS(source.sentence, place);
    }
    READS("(dp0\nVdevice_traces\np1\n(l(l(dVaction\nVoom\nsVx\nF1.5\nsVy\nI12\nsaas.", "");
    for (size_t length = 0; length < sizeof zero - 1; length++) {
        CHECK(!read_with(NULL, zero, length));
        snprintf(place, sizeof place, "byte %zu: the file ends ", length);
        CHECK_HAS(source.sentence, place);
    }
}

UNIT(import_memory_viz, host_memory_may_run_out_at_any_call)
{
    test_memory memory;
    qi_host host;
    uint64_t call = 0;
    bool read;
    test_memory_init(&memory);
    CHECK_OK(qi_host_init(&host, &memory.callbacks));
    do {
        test_memory_fail(&memory, ++call, false);
        read = read_with(&host, WHOLE, sizeof WHOLE - 1);
        if (!read)
            CHECK_HAS(source.sentence, ": host memory is exhausted");
        CHECK_EQ(memory.blocks, 0);
    } while (!read);
    CHECK(call > 12);
}

UNIT(import_memory_viz, many_texts_values_and_references_grow_their_tables)
{
    /* 100000 entries, each with a name of its own, which is remembered */
    static char pickle[100000 * 40], *end;
    end = pickle;
    ADD("\x80\4}" TRACES "]](");
    for (uint32_t i = 0; i < 100000; i++) {
        ADD("}\x94(" ACTION);
        end += sprintf(end, "\x8c\5%05u", (unsigned)i);
        ADD("\x94u");
    }
    ADD(ENTRY(ALLOC ADDR "K\1" SIZE "K\1"
                         "j\x3f\x0d\x03\0"
                         "N") "eas.");
    CHECK(read_with(NULL, pickle, (size_t)(end - pickle)));
    CHECK_STR(written, HEADER "alloc,1,1,512,0,0,\n");
}
