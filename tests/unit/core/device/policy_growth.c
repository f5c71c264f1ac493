/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * policy_growth.c - inputs of the size of a page: the previous page, the largest page, all pages,
 * the request, and a granularity; which combinations are refused, and that memories follow the
 * policy.
 */
#include "tests/support/fixture.h"

#include "src/core/page/life.h"
#include "src/core/page/sizes.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)

static quire_page_policy resolve(quire_page_policy given)
{
    quire_device device = {.info = {.heap_count = 1, .kind_count = 1}};
    device.info.heaps[0].size = GIB;
    device.info.limits.page_granularity = 256;
    return qi_policy_resolve(&given, &device, 0, false);
}

static uint64_t next_page(const quire_page_policy *p, uint64_t largest, uint64_t total)
{
    return qi_policy_next_page(p, &(qi_page_history){.largest = largest, .total = total}, 256);
}

/* ---- the largest existing page ------------------------------------------------------------ */

static const quire_page_policy ladder = {.page_size = 8 * KIB,
                                         .first_page_size = 1 * KIB,
                                         .growth_percent = 100,
                                         .growth = QUIRE_GROWTH_LARGEST};

UNIT(policy_growth, a_page_is_the_lowest_step_above_the_largest)
{
    quire_page_policy p = resolve(ladder);
    static const uint64_t rows[][2] = {{0, 1024},    {256, 1024},  {1023, 1024}, {1024, 2048},
                                       {1500, 2048}, {2048, 4096}, {4096, 8192}, {8191, 8192},
                                       {8192, 8192}, {GIB, 8192}};
    CHECK_OK(qi_policy_validate(&p, &p));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_EQ(next_page(&p, rows[i][0], 99999), rows[i][1]);
}

UNIT(policy_growth, without_growth_the_only_page_is_the_first)
{
    quire_page_policy p = resolve((quire_page_policy){
        .page_size = 4096, .first_page_size = 1024, .growth = QUIRE_GROWTH_LARGEST});
    CHECK_OK(qi_policy_validate(&p, &p));
    CHECK_EQ(next_page(&p, 0, 0), 1024);
    CHECK_EQ(next_page(&p, 256, 256), 4096);
    CHECK_EQ(next_page(&p, 65536, 65536), 4096);
}

UNIT(policy_growth, the_smallest_growth_makes_progress)
{
    quire_page_policy p = {.page_size = 1,
                           .first_page_size = 1,
                           .growth_percent = 1,
                           .max_page = UINT64_C(1) << 50,
                           .growth = QUIRE_GROWTH_LARGEST};
    qi_page_history had = {.largest = UINT64_C(1) << 49};
    uint64_t size = qi_policy_next_page(&p, &had, 1);
    CHECK(size > had.largest && size < had.largest + had.largest / 99);
    had.largest = UINT64_MAX;
    CHECK_EQ(qi_policy_next_page(&p, &had, 1), p.max_page);
}

UNIT(policy_growth, a_page_is_a_share_of_all_pages)
{
    quire_page_policy p = resolve((quire_page_policy){.page_size = 1024,
                                                      .growth_percent = 100,
                                                      .growth = QUIRE_GROWTH_RESERVED,
                                                      .max_page = MIB});
    CHECK_OK(qi_policy_validate(&p, &p));
    CHECK_EQ(next_page(&p, 0, 0), 1024);
    CHECK_EQ(next_page(&p, 1024, 1024), 1024);
    CHECK_EQ(next_page(&p, 1024, 2048), 2048);
    CHECK_EQ(next_page(&p, 1024, 5000), 5120);
    CHECK_EQ(next_page(&p, 1024, 2 * MIB), MIB);
    CHECK_EQ(next_page(&p, 1024, UINT64_MAX), MIB);
    p.growth_percent = 25;
    CHECK_EQ(next_page(&p, 1024, 8192), 2048);
    CHECK_EQ(next_page(&p, 1024, 1), 256);
}

static void put(quire_memory *memory, qi_page page)
{
    qi_pages *pages = &memory->pages;
    CHECK(qi_table_ensure(&pages->records, &memory->host, pages->top));
    *(qi_page *)qi_table_get(&pages->records, pages->top++) = page;
}

UNIT(policy_growth, pages_being_created_count_with_their_requested_size)
{
    quire_memory m = {.policy = {.growth = QUIRE_GROWTH_LARGEST}, .shard_count = 1};
    qi_shard shard = {.memory = &m, .shared_bytes = 4};
    CHECK_OK(qi_host_init(&m.host, unit_memory()));
    qi_pages_init(&m.pages);
    m.pages.last_size = 7;
    m.pages.shared_bytes = 5;
    m.pages.floor = 6;
    put(&m, (qi_page){.phase = QI_PAGE_LIVE, .native.bytes = 1000, .wanted = 1});
    put(&m, (qi_page){.phase = QI_PAGE_MAKING, .wanted = 2000});
    put(&m, (qi_page){.phase = QI_PAGE_MAKING, .wanted = 4000, .dedicated = true});
    put(&m, (qi_page){.phase = QI_PAGE_LEAVING, .native.bytes = 8000});
    put(&m, (qi_page){.phase = QI_PAGE_NONE, .native.bytes = 16000});
    qi_page_history had = qi_page_history_of(&shard);
    CHECK_EQ(had.last, 7);
    CHECK_EQ(had.largest, 2000);
    CHECK_EQ(had.total, 5);
    CHECK_EQ(had.own, 4);
    CHECK_EQ(had.floor, 6);
    m.policy.growth = QUIRE_GROWTH_RESERVED;
    m.shard_count = 3;
    CHECK_EQ(qi_page_history_of(&shard).largest, 0);
    CHECK_EQ(qi_page_history_of(&shard).floor, 2);
    qi_pages_finish(&m.pages, &m.host);
}

UNIT(policy_growth, steps_are_skipped_until_the_request_fits_often_enough)
{
    quire_page_policy p = ladder;
    p.request_factor = 2;
    p = resolve(p);
    CHECK_OK(qi_policy_validate(&p, &p));
    CHECK_EQ(qi_policy_page_for(&p, 1024, 1, 1, 256), 1024);
    CHECK_EQ(qi_policy_page_for(&p, 1024, 512, 512, 256), 1024);
    CHECK_EQ(qi_policy_page_for(&p, 1024, 513, 513, 256), 2048);
    CHECK_EQ(qi_policy_page_for(&p, 2048, 513, 513, 256), 2048);
    CHECK_EQ(qi_policy_page_for(&p, 1024, 2049, 2049, 256), 8192);
    CHECK_EQ(qi_policy_page_for(&p, 1024, 5000, 5000, 256), 8192);
    CHECK_EQ(qi_policy_page_for(&p, 1024, UINT64_MAX, UINT64_MAX, 256), 8192);
    CHECK_EQ(qi_policy_page_for(&p, 0, 5000, 5000, 256),
             0); /* a full address line leaves no step */
    p.request_factor = 1;
    CHECK_EQ(qi_policy_page_for(&p, 1024, 5000, 5000, 256), 1024);
}

UNIT(policy_growth, classes_replace_the_next_page_size)
{
    quire_page_policy p =
        resolve((quire_page_policy){.page_size = 4096, .classes = {{100, 1000}, {5000, 16384}}});
    CHECK_OK(qi_policy_validate(&p, &p));
    CHECK_EQ(qi_policy_page_for(&p, 4096, 1, 1, 256), 1024); /* rounded up */
    CHECK_EQ(qi_policy_page_for(&p, 4096, 100, 100, 256), 1024);
    CHECK_EQ(qi_policy_page_for(&p, 4096, 101, 101, 256), 16384);
    CHECK_EQ(qi_policy_page_for(&p, 4096, 5000, 5000, 256), 16384);
    CHECK_EQ(qi_policy_page_for(&p, 4096, 5001, 5001, 256), 4096);
    p = resolve(
        (quire_page_policy){.page_size = 1, .classes = {{UINT64_MAX - 511, UINT64_MAX - 511}}});
    CHECK_OK(qi_policy_validate(&p, &p));
}

UNIT(policy_growth, sizes_are_multiples_of_the_policys_granularity)
{
    quire_page_policy p = resolve((quire_page_policy){.page_size = 5000,
                                                      .first_page_size = 1,
                                                      .growth_percent = 10,
                                                      .max_page = 20000,
                                                      .page_granularity = 4096,
                                                      .classes = {{10, 10}}});
    CHECK_OK(qi_policy_validate(&p, &p));
    CHECK_EQ(p.page_size, 8192);
    CHECK_EQ(p.first_page_size, 4096);
    CHECK_EQ(p.max_page, 20480);
    CHECK_EQ(p.classes[0].page_size, 4096);
    CHECK_EQ(qi_policy_next_page(&p, &(qi_page_history){.last = 4096}, 256), 8192);
    CHECK_EQ(qi_policy_round(&p, 1), 4096);
    CHECK_EQ(qi_policy_round(&p, 8192), 8192);
    CHECK_EQ(qi_policy_round(&p, UINT64_MAX - 255), UINT64_MAX - 255);
}

UNIT(policy_growth, a_granularity_below_the_backends_is_the_backends)
{
    CHECK_EQ(resolve((quire_page_policy){.page_granularity = 0}).page_granularity, 256);
    CHECK_EQ(resolve((quire_page_policy){.page_granularity = 1}).page_granularity, 256);
    CHECK_EQ(resolve((quire_page_policy){.page_granularity = 512}).page_granularity, 512);
}

/* ---- memories ----------------------------------------------------------------------------- */

static quire_allocation take(fixture *b, uint64_t size, uint64_t page_size)
{
    uint64_t pages = b->fake.pages;
    quire_allocation made = ALLOCATE(b, .size = size);
    CHECK_EQ(b->fake.pages, pages + 1);
    CHECK_EQ(b->fake.last_page.size, page_size);
    return made;
}

#define CASE(name, ...) UNIT_MEMORY(policy_growth, name, b, __VA_ARGS__)

CASE(neither_dedicated_nor_destroyed_pages_count, .pages = ladder)
{
    ALLOCATE(b, .size = 8 * KIB, .dedicated = true);
    take(b, 1 * KIB, 1 * KIB);
    quire_allocation second = take(b, 2 * KIB, 2 * KIB);
    quire_allocation third = take(b, 3 * KIB, 4 * KIB);
    CHECK_OK(quire_free(b->memory, third));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b->memory, &info));
    CHECK_EQ(info.page_size, 4 * KIB);
    CHECK_OK(quire_free(b->memory, second));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    take(b, 2 * KIB, 2 * KIB);
}

CASE(a_page_made_smaller_counts_with_its_real_size, .pages = ladder)
{
    take(b, 1 * KIB, 1 * KIB);
    b->fake.page_budget = 2 * KIB;
    take(b, 1 * KIB, 1 * KIB);
    b->fake.page_budget = 0;
    CHECK_OK(quire_memory_set_limit(b->memory, 0)); /* forgets the refused size */
    take(b, 1 * KIB, 2 * KIB);
}

CASE(a_granularity_is_dropped_before_a_request_is_refused,
     .pages = {.page_size = 4 * KIB, .page_granularity = 64 * KIB})
{
    take(b, 1, 64 * KIB);
    take(b, 65 * KIB, 128 * KIB);
    quire_allocation own = ALLOCATE(b, .size = 65 * KIB, .dedicated = true);
    CHECK_EQ(b->fake.last_page.size, 128 * KIB);
    CHECK_OK(quire_free(b->memory, own));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    b->fake.page_budget = b->fake.page_bytes + 80 * KIB;
    take(b, 65 * KIB, 65 * KIB);
}

UNIT_PREPARED(policy_growth, the_devices_largest_page_limits_classes_and_granularity, b)
{
    b->fake.info.limits.max_page = 10000;
    fixture_open(
        b, &(quire_memory_options){
               .pages = {.page_size = 4096, .page_granularity = 4096, .classes = {{1000, 16384}}}});
    take(b, 500, 9984);
    take(b, 9900, 9984);
}
