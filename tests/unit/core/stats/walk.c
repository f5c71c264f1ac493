/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * walk.c - walks over the ranges of a memory: complete, in order, with the requested sizes; the
 * visitor may change the memory.
 */
#include "tests/support/fixture.h"

#include "tests/support/random.h"

enum { PAGE = 65536, MAX_ITEMS = 512 };

/* The items of a walk; the names are copied. */
typedef struct record {
    quire_item items[MAX_ITEMS];
    char names[MAX_ITEMS][32];
    int count, max_count; /* the walk ends after `max_count` items */
} record;

static bool keep_item(void *user, const quire_item *item)
{
    record *r = user;
    CHECK(r->count < MAX_ITEMS);
    CHECK(item->name != NULL && strlen(item->name) < sizeof r->names[0]);
    strcpy(r->names[r->count], item->name);
    r->items[r->count] = *item;
    r->count++;
    return !r->max_count || r->count < r->max_count;
}

static void walk(fixture *b, record *r)
{
    r->count = r->max_count = 0;
    CHECK_OK(quire_memory_walk(b->memory, keep_item, r));
}

#define CASE(name, ...) UNIT_MEMORY(walk, name, b, __VA_ARGS__)

/* ---- items -------------------------------------------------------------------------------- */

CASE(items_describe_the_allocations, .fit.algorithm = QUIRE_FIT_FIRST, .pages = {.page_size = PAGE})
{
    static record r;
    quire_allocation first = ALLOCATE(b, .size = 100, .name = "first", .user_data = UINT64_MAX);
    quire_buffer buffer = BUFFER(b, .size = 10, .alignment = 256, .name = "second");
    quire_image image = IMAGE(b, .width = 20);
    quire_allocation own = ALLOCATE(b, .size = 300, .dedicated = true, .name = "own");
    quire_allocation reserved;
    CHECK_OK(quire_reserve(b->memory, &(quire_allocation_options){.size = 5}, &reserved));
    walk(b, &r);
    const quire_item expected[] = {
        {.allocation = first, .size = 100, .requested = 100, .user_data = UINT64_MAX},
        {.allocation = buffer.allocation,
         .offset = 256,
         .left_padding = 156,
         .size = 10,
         .requested = 10,
         .object = QUIRE_OBJECT_BUFFER},
        {.allocation = image.allocation,
         .offset = 320,
         .left_padding = 54,
         .size = 20,
         .requested = 20,
         .object = QUIRE_OBJECT_IMAGE},
        {.allocation = reserved, .offset = 340, .size = 5, .requested = 5},
        {.is_free = true, .offset = 345, .size = PAGE - 345},
        {.page = 1, .dedicated = true, .allocation = own, .size = 300, .requested = 300},
        {.page = 1, .dedicated = true, .is_free = true, .offset = 300, .size = 212},
    };
    static const char *const names[] = {"first", "second", "", "", "", "own", ""};
    CHECK_EQ(r.count, 7);
    for (int i = 0; i < r.count; i++) {
        const quire_item *item = &r.items[i], *e = &expected[i];
        CHECK_EQ(item->page, e->page);
        CHECK_EQ(item->dedicated, e->dedicated);
        CHECK_EQ(item->is_free, e->is_free);
        CHECK_EQ(item->page_size, e->page ? 512 : PAGE);
        CHECK_EQ(item->offset, e->offset);
        CHECK_EQ(item->left_padding, e->left_padding);
        CHECK_EQ(item->size, e->size);
        CHECK_EQ(item->requested, e->requested);
        CHECK_EQ(item->user_data, e->user_data);
        CHECK_EQ(item->allocation.id, e->allocation.id);
        CHECK_EQ(item->object, e->object);
        CHECK_STR(r.names[i], names[i]);
    }
}

/* Every byte of every page is in exactly one item, page by page and by address. */
static void expect_complete(fixture *b, const record *r)
{
    uint64_t at = 0, live = 0, count = 0, pages = 0;
    for (int i = 0; i < r->count; i++) {
        const quire_item *item = &r->items[i];
        if (!i || item->page != r->items[i - 1].page) {
            CHECK(!i || (at == r->items[i - 1].page_size && item->page > r->items[i - 1].page));
            at = 0;
            pages++;
        }
        CHECK_EQ(item->offset - item->left_padding, at);
        CHECK(item->size > 0);
        at = item->offset + item->size;
        if (item->is_free) {
            CHECK_EQ(item->allocation.id, 0);
            CHECK_EQ(item->left_padding, 0);
            continue;
        }
        quire_allocation_info info;
        CHECK_OK(quire_allocation_get_info(b->memory, item->allocation, &info));
        CHECK_EQ(info.page, item->page);
        CHECK_EQ(info.offset, item->offset);
        CHECK_EQ(info.size, item->size);
        live += item->size + item->left_padding;
        count++;
    }
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(live, stats.live_bytes);
    CHECK_EQ(count, stats.allocation_count);
    CHECK_EQ(pages, stats.page_count);
    CHECK(!r->count || at == r->items[r->count - 1].page_size);
}

UNIT(walk, every_byte_is_in_one_item_in_order)
{
    static record r;
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    for (int f = 0; f < 3; f++) {
        fixture b;
        fixture_make(&b, &(quire_memory_options){
                             .fit.algorithm = fits[f],
                             .pages = {.page_size = PAGE, .dedicated_threshold = 30000}});
        test_random random = {f ? 3u : 4u};
        quire_allocation live[60] = {{0}};
        for (int step = 0; step < 1000; step++) {
            quire_allocation *at = &live[random_below(&random, 60)];
            quire_allocation_options options = {.size = random_size(&random, 40000),
                                                .alignment = UINT64_C(1)
                                                             << random_below(&random, 12),
                                                .name = step % 3 ? "named" : NULL};
            if (at->id) {
                CHECK_OK(quire_free(b.memory, *at));
                at->id = 0;
            } else {
                CHECK_OK(quire_allocate(b.memory, &options, at));
            }
            if (step % 50 == 0) {
                walk(&b, &r);
                expect_complete(&b, &r);
            }
        }
        fixture_end(&b);
    }
}

CASE(a_memory_without_pages_has_no_items, 0)
{
    static record r;
    walk(b, &r);
    CHECK_EQ(r.count, 0);
    CHECK_OK(quire_free(b->memory, ALLOCATE(b, .size = 1)));
    walk(b, &r);
    CHECK_EQ(r.count, 1);
    CHECK(r.items[0].is_free);
    CHECK_EQ(r.items[0].size, r.items[0].page_size);
}

CASE(many_and_long_names_are_copied, .fit.algorithm = QUIRE_FIT_FIRST, .pages = {.page_size = PAGE})
{
    static record r;
    for (int i = 0; i < 300; i++)
        ALLOCATE(b, .size = 1, .name = i % 2 ? "thirty-one bytes of a long name" : "");
    walk(b, &r);
    CHECK_EQ(r.count, 301);
    for (int i = 0; i < 300; i++)
        CHECK_STR(r.names[i], i % 2 ? "thirty-one bytes of a long name" : "");
}

/* ---- early ends and changes of the memory -------------------------------------------------- */

CASE(a_visitor_can_end_the_walk_at_any_item, .pages = {.page_size = PAGE})
{
    static record r;
    for (int i = 0; i < 6; i++)
        ALLOCATE(b, .size = PAGE / 2 - 256); /* two and a rest on each of three pages */
    walk(b, &r);
    int all = r.count;
    CHECK_EQ(all, 9);
    for (int max_count = 1; max_count <= all; max_count++) {
        r.count = 0;
        r.max_count = max_count;
        CHECK_OK(quire_memory_walk(b->memory, keep_item, &r));
        CHECK_EQ(r.count, max_count);
    }
}

static bool free_item(void *user, const quire_item *item)
{
    fixture *b = user;
    if (!item->is_free)
        CHECK_OK(quire_free(b->memory, item->allocation));
    fixture_stats(b); /* queries are allowed */
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    return true;
}

CASE(a_visitor_may_free_the_visited_allocation,
     .pages = {.page_size = PAGE, .dedicated_threshold = 20000})
{
    for (uint64_t i = 0; i < 40; i++)
        ALLOCATE(b, .size = 1 + i * 700, .name = "to be freed");
    CHECK_OK(quire_memory_walk(b->memory, free_item, b));
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(stats.allocation_count, 0);
    CHECK_EQ(b->fake.pages, 0);
}

static bool allocate_more(void *user, const quire_item *item)
{
    fixture *b = user;
    if (!item->is_free)
        ALLOCATE(b, .size = PAGE / 2, .name = "made on the way");
    return item->page < 20; /* not all pages created during the walk are visited */
}

CASE(a_visitor_may_allocate, .pages = {.page_size = PAGE})
{
    for (int i = 0; i < 4; i++)
        ALLOCATE(b, .size = PAGE / 2);
    CHECK_OK(quire_memory_walk(b->memory, allocate_more, b));
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(stats.allocation_count, 8); /* the walk ended with the pages that existed before */
}

CASE(without_host_memory_a_walk_fails_and_changes_nothing, .pages = {.page_size = PAGE})
{
    static record r;
    ALLOCATE(b, .size = 1, .name = "first");
    for (uint64_t call = 1; call <= 2; call++) {
        r.count = r.max_count = 0;
        test_memory_fail(unit_memory_state(), call, false);
        CHECK_FAILS(quire_memory_walk(b->memory, keep_item, &r), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_HAS(quire_last_error(), "copy of 2 ranges");
        CHECK_EQ(r.count, 0);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK_OK(quire_memory_check(b->memory));
    }
    walk(b, &r);
    CHECK_EQ(r.count, 2);
}
