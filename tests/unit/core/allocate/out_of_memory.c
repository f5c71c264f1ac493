/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * out_of_memory.c - what the message of a refusal reports of the attempts before it, and the
 * on_out_of_memory callback: when and how often it is called, and what it may do. Attempts in other
 * shards are in page/shard.c.
 */
#include "tests/support/out_of_memory.h"

#define MEMORY(name, ...)                                                                          \
    UNIT_ON(out_of_memory, name, fixture, f, make(f, __VA_ARGS__), fixture_end)

/* ---- messages -------------------------------------------------------------------------------- */

MEMORY(the_message_reports_the_attempts, 1, (quire_page_policy){.page_size = 64 * KIB})
{
    f->fake.page_budget = 64 * KIB;
    ALLOCATE(f, .size = 40 * KIB);
    expect_refused(f, (quire_allocation_options){.size = 40 * KIB},
                   QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                   ". Tried: empty pages given back, a smaller page, a full pass");
    expect_refused(f, (quire_allocation_options){.size = 40 * KIB, .dedicated = true},
                   QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "Tried: empty pages given back");
    CHECK(!strstr(quire_last_error(), "smaller"));
}

MEMORY(the_message_omits_attempts_that_could_not_help, 1,
       (quire_page_policy){.page_size = PAGE, .dedicated_threshold = PAGE})
{
    expect_refused(f, (quire_allocation_options){.size = UINT64_C(1) << 40},
                   QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "in all");
    CHECK(!strstr(quire_last_error(), "Tried"));
}

/* ---- the callback ---------------------------------------------------------------------------- */

typedef struct caller {
    fixture f;
    quire_memory *other;
    quire_allocation held[32];
    uint32_t count;
    uint32_t callback_calls;
    quire_out_of_memory last;
    uint32_t named; /* calls for an allocation with the name "wanted" */
    bool answer, is_inside;
    bool (*act)(struct caller *c); /* NULL: the callback only returns its answer */
} caller;

static bool allocate_too(caller *c);

static bool on_out_of_memory_call(void *user, quire_memory *memory,
                                  const quire_out_of_memory *report)
{
    caller *c = user;
    CHECK(memory == c->f.memory);
    c->callback_calls++;
    CHECK(c->act == allocate_too || report->times == c->callback_calls);
    c->named += report->name && !strcmp(report->name, "wanted");
    CHECK_EQ(quire_last_result(), report->reason);
    c->last = *report;
    return c->act ? c->act(c) : c->answer;
}

static void make_caller(caller *c, uint32_t shards, quire_page_policy pages)
{
    *c = (caller){.callback_calls = 0};
    fixture_make(&c->f, &(quire_memory_options){.shards = shards,
                                                .pages = pages,
                                                .on_out_of_memory = {on_out_of_memory_call, c}});
}

/* Fills two pages, which is the limit. */
static void make_full(caller *c)
{
    make_caller(c, 1, (quire_page_policy){.page_size = PAGE, .max_pages = 2});
    for (; c->count < 4; c->count++)
        c->held[c->count] = ALLOCATE(&c->f, .size = PAGE / 2);
    CHECK_EQ(c->callback_calls, 0);
}

static void end(caller *c)
{
    fixture_end(&c->f);
}

#define CASE(name) UNIT_ON(out_of_memory, name, caller, c, make_full(c), end)

static bool free_one(caller *c)
{
    if (!c->count)
        return false;
    CHECK_OK(quire_free(c->f.memory, c->held[--c->count]));
    return true;
}

CASE(the_callback_is_called_until_enough_is_free)
{
    c->act = free_one;
    ALLOCATE(&c->f, .size = PAGE, .name = "wanted");
    CHECK_EQ(c->callback_calls, 2);
    CHECK_EQ(c->named, 2);
    CHECK_EQ(c->last.size, PAGE);
    CHECK_EQ(c->last.alignment, 1);
    CHECK_EQ(c->last.reason, QUIRE_ERROR_TOO_MANY_PAGES);
    CHECK_EQ(c->last.times, 2);
}

CASE(the_callback_is_not_called_for_what_no_page_can_hold)
{
    c->answer = true;
    CHECK_FAILS(
        quire_allocate(c->f.memory, &(quire_allocation_options){.size = UINT64_MAX - 7}, c->held),
        QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_HAS(quire_last_error(), "can never fit");
    CHECK(!strstr(quire_last_error(), "is exhausted"));
    CHECK_EQ(c->callback_calls, 0);
}

CASE(the_callback_is_not_called_while_the_memory_can_help_itself)
{
    c->act = free_one;
    free_one(c);
    free_one(c);
    ALLOCATE(&c->f, .size = 2 * PAGE);
    CHECK_EQ(c->callback_calls, 0);
}

CASE(a_callback_that_reports_no_freed_bytes_is_called_once)
{
    expect_refused(&c->f, (quire_allocation_options){.size = PAGE}, QUIRE_ERROR_TOO_MANY_PAGES,
                   "Tried: empty pages given back, a full pass, the caller's callback");
    CHECK_EQ(c->callback_calls, 1);
    CHECK_EQ(fixture_stats(&c->f).failures, 1);
    CHECK_EQ(fixture_stats(&c->f).allocation_count, 4);
}

CASE(a_callback_is_called_at_most_a_fixed_number_of_times)
{
    c->answer = true;
    expect_refused(&c->f, (quire_allocation_options){.size = PAGE}, QUIRE_ERROR_TOO_MANY_PAGES,
                   "the caller's callback");
    CHECK_EQ(c->callback_calls, QUIRE_MAX_OUT_OF_MEMORY_CALLS);
    CHECK_EQ(c->last.times, QUIRE_MAX_OUT_OF_MEMORY_CALLS);
    CHECK_EQ(fixture_stats(&c->f).failures, 1);
}

CASE(the_callback_is_not_called_if_no_free_can_help)
{
    fake_fail(&c->f.fake, 1, true, QUIRE_ERROR_DEVICE_LOST);
    ALLOCATE_FAILS(&c->f, QUIRE_ERROR_INVALID_ARGUMENT, .alignment = 3);
    free_one(c);
    free_one(c); /* a page may be created again, and the device is lost */
    expect_refused(&c->f, (quire_allocation_options){.size = 2 * PAGE}, QUIRE_ERROR_DEVICE_LOST,
                   "fake failure");
    CHECK_EQ(c->callback_calls, 0);
}

/* Every call that takes locks. Debug builds report a lock that is held during the callback. */
static bool look_at_everything(caller *c)
{
    quire_memory_info info;
    quire_page_info page;
    CHECK_OK(quire_memory_check(c->f.memory));
    CHECK_OK(quire_memory_get_info(c->f.memory, &info));
    CHECK_OK(quire_page_get_info(c->f.memory, 0, &page));
    CHECK_OK(quire_memory_trim(c->f.memory, 0, NULL));
    CHECK_OK(quire_memory_preallocate(c->f.memory, 0));
    return free_one(c);
}

CASE(the_callback_is_called_without_a_lock)
{
    c->act = look_at_everything;
    ALLOCATE(&c->f, .size = PAGE);
    CHECK_EQ(c->callback_calls, 2);
}

static bool fail_inside(caller *c)
{
    CHECK_FAILS(quire_memory_check(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    return c->answer && free_one(c);
}

CASE(a_failure_in_the_callback_is_not_the_reason_of_the_refusal)
{
    c->act = fail_inside;
    expect_refused(&c->f, (quire_allocation_options){.size = PAGE}, QUIRE_ERROR_TOO_MANY_PAGES,
                   "the maximum of its policy");
}

CASE(a_failure_before_the_callback_helped_is_not_the_threads_last_error)
{
    char sentence[512];
    c->act = fail_inside;
    c->answer = true;
    ALLOCATE_FAILS(&c->f, QUIRE_ERROR_INVALID_ARGUMENT, .alignment = 3);
    snprintf(sentence, sizeof sentence, "%s", quire_last_error());
    ALLOCATE(&c->f, .size = PAGE / 2); /* placed in the range that the callback freed */
    CHECK_EQ(c->callback_calls, 1);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_STR(quire_last_error(), sentence);
    c->callback_calls = 0;
    ALLOCATE(&c->f, .size = 2 * PAGE); /* in a new page */
    CHECK(c->callback_calls > 0);
    CHECK_STR(quire_last_error(), sentence);
}

/* Frees what fills the device. An empty page of another memory must be trimmed in that memory. */
static bool free_in_other(caller *c)
{
    if (!c->count)
        return false;
    CHECK_OK(quire_free(c->other, c->held[--c->count]));
    CHECK_OK(quire_memory_trim(c->other, 0, NULL));
    return true;
}

UNIT(out_of_memory, the_callback_may_free_in_another_memory_of_the_device)
{
    caller c;
    make_caller(&c, 1, (quire_page_policy){.page_size = PAGE});
    CHECK_OK(quire_memory_create(c.f.device, &(quire_memory_options){.pages.page_size = PAGE},
                                 &c.other));
    c.f.fake.page_budget = 2 * PAGE;
    const quire_allocation_options whole = {.size = PAGE};
    for (; c.count < 2; c.count++)
        CHECK_OK(quire_allocate(c.other, &whole, &c.held[c.count]));
    c.act = free_in_other;
    ALLOCATE(&c.f, .size = 2 * PAGE, .dedicated = true);
    CHECK_EQ(c.callback_calls, 2);
    CHECK_EQ(c.last.reason, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    quire_memory_destroy_all(&c.other);
    fixture_end(&c.f);
}

/*
 * Frees ranges and allocates some of them itself. Its own refused requests call the callback again.
 */
static bool allocate_too(caller *c)
{
    if (c->is_inside)
        return false;
    c->is_inside = true;
    CHECK(free_one(c));
    ALLOCATE_FAILS(&c->f, QUIRE_ERROR_TOO_MANY_PAGES, .size = 2 * PAGE);
    ALLOCATE(&c->f, .size = PAGE / 4);
    c->is_inside = false;
    return true;
}

CASE(the_callback_may_allocate)
{
    c->act = allocate_too;
    ALLOCATE(&c->f, .size = PAGE / 2); /* the callback freed two halves, allocated two quarters */
    CHECK_EQ(c->callback_calls, 2 + 2);
    CHECK_EQ(fixture_stats(&c->f).allocation_count, 2 + 2 + 1);
    CHECK_EQ(fixture_stats(&c->f).failures, 2);
}

UNIT(out_of_memory, ranges_that_the_callback_frees_in_another_shard_help_at_once)
{
    for (int dedicated = 0; dedicated < 2; dedicated++) {
        caller c;
        make_caller(&c, 2, (quire_page_policy){.page_size = 64 * KIB});
        c.f.fake.page_budget = 64 * KIB;
        c.held[c.count++] = ALLOCATE_ELSEWHERE(&c.f, .size = 40 * KIB);
        c.act = free_one;
        ALLOCATE(&c.f, .size = 50 * KIB, .dedicated = dedicated == 1);
        CHECK_EQ(c.callback_calls, 1);
        fixture_end(&c.f);
    }
}

UNIT(out_of_memory, the_callback_is_called_for_budgets_too)
{
    caller c;
    make_caller(&c, 1, (quire_page_policy){.page_size = PAGE});
    CHECK_OK(quire_memory_set_limit(c.f.memory, 2 * PAGE));
    CHECK_OK(quire_memory_set_name_limit(c.f.memory, "few", PAGE));
    c.held[c.count++] = ALLOCATE(&c.f, .size = PAGE, .name = "few");
    CHECK_FAILS(quire_memory_check(NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    c.act = free_one;
    quire_allocation more =
        ALLOCATE(&c.f, .size = PAGE, .name = "few/more"); /* by the limit of the name */
    c.held[c.count++] = more;
    CHECK_EQ(c.callback_calls, 1);
    CHECK_EQ(c.last.reason, QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    c.callback_calls = 0;
    ALLOCATE(&c.f, .size = 2 * PAGE); /* by the limit of the memory */
    CHECK_EQ(c.callback_calls, 1);
    CHECK_EQ(c.last.reason, QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    c.callback_calls = 0;
    ALLOCATE_FAILS(&c.f, QUIRE_ERROR_OVER_BUDGET, .size = PAGE);
    CHECK_EQ(c.callback_calls, 1);
    fixture_end(&c.f);
}

CASE(the_callback_is_called_for_buffers_too)
{
    quire_buffer buffer;
    c->act = free_one;
    CHECK_OK(quire_buffer_create(c->f.memory, &(quire_buffer_options){.size = PAGE}, &buffer));
    CHECK_EQ(c->callback_calls, 2);
    CHECK_EQ(c->f.fake.objects, 1);
}
