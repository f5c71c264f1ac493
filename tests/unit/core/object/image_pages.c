/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * image_pages.c - images of optimal tiling have pages for themselves where the buffer-image
 * granularity is large: nothing is rounded, and no page has both kinds.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>

#include "tests/support/fixture.h"

#define KIB UINT64_C(1024)

enum { COUNT = 60 };

static void begin(fixture *f, uint64_t granularity, const quire_memory_options *options)
{
    fixture_prepare(f);
    f->fake.info.limits.buffer_image_granularity = granularity;
    f->fake.object_needs.alignment = 256;
    fixture_open(f, options);
}

static quire_allocation image(fixture *f, uint64_t size, quire_tiling tiling)
{
    quire_image made;
    const quire_image_options options = {.width = 4, .tiling = tiling};
    f->fake.object_needs.size = size;
    CHECK_OK(quire_image_create(f->memory, &options, &made));
    return made.allocation;
}

static quire_allocation buffer(fixture *f, uint64_t size)
{
    f->fake.object_needs.size = size;
    quire_buffer made = BUFFER(f, .size = size);
    return made.allocation;
}

#define CASE(name, ...) UNIT_ON(image_pages, name, fixture, f, begin(f, __VA_ARGS__), fixture_end)

CASE(images_and_others_share_no_page_and_lose_no_bytes, 64 * KIB,
     &(quire_memory_options){.pages = {.page_size = 1024 * KIB}})
{
    quire_allocation images[COUNT], others[COUNT];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < COUNT; i++) {
            if (round) {
                CHECK_OK(quire_free(f->memory, images[i]));
                CHECK_OK(quire_free(f->memory, others[i]));
            }
            images[i] = image(f, 4 * KIB, QUIRE_TILING_OPTIMAL);
            others[i] = i % 2 ? buffer(f, 3 * KIB) : image(f, 3 * KIB, QUIRE_TILING_LINEAR);
        }
    for (int i = 0; i < COUNT; i++) {
        CHECK_EQ(fixture_info(f, images[i]).size, 4 * KIB);
        CHECK_EQ(fixture_info(f, images[i]).left_padding, 0);
        for (int k = 0; k < COUNT; k++)
            CHECK(fixture_info(f, images[i]).page != fixture_info(f, others[k]).page);
    }
    CHECK_EQ(fixture_stats(f).page_count, 2);
}

CASE(a_small_granularity_rounds_as_before, KIB,
     &(quire_memory_options){.pages = {.page_size = 1024 * KIB}})
{
    quire_allocation a = image(f, 100, QUIRE_TILING_OPTIMAL), b = buffer(f, 100);
    CHECK_EQ(fixture_info(f, a).size, KIB);
    CHECK_EQ(fixture_info(f, a).page, fixture_info(f, b).page);
}

/* A memory of one page, or whose placements are a promise, has no page for images alone. */
static const quire_memory_options ROUNDING[] = {
    {.pages = {.page_size = 1024 * KIB, .max_pages = 1}},
    {.pages = {.page_size = 1024 * KIB}, .fit = {.algorithm = QUIRE_FIT_FIRST}},
    {.pages = {.page_size = 1024 * KIB}, .fit = {.algorithm = QUIRE_FIT_LINEAR}},
};

UNIT_EACH(image_pages, memories_of_few_pages_or_of_one_order_round, fixture, f, row, 0, 3,
          begin(f, 64 * KIB, &ROUNDING[row]), fixture_end)
{
    quire_allocation a = image(f, 100, QUIRE_TILING_OPTIMAL), b = buffer(f, 100);
    CHECK_EQ(fixture_info(f, a).size, 64 * KIB);
    CHECK_EQ(fixture_info(f, a).page, fixture_info(f, b).page);
}

/* What one kind has emptied serves the other. */
CASE(an_empty_page_changes_its_kind, 64 * KIB,
     &(quire_memory_options){
         .pages = {.page_size = 1024 * KIB, .retained_empty_bytes = UINT64_MAX}})
{
    quire_allocation a = buffer(f, 100);
    uint32_t page = fixture_info(f, a).page;
    CHECK_OK(quire_free(f->memory, a));
    a = image(f, 100, QUIRE_TILING_OPTIMAL);
    CHECK_EQ(fixture_info(f, a).page, page);
    CHECK_EQ(f->fake.pages, 1);
    CHECK_OK(quire_free(f->memory, a));
    CHECK_EQ(fixture_info(f, buffer(f, 100)).page, page);
}

/* A memory without images keeps as many empty bytes as its policy says, and one with them too. */
UNIT_EACH(image_pages, the_bytes_that_stay_are_shared_with_images_alone, fixture, f, has_images, 0,
          2,
          begin(f, 64 * KIB,
                &(quire_memory_options){
                    .pages = {.page_size = 1024 * KIB, .retained_empty_bytes = 2048 * KIB}}),
          fixture_end)
{
    quire_allocation made[3];
    if (has_images)
        (void)image(f, 100, QUIRE_TILING_OPTIMAL);
    for (int i = 0; i < 3; i++)
        made[i] = buffer(f, 700 * KIB);
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_free(f->memory, made[i]));
    CHECK_EQ(fixture_stats(f).empty_bytes, has_images ? 1024 * KIB : 2048 * KIB);
}

/* The memory's limit refuses a page: a request is not placed in a page of the other kind. */
CASE(the_last_searches_keep_the_kinds_apart, 64 * KIB,
     &(quire_memory_options){.pages = {.page_size = 1024 * KIB}, .limit = 1024 * KIB})
{
    quire_image none;
    (void)buffer(f, 100);
    f->fake.object_needs.size = 100;
    CHECK_FAILS(quire_image_create(f->memory, &(quire_image_options){.width = 4}, &none),
                QUIRE_ERROR_OVER_BUDGET);
}

static void *free_all(void *user)
{
    fixture *f = user;
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_free(f->memory, image(f, 4 * KIB, QUIRE_TILING_OPTIMAL)));
    return NULL;
}

/* With shards for threads as well. No thread's own shard has images: each free is at once. */
UNIT_ON(image_pages, frees_of_other_threads_leave_nothing, fixture, f,
        begin(f, 64 * KIB,
              &(quire_memory_options){.pages = {.page_size = 1024 * KIB}, .shards = 3}),
        fixture_end)
{
    pthread_t thread;
    quire_memory_info info;
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_info(f->memory, &info));
    CHECK_EQ(info.shards, 3);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(pthread_create(&thread, NULL, free_all, f), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    stats = fixture_stats(f);
    CHECK_EQ(stats.page_count, 0);
}

/* Of 4 to 32 KiB, in pages of the usual sizes. Rounded to 64 KiB they would take 4.8 times as
   much. */
CASE(many_small_images_take_little_more_than_their_bytes, 64 * KIB, NULL)
{
    enum { MANY = 20000 };
    uint64_t requested = 0;
    quire_memory_stats stats;
    for (uint32_t i = 0; i < MANY; i++) {
        uint64_t size = 4 * KIB + i * UINT64_C(2654435761) % (28 * KIB);
        (void)image(f, size, QUIRE_TILING_OPTIMAL);
        requested += size;
    }
    stats = fixture_stats(f);
    printf("# %" PRIu64 " of %" PRIu64 " bytes\n", stats.reserved_bytes, requested);
    CHECK(stats.reserved_bytes <= requested * 115 / 100);
}
