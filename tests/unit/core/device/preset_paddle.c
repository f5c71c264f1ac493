/*
 * preset_paddle.c - the policies of PaddlePaddle's strategies create the pages that the formulas of
 * docs/policies.md give, table by table.
 */
#include "tests/support/course.h"

static quire_page_policy paddle(quire_paddle_strategy strategy, quire_paddle_sizes sizes)
{
    quire_page_policy policy;
    CHECK_OK(quire_page_policy_paddle(strategy, &sizes, &policy));
    return policy;
}

static const quire_paddle_strategy AUTO = QUIRE_PADDLE_AUTO_GROWTH,
                                   NAIVE = QUIRE_PADDLE_NAIVE_BEST_FIT;

#define CASE(name, ...)                                                                            \
    UNIT_ON(preset_paddle, name, fixture, b, open_heap(b, __VA_ARGS__), fixture_end)

CASE(auto_growth_creates_pages_of_a_request_or_of_a_chunk, 1 * GIB)
{
    quire_paddle_sizes npu = {.min_chunk = 512, .extra_padding = 32};
    EXPECT_FIRST(b, paddle(AUTO, npu), {1, 512, false}, {480, 512, false}, {481, 1024, false},
                 {1 * MIB, 1 * MIB + 512, false});
    quire_memory_destroy_all(&b->memory);
    npu.chunk = 1 * MIB;
    EXPECT_FIRST(b, paddle(AUTO, npu), {1, 1 * MIB, false}, {1 * MIB - 32, 1 * MIB, false},
                 {1 * MIB - 31, 1 * MIB + 512, false});
    EXPECT_COURSE(b, {500 * KIB, 1 * MIB, false}, {500 * KIB, 0, false},
                  {500 * KIB, 1 * MIB, false});
}

/* size' and the chunk, for every number min_chunk; pages are multiples of 256 here. */
CASE(auto_growth_rounds_to_any_min_chunk, 1 * GIB)
{
    quire_page_policy odd =
        paddle(AUTO, (quire_paddle_sizes){.min_chunk = 1000, .extra_padding = 7, .chunk = 10500});
    CHECK_EQ(odd.page_size, 11000);
    CHECK_OK(quire_memory_create(
        b->device, &(quire_memory_options){.fit.algorithm = QUIRE_FIT_FIRST, .pages = odd},
        &b->memory));
    EXPECT_COURSE(b, {1, 11008, false}, {20000, 21248, false});
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 993)).size, 1000);
    CHECK_EQ(fixture_info(b, ALLOCATE(b, .size = 994)).size, 2000);
    CHECK_EQ(paddle(AUTO, (quire_paddle_sizes){0}).page_size, 1);
    CHECK_EQ(paddle(AUTO, (quire_paddle_sizes){.min_chunk = 4096}).page_size, 4096);
}

CASE(naive_best_fit_counts_the_64_bytes_of_a_descriptor, 1 * GIB)
{
    /* Paddle's test device in a build without CUDA and HIP: every page is max_chunk */
    const quire_paddle_sizes fake_cpu = {.min_chunk = 4096, .max_chunk = 64 * KIB};
    EXPECT_FIRST(b, paddle(NAIVE, fake_cpu), {1, 64 * KIB, false}, {4032, 64 * KIB, false},
                 {64 * KIB - 64, 64 * KIB, false}, {64 * KIB - 63, 68 * KIB, true},
                 {1 * MIB, 1 * MIB + 4096, true});
    for (int i = 0; i < 8; i++) /* 2 x 4096 each */
        EXPECT_COURSE(b, {4033, i ? 0 : 64 * KIB, false});
    EXPECT_COURSE(b, {4032, 64 * KIB, false});
}

CASE(naive_best_fit_without_max_chunk_pools_nothing, 1 * GIB)
{
    quire_paddle_sizes gcu = {.min_chunk = 256, .extra_padding = 32, .init_alloc = 1 * MIB};
    EXPECT_FIRST(b, paddle(NAIVE, gcu), {1, 256, true}, {160, 256, true}, {161, 512, true},
                 {1 * MIB, 1 * MIB + 256, true});
    quire_memory_destroy_all(&b->memory);
    gcu.max_chunk = 511; /* 256 is the only smaller size */
    CHECK_EQ(paddle(NAIVE, gcu).dedicated_threshold, 161);
    gcu.max_chunk = 255;
    CHECK_EQ(paddle(NAIVE, gcu).dedicated, QUIRE_DEDICATED_ALWAYS);
    gcu.min_chunk = 1;
    gcu.max_chunk = 96;
    CHECK_EQ(paddle(NAIVE, gcu).dedicated, QUIRE_DEDICATED_ALWAYS);
    gcu.max_chunk = 97;
    CHECK_EQ(paddle(NAIVE, gcu).dedicated_threshold, 2);
    make(b, paddle(NAIVE, gcu));
}

CASE(naive_best_fit_compares_rounded_sizes, 1 * GIB)
{
    const quire_paddle_sizes odd = {.min_chunk = 1000, .max_chunk = 4999};
    EXPECT_FIRST(b, paddle(NAIVE, odd), {3936, 5120, false}, {3937, 5120, true});
}

CASE(naive_best_fit_starts_with_init_and_continues_with_realloc, 1 * GIB)
{
    quire_paddle_sizes gpu = {
        .min_chunk = 256, .max_chunk = 2 * MIB, .init_alloc = 4 * MIB, .re_alloc = 1 * MIB};
    make(b, paddle(NAIVE, gpu));
    quire_allocation made[5];
    made[0] = expect_row(b, (row){2 * MIB - 64, 4 * MIB, false});
    made[1] = expect_row(b, (row){2 * MIB - 64, 0, false});
    made[2] = expect_row(b, (row){1000, 1 * MIB, false});
    made[3] = expect_row(b, (row){2 * MIB - 64, 2 * MIB, false}); /* at least size' */
    made[4] = expect_row(b, (row){2 * MIB, 2 * MIB + 256, true});
    for (int i = 0; i < 5; i++)
        CHECK_OK(quire_free(b->memory, made[i]));
    CHECK_OK(quire_memory_trim(b->memory, 0, NULL));
    EXPECT_COURSE(b, {1000, 4 * MIB, false}); /* from the first size again */
    quire_memory_destroy_all(&b->memory);
    gpu.max_alloc = 3 * MIB;
    make(b, paddle(NAIVE, gpu));
    EXPECT_COURSE(b, {1000, 3 * MIB, false});
    gpu.chunk = 0;
    CHECK_EQ(paddle(AUTO, gpu).page_size, 256);
    gpu.chunk = 4 * MIB;
    CHECK_EQ(paddle(AUTO, gpu).page_size, 3 * MIB);
}

UNIT(preset_paddle, invalid_options_are_refused)
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    quire_page_policy p;
    quire_paddle_sizes sizes = {.chunk = 1};
    CHECK_FAILS(quire_page_policy_paddle(NAIVE, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "a chunk of 1 B is given: naive_best_fit has none");
    sizes = (quire_paddle_sizes){.min_chunk = 512, .chunk = UINT64_MAX};
    CHECK_FAILS(quire_page_policy_paddle(AUTO, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "cannot be rounded up to a multiple of 512");
    sizes = (quire_paddle_sizes){.extra_padding = UINT64_MAX - 63};
    CHECK_FAILS(quire_page_policy_paddle(NAIVE, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "bytes of padding and 64 of a descriptor exceed 64 bits");
    sizes = (quire_paddle_sizes){.unused = {0, 0, 1}};
    CHECK_FAILS(quire_page_policy_paddle(AUTO, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "quire_paddle_sizes.unused[2]");
    sizes = (quire_paddle_sizes){0};
    CHECK_FAILS(quire_page_policy_paddle((quire_paddle_strategy)2, &sizes, &p), invalid);
    CHECK_HAS(quire_last_error(), "there is no strategy 2");
}
