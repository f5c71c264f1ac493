/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * candidate.c - the list contains every documented candidate and none without an effect; the C text
 * of a candidate sets exactly its options.
 */
#include "src/tool/candidate.h"

#include "tests/support/unit.h"

/* ---- candidates --------------------------------------------------------------------------- */

static const uint64_t MIB = UINT64_C(1) << 20;
static const uint64_t GIB = UINT64_C(1) << 30;

/* A trace of `peak` bytes in small ranges on a device without limits. */
static candidate_scope scope_of(uint64_t peak)
{
    return (candidate_scope){.peak_bytes = peak,
                             .largest = 256,
                             .least_page = 256,
                             .max_page = 1024 * GIB,
                             .fit = ANY_FIT};
}

typedef struct listed {
    candidate list[MAX_CANDIDATES];
    size_t count;
} listed;

static listed make(const candidate_scope *scope)
{
    listed l;
    l.count = make_candidates(scope, l.list);
    CHECK(l.count <= MAX_CANDIDATES);
    return l;
}

static bool has_size(const listed *l, uint64_t size)
{
    bool found = false;
    for (size_t i = 0; i < l->count; i++)
        found = found || (l->list[i].fit != QUIRE_FIT_LINEAR && l->list[i].page_size == size);
    return found;
}

static size_t count_fit(const listed *l, quire_fit fit)
{
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++)
        count += l->list[i].fit == fit && !l->list[i].elastic;
    return count;
}

static bool is_same(const candidate *a, const candidate *b)
{
    return a->fit == b->fit && a->elastic == b->elastic && a->retention == b->retention &&
           a->page_size == b->page_size && a->first_page_size == b->first_page_size &&
           a->dedicated_threshold == b->dedicated_threshold &&
           a->reserved_percent == b->reserved_percent && a->retained_bytes == b->retained_bytes;
}

/* ---- the list ------------------------------------------------------------------------------- */

UNIT(candidate, the_default_stands_first)
{
    candidate_scope scope = scope_of(10 * GIB);
    listed l = make(&scope);
    CHECK_EQ(candidate_options_set(&l.list[0]), 0);
    for (size_t i = 1; i < l.count; i++)
        CHECK(candidate_options_set(&l.list[i]) > 0);
}

UNIT(candidate, no_two_are_the_same)
{
    candidate_scope scope = scope_of(2 * GIB);
    scope.largest = GIB;
    scope.elastic = true;
    listed l = make(&scope);
    for (size_t i = 0; i < l.count; i++)
        for (size_t k = 0; k < i; k++)
            CHECK(!is_same(&l.list[i], &l.list[k]));
}

UNIT(candidate, every_fit_page_size_and_policy_is_listed)
{
    candidate_scope scope = scope_of(6 * GIB);
    scope.largest = GIB;
    scope.elastic = true;
    listed l = make(&scope);
    for (int fit = 0; fit < 3; fit++) {
        static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
        CHECK_EQ(count_fit(&l, fits[fit]), 3 + 3 * 3 + 8 * 2 * 2 * 3); /* by use, by shares */
    }
    CHECK_EQ(l.count, MAX_CANDIDATES);
    CHECK(has_size(&l, 0));
    for (uint64_t size = 2 * MIB; size <= 256 * MIB; size *= 2)
        CHECK(has_size(&l, size));
}

/* The largest size holds everything on one page; the default is always listed, for comparison. */
UNIT(candidate, page_sizes_suit_the_trace_and_the_device)
{
    static const struct {
        uint64_t peak, least_page, max_page;
        uint32_t max_pages; /* 0: the 4096 that are announced */
        uint64_t from, to;  /* MiB */
    } rows[] = {
        {UINT64_C(5) << 20, 256, UINT64_C(1) << 40, 0, 2, 8},
        {UINT64_C(8) << 20, 256, UINT64_C(1) << 40, 0, 2, 8},
        {1, 256, UINT64_C(1) << 40, 0, 2, 2},
        {UINT64_C(64) << 30, 256, UINT64_C(1) << 40, 0, 16, 256},
        {UINT64_C(64) << 30, 256, UINT64_C(1) << 40, 1000, 128, 256},
        {UINT64_C(64) << 30, 256, 64 << 20, 100000, 2, 64},
        {UINT64_C(64) << 30, 4 << 20, 64 << 20, 100000, 4, 64},
    };
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        candidate_scope scope = scope_of(rows[i].peak);
        unit_note("row", i);
        scope.least_page = rows[i].least_page;
        scope.max_page = rows[i].max_page;
        scope.max_pages = rows[i].max_pages;
        listed l = make(&scope);
        CHECK(has_size(&l, 0));
        for (uint64_t size = 1; size <= 512; size *= 2)
            CHECK_EQ(has_size(&l, size * MIB), size >= rows[i].from && size <= rows[i].to);
    }
}

UNIT(candidate, no_dedicated_threshold_exceeds_every_range)
{
    candidate_scope scope = scope_of(GIB);
    scope.largest = 16 * MIB;
    listed l = make(&scope);
    for (size_t i = 0; i < l.count; i++)
        CHECK(l.list[i].dedicated_threshold <= 16 * MIB);
    scope.largest = 1;
    l = make(&scope);
    for (size_t i = 0; i < l.count; i++)
        CHECK_EQ(l.list[i].dedicated_threshold, 0);
}

UNIT(candidate, doubling_pages_need_a_second_page)
{
    candidate_scope scope = scope_of(3 * MIB);
    listed l = make(&scope);
    for (size_t i = 0; i < l.count; i++) {
        CHECK(l.list[i].first_page_size < 3 * MIB);
        CHECK(!l.list[i].first_page_size || l.list[i].reserved_percent ||
              l.list[i].first_page_size < l.list[i].page_size);
    }
}

/* The default page size, at most an eighth of the heap, must exceed the first page. */
UNIT(candidate, growth_by_shares_needs_room)
{
    static const struct {
        uint64_t least_page, max_page, first_page; /* MiB; no first page: not listed */
    } rows[] = {{1, 16, 1}, {1, 15, 0}, {2, 32, 2}, {2, 31, 0}, {1, 1024, 1}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        candidate_scope scope = scope_of(GIB);
        unit_note("row", i);
        scope.least_page = rows[i].least_page * MIB;
        scope.max_page = rows[i].max_page * MIB;
        scope.max_pages = 100000;
        listed l = make(&scope);
        size_t shares = 0;
        for (size_t k = 0; k < l.count; k++) {
            if (!l.list[k].reserved_percent)
                continue;
            shares++;
            CHECK_EQ(l.list[k].first_page_size, rows[i].first_page * MIB);
            CHECK_EQ(l.list[k].page_size, 0);
        }
        CHECK_EQ(shares, rows[i].first_page ? 3 * 3 * 3 : 0);
    }
}

UNIT(candidate, retention_is_whole_pages_and_less_than_the_total)
{
    candidate_scope scope = scope_of(10 * GIB);
    listed l = make(&scope);
    size_t some = 0;
    for (size_t i = 0; i < l.count; i++) {
        const candidate *c = &l.list[i];
        bool is_some = c->retention == RETENTION_SOME;
        CHECK_EQ(c->retained_bytes != 0, is_some);
        CHECK(c->retained_bytes < scope.peak_bytes);
        CHECK_EQ(c->retained_bytes % (c->page_size ? c->page_size : MIB), 0);
        some += is_some;
    }
    CHECK(some > 0);
}

UNIT(candidate, the_callers_choice_restricts_the_list)
{
    candidate_scope scope = scope_of(GIB);
    scope.fit = QUIRE_FIT_BUDDY;
    scope.page_size = 3 * MIB;
    listed l = make(&scope);
    CHECK(l.count > 0);
    for (size_t i = 0; i < l.count; i++)
        CHECK(l.list[i].fit == QUIRE_FIT_BUDDY && l.list[i].page_size == 3 * MIB);
    scope.fit = QUIRE_FIT_LINEAR;
    l = make(&scope);
    CHECK_EQ(l.count, 1);
    CHECK_EQ(l.list[0].page_size, 3 * MIB);
}

UNIT(candidate, the_linear_page_holds_the_peak)
{
    candidate_scope scope = scope_of(9 * MIB + 1);
    scope.fit = QUIRE_FIT_LINEAR;
    listed l = make(&scope);
    CHECK_EQ(l.count, 3);
    CHECK_EQ(l.list[0].page_size, 10 * MIB);
    CHECK_EQ(l.list[1].page_size, 16 * MIB); /* 7.5 units of 2 MiB */
    CHECK_EQ(l.list[2].page_size, 20 * MIB);
    scope.max_page = 10 * MIB;
    l = make(&scope);
    CHECK_EQ(l.count, 1);
    scope.max_page = 8 * MIB;
    l = make(&scope);
    CHECK_EQ(l.count, 0);
}

/* A memory with the linear fit has one page, so that a run with a higher peak fails. */
UNIT(candidate, every_candidate_can_create_another_page)
{
    for (uint64_t peak = 1; peak <= 64 * GIB; peak *= 2) {
        candidate_scope scope = scope_of(peak);
        listed l = make(&scope);
        CHECK(l.count > 0);
        CHECK_EQ(count_fit(&l, QUIRE_FIT_LINEAR), 0);
    }
}

UNIT(candidate, the_largest_numbers_do_not_overflow)
{
    candidate_scope scope = scope_of(UINT64_MAX);
    scope.largest = UINT64_MAX;
    scope.max_page = UINT64_MAX;
    listed l = make(&scope);
    CHECK(l.count > 0);
    scope.fit = QUIRE_FIT_LINEAR;
    l = make(&scope);
    for (size_t i = 0; i < l.count; i++)
        CHECK(l.list[i].page_size > UINT64_MAX / 2);
    scope.fit = ANY_FIT;
    scope.page_size = UINT64_MAX;
    l = make(&scope);
    CHECK(l.count > 0);
}

/* ---- options and text ----------------------------------------------------------------------- */

UNIT(candidate, the_defaults_set_no_option)
{
    candidate c = {.page_size = 0};
    CHECK_STR(candidate_pages_text(&c).text, "by use");
    CHECK_STR(candidate_policy_text(&c).text, "default");
    CHECK_STR(candidate_c_text(&c).text, "quire_memory_options options = {0};\n");
    quire_memory_options options = candidate_options(&c);
    CHECK_EQ(options.pages.retained_empty_bytes, 0);
    CHECK_EQ(options.pages.growth_percent, 0);
    CHECK_EQ(options.pages.page_size, 0);
}

UNIT(candidate, a_fit_alone_sets_no_page_policy)
{
    candidate c = {.fit = QUIRE_FIT_FIRST};
    CHECK_STR(candidate_c_text(&c).text, "quire_memory_options options = {\n"
                                         "    .fit.algorithm = QUIRE_FIT_FIRST,\n"
                                         "};\n");
}

UNIT(candidate, every_option_is_written_in_words_and_in_c)
{
    candidate c = {.fit = QUIRE_FIT_BUDDY,
                   .retention = RETENTION_SOME,
                   .page_size = 64 * MIB,
                   .first_page_size = 8 * MIB + 512 * 1024,
                   .dedicated_threshold = 32 * MIB,
                   .retained_bytes = 128 * MIB};
    CHECK_EQ(candidate_options_set(&c), 5);
    CHECK_STR(
        candidate_policy_text(&c).text,
        "doubling from 8.50 MiB, dedicated from 32 MiB, keeps at most 128 MiB of empty pages");
    CHECK_STR(candidate_pages_text(&c).text, "64 MiB");
    CHECK_STR(candidate_c_text(&c).text,
              "quire_memory_options options = {\n"
              "    .fit.algorithm = QUIRE_FIT_BUDDY,\n"
              "    .pages = {\n"
              "        .page_size = UINT64_C(64) << 20, /* 64 MiB */\n"
              "        .first_page_size = UINT64_C(8704) << 10, /* 8.50 MiB */\n"
              "        .growth_percent = 100,\n"
              "        .dedicated_threshold = UINT64_C(32) << 20, /* 32 MiB */\n"
              "        .retained_empty_bytes = UINT64_C(128) << 20, /* 128 MiB */\n"
              "    },\n"
              "};\n");
    quire_memory_options options = candidate_options(&c);
    CHECK_EQ(options.fit.algorithm, QUIRE_FIT_BUDDY);
    CHECK_EQ(options.pages.page_size, 64 * MIB);
    CHECK_EQ(options.pages.first_page_size, 8704 * 1024);
    CHECK_EQ(options.pages.growth_percent, 100);
    CHECK_EQ(options.pages.dedicated_threshold, 32 * MIB);
    CHECK_EQ(options.pages.retained_empty_bytes, 128 * MIB);
}

UNIT(candidate, growth_by_shares_is_one_option)
{
    candidate c = {.first_page_size = MIB, .reserved_percent = 12};
    CHECK_EQ(candidate_options_set(&c), 1);
    CHECK_STR(candidate_pages_text(&c).text, "+12 %");
    CHECK_STR(candidate_policy_text(&c).text, "growing by 12 % of all pages from 1 MiB");
    CHECK_STR(candidate_c_text(&c).text,
              "quire_memory_options options = {\n"
              "    .pages = {\n"
              "        .first_page_size = UINT64_C(1) << 20, /* 1 MiB */\n"
              "        .growth_percent = 12,\n"
              "        .growth = QUIRE_GROWTH_RESERVED,\n"
              "    },\n"
              "};\n");
    quire_memory_options options = candidate_options(&c);
    CHECK_EQ(options.pages.first_page_size, MIB);
    CHECK_EQ(options.pages.growth_percent, 12);
    CHECK_EQ((uint32_t)options.pages.growth, (uint32_t)QUIRE_GROWTH_RESERVED);
}

UNIT(candidate, retentions_are_written_differently)
{
    candidate c = {.retention = RETENTION_NONE, .page_size = 1000};
    CHECK_EQ(candidate_options(&c).pages.retained_empty_bytes, 1);
    CHECK_HAS(candidate_c_text(&c).text, ".retained_empty_bytes = 1,");
    CHECK_HAS(candidate_c_text(&c).text, ".page_size = UINT64_C(1000),");
    CHECK_STR(candidate_policy_text(&c).text, "keeps no empty pages");
    c.retention = RETENTION_SOME;
    c.retained_bytes = 3000;
    CHECK_EQ(candidate_options(&c).pages.retained_empty_bytes, 3000);
    CHECK_HAS(candidate_c_text(&c).text, ".retained_empty_bytes = UINT64_C(3000),");
}

/* The longest text that any candidate has fits. */
UNIT(candidate, no_text_is_cut)
{
    candidate c = {.fit = QUIRE_FIT_LINEAR,
                   .retention = RETENTION_SOME,
                   .page_size = UINT64_MAX - MIB + 1,
                   .first_page_size = UINT64_MAX - MIB + 1,
                   .dedicated_threshold = UINT64_MAX - MIB + 1,
                   .retained_bytes = UINT64_MAX - MIB + 1};
    CHECK_HAS(candidate_c_text(&c).text, "    },\n};\n");
    CHECK_HAS(candidate_policy_text(&c).text, " of empty pages");
}
