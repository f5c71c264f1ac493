/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * batch.c - batches of allocations and frees: all or none, adjacent if possible, and afterwards as
 * if allocated and freed one by one. Spaces and memories.
 */
#include "tests/support/fixture.h"

enum { KIB = 1024, MANY = 200, FITS = 4 };

/* ---- spaces ------------------------------------------------------------------------------- */

static quire_space *make_space(quire_fit fit, uint64_t size, bool slabs)
{
    quire_space *space = NULL;
    quire_space_options options = {
        .fit = {.algorithm = fit, .slabs = slabs}, .size = size, .host_memory = unit_memory()};
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

/* All are live and disjoint and have their own user values. */
static void check_ranges(const quire_space *space, const quire_placement *made, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        quire_placement at;
        CHECK_OK(quire_space_get(space, made[i].range, &at));
        CHECK_EQ(at.user, 1000 + i);
        CHECK_EQ(at.offset, made[i].offset);
        CHECK_EQ(at.size, made[i].size);
        for (uint64_t k = 0; k < i; k++)
            CHECK(made[k].offset + made[k].size <= at.offset ||
                  at.offset + at.size <= made[k].offset);
    }
    CHECK_OK(quire_space_check(space));
}

static void begin_placements(quire_placement *made, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        made[i] = (quire_placement){.user = 1000 + i, .offset = 77, .size = 77};
}

UNIT(batch, up_to_64_ranges_are_adjacent)
{
    quire_space *space = make_space(QUIRE_FIT_SEGREGATED, 1 << 20, false);
    static quire_placement made[64];
    begin_placements(made, 64);
    CHECK_OK(quire_space_allocate_batch(space, 1000, 1024, made, 64));
    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQ(made[i].offset, i * 1024);
    CHECK_OK(quire_space_free(space, made[5].range)); /* each is a separate range */
    CHECK_FAILS(quire_space_free(space, made[5].range), QUIRE_ERROR_STALE_HANDLE);
    check_ranges(space, made, 5);
    quire_space_destroy(&space);
}

UNIT(batch, free_ranges_together_serve_what_no_single_one_could)
{
    quire_space *space = make_space(QUIRE_FIT_SEGREGATED, 32 * 256, false);
    static quire_placement all[32], made[16];
    begin_placements(all, 32);
    CHECK_OK(quire_space_allocate_batch(space, 256, 1, all, 32));
    for (int i = 0; i < 32; i += 2)
        CHECK_OK(quire_space_free(space, all[i].range));
    begin_placements(made, 16);
    CHECK_OK(quire_space_allocate_batch(space, 256, 1, made, 16));
    check_ranges(space, made, 16);
    quire_space_destroy(&space);
}

/* ---- memories ----------------------------------------------------------------------------- */

static quire_memory_stats stats_of(fixture *b)
{
    quire_memory_stats stats = fixture_stats(b);
    CHECK_OK(quire_memory_check(b->memory));
    return stats;
}

static void make_and_free(fixture *b, const quire_allocation_options *options, uint64_t count)
{
    static quire_allocation made[MANY];
    CHECK_OK(quire_allocate_batch(b->memory, options, made, count));
    CHECK_EQ(stats_of(b).allocation_count, count);
    for (uint64_t i = 0; i < count; i++) {
        quire_allocation_info info = fixture_info(b, made[i]);
        CHECK_EQ(info.requested, options->size);
        CHECK_EQ(info.user_data, options->user_data);
        CHECK(info.committed);
    }
    CHECK_OK(quire_free_batch(b->memory, made, count));
    CHECK_FAILS(quire_free_batch(b->memory, made, 1), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(stats_of(b).allocation_count, 0);
    CHECK_EQ(stats_of(b).live_bytes, 0);
}

UNIT(batch, allocations_of_every_type)
{
    const quire_allocation_options sorts[] = {
        {.size = 1000, .user_data = 5},        {.size = 1000, .alignment = 4096},
        {.size = 1000, .name = "one of many"}, {.size = 1000, .zero = true},
        {.size = 3000, .dedicated = true},     {.size = 100 * KIB, .user_data = 6},
    };
    for (uint32_t shards = 1; shards <= 2; shards++) {
        fixture b;
        fixture_make(&b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                 .shards = shards,
                                                 .pages = {.page_size = 64 * KIB}});
        for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
            make_and_free(&b, &sorts[i], 1);
            make_and_free(&b, &sorts[i], MANY);
        }
        fixture_end(&b);
    }
}

UNIT(batch, buffers_and_images_are_freed_with_their_objects)
{
    for (uint32_t shards = 1; shards <= 2; shards++) {
        fixture b;
        quire_allocation made[8];
        fixture_make(&b, &(quire_memory_options){.shards = shards});
        for (int i = 0; i < 4; i++) {
            const char *name = i % 2 ? "with a name" : NULL;
            CHECK_OK(quire_buffer_create(b.memory,
                                         &(quire_buffer_options){.size = KIB, .name = name},
                                         (quire_buffer *)&made[2 * i]));
            CHECK_OK(quire_image_create(b.memory, &(quire_image_options){.width = 8, .name = name},
                                        (quire_image *)&made[2 * i + 1]));
        }
        CHECK_EQ(b.fake.objects, 8);
        CHECK_OK(quire_free_batch(b.memory, made, 8));
        CHECK_EQ(b.fake.objects, 0);
        CHECK_EQ(stats_of(&b).allocation_count, 0);
        fixture_end(&b);
    }
}

UNIT_MEMORY(batch, one_more_than_a_memory_holds_changes_nothing, b,
            .pages = {.page_size = 64 * KIB, .max_pages = 2})
{
    static quire_allocation made[MANY];
    quire_allocation held = ALLOCATE(b, .size = 100);
    CHECK_FAILS(
        quire_allocate_batch(b->memory, &(quire_allocation_options){.size = KIB}, made, 129),
        QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_HAS(quire_last_error(), "2 pages");
    for (int i = 0; i < 129; i++)
        CHECK(!made[i].id);
    CHECK_EQ(stats_of(b).allocation_count, 1);
    CHECK_EQ(stats_of(b).allocations, 1); /* undone allocations do not count */
    CHECK_EQ(stats_of(b).frees, 0);
    CHECK_OK(quire_allocate_batch(b->memory, &(quire_allocation_options){.size = KIB}, made, 127));
    CHECK_OK(quire_free(b->memory, held));
    CHECK_OK(quire_free_batch(b->memory, made, 127));
}

static void expect_kept(fixture *b, quire_allocation *made, uint64_t count, quire_allocation bad,
                        quire_result code)
{
    for (uint64_t at = 0; at < count; at += count / 2) {
        quire_allocation kept = made[at];
        made[at] = bad;
        CHECK_FAILS(quire_free_batch(b->memory, made, count), code);
        made[at] = kept;
        CHECK_EQ(stats_of(b).allocation_count, MANY + 1);
        for (uint64_t i = 0; i < count; i++)
            CHECK(fixture_info(b, made[i]).committed);
    }
}

UNIT(batch, a_batch_with_one_invalid_free_frees_none)
{
    fixture b, other;
    fixture_make(&b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE});
    fixture_make(&other, NULL);
    static quire_allocation made[MANY];
    CHECK_OK(quire_allocate_batch(b.memory, &(quire_allocation_options){.size = KIB}, made, MANY));
    quire_allocation stale = ALLOCATE(&b, .size = 1), mapped = ALLOCATE(&b, .size = 1);
    void *pointer;
    CHECK_OK(quire_free(b.memory, stale));
    CHECK_OK(quire_map(b.memory, mapped, &pointer));
    expect_kept(&b, made, MANY, stale, QUIRE_ERROR_STALE_HANDLE);
    CHECK_HAS(quire_last_error(), "was freed before");
    expect_kept(&b, made, MANY, made[1], QUIRE_ERROR_STALE_HANDLE);
    CHECK_HAS(quire_last_error(), "occurs twice in the list");
    expect_kept(&b, made, MANY, mapped, QUIRE_ERROR_BUSY);
    expect_kept(&b, made, MANY, (quire_allocation){0}, QUIRE_ERROR_INVALID_ARGUMENT);
    expect_kept(&b, made, MANY, ALLOCATE(&other, .size = 1), QUIRE_ERROR_FOREIGN_HANDLE);
    CHECK_OK(quire_free_batch(b.memory, made, MANY));
    fixture_end(&b);
    fixture_end(&other);
}

UNIT_MEMORY(batch, memories_accept_an_empty_batch, b, 0)
{
    const quire_allocation_options good = {.size = 1};
    CHECK_OK(quire_allocate_batch(b->memory, &good, NULL, 0));
    CHECK_OK(quire_free_batch(b->memory, NULL, 0));
}
