/*
 * policy.c - page policies: the meaning of 0, what is refused, the sizes of successive pages, and
 * the bytes placed for a request.
 */
#include "tests/support/unit.h"

#include "src/core/device/policy.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (MIB * KIB)

/* A device with the members that policies read. */
static quire_device device_with(uint64_t heap, uint64_t granularity)
{
    quire_device device = {.info = {.heap_count = 2, .kind_count = 2}};
    device.info.heaps[0].size = 1; /* of the other kind */
    device.info.heaps[1].size = heap;
    device.info.kinds[1].heap = 1;
    device.info.limits.page_granularity = granularity;
    return device;
}

static quire_page_policy resolve(quire_page_policy given, uint64_t heap, uint64_t granularity)
{
    quire_device device = device_with(heap, granularity);
    return qi_policy_resolve(&given, &device, 1, false);
}

/* ---- defaults ----------------------------------------------------------------------------- */

UNIT(policy, pages_are_at_most_32_mib_in_a_large_heap)
{
    quire_page_policy given = {0}, p = resolve(given, 8 * GIB, 256);
    CHECK_EQ(p.page_size, 32 * MIB);
    CHECK_EQ(p.max_page, 32 * MIB);
    CHECK_EQ(p.size_granularity, 1);
    CHECK_EQ(p.max_pages, 0);
    CHECK_EQ(p.dedicated_threshold, 0);
    CHECK_OK(qi_policy_validate(&given, &p));
    CHECK_EQ(resolve((quire_page_policy){0}, 256 * MIB, 256).page_size, 32 * MIB);
}

UNIT(policy, pages_are_an_eighth_of_a_small_heap_rounded_down)
{
    CHECK_EQ(resolve((quire_page_policy){0}, 256 * MIB - 8, 256).page_size, 32 * MIB - 256);
    CHECK_EQ(resolve((quire_page_policy){0}, 64 * MIB, 256).page_size, 8 * MIB);
    CHECK_EQ(resolve((quire_page_policy){0}, 100 * MIB, 2 * MIB).page_size, 12 * MIB);
    CHECK_EQ(resolve((quire_page_policy){0}, 16 * MIB, 2 * MIB).page_size, 2 * MIB);
}

UNIT(policy, pages_of_a_tiny_heap_have_the_granularity)
{
    /* an eighth is less than the granularity, which is far below 32 MiB */
    CHECK_EQ(resolve((quire_page_policy){0}, 15 * MIB, 2 * MIB).page_size, 2 * MIB);
    CHECK_EQ(resolve((quire_page_policy){0}, 1000, 256).page_size, 256);
}

UNIT(policy, given_sizes_apply_to_every_heap)
{
    quire_page_policy p = resolve((quire_page_policy){.page_size = 4 * GIB}, 1 * GIB, 256);
    CHECK_EQ(p.page_size, 4 * GIB);
    CHECK_EQ(p.first_page_size, 4 * GIB);
    CHECK_EQ(p.max_page, 4 * GIB);
}

UNIT(policy, sizes_are_rounded_up_to_the_granularity)
{
    const quire_page_policy given = {.page_size = 5000, .first_page_size = 1};
    quire_page_policy p = resolve(given, GIB, 4096);
    CHECK_EQ(p.page_size, 8192);
    CHECK_EQ(p.first_page_size, 4096);
    CHECK_OK(qi_policy_validate(&given, &p));
}

UNIT(policy, a_size_that_cannot_be_rounded_up_never_reaches_a_backend)
{
    const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 254};
    for (int i = 0; i < 4; i++) {
        quire_page_policy given = {.page_size = i & 1 ? sizes[i / 2] : 4096,
                                   .first_page_size = i & 1 ? 4096 : sizes[i / 2]};
        quire_page_policy p = resolve(given, GIB, 256);
        if (qi_policy_validate(&given, &p))
            continue;
        CHECK_EQ(p.page_size % 256, 0);
        CHECK_EQ(p.first_page_size % 256, 0);
    }
}

UNIT(policy, a_largest_page_given_as_the_page_size_is_no_contradiction)
{
    const quire_page_policy given = {.page_size = 1000, .max_page = 1000};
    quire_page_policy p = resolve(given, GIB, 256);
    CHECK_OK(qi_policy_validate(&given, &p));
    CHECK_EQ(p.page_size, 1024);
}

UNIT(policy, the_largest_page_is_the_larger_of_the_two_sizes)
{
    quire_page_policy p =
        resolve((quire_page_policy){.page_size = 4096, .first_page_size = 16384}, GIB, 256);
    CHECK_EQ(p.max_page, 16384);
    p = resolve((quire_page_policy){.page_size = 16384, .first_page_size = 4096}, GIB, 256);
    CHECK_EQ(p.max_page, 16384);
}

static void expect_refused(quire_page_policy given, quire_result code, const char *says)
{
    quire_page_policy p = resolve(given, GIB, 256);
    CHECK_FAILS(qi_policy_validate(&given, &p), code);
    CHECK_HAS(quire_last_error(), says);
}

UNIT(policy, contradictions_are_refused_with_their_numbers)
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    expect_refused((quire_page_policy){.growth_percent = 1001}, invalid,
                   "1001 percent: at most 1000");
    expect_refused((quire_page_policy){.growth_percent = 50}, invalid,
                   "pages cannot grow by 50 percent: the first one, 32 MiB, is as large as");
    expect_refused((quire_page_policy){.page_size = 4096, .max_page = 2048}, invalid,
                   "largest page 2 KiB is below the page size 4 KiB");
    expect_refused(
        (quire_page_policy){.page_size = 1024, .first_page_size = 8192, .max_page = 4096}, invalid,
        "the first page's 8 KiB");
    expect_refused((quire_page_policy){.dedicated = (quire_dedicated)3}, invalid,
                   "no dedicated mode 3");
    expect_refused(
        (quire_page_policy){.dedicated = QUIRE_DEDICATED_NEVER, .dedicated_threshold = 1}, invalid,
        "contradicts pages that are never dedicated");
    expect_refused(
        (quire_page_policy){.dedicated = QUIRE_DEDICATED_ALWAYS, .dedicated_threshold = 1}, invalid,
        "contradicts one page per object");
    expect_refused((quire_page_policy){.unused = {0, 1}}, invalid, "quire_page_policy.unused[1]");
}

UNIT(policy, the_limits_of_all_values_are_accepted)
{
    const quire_page_policy given[] = {
        {.growth_percent = 1000, .max_page = GIB, .max_pages = 1},
        {.dedicated = QUIRE_DEDICATED_ALWAYS},
        {.dedicated_threshold = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        quire_page_policy p = resolve(given[i], GIB, 256);
        CHECK_OK(qi_policy_validate(&given[i], &p));
    }
}

/* ---- successive pages --------------------------------------------------------------------- */

#define EXPECT_PAGES(policy, ...)                                                                  \
    expect_pages((policy), (const uint64_t[]){__VA_ARGS__},                                        \
                 sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void expect_pages(quire_page_policy given, const uint64_t *sizes, size_t count)
{
    quire_page_policy p = resolve(given, 64 * GIB, 256);
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        last = qi_policy_next_page(&p, &(qi_page_history){.last = last}, 256);
        CHECK_EQ(last, sizes[i]);
    }
}

UNIT(policy, without_growth_the_first_page_alone_may_differ)
{
    const quire_page_policy even = {.page_size = 4096},
                            small = {.page_size = 4096, .first_page_size = 1024},
                            large = {.page_size = 1024, .first_page_size = 4096};
    EXPECT_PAGES(even, 4096, 4096, 4096);
    EXPECT_PAGES(small, 1024, 4096, 4096);
    EXPECT_PAGES(large, 4096, 1024, 1024);
}

UNIT(policy, growth_continues_from_the_first_page_to_the_largest)
{
    const quire_page_policy doubling = {.page_size = 1024, .growth_percent = 100, .max_page = 5120};
    EXPECT_PAGES(doubling, 1024, 2048, 4096, 5120, 5120);
    const quire_page_policy fourfold = {.page_size = 1 * MIB,
                                        .first_page_size = 64 * KIB,
                                        .growth_percent = 300,
                                        .max_page = 2 * MIB};
    EXPECT_PAGES(fourfold, 64 * KIB, 256 * KIB, 1 * MIB, 2 * MIB, 2 * MIB);
}

UNIT(policy, without_a_largest_page_growth_ends_at_the_page_size)
{
    const quire_page_policy half = {
        .page_size = 1 * MIB, .first_page_size = 512 * KIB, .growth_percent = 50};
    EXPECT_PAGES(half, 512 * KIB, 768 * KIB, 1 * MIB, 1 * MIB);
}

UNIT(policy, grown_pages_are_rounded_up_to_the_granularity)
{
    const quire_page_policy slow = {.page_size = 1024, .growth_percent = 10, .max_page = MIB};
    EXPECT_PAGES(slow, 1024, 1280, 1536, 1792, 2048, 2304, 2560, 2816, 3328);
}

UNIT(policy, the_largest_page_is_rounded_too)
{
    const quire_page_policy odd = {.page_size = 1024, .growth_percent = 100, .max_page = 3000};
    EXPECT_PAGES(odd, 1024, 2048, 3072, 3072);
    quire_page_policy p =
        resolve((quire_page_policy){.page_size = 4096, .max_page = 9000}, GIB, 4096);
    CHECK_EQ(p.max_page, 12288);
}

UNIT(policy, growth_that_overflows_ends_at_the_largest_page)
{
    quire_page_policy p = {.page_size = UINT64_C(1) << 62,
                           .first_page_size = UINT64_C(1) << 62,
                           .growth_percent = 1000,
                           .max_page = UINT64_C(1) << 63};
    for (uint64_t last = UINT64_C(1) << 62; last; last <<= 1)
        CHECK_EQ(qi_policy_next_page(&p, &(qi_page_history){.last = last}, 256), UINT64_C(1) << 63);
}

static void expect_size(uint64_t padding, uint64_t granularity, uint64_t given, uint64_t expected)
{
    quire_page_policy p = {.extra_padding = padding, .size_granularity = granularity};
    uint64_t size = 1;
    CHECK(!qi_policy_size_overflows(&p, given, &size));
    CHECK_EQ(size, expected);
}

UNIT(policy, padding_comes_first_and_rounding_after_it)
{
    expect_size(0, 1, 100, 100);
    expect_size(28, 1, 100, 128);
    expect_size(0, 512, 100, 512);
    expect_size(0, 512, 512, 512);
    expect_size(1, 512, 512, 1024);
    expect_size(32, 100, 100, 200); /* multiples of any number */
    expect_size(0, 7, 50, 56);
    expect_size(0, 1, UINT64_MAX, UINT64_MAX);
    expect_size(1, 1, UINT64_MAX - 1, UINT64_MAX);
    expect_size(0, UINT64_MAX, 1, UINT64_MAX);
    expect_size(0, 5, UINT64_MAX, UINT64_MAX); /* a multiple of 5 */
}

UNIT(policy, sizes_that_overflow_are_reported)
{
    uint64_t size = 0;
    quire_page_policy p = {.extra_padding = 2, .size_granularity = 1};
    CHECK(qi_policy_size_overflows(&p, UINT64_MAX - 1, &size));
    p = (quire_page_policy){.size_granularity = 256};
    CHECK(qi_policy_size_overflows(&p, UINT64_MAX, &size));
    p = (quire_page_policy){.extra_padding = UINT64_MAX, .size_granularity = 256};
    CHECK(qi_policy_size_overflows(&p, 1, &size));
}
