/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * top_follow.c - a follower has the totals that quire_trace_parse finds in the same bytes, however
 * they come: in pieces of every size, and with an end at every byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/core/record/blocks.h"
#include "src/tool/top/follow.h"
#include "tests/support/unit.h"

enum { BLOCKS = 4, EVENTS = 24, NAMES = 4 };

static char file[8192];
static size_t file_size;
static follower one;

static bool append(void *user, const char *bytes, size_t size)
{
    (void)user;
    CHECK(file_size + size <= sizeof file);
    memcpy(file + file_size, bytes, size);
    file_size += size;
    return true;
}

/* Blocks of a recorder with allocations, frees of old and of unknown ranges, and frames. */
static void make_recording(void)
{
    static const char *const names[NAMES] = {"weights/a", "weights/b", "", "act"};
    static qi_blocks blocks;
    qi_host host;
    CHECK_OK(qi_host_init(&host, NULL));
    CHECK(qi_blocks_make(&blocks, &host, 1));
    file_size = 0;
    qi_blocks_begin(&blocks, (qi_blocks_output){.file = QI_NO_FILE, .sink = append});
    uint64_t id = 0;
    for (uint32_t block = 0; block < BLOCKS; block++) {
        for (uint32_t i = 0; i < EVENTS; i++) {
            if (i % 3 == 2) {
                qi_blocks_free(&blocks, id * 7 / 11, 0);
            } else if (i == 7) {
                qi_blocks_frame(&blocks);
            } else {
                id++;
                qi_blocks_alloc(&blocks, id, 100 * id, 16, 0, names[id % NAMES]);
            }
        }
        qi_blocks_flush(&blocks);
    }
    qi_blocks_release(&blocks, &host);
}

/* The sums by name have all that lives. */
static void check_names(void)
{
    const name_sum **names = sort_names(&one.names);
    uint64_t bytes = 0, ranges = 0;
    for (size_t i = 0; i < one.names.count; i++) {
        CHECK(!strcmp(names[i]->name, "weights") || !strcmp(names[i]->name, "act") ||
              !*names[i]->name);
        bytes += names[i]->bytes;
        ranges += names[i]->ranges;
    }
    free(names);
    CHECK_EQ(bytes, one.recording.builder.live_bytes);
    CHECK_EQ(ranges, one.recording.builder.live_count);
}

/* Compares the follower with the trace of the first bytes of the file. */
static void check_totals(size_t size)
{
    quire_trace *trace = NULL;
    quire_trace_info wanted, found = one.trace.info;
    CHECK_OK(quire_trace_parse("f", file, size, NULL, &trace));
    CHECK_OK(quire_trace_get_info(trace, &wanted));
    quire_trace_destroy(&trace);
    CHECK_EQ(one.recording.offset, size - wanted.cut_bytes);
    found.left_count = one.recording.builder.live_count;
    found.left_bytes = one.recording.builder.live_bytes;
    found.cut_bytes = wanted.cut_bytes;
    CHECK(!memcmp(&found, &wanted, sizeof found));
    check_names();
}

/* What a reader does at one look: everything from the last complete block on. */
static void look(size_t size)
{
    size_t used = 0, offset = (size_t)one.recording.offset;
    CHECK_OK(follow(&one, file + offset, size - offset, &used));
    CHECK_EQ(one.recording.offset, offset + used);
}

UNIT(top_follow, every_end_has_the_totals_of_the_complete_blocks)
{
    make_recording();
    for (size_t size = 0; size <= file_size; size++) {
        CHECK_OK(begin_follower(&one, "f"));
        look(size);
        if (size >= sizeof QI_RECORDING_MAGIC - 1)
            check_totals(size);
        else
            CHECK(one.recording.offset == 0 && one.trace.info.event_count == 0);
        finish_follower(&one);
    }
}

UNIT(top_follow, pieces_of_every_size_give_the_same_totals)
{
    make_recording();
    for (size_t piece = 1; piece <= file_size; piece++) {
        CHECK_OK(begin_follower(&one, "f"));
        for (size_t size = piece; size < file_size; size += piece)
            look(size);
        look(file_size);
        check_totals(file_size);
        CHECK_EQ(one.recording.offset, file_size);
        finish_follower(&one);
    }
    CHECK_OK(begin_follower(&one, "f"));
    for (size_t size = 0; size <= file_size; size++) {
        look(size);
        if (size >= sizeof QI_RECORDING_MAGIC - 1)
            check_totals(size);
    }
    finish_follower(&one);
}

UNIT(top_follow, memory_does_not_grow_with_events)
{
    static qi_blocks blocks;
    uint64_t bytes = 0;
    qi_host host;
    CHECK_OK(qi_host_init(&host, NULL));
    CHECK(qi_blocks_make(&blocks, &host, 1));
    CHECK_OK(begin_follower(&one, "f"));
    qi_blocks_begin(&blocks, (qi_blocks_output){.file = QI_NO_FILE, .sink = append});
    for (uint64_t i = 0; i < 2000; i++) {
        char name[32];
        size_t used = 0;
        snprintf(name, sizeof name, "name%u", (unsigned)i);
        file_size = 0;
        qi_blocks_alloc(&blocks, i + 1, 64, 16, 0, name);
        if (i >= 10)
            qi_blocks_free(&blocks, i - 9, 0);
        qi_blocks_flush(&blocks);
        CHECK_OK(follow(&one, file, file_size, &used));
        if (i == 100)
            bytes = qi_atomic_load_u64(&one.trace.host.bytes);
    }
    CHECK_EQ(one.trace.info.alloc_count, 2000);
    CHECK(bytes > 0 && qi_atomic_load_u64(&one.trace.host.bytes) == bytes);
    CHECK(one.names.count == 10 && one.names.used <= 12);
    CHECK(one.trace.events == NULL);
    finish_follower(&one);
    qi_blocks_release(&blocks, &host);
}

static void check_refused(const char *bytes, size_t size, const char *sentence)
{
    size_t used = 1;
    CHECK_OK(begin_follower(&one, "f"));
    CHECK_FAILS(follow(&one, bytes, size, &used), QUIRE_ERROR_BAD_FILE);
    CHECK_STR(quire_last_error(), sentence);
    CHECK_EQ(used, 0);
    finish_follower(&one);
}

UNIT(top_follow, other_files_are_refused_by_their_first_bytes)
{
    static const char text[] = QI_TRACE_HEADER "\nalloc,1,4096,,0,0,\n", other[] = "\x89png";
    for (size_t size = 1; size < sizeof text; size++)
        check_refused(text, size,
                      "f: a trace of text; only a recording can be followed, which QUIRE_TRACE or "
                      "quire_record_start writes");
    for (size_t size = 2; size < sizeof other; size++)
        check_refused(other, size, "f: byte 0: no block of a recording begins here");
}

/* The position of a mistake counts from the begin of the file. */
UNIT(top_follow, mistakes_after_the_first_look_have_their_position)
{
    char sentence[96];
    make_recording();
    CHECK_OK(begin_follower(&one, "f"));
    look(file_size / 2);
    size_t offset = (size_t)one.recording.offset, used = 1;
    CHECK(offset > 0 && offset < file_size);
    file[offset + 1] ^= 1;
    CHECK_FAILS(follow(&one, file + offset, file_size - offset, &used), QUIRE_ERROR_BAD_FILE);
    snprintf(sentence, sizeof sentence, "f: byte %zu: no block of a recording begins here", offset);
    CHECK_STR(quire_last_error(), sentence);
    CHECK_EQ(used, 0);
    finish_follower(&one);
}
