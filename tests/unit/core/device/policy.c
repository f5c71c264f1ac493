/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * policy.c - page policies: the meaning of 0, what is refused, the sizes of successive pages, of
 * default ones, which follow use, and the bytes placed for a request.
 */
#include "src/core/device/policy.h"
#include "tests/support/unit.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)

#define ROWS(rows) (uint32_t)(sizeof(rows) / sizeof *(rows))

/* On a device with the members that policies read; the other kind has a tiny heap. */
static quire_page_policy resolve_for(quire_page_policy given, uint64_t heap, uint64_t granularity,
                                     bool has_one_page)
{
    quire_device device = {.info = {.heap_count = 2, .kind_count = 2}};
    device.info.heaps[0].size = 1;
    device.info.heaps[1].size = heap;
    device.info.kinds[1].heap = 1;
    device.info.limits.page_granularity = granularity;
    return qi_policy_resolve(&given, &device, 1, has_one_page);
}

static quire_page_policy resolve(quire_page_policy given)
{
    return resolve_for(given, 64 * GIB, 256, false);
}

static uint64_t next_page(const quire_page_policy *p, qi_page_history had)
{
    return qi_policy_next_page(p, &had, 256);
}

/* ---- defaults ----------------------------------------------------------------------------- */

/* An eighth of the heap, at most 32 MiB and at least the granularity; the first page is smaller. */
UNIT(policy, sizes_follow_the_heap_and_the_granularity)
{
    static const struct {
        quire_page_policy given;
        uint64_t heap, granularity, page_size, first, largest;
    } rows[] = {
        {{0}, 8 * GIB, 256, 32 * MIB, MIB, 32 * MIB},
        {{0}, GIB, 1, 32 * MIB, MIB, 32 * MIB},
        {{0}, GIB, 65536, 32 * MIB, MIB, 32 * MIB},
        {{0}, GIB, 2 * MIB, 32 * MIB, 2 * MIB, 32 * MIB},
        {{0}, 256 * MIB, 256, 32 * MIB, MIB, 32 * MIB},
        {{0}, 256 * MIB - 8, 256, 32 * MIB - 256, MIB, 32 * MIB - 256},
        {{0}, 64 * MIB, 256, 8 * MIB, MIB, 8 * MIB},
        {{0}, 8 * MIB, 256, MIB, MIB, MIB},
        {{0}, 4 * MIB, 256, 512 * KIB, 512 * KIB, 512 * KIB},
        {{0}, 100 * MIB, 2 * MIB, 12 * MIB, 2 * MIB, 12 * MIB},
        {{0}, 16 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB},
        {{0}, 15 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB},
        {{0}, 1000, 256, 256, 256, 256},
        /* given sizes apply to every heap and are rounded up */
        {{.page_size = 4 * GIB}, GIB, 256, 4 * GIB, 4 * GIB, 4 * GIB},
        {{.page_size = 5000, .first_page_size = 1}, GIB, 4096, 8192, 4096, 8192},
        {{.page_size = 1000, .max_page = 1000}, GIB, 256, 1024, 1024, 1024},
        {{.page_size = 4096, .first_page_size = 16384}, GIB, 256, 4096, 16384, 16384},
        {{.page_size = 16384, .first_page_size = 4096}, GIB, 256, 16384, 4096, 16384},
        {{.page_size = 4096, .max_page = 9000}, GIB, 4096, 4096, 4096, 12288},
    };
    for (uint32_t i = 0; i < ROWS(rows); i++) {
        unit_note("row", i);
        quire_page_policy p = resolve_for(rows[i].given, rows[i].heap, rows[i].granularity, false);
        CHECK_OK(qi_policy_validate(&rows[i].given, &p));
        CHECK_EQ(p.page_size, rows[i].page_size);
        CHECK_EQ(p.first_page_size, rows[i].first);
        CHECK_EQ(qi_policy_next_page(&p, &(qi_page_history){.last = 0}, rows[i].granularity),
                 rows[i].first);
        CHECK_EQ(p.max_page, rows[i].largest);
        CHECK_EQ(p.size_granularity, 1);
        CHECK_EQ(p.max_pages, 0);
        CHECK_EQ(p.dedicated_threshold, 0);
    }
}

UNIT(policy, a_size_that_cannot_be_rounded_up_never_reaches_a_backend)
{
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 254};
    for (int i = 0; i < 4; i++) {
        quire_page_policy given = {.page_size = i & 1 ? sizes[i / 2] : 4096,
                                   .first_page_size = i & 1 ? 4096 : sizes[i / 2]};
        quire_page_policy p = resolve(given);
        if (qi_policy_validate(&given, &p))
            continue;
        CHECK_EQ(p.page_size % 256, 0);
        CHECK_EQ(p.first_page_size % 256, 0);
    }
}

UNIT(policy, zeros_select_sizes_that_follow_use)
{
    const quire_page_policy given[] = {
        {0},
        {.dedicated_threshold = MIB, .retained_empty_bytes = 1, .retention_nanoseconds = 1},
        {.size_granularity = 512, .extra_padding = 1, .page_granularity = 4096},
        {.classes = {{100, 1000}}},
        {.dedicated = QUIRE_DEDICATED_NEVER},
    };
    for (uint32_t i = 0; i < ROWS(given); i++) {
        unit_note("row", i);
        quire_page_policy p = resolve(given[i]);
        CHECK_OK(qi_policy_validate(&given[i], &p));
        CHECK_EQ(p.growth, QI_GROWTH_USE);
        CHECK_EQ(p.first_page_size, MIB);
        CHECK_EQ(p.page_size, 32 * MIB);
        CHECK_EQ(p.max_page, 32 * MIB);
    }
}

UNIT(policy, an_explicit_size_growth_or_number_of_pages_excludes_them)
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
    for (uint32_t i = 0; i < ROWS(rows); i++) {
        unit_note("row", i);
        quire_page_policy p = resolve(rows[i].given);
        CHECK_OK(qi_policy_validate(&rows[i].given, &p));
        CHECK(p.growth != QI_GROWTH_USE);
        const uint64_t first = rows[i].first;
        CHECK_EQ(next_page(&p, (qi_page_history){.last = 0}), first);
        CHECK_EQ(next_page(&p, (qi_page_history){first, first, first, first, 0}), rows[i].second);
    }
}

UNIT(policy, a_fit_with_one_page_keeps_the_full_size)
{
    quire_page_policy p = resolve_for((quire_page_policy){0}, 64 * GIB, 256, true);
    CHECK_EQ(next_page(&p, (qi_page_history){.last = 0}), 32 * MIB);
}

UNIT(policy, contradictions_are_refused_with_their_numbers)
{
    static const struct {
        quire_page_policy given;
        const char *says;
    } rows[] = {
        {{.growth_percent = 1001}, "1001 percent: at most 1000"},
        {{.growth_percent = 50},
         "pages cannot grow by 50 percent: the first one, 32 MiB, is as large as"},
        {{.page_size = 4096, .max_page = 2048}, "largest page 2 KiB is below the page size 4 KiB"},
        {{.page_size = 1024, .first_page_size = 8192, .max_page = 4096}, "the first page's 8 KiB"},
        {{.dedicated = (quire_dedicated)3}, "no dedicated mode 3"},
        {{.dedicated = QUIRE_DEDICATED_NEVER, .dedicated_threshold = 1},
         "contradicts pages that are never dedicated"},
        {{.dedicated = QUIRE_DEDICATED_ALWAYS, .dedicated_threshold = 1},
         "contradicts one page per object"},
        {{.unused = {0, 1}}, "quire_page_policy.unused[1]"},
        {{.growth = QI_GROWTH_USE}, "there is no kind of growth 3"},
        {{.request_factor = 2}, "pages of 2 times the request"},
        {{.request_factor = 2,
          .growth = QUIRE_GROWTH_RESERVED,
          .growth_percent = 100,
          .max_page = GIB},
         "need pages that grow by steps"},
        {{.page_granularity = 3}, "granularity 3 is not a power"},
        {{.page_granularity = 1000}, "granularity 1000 is not"},
        {{.growth = QUIRE_GROWTH_RESERVED}, "need a growth percent"},
        {{.dedicated = QUIRE_DEDICATED_ALWAYS, .classes = {{1, 1}}},
         "contradict one page per object"},
        {{.dedicated = QUIRE_DEDICATED_ALWAYS, .growth = QUIRE_GROWTH_LARGEST},
         "contradict one page per object"},
        {{.dedicated = QUIRE_DEDICATED_ALWAYS,
          .growth_percent = 100,
          .max_page = GIB,
          .request_factor = 2},
         "contradict one page per object"},
        {{.classes = {{0, 4096}}}, "class 0 has pages of 4 KiB for no"},
        {{.classes = {{100, 4096}, {100, 4096}}},
         "class 1, up to 100 B, follows an unused class or is not above"},
        {{.classes = {{100, 4096}, {0, 0}, {200, 4096}}},
         "class 2, up to 200 B, follows an unused class"},
        {{.classes = {{1, 1}, {2, 2}, {3, 3}, {2, 2}}}, "class 3"},
        {{.classes = {{8192, 4096}}}, "class 0: no page of 4 KiB holds a request of 8 KiB"},
        {{.classes = {{100, 0}}}, "class 0: no page of 0 B"},
    };
    for (uint32_t i = 0; i < ROWS(rows); i++) {
        unit_note("row", i);
        quire_page_policy p = resolve(rows[i].given);
        CHECK_FAILS(qi_policy_validate(&rows[i].given, &p), QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_HAS(quire_last_error(), rows[i].says);
    }
}

UNIT(policy, the_limits_of_all_values_are_accepted)
{
    const quire_page_policy given[] = {
        {.growth_percent = 1000, .max_page = GIB, .max_pages = 1},
        {.dedicated = QUIRE_DEDICATED_ALWAYS},
        {.dedicated_threshold = UINT64_MAX},
    };
    for (uint32_t i = 0; i < ROWS(given); i++) {
        quire_page_policy p = resolve(given[i]);
        CHECK_OK(qi_policy_validate(&given[i], &p));
    }
}

/* ---- successive pages --------------------------------------------------------------------- */

UNIT(policy, pages_grow_step_by_step)
{
    static const struct {
        quire_page_policy given;
        uint64_t granularity, pages[13];
    } rows[] = {
        /* without growth the first page alone may differ */
        {{.page_size = 4096}, 256, {4096, 4096, 4096}},
        {{.page_size = 4096, .first_page_size = 1024}, 256, {1024, 4096, 4096}},
        {{.page_size = 1024, .first_page_size = 4096}, 256, {4096, 1024, 1024}},
        {{.page_size = 1024, .growth_percent = 100, .max_page = 5120},
         256,
         {1024, 2048, 4096, 5120, 5120}},
        {{.page_size = MIB,
          .first_page_size = 64 * KIB,
          .growth_percent = 300,
          .max_page = 2 * MIB},
         256,
         {64 * KIB, 256 * KIB, MIB, 2 * MIB, 2 * MIB}},
        /* without a largest page growth ends at the page size */
        {{.page_size = MIB, .first_page_size = 512 * KIB, .growth_percent = 50},
         256,
         {512 * KIB, 768 * KIB, MIB, MIB}},
        {{.page_size = 1024, .growth_percent = 10, .max_page = MIB},
         256,
         {1024, 1280, 1536, 1792, 2048, 2304, 2560, 2816, 3328}},
        {{.page_size = 1024, .growth_percent = 100, .max_page = 3000},
         256,
         {1024, 2048, 3072, 3072}},
        /* default sizes grow with the memory, in multiples of 64 KiB */
        {{0}, 256, {MIB, MIB, MIB, MIB, MIB, MIB, MIB, MIB, MIB, MIB, 1088 * KIB, 1216 * KIB}},
        {{0},
         2 * MIB,
         {2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB, 2 * MIB,
          4 * MIB}},
    };
    for (uint32_t i = 0; i < ROWS(rows); i++) {
        unit_note("row", i);
        quire_page_policy p = resolve_for(rows[i].given, 64 * GIB, rows[i].granularity, false);
        qi_page_history had = {.last = 0};
        for (const uint64_t *size = rows[i].pages; *size; size++) {
            had.last = qi_policy_next_page(&p, &had, rows[i].granularity);
            CHECK_EQ(had.last, *size);
            had.total = had.own += *size;
        }
    }
}

UNIT(policy, growth_that_overflows_ends_at_the_largest_page)
{
    quire_page_policy p = {.page_size = UINT64_C(1) << 62,
                           .first_page_size = UINT64_C(1) << 62,
                           .growth_percent = 1000,
                           .max_page = UINT64_C(1) << 63};
    for (uint64_t last = UINT64_C(1) << 62; last; last <<= 1)
        CHECK_EQ(next_page(&p, (qi_page_history){.last = last}), UINT64_C(1) << 63);
}

/* ---- sizes that follow use ------------------------------------------------------------------ */

/*
 * The bytes of all pages, those of the shard and the preallocated ones. At most 32 times the bytes
 * of the shard count.
 */
UNIT(policy, a_page_follows_the_bytes_that_are_reserved_now)
{
    static const struct {
        uint64_t heap, total, own, floor, size;
    } rows[] = {
        {64 * GIB, 1, 1, 0, MIB},
        {64 * GIB, 60 * MIB, 60 * MIB, 0,
         12544 * KIB}, /* 60 / 12 + 60 * 60 / 500 MiB are 12492 KiB */
        {64 * GIB, 108 * MIB, 108 * MIB, 0, 32 * MIB},
        {64 * GIB, UINT64_MAX, UINT64_MAX, 0, 32 * MIB},
        {96 * MIB, 96 * MIB, 96 * MIB, 0, 12 * MIB}, /* an eighth of the heap */
        {64 * GIB, GIB, 0, 0, MIB},
        {64 * GIB, 32 * MIB, 32 * MIB, 0, 4864 * KIB},
        {64 * GIB, GIB, MIB, 0, 4864 * KIB},
        {64 * GIB, GIB, 5 * MIB, 0, 32 * MIB},
        {64 * GIB, 36 * MIB, 36 * MIB, 0, 5760 * KIB},
        {64 * GIB, 36 * MIB, 2 * MIB, 0, 5760 * KIB},
        /* preallocated bytes have pages of their size */
        {64 * GIB, 0, 0, 1, MIB},
        {64 * GIB, 0, 0, MIB + 1, MIB + 64 * KIB},
        {64 * GIB, 0, 0, 20 * MIB, 20 * MIB},
        {64 * GIB, 0, 0, UINT64_MAX, 32 * MIB},
        {64 * GIB, 108 * MIB, 108 * MIB, 2 * MIB, 32 * MIB},
    };
    for (uint32_t i = 0; i < ROWS(rows); i++) {
        unit_note("row", i);
        quire_page_policy p = resolve_for((quire_page_policy){0}, rows[i].heap, 256, false);
        qi_page_history had = {.total = rows[i].total, .own = rows[i].own, .floor = rows[i].floor};
        CHECK_EQ(next_page(&p, had), rows[i].size);
        had.last = had.largest = 32 * MIB; /* of pages before, which do not count */
        CHECK_EQ(next_page(&p, had), rows[i].size);
    }
}

UNIT(policy, a_page_is_a_small_part_of_a_small_memory)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    for (uint64_t total = 10 * MIB; total <= GIB; total += MIB) {
        uint64_t size = next_page(&p, (qi_page_history){.total = total, .own = total});
        CHECK(size * 100 <= total * (total <= 30 * MIB ? 15 : 30));
        CHECK((size < 32 * MIB) == (total < 108 * MIB));
    }
}

UNIT(policy, a_larger_request_is_rounded_up_by_less_than_a_64th)
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
    for (uint32_t i = 0; i < ROWS(rows); i++)
        CHECK_EQ(qi_policy_page_for(&p, MIB, 1, rows[i][0], 256), rows[i][1]);
    CHECK_EQ(qi_policy_page_for(&p, 8 * MIB, 1, 2 * MIB, 256), 8 * MIB);
    CHECK_EQ(qi_policy_page_for(&p, 1, 1, 3, 1), 3); /* a heap of a few bytes */
}

/* Each is freed before the next: a page is made where none of the pages before it holds one. */
UNIT(policy, requests_that_grow_slowly_make_few_pages)
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

UNIT(policy, classes_decide_alone)
{
    quire_page_policy p = resolve((quire_page_policy){.classes = {{100, 65536}}});
    CHECK_EQ(qi_policy_page_for(&p, MIB, 100, 256, 256), 65536);
    CHECK_EQ(qi_policy_page_for(&p, MIB, 101, 256, 256), MIB);
}

/* The number of pages until the shards, in turn, have reserved `bytes`. */
static uint32_t pages_for(uint32_t shards, uint64_t bytes)
{
    quire_page_policy p = resolve((quire_page_policy){0});
    uint64_t own[64] = {0}, total = 0;
    uint32_t pages = 0;
    for (; total < bytes; pages++) {
        uint64_t *mine = &own[pages % shards];
        uint64_t size = next_page(&p, (qi_page_history){.total = total, .own = *mine});
        *mine += size;
        total += size;
    }
    return pages;
}

UNIT(policy, twenty_gibibytes_take_at_most_five_percent_more_pages_than_fixed_ones)
{
    const uint32_t fixed = 20 * 1024 / 32;
    CHECK(pages_for(1, 20 * GIB) <= fixed + fixed / 20);
    CHECK(pages_for(4, 20 * GIB) <= fixed + fixed / 20);
    CHECK(pages_for(16, 20 * GIB) <= fixed + fixed / 20);
}

/* ---- placed bytes ------------------------------------------------------------------------- */

/* Padding comes first and rounding after it; an expected size of 0 means an overflow. */
UNIT(policy, placed_bytes_are_padded_and_rounded)
{
    static const struct {
        uint64_t padding, granularity, given, expected;
    } rows[] = {
        {0, 1, 100, 100},
        {28, 1, 100, 128},
        {0, 512, 100, 512},
        {0, 512, 512, 512},
        {1, 512, 512, 1024},
        {32, 100, 100, 200}, /* multiples of any number */
        {0, 7, 50, 56},
        {0, 1, UINT64_MAX, UINT64_MAX},
        {1, 1, UINT64_MAX - 1, UINT64_MAX},
        {0, UINT64_MAX, 1, UINT64_MAX},
        {0, 5, UINT64_MAX, UINT64_MAX}, /* a multiple of 5 */
        {2, 1, UINT64_MAX - 1, 0},
        {0, 256, UINT64_MAX, 0},
        {UINT64_MAX, 256, 1, 0},
    };
    for (uint32_t i = 0; i < ROWS(rows); i++) {
        unit_note("row", i);
        quire_page_policy p = {.extra_padding = rows[i].padding,
                               .size_granularity = rows[i].granularity};
        uint64_t size = 1;
        CHECK_EQ(qi_policy_size_overflows(&p, rows[i].given, &size), !rows[i].expected);
        CHECK(!rows[i].expected || size == rows[i].expected);
    }
}
