/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * checked_pages.c - checked builds and the pages of a memory: empty pages that are kept, pages that
 * change their shard, batches and budgets. Ranges in quarantine are available to an allocation in
 * any shard.
 */
#include <pthread.h>

#include "src/base/poison.h"
#include "src/base/thread.h"
#include "tests/support/streams.h"
#include "tests/support/unit.h"
#include "tests/support/watched.h"

enum { SIZE = 100, PAGE = 65536, WHOLE = PAGE - 1000, MANY = 150 };

static uint64_t pages_created(const watched *w)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    return stats.pages_created;
}

/* ---- pages that are kept ------------------------------------------------------------------ */

static void (*real_destroy)(void *, const quire_native_page *);
static const char *watched_bytes; /* of this page, if it is mapped */
static uint64_t watched_page;
static int destroyed;

static void look_at_destroy(void *state, const quire_native_page *page)
{
    if (page->address == watched_page)
        CHECK(!watched_bytes || !qi_is_poisoned(watched_bytes));
    destroyed++;
    real_destroy(state, page);
}

static void make_with_destroy(watched *w, uint32_t kind)
{
    watched_prepare(w);
    real_destroy = w->fake.table.page_destroy;
    w->fake.table.page_destroy = look_at_destroy;
    destroyed = 0;
    watched_open(
        w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind, .pages = {.page_size = PAGE}});
}

UNIT_EACH(checked_pages, a_dedicated_page_that_is_kept_is_filled_and_poisoned_and_reused, watched,
          w, kind, 0, KINDS, make_with_destroy(w, kind), watched_end)
{
    const quire_allocation_options options = {.size = SIZE, .dedicated = true};
    quire_allocation allocation;
    CHECK_OK(quire_allocate(w->memory, &options, &allocation));
    quire_native native = watched_native(w, allocation);
    watched_bytes = native.host;
    watched_page = native.page.address;
    bool is_poisonable = qi_poison_works() && native.host;
    CHECK_OK(quire_free(w->memory, allocation));
    CHECK_EQ(w->fake.pages, 1);
    CHECK_EQ(watched_byte(w, &native, 0), 0xfd);
    CHECK(!is_poisonable || qi_is_poisoned(watched_bytes));
    CHECK_OK(quire_allocate(w->memory, &options, &allocation));
    CHECK_EQ(pages_created(w), 1);
    CHECK_EQ(watched_byte(w, &native, 0), 0xff);
    CHECK(!is_poisonable || !qi_is_poisoned(watched_bytes));
    watched_spoil(w, &native, SIZE);
    CHECK_FAILS(quire_free(w->memory, allocation), QUIRE_ERROR_CORRUPTED);
    CHECK_OK(quire_memory_trim(w->memory, 0, NULL));
    CHECK_EQ(destroyed, 1);
}

UNIT_EACH(checked_pages, a_shared_page_that_is_kept_stays_poisoned_and_is_unpoisoned_at_its_end,
          watched, w, kind, 0, KINDS, make_with_destroy(w, kind), watched_end)
{
    quire_native native = watched_native(w, watched_allocate(w, WHOLE, NULL));
    watched_bytes = native.host;
    watched_page = native.page.address;
    bool is_poisonable = qi_poison_works() && native.host;
    CHECK_OK(quire_free(w->memory, w->allocation));
    watched_settle(w);
    CHECK_EQ(w->fake.pages, 1);
    CHECK_EQ(watched_byte(w, &native, WHOLE - 1), 0xfd);
    CHECK(!is_poisonable || qi_is_poisoned(watched_bytes));
    CHECK_OK(quire_memory_preallocate(w->memory, 2 * PAGE));
    CHECK_OK(quire_memory_trim(w->memory, 0, NULL));
    CHECK(destroyed >= 2);
}

/*
 * A page is destroyed while its range leaves the quarantine. The sink that receives this line
 * allocates.
 */
static quire_memory *sink_memory;
static int lines;

static void allocate_at_line(void *user, quire_log_level level, const char *line)
{
    quire_allocation allocation;
    (void)user, (void)level;
    if (!sink_memory || !strstr(line, "given back") || lines++)
        return;
    CHECK_OK(quire_allocate(sink_memory, &(quire_allocation_options){.size = WHOLE}, &allocation));
}

UNIT_ON(checked_pages, a_sink_may_allocate_when_a_page_is_destroyed, watched, w, watched_prepare(w),
        watched_end)
{
    const quire_device_options device = {
        .log = {.write = allocate_at_line, .level = QUIRE_LOG_DEBUG}};
    CHECK_OK(quire_device_create(&w->fake.table, &w->fake, &device, &w->device));
    CHECK_OK(quire_memory_create(
        w->device,
        &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                .pages = {.page_size = PAGE, .retained_empty_bytes = 1}},
        &w->memory));
    watched_allocate(w, WHOLE, NULL);
    CHECK_OK(quire_free(w->memory, w->allocation));
    sink_memory = w->memory;
    watched_settle(w);
    sink_memory = NULL;
    CHECK(lines >= 1);
}

/* ---- shards ------------------------------------------------------------------------------- */

typedef struct task {
    watched *w;
    void (*run)(watched *w);
    uint32_t number;
} task;

static void *go(void *user)
{
    task *e = user;
    e->number = qi_thread_number();
    e->run(e->w);
    return NULL;
}

/* Runs a function in a thread that uses the other of two shards. */
static void in_other_shard(watched *w, void (*run)(watched *w))
{
    pthread_t thread;
    task e = {.w = w, .run = run};
    uint32_t mine = qi_thread_number();
    CHECK_EQ(pthread_create(&thread, NULL, go, &e), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ((mine + e.number) % 2, 1);
}

static void make_sharded(watched *w, uint32_t kind, uint32_t max_pages)
{
    watched_prepare(w);
    watched_open(w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                            .shards = 2,
                                            .pages = {.page_size = PAGE, .max_pages = max_pages}});
}

static void allocate_whole(watched *w)
{
    watched_allocate(w, WHOLE, "whole");
}

static void allocate_and_free_whole(watched *w)
{
    watched_allocate(w, WHOLE, "whole");
    CHECK_OK(quire_free(w->memory, w->allocation));
}

static void free_it(watched *w)
{
    CHECK_OK(quire_free(w->memory, w->allocation));
}

UNIT_EACH(checked_pages, quarantined_ranges_of_another_shard_make_room, watched, w, kind, 0, KINDS,
          make_sharded(w, kind, 1), watched_end)
{
    in_other_shard(w, allocate_and_free_whole);
    watched_allocate(w, WHOLE, NULL); /* takes the page of the other shard */
    CHECK_OK(quire_memory_check(w->memory));
    in_other_shard(w, free_it); /* freed by another thread, into the quarantine shared by all */
    CHECK_EQ(w->fake.pages, 1);
    in_other_shard(w, allocate_whole);
    CHECK_EQ(pages_created(w), 1);
    CHECK_OK(quire_free(w->memory, w->allocation));
    CHECK_OK(quire_memory_check(w->memory));
}

UNIT(checked_pages, bytes_stay_poisoned_when_a_page_changes_its_shard)
{
    if (!qi_poison_works())
        return;
    watched w;
    make_sharded(&w, KIND_COHERENT, 1);
    in_other_shard(&w, allocate_and_free_whole);
    const char *bytes = watched_native(&w, watched_allocate(&w, SIZE, NULL)).host;
    CHECK_EQ(pages_created(&w), 1);
    CHECK(!qi_is_poisoned(bytes) && !qi_is_poisoned(bytes + SIZE - 1));
    CHECK(qi_is_poisoned(bytes - 1) && qi_is_poisoned(bytes + SIZE));
    CHECK(qi_is_poisoned(bytes + WHOLE / 2));
    watched_end(&w);
}

UNIT_EACH(checked_pages, stray_writes_are_found_by_a_free_from_another_shard, watched, w, kind, 0,
          KINDS, make_sharded(w, kind, 0), watched_end)
{
    quire_memory_stats stats;
    in_other_shard(w, allocate_whole);
    quire_native native = watched_native(w, w->allocation);
    watched_spoil(w, &native, -1);
    CHECK_FAILS(quire_free(w->memory, w->allocation), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "'whole'");
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.live_bytes + stats.requested_bytes, 0);
    watched_spoil(w, &native, 5);
    w->log[0] = '\0';
    in_other_shard(w, watched_settle);
    CHECK_HAS(w->log, "'whole'");
    CHECK_HAS(w->log, "written after it was freed");
    CHECK_FAILS(quire_memory_check(w->memory), QUIRE_ERROR_CORRUPTED);
    CHECK_OK(quire_memory_destroy(&w->memory));
}

UNIT_EACH_KIND(checked_pages, ranges_of_a_batch_are_checked_one_by_one)
{
    quire_memory_stats stats;
    quire_allocation many[MANY];
    const quire_allocation_options options = {.size = SIZE};
    CHECK_OK(quire_allocate_batch(w->memory, &options, many, MANY));
    CHECK_OK(quire_memory_check(w->memory));
    quire_native native = watched_native(w, many[MANY / 2]);
    CHECK_EQ(watched_byte(w, &native, SIZE - 1), 0xff);
    watched_spoil(w, &native, SIZE);
    CHECK_FAILS(quire_memory_check(w->memory), QUIRE_ERROR_CORRUPTED);
    CHECK_FAILS(quire_free_batch(w->memory, many, MANY), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "after its last byte");
    for (int i = 0; i < MANY; i++) /* every allocation was freed */
        CHECK_FAILS(quire_free(w->memory, many[i]), QUIRE_ERROR_STALE_HANDLE);
    CHECK_EQ(watched_byte(w, &native, 0), 0xfd);
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.allocation_count, 0);
    CHECK_OK(quire_memory_check(w->memory));
}

UNIT_ON(checked_pages, a_batch_that_is_refused_leaves_nothing, watched, w,
        make_sharded(w, KIND_DEVICE, 1), watched_end)
{
    quire_memory_stats stats;
    quire_allocation many[MANY];
    const quire_allocation_options options = {.size = PAGE / MANY};
    CHECK_FAILS(quire_allocate_batch(w->memory, &options, many, MANY), QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.allocations + stats.frees, 0);
    watched_allocate(w, WHOLE, NULL);
    CHECK_OK(quire_memory_check(w->memory));
}

/* ---- budgets ------------------------------------------------------------------------------ */

UNIT_ON(checked_pages, quarantined_bytes_do_not_count_for_their_name, watched, w,
        watched_make(w, KIND_COHERENT), watched_end)
{
    quire_name_usage usage;
    CHECK_OK(quire_memory_set_name_limit(w->memory, "w", 2000));
    for (int i = 0; i < 20; i++) {
        watched_allocate(w, 1000, "weights");
        CHECK_OK(quire_memory_check(w->memory));
        CHECK_FAILS(quire_allocate(w->memory,
                                   &(quire_allocation_options){.size = 1000, .name = "w"},
                                   &(quire_allocation){0}),
                    QUIRE_ERROR_OVER_BUDGET);
        CHECK_OK(quire_free(w->memory, w->allocation));
        CHECK_OK(quire_memory_get_name_usage(w->memory, "w", &usage));
        CHECK_EQ(usage.held_bytes + usage.requested_bytes + usage.allocation_count, 0);
    }
    CHECK_OK(quire_memory_check(w->memory));
}

UNIT_ON(checked_pages, a_lower_limit_releases_pages_with_quarantined_ranges, watched, w,
        watched_make(w, KIND_DEVICE), watched_end)
{
    watched_allocate(w, WHOLE, NULL);
    CHECK_OK(quire_free(w->memory, w->allocation));
    CHECK_OK(quire_memory_set_limit(w->memory, 1));
    CHECK_EQ(w->fake.pages, 0);
}

typedef struct rescue {
    quire_allocation spare;
    int calls;
} rescue;

static bool free_spare(void *user, quire_memory *memory, const quire_out_of_memory *what)
{
    rescue *s = user;
    (void)what;
    return !s->calls++ && !quire_free(memory, s->spare);
}

UNIT_EACH(checked_pages, the_callback_is_called_only_when_the_quarantine_is_empty, watched, w,
          shards, 1, 3, watched_prepare(w), watched_end)
{
    rescue s = {0};
    watched_open(w, &(quire_memory_options){.kind.mask = 1 << KIND_COHERENT,
                                            .shards = shards,
                                            .limit = PAGE,
                                            .on_out_of_memory = {free_spare, &s},
                                            .pages = {.page_size = PAGE}});
    for (int i = 0; i < 3; i++)
        allocate_and_free_whole(w);
    CHECK_EQ(s.calls, 0);
    s.spare = watched_allocate(w, WHOLE, NULL);
    watched_allocate(w, WHOLE, NULL); /* the range that the callback freed is used at once */
    CHECK_EQ(s.calls, 1);
    CHECK_FAILS(quire_allocate(w->memory, &(quire_allocation_options){.size = WHOLE},
                               &(quire_allocation){0}),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(s.calls, 2);
    CHECK_OK(quire_memory_check(w->memory));
}

/* ---- deferred frees: damage is reported when the range is released -------------------------- */

enum { USED = 70 }; /* more than a batch processes under one lock */

static void begin_streams(watched *w, uint32_t kind)
{
    watched_prepare(w);
    streams_offer(&w->fake.table);
    watched_open(w, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind,
                                            .pages = {.page_size = 65536}});
}

static void use_all(watched *w, quire_allocation *many, quire_stream *stream)
{
    CHECK_OK(
        quire_allocate_batch(w->memory, &(quire_allocation_options){.size = SIZE}, many, USED));
    for (int i = 0; i < USED; i++)
        CHECK_OK(quire_record_use(w->memory, many[i], stream));
}

static void spoil(watched *w, quire_allocation allocation)
{
    quire_native native = watched_native(w, allocation);
    watched_spoil(w, &native, SIZE);
}

static void expect_stale(watched *w, const quire_allocation *many)
{
    for (int i = 0; i < USED; i++)
        CHECK_FAILS(quire_free(w->memory, many[i]), QUIRE_ERROR_STALE_HANDLE);
}

/*
 * The stream of their uses was destroyed: the frees wait for nothing, and the free itself finds the
 * damage.
 */
UNIT_EACH(checked_pages, a_batch_whose_uses_have_passed_reports_damage_at_once, watched, w, kind, 0,
          KINDS, begin_streams(w, kind), watched_end)
{
    quire_memory_stats stats;
    quire_allocation many[USED];
    quire_stream *held = NULL;
    CHECK_OK(quire_stream_create(w->device, &(quire_stream_options){.capture = true}, &held));
    use_all(w, many, held);
    CHECK_OK(quire_stream_destroy(&held));
    spoil(w, many[USED - 1]);
    CHECK_FAILS(quire_free_batch(w->memory, many, USED), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), "after its last byte");
    expect_stale(w, many);
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.allocation_count + stats.deferred_count, 0);
    CHECK_OK(quire_memory_check(w->memory));
}

/* The free succeeds while the ranges wait. The log reports the damage when they are released. */
UNIT_EACH(checked_pages, a_batch_that_waits_reports_damage_when_it_is_released, watched, w, kind, 0,
          KINDS, begin_streams(w, kind), watched_end)
{
    quire_memory_stats stats;
    quire_allocation many[USED];
    quire_stream *stream = NULL;
    CHECK_OK(quire_stream_create(w->device, NULL, &stream));
    use_all(w, many, stream);
    spoil(w, many[0]);
    CHECK_OK(quire_free_batch(w->memory, many, USED));
    expect_stale(w, many);
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.deferred_count, USED);
    CHECK_OK(quire_collect(w->memory, NULL)); /* marks the stream */
    CHECK_STR(w->log, "");
    streams_pass(stream);
    CHECK_OK(quire_collect(w->memory, NULL));
    CHECK_HAS(w->log, "after its last byte");
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(stats.deferred_count, 0);
    CHECK_OK(quire_stream_destroy(&stream));
}
