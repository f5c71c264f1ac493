/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * buffers.c - buffers of quire_buffer_options that move: with a new native object, which is bound
 * to the new place, or without objects; by a step, on a stream; what stays; failures.
 */
#include "tests/support/compacted.h"

enum { PAGE = 65536, PART = PAGE / 8, LEFT = 3 };

typedef struct scene {
    compacted b;
    quire_buffer made[LEFT]; /* alone on the second page */
    quire_native before[LEFT];
} scene;

static quire_buffer make(scene *s, const quire_buffer_options *options)
{
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(s->b.f.memory, options, &buffer));
    return buffer;
}

static quire_native native_of(scene *s, quire_buffer buffer)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(s->b.f.memory, buffer.allocation, &native));
    return native;
}

/* A full page, one of the buffers, and then room in the first one. */
static void put(scene *s, const quire_buffer_options *options)
{
    quire_allocation full[8];
    quire_buffer_options own = *options;
    own.size = PART - 100;
    for (int i = 0; i < 8; i++)
        full[i] = ALLOCATE(&s->b.f, .size = PART);
    for (uint64_t i = 0; i < LEFT; i++) {
        s->made[i] = make(s, &own);
        CHECK_OK(quire_write(s->b.f.memory, s->made[i].allocation, 0, &i, sizeof i));
        s->before[i] = native_of(s, s->made[i]);
    }
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_free(s->b.f.memory, full[i]));
    CHECK_EQ(fixture_stats(&s->b.f).page_count, 2);
}

static void leave_out_objects(fake_backend *fake)
{
    fake_leave_out(fake, QUIRE_BACKEND_OBJECTS);
    fake->table.object_create = NULL;
    fake->table.object_bind = NULL;
    fake->table.object_destroy = NULL;
}

static void begin(scene *s, bool has_objects, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    compacted_prepare(&s->b);
    if (!has_objects)
        leave_out_objects(&s->b.f.fake);
    all.pages.page_size = PAGE;
    compacted_open(&s->b, &all);
}

static void end(scene *s)
{
    compacted_end(&s->b);
}

#define CASE_OF(name, has_objects, ...)                                                            \
    UNIT_ON(buffers, name, scene, s, begin(s, has_objects, &(quire_memory_options){__VA_ARGS__}),  \
            end)
#define CASE(case_name) CASE_OF(case_name, true, .name = "m")

static void expect_contents(scene *s)
{
    for (uint64_t i = 0; i < LEFT; i++) {
        uint64_t found = 99;
        CHECK_OK(quire_read(s->b.f.memory, s->made[i].allocation, 0, &found, sizeof found));
        CHECK_EQ(found, i);
    }
}

/* Each has a new place, and a new object if it had one. */
static void expect_moved(scene *s)
{
    for (int i = 0; i < LEFT; i++) {
        const quire_native now = native_of(s, s->made[i]);
        quire_buffer_info info;
        CHECK(now.page.handle != s->before[i].page.handle);
        CHECK((now.handle != s->before[i].handle) == (s->before[i].handle != 0));
        CHECK_OK(quire_buffer_get_info(s->b.f.memory, s->made[i], &info));
        CHECK_EQ(info.size, PART - 100);
        CHECK_EQ(info.usage, QUIRE_USAGE_STORAGE);
    }
    expect_contents(s);
}

static quire_compact_stats step(scene *s)
{
    quire_compact_stats done;
    CHECK_OK(quire_compact_step(s->b.c, NULL, &done));
    CHECK_OK(quire_memory_check(s->b.f.memory));
    return done;
}

static const quire_buffer_options movable = {.usage = QUIRE_USAGE_STORAGE, .movable = true};
static const quire_buffer_options fixed = {.usage = QUIRE_USAGE_STORAGE};

/* ---- what moves --------------------------------------------------------------------------- */

CASE(a_buffer_gets_a_new_object_at_its_new_place)
{
    put(s, &movable);
    const uint64_t objects = s->b.f.fake.objects;
    const quire_compact_stats done = step(s);
    CHECK_EQ(done.moves, LEFT);
    CHECK_EQ(done.pages_freed, 1);
    CHECK_EQ(s->b.f.fake.objects, objects);
    expect_moved(s);
}

CASE_OF(without_objects_the_contents_move, false, .name = "m")
{
    put(s, &movable);
    CHECK_EQ(step(s).moves, LEFT);
    CHECK_EQ(s->b.f.fake.objects, 0);
    expect_moved(s);
}

CASE_OF(a_memory_makes_all_of_them_movable, true, .movable = true)
{
    put(s, &fixed);
    CHECK_EQ(step(s).moves, LEFT);
    expect_moved(s);
}

CASE_OF(names_and_user_data_stay_and_addresses_are_found, true, .find_by_address = true)
{
    char name[8];
    quire_allocation found;
    put(s, &(quire_buffer_options){
               .usage = QUIRE_USAGE_STORAGE, .movable = true, .name = "n", .user_data = 7});
    CHECK_EQ(step(s).moves, LEFT);
    expect_moved(s);
    for (int i = 0; i < LEFT; i++) {
        const quire_allocation_info info = fixture_info(&s->b.f, s->made[i].allocation);
        CHECK_EQ(info.user_data, 7);
        CHECK_OK(
            quire_allocation_get_name(s->b.f.memory, s->made[i].allocation, name, sizeof name));
        CHECK_STR(name, "n");
        CHECK_OK(quire_memory_find(s->b.f.memory, info.address + 3, &found));
        CHECK_EQ(found.id, s->made[i].allocation.id);
    }
}

CASE(alignments_hold)
{
    quire_buffer_options aligned = movable;
    aligned.alignment = 4096;
    put(s, &aligned);
    CHECK_EQ(step(s).moves, LEFT);
    for (int i = 0; i < LEFT; i++) {
        const quire_allocation_info info = fixture_info(&s->b.f, s->made[i].allocation);
        CHECK_EQ((info.address ? info.address : info.offset) % 4096, 0);
    }
    expect_moved(s);
}

/* The fifth part of the first page is free at an odd offset only. */
CASE(a_free_range_with_another_alignment_is_no_place)
{
    quire_buffer_options aligned = movable;
    quire_allocation gap[8];
    aligned.alignment = PAGE / 2;
    aligned.size = PART;
    for (int i = 0; i < 8; i++)
        gap[i] = ALLOCATE(&s->b.f, .size = PART);
    make(s, &aligned);
    CHECK_OK(quire_free(s->b.f.memory, gap[3]));
    CHECK_EQ(step(s).moves, 0);
    CHECK_OK(quire_free(s->b.f.memory, gap[4]));
    CHECK_EQ(step(s).moves, 1);
}

/* ---- what stays --------------------------------------------------------------------------- */

CASE(others_stay)
{
    put(s, &fixed);
    CHECK_EQ(step(s).moves, 0);
    for (int i = 0; i < LEFT; i++)
        CHECK_OK(quire_free(s->b.f.memory, s->made[i].allocation));
    quire_buffer_options on_stream = movable;
    on_stream.stream = s->b.stream;
    on_stream.size = PART;
    make(s, &on_stream);
    IMAGE(&s->b.f, .width = 16);
    CHECK_EQ(step(s).moves, 0);
}

/* Their object is quire's: the caller cannot bind it to a target. */
CASE(buffers_are_not_offered)
{
    quire_compact_move moves[LEFT];
    uint64_t count = 99;
    bool is_complete = false;
    put(s, &movable);
    CHECK_OK(quire_compact_offer(s->b.c, NULL, moves, LEFT, &count, &is_complete));
    CHECK_EQ(count, 0);
    CHECK(is_complete);
    CHECK_EQ(step(s).moves, LEFT);
}

/* ---- on a stream -------------------------------------------------------------------------- */

CASE(the_old_object_lives_until_the_copy_is_done)
{
    quire_compact_stats done;
    put(s, &movable);
    const uint64_t objects = s->b.f.fake.objects;
    CHECK_OK(quire_compact_step_on_stream(s->b.c, NULL, s->b.stream, &done));
    CHECK_EQ(done.moves, LEFT);
    CHECK_EQ(s->b.f.fake.objects, objects + LEFT);
    compacted_run_stream(&s->b);
    CHECK_EQ(s->b.f.fake.objects, objects);
    expect_moved(s);
    CHECK_OK(quire_compact_step_on_stream(s->b.c, NULL, s->b.stream, &done));
    CHECK_EQ(done.pages_freed, 1);
}

/* ---- failures ----------------------------------------------------------------------------- */

static void expect_whole(scene *s, uint64_t objects)
{
    compacted_run_stream(&s->b);
    CHECK_OK(quire_memory_check(s->b.f.memory));
    CHECK_EQ(s->b.f.fake.objects, objects);
    expect_contents(s);
}

/* Each call of the backend fails in turn; the last time none does. */
static void fail_each(scene *s, quire_stream *stream)
{
    quire_result result = QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    uint64_t failures = 0;
    put(s, &movable);
    const uint64_t objects = s->b.f.fake.objects;
    while (result) {
        fake_fail(&s->b.f.fake, ++failures, false, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        const quire_compact_limits one = {.moves = 1};
        result = stream ? quire_compact_step_on_stream(s->b.c, &one, stream, NULL)
                        : quire_compact_step(s->b.c, &one, NULL);
        fake_fail(&s->b.f.fake, 0, false, QUIRE_SUCCESS);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        expect_whole(s, objects);
        quire_compact_end(&s->b.c); /* what was declined moves in the next one */
        CHECK_OK(quire_compact_begin(s->b.f.memory, &s->b.c));
    }
    CHECK(failures > 3); /* to create, to bind, to copy */
    CHECK_EQ(step(s).pages_freed, 1);
    expect_moved(s);
}

/* A driver whose requirements for equal options differ. */
CASE(an_object_that_needs_more_than_before_is_refused)
{
    put(s, &movable);
    const uint64_t objects = s->b.f.fake.objects;
    s->b.f.fake.object_needs.size = PAGE / 2;
    CHECK_FAILS(quire_compact_step(s->b.c, NULL, NULL), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "needs more than its former one");
    expect_whole(s, objects);
    s->b.f.fake.object_needs.size = 0;
    CHECK_EQ(step(s).moves, LEFT);
    expect_moved(s);
}

CASE(a_failure_of_the_backend_leaves_each_where_its_info_says)
{
    fail_each(s, NULL);
}

CASE(so_does_one_on_a_stream)
{
    fail_each(s, s->b.stream);
}
