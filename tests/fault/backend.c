/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * backend.c - the backend fails, at every call that can fail, once and from then on, with every
 * code that a backend may answer: the code and the native code arrive at the caller and nothing
 * changed, unless quire/memory.h promises another attempt; a lost device can still be ended. Then
 * the same with threads: pages that fail at random, and a limit of pages that many want.
 *
 *     fault_backend [--seed N] [--steps N]
 */
#include <stdatomic.h>
#include <stdio.h>

#include "tests/fault/bench_sweep.h"
#include "tests/support/random.h"

#define KIB UINT64_C(1024)

static bench b;
static quire_fit fit;
static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
static uint64_t seed, steps;

/* ---- scenarios ------------------------------------------------------------------------------ */

/* A memory of one kind of the fake device. */
static bool memory_of_kind(bench *t, uint32_t kind)
{
    return bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .kind.mask = UINT32_C(1) << kind,
                                                   .pages.page_size = 64 * KIB});
}

static bool device_local(bench *t)
{
    return bench_open(t) && memory_of_kind(t, 0) &&
           bench_allocate(t, 5, &(quire_allocation_options){.size = 30 * KIB}) &&
           bench_write(t, 0) && bench_read(t, 0) && bench_free_every(t, 1) && bench_trim(t) &&
           bench_allocate(t, 2, &(quire_allocation_options){.size = 200 * KIB, .zero = true}) &&
           bench_write(t, 5) && bench_look(t);
}

static bool coherent(bench *t)
{
    return bench_open(t) && memory_of_kind(t, 1) &&
           bench_allocate(t, 5, &(quire_allocation_options){.size = 30 * KIB, .zero = true}) &&
           bench_map(t, 0) && bench_write(t, 1) && bench_read(t, 1) && bench_unmap(t, 0);
}

static bool not_coherent(bench *t)
{
    return bench_open(t) && memory_of_kind(t, 2) &&
           bench_allocate(t, 5, &(quire_allocation_options){.size = 30001, .zero = true}) &&
           bench_map(t, 0) && bench_write(t, 1) && bench_read(t, 1) && bench_look(t);
}

/* Coherent or not: other calls need the page mapped. */
static bool mapped_on_demand(bench *t, uint32_t kind)
{
    const quire_allocation_options mapped = {.size = 20001, .mapped = true, .zero = true};
    t->on_demand = true;
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .kind.mask = UINT32_C(1) << kind,
                                                   .map_on_demand = true,
                                                   .pages.page_size = 64 * KIB}) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = 30001, .zero = true}) &&
           bench_map(t, 0) && bench_write(t, 1) && bench_read(t, 1) && bench_look(t) &&
           bench_unmap(t, 0) && bench_allocate(t, 2, &mapped) && bench_write(t, 2) &&
           bench_reserve(t, &mapped) && bench_abort(t, 5) &&
           bench_buffer(t, 2, &(quire_buffer_options){.size = 9000, .mapped = true}) &&
           bench_map(t, 6) && bench_free_every(t, 2) && bench_trim(t) &&
           bench_allocate(t, 1, &mapped);
}

static bool on_demand_coherent(bench *t)
{
    return mapped_on_demand(t, 1);
}

static bool on_demand_not_coherent(bench *t)
{
    return mapped_on_demand(t, 2);
}

static bool flushed_in_lists(bench *t)
{
    enum { PARTS = 70 }; /* two lists */
    quire_view views[PARTS];
    fake_offer_flush_many(&t->fake);
    if (!bench_open(t) || !memory_of_kind(t, 2) ||
        !bench_allocate(t, PARTS, &(quire_allocation_options){.size = 200}))
        return false;
    for (int i = 0; i < PARTS; i++)
        views[i] = (quire_view){t->held[i].allocation, 0, 1};
    TRY(t, quire_flush_batch(t->memories[0], views, PARTS));
    TRY(t, quire_invalidate_batch(t->memories[0], views, PARTS));
    return bench_look(t);
}

/* Device-only memory: the backend gets lists, in host memory or on the stack. */
static bool batches(bench *t)
{
    enum { PARTS = 100 };
    static unsigned char bytes[200];
    quire_write_item writes[PARTS];
    quire_read_item reads[PARTS];
    fake_offer_batches(&t->fake);
    if (!bench_open(t) || !memory_of_kind(t, 0) ||
        !bench_allocate(t, PARTS, &(quire_allocation_options){.size = 200}))
        return false;
    for (int i = 0; i < PARTS; i++) {
        writes[i] = (quire_write_item){t->held[i].allocation, 0, bytes, 200};
        reads[i] = (quire_read_item){t->held[i].allocation, 0, bytes, 200};
    }
    TRY(t, quire_write_batch(t->memories[0], writes, PARTS, NULL, NULL));
    TRY(t, quire_read_batch(t->memories[0], reads, PARTS));
    return bench_look(t);
}

static bool growing_pages(bench *t)
{
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .pages = {.first_page_size = 64 * KIB,
                                                             .page_size = 128 * KIB,
                                                             .growth_percent = 100,
                                                             .max_page = 1024 * KIB}}) &&
           bench_allocate(t, 30, &(quire_allocation_options){.size = 10000, .name = "grow"}) &&
           bench_free_every(t, 1) &&
           bench_allocate(t, 1, &(quire_allocation_options){.size = 700 * KIB}) &&
           bench_allocate(t, 5, &(quire_allocation_options){.size = 10000});
}

static bool elastic(bench *t)
{
    const quire_allocation_options half = {.size = 40 * KIB, .name = "half", .zero = true};
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.kind.mask = 0x4,
                                                   .elastic = true,
                                                   .address_space = 1024 * KIB,
                                                   .pages.page_size = 64 * KIB}) &&
           bench_allocate(t, 4, &half) && bench_write(t, 1) && bench_read(t, 1) &&
           bench_allocate(t, 2, &(quire_allocation_options){.size = 200 * KIB}) &&
           bench_free_every(t, 2) && bench_trim(t) && bench_allocate(t, 2, &half) &&
           bench_trim(t) &&
           bench_allocate(t, 1, &(quire_allocation_options){.size = 5000, .dedicated = true}) &&
           bench_keep(t, 900 * KIB) && bench_keep(t, 0) && bench_look(t) &&
           bench_free_every(t, 1) && bench_trim(t) && bench_allocate(t, 3, &half);
}

static bool lazies(bench *t)
{
    const uint64_t chunk = 64 * KIB;
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.kind.mask = 0x4,
                                                   .elastic = true,
                                                   .address_space = 8192 * KIB,
                                                   .pages.page_size = chunk}) &&
           bench_allocate(
               t, 3,
               &(quire_allocation_options){.size = 20 * chunk, .lazy = true, .name = "lazy"}) &&
           bench_trim(t) && bench_back_chunks(t, chunk, 0) && bench_back_chunks(t, chunk, 1) &&
           bench_look(t) && bench_unback_chunks(t, chunk, 0) && bench_back_chunks(t, chunk, 0) &&
           bench_free_every(t, 2) && bench_trim(t);
}

/* Ordinary allocations share chunks. Some are freed while they sleep. */
static bool asleep(bench *t)
{
    const uint64_t chunk = 64 * KIB;
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.kind.mask = 0x4,
                                                   .elastic = true,
                                                   .address_space = 8192 * KIB,
                                                   .pages.page_size = chunk}) &&
           bench_allocate(
               t, 2, &(quire_allocation_options){.size = 6 * chunk, .lazy = true, .name = "b"}) &&
           bench_trim(t) && bench_back_chunks(t, chunk, 0) &&
           bench_allocate(t, 4, &(quire_allocation_options){.size = 90 * KIB, .name = "a"}) &&
           bench_trim(t) && bench_sleep(t, "a", false) && bench_sleep(t, NULL, false) &&
           bench_look(t) && bench_wake(t, "b") && bench_sleep(t, "b", true) &&
           bench_wake(t, NULL) && bench_sleep(t, NULL, false) && bench_free_every(t, 2) &&
           bench_trim(t) && bench_wake(t, NULL) && bench_free_every(t, 1) && bench_trim(t);
}

/* By the host between the pages, and by the backend. */
static bool compaction(bench *t)
{
    return bench_open(t) && bench_compact(t, &(quire_memory_options){.kind.mask = 1});
}

static bool compaction_by_copies(bench *t)
{
    fake_offer_copies(&t->fake);
    return compaction(t);
}

static bool compaction_on_demand(bench *t)
{
    t->on_demand = true;
    return bench_open(t) &&
           bench_compact(t, &(quire_memory_options){.kind.mask = 0x2, .map_on_demand = true});
}

static bool dedicated(bench *t)
{
    const quire_allocation_options own = {.size = 5000, .dedicated = true, .zero = true};
    return bench_open(t) && memory_of_kind(t, 3) && bench_allocate(t, 4, &own) &&
           bench_free_every(t, 2) && bench_allocate(t, 1, &own) &&
           bench_allocate(t, 2, &(quire_allocation_options){.size = 100});
}

static bool reserved(bench *t)
{
    const quire_allocation_options options = {.size = 40 * KIB, .name = "reserved", .zero = true};
    return bench_open(t) && memory_of_kind(t, 0) && bench_reserve(t, &options) &&
           bench_reserve(t, &options) && bench_commit(t, 0) && bench_abort(t, 1) &&
           bench_reserve(t, &options) && bench_write(t, 0);
}

static bool buffers(bench *t)
{
    return bench_open(t) && memory_of_kind(t, 0) &&
           bench_buffer(t, 4, &(quire_buffer_options){.size = 20 * KIB, .name = "buffer"}) &&
           bench_buffer(t, 2, &(quire_buffer_options){.size = 9000, .zero = true}) &&
           bench_buffer(t, 2, &(quire_buffer_options){.size = 10, .dedicated = true}) &&
           bench_look(t) && bench_free_every(t, 2) &&
           bench_buffer(t, 1, &(quire_buffer_options){.size = 5000});
}

/* A capture stream needs no call of the backend. */
static bool objects_on_a_stream(bench *t)
{
    quire_stream *stream = NULL;
    if (!bench_open(t) || !memory_of_kind(t, 0))
        return false;
    CHECK_OK(quire_stream_create(t->device, &(quire_stream_options){.capture = true}, &stream));
    bool done = bench_ordered_objects(t, stream);
    quire_memory_destroy_all(&t->memories[0]);
    CHECK_OK(quire_stream_destroy(&stream));
    return done;
}

static bool asks_first(bench *t)
{
    quire_requirements needs;
    TRY_OUT(t, needs,
            quire_image_get_requirements(
                t->device, &(quire_image_options){.width = 10, .height = 10}, &needs));
    return true;
}

static bool images(bench *t)
{
    const quire_image_options flat = {.width = 100, .height = 90, .name = "flat", .zero = true};
    return bench_open(t) && memory_of_kind(t, 2) && asks_first(t) && bench_image(t, 4, &flat) &&
           bench_free_every(t, 2) && bench_image(t, 1, &flat) && bench_look(t);
}

static bool without_objects(bench *t)
{
    t->fake.table.features &= ~QUIRE_BACKEND_OBJECTS;
    t->fake.table.object_create = NULL;
    t->fake.table.object_bind = NULL;
    t->fake.table.object_destroy = NULL;
    return bench_open(t) && memory_of_kind(t, 0) &&
           bench_image(t, 3, &(quire_image_options){.width = 90, .height = 80}) &&
           bench_buffer(t, 3, &(quire_buffer_options){.size = 5000});
}

static bool as_many_pages_as_may_be(bench *t)
{
    t->fake.info.limits.max_pages = 2;
    if (!bench_open(t) || !memory_of_kind(t, 0) ||
        !bench_allocate(t, 1, &(quire_allocation_options){.size = 10 * KIB}) ||
        !bench_allocate(t, 1, &(quire_allocation_options){.size = 60 * KIB}))
        return false;
    quire_allocation made;
    t->accepted = QUIRE_ERROR_TOO_MANY_PAGES;
    TRY_OUT(t, made,
            quire_allocate(t->memory, &(quire_allocation_options){.size = 60 * KIB}, &made));
    return bench_allocate(t, 4, &(quire_allocation_options){.size = 1 * KIB});
}

static uint64_t ticks(void *user)
{
    return ++*(uint64_t *)user;
}

static bool kept_pages(bench *t)
{
    static uint64_t time;
    const quire_allocation_options own = {.size = 5000, .dedicated = true};
    time = 0;
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .shards = 2,
                                                   .kind.required = QUIRE_HOST_VISIBLE,
                                                   .clock = {ticks, &time},
                                                   .pages = {.page_size = 64 * KIB,
                                                             .retained_empty_bytes = 300 * KIB,
                                                             .retention_nanoseconds = 4}}) &&
           bench_allocate(t, 6, &(quire_allocation_options){.size = 40 * KIB}) &&
           bench_allocate(t, 2, &own) && bench_free_every(t, 2) && bench_allocate(t, 2, &own) &&
           bench_keep(t, 400 * KIB) && bench_keep(t, 1024 * KIB) && bench_free_every(t, 1) &&
           bench_allocate(t, 1, &(quire_allocation_options){.size = 200 * KIB}) &&
           bench_keep(t, 0) && bench_trim(t) && bench_look(t);
}

static uint32_t asked;

/* Frees nothing, and says so the second time. */
static bool promises_once(void *user, quire_memory *memory, const quire_out_of_memory *shortage)
{
    (void)user;
    CHECK_OK(quire_memory_check(memory));
    CHECK_EQ(quire_last_result(), shortage->reason);
    asked++;
    return shortage->times == 1;
}

static bool asks_the_caller(bench *t)
{
    return bench_open(t) &&
           bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                   .on_out_of_memory = {promises_once, NULL},
                                                   .pages.page_size = 64 * KIB}) &&
           bench_allocate(t, 3, &(quire_allocation_options){.size = 40 * KIB, .name = "a"}) &&
           bench_allocate(t, 2, &(quire_allocation_options){.size = 100, .dedicated = true}) &&
           bench_buffer(t, 2, &(quire_buffer_options){.size = 60 * KIB});
}

/* Asked before each page; what the pages may be is used up on the way. */
static bool run_budgets(bench *t, bool is_strict)
{
    quire_allocation made;
    fake_offer_budget(&t->fake);
    fake_set_budget(&t->fake, 0, 300 * KIB, 40 * KIB);
    if (!bench_open(t) || !bench_memory(t, &(quire_memory_options){.fit.algorithm = fit,
                                                                   .kind.mask = 1 << 3,
                                                                   .pages.page_size = 64 * KIB,
                                                                   .within_budget = is_strict}))
        return false;
    CHECK_OK(quire_device_set_heap_limit(t->device, 0, 250 * KIB));
    CHECK_OK(quire_memory_set_limit(t->memory, 280 * KIB));
    CHECK_OK(quire_memory_set_name_limit(t->memory, "few", 70 * KIB));
    const quire_allocation_options own = {.size = 30 * KIB, .dedicated = true, .name = "few/own"};
    if (!bench_allocate(t, 3, &(quire_allocation_options){.size = 60 * KIB}) ||
        !bench_allocate(t, 1, &own))
        return false;
    t->accepted = QUIRE_ERROR_OVER_BUDGET;
    TRY_OUT(t, made,
            quire_allocate(t->memory, &(quire_allocation_options){.size = 60 * KIB}, &made));
    t->accepted = QUIRE_ERROR_OVER_BUDGET;
    TRY_OUT(t, made,
            quire_allocate(t->memory,
                           &(quire_allocation_options){.size = 60 * KIB, .within_budget = true},
                           &made));
    quire_budget_info info;
    TRY_OUT(t, info, quire_device_get_budget(t->device, 0, &info));
    fake_set_budget(&t->fake, 0, 90 * KIB, 40 * KIB); /* below what there is */
    return bench_free_every(t, 1) && bench_allocate(t, 1, &own);
}

static bool budgets(bench *t)
{
    return run_budgets(t, true);
}

static bool budgets_as_advice(bench *t)
{
    return run_budgets(t, false);
}

static bool replay(bench *t)
{
    static const char text[] = "op,id,size,alignment,time_ns,stream,label\n"
                               "alloc,1,40000,64,0,0,a\nalloc,2,40000,64,0,0,b\n"
                               "alloc,3,40000,64,0,0,c\nfree,1,,,0,0,\nfree,2,,,0,0,\n"
                               "alloc,4,90000,64,0,0,d\n";
    return bench_open(t) && memory_of_kind(t, 1) && bench_replay(t, text, sizeof text - 1);
}

typedef struct row {
    const char *name;
    bench_scenario scenario;
} row;

static const row scenarios[] = {
    {"a device alone", bench_open},
    {"memory of the device", device_local},
    {"memory of the host, coherent", coherent},
    {"memory of the host, not coherent", not_coherent},
    {"memory of the host, mapped on demand", on_demand_coherent},
    {"memory of the host, mapped on demand and not coherent", on_demand_not_coherent},
    {"memory of the host, flushed in lists", flushed_in_lists},
    {"batches", batches},
    {"growing pages", growing_pages},
    {"an elastic page", elastic},
    {"lazy allocations", lazies},
    {"allocations that sleep", asleep},
    {"compaction", compaction},
    {"compaction by copies between pages", compaction_by_copies},
    {"compaction of pages that are mapped on demand", compaction_on_demand},
    {"dedicated pages", dedicated},
    {"reserve, commit and abort", reserved},
    {"buffers", buffers},
    {"buffers and images on a stream", objects_on_a_stream},
    {"images", images},
    {"images and buffers without objects", without_objects},
    {"as many pages as the device may have", as_many_pages_as_may_be},
    {"two shards, pages bounded and reserved", kept_pages},
    {"a caller who is asked", asks_the_caller},
    {"budgets", budgets},
    {"budgets as advice", budgets_as_advice},
    {"a replay", replay},
};

static void sweep(const void *row_)
{
    static const quire_result codes[] = {QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                                         QUIRE_ERROR_OUT_OF_HOST_MEMORY, QUIRE_ERROR_NOT_PERMITTED,
                                         QUIRE_ERROR_DEVICE_LOST, QUIRE_ERROR_BACKEND_FAILURE};
    const row *r = row_;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        for (int f = 0; f < 3; f++) {
            fit = fits[f];
            bench_sweep(&b, r->scenario, true, true, codes[i]);
        }
    }
}

/* Without a stride, which may leave out the few calls at which the caller is asked. */
static void caller_is_asked(void)
{
    asked = 0;
    fit = QUIRE_FIT_SEGREGATED;
    b.in_backend = true;
    b.from_then = false;
    b.code = QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
    CHECK(!bench_run(&b, asks_the_caller, true, 0));
    uint64_t calls = b.calls_before[b.step];
    for (uint64_t call = 1; call <= calls; call++)
        CHECK(bench_run(&b, asks_the_caller, true, call));
    CHECK(asked > 0);
}

/* ---- another attempt ------------------------------------------------------------------------ */

/* A backend without memory for a page is asked for less and less, while the request fits. */
static void smaller_pages(void)
{
    b.fail_at = 0;
    bench_begin(&b, true);
    b.fake.page_budget = 100 * KIB;
    CHECK(bench_open(&b) &&
          bench_memory(&b, &(quire_memory_options){.pages.page_size = 1024 * KIB}));
    quire_allocation made;
    quire_page_info page;
    CHECK_OK(quire_allocate(b.memory, &(quire_allocation_options){.size = 20 * KIB}, &made));
    CHECK_OK(quire_page_get_info(b.memory, 0, &page));
    CHECK_EQ(page.size, 64 * KIB);
    CHECK_OK(quire_allocate(b.memory, &(quire_allocation_options){.size = 40 * KIB}, &made));
    CHECK_FAILS(quire_allocate(b.memory, &(quire_allocation_options){.size = 40 * KIB}, &made),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(quire_last_native_code(), -7);
    CHECK_EQ(made.id, 0);
    quire_memory_destroy_all(&b.memories[0]);
    bench_end(&b);
}

/* ---- what is remembered of a refusal -------------------------------------------------------- */

static void fail_a_call(void *user, quire_log_level level, const char *line)
{
    (void)user;
    (void)level;
    (void)line;
    CHECK_FAILS(quire_memory_check(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
}

/* The log sink may call quire; what fails there is not the failure of the call that logged. */
static void sinks_do_not_change_results(void)
{
    b.fail_at = 0;
    bench_begin(&b, true);
    const quire_device_options options = {.host_memory = &b.host.callbacks,
                                          .log = {fail_a_call, NULL, QUIRE_LOG_DEBUG}};
    CHECK_OK(quire_device_create(&b.fake.table, &b.fake, &options, &b.device));
    CHECK(bench_memory(&b, NULL));
    quire_buffer made;
    for (uint64_t call = 1; call <= 4; call++) { /* object, page, zeros, bind */
        fake_fail(&b.fake, call, false, QUIRE_ERROR_NOT_PERMITTED);
        CHECK_FAILS(quire_buffer_create(
                        b.memory,
                        &(quire_buffer_options){.size = 10, .dedicated = true, .zero = true},
                        &made),
                    QUIRE_ERROR_NOT_PERMITTED);
        CHECK_EQ(quire_last_native_code(), -13);
        CHECK_OK(quire_memory_trim(b.memory, 0, NULL));
    }
    bench_end(&b);
}

/* What was placed and taken back was neither an allocation nor a free. */
static void refused_calls_are_not_counted(void)
{
    b.fail_at = 0;
    bench_begin(&b, true);
    CHECK(bench_open(&b) && bench_memory(&b, NULL));
    quire_buffer made;
    quire_memory_stats stats;
    for (uint64_t call = 1; call <= 4; call++) {
        fake_fail(&b.fake, call, false, QUIRE_ERROR_NOT_PERMITTED);
        CHECK_FAILS(quire_buffer_create(
                        b.memory,
                        &(quire_buffer_options){.size = 10, .dedicated = true, .zero = true},
                        &made),
                    QUIRE_ERROR_NOT_PERMITTED);
        CHECK_OK(quire_memory_get_stats(b.memory, &stats));
        CHECK_EQ(stats.allocations, 0);
        CHECK_EQ(stats.frees, 0);
        CHECK_OK(quire_memory_trim(b.memory, 0, NULL));
    }
    bench_end(&b);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { MAX_OWN = 32, MAX_THREADS = 8 };

static quire_result (*real_create)(void *, const quire_page_request *, quire_native_page *);
static _Atomic uint64_t drawn, refused, max_seen;
static uint32_t memory_count; /* the threads share them out */
static bool with_reserve;
static _Atomic uint64_t exchanged[MAX_OWN]; /* ids, so that threads free what others allocated */

static quire_result flaky_create(void *state, const quire_page_request *request,
                                 quire_native_page *page)
{
    static const quire_result codes[] = {QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                                         QUIRE_ERROR_OUT_OF_HOST_MEMORY,
                                         QUIRE_ERROR_BACKEND_FAILURE};
    test_random r = {.state = seed + atomic_fetch_add(&drawn, 1)};
    if (random_below(&r, 3) == 0)
        return quire_backend_fail(codes[random_below(&r, 3)], -13, "flaky");
    return real_create(state, request, page);
}

/* Notes the most pages that are alive, the new one among them. */
static quire_result watched_create(void *state, const quire_page_request *request,
                                   quire_native_page *page)
{
    quire_result result = real_create(state, request, page);
    pthread_mutex_lock(&b.fake.lock);
    if (b.fake.pages > max_seen)
        max_seen = b.fake.pages;
    pthread_mutex_unlock(&b.fake.lock);
    return result;
}

static bool may_answer(quire_result result)
{
    return !result || result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY ||
           result == QUIRE_ERROR_OUT_OF_HOST_MEMORY || result == QUIRE_ERROR_BACKEND_FAILURE ||
           result == QUIRE_ERROR_TOO_MANY_PAGES;
}

static void *allocate_and_free(void *user)
{
    test_random r = {.state = seed + (uintptr_t)user};
    quire_memory *memory = b.memories[(uintptr_t)user % memory_count];
    quire_allocation own[MAX_OWN] = {{0}};
    for (uint64_t i = 0; i < steps; i++) {
        quire_allocation *at = &own[random_below(&r, MAX_OWN)];
        if (at->id) {
            CHECK_OK(quire_free(memory, *at));
            at->id = 0;
            continue;
        }
        const quire_allocation_options options = {.size = random_size(&r, 40 * KIB),
                                                  .dedicated = random_below(&r, 8) == 0};
        quire_result result = quire_allocate(memory, &options, at);
        CHECK(may_answer(result));
        CHECK_EQ(!result, at->id != 0);
        atomic_fetch_add(&refused, result != QUIRE_SUCCESS);
        if (random_below(&r, 16) == 0)
            CHECK_OK(quire_memory_trim(memory, 0, NULL));
        if (with_reserve)
            at->id = atomic_exchange(&exchanged[random_below(&r, MAX_OWN)], at->id);
        if (with_reserve && random_below(&r, 32) == 0)
            CHECK(may_answer(quire_memory_preallocate(memory, random_below(&r, 512 * KIB))));
    }
    for (uint32_t i = 0; i < MAX_OWN; i++)
        if (own[i].id)
            CHECK_OK(quire_free(memory, own[i]));
    return NULL;
}

static void run_threads(uintptr_t count, uint32_t memories)
{
    memory_count = memories;
    pthread_t threads[MAX_THREADS];
    for (uintptr_t i = 0; i < count; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, allocate_and_free, (void *)i), 0);
    for (uintptr_t i = 0; i < count; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static void pages_fail_at_random(void)
{
    for (int i = 0; i < 3; i++) {
        refused = 0;
        b.fail_at = 0;
        bench_begin(&b, true);
        real_create = b.fake.table.page_create;
        b.fake.table.page_create = flaky_create;
        fit = fits[i];
        CHECK(bench_open(&b) && memory_of_kind(&b, 1));
        run_threads(4, 1);
        (void)bench_fingerprint(&b);
        CHECK(refused > 0);
        bench_end(&b);
    }
}

static bool says_yes_twice(void *user, quire_memory *memory, const quire_out_of_memory *shortage)
{
    (void)user;
    CHECK_OK(quire_memory_trim(memory, 0, NULL));
    return shortage->times <= 2;
}

/* Pages go and move between shards while others are made, reserved and refused. */
static void kept_pages_fail_at_random(void)
{
    static const uint64_t bytes[] = {0, 1, 300 * KIB};
    for (int i = 0; i < 3; i++) {
        refused = 0;
        b.fail_at = 0;
        bench_begin(&b, true);
        real_create = b.fake.table.page_create;
        b.fake.table.page_create = flaky_create;
        CHECK(bench_open(&b) && bench_memory(&b, &(quire_memory_options){
                                                     .shards = (uint32_t)i + 1,
                                                     .on_out_of_memory = {says_yes_twice, NULL},
                                                     .pages = {.page_size = 64 * KIB,
                                                               .max_pages = 6,
                                                               .retained_empty_bytes = bytes[i],
                                                               .retention_nanoseconds = 100000}}));
        with_reserve = true;
        run_threads(4, 1);
        with_reserve = false;
        for (int j = 0; j < MAX_OWN; j++) {
            quire_allocation left = {atomic_exchange(&exchanged[j], 0)};
            CHECK(!left.id || !quire_free(b.memory, left));
        }
        (void)bench_fingerprint(&b);
        CHECK(refused > 0);
        bench_end(&b);
    }
}

static void page_limit_is_never_overshot(void)
{
    enum { LIMIT = 5, MEMORIES = 4 };
    const quire_memory_options options = {.pages.dedicated = QUIRE_DEDICATED_ALWAYS};
    refused = max_seen = 0;
    b.fail_at = 0;
    bench_begin(&b, true);
    real_create = b.fake.table.page_create;
    b.fake.table.page_create = watched_create;
    b.fake.info.limits.max_pages = LIMIT;
    CHECK(bench_open(&b));
    for (int i = 0; i < MEMORIES; i++)
        CHECK(bench_memory(&b, &options));
    run_threads(8, MEMORIES);
    CHECK_EQ(max_seen, LIMIT); /* reached, or the test shows nothing, and never passed */
    CHECK(refused > 0);
    (void)bench_fingerprint(&b);
    bench_end(&b);
}

int main(int argc, char **argv)
{
    seed = plain_option(argc, argv, "seed", 1);
    steps = plain_option(argc, argv, "steps", 4000);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 "\n", seed, steps);
    fault_begin(argc, argv);
    FAULT_TABLE(scenarios, sweep);
    printf("# after %" PRIu64 " of the faults the call succeeded\n", b.recovered);
    if (!fault_runs_all())
        return fault_end();
    plain_case("a caller is asked at some fault", caller_is_asked);
    plain_case("smaller pages when memory is short", smaller_pages);
    plain_case("threads whose pages fail at random", pages_fail_at_random);
    plain_case("threads, shards, and kept pages that fail at random", kept_pages_fail_at_random);
    plain_case("a limit of pages is never overshot", page_limit_is_never_overshot);
    plain_case("refused calls are not counted", refused_calls_are_not_counted);
    plain_case("log sinks do not change results", sinks_do_not_change_results);
    return fault_end();
}
