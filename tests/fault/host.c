/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host.c - host memory runs out, at every allocation the library makes, once and from then
 * on, in scenarios that go through the whole public API: the call that is hit answers
 * OUT_OF_HOST_MEMORY, changes nothing and works when made again; freeing, unmapping, trimming and
 * destroying need no host memory. Every scenario runs with both fits, on the host and the fake
 * backend.
 */
#include <stdio.h>

#include "tests/fault/bench_sweep.h"
#include "tests/support/on_stream.h"

#define KIB UINT64_C(1024)

static bench b;
static quire_fit fit;

/* ---- memories ------------------------------------------------------------------------------- */

static bool small_pages(bench *t)
{
    return bench_memory(t,
                        &(quire_memory_options){.fit.algorithm = fit, .pages.page_size = 64 * KIB});
}

static bool visible_pages(bench *t)
{
    return bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .kind.required = QUIRE_HOST_VISIBLE,
                                                   .find_by_address = true,
                                                   .pages.page_size = 64 * KIB});
}

static bool several_memories(bench *t)
{
    const quire_intent upload = QUIRE_INTENT_UPLOAD;
    return bench_open(t) && bench_memory(t, NULL) && bench_memory(t, &(quire_memory_options){0}) &&
           bench_memory(
               t, &(quire_memory_options){.name = "a name of its own", .fit.algorithm = fit}) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = 1000}) &&
           bench_memory(t, &(quire_memory_options){.kind.intent = upload, .fit.algorithm = fit}) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = 1000}) && bench_look(t);
}

static bool ranges(bench *t)
{
    return bench_open(t) && small_pages(t) &&
           bench_allocate(t, 40, &(quire_allocation_options){.size = 700}) &&
           bench_free_every(t, 2) &&
           bench_allocate(t, 30, &(quire_allocation_options){.size = 300, .alignment = 512}) &&
           bench_free_every(t, 1);
}

/* Enough ranges for every table to grow several times, and to be given back at the end. */
static bool many_ranges(bench *t)
{
    return bench_open(t) && small_pages(t) &&
           bench_allocate(t, 500, &(quire_allocation_options){.size = 600}) &&
           bench_free_every(t, 3) &&
           bench_allocate(t, 100, &(quire_allocation_options){.size = 900, .alignment = 1024}) &&
           bench_free_every(t, 1) && bench_trim(t) &&
           bench_allocate(t, 20, &(quire_allocation_options){.size = 600});
}

static bool pages_kept_empty(bench *t)
{
    return bench_open(t) && small_pages(t) &&
           bench_allocate(t, 12, &(quire_allocation_options){.size = 30 * KIB}) &&
           bench_free_every(t, 1) &&
           bench_allocate(t, 1, &(quire_allocation_options){.size = 200 * KIB}) &&
           bench_allocate(t, 6, &(quire_allocation_options){.size = 30 * KIB});
}

static bool growing_memory(bench *t)
{
    return bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .find_by_address = true,
                                                   .pages = {.first_page_size = 4 * KIB,
                                                             .page_size = 8 * KIB,
                                                             .growth_percent = 50,
                                                             .max_page = 512 * KIB}});
}

static bool growth(bench *t)
{
    return bench_open(t) && growing_memory(t) &&
           bench_allocate(t, 60, &(quire_allocation_options){.size = 3000}) && bench_trim(t);
}

static bool elastic(bench *t)
{
    t->does_without = true; /* free chunks whose memory cannot be taken: the page gets new memory */
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.elastic = true,
                                                   .find_by_address = true,
                                                   .address_space = 4096 * KIB,
                                                   .pages.page_size = 16 * KIB}) &&
           bench_allocate(t, 60, &(quire_allocation_options){.size = 3000, .name = "grown"}) &&
           bench_free_every(t, 3) && bench_trim(t) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = 700 * KIB}) && bench_look(t) &&
           bench_free_every(t, 2) && bench_trim(t) && bench_keep(t, 900 * KIB) &&
           bench_keep(t, 0) && bench_free_every(t, 1) && bench_trim(t) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = 30 * KIB});
}

/* Lists of ranges, each of which is a node of its own; the trim takes the chunk that the page was
   made with, and no free one serves. */
static bool lazies(bench *t)
{
    const uint64_t chunk = 16 * KIB;
    t->does_without = true; /* free chunks that cannot be taken: the page gets new memory */
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.elastic = true,
                                                   .find_by_address = true,
                                                   .address_space = 4096 * KIB,
                                                   .pages.page_size = chunk}) &&
           bench_allocate(
               t, 3,
               &(quire_allocation_options){.size = 20 * chunk, .lazy = true, .name = "lazy"}) &&
           bench_trim(t) && bench_back_chunks(t, chunk, 0) && bench_look(t) &&
           bench_back_chunks(t, chunk, 1) && bench_unback_chunks(t, chunk, 0) && bench_look(t) &&
           bench_back_chunks(t, chunk, 0) && bench_unback_chunks(t, chunk, 1) &&
           bench_unback_chunks(t, chunk, 0) && bench_back_chunks(t, chunk, 1);
}

/* Allocations with a name and without one, of which the latter get a record when they sleep. Some
   are freed while they sleep. */
static bool asleep(bench *t)
{
    const uint64_t chunk = 16 * KIB;
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.elastic = true,
                                                   .find_by_address = true,
                                                   .address_space = 4096 * KIB,
                                                   .pages.page_size = chunk}) &&
           bench_allocate(
               t, 2, &(quire_allocation_options){.size = 6 * chunk, .lazy = true, .name = "b"}) &&
           bench_trim(t) && bench_back_chunks(t, chunk, 0) &&
           bench_allocate(t, 4, &(quire_allocation_options){.size = 23 * KIB}) && bench_trim(t) &&
           bench_sleep(t, "b", false) && bench_sleep(t, NULL, false) && bench_look(t) &&
           bench_wake(t, "b") && bench_sleep(t, "b", true) && bench_wake(t, NULL) &&
           bench_sleep(t, NULL, false) && bench_free_every(t, 2) && bench_trim(t) &&
           bench_wake(t, NULL) && bench_free_every(t, 1) && bench_trim(t);
}

/* The fit is always the segregated one. */
static bool compaction(bench *t)
{
    return bench_open(t) && bench_compact(t, &(quire_memory_options){.find_by_address = true});
}

static bool too_many_pages(bench *t)
{
    if (!bench_open(t) ||
        !bench_memory(t,
                      &(quire_memory_options){.fit.algorithm = fit,
                                              .pages = {.page_size = 64 * KIB, .max_pages = 2}}) ||
        !bench_allocate(t, 1, &(quire_allocation_options){.size = 10 * KIB}) ||
        !bench_allocate(t, 1, &(quire_allocation_options){.size = 60 * KIB}))
        return false;
    quire_allocation made;
    t->accepted = QUIRE_ERROR_TOO_MANY_PAGES;
    TRY_OUT(t, made,
            quire_allocate(t->memory, &(quire_allocation_options){.size = 60 * KIB}, &made));
    return bench_allocate(t, 10, &(quire_allocation_options){.size = 1 * KIB});
}

/* ---- allocations ---------------------------------------------------------------------------- */

static bool dedicated(bench *t)
{
    const quire_allocation_options own = {.size = 5000, .alignment = 4096, .dedicated = true};
    return bench_open(t) && small_pages(t) && bench_allocate(t, 40, &own) &&
           bench_allocate(t, 1, &(quire_allocation_options){.size = 100}) &&
           bench_free_every(t, 2) && bench_allocate(t, 5, &own);
}

static bool dedicated_by_size(bench *t)
{
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .pages = {.page_size = 64 * KIB,
                                                             .dedicated_threshold = 32 * KIB}}) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = 40 * KIB, .name = "large"}) &&
           bench_allocate(t, 5, &(quire_allocation_options){.size = 4 * KIB, .name = "small"}) &&
           bench_look(t);
}

static bool dedicated_always(bench *t)
{
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.pages.dedicated = QUIRE_DEDICATED_ALWAYS}) &&
           bench_allocate(t, 70, &(quire_allocation_options){.size = 100}) && bench_look(t) &&
           bench_free_every(t, 1);
}

static bool names(bench *t)
{
    return bench_open(t) && small_pages(t) &&
           bench_allocate(t, 40, &(quire_allocation_options){.size = 100, .name = "first name"}) &&
           bench_allocate(t, 1, &(quire_allocation_options){.size = 100}) &&
           bench_name(t, 0, "another name") && bench_name(t, 1, NULL) && bench_name(t, 1, "back") &&
           bench_name(t, 40, "at last") && bench_name(t, 40, "again") && bench_look(t);
}

static bool limits_of_names(bench *t)
{
    if (!bench_open(t) || !small_pages(t) ||
        !bench_allocate(t, 4, &(quire_allocation_options){.size = 100, .name = "few/1"}))
        return false;
    TRY(t, quire_memory_set_name_limit(t->memory, "few/", 2 * KIB));
    TRY(t, quire_memory_set_name_limit(t->memory, "", 8 * KIB));
    TRY(t, quire_memory_set_name_limit(t->memory, "few/", 1536));
    if (!bench_allocate(t, 2, &(quire_allocation_options){.size = 100, .name = "few/2"}))
        return false;
    quire_allocation made;
    t->accepted = QUIRE_ERROR_OVER_BUDGET;
    TRY_OUT(t, made,
            quire_allocate(t->memory, &(quire_allocation_options){.size = 1500, .name = "few/3"},
                           &made));
    t->tolerance = BENCH_NEVER_FAILS;
    TRY(t, quire_memory_set_name_limit(t->memory, "few/", 0));
    return bench_name(t, 0, "many") && bench_free_every(t, 2);
}

static bool filled_with_zeros(bench *t)
{
    const quire_allocation_options zero = {.size = 40 * KIB, .zero = true, .name = "zeros"};
    return bench_open(t) && small_pages(t) && bench_allocate(t, 4, &zero) && visible_pages(t) &&
           bench_allocate(t, 4, &zero);
}

static bool reserved(bench *t)
{
    const quire_allocation_options options = {.size = 20 * KIB, .name = "reserved", .zero = true};
    return bench_open(t) && small_pages(t) && bench_reserve(t, &options) &&
           bench_reserve(t, &options) && bench_commit(t, 0) && bench_name(t, 0, "renamed") &&
           bench_reserve(t, &options) && bench_reserve(t, &options) && bench_look(t) &&
           bench_abort(t, 1) && bench_reserve(t, &options);
}

static bool host_access(bench *t)
{
    const quire_allocation_options both = {.size = 10000, .host_read = true, .host_write = true};
    return bench_open(t) && visible_pages(t) && bench_allocate(t, 9, &both) && bench_map(t, 0) &&
           bench_map(t, 0) && bench_map(t, 3) && bench_write(t, 1) && bench_read(t, 1) &&
           bench_unmap(t, 0) && bench_look(t) && small_pages(t) &&
           bench_allocate(t, 2, &(quire_allocation_options){.size = 300}) && bench_write(t, 9) &&
           bench_read(t, 10);
}

static bool buffers(bench *t)
{
    return bench_open(t) && visible_pages(t) &&
           bench_buffer(t, 34, &(quire_buffer_options){.size = 1000, .name = "buffer"}) &&
           bench_buffer(t, 2, &(quire_buffer_options){.size = 9000, .zero = true}) &&
           bench_buffer(t, 2, &(quire_buffer_options){.size = 10, .dedicated = true}) &&
           bench_name(t, 0, "renamed") && bench_name(t, 35, "named") && bench_look(t) &&
           bench_free_every(t, 2) && bench_buffer(t, 3, &(quire_buffer_options){.size = 5000});
}

static bool images(bench *t)
{
    const quire_image_options flat = {.width = 50, .height = 40, .name = "flat"};
    const quire_image_options deep = {.width = 9,
                                      .height = 8,
                                      .depth = 7,
                                      .channel_count = 4,
                                      .channel_type = QUIRE_FLOAT32,
                                      .tiling = QUIRE_TILING_LINEAR,
                                      .zero = true};
    return bench_open(t) && small_pages(t) && bench_image(t, 5, &flat) &&
           bench_image(t, 3, &deep) && bench_look(t) && bench_free_every(t, 2) &&
           bench_image(t, 2, &flat);
}

/* ---- pages that are kept -------------------------------------------------------------------- */

static uint64_t ticks(void *user)
{
    return ++*(uint64_t *)user;
}

static bool bounded_pages(bench *t, uint32_t shards, uint64_t bytes, uint64_t age)
{
    static uint64_t time;
    time = 0;
    return bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .shards = shards,
                                                   .clock = {ticks, &time},
                                                   .pages = {.page_size = 64 * KIB,
                                                             .retained_empty_bytes = bytes,
                                                             .retention_nanoseconds = age}});
}

static bool bounds(bench *t)
{
    t->does_without = true; /* pages go by a free, and with them tables */
    const quire_allocation_options own = {.size = 5000, .dedicated = true};
    return bench_open(t) && bounded_pages(t, 1, 100 * KIB, 4) &&
           bench_allocate(t, 8, &(quire_allocation_options){.size = 30 * KIB}) &&
           bench_allocate(t, 3, &own) && bench_free_every(t, 2) && bench_allocate(t, 2, &own) &&
           bench_allocate(t, 4, &(quire_allocation_options){.size = 50 * KIB}) &&
           bench_free_every(t, 1) && bench_trim(t) && bench_allocate(t, 1, &own);
}

static bool shards(bench *t)
{
    t->does_without = true; /* a page that cannot be taken over is made anew */
    return bench_open(t) && bounded_pages(t, 2, 0, 0) &&
           bench_allocate(t, 40, &(quire_allocation_options){.size = 3000, .name = "sharded"}) &&
           bench_look(t) && bench_free_every(t, 3) && bench_keep(t, 400 * KIB) &&
           bench_allocate(t, 6, &(quire_allocation_options){.size = 60 * KIB}) &&
           bench_free_every(t, 1) && bench_trim(t);
}

static bool reserved_pages(bench *t)
{
    t->does_without = true;
    return bench_open(t) && bounded_pages(t, 1, 1, 0) && bench_keep(t, 300 * KIB) &&
           bench_allocate(t, 4, &(quire_allocation_options){.size = 40 * KIB}) &&
           bench_keep(t, 40 * 64 * KIB) && bench_free_every(t, 1) && bench_keep(t, 100 * KIB) &&
           bench_allocate(t, 1, &(quire_allocation_options){.size = 200 * KIB}) &&
           bench_keep(t, 0) && bench_look(t);
}

/* ---- the caller's word ---------------------------------------------------------------------- */

/* Lets the newest go; once the plan has struck there may be nothing. */
static bool free_newest(void *user, quire_memory *memory, const quire_out_of_memory *shortage)
{
    bench *t = user;
    (void)shortage;
    for (uint32_t i = t->held_count; i-- > 0;)
        if (t->held[i].allocation.id) {
            CHECK_OK(quire_free(memory, t->held[i].allocation));
            t->held[i].allocation.id = 0;
            return true;
        }
    return false;
}

static bool caller_frees(bench *t)
{
    return bench_open(t) &&
           bench_memory(
               t, &(quire_memory_options){.fit.algorithm = fit,
                                          .on_out_of_memory = {free_newest, t},
                                          .pages = {.page_size = 64 * KIB, .max_pages = 2}}) &&
           bench_allocate(t, 4, &(quire_allocation_options){.size = 30 * KIB, .name = "held"}) &&
           bench_look(t);
}

/* ---- streams -------------------------------------------------------------------------------- */

static bool use_streams(bench *t, quire_stream **stream, quire_stream **other)
{
    const quire_allocation_options options = {.size = 3000, .name = "on a stream"};
    quire_allocation made[12];
    TRY_OUT(t, *stream,
            quire_stream_create(t->device, &(quire_stream_options){.capture = true}, stream));
    TRY_OUT(t, *other,
            quire_stream_create(t->device, &(quire_stream_options){.capture = true}, other));
    for (int i = 0; i < 12; i++)
        TRY_OUT(t, made[i],
                allocate_on_stream(t->memory, &options, i % 3 ? *stream : *other, &made[i]));
    for (int i = 0; i < 12; i += 2)
        TRY(t, quire_record_use(t->memory, made[i], i % 3 ? *other : *stream));
    for (int i = 0; i < 8; i++)
        TRY(t, quire_free_on_stream(t->memory, made[i], *stream));
    for (int i = 0; i < 4; i++)
        TRY_OUT(t, made[i], allocate_on_stream(t->memory, &options, *stream, &made[i]));
    TRY(t, quire_free_after_point(t->memory, made[0], &(quire_point){*other, 1}));
    return bench_ordered_objects(t, *stream);
}

/* A memory ends whatever still waits, and with it what was live. */
static bool streams(bench *t)
{
    quire_stream *stream = NULL, *other = NULL;
    bool done = bench_open(t) && small_pages(t) && use_streams(t, &stream, &other);
    uint64_t calls = t->host.calls;
    if (t->memories[0])
        quire_memory_destroy_all(&t->memories[0]);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_OK(quire_stream_destroy(&other));
    CHECK_EQ(t->host.calls, calls);
    return done;
}

/* ---- traces --------------------------------------------------------------------------------- */

/* Long enough for the events, the ranges and the map of ids to grow. */
static size_t write_trace(char *text, size_t room)
{
    size_t at = (size_t)snprintf(text, room, "op,id,size,alignment,time_ns,stream,label\n");
    for (unsigned i = 1; i <= 150; i++) {
        at += (size_t)snprintf(text + at, room - at, "alloc,%u,%u,64,%u,0,l%u\n", i, i * 37, i - 1,
                               i % 7);
        if (i % 3 == 0)
            at += (size_t)snprintf(text + at, room - at, "free,%u,,,%u,0,\n", i / 3, i - 1);
    }
    return at;
}

static bool replay(bench *t)
{
    char text[8192];
    size_t size = write_trace(text, sizeof text);
    return bench_open(t) && small_pages(t) && bench_replay(t, text, size);
}

/* ---- spaces alone --------------------------------------------------------------------------- */

static quire_range held[512];
static uint32_t held_count;

static bool space_create(bench *t, uint64_t size)
{
    held_count = 0;
    const quire_space_options options = {
        .fit.algorithm = fit, .size = size, .host_memory = &t->host.callbacks};
    quire_space *space;
    TRY_OUT(t, space, quire_space_create(&options, &space));
    t->space = space;
    return true;
}

static bool space_allocate(bench *t, uint32_t count, uint64_t size, uint64_t alignment)
{
    for (; count; count--) {
        quire_placement at;
        TRY_OUT(t, at, quire_space_allocate(t->space, size, alignment, count, &at));
        held[held_count++] = at.range;
    }
    return true;
}

static bool space_refuses(bench *t, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    t->accepted = QUIRE_ERROR_NO_SPACE;
    TRY_OUT(t, at, quire_space_allocate(t->space, size, alignment, 0, &at));
    return true;
}

static bool space_free_every(bench *t, uint32_t nth)
{
    uint64_t calls = t->host.calls;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < held_count; i++) {
        if (i % nth == 0)
            CHECK_OK(quire_space_free(t->space, held[i]));
        else
            held[kept++] = held[i];
    }
    held_count = kept;
    CHECK_EQ(t->host.calls, calls);
    return true;
}

static bool space_regions(bench *t, uint32_t count, uint64_t size)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t region;
        TRY_OUT(t, region, quire_space_add_region(t->space, size, i * 3 * 64 * KIB, &region));
    }
    return true;
}

static bool space_remove(bench *t, uint32_t region)
{
    t->tolerance = BENCH_NEVER_FAILS; /* it gives records back by moving them, if it can */
    TRY(t, quire_space_remove_region(t->space, region));
    return true;
}

static bool space_of_one_region(bench *t)
{
    return space_create(t, 1024 * KIB) && space_allocate(t, 200, 1000, 0) &&
           space_free_every(t, 3) && space_allocate(t, 20, 2000, 4096) && space_free_every(t, 2);
}

static bool space_that_is_full(bench *t)
{
    return space_create(t, 64 * KIB) && space_allocate(t, 16, 4 * KIB, 0) &&
           space_refuses(t, 1, 1) && space_free_every(t, 4) && space_refuses(t, 8 * KIB, 1) &&
           space_allocate(t, 4, 4 * KIB, 4 * KIB);
}

static bool space_with_many_regions(bench *t)
{
    return space_create(t, 0) && space_regions(t, 20, 64 * KIB) && space_allocate(t, 70, 9000, 0) &&
           space_free_every(t, 1) && space_remove(t, 3) && space_remove(t, 7) &&
           space_regions(t, 3, 128 * KIB) && space_refuses(t, 1024 * KIB, 1);
}

/* The place of a region that was refused can be had by the next one: there is no second one. */
static bool space_with_one_huge_region(bench *t)
{
    if (fit == QUIRE_FIT_BUDDY) /* whose records would be huge too */
        return true;
    uint64_t line = fit == QUIRE_FIT_FIRST ? UINT64_C(1) << 62 : UINT64_C(1) << 40;
    return space_create(t, 0) && space_regions(t, 1, line / 4 * 3) &&
           space_allocate(t, 5, line / 8, 0) && space_free_every(t, 2);
}

/* A ring that wraps beside an upper stack, cleared, and given another region. */
static bool linear_space(bench *t)
{
    fit = QUIRE_FIT_LINEAR;
    if (!space_create(t, 64 * KIB) || !space_allocate(t, 30, 2 * KIB, 0) ||
        !space_refuses(t, 8 * KIB, 1) || !space_free_every(t, 2) || !space_refuses(t, 4 * KIB, 1))
        return false;
    CHECK_OK(quire_space_free(t->space, held[0]));
    if (!space_allocate(t, 1, 3 * KIB, 0))
        return false;
    CHECK_OK(quire_space_clear(t->space));
    held_count = 0;
    return space_remove(t, 0) && space_regions(t, 1, 512 * KIB) && space_allocate(t, 300, 1000, 64);
}

static bool space_cleared_and_trimmed(bench *t)
{
    if (!space_create(t, 512 * KIB) || !space_allocate(t, 400, 500, 0))
        return false;
    uint64_t calls = t->host.calls;
    CHECK_OK(quire_space_clear(t->space));
    CHECK_EQ(t->host.calls, calls);
    held_count = 0;
    if (!space_regions(t, 1, 64 * KIB) || !space_remove(t, 1))
        return false;
    t->tolerance = BENCH_NEVER_FAILS;
    TRY(t, (quire_space_trim(t->space), QUIRE_SUCCESS));
    return space_allocate(t, 60, 500, 0);
}

/* ---- what a fingerprint does not show ------------------------------------------------------- */

/* Allocates until a fault stops it; false when the whole row went well. */
static bool next_page_is_the_same(uint64_t size, uint64_t n)
{
    quire_memory_info was, is;
    quire_memory_stats before, after;
    quire_allocation made;
    bench_begin(&b, true);
    CHECK(bench_open(&b) && growing_memory(&b));
    test_memory_fail(&b.host, n, false);
    quire_result result = QUIRE_SUCCESS;
    for (int i = 0; i < 60 && !result; i++) {
        CHECK_OK(quire_memory_get_info(b.memory, &was));
        CHECK_OK(quire_memory_get_stats(b.memory, &before));
        result = quire_allocate(b.memory, &(quire_allocation_options){.size = size}, &made);
    }
    CHECK_OK(quire_memory_get_info(b.memory, &is));
    CHECK_OK(quire_memory_get_stats(b.memory, &after));
    if (result && before.page_count == after.page_count)
        CHECK_EQ(is.page_size, was.page_size);
    quire_memory_destroy_all(&b.memories[0]);
    bench_end(&b);
    return result != QUIRE_SUCCESS;
}

/* A page that was made and given back again is none that the next one grows from. */
static void growth_stays(void)
{
    fit = QUIRE_FIT_SEGREGATED;
    b.fail_at = 0;
    for (uint64_t size = 500; size < 8000; size += 500) {
        uint64_t n = 1;
        while (next_page_is_the_same(size, n))
            n++;
    }
}

static bool refuse_text(void *user, const char *text, size_t size)
{
    (void)user;
    (void)text;
    return size == 0;
}

/* Two things go wrong in one call: what is returned and what is remembered are the same one. */
static void one_result(void)
{
    b.fail_at = 0;
    bench_begin(&b, true);
    CHECK(bench_open(&b) && bench_memory(&b, NULL) &&
          bench_allocate(&b, 1, &(quire_allocation_options){.size = 1000}));
    test_memory_fail(&b.host, 1, true);
    CHECK_FAILS(quire_memory_write_svg(b.memory, refuse_text, NULL),
                QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_FAILS(quire_memory_write_json(b.memory, refuse_text, NULL),
                QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    test_memory_fail(&b.host, 0, false);
    bench_end(&b);
}

/* ---- the list ------------------------------------------------------------------------------- */

typedef struct row {
    const char *name;
    bench_scenario scenario;
    bool has_device;
} row;

static const row scenarios[] = {
    {"a device alone", bench_open, true},
    {"several memories on one device", several_memories, true},
    {"ranges", ranges, true},
    {"pages kept empty", pages_kept_empty, true},
    {"growing pages", growth, true},
    {"an elastic page", elastic, true},
    {"lazy allocations", lazies, true},
    {"allocations that sleep", asleep, true},
    {"compaction", compaction, true},
    {"as many pages as may be", too_many_pages, true},
    {"dedicated pages by size", dedicated_by_size, true},
    {"one page per object", dedicated_always, true},
    {"names", names, true},
    {"limits of names", limits_of_names, true},
    {"filling with zeros", filled_with_zeros, true},
    {"reserve, commit and abort", reserved, true},
    {"mapping, writing and reading", host_access, true},
    {"buffers", buffers, true},
    {"images", images, true},
    {"pages bounded in bytes and time", bounds, true},
    {"two shards", shards, true},
    {"reserved pages", reserved_pages, true},
    {"a memory whose caller frees", caller_frees, true},
    {"memory in the order of streams", streams, true},
    {"a replay", replay, true},
    {"a space of one region", space_of_one_region, false},
    {"a full space", space_that_is_full, false},
    {"a space of many regions", space_with_many_regions, false},
    {"a space of one huge region", space_with_one_huge_region, false},
    {"a space cleared and trimmed", space_cleared_and_trimmed, false},
    {"a linear space", linear_space, false},
    {"many ranges", many_ranges, true},
    {"dedicated pages", dedicated, true},
};

static void sweep(const void *row_)
{
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
    const row *r = row_;
    for (int i = 0; i < 3; i++) {
        fit = fits[i];
        for (int fake = 0; fake <= r->has_device; fake++)
            bench_sweep(&b, r->scenario, fake != 0, false, QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    }
}

int main(int argc, char **argv)
{
    fault_begin(argc, argv);
    FAULT_TABLE(scenarios, sweep);
    if (fault_runs_all()) {
        plain_case("a refused call does not let the pages grow", growth_stays);
        plain_case("one result when two things go wrong", one_result);
    }
    printf("# after %" PRIu64 " of the faults the call succeeded\n", b.recovered);
    return fault_end();
}
