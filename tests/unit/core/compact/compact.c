/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact.c - compaction of a memory: which allocations move and which stay, contents and
 * addresses, limits of a step, what is refused, failures of every call, and convergence.
 */
#include "src/core/compact/compact.h"

#include <pthread.h>
#include <string.h>

#include "quire/elastic.h"
#include "tests/support/fixture.h"
#include "tests/support/random.h"

enum { KIB = 1024, PAGE = 64 * KIB, MANY = 4000 };

static void begin_with(fixture *f, const quire_memory_options *options)
{
    quire_memory_options all = *options;
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    all.shards = 1;
    all.pages.page_size = all.pages.page_size ? all.pages.page_size : PAGE;
    fixture_make(f, &all);
}

static void begin(fixture *f)
{
    begin_with(f, &(quire_memory_options){.name = "m"});
}

#define CASE(name) UNIT_ON(compact, name, fixture, f, begin(f), fixture_end)

static quire_allocation take(fixture *f, uint64_t size)
{
    return ALLOCATE(f, .size = size, .alignment = 256, .movable = true);
}

/* The contents of an allocation are its number. */
static void fill(fixture *f, quire_allocation allocation)
{
    uint64_t number = allocation.id;
    CHECK_OK(quire_write(f->memory, allocation, 0, &number, sizeof number));
    CHECK_OK(quire_write(f->memory, allocation,
                         fixture_info(f, allocation).requested - sizeof number, &number,
                         sizeof number));
}

static void expect_contents(fixture *f, quire_allocation allocation)
{
    uint64_t first = 0, last = 0;
    CHECK_OK(quire_read(f->memory, allocation, 0, &first, sizeof first));
    CHECK_OK(quire_read(f->memory, allocation, fixture_info(f, allocation).requested - sizeof last,
                        &last, sizeof last));
    CHECK(first == allocation.id && last == allocation.id);
}

static quire_memory_stats stats_of(fixture *f)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(f->memory));
    CHECK_OK(quire_memory_get_stats(f->memory, &stats));
    CHECK_EQ(stats.reserved_bytes, f->fake.page_bytes);
    return stats;
}

static quire_compaction *begin_compaction(fixture *f)
{
    quire_compaction *c = NULL;
    CHECK_OK(qi_compact_begin(f->memory, &c));
    return c;
}

static quire_compact_stats step(quire_compaction *c, quire_compact_limits limits)
{
    quire_compact_stats stats;
    CHECK_OK(qi_compact_step(c, &limits, &stats));
    return stats;
}

/* All of it in one step. */
static quire_compact_stats compact(fixture *f)
{
    quire_compaction *c = begin_compaction(f);
    const quire_compact_stats stats = step(c, (quire_compact_limits){0});
    CHECK(stats.is_complete);
    qi_compact_end(c);
    return stats;
}

/* Four pages: the last one has a quarter of its bytes in use, the others three. */
static void put_four_pages(fixture *f, quire_allocation made[16])
{
    for (int i = 0; i < 16; i++) {
        made[i] = take(f, PAGE / 4);
        fill(f, made[i]);
    }
    for (int i = 0; i < 16; i++)
        if (i < 12 ? i % 4 == 1 : i % 4 != 1)
            CHECK_OK(quire_free(f->memory, made[i]));
    CHECK_EQ(stats_of(f).page_count, 4);
}

static bool is_left(int i)
{
    return i < 12 ? i % 4 != 1 : i % 4 == 1;
}

/* ---- what moves --------------------------------------------------------------------------- */

CASE(the_emptiest_page_becomes_empty_and_goes)
{
    quire_allocation made[16];
    put_four_pages(f, made);
    const quire_memory_stats before = stats_of(f);
    const quire_allocation_info info = fixture_info(f, made[13]);
    const quire_compact_stats done = compact(f);
    CHECK_EQ(done.moves, 1);
    CHECK_EQ(done.bytes_moved, PAGE / 4);
    CHECK_EQ(done.pages_freed, 1);
    CHECK_EQ(done.bytes_freed, PAGE);
    const quire_memory_stats after = stats_of(f);
    CHECK_EQ(after.page_count, 3);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.allocation_count, before.allocation_count);
    CHECK_EQ(after.allocations, before.allocations);
    CHECK_EQ(after.frees, before.frees);
    CHECK(fixture_info(f, made[13]).page != info.page);
    CHECK(fixture_info(f, made[13]).address != info.address);
    for (int i = 0; i < 16; i++)
        if (is_left(i)) {
            expect_contents(f, made[i]);
            CHECK_OK(quire_free(f->memory, made[i]));
        }
}

/* A place that is free in another page does not do if it has another alignment. */
CASE(alignments_hold)
{
    quire_allocation held = take(f, PAGE - 8 * KIB), gap = take(f, 512), rest = take(f, 7 * KIB);
    quire_allocation other = take(f, PAGE / 2);
    quire_allocation moved = ALLOCATE(f, .size = 6000, .alignment = 4096, .movable = true);
    CHECK(fixture_info(f, moved).page == fixture_info(f, other).page);
    CHECK_OK(quire_free(f->memory, other));
    CHECK_OK(quire_free(f->memory, rest));
    fill(f, moved);
    CHECK_EQ(compact(f).moves, 0); /* 7.5 KiB are free behind it, and no 6000 bytes at 4096 */
    CHECK_OK(quire_free(f->memory, gap));
    CHECK_EQ(compact(f).moves, 1);
    CHECK_EQ(fixture_info(f, moved).page, fixture_info(f, held).page);
    CHECK_EQ(fixture_info(f, moved).offset % 4096, 0);
    expect_contents(f, moved);
}

/* Pages of three quarters: none of them can become empty. */
CASE(what_can_free_no_page_moves_nothing)
{
    quire_allocation made[12];
    for (int i = 0; i < 12; i++)
        made[i] = take(f, PAGE / 4);
    for (int i = 0; i < 12; i += 4)
        CHECK_OK(quire_free(f->memory, made[i]));
    const uint64_t calls = f->fake.fallible_calls;
    const quire_compact_stats done = compact(f);
    CHECK_EQ(done.moves + done.pages_freed, 0);
    CHECK_EQ(f->fake.fallible_calls, calls);
}

/* ---- what stays --------------------------------------------------------------------------- */

typedef enum reason { PLAIN, NOT_MOVABLE, MAPPED, LASTING_MAP, HELD, OFFSET, REASONS } reason;

/* The only allocation of the last page. */
static quire_allocation put_last(fixture *f, reason why)
{
    void *pointer;
    quire_allocation last =
        ALLOCATE(f, .size = 768, .movable = why != NOT_MOVABLE, .mapped = why == LASTING_MAP,
                 .offset_alignment = why == OFFSET ? 3 : 0);
    if (why == MAPPED)
        CHECK_OK(quire_map(f->memory, last, &pointer));
    if (why == HELD)
        CHECK_OK(quire_allocation_hold(f->memory, last));
    return last;
}

static void make_movable_again(fixture *f, quire_allocation last, reason why)
{
    if (why == MAPPED)
        CHECK_OK(quire_unmap(f->memory, last));
    if (why == HELD)
        CHECK_OK(quire_allocation_release(f->memory, last));
}

UNIT_ON(compact, what_cannot_move_keeps_its_page, fixture, f,
        begin_with(f, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE}), fixture_end)
{
    for (reason why = PLAIN; why < REASONS; why++) {
        quire_allocation first = ALLOCATE(f, .size = PAGE / 2), gone = take(f, PAGE / 2);
        quire_allocation last = put_last(f, why);
        CHECK_OK(quire_free(f->memory, gone));
        CHECK_EQ(compact(f).moves, why == PLAIN);
        make_movable_again(f, last, why);
        CHECK_EQ(compact(f).moves, why == MAPPED || why == HELD);
        CHECK_OK(quire_free(f->memory, first));
        CHECK_OK(quire_free(f->memory, last));
        CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    }
}

CASE(dedicated_and_reserved_allocations_stay)
{
    quire_allocation reserved;
    quire_allocation first = ALLOCATE(f, .size = PAGE / 2), gone = take(f, PAGE / 2);
    ALLOCATE(f, .size = KIB, .movable = true, .dedicated = true);
    CHECK_OK(quire_reserve(f->memory, &(quire_allocation_options){.size = KIB, .movable = true},
                           &reserved));
    CHECK_OK(quire_free(f->memory, gone));
    CHECK_EQ(compact(f).moves, 0);
    CHECK_OK(quire_commit(f->memory, reserved));
    CHECK_EQ(compact(f).moves, 1);
    CHECK_EQ(fixture_info(f, reserved).page, fixture_info(f, first).page);
}

/* ---- steps -------------------------------------------------------------------------------- */

CASE(a_step_keeps_its_limits)
{
    quire_allocation made[64];
    for (int i = 0; i < 64; i++) {
        made[i] = take(f, 4 * KIB);
        fill(f, made[i]);
    }
    for (int i = 0; i < 64; i += 2)
        CHECK_OK(quire_free(f->memory, made[i]));
    quire_compaction *c = begin_compaction(f);
    quire_compact_stats done = step(c, (quire_compact_limits){.moves = 3});
    CHECK_EQ(done.moves, 3);
    CHECK(!done.is_complete);
    done = step(c, (quire_compact_limits){.bytes = 9 * KIB});
    CHECK_EQ(done.moves, 5);
    done = step(c, (quire_compact_limits){.bytes = 1}); /* it moves alone */
    CHECK_EQ(done.moves, 6);
    CHECK_EQ(done.bytes_moved, 6 * 4 * KIB);
    while (!done.is_complete)
        done = step(c, (quire_compact_limits){.moves = 1});
    CHECK_EQ(done.moves, 16);
    CHECK_EQ(done.pages_freed, 2);
    qi_compact_end(c);
    CHECK_EQ(stats_of(f).page_count, 2);
    for (int i = 1; i < 64; i += 2)
        expect_contents(f, made[i]);
}

/* The page that is being emptied may go, and its allocations may, between two steps. */
CASE(others_free_between_steps)
{
    quire_allocation made[16];
    put_four_pages(f, made);
    quire_allocation more = take(f, PAGE);
    quire_compaction *c = begin_compaction(f);
    CHECK_OK(quire_free(f->memory, more));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    CHECK_OK(quire_free(f->memory, made[0]));
    CHECK_OK(quire_free(f->memory, made[2]));
    quire_compact_stats done = step(c, (quire_compact_limits){.moves = 1});
    CHECK_OK(quire_free(f->memory, made[3]));
    CHECK_OK(quire_free(f->memory, made[13]));
    CHECK_OK(quire_memory_trim(f->memory, 0, NULL));
    done = step(c, (quire_compact_limits){0});
    CHECK(done.is_complete);
    qi_compact_end(c);
    stats_of(f);
    for (int i = 4; i < 12; i++)
        if (is_left(i))
            expect_contents(f, made[i]);
}

CASE(one_compaction_at_a_time)
{
    quire_compaction *c = begin_compaction(f), *other;
    CHECK_FAILS(qi_compact_begin(f->memory, &other), QUIRE_ERROR_BUSY);
    CHECK(!other);
    qi_compact_end(c);
    compact(f);
}

/* ---- policies ----------------------------------------------------------------------------- */

UNIT_ON(compact, pages_that_retention_would_keep_go, fixture, f,
        begin_with(f, &(quire_memory_options){.pages.retained_empty_bytes = QUIRE_RETAIN_ALL}),
        fixture_end)
{
    quire_allocation made[16];
    put_four_pages(f, made);
    CHECK_EQ(compact(f).pages_freed, 1);
    CHECK_EQ(stats_of(f).page_count, 3);
}

CASE(a_floor_keeps_pages)
{
    quire_allocation made[16];
    CHECK_OK(quire_memory_preallocate(f->memory, 4 * PAGE));
    put_four_pages(f, made);
    CHECK_EQ(compact(f).moves, 1);
    CHECK_EQ(stats_of(f).page_count, 4);
    CHECK_EQ(compact(f).moves, 0); /* an empty page is no place */
}

UNIT_ON(compact, a_memory_makes_all_raw_allocations_movable, fixture, f,
        begin_with(f, &(quire_memory_options){.movable = true}), fixture_end)
{
    quire_allocation first = ALLOCATE(f, .size = PAGE / 2), gone = ALLOCATE(f, .size = PAGE / 2);
    quire_allocation made[2], last = ALLOCATE(f, .size = KIB, .name = "last");
    CHECK_OK(quire_allocate_batch(f->memory, &(quire_allocation_options){.size = KIB}, made, 2));
    fill(f, last);
    CHECK_OK(quire_free(f->memory, gone));
    CHECK_EQ(compact(f).moves, 3);
    CHECK_EQ(fixture_info(f, last).page, fixture_info(f, first).page);
    CHECK_EQ(fixture_info(f, made[1]).page, fixture_info(f, first).page);
    expect_contents(f, last);
}

CASE(objects_stay)
{
    quire_allocation first = ALLOCATE(f, .size = PAGE / 2), gone = take(f, PAGE / 2);
    BUFFER(f, .size = KIB);
    CHECK_OK(quire_free(f->memory, gone));
    CHECK_EQ(compact(f).moves, 0);
    CHECK_OK(quire_free(f->memory, first));
}

/* A compaction that is open keeps the memory; destroying everything ends it. */
UNIT(compact, a_memory_with_a_compaction_is_not_destroyed)
{
    fixture f;
    begin(&f);
    quire_compaction *c = begin_compaction(&f);
    CHECK_FAILS(quire_memory_destroy(&f.memory), QUIRE_ERROR_BUSY);
    CHECK_HAS(quire_last_error(), "compaction");
    qi_compact_end(c);
    begin_compaction(&f);
    fixture_end(&f);
}

UNIT_ON(compact, allocations_are_found_at_their_new_address, fixture, f,
        begin_with(f, &(quire_memory_options){.find_by_address = true}), fixture_end)
{
    quire_allocation made[16], found;
    put_four_pages(f, made);
    const uint64_t former = fixture_info(f, made[13]).address;
    CHECK_EQ(compact(f).moves, 1);
    const uint64_t address = fixture_info(f, made[13]).address;
    CHECK_FAILS(quire_memory_find(f->memory, former, &found), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_OK(quire_memory_find(f->memory, address + 5, &found));
    CHECK_EQ(found.id, made[13].id);
    CHECK_OK(quire_free_at_address(f->memory, address, NULL));
}

/* ---- failures ----------------------------------------------------------------------------- */

/* Each copy fails in turn: allocations have their contents, and the next step goes on. */
CASE(a_copy_that_fails_leaves_all_where_their_infos_say)
{
    quire_allocation made[64];
    quire_compact_stats done = {.moves = 0};
    for (int i = 0; i < 64; i++) {
        made[i] = take(f, 4 * KIB);
        fill(f, made[i]);
    }
    for (int i = 0; i < 64; i++)
        if (i % 4)
            CHECK_OK(quire_free(f->memory, made[i]));
    quire_compaction *c = begin_compaction(f);
    uint64_t failures = 0;
    while (!done.is_complete) {
        f->fake.fail_at = f->fake.fallible_calls + 1 + failures % 3;
        f->fake.fail_with = QUIRE_ERROR_OUT_OF_DEVICE_MEMORY;
        failures += qi_compact_step(c, NULL, &done) != QUIRE_SUCCESS;
        f->fake.fail_at = 0;
        stats_of(f);
        for (int i = 0; i < 64; i += 4)
            expect_contents(f, made[i]);
    }
    qi_compact_end(c);
    CHECK(failures > 2);
    CHECK_EQ(stats_of(f).allocation_count, 16);
}

/* What the hook and the failing copy of the next test know. */
static fixture *hooked;
static quire_allocation moving, keeper;
static int hook_calls;

static void *free_keeper(void *unused)
{
    CHECK_OK(quire_free(hooked->memory, keeper));
    return unused;
}

/* The first copy fails after another thread has freed what else is in the page of the target. */
static quire_result free_and_fail(void *state, const quire_native_page *page, uint64_t offset,
                                  void *data, uint64_t size)
{
    pthread_t thread;
    (void)state, (void)page, (void)offset, (void)data, (void)size;
    CHECK(!pthread_create(&thread, NULL, free_keeper, NULL));
    CHECK(!pthread_join(thread, NULL));
    return quire_backend_fail(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, 0, "no copy");
}

static void use_in_hook(void *user, quire_memory *memory, const quire_event *event)
{
    (void)user;
    (void)event;
    hook_calls++;
    CHECK_OK(quire_allocation_hold(memory, moving));
    CHECK_OK(quire_allocation_release(memory, moving));
}

/* Two allocations of the first page move, each to another page; the first place becomes empty. */
UNIT_PREPARED(compact, a_hook_may_use_what_was_to_move, f)
{
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    f->fake.table.copy_from_page = free_and_fail;
    fixture_open(f, &(quire_memory_options){
                        .shards = 1,
                        .pages = {.page_size = PAGE, .retained_empty_bytes = QUIRE_RETAIN_NONE}});
    quire_allocation larger = take(f, 8 * KIB), gone = take(f, PAGE - 12 * KIB);
    moving = take(f, 4 * KIB);
    keeper = take(f, PAGE - 8 * KIB);
    ALLOCATE(f, .size = PAGE - 4 * KIB);
    CHECK_EQ(fixture_info(f, larger).page, fixture_info(f, moving).page);
    CHECK_EQ(stats_of(f).page_count, 3);
    CHECK_OK(quire_free(f->memory, gone));
    CHECK_OK(quire_memory_set_hook(
        f->memory, &(quire_hook){.event = use_in_hook, .kinds = QUIRE_EVENT_PAGE_GONE}));
    hooked = f;
    hook_calls = 0;
    quire_compaction *c = begin_compaction(f);
    CHECK_FAILS(qi_compact_step(c, NULL, &(quire_compact_stats){0}),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    qi_compact_end(c);
    CHECK_EQ(hook_calls, 1);
    CHECK_EQ(stats_of(f).page_count, 2);
    CHECK_OK(quire_memory_set_hook(f->memory, NULL));
}

UNIT_ON(compact, without_host_memory_all_stay, fixture, f,
        begin_with(f, &(quire_memory_options){.find_by_address = true}), fixture_end)
{
    quire_allocation made[16];
    quire_compaction *c = NULL;
    put_four_pages(f, made);
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(qi_compact_begin(f->memory, &c), QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK(!c);
    for (uint64_t at = 1; stats_of(f).page_count == 4; at++) {
        quire_compact_stats done;
        c = begin_compaction(f);
        test_memory_fail(unit_memory_state(), at, true);
        const quire_result result = qi_compact_step(c, NULL, &done);
        test_memory_fail(unit_memory_state(), 0, false);
        CHECK(!result || result == QUIRE_ERROR_OUT_OF_HOST_MEMORY);
        CHECK_EQ(done.moves, !result);
        qi_compact_end(c);
        expect_contents(f, made[13]);
        CHECK(at < 50);
    }
}

/* ---- refusals ----------------------------------------------------------------------------- */

static void expect_refusal(const quire_memory_options *options, const char *why)
{
    fixture f;
    quire_compaction *c = NULL;
    fixture_prepare(&f);
    fake_offer_growth(&f.fake);
    fixture_open(&f, options);
    CHECK_FAILS(qi_compact_begin(f.memory, &c), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), why);
    CHECK(!c);
    fixture_end(&f);
}

UNIT(compact, memories_without_movable_pages_are_refused)
{
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    expect_refusal(&(quire_memory_options){.elastic = true,
                                           .address_space = 1 << 22,
                                           .pages.page_size = 16 * KIB},
                   "elastic");
    expect_refusal(&(quire_memory_options){.fit.slabs = true}, "slabs");
    for (quire_fit fit = QUIRE_FIT_FIRST; fit <= QUIRE_FIT_LINEAR; fit++)
        expect_refusal(&(quire_memory_options){.fit.algorithm = fit}, "segregated");
}

/* Nothing moves before it is known that contents can be copied; the caller may move it. */
UNIT(compact, backends_without_copies_are_refused)
{
    fixture f;
    quire_compaction *c = NULL;
    quire_compact_stats done;
    if (QI_IS_CHECKED)
        unit_skip("checked builds move nothing");
    fixture_prepare(&f);
    fake_leave_out(&f.fake, QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_FROM_PAGE);
    fixture_open(&f, &(quire_memory_options){.kind.mask = 1});
    CHECK_OK(qi_compact_begin(f.memory, &c));
    CHECK_FAILS(qi_compact_step(c, NULL, &done), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "quire_compact_offer");
    qi_compact_end(c);
    fixture_end(&f);
    fixture_prepare(&f);
    fake_leave_out(&f.fake, QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_FROM_PAGE);
    fixture_open(&f, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE});
    CHECK_OK(qi_compact_begin(f.memory, &c));
    CHECK_OK(qi_compact_step(c, NULL, &done)); /* the host copies */
    qi_compact_end(c);
    fixture_end(&f);
}

/* ---- convergence -------------------------------------------------------------------------- */

typedef struct herd {
    quire_allocation made[MANY];
    uint32_t count;
    test_random random;
} herd;

static void add(fixture *f, herd *h)
{
    const quire_allocation_options options = {.size = random_size(&h->random, PAGE / 16),
                                              .alignment = 1u << random_below(&h->random, 9),
                                              .movable = true};
    if (options.size < 16) /* the contents are two numbers */
        return;
    h->made[h->count] = fixture_allocate(f, &options);
    fill(f, h->made[h->count++]);
}

static void drop(fixture *f, herd *h)
{
    const uint64_t i = random_below(&h->random, h->count);
    expect_contents(f, h->made[i]);
    CHECK_OK(quire_free(f->memory, h->made[i]));
    h->made[i] = h->made[--h->count];
}

/* With frees and allocations between the steps. Returns the steps. */
static uint64_t converge(fixture *f, herd *h, uint32_t churn)
{
    quire_compaction *c = begin_compaction(f);
    quire_compact_stats done = {.moves = 0};
    uint64_t steps = 0, moves = 0;
    for (; !done.is_complete; steps++) {
        done = step(c, (quire_compact_limits){.moves = 10});
        CHECK(done.moves - moves <= 10);
        moves = done.moves;
        for (uint32_t i = 0; i < churn && steps < 500; i++) {
            drop(f, h);
            add(f, h);
        }
        CHECK(steps < 5000);
    }
    qi_compact_end(c);
    return steps;
}

/* What is reserved is at most 1 / 0.97 of what lives, and two pages. */
static void expect_compact(fixture *f, herd *h)
{
    const quire_memory_stats stats = stats_of(f);
    CHECK(stats.reserved_bytes <= stats.live_bytes * 100 / 97 + 2 * PAGE);
    for (uint32_t i = 0; i < h->count; i++)
        expect_contents(f, h->made[i]);
}

CASE(it_converges_with_and_without_other_calls_between_steps)
{
    static herd h;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        h = (herd){.random = {seed}};
        while (h.count < MANY - 1)
            add(f, &h);
        while (h.count > MANY / 2)
            drop(f, &h);
        const uint64_t pages = stats_of(f).page_count;
        converge(f, &h, seed % 2 ? 0 : 5);
        expect_compact(f, &h);
        CHECK(stats_of(f).page_count < pages * 2 / 3);
        const quire_compact_stats again = compact(f);
        CHECK(seed % 2 == 0 || again.moves == 0);
        while (h.count)
            drop(f, &h);
    }
}
