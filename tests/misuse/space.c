/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space.c - every wrong use of quire/space.h and quire/trace.h: the documented code, a
 * sentence, zeroed outputs, nothing changed. Spaces are tried with every fit.
 */
#include <stdio.h>

#include "quire/trace.h"
#include "tests/misuse/misuse.h"
#include "tests/support/state.h"

#define KIB UINT64_C(1024)

static bench b;
static quire_fit fit;
static quire_space *other;
static quire_range live, stale, reused, foreign;

/* ---- the space under test ------------------------------------------------------------------- */

static quire_range allocate(quire_space *space, uint64_t size)
{
    quire_placement at;
    CHECK_OK(quire_space_allocate(space, size, 1, 77, &at));
    return at.range;
}

/* The other fits are exact to the byte. */
static bool takes_granule(void)
{
    return fit == QUIRE_FIT_SEGREGATED || fit == QUIRE_FIT_BUDDY;
}

static void begin(void)
{
    const quire_space_options options = {
        .fit = {.algorithm = fit, .granule = takes_granule() ? 256 : 1}, .size = 64 * KIB};
    bench_begin(&b, true);
    CHECK_OK(quire_space_create(&options, &b.space));
    CHECK_OK(quire_space_create(&options, &other));
    stale = allocate(b.space, 1000);
    reused = allocate(b.space, 3000);
    CHECK_OK(quire_space_free(b.space, reused));
    CHECK_OK(quire_space_free(b.space, stale));
    live = allocate(b.space, 3000);
    allocate(b.space, 500);
    foreign = allocate(other, 2000);
    refusal_begin(&b);
}

static void end(void)
{
    quire_space_destroy(&other);
    bench_end(&b);
}

static void with_every_fit(void (*body)(void))
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY,
                                     QUIRE_FIT_LINEAR};
    for (size_t i = 0; i < sizeof fits / sizeof *fits; i++) {
        fit = fits[i];
        begin();
        body();
        end();
    }
}

/* ---- creation ------------------------------------------------------------------------------- */

static void *one_sided_allocate(void *user, size_t size, size_t alignment)
{
    (void)user, (void)size, (void)alignment;
    return NULL;
}

static void one_sided_release(void *user, void *pointer, size_t size, size_t alignment)
{
    (void)user, (void)pointer, (void)size, (void)alignment;
}

static void refuse_options(quire_result code, const quire_space_options *options)
{
    quire_space *made;
    REFUSE_OUT(code, made, quire_space_create(options, &made));
}

/* Options of the segregated fit only. */
static void options_of_one_fit(void)
{
    const quire_space_options options[] = {
        {.fit = {.algorithm = fit, .least_fragmentation = true}, .size = 64 * KIB},
        {.fit = {.algorithm = fit, .slabs = true}, .size = 64 * KIB},
    };
    for (int i = 0; i < 2 && fit != QUIRE_FIT_SEGREGATED; i++) {
        refuse_options(INVALID, &options[i]);
        CHECK_HAS(quire_last_error(), "need the segregated fit");
    }
}

static void creation(void)
{
    static const quire_host_memory halves[] = {{.allocate = one_sided_allocate},
                                               {.release = one_sided_release}};
    const uint64_t unlike = takes_granule() ? UINT64_C(1) << 31 : 2;
    REFUSE(INVALID, quire_space_create(NULL, NULL));
    refuse_options(INVALID, &(quire_space_options){.fit.algorithm = (quire_fit)4});
    refuse_options(INVALID, &(quire_space_options){.fit.algorithm = (quire_fit)99});
    refuse_options(INVALID, &(quire_space_options){.fit = {.algorithm = fit, .granule = 3}});
    refuse_options(INVALID, &(quire_space_options){.fit = {.algorithm = fit, .granule = unlike}});
    refuse_options(INVALID,
                   &(quire_space_options){.fit = {.algorithm = fit, .granule = UINT64_MAX}});
    refuse_options(INVALID, &(quire_space_options){.fit = {.algorithm = fit, .max_alignment = 3}});
    refuse_options(INVALID,
                   &(quire_space_options){.fit = {.algorithm = fit, .max_alignment = 1u << 31}});
    refuse_options(INVALID,
                   &(quire_space_options){.fit.algorithm = fit, .buffer_image_granularity = 3});
    refuse_options(INVALID, &(quire_space_options){.fit.algorithm = fit,
                                                   .buffer_image_granularity = 1u << 31});
    refuse_options(INVALID,
                   &(quire_space_options){.fit.algorithm = fit, .host_memory = &halves[0]});
    refuse_options(INVALID,
                   &(quire_space_options){.fit.algorithm = fit, .host_memory = &halves[1]});
    refuse_options(OUTSIDE,
                   &(quire_space_options){.fit.algorithm = fit, .size = UINT64_C(1) << 63});
    for (int i = 0; i < 4; i++) {
        quire_space_options options = {.fit.algorithm = fit};
        options.unused[i] = 1;
        refuse_options(INVALID, &options);
    }
    for (int i = 0; i < 4; i++) {
        quire_space_options options = {.fit.algorithm = fit};
        options.fit.unused[i] = 1;
        refuse_options(INVALID, &options);
    }
    if (takes_granule())
        refuse_options(INVALID, &(quire_space_options){.fit = {.algorithm = fit, .granule = 256},
                                                       .size = 1000});
    if (fit != QUIRE_FIT_SEGREGATED) {
        refuse_options(INVALID, &(quire_space_options){
                                    .fit = {.algorithm = fit, .least_fragmentation = true}});
        refuse_options(INVALID, &(quire_space_options){.fit = {.algorithm = fit, .slabs = true}});
    }
}

/* ---- regions -------------------------------------------------------------------------------- */

static void resizing(void)
{
    bool is_fixed = fit == QUIRE_FIT_BUDDY || fit == QUIRE_FIT_LINEAR;
    REFUSE(INVALID, quire_space_resize_region(NULL, 0, 128 * KIB));
    REFUSE(INVALID, quire_space_resize_region(b.space, 1, 128 * KIB));
    REFUSE(INVALID, quire_space_resize_region(b.space, UINT32_MAX, 128 * KIB));
    REFUSE(INVALID, quire_space_resize_region(b.space, 0, 0));
    if (takes_granule()) {
        REFUSE(INVALID, quire_space_resize_region(b.space, 0, 64 * KIB + 1));
        REFUSE(INVALID, quire_space_resize_region(b.space, 0, UINT64_MAX));
    }
    REFUSE(is_fixed ? UNSUPPORTED : BUSY, quire_space_resize_region(b.space, 0, KIB));
    REFUSE(is_fixed ? UNSUPPORTED : OUTSIDE,
           quire_space_resize_region(b.space, 0, UINT64_C(1) << 63));
}

static void regions(void)
{
    uint32_t region;
    REFUSE_OUT(INVALID, region, quire_space_add_region(NULL, 64 * KIB, 0, &region));
    REFUSE(INVALID, quire_space_add_region(b.space, 64 * KIB, 0, NULL));
    REFUSE_OUT(INVALID, region, quire_space_add_region(b.space, 0, 0, &region));
    bool has_all = fit == QUIRE_FIT_LINEAR; /* it takes one region */
    REFUSE_OUT(has_all ? WRONG_STATE : OUTSIDE, region,
               quire_space_add_region(b.space, UINT64_C(1) << 62, 0, &region));
    if (has_all)
        REFUSE_OUT(WRONG_STATE, region, quire_space_add_region(b.space, 1, 0, &region));
    if (takes_granule()) {
        REFUSE_OUT(INVALID, region, quire_space_add_region(b.space, 100, 0, &region));
        REFUSE_OUT(INVALID, region, quire_space_add_region(b.space, 64 * KIB, 100, &region));
        REFUSE_OUT(INVALID, region, quire_space_add_region(b.space, UINT64_MAX, 0, &region));
    }
    REFUSE(INVALID, quire_space_remove_region(NULL, 0));
    REFUSE(INVALID, quire_space_remove_region(b.space, 1));
    REFUSE(INVALID, quire_space_remove_region(b.space, 1000));
    REFUSE(INVALID, quire_space_remove_region(b.space, UINT32_MAX));
    REFUSE(BUSY, quire_space_remove_region(b.space, 0));
    resizing();
}

/* ---- ranges --------------------------------------------------------------------------------- */

static const struct {
    uint64_t size, alignment;
    quire_result code;
} wrong_sizes[] = {
    {0, 1, INVALID},
    {0, 0, INVALID},
    {1, 3, INVALID},
    {1, 48, INVALID},
    {1, UINT64_C(4) << 20, INVALID},
    {1, UINT64_C(1) << 63, INVALID},
    {1, UINT64_MAX, INVALID},
    {64 * KIB, 1, NO_SPACE},
    {UINT64_C(1) << 40, 1, NO_SPACE},
    {UINT64_MAX - 254, 256, NO_SPACE},
    {UINT64_MAX, 1, NO_SPACE},
    {UINT64_MAX, UINT64_C(2) << 20, NO_SPACE},
};

static void allocations(void)
{
    quire_placement at;
    for (size_t i = 0; i < sizeof wrong_sizes / sizeof *wrong_sizes; i++) {
        uint64_t size = wrong_sizes[i].size, alignment = wrong_sizes[i].alignment;
        quire_result code = wrong_sizes[i].code;
        REFUSE_OUT(code, at, quire_space_allocate(b.space, size, alignment, 0, &at));
        const quire_range_options bounded = {size, alignment, .bounded = true};
        REFUSE_OUT(code, at, quire_space_allocate_with(b.space, &bounded, &at));
    }
    REFUSE(INVALID, quire_space_allocate_batch(NULL, 1, 1, &at, 1));
    REFUSE(INVALID, quire_space_allocate_batch(b.space, 0, 1, &at, 1));
    REFUSE(INVALID, quire_space_allocate_batch(b.space, 1, 3, &at, 1));
    REFUSE(INVALID, quire_space_allocate_batch(b.space, 1, 1, NULL, 1));
    REFUSE_OUT(INVALID, at, quire_space_allocate(NULL, 1, 1, 0, &at));
    REFUSE(INVALID, quire_space_allocate(b.space, 1, 1, 0, NULL));
    const quire_range_options one = {.size = 1}, none = {0}, upper = {.size = 1, .upper = true},
                              too_high = {.size = 64 * KIB, .upper = true},
                              lowest = {.size = 1, .lowest = true},
                              filled = {.size = 1, .unused = {0, 1}};
    REFUSE_OUT(INVALID, at, quire_space_allocate_with(NULL, &one, &at));
    REFUSE_OUT(INVALID, at, quire_space_allocate_with(b.space, NULL, &at));
    REFUSE(INVALID, quire_space_allocate_with(b.space, &one, NULL));
    REFUSE_OUT(INVALID, at, quire_space_allocate_with(b.space, &none, &at));
    if (fit == QUIRE_FIT_LINEAR)
        REFUSE_OUT(NO_SPACE, at, quire_space_allocate_with(b.space, &too_high, &at));
    else
        REFUSE_OUT(INVALID, at, quire_space_allocate_with(b.space, &upper, &at));
    if (fit == QUIRE_FIT_LINEAR || fit == QUIRE_FIT_BUDDY)
        REFUSE_OUT(INVALID, at, quire_space_allocate_with(b.space, &lowest, &at));
    REFUSE_OUT(INVALID, at, quire_space_allocate_with(b.space, &filled, &at));
}

static void refuse_range(quire_space *space, quire_range range, quire_result code)
{
    quire_placement at;
    REFUSE(code, quire_space_free(space, range));
    REFUSE(code, quire_space_free_batch(space, &range, 1));
    REFUSE(code, quire_space_set_user(space, range, 5));
    REFUSE_OUT(code, at, quire_space_get(space, range, &at));
}

static void ranges(void)
{
    refuse_range(NULL, live, INVALID);
    refuse_range(b.space, (quire_range){0}, INVALID);
    refuse_range(b.space, stale, STALE);
    refuse_range(b.space, reused, STALE);
    refuse_range(b.space, foreign, FOREIGN);
    refuse_range(b.space, (quire_range){UINT64_MAX}, FOREIGN);
    REFUSE(INVALID, quire_space_get(b.space, live, NULL));
    /* forged: the lowest 26 bits are a slot, then come 26 of a generation and 12 of the owner */
    uint64_t slots = (UINT64_C(1) << 26) - 1;
    refuse_range(b.space, (quire_range){live.id | slots}, STALE);
    refuse_range(b.space, (quire_range){live.id & ~slots}, STALE);
    for (uint32_t bit = 26; bit < 64; bit++)
        refuse_range(b.space, (quire_range){live.id ^ UINT64_C(1) << bit},
                     bit < 52 ? STALE : FOREIGN);
}

static bool stop_at_once(void *user, const quire_space_item *item)
{
    (void)user, (void)item;
    return false;
}

static void nothing_to_work_on(void)
{
    quire_space *none = NULL;
    REFUSE(INVALID, quire_space_clear(NULL));
    REFUSE(INVALID, quire_space_check(NULL));
    REFUSE(INVALID, quire_space_walk(NULL, stop_at_once, NULL));
    REFUSE(INVALID, quire_space_walk(b.space, NULL, NULL));
    REFUSE(INVALID, quire_space_get_stats(b.space, NULL));
    HARMLESS(&b, quire_space_destroy(NULL));
    HARMLESS(&b, quire_space_destroy(&none));
    HARMLESS(&b, quire_space_trim(NULL));
}

/* ---- traces --------------------------------------------------------------------------------- */

static const char TEXT[] = "op,id,size,alignment,time_ns,stream,label\nalloc,1,64,,0,,a\n";

static void parsing(void)
{
    static const quire_host_memory half = {.allocate = one_sided_allocate};
    static const quire_host_memory empty = {one_sided_allocate, one_sided_release, NULL};
    quire_trace *trace;
    size_t size = sizeof TEXT - 1;
    REFUSE_OUT(INVALID, trace, quire_trace_parse(NULL, TEXT, size, NULL, &trace));
    REFUSE_OUT(INVALID, trace, quire_trace_parse("name", NULL, size, NULL, &trace));
    REFUSE(INVALID, quire_trace_parse("name", TEXT, size, NULL, NULL));
    REFUSE_OUT(INVALID, trace, quire_trace_parse("name", TEXT, size, &half, &trace));
    REFUSE_OUT(QUIRE_ERROR_OUT_OF_HOST_MEMORY, trace,
               quire_trace_parse("name", TEXT, size, &empty, &trace));
    REFUSE_OUT(BAD_FILE, trace, quire_trace_parse("name", "", 0, NULL, &trace));
    REFUSE_OUT(BAD_FILE, trace, quire_trace_parse("name", NULL, 0, NULL, &trace));
    REFUSE_OUT(BAD_FILE, trace, quire_trace_parse("%n%s", "x", 1, NULL, &trace));
    CHECK_HAS(quire_last_error(), "%n%s:1:1:");
    trace = NULL;
    HARMLESS(&b, quire_trace_destroy(NULL));
    HARMLESS(&b, quire_trace_destroy(&trace));
}

static bool refuse_text(void *user, const char *text, size_t size)
{
    (void)user, (void)text, (void)size;
    return false;
}

static void playing(quire_trace *trace)
{
    quire_trace_info info;
    quire_trace_event event;
    quire_replay_report report;
    REFUSE_OUT(INVALID, info, quire_trace_get_info(NULL, &info));
    REFUSE(INVALID, quire_trace_get_info(trace, NULL));
    REFUSE_OUT(INVALID, event, quire_trace_get_event(NULL, 0, &event));
    REFUSE(INVALID, quire_trace_get_event(trace, 0, NULL));
    REFUSE_OUT(OUTSIDE, event, quire_trace_get_event(trace, 1, &event));
    REFUSE_OUT(OUTSIDE, event, quire_trace_get_event(trace, UINT64_MAX, &event));
    REFUSE(INVALID, quire_trace_write_csv(NULL, refuse_text, NULL));
    REFUSE(INVALID, quire_trace_write_csv(trace, NULL, NULL));
    REFUSE(BAD_FILE, quire_trace_write_csv(trace, refuse_text, NULL));
    REFUSE_OUT(INVALID, report, quire_trace_replay(NULL, b.memory, NULL, &report));
    REFUSE_OUT(INVALID, report, quire_trace_replay(trace, NULL, NULL, &report));
    REFUSE(INVALID, quire_trace_replay(trace, b.memory, NULL, NULL));
    for (int i = 0; i < 4; i++) {
        quire_replay_options options = {0};
        options.unused[i] = UINT64_MAX;
        REFUSE_OUT(INVALID, report, quire_trace_replay(trace, b.memory, &options, &report));
    }
}

static void traces(void)
{
    quire_trace *trace = NULL;
    bench_begin(&b, true);
    CHECK(bench_open(&b) && bench_memory(&b, NULL) &&
          bench_allocate(&b, 2, &(quire_allocation_options){.size = 100}));
    refusal_begin(&b);
    CHECK_OK(quire_trace_parse("name", TEXT, sizeof TEXT - 1, NULL, &trace));
    parsing();
    playing(trace);
    quire_trace_destroy(&trace);
    bench_end(&b);
}

/* ---- no function is missing ----------------------------------------------------------------- */

static void misused_creation(void)
{
    with_every_fit(creation);
}

static void misused_options(void)
{
    with_every_fit(options_of_one_fit);
}

static void misused_regions(void)
{
    with_every_fit(regions);
}

static void misused_allocations(void)
{
    with_every_fit(allocations);
}

static void misused_ranges(void)
{
    with_every_fit(ranges);
}

static void misused_nothing(void)
{
    with_every_fit(nothing_to_work_on);
}

static void figures_of_nothing(void)
{
    quire_space_stats stats;
    begin();
    REFUSE_OUT(INVALID, stats, quire_space_get_stats(NULL, &stats));
    end();
}

/* ---- the area ------------------------------------------------------------------------------- */

static const misuse_case cases[] = {
    {"creating spaces", misused_creation},
    {"options that a fit does not have", misused_options},
    {"adding, resizing and removing regions", misused_regions},
    {"allocating ranges", misused_allocations},
    {"handles of ranges", misused_ranges},
    {"no space to work on", misused_nothing},
    {"traces", traces},
    {"the figures of no space", figures_of_nothing},
    {NULL, NULL},
};

static const char *const headers[] = {"space.h", "trace.h", NULL};

const misuse_area misuse_space = {"space", NULL, NULL, cases, headers};
