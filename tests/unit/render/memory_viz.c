/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_viz.c - the snapshot of a memory and of a device, read back: the blocks of a segment leave
 * no byte out, and their sums are those of the statistics.
 */
#include "quire/export.h"

#include "src/render/memory_viz.h"
#include "tests/support/deferred_free.h"
#include "tests/support/lazy.h"
#include "tests/support/unpickle.h"

static uint64_t number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value))
        check_failed(__FILE__, __LINE__, "'%s' is no integer", key);
    return (uint64_t)json_integer_value(value);
}

static const char *text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static json_t *item_at(const json_t *object, const char *key, size_t index)
{
    return json_array_get(json_object_get(object, key), index);
}

/* Sums over the segments of a snapshot. */
typedef struct sums {
    uint64_t total, allocated, active, requested, segments, live, waiting;
} sums;

static void add_block(const json_t *block, uint64_t at, sums *s)
{
    const char *state = text(block, "state");
    CHECK_EQ(number(block, "address"), at);
    CHECK(number(block, "requested_size") <= number(block, "size"));
    CHECK(json_is_array(json_object_get(block, "frames")));
    if (!strcmp(state, "inactive"))
        return;
    s->active += number(block, "size");
    if (!strcmp(state, "active_pending_free")) {
        s->waiting++;
        return;
    }
    CHECK_STR(state, "active_allocated");
    s->live++;
    s->allocated += number(block, "size");
    s->requested += number(block, "requested_size");
}

static void add_segment(const json_t *segment, sums *all)
{
    const uint64_t begin = number(segment, "address");
    uint64_t at = begin;
    sums s = {0};
    size_t i;
    const json_t *block;
    json_array_foreach(json_object_get(segment, "blocks"), i, block)
    {
        add_block(block, at, &s);
        at += number(block, "size");
    }
    CHECK_EQ(at - begin, number(segment, "total_size"));
    CHECK_EQ(s.allocated, number(segment, "allocated_size"));
    CHECK_EQ(s.active, number(segment, "active_size"));
    CHECK_EQ(s.requested, number(segment, "requested_size"));
    CHECK_EQ(number(segment, "device"), 0);
    CHECK_EQ(number(segment, "stream"), 0);
    CHECK_STR(text(segment, "segment_type"), "large");
    all->total += at - begin;
    all->allocated += s.allocated;
    all->active += s.active;
    all->requested += s.requested;
    all->live += s.live;
    all->waiting += s.waiting;
    all->segments++;
}

/* No two segments share a byte. */
static void expect_apart(const json_t *segments)
{
    size_t i, j;
    const json_t *a, *b;
    json_array_foreach(segments, i, a) json_array_foreach(segments, j, b)
    {
        if (i < j)
            CHECK(number(a, "address") + number(a, "total_size") <= number(b, "address") ||
                  number(b, "address") + number(b, "total_size") <= number(a, "address"));
    }
}

static sums sum_up(const json_t *root)
{
    sums s = {0};
    size_t i;
    const json_t *segment;
    json_array_foreach(json_object_get(root, "segments"), i, segment) add_segment(segment, &s);
    expect_apart(json_object_get(root, "segments"));
    CHECK_EQ(json_array_size(json_object_get(root, "device_traces")), 1);
    CHECK_EQ(json_array_size(item_at(root, "device_traces", 0)), 0);
    return s;
}

static json_t *snapshot(quire_memory *memory)
{
    gather_anew(0);
    CHECK_OK(quire_memory_write_memory_viz(memory, gather, NULL));
    return unpickle();
}

UNIT(memory_viz, the_blocks_add_up_to_the_statistics)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST,
                                             .pages = {.page_size = 4096}});
    quire_allocation live[60];
    for (uint64_t i = 0; i < 60; i++)
        live[i] =
            fixture_allocate(&f, &(quire_allocation_options){.size = 1 + i * 41,
                                                             .alignment = UINT64_C(1) << i % 9,
                                                             .dedicated = i % 9 == 0});
    for (int i = 0; i < 60; i += 4)
        CHECK_OK(quire_free(f.memory, live[i]));
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(f.memory, &stats));
    json_t *root = snapshot(f.memory);
    sums s = sum_up(root);
    CHECK_EQ(s.total, stats.reserved_bytes);
    CHECK_EQ(s.requested, stats.requested_bytes);
    CHECK_EQ(s.live, stats.allocation_count);
    CHECK_EQ(s.segments, stats.page_count);
    CHECK(s.active <= stats.live_bytes && s.active >= stats.requested_bytes);
    json_decref(root);
    fixture_end(&f);
}

UNIT(memory_viz, a_block_has_the_address_and_the_name_of_its_allocation)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.name = "frames",
                                             .fit.algorithm = QUIRE_FIT_FIRST,
                                             .pages = {.page_size = 4096}});
    ALLOCATE(&f, .size = 10, .name = "first");
    ALLOCATE(&f, .size = 100, .alignment = 256);
    json_t *root = snapshot(f.memory);
    const json_t *segment = item_at(root, "segments", 0);
    quire_page_info page;
    CHECK_OK(quire_page_get_info(f.memory, 0, &page));
    CHECK_EQ(number(segment, "address"), page.address ? page.address : UINT64_C(1) << 52);
    CHECK(json_is_false(json_object_get(segment, "is_expandable")));
    const json_t *first = item_at(segment, "blocks", 0);
    CHECK_EQ(number(first, "requested_size"), 10);
    const json_t *frame = item_at(first, "frames", 0);
    CHECK_STR(text(frame, "name"), "first");
    CHECK_STR(text(frame, "filename"), "frames");
    CHECK_EQ(number(frame, "line"), 0);
    CHECK_STR(text(item_at(segment, "blocks", 1), "state"), "inactive"); /* the left padding */
    const json_t *second = item_at(segment, "blocks", 2);
    CHECK_EQ(number(second, "address"), number(segment, "address") + 256);
    CHECK_EQ(number(second, "requested_size"), 100);
    CHECK_EQ(json_array_size(json_object_get(second, "frames")), 0);
    json_decref(root);
    fixture_end(&f);
}

UNIT(memory_viz, native_addresses_are_kept_and_others_are_chosen)
{
    fixture f;
    fixture_prepare(&f);
    f.fake.address_step = -f.fake.next_address; /* the first page has no address, the others do */
    fixture_open(&f, &(quire_memory_options){.pages = {.page_size = 4096}});
    for (int i = 0; i < 3; i++)
        ALLOCATE(&f, .size = 4096);
    json_t *root = snapshot(f.memory);
    CHECK_EQ(sum_up(root).segments, 3);
    for (uint32_t i = 0; i < 3; i++) {
        quire_page_info page;
        CHECK_OK(quire_page_get_info(f.memory, i, &page));
        CHECK_EQ(page.address == 0, i == 0);
        CHECK_EQ(number(item_at(root, "segments", i), "address"),
                 page.address ? page.address : UINT64_C(1) << 52);
    }
    json_decref(root);
    fixture_end(&f);
}

UNIT(memory_viz, chosen_addresses_do_not_overlap)
{
    const uint64_t sizes[] = {1, UINT64_C(2) << 20, UINT64_C(3) << 20, UINT64_C(1) << 40, 7};
    uint64_t chosen = 0, end = UINT64_C(1) << 52;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const uint64_t address = qi_viz_choose(&chosen, sizes[i]);
        CHECK(address >= end);
        end = address + sizes[i];
    }
    CHECK(end < UINT64_C(1) << 53);
}

UNIT(memory_viz, a_freed_allocation_waits_for_its_point)
{
    bench w;
    begin_with(&w, &(quire_memory_options){.pages = {.page_size = PAGE}});
    quire_allocation gone = ALLOCATE(&w.f, .size = 1000), live = ALLOCATE(&w.f, .size = 500);
    CHECK_OK(quire_free_on_stream(w.f.memory, gone, w.a));
    json_t *root = snapshot(w.f.memory);
    sums s = sum_up(root);
    CHECK_EQ(s.waiting, 1);
    CHECK_EQ(s.live, 1);
    CHECK_EQ(s.requested, 500);
    CHECK(s.active >= s.allocated + 1000);
    json_decref(root);
    CHECK_OK(quire_free(w.f.memory, live));
    end(&w);
}

UNIT(memory_viz, each_stretch_of_an_elastic_page_is_a_segment)
{
    enum { CHUNK = 16 * KIB };
    fixture f;
    quire_allocation made[5];
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, &(quire_memory_options){.name = "one",
                                             .elastic = true,
                                             .address_space = 64 * CHUNK,
                                             .pages = {.page_size = CHUNK}});
    for (int i = 0; i < 5; i++)
        made[i] = ALLOCATE(&f, .size = CHUNK);
    CHECK_OK(quire_free(f.memory, made[1]));
    CHECK_OK(quire_free(f.memory, made[2]));
    CHECK_OK(quire_memory_trim(f.memory, 0, NULL));
    json_t *root = snapshot(f.memory);
    sums s = sum_up(root);
    CHECK_EQ(s.segments, 2);
    CHECK_EQ(s.total, 3 * CHUNK);
    CHECK_EQ(s.live, 3);
    const json_t *first = item_at(root, "segments", 0), *second = item_at(root, "segments", 1);
    CHECK(json_is_true(json_object_get(first, "is_expandable")));
    CHECK_EQ(number(first, "total_size"), CHUNK);
    CHECK_EQ(number(second, "address"), number(first, "address") + 3 * CHUNK);
    json_decref(root);
    fixture_end(&f);
}

UNIT(memory_viz, a_lazy_allocation_has_the_bytes_with_memory)
{
    fixture f;
    lazy_begin(&f);
    json_t *root = snapshot(f.memory);
    sums s = sum_up(root);
    CHECK_EQ(s.live, 2); /* not the one without memory */
    CHECK_EQ(s.allocated, LAZY_HELD);
    CHECK_EQ(s.requested, 3 * LAZY_CHUNK + 100);
    CHECK_EQ(s.total, fixture_stats(&f).reserved_bytes);
    json_decref(root);
    fixture_end(&f);
}

UNIT(memory_viz, the_memories_of_a_device_are_pools)
{
    fixture f;
    fixture_make(&f, &(quire_memory_options){.name = "first", .pages = {.page_size = 4096}});
    quire_memory *second = NULL;
    CHECK_OK(quire_memory_create(f.device, &(quire_memory_options){.name = "second"}, &second));
    quire_allocation in_second;
    CHECK_OK(quire_allocate(second, &(quire_allocation_options){.size = 77}, &in_second));
    ALLOCATE(&f, .size = 16);
    gather_anew(0);
    CHECK_OK(quire_device_write_memory_viz(f.device, gather, NULL));
    json_t *root = unpickle();
    CHECK_EQ(sum_up(root).segments, 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *pool = json_object_get(item_at(root, "segments", i), "segment_pool_id");
        CHECK_EQ(json_integer_value(json_array_get(pool, 0)), 0);
        CHECK_EQ(json_integer_value(json_array_get(pool, 1)), i);
    }
    json_decref(root);
    CHECK_OK(quire_free(second, in_second));
    CHECK_OK(quire_memory_destroy(&second));
    fixture_end(&f);
}

UNIT(memory_viz, an_empty_memory_has_no_segment)
{
    fixture f;
    fixture_make(&f, NULL);
    json_t *root = snapshot(f.memory);
    CHECK_EQ(sum_up(root).segments, 0);
    json_decref(root);
    fixture_end(&f);
}
