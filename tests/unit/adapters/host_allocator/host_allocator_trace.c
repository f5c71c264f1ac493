/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_allocator_trace.c - recorded traces, statistics and snapshots as text, and settings of the
 * environment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quire/trace.h"
#include "src/adapters/host_allocator/host_allocator.h"
#include "tests/support/child.h"
#include "tests/support/capture.h"
#include "tests/support/unit.h"

static char path[32];
static char text[1 << 16];

static host_allocator *make_with_file(void)
{
    host_allocator *allocator = NULL;
    snprintf(path, sizeof path, "/tmp/quire-host-XXXXXX");
    int file = mkstemp(path);
    CHECK(file >= 0);
    close(file);
    CHECK_OK(host_allocator_create(NULL, &allocator));
    return allocator;
}

static quire_trace_info parse(quire_trace **trace)
{
    quire_trace_info info;
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    CHECK_OK(quire_trace_parse(path, text, size, NULL, trace));
    CHECK_OK(quire_trace_get_info(*trace, &info));
    return info;
}

UNIT(host_allocator_trace, every_call_is_a_row)
{
    quire_trace *trace;
    quire_trace_event event;
    host_allocator *a = make_with_file();
    void *before = host_allocator_allocate(a, 100, 0);
    CHECK_OK(host_allocator_start_trace(a, path));
    void *small = host_allocator_allocate(a, 1000, 0);
    void *large = host_allocator_allocate(a, 100000, 4096);
    CHECK_OK(host_allocator_free(a, before)); /* is not in the trace */
    CHECK_OK(host_allocator_free(a, small));
    small = host_allocator_allocate(a, 900, 0); /* a block from the cache */
    CHECK_OK(host_allocator_free(a, large));
    CHECK_OK(host_allocator_stop_trace(a));
    CHECK_OK(host_allocator_free(a, small)); /* after the trace */
    quire_trace_info info = parse(&trace);
    CHECK_EQ(info.alloc_count, 3);
    CHECK_EQ(info.free_count, 2);
    CHECK_EQ(info.peak_bytes, 101000);
    CHECK_EQ(info.left_bytes, 900);
    CHECK_OK(quire_trace_get_event(trace, 1, &event));
    CHECK_EQ(event.size, 100000);
    CHECK_EQ(event.alignment, 4096);
    quire_trace_destroy(&trace);
    host_allocator_destroy(&a);
    remove(path);
}

UNIT(host_allocator_trace, a_second_trace_knows_nothing_of_the_first)
{
    quire_trace *trace;
    host_allocator *a = make_with_file();
    CHECK_OK(host_allocator_start_trace(a, path));
    void *small = host_allocator_allocate(a, 1000, 0),
         *large = host_allocator_allocate(a, 1 << 20, 0);
    CHECK_OK(host_allocator_stop_trace(a));
    CHECK_OK(host_allocator_start_trace(a, path));
    CHECK_OK(host_allocator_free(a, small));
    CHECK_OK(host_allocator_free(a, large));
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 10, 0)));
    host_allocator_destroy(&a); /* closes it */
    quire_trace_info info = parse(&trace);
    CHECK_EQ(info.event_count, 2);
    CHECK_EQ(info.peak_bytes, 10);
    quire_trace_destroy(&trace);
    remove(path);
}

UNIT(host_allocator_trace, a_forked_child_records_nothing)
{
    quire_trace *trace;
    host_allocator *a = make_with_file();
    CHECK_OK(host_allocator_start_trace(a, path));
    void *small = host_allocator_allocate(a, 1000, 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (!child) {
        CHECK_OK(host_allocator_free(a, small));
        CHECK(host_allocator_allocate(a, 1 << 20, 0) != NULL);
        CHECK_FAILS(host_allocator_stop_trace(a), QUIRE_ERROR_WRONG_STATE);
        host_allocator_destroy(&a);
        child_end(true);
    }
    CHECK(child_was_well(child));
    CHECK_OK(host_allocator_stop_trace(a));
    CHECK_EQ(parse(&trace).event_count, 1);
    quire_trace_destroy(&trace);
    host_allocator_destroy(&a);
    remove(path);
}

UNIT(host_allocator_trace, what_cannot_be_recorded_is_refused)
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT, state = QUIRE_ERROR_WRONG_STATE;
    host_allocator *a = make_with_file(), *other = NULL;
    CHECK_FAILS(host_allocator_start_trace(NULL, path), invalid);
    CHECK_FAILS(host_allocator_start_trace(a, NULL), invalid);
    CHECK_FAILS(host_allocator_start_trace(a, ""), invalid);
    CHECK_FAILS(host_allocator_start_trace(a, "/nowhere/at/all"), QUIRE_ERROR_BAD_FILE);
    CHECK_HAS(quire_last_error(), "/nowhere/at/all");
    CHECK_FAILS(host_allocator_stop_trace(NULL), invalid);
    CHECK_FAILS(host_allocator_stop_trace(a), state);
    CHECK_OK(host_allocator_start_trace(a, path));
    CHECK_FAILS(host_allocator_start_trace(a, path), state);
    CHECK_OK(host_allocator_stop_trace(a));
    CHECK_OK(host_allocator_start_trace(a, "/dev/full"));
    CHECK_OK(host_allocator_free(a, host_allocator_allocate(a, 10, 0))); /* works all the same */
    CHECK_FAILS(host_allocator_stop_trace(a), QUIRE_ERROR_BAD_FILE);
    CHECK_FAILS(
        host_allocator_create(&(host_allocator_options){.trace_file = "/nowhere/at/all"}, &other),
        QUIRE_ERROR_BAD_FILE);
    CHECK(!other);
    host_allocator_destroy(&a);
    remove(path);
}

/* ---- statistics and snapshots as text -------------------------------------------------------- */

static bool collect(void *user, const char *part, size_t size)
{
    size_t *length = user;
    CHECK(*length + size < sizeof text);
    memcpy(text + *length, part, size);
    text[ *length += size] = 0;
    return true;
}

static bool refuse(void *user, const char *part, size_t size)
{
    (void)part;
    (void)size;
    return --*(int *)user > 0;
}

UNIT(host_allocator_trace, statistics_and_snapshot_are_json)
{
    size_t length = 0;
    host_allocator *a = NULL;
    CHECK_OK(host_allocator_create(&(host_allocator_options){.name = "named"}, &a));
    CHECK(host_allocator_allocate(a, 1000, 0) && host_allocator_allocate(a, 50000, 0));
    CHECK_OK(host_allocator_write_stats(a, collect, &length));
    CHECK_HAS(text, "{\"requested_bytes\": 51000, \"allocation_count\": 2, ");
    CHECK_HAS(text, ", \"memory\": {\"live_bytes\": ");
    CHECK_STR(text + length - 2, "}}");
    length = 0;
    CHECK_OK(host_allocator_write_snapshot(a, collect, &length));
    CHECK_HAS(text, "\"named\"");
    for (int calls = 1; calls < 5; calls++) {
        int left = calls;
        CHECK_FAILS(host_allocator_write_stats(a, refuse, &left), QUIRE_ERROR_BAD_FILE);
    }
    host_allocator_destroy(&a);
}

/* ---- settings -------------------------------------------------------------------------------- */

UNIT_ALONE(host_allocator_trace, settings_come_from_the_environment)
{
    host_allocator_options options = {.shards = 7, .limit = 9};
    CHECK_OK(host_allocator_read_environment("QUIRE_TEST_HOST", &options));
    CHECK_EQ(options.shards, 7);
    CHECK_EQ(options.limit, 9);
    setenv("QUIRE_TEST_HOST_PAGE_SIZE", "4m", 1);
    setenv("QUIRE_TEST_HOST_LIMIT", "1G", 1);
    setenv("QUIRE_TEST_HOST_RETAIN", "12", 1);
    setenv("QUIRE_TEST_HOST_CACHE", "64K", 1);
    setenv("QUIRE_TEST_HOST_SHARDS", "2", 1);
    setenv("QUIRE_TEST_HOST_HUGE_PAGES", "1", 1);
    setenv("QUIRE_TEST_HOST_TRACE", "/tmp/a", 1);
    CHECK_OK(host_allocator_read_environment("QUIRE_TEST_HOST", &options));
    CHECK_EQ(options.page_size, 4 << 20);
    CHECK_EQ(options.limit, 1 << 30);
    CHECK_EQ(options.retained_empty_bytes, 12);
    CHECK_EQ(options.cached_bytes, 64 << 10);
    CHECK_EQ(options.shards, 2);
    CHECK(options.huge_pages);
    CHECK_STR(options.trace_file, "/tmp/a");
}

UNIT_ALONE(host_allocator_trace, wrong_settings_are_refused)
{
    const struct {
        const char *name, *text;
    } wrong[] = {
        {"PAGE_SIZE", "x"},        {"PAGE_SIZE", "-1"}, {"LIMIT", "1t"},
        {"LIMIT", "1kk"},          {"RETAIN", "4 m"},   {"CACHE", "18446744073709551616"},
        {"CACHE", "99999999999g"}, {"SHARDS", "65"},    {"HUGE_PAGES", "2"},
    };
    host_allocator_options options = {.page_size = 5};
    CHECK_FAILS(host_allocator_read_environment(NULL, &options), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(host_allocator_read_environment("X", NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "QUIRE_TEST_HOST_%s", wrong[i].name);
        setenv(variable, wrong[i].text, 1);
        CHECK_FAILS(host_allocator_read_environment("QUIRE_TEST_HOST", &options),
                    QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), variable);
        CHECK_EQ(options.page_size, 5);
        unsetenv(variable);
    }
}

UNIT_ALONE(host_allocator_trace, unknown_settings_are_reported)
{
    static capture c;
    host_allocator_options options = {.page_size = 5};
    setenv("QUIRE_TEST_HOST_PAGESIZE", "4m", 1);
    setenv("QUIRE_TEST_HOST_SHARDS", "2", 1);
    CHECK(capture_start(&c));
    CHECK_OK(host_allocator_read_environment("QUIRE_TEST_HOST", &options));
    CHECK_STR(capture_end(&c), "quire: QUIRE_TEST_HOST_PAGESIZE is unknown and has no effect; is "
                               "QUIRE_TEST_HOST_PAGE_SIZE meant?\n");
    CHECK_EQ(options.page_size, 5);
    CHECK_EQ(options.shards, 2);
    unsetenv("QUIRE_TEST_HOST_PAGESIZE");
    setenv("QUIRE_TEST_HOST_TRACE", "/tmp/a", 1);
    CHECK(capture_start(&c));
    CHECK_OK(host_allocator_read_environment("QUIRE_TEST_HOST", &options));
    CHECK_STR(capture_end(&c), "");
}
