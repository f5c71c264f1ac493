/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget.c - budgets of heaps: they hold on every path to a page, for every setter and at every
 * time. The backend is queried only where a page is created. Limits of memories are in
 * budget_memory.c, threads in tests/plain/budget_race.c, names in name_limit.c.
 */
#include "tests/support/budget.h"

UNIT(budget, an_account_grants_exactly_the_rest)
{
    qi_account account = {0};
    uint64_t used = 7;
    CHECK_EQ(qi_account_max(&account), UINT64_MAX);
    CHECK(qi_account_take(&account, UINT64_MAX, UINT64_MAX, &used));
    CHECK_EQ(used, 0);
    CHECK(!qi_account_take(&account, 1, UINT64_MAX, &used));
    CHECK_EQ(used, UINT64_MAX);
    CHECK(qi_account_take(&account, 0, UINT64_MAX, &used));
    qi_account_give(&account, UINT64_MAX - 10);
    CHECK(!qi_account_take(&account, UINT64_MAX, 20, &used)); /* the sum overflows */
    CHECK(!qi_account_take(&account, 11, 20, &used));
    CHECK(!qi_account_take(&account, 0, 9, &used)); /* more than the limit is already taken */
    CHECK(qi_account_take(&account, 10, 20, &used));
    CHECK_EQ(qi_account_used(&account), 20);
    qi_account_set_limit(&account, 5);
    CHECK_EQ(qi_account_max(&account), 5);
}

#define CASE(name) UNIT_ON(budget, name, fixture, b, make(b), fixture_end)

/* ---- limits of heaps ---------------------------------------------------------------------- */

CASE(a_heap_limit_holds_on_every_path_to_a_page)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 2 * PAGE));
    quire_allocation shared = ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE, .dedicated = true);
    REFUSE(b, OVER, .size = 1);
    REFUSE(b, OVER, .size = 2 * PAGE);
    REFUSE(b, OVER, .size = 1, .dedicated = true);
    REFUSE(b, OVER, .size = 1, .name = "named", .zero = true);
    quire_buffer buffer;
    quire_image image;
    CHECK_FAILS(quire_buffer_create(b->memory, &(quire_buffer_options){.size = 10}, &buffer), OVER);
    CHECK_FAILS(quire_image_create(b->memory, &(quire_image_options){.width = 10}, &image), OVER);
    CHECK_FAILS(quire_reserve(b->memory, &(quire_allocation_options){.size = 1}, &shared), OVER);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2); /* none of them queried the backend */
    CHECK_EQ(b->fake.objects, 0);
}

CASE(a_refusal_reports_its_numbers)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, PAGE + 256));
    ALLOCATE(b, .size = PAGE);
    REFUSE(b, OVER, .size = 1000);
    CHECK_HAS(quire_last_error(), "cannot allocate 1000 B: ");
    CHECK_HAS(quire_last_error(), "; memory 'weights' (kind 0, DEVICE_LOCAL) is exhausted: largest "
                                  "free range 0 B of 0 B free in 1 page");
    CHECK_HAS(quire_last_error(),
              "a new page of 1 KiB would exceed the 64.25 KiB limit of heap 0 (64 KiB in use)");
    CHECK_EQ(quire_last_native_code(), 0);
    ALLOCATE(b, .size = 256);
}

CASE(smaller_pages_are_created_from_the_rest)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, PAGE + PAGE / 4));
    ALLOCATE(b, .size = PAGE);
    quire_allocation small = ALLOCATE(b, .size = 1000);
    CHECK_EQ(page_size(b, small), PAGE / 4);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 0));
    CHECK_EQ(page_size(b, ALLOCATE(b, .size = PAGE / 4)), PAGE);
}

CASE(requests_that_fit_existing_pages_are_served)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, PAGE));
    ALLOCATE(b, .size = 1000);
    REFUSE(b, OVER, .size = PAGE);
    for (int i = 0; i < 10; i++)
        ALLOCATE(b, .size = 5000);
    REFUSE(b, OVER, .size = PAGE / 4);
}

CASE(a_failure_before_a_created_page_is_not_the_threads_last_error)
{
    quire_allocation none;
    CHECK_FAILS(quire_allocate(b->memory, &(quire_allocation_options){.size = 0}, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, PAGE / 2));
    ALLOCATE(b, .size = 1000);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
}

CASE(a_limit_below_the_bytes_in_use_releases_nothing)
{
    quire_allocation first = ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE);
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, PAGE + PAGE / 2));
    CHECK_EQ(budget_of(b, 0).reserved, 2 * PAGE);
    CHECK_EQ(budget_of(b, 0).available, 0);
    REFUSE(b, OVER, .size = 256);
    CHECK_OK(quire_free(b->memory, first));
    CHECK_EQ(b->fake.pages, 2);
    ALLOCATE(b, .size = PAGE / 2, .dedicated = true); /* the empty page is destroyed for it */
    CHECK_EQ(b->fake.heap_bytes[0], PAGE + PAGE / 2);
    REFUSE(b, OVER, .size = 256);
}

CASE(a_heap_is_shared_by_its_memories_and_no_other_heap_counts)
{
    quire_memory *window = NULL, *host = NULL;
    quire_allocation made;
    quire_memory_options options = {.kind.mask = 1 << 3, .pages = POLICY};
    CHECK_OK(quire_memory_create(b->device, &options, &window)); /* of heap 0, another kind */
    options.kind.mask = 1 << 1;
    CHECK_OK(quire_memory_create(b->device, &options, &host)); /* of heap 1 */
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 2 * PAGE));
    ALLOCATE(b, .size = PAGE);
    const quire_allocation_options whole = {.size = PAGE};
    CHECK_OK(quire_allocate(window, &whole, &made));
    CHECK_FAILS(quire_allocate(window, &whole, &made), OVER);
    REFUSE(b, OVER, .size = PAGE);
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_allocate(host, &whole, &made));
    CHECK_EQ(budget_of(b, 1).reserved, 4 * PAGE);
    quire_memory_destroy_all(&window);
    ALLOCATE(b, .size = PAGE);
    quire_memory_destroy_all(&host);
    CHECK_EQ(budget_of(b, 1).reserved, 0);
}

#define STRICT(name, ...)                                                                          \
    UNIT_ON(budget, name, fixture, b, make_strict(b, __VA_ARGS__), fixture_end)

/* ---- budgets of the backend --------------------------------------------------------------- */

STRICT(the_backends_budget_includes_the_use_by_others, 4 * PAGE, PAGE)
{
    ALLOCATE(b, .size = PAGE);
    ALLOCATE(b, .size = PAGE, .dedicated = true);
    ALLOCATE(b, .size = PAGE);
    REFUSE(b, OVER, .size = 1);
    REFUSE(b, OVER, .size = 1, .dedicated = true);
    CHECK_HAS(quire_last_error(),
              "the 256 KiB budget of heap 0 (192 KiB of pages and 64 KiB of other memory in use)");
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 3);
}

STRICT(a_budget_that_shrinks_and_grows_takes_effect, 4 * PAGE, 0)
{
    ALLOCATE(b, .size = PAGE);
    quire_allocation second = ALLOCATE(b, .size = PAGE);
    fake_set_budget(&b->fake, 0, PAGE, 0); /* below the bytes in use */
    REFUSE(b, OVER, .size = 1);
    CHECK_OK(quire_free(b->memory, second));
    REFUSE(b, OVER, .size = 1, .dedicated = true);
    CHECK_EQ(b->fake.pages, 1); /* the empty page was destroyed first */
    fake_set_budget(&b->fake, 0, 3 * PAGE, PAGE);
    ALLOCATE(b, .size = PAGE);
    REFUSE(b, OVER, .size = 1);
    fake_set_budget(&b->fake, 0, 3 * PAGE, 0); /* the others release their memory */
    ALLOCATE(b, .size = PAGE);
    fake_set_budget(&b->fake, 0, 0, 100 * PAGE); /* no budget is set */
    ALLOCATE(b, .size = PAGE);
}

STRICT(the_smaller_of_limit_and_budget_decides, 3 * PAGE, 0)
{
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 2 * PAGE));
    ALLOCATE(b, .size = 2 * PAGE);
    REFUSE(b, OVER, .size = 1);
    CHECK_HAS(quire_last_error(), "the 128 KiB limit of heap 0");
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, UINT64_MAX));
    ALLOCATE(b, .size = PAGE);
    REFUSE(b, OVER, .size = 1);
    CHECK_HAS(quire_last_error(), "the 192 KiB budget of heap 0");
}

STRICT(the_backend_is_queried_only_where_a_page_is_created, 4 * PAGE, 0)
{
    CHECK_EQ(b->fake.calls[FAKE_HEAP_BUDGET], 0);
    quire_allocation made = ALLOCATE(b, .size = 100);
    for (int i = 0; i < 100; i++)
        ALLOCATE(b, .size = 100);
    CHECK_OK(quire_free(b->memory, made));
    CHECK_EQ(b->fake.calls[FAKE_HEAP_BUDGET], 1);
    ALLOCATE(b, .size = 100, .dedicated = true);
    CHECK_EQ(b->fake.calls[FAKE_HEAP_BUDGET], 2);
    quire_memory_stats stats = fixture_stats(b);
    CHECK_EQ(stats.backend_calls, 2); /* the query counts for the device */
    quire_device_stats device;
    CHECK_OK(quire_device_get_stats(b->device, &device));
    CHECK_EQ(device.backend_calls, 4);
    budget_of(b, 0);
    CHECK_EQ(b->fake.calls[FAKE_HEAP_BUDGET], 3);
}

UNIT(budget, no_page_is_created_without_an_answer)
{
    static const quire_result codes[] = {QUIRE_ERROR_DEVICE_LOST, QUIRE_ERROR_BACKEND_FAILURE,
                                         QUIRE_ERROR_NOT_PERMITTED};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fixture b;
        make_strict(&b, 4 * PAGE, 0);
        fake_fail(&b.fake, 1, true, codes[i]);
        REFUSE(&b, codes[i], .size = 1);
        CHECK_EQ(quire_last_native_code(), -13);
        REFUSE(&b, codes[i], .size = 1, .dedicated = true);
        quire_budget_info info = {.size = 1};
        CHECK_FAILS(quire_device_get_budget(b.device, 0, &info), codes[i]);
        CHECK_EQ(info.size, 0);
        CHECK_EQ(b.fake.calls[FAKE_PAGE_CREATE], 0);
        fake_fail(&b.fake, 0, false, QUIRE_SUCCESS);
        CHECK_EQ(budget_of(&b, 0).available, 4 * PAGE);
        fixture_end(&b);
    }
}

UNIT(budget, a_page_that_is_not_created_returns_its_share)
{
    for (uint64_t call = 2; call <= 3; call++) { /* the query comes first, then create and map */
        fixture b;
        fixture_prepare(&b);
        fake_offer_budget(&b.fake);
        fake_set_budget(&b.fake, 1, PAGE, 0);
        fixture_open(&b, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE,
                                                 .limit = PAGE,
                                                 .pages = POLICY,
                                                 .kind.mask = 2});
        CHECK_OK(quire_device_set_page_limit(b.device, 1));
        fake_fail(&b.fake, call, false, QUIRE_ERROR_NOT_PERMITTED);
        REFUSE(&b, QUIRE_ERROR_NOT_PERMITTED, .size = PAGE);
        CHECK_EQ(budget_of(&b, 1).available, PAGE);
        ALLOCATE(&b, .size = PAGE);
        fixture_end(&b);
    }
}

/* ---- queries ------------------------------------------------------------------------------ */

CASE(a_backend_without_budgets_has_budgets_of_its_heaps)
{
    ALLOCATE(b, .size = 100);
    quire_budget_info info = budget_of(b, 0);
    CHECK_EQ(info.size, b->fake.info.heaps[0].size);
    CHECK_EQ(info.limit, 0);
    CHECK_EQ(info.budget, info.size);
    CHECK_EQ(info.reserved, PAGE);
    CHECK_EQ(info.usage, PAGE);
    CHECK_EQ(info.available, info.size - PAGE);
    CHECK_OK(quire_device_set_heap_limit(b->device, 0, 10 * PAGE));
    info = budget_of(b, 0);
    CHECK_EQ(info.limit, 10 * PAGE);
    CHECK_EQ(info.budget, info.size);
    CHECK_EQ(info.available, 9 * PAGE);
}

STRICT(the_backends_answer_is_reported, 10 * PAGE, 3 * PAGE)
{
    ALLOCATE(b, .size = 100);
    quire_budget_info info = budget_of(b, 0);
    CHECK_EQ(info.budget, 10 * PAGE);
    CHECK_EQ(info.reserved, PAGE);
    CHECK_EQ(info.usage, 4 * PAGE);
    CHECK_EQ(info.available, 6 * PAGE);
    fake_set_budget(&b->fake, 0, 2 * PAGE, 3 * PAGE);
    CHECK_EQ(budget_of(b, 0).available, 0);
    info = budget_of(b, 1); /* the backend reports nothing for this one, and it is empty */
    CHECK_EQ(info.budget, info.size);
    CHECK_EQ(info.usage, 0);
    CHECK_EQ(info.available, info.size);
}

CASE(invalid_heaps_and_devices_are_refused)
{
    quire_budget_info info = {.size = 1};
    CHECK_FAILS(quire_device_get_budget(b->device, 2, &info), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(info.size, 0);
    CHECK_HAS(quire_last_error(), "no heap 2: it has 2");
    CHECK_FAILS(quire_device_set_heap_limit(b->device, 2, 1), QUIRE_ERROR_OUT_OF_RANGE);
}
