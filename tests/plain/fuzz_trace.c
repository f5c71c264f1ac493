/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fuzz_trace.c - damaged traces: a valid text with bytes flipped, lines cut, doubled and exchanged,
 * numbers replaced and bytes inserted. Each is either accepted, and then its events follow the
 * rules of the format and can be replayed on a small device, or rejected with a message whose line
 * and column lie in the text. The seed reproduces a run.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "quire/host.h"
#include "quire/trace.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

#define HEADER "op,id,size,alignment,time_ns,stream,label"

enum { MAX_TEXT = 16384, MAX_LINE = 256, MAX_LINES = 60, MAX_LIVE = 64, MAX_INSERT = 8 };
enum { KIB = 1024, SMALL_PAGE = 4 * KIB, SMALL_HEAP = 24 * KIB };

typedef struct text {
    char bytes[MAX_TEXT];
    size_t size;
} text;

static test_memory host;
static test_random rng;
static text now; /* of the current round */
static uint64_t total_rounds, seed, accepted, refused, refused_allocations;
static uint64_t span; /* from the first time of the text to the last, before any damage */

static uint64_t below(uint64_t n)
{
    return random_below(&rng, n);
}

/* ---- a valid text ------------------------------------------------------------------------- */

static void append(text *t, const char *line)
{
    size_t length = strlen(line);
    CHECK(t->size + length < MAX_TEXT / 2);
    memcpy(t->bytes + t->size, line, length);
    t->size += length;
}

/* One line; `live` are the ids that live. */
static void append_event(text *t, uint64_t *live, uint32_t *count, uint64_t *time, uint64_t *next)
{
    static const char *const labels[] = {"", "", "kv", "weights", "key\xc3\xa9s", "a b", ",x,y"};
    static const char *const ends[] = {"\n", "\n", "\n", "\r\n"};
    char line[MAX_LINE];
    const char *label = labels[below(sizeof labels / sizeof *labels)];
    uint64_t what = below(10), stream = below(4);
    if ((what < 5 && *count < MAX_LIVE) || !*count) {
        uint64_t id = *next += 1 + below(3), size = random_size(&rng, 8 * KIB);
        uint64_t alignment = UINT64_C(1) << below(12);
        snprintf(line, sizeof line,
                 "alloc,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s", id, size,
                 alignment, *time, stream, label);
        live[(*count)++] = id;
    } else if (what == 9) {
        snprintf(line, sizeof line, "frame,,,,%" PRIu64 ",%s,", *time, stream ? "3" : "");
    } else {
        uint32_t i = (uint32_t)below(*count);
        bool is_free = what < 8;
        snprintf(line, sizeof line, "%s,%" PRIu64 ",,,%" PRIu64 ",%" PRIu64 ",%s",
                 is_free ? "free" : "use", live[i], *time, stream, label);
        if (is_free)
            live[i] = live[--*count];
    }
    append(t, line);
    append(t, ends[below(sizeof ends / sizeof *ends)]);
}

static void make_text(text *t)
{
    /* from 0, from anywhere, or as late as leaves room for the steps below */
    const uint64_t starts[] = {0, below(UINT64_MAX - MAX_LINES * 2000),
                               UINT64_MAX - MAX_LINES * 2000};
    uint64_t live[MAX_LIVE], start = starts[below(3)], time = start, next = 0;
    uint32_t count = 0;
    t->size = 0;
    span = 0;
    append(t, below(8) ? HEADER "\n" : HEADER ",x,\"y\"\r\n");
    for (uint64_t lines = below(MAX_LINES); lines; lines--) {
        append_event(t, live, &count, &time, &next);
        span = time - start;
        uint64_t step = below(1000);
        time += below(3) * step;
    }
    if (!below(4))
        t->size -= t->bytes[t->size - 2] == '\r' ? 2 : 1; /* no last line end */
}

/* ---- damage ------------------------------------------------------------------------------- */

/* Replaces [at, at + old) by other bytes. */
static void replace(text *t, size_t at, size_t old, const char *with, size_t size)
{
    if (t->size - old + size > MAX_TEXT)
        return;
    memmove(t->bytes + at + size, t->bytes + at + old, t->size - at - old);
    memcpy(t->bytes + at, with, size);
    t->size += size - old;
}

/* A byte with a meaning in the format, or any byte. */
static char some_byte(void)
{
    static const char bytes[] = "\0\n\r,,\"-+ 09af\x7f\x80\xc0\xe2\xef\xf4\xff";
    return below(4) ? bytes[below(sizeof bytes - 1)] : (char)below(256);
}

static void flip_byte(text *t)
{
    char *byte = &t->bytes[below(t->size)];
    char flipped = (char)((unsigned char)*byte ^ 1u << below(8));
    *byte = below(2) ? some_byte() : flipped;
}

static void cut(text *t)
{
    size_t from = below(t->size), size = 1 + below(t->size - from);
    if (below(2))
        t->size = from;
    else
        replace(t, from, size > MAX_LINE ? 1 : size, "", 0);
}

static void insert_bytes(text *t)
{
    char bytes[MAX_INSERT];
    size_t size = 1 + below(MAX_INSERT);
    for (size_t i = 0; i < size; i++)
        bytes[i] = some_byte();
    replace(t, below(t->size + 1), 0, bytes, size);
}

/* The line around a place: its start, and its length with the line end. */
static size_t line_around(const text *t, size_t at, size_t *size)
{
    size_t begin = at, end = at;
    while (begin && t->bytes[begin - 1] != '\n')
        begin--;
    while (end < t->size && t->bytes[end++] != '\n') {
    }
    *size = end - begin;
    return begin;
}

/* Copies a line to the begin of another, or moves it there. */
static void double_line(text *t)
{
    static char line[MAX_TEXT];
    size_t size = 0, other = 0, from = line_around(t, below(t->size), &size);
    memcpy(line, t->bytes + from, size);
    if (below(2) && size < t->size)
        replace(t, from, size, "", 0);
    replace(t, line_around(t, below(t->size), &other), 0, line, size);
}

/* The digits around a place or after it; returns false if the text has none. */
static bool find_number(const text *t, size_t *at, size_t *size)
{
    size_t begin = below(t->size);
    while (begin < t->size && !isdigit((unsigned char)t->bytes[begin]))
        begin++;
    while (begin && begin < t->size && isdigit((unsigned char)t->bytes[begin - 1]))
        begin--;
    size_t end = begin;
    while (end < t->size && isdigit((unsigned char)t->bytes[end]))
        end++;
    *at = begin;
    *size = end - begin;
    return end > begin;
}

static void change_number(text *t)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "",
                                          "3",
                                          "4096",
                                          "00000000000000000000000000000001",
                                          "4294967296",
                                          "9223372036854775808",
                                          "18446744073709551615",
                                          "18446744073709551616",
                                          "99999999999999999999999999"};
    size_t at = 0, size = 0, other = 0, other_size = 0;
    char copy[MAX_LINE];
    if (!find_number(t, &at, &size))
        return;
    const char *with = numbers[below(sizeof numbers / sizeof *numbers)];
    size_t length = strlen(with);
    if (below(3) && find_number(t, &other, &other_size) && other_size < sizeof copy) {
        memcpy(copy, t->bytes + other, other_size);
        with = copy;
        length = other_size;
    }
    replace(t, at, size, with, length);
}

/* ---- accepted: the events follow the rules ------------------------------------------------ */

typedef struct model {
    quire_trace_info info; /* recounted */
    uint64_t ids[MAX_TEXT], sizes[MAX_TEXT];
    uint64_t live, bytes, time;
} model;

static model counted;

static void count_alloc(model *m, const quire_trace_event *event)
{
    CHECK(event->id && event->size && event->range < MAX_TEXT && !m->ids[event->range]);
    CHECK(event->alignment && !(event->alignment & (event->alignment - 1)));
    CHECK(m->bytes + event->size >= m->bytes);
    m->ids[event->range] = event->id;
    m->sizes[event->range] = event->size;
    m->bytes += event->size;
    m->live++;
    m->info.alloc_count++;
    if (m->bytes > m->info.peak_bytes) {
        m->info.peak_bytes = m->bytes;
        m->info.peak_event = m->info.event_count;
    }
    if (m->live > m->info.peak_ranges)
        m->info.peak_ranges = m->live;
    if (event->size > m->info.largest)
        m->info.largest = event->size;
}

static void count_event(model *m, const quire_trace_event *event)
{
    CHECK(event->time_ns >= m->time && (m->info.event_count || !event->time_ns));
    CHECK(event->label && !strpbrk(event->label, ",\"\r\n"));
    m->time = event->time_ns;
    if (event->op == QUIRE_TRACE_ALLOC) {
        count_alloc(m, event);
    } else if (event->op == QUIRE_TRACE_FRAME) {
        CHECK(!event->id && !event->size && !*event->label);
        m->info.frame_count++;
    } else {
        CHECK(event->id && !event->size && event->range < MAX_TEXT);
        CHECK_EQ(m->ids[event->range], event->id);
        m->info.use_count += event->op == QUIRE_TRACE_USE;
        if (event->op == QUIRE_TRACE_FREE) {
            m->info.free_count++;
            m->ids[event->range] = 0;
            m->bytes -= m->sizes[event->range];
            m->live--;
        }
    }
    m->info.event_count++;
}

static void check_events(const quire_trace *trace, const quire_trace_info *info)
{
    counted = (model){0};
    for (uint64_t i = 0; i < info->event_count; i++) {
        quire_trace_event event;
        CHECK_OK(quire_trace_get_event(trace, i, &event));
        count_event(&counted, &event);
    }
    counted.info.left_count = counted.live;
    counted.info.left_bytes = counted.bytes;
    counted.info.end_ns = counted.time;
    CHECK(!memcmp(&counted.info, info, sizeof *info));
}

static void replay(quire_device *device, const quire_trace *trace, const quire_trace_info *info)
{
    quire_memory *memory = NULL;
    quire_replay_report report;
    quire_memory_options options = {.pages = {.page_size = SMALL_PAGE}};
    quire_replay_options how = {.keep = below(2)};
    how.name = below(2);
    options.fit.algorithm = (quire_fit)below(4); /* any of them */
    CHECK_OK(quire_memory_create(device, &options, &memory));
    CHECK_OK(quire_trace_replay(trace, memory, &how, &report));
    CHECK_OK(quire_memory_check(memory));
    CHECK_EQ(report.operations, info->event_count);
    CHECK_EQ(report.allocations + report.failures, info->alloc_count);
    CHECK(report.peak_reserved_bytes <= SMALL_HEAP);
    CHECK(report.peak_reserved_bytes >= report.peak_live_bytes);
    CHECK(report.failures || report.peak_live_bytes >= report.peak_requested_bytes);
    CHECK_EQ(report.peak_requested_bytes, info->peak_bytes);
    if (!report.failures) {
        CHECK_EQ(report.left_at_end, info->left_count);
        CHECK_EQ(report.left_bytes, info->left_bytes);
    }
    refused_allocations += report.failures;
    quire_memory_destroy_all(&memory);
}

/* ---- rejected: the message points into the text -------------------------------------------- */

static void check_message(const text *t, const char *message)
{
    unsigned long long line = 0, column = 0;
    int length = 0;
    for (const char *p = message; *p; p++)
        CHECK(*p >= 0x20 && *p < 0x7f);
    if (!t->size) {
        CHECK_STR(message, "fuzz: the file is empty");
        return;
    }
    if (sscanf(message, "fuzz:%llu:%llu: %n", &line, &column, &length) != 2 || !length)
        check_failed(__FILE__, __LINE__, "no line and column in '%s'", message);
    CHECK(message[length]);
    size_t begin = 0, size = 0;
    for (unsigned long long i = 1; i < line && begin < t->size; i++) {
        begin = line_around(t, begin, &size);
        begin += size;
    }
    if (!line || begin >= t->size)
        check_failed(__FILE__, __LINE__, "no such line: '%s'", message);
    line_around(t, begin, &size);
    size -= t->bytes[begin + size - 1] == '\n';
    if (!column || column > size + 1)
        check_failed(__FILE__, __LINE__, "the line has %zu bytes: '%s'", size, message);
}

/* ---- rounds ------------------------------------------------------------------------------- */

typedef void damage(text *t);

static damage *const ALL[] = {flip_byte, cut, insert_bytes, double_line, change_number};

enum { KINDS = sizeof ALL / sizeof *ALL };

static quire_device *open_device(void)
{
    quire_device *device = NULL;
    quire_host_profile profile = {
        .name = "small",
        .heap_count = 1,
        .kind_count = 1,
        .heaps = {{.size = SMALL_HEAP, .flags = QUIRE_HEAP_DEVICE_LOCAL}},
        .kinds = {{.flags = QUIRE_DEVICE_LOCAL}},
    };
    quire_host_options options = {.profile = &profile, .device = {.host_memory = &host.callbacks}};
    CHECK_OK(quire_host_open(&options, &device));
    return device;
}

/* Parses a copy that ends at the end of the text, so that a sanitizer sees a read after it. */
static void run_round(quire_device *device, const text *t, bool damaged)
{
    char *copy = malloc(t->size ? t->size : 1);
    quire_trace *trace = NULL;
    memcpy(copy, t->bytes, t->size);
    quire_result result = quire_trace_parse("fuzz", copy, t->size, &host.callbacks, &trace);
    free(copy);
    if (result) {
        CHECK_FAILS(result, QUIRE_ERROR_BAD_FILE);
        CHECK(!trace);
        check_message(t, quire_last_error());
        refused++;
        return;
    }
    quire_trace_info info;
    CHECK_OK(quire_trace_get_info(trace, &info));
    check_events(trace, &info);
    CHECK(damaged || info.end_ns == span);
    replay(device, trace, &info);
    quire_trace_destroy(&trace);
    accepted++;
}

/* Rounds with one kind of damage; KINDS means several of all; above it none. */
static void run_rounds(int kind)
{
    quire_device *device = open_device();
    accepted = refused = refused_allocations = 0;
    rng = (test_random){seed + (uint64_t)kind};
    for (uint64_t i = 0; i < total_rounds / (KINDS + 2) + 1; i++) {
        make_text(&now);
        uint64_t times = kind > KINDS ? 0 : 1 + below(kind == KINDS ? 5 : 2);
        for (; times && now.size; times--)
            ALL[kind == KINDS ? below(KINDS) : (uint64_t)kind](&now);
        run_round(device, &now, kind <= KINDS);
    }
    CHECK_OK(quire_device_destroy(&device));
    CHECK_EQ(host.blocks, 0);
    printf("# %" PRIu64 " accepted, %" PRIu64 " refused, %" PRIu64 " allocations refused\n",
           accepted, refused, refused_allocations);
}

static void case_valid(void)
{
    run_rounds(KINDS + 1);
    CHECK_EQ(refused, 0);
}

static void case_flip(void)
{
    run_rounds(0);
}

static void case_cut(void)
{
    run_rounds(1);
}

static void case_insert(void)
{
    run_rounds(2);
}

static void case_lines(void)
{
    run_rounds(3);
}

static void case_numbers(void)
{
    run_rounds(4);
}

static void case_everything(void)
{
    run_rounds(KINDS);
    CHECK(accepted && refused);
}

int main(int argc, char **argv)
{
    total_rounds = plain_option(argc, argv, "steps", 20000);
    seed = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, total_rounds);
    test_memory_init(&host);
    plain_case("valid traces are accepted", case_valid);
    plain_case("flipped bytes", case_flip);
    plain_case("cut and shortened", case_cut);
    plain_case("inserted bytes", case_insert);
    plain_case("lines doubled and moved", case_lines);
    plain_case("numbers changed and exchanged", case_numbers);
    plain_case("all kinds of damage", case_everything);
    return plain_end();
}
