/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recorder.c - recordings of a memory and of a device: their rows, to a file and to a sink, several
 * at a time, with threads, without host memory, in the child of a fork, and by QUIRE_TRACE.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "quire/record.h"
#include "quire/trace.h"
#include "src/base/recording.h"
#include "tests/support/crew.h"
#include "tests/support/fixture.h"
#include "tests/support/streams.h"

enum { PAGE = 64 * 1024, MAX_TEXT = 1 << 20 };

typedef struct gathering {
    char text[MAX_TEXT];
    size_t length;
    uint64_t pieces, refuse; /* counted from 1; 0 means none */
} gathering;

static gathering gathered;

static bool gather(void *user, const char *text, size_t size)
{
    gathering *g = user;
    if (++g->pieces == g->refuse)
        return false;
    CHECK(g->length + size < sizeof g->text);
    memcpy(g->text + g->length, text, size);
    g->length += size;
    g->text[g->length] = '\0';
    return true;
}

static void forget(void)
{
    gathered.length = gathered.pieces = gathered.refuse = 0;
    gathered.text[0] = '\0';
}

static quire_recorder *start(quire_memory *memory, quire_device *device)
{
    quire_recorder *recorder;
    forget();
    CHECK_OK(quire_record_start(
        &(quire_record_options){
            .memory = memory, .device = device, .sink = gather, .user = &gathered},
        &recorder));
    CHECK(recorder != NULL);
    return recorder;
}

static void stop(quire_recorder **recorder)
{
    CHECK_OK(quire_record_stop(recorder));
    CHECK(*recorder == NULL);
}

static quire_trace *parse(void)
{
    quire_trace *trace = NULL;
    CHECK_OK(quire_trace_parse("recorded", gathered.text, gathered.length, NULL, &trace));
    return trace;
}

/* What was gathered, as the rows of a trace of text without times, which do not fall. */
static const char *rows(void)
{
    static char out[MAX_TEXT];
    static const char *const ops[] = {"alloc", "free", "use", "frame"};
    quire_trace *trace = parse();
    quire_trace_event event;
    size_t length = 0;
    uint64_t last = 0;
    out[0] = '\0';
    for (uint64_t i = 0; !quire_trace_get_event(trace, i, &event); i++) {
        CHECK(event.time_ns >= last);
        last = event.time_ns;
        char *to = out + length;
        size_t room = sizeof out - length;
        const unsigned long long id = event.id, size = event.size, stream = event.stream;
        length += (size_t)(event.op == QUIRE_TRACE_ALLOC
                               ? snprintf(to, room, "alloc,%llu,%llu,%llu,%llu,%s\n", id, size,
                                          (unsigned long long)event.alignment, stream, event.label)
                               : snprintf(to, room, "%s,%llu,%llu\n", ops[event.op], id, stream));
        CHECK(length < sizeof out);
    }
    quire_trace_destroy(&trace);
    return out;
}

static void read_rows(const char *name)
{
    forget();
    FILE *written = fopen(name, "r");
    if (!written)
        check_failed(__FILE__, __LINE__, "there is no '%s'", name);
    gathered.length = fread(gathered.text, 1, MAX_TEXT - 1, written);
    gathered.text[gathered.length] = '\0';
    fclose(written);
    CHECK_EQ(unlink(name), 0);
}

#define CASE(name, ...) UNIT_MEMORY(recorder, name, f, __VA_ARGS__)

/* ---- rows ----------------------------------------------------------------------------------- */

CASE(rows_have_what_was_requested, .pages = {.page_size = PAGE})
{
    quire_allocation before = ALLOCATE(f, .size = 10), kept;
    quire_recorder *recorder = start(f->memory, NULL);
    quire_allocation first = ALLOCATE(f, .size = 100, .alignment = 512, .name = "weights/0");
    ALLOCATE(f, .size = 7);
    CHECK_OK(quire_free(f->memory, before)); /* older than the recording */
    CHECK_OK(quire_free(f->memory, first));
    CHECK_OK(quire_record_frame(recorder));
    CHECK_EQ(gathered.length, 0);
    CHECK_OK(quire_record_flush(recorder));
    CHECK_HAS(rows(), "free,1,0\nframe,0,0\n");
    CHECK_OK(quire_reserve(f->memory, &(quire_allocation_options){.size = 1}, &kept));
    BUFFER(f, .size = 300, .alignment = 64, .name = "x,\"y\n");
    stop(&recorder);
    ALLOCATE(f, .size = 8); /* later than the recording */
    CHECK_STR(rows(), "alloc,1,100,512,0,weights/0\n"
                      "alloc,2,7,1,0,\n"
                      "free,1,0\n"
                      "frame,0,0\n"
                      "alloc,3,1,1,0,\n"
                      "alloc,4,300,64,0,x__y_\n");
}

/* The readers refuse what is not UTF-8; quire_allocate does not. */
CASE(a_name_of_any_bytes_gives_rows_that_can_be_read, 0)
{
    quire_recorder *recorder = start(f->memory, NULL);
    static const char *const names[] = {"gr\xf6\xdf", "\xed\xa0\x80", "\xc3\xa4,\"\n", "\x01"};
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 1, .name = names[i])));
    stop(&recorder);
    static const char *const labels[] = {"gr\xef\xbf\xbd\xef\xbf\xbd\n", ",\xc3\xa4___\n",
                                         ",\x01\n"};
    for (int i = 0; i < 3; i++)
        CHECK_HAS(rows(), labels[i]);
}

CASE(batches_and_refusals, .pages = {.page_size = PAGE, .max_pages = 1})
{
    quire_recorder *recorder = start(f->memory, NULL);
    quire_allocation many[3], refused;
    CHECK_OK(quire_allocate_batch(f->memory, &(quire_allocation_options){.size = 5, .alignment = 8},
                                  many, 3));
    CHECK(quire_allocate(f->memory, &(quire_allocation_options){.size = 2 * PAGE}, &refused));
    CHECK_OK(quire_free_batch(f->memory, many, 2));
    stop(&recorder);
    CHECK_STR(rows(), "alloc,1,5,8,0,\nalloc,2,5,8,0,\nalloc,3,5,8,0,\n"
                      "free,1,0\nfree,2,0\n");
}

CASE(streams_are_numbered_as_they_come, .pages = {.page_size = PAGE})
{
    quire_stream *first, *second;
    quire_allocation made, other;
    const quire_stream_options capture = {.capture = true};
    CHECK_OK(quire_stream_create(f->device, &capture, &first));
    CHECK_OK(quire_stream_create(f->device, &capture, &second));
    quire_recorder *recorder = start(NULL, f->device);
    made = ALLOCATE(f, .size = 1, .stream = second);
    other = ALLOCATE(f, .size = 2);
    CHECK_OK(quire_free_on_stream(f->memory, other, first));
    CHECK_OK(quire_free_on_stream(f->memory, made, second));
    stop(&recorder);
    CHECK_STR(rows(), "alloc,1,1,1,1,\nalloc,2,2,1,0,\nfree,2,2\nfree,1,1\n");
    CHECK_OK(quire_stream_destroy(&first));
    CHECK_OK(quire_stream_destroy(&second));
}

CASE(a_device_is_recorded_with_later_memories, .pages = {.page_size = PAGE})
{
    quire_memory *later;
    quire_allocation made;
    quire_recorder *recorder = start(NULL, f->device);
    CHECK_OK(quire_memory_create(f->device, NULL, &later));
    ALLOCATE(f, .size = 3);
    CHECK_OK(quire_allocate(later, &(quire_allocation_options){.size = 4}, &made));
    CHECK_OK(quire_device_free(f->device, made));
    CHECK_OK(quire_memory_destroy(&later));
    stop(&recorder);
    CHECK_STR(rows(), "alloc,1,3,1,0,\nalloc,2,4,1,0,\nfree,2,0\n");
}

CASE(several_recordings_run_at_the_same_time_and_again, .pages = {.page_size = PAGE})
{
    uint64_t metadata = 0;
    for (int i = 0; i < 20; i++) {
        quire_device_stats stats;
        quire_recorder *of_memory = start(f->memory, NULL), *of_device = start(NULL, f->device);
        quire_allocation made = ALLOCATE(f, .size = 3);
        stop(&of_memory);
        CHECK_OK(quire_free(f->memory, made));
        const size_t both = gathered.length;
        stop(&of_device);
        CHECK(gathered.length > both);
        CHECK_OK(quire_device_get_stats(f->device, &stats));
        CHECK(!metadata || metadata == stats.metadata_bytes); /* records are used again */
        metadata = stats.metadata_bytes;
    }
}

/* What a hook does in the memory is recorded too, in order. */
static void allocate_once(void *user, quire_memory *memory, const quire_event *event)
{
    bool *is_done = user;
    quire_allocation made;
    CHECK(event->number && event->time_ns);
    if (*is_done)
        return;
    *is_done = true;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 2, .alignment = 2}, &made));
}

CASE(a_hook_stays_beside_a_recording, .pages = {.page_size = PAGE})
{
    bool is_done = false;
    CHECK_OK(quire_memory_set_hook(
        f->memory,
        &(quire_hook){.event = allocate_once, .user = &is_done, .kinds = QUIRE_EVENT_ALLOCATED}));
    quire_recorder *recorder = start(f->memory, NULL);
    ALLOCATE(f, .size = 1);
    stop(&recorder);
    CHECK_STR(rows(), "alloc,1,1,1,0,\nalloc,2,2,2,0,\n");
}

static void churn(void *user)
{
    quire_memory *memory = user;
    quire_allocation made[16];
    for (int i = 0; i < 100; i++) {
        for (int k = 0; k < 16; k++)
            if (quire_allocate(memory, &(quire_allocation_options){.size = 1 + (uint64_t)k * 300},
                               &made[k]))
                made[k].id = 0;
        for (int k = 0; k < 16; k++)
            if (made[k].id)
                quire_free(memory, made[k]);
    }
}

static void record_often(void *user)
{
    for (int i = 0; i < 50; i++) {
        quire_recorder *recorder = NULL;
        const quire_record_options options = {.memory = user, .sink = gather, .user = &gathered};
        forget();
        if (!quire_record_start(&options, &recorder) && quire_record_stop(&recorder))
            return;
    }
}

UNIT_ON(recorder, rows_of_threads_make_a_trace, fixture, f,
        fixture_make(f, &(quire_memory_options){.shards = 2, .pages = {.page_size = PAGE}}),
        fixture_end)
{
    crew threads;
    quire_recorder *recorder = start(f->memory, NULL);
    crew_start(&threads, 3);
    for (uint32_t i = 1; i <= 3; i++)
        crew_tell(&threads, i, churn, f->memory);
    for (uint32_t i = 1; i <= 3; i++)
        crew_await(&threads, i);
    stop(&recorder);
    quire_trace *trace = parse();
    quire_trace_info info;
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK_EQ(info.alloc_count, 4800);
    CHECK_EQ(info.left_count, 0);
    quire_trace_destroy(&trace);
    /* recordings that come and go meanwhile */
    for (uint32_t i = 1; i <= 2; i++)
        crew_tell(&threads, i, churn, f->memory);
    crew_tell(&threads, 3, record_often, f->memory);
    for (uint32_t i = 1; i <= 3; i++)
        crew_await(&threads, i);
    crew_end(&threads);
}

/* ---- order ---------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 200, EACH = 8, GRANULE = 256, MAX_PAGES = 64 };

typedef struct placed {
    uint64_t id;
    uint32_t page;
    uint64_t offset, size;
} placed;

/* What a thread allocated and where. */
typedef struct placer {
    quire_memory *memory;
    uint32_t number;
    size_t count;
    placed all[ROUNDS * EACH];
} placer;

static void place_and_free(void *user)
{
    placer *p = user;
    uint64_t random = p->number + 1;
    for (int i = 0; i < ROUNDS; i++) {
        quire_allocation made[EACH];
        for (int k = 0; k < EACH; k++) {
            quire_allocation_info info;
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const quire_allocation_options options = {
                .size = 1 + (random >> 33) % 8000, .alignment = GRANULE, .info = &info};
            made[k].id = 0;
            if (quire_allocate(p->memory, &options, &made[k]))
                continue;
            p->all[p->count++] = (placed){made[k].id, info.page, info.offset, info.size};
        }
        for (int k = 0; k < EACH; k++)
            if (made[k].id)
                quire_free(p->memory, made[k]);
    }
}

static int compare_ids(const void *a, const void *b)
{
    const placed *one = a, *other = b;
    return (one->id > other->id) - (one->id < other->id);
}

/* Takes the granules of a range, which must be free, or gives them back. */
static void mark(bool taken[MAX_PAGES][PAGE / GRANULE], const placed *range, bool is_taken)
{
    CHECK(range->page < MAX_PAGES && range->offset + range->size <= PAGE);
    for (uint64_t at = range->offset; at < range->offset + range->size; at += GRANULE) {
        CHECK(taken[range->page][at / GRANULE] != is_taken);
        taken[range->page][at / GRANULE] = is_taken;
    }
}

/* Reads the records of all blocks in their order. */
static void check_order(const placed *all, size_t count)
{
    static bool taken[MAX_PAGES][PAGE / GRANULE];
    qi_block_header header;
    qi_record record;
    size_t allocations = 0, frees = 0;
    memset(taken, 0, sizeof taken);
    for (size_t block = 0; block < gathered.length; block += header.size) {
        memcpy(&header, gathered.text + block, sizeof header);
        for (size_t at = sizeof header; at < header.size; at += QI_RECORDING_UNIT) {
            memcpy(&record, gathered.text + block + at, sizeof record);
            const placed wanted = {.id = record.id};
            const placed *range = bsearch(&wanted, all, count, sizeof *all, compare_ids);
            CHECK(range && (record.kind == QI_RECORD_ALLOC || record.kind == QI_RECORD_FREE));
            mark(taken, range, record.kind == QI_RECORD_ALLOC);
            allocations += record.kind == QI_RECORD_ALLOC;
            frees += record.kind == QI_RECORD_FREE;
            at += record.kind == QI_RECORD_ALLOC ? QI_RECORDING_UNIT : 0;
        }
    }
    CHECK(allocations == count && frees == count);
}

/* Threads take ranges that others just freed: a replay in the order of the records has the same
   ranges at each address. */
UNIT_ON(recorder, ranges_of_threads_never_overlap_in_the_order_of_the_records, fixture, f,
        fixture_make(f, &(quire_memory_options){.shards = 2,
                                                .pages = {.page_size = PAGE, .max_pages = 6}}),
        fixture_end)
{
    static placer placers[THREADS];
    static placed all[THREADS * ROUNDS * EACH];
    crew threads;
    size_t count = 0;
    quire_recorder *recorder = start(f->memory, NULL);
    crew_start(&threads, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        placers[i] = (placer){.memory = f->memory, .number = i};
        crew_tell(&threads, i + 1, place_and_free, &placers[i]);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        crew_await(&threads, i + 1);
    crew_end(&threads);
    stop(&recorder);
    for (uint32_t i = 0; i < THREADS; i++) {
        memcpy(all + count, placers[i].all, placers[i].count * sizeof *all);
        count += placers[i].count;
    }
    CHECK(count > THREADS * ROUNDS);
    qsort(all, count, sizeof *all, compare_ids);
    check_order(all, count);
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Allocates and frees; both with the number in the name. */
static void churn_names(fixture *f, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        char name[32];
        snprintf(name, sizeof name, "tensor/%d", i);
        CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 3, .name = name)));
    }
}

CASE(names_are_those_of_their_allocations_in_every_block, .pages = {.page_size = PAGE})
{
    char long_name[QUIRE_MAX_NAME + 1], expected[QUIRE_MAX_NAME + 64];
    memset(long_name, 'n', QUIRE_MAX_NAME);
    long_name[QUIRE_MAX_NAME] = '\0';
    quire_recorder *recorder = start(f->memory, NULL);
    ALLOCATE(f, .size = 1, .name = long_name);
    ALLOCATE(f, .size = 1, .name = "kept");
    for (int i = 0; i < 3; i++)
        churn_names(f, 0, 1500); /* more names than the block finds again */
    ALLOCATE(f, .size = 1, .name = "kept");
    stop(&recorder);
    CHECK(gathered.pieces >= 3);
    quire_trace *trace = parse();
    quire_trace_event event;
    int number = 0;
    for (uint64_t i = 2; !quire_trace_get_event(trace, i, &event) && number < 4500; i++) {
        snprintf(expected, sizeof expected, "tensor/%d", number % 1500);
        if (event.op == QUIRE_TRACE_ALLOC) {
            CHECK_STR(event.label, expected);
            number++;
        }
    }
    CHECK_EQ(number, 4500);
    quire_trace_destroy(&trace);
    snprintf(expected, sizeof expected, "alloc,1,1,1,0,%s\nalloc,2,1,1,0,kept\n", long_name);
    CHECK_HAS(rows(), expected);
    CHECK_HAS(rows(), "alloc,4503,1,1,0,kept\n");
}

/* The reader of a growing file sees events that are 0.2 seconds old. */
CASE(an_old_block_is_written_at_the_next_event, .pages = {.page_size = PAGE})
{
    quire_recorder *recorder = start(f->memory, NULL);
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 3)));
    CHECK_EQ(gathered.pieces, 0);
    const struct timespec wait = {.tv_nsec = 250000000};
    nanosleep(&wait, NULL);
    CHECK_OK(quire_record_frame(recorder));
    CHECK_EQ(gathered.pieces, 1);
    CHECK_STR(rows(), "alloc,1,3,1,0,\nfree,1,0\n");
    stop(&recorder);
    CHECK_STR(rows(), "alloc,1,3,1,0,\nfree,1,0\nframe,0,0\n");
}

CASE(a_ring_keeps_the_last_events, .pages = {.page_size = PAGE})
{
    quire_recorder *recorder;
    const quire_record_options options = {
        .memory = f->memory, .sink = gather, .user = &gathered, .ring_bytes = 200000};
    forget();
    CHECK_OK(quire_record_start(&options, &recorder));
    quire_allocation lost = ALLOCATE(f, .size = 1);
    churn_names(f, 0, 20000);
    CHECK_EQ(gathered.length, 0);
    CHECK_OK(quire_free(f->memory, lost)); /* no row: the allocation is not in the ring */
    CHECK_OK(quire_record_flush(recorder));
    CHECK(gathered.length > 120000 && gathered.length <= 200000);
    CHECK_HAS(rows(), ",tensor/19999\n");
    quire_trace *trace = parse();
    quire_trace_info info;
    quire_trace_event event;
    CHECK_OK(quire_trace_get_info(trace, &info));
    CHECK(info.alloc_count > 1000 && info.alloc_count == info.free_count && !info.left_count);
    CHECK_OK(quire_trace_get_event(trace, info.event_count - 2, &event));
    CHECK_STR(event.label, "tensor/19999");
    quire_trace_destroy(&trace);
    const size_t before = gathered.length;
    churn_names(f, 20000, 1); /* what is written once is not written again */
    stop(&recorder);
    CHECK(gathered.length > before && gathered.length < before + 512);
    CHECK_HAS(rows(), ",tensor/20000\n");
}

/* What a crash leaves: the file may end anywhere. */
CASE(a_recording_is_readable_up_to_its_last_complete_block, .pages = {.page_size = PAGE})
{
    quire_recorder *recorder = start(f->memory, NULL);
    size_t ends[3];
    for (int i = 0; i < 3; i++) {
        churn_names(f, i, 1);
        CHECK_OK(quire_record_flush(recorder));
        ends[i] = gathered.length;
    }
    stop(&recorder);
    CHECK_EQ(gathered.length, ends[2]);
    for (size_t size = 8; size <= ends[2]; size++) {
        quire_trace *trace = NULL;
        quire_trace_info info;
        CHECK_OK(quire_trace_parse("cut", gathered.text, size, NULL, &trace));
        CHECK_OK(quire_trace_get_info(trace, &info));
        size_t blocks = 0;
        while (blocks < 3 && size >= ends[blocks])
            blocks++;
        CHECK_EQ(info.event_count, 2 * blocks);
        CHECK_EQ(info.cut_bytes, size - (blocks ? ends[blocks - 1] : 0));
        quire_trace_destroy(&trace);
    }
}

/* ---- failures and ends ---------------------------------------------------------------------- */

CASE(wrong_options_are_refused, 0)
{
    quire_recorder *recorder = NULL;
    const struct {
        quire_record_options options;
        quire_result reason;
        const char *says;
    } wrong[] = {
        {{.sink = gather}, QUIRE_ERROR_INVALID_ARGUMENT, "either memory or device"},
        {{.memory = f->memory, .device = f->device, .sink = gather},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "either memory or device"},
        {{.memory = f->memory}, QUIRE_ERROR_INVALID_ARGUMENT, "either path or sink"},
        {{.memory = f->memory, .sink = gather, .path = "/dev/null"},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "either path or sink"},
        {{.memory = f->memory, .sink = gather, .unused = {1}},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "quire_record_options"},
        {{.device = f->device, .path = "/nowhere/trace.csv"},
         QUIRE_ERROR_BAD_FILE,
         "the trace '/nowhere/trace.csv' cannot be opened: No such file or directory"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        recorder = (quire_recorder *)&recorder;
        CHECK_FAILS(quire_record_start(&wrong[i].options, &recorder), wrong[i].reason);
        CHECK(recorder == NULL);
        CHECK_HAS(quire_last_error(), wrong[i].says);
    }
    CHECK_EQ(quire_last_native_code(), ENOENT);
    CHECK_OK(quire_record_stop(&recorder)); /* NULL: nothing to stop */
}

CASE(a_sink_that_refuses_a_piece_is_not_called_again, .pages = {.page_size = PAGE})
{
    quire_recorder *recorder = start(f->memory, NULL);
    gathered.refuse = 2;
    CHECK_OK(quire_record_flush(recorder));
    for (int i = 0; i < 200; i++)
        CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 3)));
    CHECK_FAILS(quire_record_flush(recorder), QUIRE_ERROR_BAD_FILE);
    CHECK_FAILS(quire_record_stop(&recorder), QUIRE_ERROR_BAD_FILE);
    CHECK_EQ(gathered.pieces, 2);
    CHECK(recorder == NULL);
    recorder = start(f->memory, NULL); /* the next one is not affected */
    ALLOCATE(f, .size = 3);
    stop(&recorder);
    CHECK_STR(rows(), "alloc,1,3,1,0,\n");
}

CASE(a_full_disk_is_reported_at_the_end, .pages = {.page_size = PAGE})
{
    quire_recorder *recorder;
    CHECK_OK(quire_record_start(&(quire_record_options){.memory = f->memory, .path = "/dev/full"},
                                &recorder));
    for (int i = 0; i < 200; i++)
        CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 3)));
    CHECK_FAILS(quire_record_stop(&recorder), QUIRE_ERROR_BAD_FILE);
    CHECK_HAS(quire_last_error(), "the trace cannot be written: No space left on device");
    CHECK_EQ(quire_last_native_code(), ENOSPC);
}

/* Only the start takes host memory. */
CASE(a_recording_needs_no_host_memory_after_its_start, .pages = {.page_size = PAGE})
{
    quire_recorder *recorder = NULL;
    const quire_record_options options = {.memory = f->memory, .sink = gather, .user = &gathered};
    CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 3))); /* what an allocation needs exists */
    for (uint64_t i = 1; i <= 2; i++) {
        test_memory_fail(unit_memory_state(), i, true);
        CHECK_FAILS(quire_record_start(&options, &recorder), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK(recorder == NULL);
    }
    test_memory_fail(unit_memory_state(), 0, false);
    recorder = start(f->memory, NULL);
    test_memory_fail(unit_memory_state(), 1, true);
    for (int i = 0; i < 10000; i++)
        CHECK_OK(quire_free(f->memory, ALLOCATE(f, .size = 3)));
    CHECK_OK(quire_record_frame(recorder));
    stop(&recorder);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_HAS(rows(), "free,10000,0\nframe,0,0\n");
}

UNIT(recorder, a_recording_ends_with_its_memory_or_device)
{
    char name[] = "/tmp/quire-recorder-XXXXXX";
    int file = mkstemp(name);
    CHECK(file >= 0);
    for (int of_device = 0; of_device < 2; of_device++) {
        fixture f;
        quire_recorder *recorder;
        fixture_make(&f, &(quire_memory_options){.pages = {.page_size = PAGE}});
        CHECK_OK(quire_record_start(&(quire_record_options){.memory = of_device ? NULL : f.memory,
                                                            .device = of_device ? f.device : NULL,
                                                            .path = name},
                                    &recorder));
        ALLOCATE(&f, .size = 9);
        fixture_end(&f); /* what lives then has no row of its end */
        read_rows(name);
        CHECK_STR(rows(), "alloc,1,9,1,0,\n");
    }
    close(file);
}

/* The child has no recording; its end writes nothing to the file of the parent. */
UNIT(recorder, the_child_of_a_fork_records_nothing)
{
    fixture f;
    char name[] = "/tmp/quire-recorder-XXXXXX";
    int file = mkstemp(name), status = 1;
    CHECK(file >= 0);
    fixture_prepare(&f);
    f.fake.info.survives_fork = true;
    fixture_open(&f, &(quire_memory_options){.pages = {.page_size = PAGE}});
    quire_recorder *recorder;
    CHECK_OK(
        quire_record_start(&(quire_record_options){.device = f.device, .path = name}, &recorder));
    quire_allocation parents = ALLOCATE(&f, .size = 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        quire_allocation made;
        quire_recorder *own = NULL;
        int wrong = quire_record_flush(recorder) != QUIRE_ERROR_NOT_PERMITTED;
        wrong |= quire_record_stop(&recorder) != QUIRE_SUCCESS;
        wrong |= quire_allocate(f.memory, &(quire_allocation_options){.size = 2}, &made) != 0;
        forget();
        wrong |= quire_record_start(
                     &(quire_record_options){.device = f.device, .sink = gather, .user = &gathered},
                     &own) != 0;
        wrong |= quire_free(f.memory, made) != 0 || quire_free(f.memory, parents) != 0;
        wrong |= quire_record_stop(&own) != 0 || strcmp(rows(), "") != 0;
        _exit(wrong);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    ALLOCATE(&f, .size = 3);
    stop(&recorder);
    read_rows(name);
    CHECK_STR(rows(), "alloc,1,1,1,0,\nalloc,2,3,1,0,\n");
    close(file);
    fixture_end(&f);
}

static void keep_line(void *user, quire_log_level level, const char *line)
{
    (void)level;
    snprintf(user, 512, "%s", line);
}

/* ---- by the environment --------------------------------------------------------------------- */

/* Opens a device, allocates and ends. Returns whether that worked. */
static bool live_and_end(uint64_t size)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.pages = {.page_size = PAGE}});
    CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = size)));
    fixture_end(&f);
    return true;
}

/* A pipe without a reader would block the open. */
UNIT(recorder, a_pipe_that_nobody_reads_is_refused)
{
    char folder[] = "/tmp/quire-recorder-XXXXXX", name[64];
    quire_recorder *recorder;
    fixture f;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(name, sizeof name, "%s/pipe", folder);
    CHECK(!mkfifo(name, 0600));
    fixture_make(&f, &(quire_memory_options){.pages = {.page_size = PAGE}});
    CHECK_FAILS(
        quire_record_start(&(quire_record_options){.memory = f.memory, .path = name}, &recorder),
        QUIRE_ERROR_BAD_FILE);
    CHECK_HAS(quire_last_error(), "pipe' cannot be opened: No such device or address");
    int reader = open(name, O_RDONLY | O_NONBLOCK);
    CHECK(reader >= 0);
    CHECK_OK(
        quire_record_start(&(quire_record_options){.memory = f.memory, .path = name}, &recorder));
    ALLOCATE(&f, .size = 4);
    CHECK_OK(quire_record_stop(&recorder));
    forget();
    ssize_t length = read(reader, gathered.text, MAX_TEXT - 1);
    CHECK(length > 0);
    gathered.length = (size_t)length;
    CHECK_STR(rows(), "alloc,1,4,1,0,\n");
    close(reader);
    fixture_end(&f);
    CHECK(!unlink(name) && !rmdir(folder));
}

static void live_untraced(void)
{
    fixture f;
    fixture_prepare(&f);
    const quire_device_options options = {.host_memory = unit_memory(), .untraced = true};
    CHECK_OK(quire_device_create(&f.fake.table, &f.fake, &options, &f.device));
    CHECK_OK(quire_memory_create(f.device, NULL, &f.memory));
    ALLOCATE(&f, .size = 9);
    fixture_end(&f);
}

/* The only test that sets the variable: the devices of the process are counted. */
UNIT(recorder, quire_trace_records_every_device)
{
    char folder[] = "/tmp/quire-recorder-XXXXXX", name[64], other[80];
    fixture f, second;
    CHECK(mkdtemp(folder) != NULL);
    snprintf(name, sizeof name, "%s/trace.csv", folder);
    CHECK_EQ(setenv("QUIRE_TRACE", name, 1), 0);
    fixture_make(&f, &(quire_memory_options){.pages = {.page_size = PAGE}});
    fixture_make(&second, &(quire_memory_options){.pages = {.page_size = PAGE}});
    ALLOCATE(&f, .size = 5, .name = "mine");
    ALLOCATE(&second, .size = 6);
    quire_recorder *recorder = start(f.memory, NULL); /* the program's own */
    ALLOCATE(&f, .size = 7);
    stop(&recorder);
    CHECK_STR(rows(), "alloc,1,7,1,0,\n");

    int status = 1;
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child)
        _exit(!live_and_end(8)); /* a third device, whose file nobody has */
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    fixture_end(&f);
    fixture_end(&second);
    read_rows(name);
    CHECK_STR(rows(), "alloc,1,5,1,0,mine\nalloc,2,7,1,0,\n");
    snprintf(other, sizeof other, "%s.2", name);
    read_rows(other);
    CHECK_STR(rows(), "alloc,1,6,1,0,\n");
    snprintf(other, sizeof other, "%s.3", name);
    read_rows(other);
    CHECK_STR(rows(), "alloc,1,8,1,0,\nfree,1,0\n");
    live_untraced();
    CHECK_EQ(unsetenv("QUIRE_TRACE"), 0);
    live_and_end(1);
    CHECK_EQ(rmdir(folder), 0); /* nothing more was written */
}

/* A file that another process writes to is left alone, and one that cannot be opened is a line. */
UNIT(recorder, quire_trace_that_cannot_be_written_is_a_warning)
{
    CHECK_EQ(setenv("QUIRE_TRACE", "/nowhere/trace.csv", 1), 0);
    fixture f;
    fixture_prepare(&f);
    char said[512] = "";
    quire_device_options options = {
        .host_memory = unit_memory(),
        .log = {.write = keep_line, .user = said, .level = QUIRE_LOG_WARNING}};
    CHECK_OK(quire_device_create(&f.fake.table, &f.fake, &options, &f.device));
    CHECK_HAS(said, "QUIRE_TRACE: the trace '/nowhere/trace.csv");
    CHECK_HAS(said, "cannot be opened: No such file or directory");
    CHECK_EQ(unsetenv("QUIRE_TRACE"), 0);
    CHECK_OK(quire_device_destroy(&f.device));
}
