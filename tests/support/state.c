/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * state.c - a fingerprint is a hash of what a walk reports, in its order. Also the runs of state.h:
 * its steps are bench_steps.c, the record of refused calls is refusal.c.
 */
#include "tests/support/state.h"

/* ---- fingerprints --------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ hash >> 29;
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = mix(hash, (unsigned char)*text);
    return mix(hash, 256);
}

/* A walk over a memory. The sum of a page counts only if the page holds an allocation. */
typedef struct gathering {
    quire_memory *memory;
    uint64_t total, page_sum, objects;
    uint32_t page;
    bool in_page, holds_any, is_mapped; /* of the page */
    uint64_t mapped_pages;              /* with a map of the caller or of an allocation */
    bool grows;                         /* its shared page does */
} gathering;

static void end_page(gathering *g)
{
    if (g->in_page && g->holds_any)
        g->total = mix(g->total, g->page_sum);
    g->mapped_pages += g->is_mapped;
    g->page_sum = 0;
    g->holds_any = g->is_mapped = false;
}

static uint64_t mix_allocation(uint64_t sum, gathering *g, const quire_item *item)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(g->memory, item->allocation, &info));
    CHECK_EQ(info.offset, item->offset);
    CHECK_EQ(info.page, item->page);
    sum = mix(mix(sum, item->allocation.id), item->left_padding);
    sum = mix(mix(sum, item->requested), item->user_data);
    sum = mix(mix(sum, info.map_count), info.committed);
    sum = mix(sum, info.backed);
    sum = mix(mix(sum, (uint64_t)info.object), info.native);
    g->objects += info.object != QUIRE_OBJECT_NONE;
    g->is_mapped |= info.map_count || info.host;
    return mix_text(sum, item->name);
}

static bool gather(void *user, const quire_item *item)
{
    gathering *g = user;
    if (!g->in_page || g->page != item->page)
        end_page(g);
    g->in_page = true;
    g->page = item->page;
    bool ends_anywhere = g->grows && !item->dedicated;
    if (ends_anywhere && item->is_free && item->offset + item->size == item->page_size)
        return true;
    uint64_t sum = mix(mix(g->page_sum, item->page), ends_anywhere ? 0 : item->page_size);
    sum = mix(mix(sum, item->offset), item->size);
    sum = mix(mix(sum, item->is_free), item->dedicated);
    g->holds_any |= !item->is_free;
    if (item->is_free)
        g->page_sum = sum;
    else if (item->allocation.id)
        g->page_sum = mix_allocation(sum, g, item);
    else /* it waits for a point */
        g->page_sum = mix(mix(sum, item->requested), item->left_padding);
    return true;
}

static uint64_t state_and_objects(quire_memory *memory, uint64_t *objects, uint64_t *mapped)
{
    quire_memory_stats stats;
    quire_memory_info info;
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_OK(quire_memory_get_info(memory, &info));
    gathering g = {.memory = memory, .grows = info.address_space != 0};
    CHECK_OK(quire_memory_walk(memory, gather, &g));
    end_page(&g);
    *objects += g.objects;
    *mapped = g.mapped_pages;
    uint64_t sum = mix(mix(g.total, stats.live_bytes), stats.requested_bytes);
    uint64_t holding = g.grows ? 0 : stats.reserved_bytes - stats.empty_bytes;
    sum = mix(mix(sum, stats.allocation_count), holding);
    return mix(sum, stats.allocations - stats.frees);
}

uint64_t state_of_memory(quire_memory *memory)
{
    uint64_t objects = 0, mapped = 0;
    return state_and_objects(memory, &objects, &mapped);
}

static bool gather_range(void *user, const quire_space_item *item)
{
    uint64_t *sum = user;
    *sum = mix(mix(*sum, item->region), item->is_free);
    *sum = mix(mix(*sum, item->offset), item->size);
    *sum = mix(mix(*sum, item->left_padding), item->range.id);
    *sum = mix(*sum, item->user);
    return true;
}

uint64_t state_of_space(const quire_space *space)
{
    uint64_t sum = 1;
    quire_space_stats stats;
    CHECK_OK(quire_space_walk(space, gather_range, &sum));
    CHECK_OK(quire_space_get_stats(space, &stats));
    sum = mix(mix(sum, stats.granule), stats.region_bytes);
    sum = mix(mix(sum, stats.live_bytes), stats.padding_bytes);
    sum = mix(mix(sum, stats.free_bytes), stats.largest_free);
    sum = mix(mix(sum, stats.live_count), stats.free_count);
    return mix(sum, stats.region_count);
}

/* The counts of the backend must match those of the library: otherwise a page or object is lost. */
static void check_backend(const bench *t, const quire_device_stats *sums, uint64_t mapped)
{
    quire_device_stats stats;
    CHECK_OK(quire_device_get_stats(t->device, &stats));
    CHECK_EQ(stats.page_count, sums->page_count);
    CHECK_EQ(stats.reserved_bytes, sums->reserved_bytes);
    CHECK_EQ(stats.live_bytes, sums->live_bytes);
    CHECK_EQ(stats.allocation_count, sums->allocation_count);
    CHECK_EQ(stats.memory_count, sums->memory_count);
    if (!t->on_fake)
        return;
    CHECK_EQ(t->fake.pages, sums->page_count);
    CHECK_EQ(t->fake.page_bytes, sums->reserved_bytes);
    const uint64_t objects = t->fake.table.object_create ? t->objects : 0;
    CHECK(t->objects_wait ? t->fake.objects >= objects : t->fake.objects == objects);
    CHECK_EQ(t->fake.maps, mapped);
}

static uint64_t memory_part(bench *t, quire_memory *memory, quire_device_stats *sums,
                            uint64_t *mapped)
{
    quire_memory_stats stats;
    quire_memory_info info;
    CHECK_OK(quire_memory_check(memory));
    CHECK_OK(quire_memory_get_stats(memory, &stats));
    CHECK_OK(quire_memory_get_info(memory, &info));
    sums->page_count += stats.page_count;
    sums->reserved_bytes += stats.reserved_bytes;
    sums->live_bytes += stats.live_bytes;
    sums->allocation_count += stats.allocation_count;
    sums->memory_count++;
    uint64_t mapped_pages = 0, state = state_and_objects(memory, &t->objects, &mapped_pages);
    if (info.mappable)
        *mapped += t->on_demand ? mapped_pages : stats.page_count;
    return state;
}

uint64_t bench_fingerprint(bench *t)
{
    uint64_t fail_at = t->host.fail_at, calls = t->host.calls, mapped = 0, sum = 0;
    quire_device_stats sums = {0};
    t->host.fail_at = 0; /* the walk below takes host memory, which the plan must not count */
    t->objects = 0;
    for (int i = 0; i < BENCH_MAX_MEMORIES; i++)
        if (t->memories[i])
            sum = mix(sum, memory_part(t, t->memories[i], &sums, &mapped));
    if (t->device)
        check_backend(t, &sums, mapped);
    if (t->space) {
        CHECK_OK(quire_space_check(t->space));
        sum = mix(sum, state_of_space(t->space));
    }
    t->host.fail_at = fail_at;
    t->host.calls = calls;
    return sum;
}

/* ---- one step ------------------------------------------------------------------------------- */

static uint64_t calls_so_far(const bench *t)
{
    return t->in_backend ? t->fake.fallible_calls : t->host.calls;
}

void bench_before(bench *t)
{
    CHECK(t->step + 1 < BENCH_MAX_STEPS);
    uint32_t step = t->step++;
    if (!t->fail_at)
        t->calls_before[step] = calls_so_far(t);
    bool comes =
        t->fail_at > t->calls_before[step] && t->fail_at <= t->calls_before[step + 1] && !t->hit;
    if (t->fail_at && (comes || (t->hit && t->from_then)))
        t->before = bench_fingerprint(t);
}

bool state_is_zero(const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    while (size && !*p) {
        p++;
        size--;
    }
    return !size;
}

static void check_failure(bench *t, const char *call, const void *out, size_t size)
{
    if (quire_last_result() != t->code || !*quire_last_error())
        check_failed(__FILE__, __LINE__, "%s: the last error is %s '%s'", call,
                     quire_result_name(quire_last_result()), quire_last_error());
    int64_t native = t->in_backend ? t->fake.fail_native : 0;
    if (quire_last_native_code() != native)
        check_failed(__FILE__, __LINE__, "%s: the native code is %" PRId64 ", not %" PRId64, call,
                     quire_last_native_code(), native);
    if (!state_is_zero(out, size))
        check_failed(__FILE__, __LINE__, "%s failed and its output is not zero", call);
    if (bench_fingerprint(t) != t->before)
        check_failed(__FILE__, __LINE__, "%s failed (call %" PRIu64 ") and changed something", call,
                     t->fail_at);
}

/*
 * A call may succeed after a fault only in planned cases. The library retries with a smaller page,
 * or places the request by the full pass, if the backend had no memory to create or grow a page.
 */
static void check_recovered(bench *t, const char *call)
{
    bool making = t->fake.failed_call == FAKE_PAGE_CREATE || t->fake.failed_call == FAKE_MAP ||
                  t->fake.failed_call == FAKE_HEAP_BUDGET || t->fake.failed_call == FAKE_PAGE_BACK;
    t->recovered++;
    if (t->tolerance == BENCH_STRICT && !t->does_without &&
        !(t->in_backend && t->code == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY && making))
        check_failed(__FILE__, __LINE__, "%s succeeded although call %" PRIu64 " failed", call,
                     t->fail_at);
}

/* Judges a call; returns true if it must be repeated. */
bool bench_after(bench *t, const char *call, quire_result result, void *out, size_t size)
{
    bool first = !t->hit && t->fail_at && calls_so_far(t) >= t->fail_at;
    bool passes = !result || (t->accepted && result == t->accepted);
    t->hit = t->hit || first;
    if (passes && first)
        check_recovered(t, call);
    if (!passes) {
        bool planned = first || (t->hit && t->from_then);
        if (!planned || result != t->code || t->tolerance == BENCH_NEVER_FAILS)
            check_failed(__FILE__, __LINE__, "%s gives %s, planned is %s at call %" PRIu64 ": %s",
                         call, quire_result_name(result), quire_result_name(t->code), t->fail_at,
                         quire_last_error());
        check_failure(t, call, out, size);
        t->stopped = t->from_then;
        if (!t->stopped)
            return true;
    }
    t->accepted = QUIRE_SUCCESS;
    t->tolerance = BENCH_STRICT;
    return false;
}

/* ---- runs ----------------------------------------------------------------------------------- */

void bench_begin(bench *t, bool on_fake)
{
    test_memory_init(&t->host);
    fake_init(&t->fake);
    fake_offer_growth(&t->fake);
    t->on_fake = on_fake;
    t->device = NULL;
    t->memory = NULL;
    memset(t->memories, 0, sizeof t->memories);
    t->space = NULL;
    t->held_count = 0;
    t->accepted = QUIRE_SUCCESS;
    t->tolerance = BENCH_STRICT;
    t->hit = t->stopped = t->does_without = t->objects_wait = t->on_demand = false;
    t->step = 0;
}

static void free_held(bench *t)
{
    for (uint32_t i = 0; i < t->held_count; i++) {
        while (t->held[i].allocation.id && t->held[i].maps)
            CHECK(bench_unmap(t, i));
        if (t->held[i].allocation.id)
            CHECK(t->held[i].reserved ? bench_abort(t, i) : bench_free(t, i));
    }
}

/* Three ways to end, selected by the number of the fault: all three must work from any state. */
static void end_memory(bench *t, quire_memory **memory)
{
    if (t->fail_at % 3 == 2) {
        quire_memory_destroy_all(memory);
    } else {
        if (t->fail_at % 3 == 1) {
            uint64_t released = 1;
            CHECK_OK(
                /* may request memory, but does not need it */
                quire_memory_trim(*memory, 0, &released));
            test_memory_fail(&t->host, 1, true);
        }
        CHECK_OK(quire_memory_destroy(memory));
    }
    CHECK(!*memory);
    CHECK(t->host.calls == 0 ||
          t->does_without); /* freeing, unmapping and destroying never allocate */
}

void bench_end(bench *t)
{
    bool opened = t->device != NULL;
    test_memory_fail(&t->host, 1, true);
    fake_fail(&t->fake, 1, true, QUIRE_ERROR_DEVICE_LOST);
    if (t->fail_at % 3 != 2)
        free_held(t);
    for (int i = 0; i < BENCH_MAX_MEMORIES; i++)
        if (t->memories[i])
            end_memory(t, &t->memories[i]);
    quire_space_destroy(&t->space);
    CHECK_OK(quire_device_destroy(&t->device));
    CHECK(!t->device && !t->space);
    CHECK(t->host.calls == 0 || t->does_without);
    CHECK_EQ(t->host.blocks, 0);
    CHECK_EQ(t->host.bytes, 0);
    CHECK_EQ(t->fake.pages, 0);
    CHECK_EQ(t->fake.page_bytes, 0);
    CHECK_EQ(t->fake.objects, 0);
    CHECK_EQ(t->fake.maps, 0);
    CHECK_EQ(t->fake.ended, opened && t->on_fake);
    pthread_mutex_destroy(&t->host.lock);
    pthread_mutex_destroy(&t->fake.lock);
}

bool bench_run(bench *t, bench_scenario scenario, bool on_fake, uint64_t fail_at)
{
    t->fail_at = fail_at;
    bench_begin(t, on_fake);
    if (t->in_backend)
        fake_fail(&t->fake, fail_at, t->from_then, t->code);
    else
        test_memory_fail(&t->host, fail_at, t->from_then);
    bool done = scenario(t);
    if (!fail_at)
        t->calls_before[t->step] = calls_so_far(t);
    if (!done && !t->stopped)
        check_failed(__FILE__, __LINE__, "the scenario ended without a fault");
    (void)bench_fingerprint(t);
    bool hit = t->hit;
    bench_end(t);
    return hit;
}
