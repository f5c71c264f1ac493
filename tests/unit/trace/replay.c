/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * replay.c - replaying traces: the numbers of the report for traces made by hand, failed
 * allocations that are counted and skipped, early ends, names, and what remains in the memory and
 * in the last error.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "quire/host.h"
#include "quire/trace.h"
#include "tests/support/fake.h"
#include "tests/support/unit.h"

#define HEADER "op,id,size,alignment,time_ns,stream,label\n"

enum { KIB = 1024, PAGE = 64 * KIB };

/* A trace, and a memory with pages of 64 KiB on a host device. */
typedef struct bench {
    quire_device *device;
    quire_memory *memory;
    quire_trace *trace;
    quire_replay_report report;
} bench;

static quire_trace *read_trace(const char *lines)
{
    quire_trace *trace = NULL;
    char text[4096] = HEADER;
    strcat(text, lines);
    CHECK_OK(quire_trace_parse("t.csv", text, strlen(text), unit_memory(), &trace));
    return trace;
}

static void make_memory(bench *b)
{
    quire_memory_options options = {.name = "bench", .pages = {.page_size = PAGE}};
    CHECK_OK(quire_memory_create(b->device, &options, &b->memory));
}

/* A device with one heap of this size. */
static bench make_bench(uint64_t heap_size, const char *lines)
{
    bench b = {.trace = read_trace(lines)};
    quire_host_profile profile = {
        .name = "small",
        .heap_count = 1,
        .kind_count = 1,
        .heaps = {{.size = heap_size, .flags = QUIRE_HEAP_DEVICE_LOCAL}},
        .kinds = {{.flags = QUIRE_DEVICE_LOCAL}},
    };
    quire_host_options options = {.profile = &profile, .device = {.host_memory = unit_memory()}};
    CHECK_OK(quire_host_open(&options, &b.device));
    make_memory(&b);
    return b;
}

static void end_bench(bench *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    quire_memory_destroy_all(&b->memory);
    CHECK_OK(quire_device_destroy(&b->device));
    quire_trace_destroy(&b->trace);
}

static void play(bench *b, const quire_replay_options *options)
{
    memset(&b->report, 0xaa, sizeof b->report);
    CHECK_OK(quire_trace_replay(b->trace, b->memory, options, &b->report));
    CHECK_OK(quire_memory_check(b->memory));
}

static uint64_t live_count(const bench *b)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(b->memory, &stats));
    return stats.allocation_count;
}

static void expect_latency(const quire_latency *ns)
{
    CHECK(ns->p50 <= ns->p99 && ns->p99 <= ns->p999 && ns->p999 <= ns->max);
}

#define CASE(name, ...) UNIT_ON(replay, name, bench, b, *b = make_bench(__VA_ARGS__), end_bench)

/* ---- the report --------------------------------------------------------------------------- */

UNIT(replay, the_report_of_a_trace_made_by_hand)
{
    /* held in granules of 256 bytes: 1000 -> 1024, 300 -> 512; then a second page */
    bench b = make_bench(4 * PAGE, "alloc,1,1000,1,0,0,\nalloc,2,300,256,0,0,\nframe,,,,0,,\n"
                                   "use,2,,,1,0,\nfree,1,,,2,0,\nalloc,3,65536,1,3,0,\n"
                                   "alloc,4,256,1,4,0,\nfree,3,,,5,0,\nframe,,,,6,,\n");
    play(&b, NULL);
    const quire_replay_report *r = &b.report;
    CHECK_EQ(r->operations, 9);
    CHECK_EQ(r->allocations, 4);
    CHECK_EQ(r->frees, 2);
    CHECK_EQ(r->uses, 1);
    CHECK_EQ(r->frames, 2);
    CHECK_EQ(r->failures, 0);
    CHECK_EQ(r->peak_requested_bytes, 300 + 65536 + 256);
    CHECK_EQ(r->peak_live_bytes, 512 + 65536 + 256);
    CHECK_EQ(r->peak_reserved_bytes, 2 * PAGE);
    CHECK_EQ(r->pages_created, 2);
    CHECK_EQ(r->pages_destroyed, 0);
    CHECK_EQ(r->peak_pages, 2);
    CHECK(r->backend_calls >= 2);
    CHECK_EQ(r->left_at_end, 2);
    CHECK_EQ(r->left_bytes, 300 + 256);
    CHECK(r->metadata_bytes_peak > 0);
    CHECK(r->wall_ns > 0);
    CHECK(!r->stopped);
    expect_latency(&r->alloc_ns);
    expect_latency(&r->free_ns);
    end_bench(&b);
}

UNIT(replay, fragmentation_is_that_of_the_fullest_moment)
{
    /* fullest after event 2: 100 bytes in 256, 64 KiB - 256 - 512 free around them */
    bench b = make_bench(PAGE, "alloc,1,256,1,0,0,\nalloc,2,512,1,0,0,\nalloc,3,100,1,0,0,\n"
                               "free,2,,,0,0,\nfree,1,,,0,0,\nfree,3,,,0,0,\n");
    play(&b, NULL);
    CHECK_EQ(b.report.fragmentation.internal, 156);
    CHECK_EQ(b.report.fragmentation.split, PAGE - 1024);
    CHECK(b.report.fragmentation.free >= 0 && b.report.fragmentation.free < 0.0001);
    CHECK(b.report.fragmentation.reserved == 1 - 1024.0 / (double)PAGE);
    end_bench(&b);
}

/* The fullest moment of the replayed part, even if the trace's own fullest moment comes later. */
CASE(fragmentation_of_a_part_is_that_of_its_fullest_moment, PAGE,
     "alloc,1,100,1,0,0,\nfree,1,,,0,0,\nalloc,2,1000,1,0,0,\n")
{
    quire_replay_options options = {.event_count = 2};
    play(b, &options);
    CHECK_EQ(b->report.peak_requested_bytes, 100);
    CHECK_EQ(b->report.fragmentation.internal, 156);
    CHECK_EQ(b->report.fragmentation.split, PAGE - 256);
}

/* Likewise if the trace's fullest moment needs an allocation that fails. */
CASE(fragmentation_ignores_failed_allocations, PAGE,
     "alloc,1,100,1,0,0,\nfree,1,,,0,0,\nalloc,2,1000000,1,0,0,\n")
{
    play(b, NULL);
    CHECK_EQ(b->report.failures, 1);
    CHECK_EQ(b->report.peak_requested_bytes, 1000000); /* the trace still requested it */
    CHECK_EQ(b->report.fragmentation.internal, 156);
}

CASE(a_trace_without_events, PAGE, "")
{
    play(b, NULL);
    CHECK_EQ(b->report.operations, 0);
    CHECK_EQ(b->report.peak_reserved_bytes, 0);
    CHECK_EQ(b->report.pages_created, 0);
    CHECK_EQ(b->report.alloc_ns.max, 0);
    CHECK_EQ(b->report.free_ns.max, 0);
}

/* Times and streams of frames are for tools that show the trace: a replay needs neither. */
UNIT(replay, a_start_time_and_streams_of_frames_change_nothing)
{
    bench early = make_bench(PAGE, "alloc,1,1000,1,0,0,\nframe,,,,5,,\nfree,1,,,9,0,\n");
    bench offset = make_bench(PAGE, "alloc,1,1000,1,18446744073709551606,0,\n"
                                    "frame,,,,18446744073709551611,3,\n"
                                    "free,1,,,18446744073709551615,0,\n");
    play(&early, NULL);
    play(&offset, NULL);
    CHECK_EQ(offset.report.operations, 3);
    CHECK_EQ(offset.report.frames, 1);
    CHECK_EQ(offset.report.peak_live_bytes, early.report.peak_live_bytes);
    CHECK_EQ(offset.report.backend_calls, early.report.backend_calls);
    quire_trace_info one, other;
    CHECK_OK(quire_trace_get_info(early.trace, &one));
    CHECK_OK(quire_trace_get_info(offset.trace, &other));
    CHECK(!memcmp(&one, &other, sizeof one));
    end_bench(&early);
    end_bench(&offset);
}

UNIT(replay, reused_ids_find_their_own_range)
{
    bench b = make_bench(PAGE, "alloc,1,256,1,0,0,\nfree,1,,,0,0,\nalloc,2,256,1,0,0,\n"
                               "alloc,1,512,1,0,0,\nfree,2,,,0,0,\nalloc,2,768,1,0,0,\n"
                               "free,1,,,0,0,\n");
    play(&b, NULL);
    CHECK_EQ(b.report.failures, 0);
    CHECK_EQ(b.report.frees, 3);
    CHECK_EQ(b.report.left_at_end, 1);
    CHECK_EQ(b.report.left_bytes, 768);
    end_bench(&b);
}

/* ---- after the end ------------------------------------------------------------------------ */

static const char THREE[] = "alloc,1,256,1,0,0,weights\nalloc,2,512,1,0,0,\nalloc,3,768,1,0,0,k\n"
                            "free,2,,,0,0,\n";

CASE(everything_is_freed_at_the_end, PAGE, THREE)
{
    play(b, NULL);
    CHECK_EQ(b->report.left_at_end, 2);
    CHECK_EQ(b->report.left_bytes, 256 + 768);
    CHECK_EQ(b->report.frees, 1); /* the ids of the trace */
    CHECK_EQ(live_count(b), 0);
    CHECK_OK(quire_memory_destroy(&b->memory));
    make_memory(b);
}

typedef struct names {
    char text[512];
    uint64_t count;
} names;

static bool add_name(void *user, const quire_item *item)
{
    names *n = user;
    if (item->is_free)
        return true;
    n->count++;
    strcat(strcat(n->text, item->name), ";");
    return true;
}

static void expect_names(const bench *b, const char *expected)
{
    names n = {0};
    CHECK_OK(quire_memory_walk(b->memory, add_name, &n));
    CHECK_STR(n.text, expected);
}

CASE(keep_leaves_live_allocations_without_names, PAGE, THREE)
{
    play(b, &(quire_replay_options){.keep = true});
    CHECK_EQ(b->report.left_at_end, 2);
    CHECK_EQ(live_count(b), 2);
    expect_names(b, ";;");
}

CASE(keep_with_names, PAGE, THREE)
{
    play(b, &(quire_replay_options){.keep = true, .name = true, .event_count = 3});
    expect_names(b, "weights;;k;");
    quire_trace_destroy(&b->trace);
    expect_names(b, "weights;;k;"); /* the names do not need the trace */
}

/* A label of `letters` copies of a letter and a tail, and the name that it gives. */
static void expect_cut(size_t letters, const char *tail, const char *end)
{
    char lines[512] = "", label[400] = "", name[400] = "";
    memset(label, 'l', letters);
    strcat(strcpy(name, label), end);
    strcat(label, tail);
    snprintf(lines, sizeof lines, "alloc,1,256,1,0,0,%s\n", label);
    bench b = make_bench(PAGE, lines);
    play(&b, &(quire_replay_options){.keep = true, .name = true});
    CHECK_EQ(b.report.failures, 0);
    CHECK_EQ(b.report.allocations, 1);
    expect_names(&b, strcat(name, ";"));
    quire_trace_event event;
    CHECK_OK(quire_trace_get_event(b.trace, 0, &event));
    CHECK_STR(event.label, label); /* complete in the trace */
    end_bench(&b);
}

UNIT(replay, long_labels_are_cut_between_characters)
{
    expect_cut(254, "", "");
    expect_cut(254, "x", "x"); /* the longest name */
    expect_cut(254, "xy", "x");
    expect_cut(253, "\xc3\xa9z", "\xc3\xa9");
    expect_cut(254, "\xc3\xa9z", "");
    expect_cut(252, "\xe2\x82\xacz", "\xe2\x82\xac");
    expect_cut(253, "\xe2\x82\xac", "");
    expect_cut(254, "\xe2\x82\xac", "");
    expect_cut(251, "\xf0\x9f\x8d\x8e", "\xf0\x9f\x8d\x8e");
    expect_cut(252, "\xf0\x9f\x8d\x8e", "");
    expect_cut(254, "\xf0\x9f\x8d\x8e\xf0\x9f\x8d\x8e", "");
}

/* ---- other sizes -------------------------------------------------------------------------- */

/* 1000 and 1 byte are not multiples of their alignments; 768 bytes remain a multiple of 256. */
CASE(sizes_are_scaled_to_a_percentage, 4 * PAGE,
     "alloc,1,1000,16,0,0,\nalloc,2,768,256,0,0,\nalloc,3,1,2,0,0,\nfree,2,,,0,0,\n")
{
    static const struct {
        uint32_t percent;
        uint64_t peak, left;
    } rows[] = {{0, 1769, 1001},          {100, 1769, 1001},
                {80, 800 + 768 + 1, 801}, {125, 1250 + 1024 + 1, 1251},
                {1, 10 + 256 + 1, 11},    {1000, 17690, 10010}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        play(b, &(quire_replay_options){.size_percent = rows[i].percent});
        CHECK_EQ(b->report.peak_requested_bytes, rows[i].peak);
        CHECK_EQ(b->report.left_bytes, rows[i].left);
        CHECK_EQ(b->report.failures, 0);
    }
}

CASE(a_scale_out_of_range_is_refused, PAGE, "alloc,1,9223372036854775808,1,0,0,\n")
{
    quire_replay_options above = {.size_percent = 1001}, overflow = {.size_percent = 125};
    CHECK_FAILS(quire_trace_replay(b->trace, b->memory, &above, &b->report),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "size_percent is 1001, above 1000");
    CHECK_FAILS(quire_trace_replay(b->trace, b->memory, &overflow, &b->report),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "sizes of 125 percent may exceed 64 bits");
}

/* ---- parts of a trace --------------------------------------------------------------------- */

CASE(event_count_ends_the_replay_early, PAGE, THREE)
{
    for (uint64_t count = 1; count <= 6; count++) {
        play(b, &(quire_replay_options){.event_count = count});
        CHECK_EQ(b->report.operations, count < 4 ? count : 4);
        CHECK_EQ(b->report.left_at_end, count < 4 ? count : 2);
        CHECK(!b->report.stopped);
        CHECK_EQ(live_count(b), 0);
    }
}

/* Sixteen bytes allocated and freed, this many times. */
static bench make_long_bench(uint32_t pairs)
{
    size_t room = sizeof HEADER + (size_t)pairs * 64;
    char *text = malloc(room);
    size_t length = (size_t)snprintf(text, room, HEADER);
    for (uint32_t i = 1; i <= pairs; i++)
        length += (size_t)snprintf(text + length, room - length,
                                   "alloc,%" PRIu32 ",16,,0,0,\nfree,%" PRIu32 ",,,0,0,\n", i, i);
    bench b = make_bench(PAGE, "");
    quire_trace_destroy(&b.trace);
    CHECK_OK(quire_trace_parse("long", text, length, unit_memory(), &b.trace));
    free(text);
    return b;
}

typedef struct watch {
    uint64_t calls, last, total, stop_at;
} watch;

static bool on_progress(void *user, uint64_t done, uint64_t total)
{
    watch *w = user;
    CHECK(!w->calls || done >= w->last);
    CHECK(done <= total);
    w->calls++;
    w->last = done;
    w->total = total;
    return done < w->stop_at;
}

UNIT(replay, progress_runs_from_none_to_all_events)
{
    bench b = make_long_bench(5000);
    watch w = {.stop_at = UINT64_MAX};
    play(&b, &(quire_replay_options){.progress = on_progress, .user = &w});
    CHECK(w.calls >= 3);
    CHECK_EQ(w.last, 10000);
    CHECK_EQ(w.total, 10000);
    CHECK(!b.report.stopped);

    w = (watch){.stop_at = UINT64_MAX};
    play(&b, &(quire_replay_options){.progress = on_progress, .user = &w, .event_count = 777});
    CHECK_EQ(w.last, 777);
    CHECK_EQ(w.total, 777);
    CHECK_EQ(b.report.operations, 777);
    end_bench(&b);
}

typedef struct time_watch {
    const quire_trace *trace;
    uint64_t time;
} time_watch;

/* After each event the time is still that event's. */
static bool compare_time(void *user, uint64_t done, uint64_t total)
{
    const time_watch *w = user;
    quire_trace_event event = {.time_ns = 0};
    CHECK(done <= total);
    CHECK(!done || !quire_trace_get_event(w->trace, done - 1, &event));
    CHECK_EQ(w->time, event.time_ns);
    return true;
}

CASE(the_time_of_each_event_is_told, 4 * PAGE,
     "alloc,1,100,,5,,\nframe,,,,17,,\nfree,1,,,1000000000005,,\n")
{
    time_watch w = {.trace = b->trace};
    play(b, &(quire_replay_options){
                .progress = compare_time, .user = &w, .progress_events = 1, .time = &w.time});
    CHECK_EQ(w.time, UINT64_C(1000000000000));
}

UNIT(replay, progress_is_reported_at_the_requested_interval)
{
    bench b = make_long_bench(500);
    const uint64_t every[] = {1, 2, 7, 999, 1000, 1001, UINT64_MAX};
    const uint64_t calls[] = {1001, 501, 144, 3, 2, 2, 2};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        watch w = {.stop_at = UINT64_MAX};
        play(&b, &(quire_replay_options){
                     .progress = on_progress, .user = &w, .progress_events = every[i]});
        CHECK_EQ(w.calls, calls[i]);
        CHECK_EQ(w.last, 1000);
    }
    play(&b, &(quire_replay_options){.progress_events = 1}); /* no callback */
    end_bench(&b);
}

UNIT(replay, progress_can_stop_the_replay)
{
    bench b = make_long_bench(5000);
    for (uint64_t stop_at = 0; stop_at < 9000; stop_at += 1500) {
        watch w = {.stop_at = stop_at};
        play(&b, &(quire_replay_options){.progress = on_progress, .user = &w});
        CHECK(b.report.stopped);
        CHECK_EQ(b.report.operations, w.last); /* not called again after it returned false */
        CHECK(w.last >= stop_at && w.last < 10000);
        CHECK_EQ(b.report.allocations, w.last / 2 + w.last % 2);
        CHECK_EQ(live_count(&b), 0);
    }
    end_bench(&b);
}

CASE(a_stopped_replay_with_keep_leaves_live_allocations, PAGE, THREE)
{
    watch w = {0};
    play(b, &(quire_replay_options){.keep = true, .progress = on_progress, .user = &w});
    CHECK(b->report.stopped);
    CHECK_EQ(b->report.operations, 0);
    CHECK_EQ(live_count(b), 0);
    CHECK_EQ(w.calls, 1);
}

/* ---- failed allocations ------------------------------------------------------------------- */

UNIT(replay, failed_allocations_are_counted_and_skipped)
{
    bench b = make_bench(2 * PAGE, "alloc,1,65536,1,0,0,\nalloc,2,65536,1,0,0,\n"
                                   "alloc,3,65536,1,0,0,\nfree,3,,,0,0,\nfree,1,,,0,0,\n"
                                   "alloc,3,60000,1,0,0,\nalloc,4,10,4294967296,0,0,\n"
                                   "free,3,,,0,0,\n");
    play(&b, NULL);
    CHECK_EQ(b.report.operations, 8);
    CHECK_EQ(b.report.allocations, 3);
    CHECK_EQ(b.report.failures, 2);
    CHECK_EQ(b.report.frees, 2);
    CHECK_EQ(b.report.left_at_end, 1);
    CHECK_EQ(b.report.peak_reserved_bytes, 2 * PAGE);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY); /* the first failure */
    CHECK_HAS(quire_last_error(), "64 KiB");
    CHECK_EQ(live_count(&b), 0);
    end_bench(&b);
}

UNIT(replay, uses_of_failed_allocations_are_skipped)
{
    bench b = make_bench(PAGE, "alloc,1,65536,1,0,0,\nalloc,2,1,1,0,0,\nuse,2,,,0,0,\n"
                               "use,1,,,0,0,\nfree,2,,,0,0,\n");
    play(&b, NULL);
    CHECK_EQ(b.report.failures, 1);
    CHECK_EQ(b.report.frees, 0);
    CHECK_EQ(b.report.uses, 1);
    end_bench(&b);
}

UNIT(replay, the_first_failure_is_the_last_error_with_its_native_code)
{
    fake_backend fake;
    fake_init(&fake);
    bench b = {.trace = read_trace("alloc,1,256,1,0,0,\nalloc,2,0256,1,0,0,\n")};
    CHECK_OK(fake_open(&fake, unit_memory(), &b.device));
    make_memory(&b);
    fake_fail(&fake, 1, true, QUIRE_ERROR_BACKEND_FAILURE);
    fake.fail_native = 77;
    play(&b, NULL);
    CHECK_EQ(b.report.failures, 2);
    CHECK_EQ(b.report.allocations, 0);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_BACKEND_FAILURE);
    CHECK_EQ(quire_last_native_code(), 77);
    fake_fail(&fake, 0, false, QUIRE_SUCCESS);
    end_bench(&b);
}

/* ---- arguments, host memory, threads ------------------------------------------------------ */

typedef struct player {
    pthread_t thread;
    bench *bench;
    quire_memory *memory;
    quire_replay_report report;
    quire_result result;
} player;

static void *play_apart(void *user)
{
    player *p = user;
    p->result = quire_trace_replay(p->bench->trace, p->memory, NULL, &p->report);
    return NULL;
}

UNIT(replay, threads_share_a_trace)
{
    enum { THREADS = 4 };
    bench b = make_long_bench(2000);
    player players[THREADS];
    for (int i = 0; i < THREADS; i++) {
        players[i] = (player){.bench = &b, .memory = NULL};
        CHECK_OK(quire_memory_create(
            b.device, &(quire_memory_options){.pages = {.page_size = PAGE / THREADS}},
            &players[i].memory));
    }
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&players[i].thread, NULL, play_apart, &players[i]));
    for (int i = 0; i < THREADS; i++) {
        pthread_join(players[i].thread, NULL);
        CHECK_EQ(players[i].result, QUIRE_SUCCESS);
        CHECK_EQ(players[i].report.operations, 4000);
        CHECK_EQ(players[i].report.failures, 0);
        CHECK_OK(quire_memory_destroy(&players[i].memory));
    }
    end_bench(&b);
}
