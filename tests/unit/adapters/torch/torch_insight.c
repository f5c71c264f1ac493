/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * torch_insight.c - the statistics and snapshots of the adapter for torch, read as JSON.
 */
#include <jansson.h>
#include <stdlib.h>

#include "tests/support/torch_client.h"
#include "tests/support/unit.h"

#define MIB (INT64_C(1) << 20)

static torch_client c;
static const torch_pool_id POOL = {7, 9};

/* Takes the text. */
static json_t *parse(char *text)
{
    json_error_t error;
    CHECK(text);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        check_failed(__FILE__, __LINE__, "%s at %d in %s", error.text, error.position, text);
    free(text);
    return root;
}

static int64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        check_failed(__FILE__, __LINE__, "no number '%s'", key);
    return json_integer_value(value);
}

#define CASE(name) TORCH_CASE(torch_insight, name, 1)

/* ---- statistics ----------------------------------------------------------------------------- */

CASE(statistics_of_devices_and_pools)
{
    json_t *root = parse(torch_statistics());
    CHECK_EQ(json_array_size(json_object_get(root, "devices")), 0);
    json_decref(root);

    CHECK_EQ(torch_set_fraction(0.5, 0), 0);
    void *a = torch_client_allocate(1000, NULL), *b = torch_client_allocate(3 * MIB, NULL);
    torch_client_free(b, NULL);
    torch_client_begin_graph(&c, POOL, c.streams[0]);
    void *d = torch_client_allocate(MIB, c.streams[0]);
    root = parse(torch_statistics());
    const json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    const json_t *memory = json_object_get(device, "memory");
    const json_t *pool = json_array_get(json_object_get(device, "pools"), 0);
    CHECK_EQ(number(device, "device"), 0);
    CHECK_EQ(number(device, "limit_bytes"), number(device, "total_bytes") / 2);
    CHECK_EQ(number(device, "reserved_bytes"), torch_client_bytes(&c));
    CHECK_EQ(number(memory, "requested_bytes") - number(memory, "waiting_bytes"), 1000);
    CHECK_EQ(number(memory, "peak_requested_bytes"), 3 * MIB + 1000);
    CHECK_EQ(number(memory, "allocations"), 1);
    CHECK_EQ(number(memory, "allocated_count"), 2);
    CHECK_EQ(number(pool, "requested_bytes"), MIB);
    CHECK_EQ(number(pool, "users"), 1);
    CHECK_EQ(number(pool, "begun"), 1);
    CHECK_EQ(json_integer_value(json_array_get(json_object_get(pool, "id"), 1)), 9);
    json_decref(root);
    torch_client_free(d, c.streams[0]);
    torch_client_end_graph(&c, POOL, c.streams[0]);
    CHECK_EQ(torch_release_pool(0, POOL), 0);
    torch_client_free(a, NULL);
}

static int64_t peak(void)
{
    json_t *root = parse(torch_statistics());
    const json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    int64_t bytes = number(json_object_get(device, "memory"), "peak_requested_bytes");
    json_decref(root);
    return bytes;
}

CASE(peaks_begin_again)
{
    CHECK_EQ(torch_reset_peaks(0), 0);
    CHECK_EQ(torch_reset_peaks(-1), QUIRE_ERROR_INVALID_ARGUMENT);
    torch_client_free(torch_client_allocate(8 * MIB, NULL), NULL);
    CHECK_EQ(torch_reset(), 0);
    CHECK_EQ(peak(), 8 * MIB);
    CHECK_EQ(torch_reset_peaks(0), 0);
    torch_client_free(torch_client_allocate(MIB, NULL), NULL);
    CHECK_EQ(peak(), MIB);
}

CASE(refusals_and_retries_are_counted)
{
    void *a = NULL;
    c.b.fc->set_capacity(0, (uint64_t)(64 * MIB));
    CHECK_EQ(torch_record_history(10), 0);
    CHECK_EQ(torch_allocate(100 * MIB, 0, NULL, &a), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    json_t *root = parse(torch_statistics());
    const json_t *device = json_array_get(json_object_get(root, "devices"), 0);
    CHECK_EQ(number(device, "refused_count"), 1);
    CHECK_EQ(number(device, "retried_count"), 1);
    json_decref(root);
    root = parse(torch_snapshot());
    const json_t *trace = json_array_get(json_object_get(root, "device_traces"), 0);
    const json_t *entry = json_array_get(trace, 0);
    CHECK_STR(json_string_value(json_object_get(entry, "action")), "oom");
    CHECK_EQ(number(entry, "size"), 100 * MIB);
    CHECK_EQ(number(entry, "device_free"), 64 * MIB);
    json_decref(root);
}

/* ---- snapshots ------------------------------------------------------------------------------ */

/* The blocks of a segment follow one another without a gap, as torch's viewer takes for granted.
   Returns the number of blocks in a state. */
static uint32_t check_segment(const json_t *segment, const char *state)
{
    const json_t *block;
    size_t i;
    int64_t end = number(segment, "address");
    uint32_t count = 0;
    json_array_foreach(json_object_get(segment, "blocks"), i, block)
    {
        CHECK_EQ(number(block, "address"), end);
        end += number(block, "size");
        CHECK(number(block, "requested_size") <= number(block, "size"));
        count += !strcmp(json_string_value(json_object_get(block, "state")), state);
    }
    CHECK_EQ(end, number(segment, "address") + number(segment, "total_size"));
    return count;
}

static uint32_t count_blocks(const json_t *root, const char *state)
{
    const json_t *segment;
    size_t i;
    uint32_t count = 0;
    json_array_foreach(json_object_get(root, "segments"), i, segment) count +=
        check_segment(segment, state);
    return count;
}

CASE(a_snapshot_has_every_byte_of_every_page)
{
    void *kept[20];
    for (int i = 0; i < 20; i++)
        kept[i] = torch_client_allocate(100000 * (i + 1), c.streams[0]);
    torch_client_begin_graph(&c, POOL, c.streams[1]);
    void *of_graph = torch_client_allocate(5 * MIB, c.streams[1]);
    for (int i = 0; i < 20; i += 2) {
        torch_client_work(&c, kept[i], 1, c.streams[0]);
        torch_client_free(kept[i], c.streams[0]);
    }
    json_t *root = parse(torch_snapshot());
    CHECK_EQ(count_blocks(root, "active_allocated"), 11);
    CHECK_EQ(count_blocks(root, "active_pending_free"), 10);
    CHECK(count_blocks(root, "inactive") > 0);
    json_decref(root);
    torch_client_free(of_graph, c.streams[1]);
    torch_client_end_graph(&c, POOL, c.streams[1]);
    CHECK_EQ(torch_release_pool(0, POOL), 0);
    for (int i = 1; i < 20; i += 2)
        torch_client_free(kept[i], c.streams[0]);
}

/* The user chooses an elastic memory. Its free chunks give their memory to a large tensor, and
   leave gaps between the segments. */
CASE(an_elastic_memory_has_a_segment_for_each_stretch)
{
    void *kept[12], *large = NULL;
    CHECK_EQ(setenv("QUIRE_OPTIONS", "elastic", 1), 0);
    for (int i = 0; i < 12; i++)
        kept[i] = torch_client_allocate(2 * MIB, NULL);
    for (int i = 1; i < 12; i += 2)
        torch_client_free(kept[i], NULL);
    large = torch_client_allocate(8 * MIB, NULL);
    json_t *root = parse(torch_snapshot());
    CHECK_EQ(count_blocks(root, "active_allocated"), 7);
    CHECK(json_array_size(json_object_get(root, "segments")) > 2);
    CHECK(json_is_true(
        json_object_get(json_array_get(json_object_get(root, "segments"), 0), "is_expandable")));
    json_decref(root);
    CHECK_EQ(torch_client_bytes(&c), 24 * MIB);
    torch_client_free(large, NULL);
    for (int i = 0; i < 12; i += 2)
        torch_client_free(kept[i], NULL);
    CHECK_EQ(unsetenv("QUIRE_OPTIONS"), 0);
}

/* Neither has memory: what sleeps is in no segment, and no part of the bytes that live. */
CASE(what_sleeps_is_counted_apart)
{
    uint64_t bytes = 0;
    CHECK_EQ(setenv("QUIRE_OPTIONS", "elastic", 1), 0);
    CHECK_EQ(torch_set_tag("a"), 0);
    void *a = torch_client_allocate(4 * MIB, NULL), *b = torch_client_allocate(2 * MIB, NULL);
    CHECK_EQ(torch_set_tag("b"), 0);
    void *awake = torch_client_allocate(2 * MIB, NULL);
    CHECK_EQ(torch_set_tag(NULL), 0);
    CHECK_EQ(torch_sleep(0, "a", true, &bytes), 0);
    json_t *root = parse(torch_snapshot());
    CHECK_EQ(count_blocks(root, "active_allocated"), 1);
    const json_t *segments = json_object_get(root, "segments");
    CHECK_EQ(json_array_size(segments), 1);
    CHECK_EQ(number(json_array_get(segments, 0), "address"), (uintptr_t)awake);
    CHECK_EQ(number(json_array_get(segments, 0), "total_size"), 2 * MIB);
    json_decref(root);
    root = parse(torch_statistics());
    const json_t *memory =
        json_object_get(json_array_get(json_object_get(root, "devices"), 0), "memory");
    CHECK_EQ(number(memory, "asleep_bytes"), 6 * MIB);
    CHECK_EQ(number(memory, "live_bytes"), 2 * MIB);
    CHECK_EQ(number(memory, "allocations"), 3);
    json_decref(root);
    torch_client_free(a, NULL);
    torch_client_free(b, NULL);
    torch_client_free(awake, NULL);
    CHECK_EQ(unsetenv("QUIRE_OPTIONS"), 0);
}

static const char *action_of(const json_t *trace, size_t i)
{
    return json_string_value(json_object_get(json_array_get(trace, i), "action"));
}

/* Without these entries the viewer would look for the page of a range that is gone. */
CASE(the_history_has_pages)
{
    CHECK_EQ(torch_record_history(10), 0);
    torch_client_begin_graph(&c, POOL, c.streams[0]);
    void *a = torch_client_allocate(5 * MIB, c.streams[0]);
    torch_client_free(a, c.streams[0]);
    torch_client_end_graph(&c, POOL, c.streams[0]);
    CHECK_EQ(torch_release_pool(0, POOL), 0);
    CHECK_EQ(torch_reset(), 0);
    json_t *root = parse(torch_snapshot());
    CHECK_EQ(json_array_size(json_object_get(root, "segments")), 0);
    const json_t *trace = json_array_get(json_object_get(root, "device_traces"), 0);
    CHECK_EQ(json_array_size(trace), 5);
    CHECK_STR(action_of(trace, 0), "segment_alloc");
    CHECK_STR(action_of(trace, 1), "alloc");
    CHECK_STR(action_of(trace, 4), "segment_free");
    for (size_t i = 0; i < 5; i += 4) {
        CHECK_EQ(number(json_array_get(trace, i), "addr"), (uintptr_t)a);
        CHECK(number(json_array_get(trace, i), "size") >= 5 * MIB);
        const json_t *id = json_object_get(json_array_get(trace, i), "pool_id");
        CHECK_EQ(json_integer_value(json_array_get(id, 0)), 7);
    }
    json_decref(root);
}

CASE(the_history_has_the_last_entries)
{
    void *a = torch_client_allocate(1000, c.streams[0]);
    CHECK_EQ(torch_record_history(3), 0);
    for (int i = 0; i < 3; i++)
        torch_client_free(torch_client_allocate(100, NULL), NULL);
    torch_client_free(a, c.streams[0]);
    json_t *root = parse(torch_snapshot());
    const json_t *trace = json_array_get(json_object_get(root, "device_traces"), 0);
    CHECK_EQ(json_array_size(trace), 5); /* an allocation, and two frees of two entries each */
    CHECK_STR(action_of(trace, 0), "alloc");
    CHECK_STR(action_of(trace, 1), "free_requested");
    CHECK_STR(action_of(trace, 2), "free_completed");
    CHECK_EQ(number(json_array_get(trace, 4), "addr"), (uintptr_t)a);
    CHECK_EQ(number(json_array_get(trace, 4), "size"), 1000);
    CHECK_EQ(number(json_array_get(trace, 4), "stream"), (uintptr_t)c.streams[0]);
    CHECK(number(json_array_get(trace, 4), "time_us") >=
          number(json_array_get(trace, 0), "time_us"));
    json_decref(root);
    CHECK_EQ(torch_record_history(0), 0);
    root = parse(torch_snapshot());
    trace = json_array_get(json_object_get(root, "device_traces"), 0);
    CHECK_EQ(json_array_size(trace), 0);
    json_decref(root);
    CHECK_EQ(torch_record_history(UINT64_MAX), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_HAS(torch_message(), "history");
}
