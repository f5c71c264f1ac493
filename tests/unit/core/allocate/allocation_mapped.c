/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation_mapped.c - allocations that are mapped while they live: their pointer, their free
 * without an unmap, in every way to allocate and to free, in memories whose pages are always mapped
 * and in those that map on demand.
 */
#include "tests/support/on_demand.h"
#include "tests/support/on_stream.h"
#include "tests/support/streams.h"

enum { SIZE = 100, ROUNDS = 2 };

/* Without and with map_on_demand. */
static void begin(fixture *f, int round, quire_memory_options options)
{
    options.kind.mask = options.kind.mask ? options.kind.mask : 1u << CACHED;
    options.map_on_demand = round == 1;
    options.pages.page_size = PAGE_SIZE;
    fixture_make(f, &options);
}

#define BEGIN(f, round, ...) begin((f), (round), (quire_memory_options){__VA_ARGS__})

/* A test of a memory with these options, in each round. */
#define CASE(name, ...)                                                                            \
    static void name##_in(fixture *f, int round);                                                  \
    UNIT(allocation_mapped, name)                                                                  \
    {                                                                                              \
        for (int round = 0; round < ROUNDS; round++) {                                             \
            fixture f;                                                                             \
            BEGIN(&f, round, __VA_ARGS__);                                                         \
            name##_in(&f, round);                                                                  \
            fixture_end(&f);                                                                       \
        }                                                                                          \
    }                                                                                              \
    static void name##_in(fixture *f, int round)

/* The number of mapped pages where `pages` exist and `used` are used by the host. */
static void expect_mapped(fixture *f, int round, uint64_t pages, uint64_t used)
{
    CHECK_EQ(f->fake.pages, pages);
    CHECK_EQ(f->fake.maps, round ? used : pages);
}

/* The pointer is that of quire_map, and the bytes are those of quire_read. */
static void check_pointer(fixture *f, quire_allocation a)
{
    static unsigned char key;
    unsigned char bytes[SIZE];
    quire_allocation_info info = fixture_info(f, a);
    CHECK(info.host != NULL);
    CHECK_EQ(info.map_count, 0);
    CHECK((void *)map(f, a) == info.host);
    CHECK_EQ(fixture_info(f, a).map_count, 1);
    unmap(f, a);
    CHECK_EQ(fixture_info(f, a).map_count, 0);
    memset(info.host, ++key, SIZE);
    CHECK_OK(quire_read(f->memory, a, 0, bytes, SIZE));
    CHECK(bytes[0] == key && !memcmp(bytes, bytes + 1, SIZE - 1));
}

/* ---- one allocation ----------------------------------------------------------------------- */

CASE(a_free_needs_no_unmap, 0)
{
    quire_allocation plain = ALLOCATE(f, .size = SIZE);
    CHECK(fixture_info(f, plain).host == NULL);
    expect_mapped(f, round, 1, 0);
    quire_allocation a = ALLOCATE(f, .size = SIZE, .mapped = true);
    expect_mapped(f, round, 1, 1);
    check_pointer(f, a);
    CHECK_OK(quire_free(f->memory, a));
    expect_mapped(f, round, 1, 0);
}

CASE(maps_of_the_caller_count_on_top, 0)
{
    quire_allocation a = ALLOCATE(f, .size = SIZE, .mapped = true);
    CHECK_FAILS(quire_unmap(f->memory, a), QUIRE_ERROR_NOT_MAPPED);
    map(f, a);
    CHECK_FAILS(quire_free(f->memory, a), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "mapped 1 time");
    check_pointer(f, (unmap(f, a), a)); /* still mapped */
    CHECK_FAILS(quire_unmap(f->memory, a), QUIRE_ERROR_NOT_MAPPED);
    CHECK_OK(quire_free(f->memory, a));
    expect_mapped(f, round, 1, 0);
}

UNIT(allocation_mapped, every_way_to_allocate_writes_the_pointer)
{
    static const quire_allocation_options ways[] = {
        {.size = SIZE, .mapped = true},
        {.size = SIZE, .mapped = true, .alignment = 4096, .name = "named", .user_data = 7},
        {.size = SIZE, .mapped = true, .zero = true},
        {.size = SIZE, .mapped = true, .dedicated = true},
        {.size = SIZE, .mapped = true, .host_read = true, .host_write = true},
    };
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            fixture f;
            BEGIN(&f, round, 0);
            quire_allocation_info info;
            quire_allocation_options options = ways[i];
            quire_allocation a;
            uint32_t chosen = 9;
            options.info = &info;
            CHECK_OK(quire_allocate(f.memory, &options, &a));
            CHECK(info.host && info.host == fixture_info(&f, a).host);
            check_pointer(&f, a);
            CHECK_OK(quire_free(f.memory, a));
            CHECK_OK(quire_allocate_fallback(&f.memory, 1, &options, &chosen, &a));
            CHECK(info.host && info.host == fixture_info(&f, a).host);
            CHECK_OK(quire_free(f.memory, a));
            CHECK_EQ(f.fake.maps, round ? 0 : f.fake.pages);
            fixture_end(&f);
        }
}

UNIT_MEMORY(allocation_mapped, memory_that_cannot_be_mapped_is_refused, f,
            .kind.mask = 1u << DEVICE)
{
    quire_buffer buffer;
    quire_image image;
    quire_allocation a;
    uint32_t chosen = 0;
    quire_memory *both[2];
    const quire_allocation_options options = {.size = SIZE, .mapped = true};
    CHECK_FAILS(quire_allocate(f->memory, &options, &a), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(quire_reserve(f->memory, &options, &a), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(quire_allocate_batch(f->memory, &options, &a, 1), QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(quire_buffer_create(f->memory,
                                    &(quire_buffer_options){.size = SIZE, .mapped = true}, &buffer),
                QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_FAILS(
        quire_image_create(f->memory, &(quire_image_options){.width = 4, .mapped = true}, &image),
        QUIRE_ERROR_NOT_HOST_VISIBLE);
    CHECK_EQ(f->fake.pages, 0);
    /* the next memory of a list can */
    both[0] = f->memory;
    CHECK_OK(quire_memory_create(f->device, &(quire_memory_options){.kind.mask = 1u << COHERENT},
                                 &both[1]));
    CHECK_OK(quire_allocate_fallback(both, 2, &options, &chosen, &a));
    CHECK_EQ(chosen, 1);
    quire_memory_destroy_all(&both[1]);
}

/* ---- reserved, batches, objects ----------------------------------------------------------- */

CASE(a_reserved_allocation_has_its_pointer, 0)
{
    quire_allocation_info info;
    quire_allocation a;
    const quire_allocation_options options = {.size = SIZE, .mapped = true, .info = &info};
    CHECK_OK(quire_reserve(f->memory, &options, &a));
    CHECK(info.host && fixture_info(f, a).host == info.host);
    memset(info.host, 1, SIZE);
    expect_mapped(f, round, 1, 1);
    CHECK_OK(quire_abort(f->memory, a));
    expect_mapped(f, round, 1, 0);
    CHECK_OK(quire_reserve(f->memory, &options, &a));
    CHECK_OK(quire_commit(f->memory, a));
    check_pointer(f, a);
    CHECK_OK(quire_free(f->memory, a));
    expect_mapped(f, round, 1, 0);
}

UNIT(allocation_mapped, a_batch_is_mapped_and_freed_in_one_call)
{
    enum { COUNT = 150 }; /* more than two groups */
    static quire_allocation many[COUNT];
    static quire_allocation_info infos[COUNT];
    static const uint32_t kinds[] = {COHERENT,
                                     CACHED}; /* the groups of only one are placed at once */
    for (int i = 0; i < 2 * ROUNDS; i++) {
        fixture f;
        BEGIN(&f, i / 2, .kind.mask = 1u << kinds[i % 2]);
        const quire_allocation_options options = {.size = SIZE, .mapped = true, .info = infos};
        CHECK_OK(quire_free(f.memory, ALLOCATE(&f, .size = SIZE)));
        CHECK_OK(quire_allocate_batch(f.memory, &options, many, COUNT));
        for (int n = 0; n < COUNT; n++) {
            CHECK(infos[n].host && infos[n].host == fixture_info(&f, many[n]).host);
            memset(infos[n].host, n, SIZE);
        }
        for (int n = 0; n < COUNT; n++)
            CHECK_EQ(((unsigned char *)infos[n].host)[SIZE - 1], n);
        expect_mapped(&f, i / 2, 1, 1);
        map(&f, many[7]);
        CHECK_FAILS(quire_free_batch(f.memory, many, COUNT), QUIRE_ERROR_BUSY);
        check_pointer(&f, (unmap(&f, many[7]), many[7]));
        check_pointer(&f, many[0]);
        CHECK_OK(quire_free_batch(f.memory, many, COUNT));
        expect_mapped(&f, i / 2, 1, 0);
        fixture_end(&f);
    }
}

CASE(objects_are_mapped_and_freed, 0)
{
    const uint64_t size = SIZE;
    quire_allocation_info info;
    quire_buffer buffer;
    quire_image image;
    quire_allocation own;
    CHECK_OK(quire_buffer_create(
        f->memory,
        &(quire_buffer_options){.size = SIZE, .mapped = true, .zero = true, .info = &info},
        &buffer));
    CHECK(info.host && *(char *)info.host == 0);
    check_pointer(f, buffer.allocation);
    CHECK_OK(quire_image_create(
        f->memory,
        &(quire_image_options){
            .width = SIZE, .tiling = QUIRE_TILING_LINEAR, .mapped = true, .info = &info},
        &image));
    check_pointer(f, image.allocation);
    CHECK_OK(quire_object_create(f->memory,
                                 &(quire_object_options){.object = QUIRE_OBJECT_BUFFER,
                                                         .description = &size,
                                                         .mapped = true},
                                 &own));
    check_pointer(f, own);
    CHECK_OK(quire_free(f->memory, buffer.allocation));
    CHECK_OK(quire_free(f->memory, image.allocation));
    expect_mapped(f, round, 1, 1);
    CHECK_OK(quire_free(f->memory, own));
    expect_mapped(f, round, 1, 0);
}

/* ---- frees of other sorts ----------------------------------------------------------------- */

CASE(frees_from_another_shard_and_by_address, .shards = 2, .find_by_address = true)
{
    quire_allocation a = ALLOCATE_ELSEWHERE(f, .size = SIZE, .mapped = true);
    check_pointer(f, a);
    CHECK_OK(quire_free(f->memory, a));
    expect_mapped(f, round, 1, 0);
    a = ALLOCATE(f, .size = SIZE, .mapped = true, .zero = true);
    check_pointer(f, a);
    CHECK_OK(quire_free_at_address(f->memory, fixture_info(f, a).address, NULL));
    expect_mapped(f, round, 1, 0);
}

CASE(the_memory_is_destroyed_with_mapped_allocations, 0)
{
    ALLOCATE(f, .size = SIZE, .mapped = true);
    map(f, ALLOCATE(f, .size = SIZE, .mapped = true, .dedicated = true));
    expect_mapped(f, round, 2, 2);
}

/* ---- streams ------------------------------------------------------------------------------ */

typedef struct stage {
    fixture f;
    quire_stream *a, *b;
} stage;

static void begin_stage(stage *s, int round)
{
    const quire_memory_options options = {
        .kind.mask = 1u << CACHED, .map_on_demand = round == 1, .pages = {.page_size = PAGE_SIZE}};
    fixture_prepare(&s->f);
    streams_offer(&s->f.fake.table);
    fixture_open(&s->f, &options);
    CHECK_OK(quire_stream_create(s->f.device, NULL, &s->a));
    CHECK_OK(quire_stream_create(s->f.device, NULL, &s->b));
}

static void end_stage(stage *s)
{
    streams_state()->await_passes = true;
    CHECK_OK(quire_memory_check(s->f.memory));
    quire_memory_destroy_all(&s->f.memory);
    CHECK_OK(quire_stream_destroy(&s->a));
    CHECK_OK(quire_stream_destroy(&s->b));
    CHECK_OK(quire_device_destroy(&s->f.device));
    CHECK_EQ(s->f.fake.maps, 0);
}

UNIT(allocation_mapped, a_range_reused_on_a_stream_is_mapped_for_its_new_owner)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int was_mapped = 0; was_mapped < 2; was_mapped++) {
            stage s;
            begin_stage(&s, round);
            quire_allocation_info info;
            quire_allocation a = ALLOCATE(&s.f, .size = SIZE, .mapped = was_mapped,
                                          .name = was_mapped ? "named" : NULL);
            uint64_t offset = fixture_info(&s.f, a).offset;
            CHECK_OK(quire_free_on_stream(s.f.memory, a, s.a));
            expect_mapped(&s.f, round, 1, 0);
            CHECK_EQ(fixture_stats(&s.f).allocation_count, 1); /* its point has not passed */
            a = ALLOCATE(&s.f, .size = SIZE, .mapped = true, .stream = s.a, .info = &info);
            CHECK_EQ(info.offset, offset);
            check_pointer(&s.f, a);
            expect_mapped(&s.f, round, 1, 1);
            CHECK_OK(quire_free_on_stream(s.f.memory, a, s.a));
            expect_mapped(&s.f, round, 1, 0);
            a = ALLOCATE(&s.f, .size = SIZE, .stream = s.a, .info = &info);
            CHECK_EQ(info.offset, offset);
            CHECK(info.host == NULL && fixture_info(&s.f, a).host == NULL);
            expect_mapped(&s.f, round, 1, 0);
            end_stage(&s);
        }
}

UNIT_ON(allocation_mapped, a_reuse_that_cannot_be_mapped_is_undone, stage, s, begin_stage(s, 1),
        end_stage)
{
    quire_allocation a = ALLOCATE(&s->f, .size = SIZE, .mapped = true);
    const quire_allocation_options options = {.size = SIZE, .mapped = true, .stream = s->a};
    CHECK_OK(quire_free_on_stream(s->f.memory, a, s->a));
    quire_memory_stats before = fixture_stats(&s->f);
    fake_fail(&s->f.fake, 1, true, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_FAILS(quire_allocate(s->f.memory, &options, &a), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(s->f.fake.maps, 0);
    CHECK_EQ(fixture_stats(&s->f).live_bytes, before.live_bytes);
    CHECK_OK(quire_memory_check(s->f.memory));
    fake_fail(&s->f.fake, 0, false, QUIRE_SUCCESS);
    CHECK_OK(quire_allocate(s->f.memory, &options, &a)); /* the same range */
    CHECK_EQ(fixture_stats(&s->f).live_bytes, before.live_bytes);
    CHECK_EQ(s->f.fake.maps, 1);
}

UNIT_ON(allocation_mapped, a_free_that_finds_no_host_memory_keeps_the_map, stage, s,
        begin_stage(s, 1), end_stage)
{
    quire_allocation a = ALLOCATE(&s->f, .size = SIZE, .mapped = true);
    test_memory_fail(unit_memory_state(), 1, true);
    quire_result result = quire_free_on_stream(s->f.memory, a, s->a);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_EQ(result, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_EQ(s->f.fake.maps, 1);
    check_pointer(&s->f, a);
    CHECK_OK(quire_free_on_stream(s->f.memory, a, s->a));
    CHECK_EQ(s->f.fake.maps, 0);
}
