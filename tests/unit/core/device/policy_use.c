/*
 * policy_use.c - the default page sizes, which follow use: which policies have them, the size of
 * each page, and the number of pages of a large memory.
 */
#include "tests/support/unit.h"

#include "src/core/device/policy.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)

static quire_page_policy resolve_for(quire_page_policy given, uint64_t heap, uint64_t granularity,
                                     bool has_one_page)
{
    quire_device device = {.info = {.heap_count = 1, .kind_count = 1}};
    device.info.heaps[0].size = heap;
    device.info.limits.page_granularity = granularity;
    return qi_policy_resolve(&given, &device, 0, has_one_page);
}

static quire_page_policy resolve(quire_page_policy given)
{
    return resolve_for(given, 64 * GIB, 256, false);
}

/* ---- which policies follow use ------------------------------------------------------------ */

UNIT(policy_use, zeros_select_it)
{
    const quire_page_policy given[] = {
        {0},
        {.dedicated_threshold = MIB, .retained_empty_bytes = 1, .retention_nanoseconds = 1},
        {.size_granularity = 512, .extra_padding = 1, .page_granularity = 4096},
        {.classes = {{100, 1000}}},
        {.dedicated = QUIRE_DEDICATED_NEVER},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        quire_page_policy p = resolve(given[i]);
        CHECK_OK(qi_policy_validate(&given[i], &p));
        CHECK_EQ(p.growth, QI_GROWTH_USE);
        CHECK_EQ(p.first_page_size, MIB);
        CHECK_EQ(p.page_size, 32 * MIB);
        CHECK_EQ(p.max_page, 32 * MIB);
    }
}

UNIT(policy_use, an_explicit_size_growth_or_number_of_pages_excludes_it)
{
    static const struct {
        quire_page_policy given;
        uint64_t first, second;
    } rows[] = {
        {{.page_size = 32 * MIB}, 32 * MIB, 32 * MIB},
        {{.first_page_size = 2 * MIB}, 2 * MIB, 32 * MIB},
        {{.max_page = 64 * MIB}, 32 * MIB, 32 * MIB},
        {{.growth_percent = 100, .max_page = 64 * MIB}, 32 * MIB, 64 * MIB},
        {{.growth = QUIRE_GROWTH_LARGEST}, 32 * MIB, 32 * MIB},
        {{.max_pages = 8}, 32 * MIB, 32 * MIB},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        quire_page_policy p = resolve(rows[i].given);
        CHECK_OK(qi_policy_validate(&rows[i].given, &p));
        CHECK(p.growth != QI_GROWTH_USE);
        qi_page_history had = {.last = 0};
        CHECK_EQ(qi_policy_next_page(&p, &had, 256), rows[i].first);
        had = (qi_page_history){rows[i].first, rows[i].first, rows[i].first, rows[i].first, 0};
        CHECK_EQ(qi_policy_next_page(&p, &had, 256), rows[i].second);
    }
}

UNIT(policy_use, a_fit_with_one_page_keeps_the_full_size)
{
    const quire_page_policy given = {0};
    quire_page_policy p = resolve_for(given, 64 * GIB, 256, true);
    CHECK_OK(qi_policy_validate(&given, &p));
    CHECK_EQ(qi_policy_next_page(&p, &(qi_page_history){.last = 0}, 256), 32 * MIB);
}

UNIT(policy_use, a_caller_cannot_name_the_kind)
{
    const quire_page_policy given = {.growth = QI_GROWTH_USE};
    quire_page_policy p = resolve(given);
    CHECK_FAILS(qi_policy_validate(&given, &p), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "there is no kind of growth 3");
}

UNIT(policy_use, a_factor_of_the_request_needs_growth_by_steps)
{
    const quire_page_policy given = {.request_factor = 2};
    quire_page_policy p = resolve(given);
    CHECK_FAILS(qi_policy_validate(&given, &p), QUIRE_ERROR_INVALID_ARGUMENT);
}

static uint64_t first_page(uint64_t heap, uint64_t granularity)
{
    quire_page_policy p = resolve_for((quire_page_policy){0}, heap, granularity, false);
    return qi_policy_next_page(&p, &(qi_page_history){.last = 0}, granularity);
}

UNIT(policy_use, the_first_page_is_what_the_granularity_and_the_heap_allow)
{
    CHECK_EQ(first_page(GIB, 1), MIB);
    CHECK_EQ(first_page(GIB, 65536), MIB);
    CHECK_EQ(first_page(GIB, 2 * MIB), 2 * MIB);
    CHECK_EQ(first_page(8 * MIB, 256), MIB);
    CHECK_EQ(first_page(4 * MIB, 256), 512 * KIB); /* an eighth of the heap */
    CHECK_EQ(first_page(1000, 256), 256);
    CHECK_EQ(first_page(15 * MIB, 2 * MIB), 2 * MIB);
}

/* ---- the size of each page ---------------------------------------------------------------- */

/* One shard: all bytes are its own. */
static uint64_t next_page(const quire_page_policy *p, uint64_t total)
{
    return qi_policy_next_page(p, &(qi_page_history){.total = total, .own = total}, 256);
}

static void expect_pages(quire_page_policy p, uint64_t granularity, const uint64_t *kib,
                         size_t count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        const qi_page_history had = {.total = total, .own = total};
        CHECK_EQ(qi_policy_next_page(&p, &had, granularity), kib[i] * KIB);
        total += kib[i] * KIB;
    }
}

UNIT(policy_use, pages_grow_with_the_memory_up_to_the_default_size)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    expect_pages(
        p, 256,
        (const uint64_t[]){1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 1088, 1216},
        12);                                        /* multiples of 64 KiB */
    CHECK_EQ(next_page(&p, 60 * MIB), 12544 * KIB); /* 60 / 12 + 60 * 60 / 500 MiB are 12492 KiB */
    CHECK(next_page(&p, 107 * MIB) < 32 * MIB);
    CHECK_EQ(next_page(&p, 108 * MIB), 32 * MIB);
    p = resolve_for((quire_page_policy){0}, 96 * MIB, 256, false);
    CHECK_EQ(next_page(&p, 96 * MIB), 12 * MIB); /* an eighth of the heap */
    p = resolve_for((quire_page_policy){0}, GIB, 2 * MIB, false);
    expect_pages(p, 2 * MIB,
                 (const uint64_t[]){2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 2048, 4096},
                 10);
}

UNIT(policy_use, a_page_is_a_small_part_of_a_small_memory)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    CHECK_EQ(next_page(&p, 1), MIB);
    for (uint64_t total = 10 * MIB; total <= 30 * MIB; total += MIB)
        CHECK(next_page(&p, total) * 100 <= total * 15);
    for (uint64_t total = 10 * MIB; total <= GIB; total += MIB)
        CHECK(next_page(&p, total) * 100 <= total * 30);
    CHECK_EQ(next_page(&p, UINT64_MAX), 32 * MIB);
}

UNIT(policy_use, only_the_bytes_that_are_reserved_now_count)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    qi_page_history had = {.last = 32 * MIB, .largest = 32 * MIB, .total = 0, .own = 0};
    CHECK_EQ(qi_policy_next_page(&p, &had, 256), MIB);
    had = (qi_page_history){.last = MIB, .largest = MIB, .total = GIB, .own = GIB};
    CHECK_EQ(qi_policy_next_page(&p, &had, 256), 32 * MIB);
}

UNIT(policy_use, a_larger_request_is_rounded_up_by_less_than_a_64th)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    static const uint64_t rows[][2] = {
        {1, MIB},
        {MIB, MIB},
        {MIB + 1, MIB + 16 * KIB},
        {9 * MIB, 9 * MIB},
        {9 * MIB + 1, 9 * MIB + 128 * KIB},
        {16 * MIB + 1, 16 * MIB + 256 * KIB},
        {33 * MIB + 1, 33 * MIB + 512 * KIB},
        {UINT64_MAX, UINT64_MAX - (UINT64_C(1) << 57) + 1}, /* the request itself raises it */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECK_EQ(qi_policy_page_for(&p, MIB, 1, rows[i][0], 256), rows[i][1]);
    CHECK_EQ(qi_policy_page_for(&p, 8 * MIB, 1, 2 * MIB, 256), 8 * MIB);
    CHECK_EQ(qi_policy_page_for(&p, 1, 1, 3, 1), 3); /* a heap of a few bytes */
}

/* Each is freed before the next: a page is made where none of the pages before it holds one. */
UNIT(policy_use, requests_that_grow_slowly_make_few_pages)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    uint32_t pages = 0;
    for (uint64_t request = 4 * MIB, page = 0; request <= 8 * MIB; request += 4096)
        if (request > page) {
            page = qi_policy_page_for(&p, MIB, request, request, 256);
            pages++;
        }
    CHECK(pages <= 65);
}

UNIT(policy_use, classes_decide_alone)
{
    quire_page_policy p = resolve((quire_page_policy){.classes = {{100, 65536}}});
    CHECK_EQ(qi_policy_page_for(&p, MIB, 100, 256, 256), 65536);
    CHECK_EQ(qi_policy_page_for(&p, MIB, 101, 256, 256), MIB);
}

static uint64_t page_of_shard(uint64_t total, uint64_t own, uint64_t floor)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    const qi_page_history had = {.total = total, .own = own, .floor = floor};
    return qi_policy_next_page(&p, &had, 256);
}

UNIT(policy_use, a_page_counts_at_most_32_times_the_bytes_of_its_shard)
{
    CHECK_EQ(page_of_shard(GIB, 0, 0), MIB);
    CHECK_EQ(page_of_shard(GIB, MIB, 0), page_of_shard(32 * MIB, 32 * MIB, 0));
    CHECK_EQ(page_of_shard(GIB, MIB, 0) / MIB, 4);
    CHECK_EQ(page_of_shard(GIB, 5 * MIB, 0), 32 * MIB);
    CHECK_EQ(page_of_shard(36 * MIB, 2 * MIB, 0), page_of_shard(36 * MIB, 36 * MIB, 0));
    CHECK_EQ(page_of_shard(UINT64_MAX, UINT64_MAX, 0), 32 * MIB);
}

UNIT(policy_use, preallocated_bytes_have_pages_of_their_size)
{
    CHECK_EQ(page_of_shard(0, 0, 1), MIB);
    CHECK_EQ(page_of_shard(0, 0, MIB + 1), MIB + 64 * KIB);
    CHECK_EQ(page_of_shard(0, 0, 20 * MIB), 20 * MIB);
    CHECK_EQ(page_of_shard(0, 0, UINT64_MAX), 32 * MIB);
    CHECK_EQ(page_of_shard(108 * MIB, 108 * MIB, 2 * MIB), 32 * MIB);
}

/* The number of pages until the shards, in turn, have reserved `bytes`. */
static uint32_t pages_for(uint32_t shards, uint64_t bytes)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    uint64_t own[64] = {0}, total = 0;
    uint32_t pages = 0;
    for (; total < bytes; pages++) {
        uint64_t *mine = &own[pages % shards];
        uint64_t size =
            qi_policy_next_page(&p, &(qi_page_history){.total = total, .own = *mine}, 256);
        *mine += size;
        total += size;
    }
    return pages;
}

UNIT(policy_use, twenty_gibibytes_take_at_most_five_percent_more_pages_than_fixed_ones)
{
    const uint32_t fixed = 20 * 1024 / 32;
    CHECK(pages_for(1, 20 * GIB) <= fixed + fixed / 20);
    CHECK(pages_for(4, 20 * GIB) <= fixed + fixed / 20);
    CHECK(pages_for(16, 20 * GIB) <= fixed + fixed / 20);
}
