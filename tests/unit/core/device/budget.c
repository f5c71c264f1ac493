/*
 * budget.c - budgets of heaps, memories and devices: they hold on every path to a page, whoever
 * sets them and whenever. The backend is queried only where a page is created. Threads are in
 * tests/plain/budget_race.c, names in name_limit.c.
 */
#include "tests/support/fixture.h"

#include "src/core/device/budget.h"

enum { PAGE = 65536 };

#define OVER QUIRE_ERROR_OVER_BUDGET

static const quire_page_policy POLICY = {.page_size = PAGE};

static void make(fixture *b)
{
    fixture_make(b, &(quire_memory_options){.name = "weights", .pages = POLICY});
}

/* Opens a backend that reports budgets: this one for heap 0, and the bytes that others use. */
static void make_reporting(fixture *b, uint64_t budget, uint64_t others)
{
    fixture_prepare(b);
    fake_offer_budget(&b->fake);
    fake_set_budget(&b->fake, 0, budget, others);
    fixture_open(b, &(quire_memory_options){.name = "weights", .pages = POLICY});
}

static void refuse(fixture *b, quire_result code, const quire_allocation_options *options)
{
    quire_memory_stats before, after;
    quire_allocation none = {1};
    CHECK_OK(quire_memory_get_stats(b->memory, &before));
    CHECK_FAILS(quire_allocate(b->memory, options, &none), code);
    CHECK_EQ(none.id, 0);
    CHECK_OK(quire_memory_get_stats(b->memory, &after));
    CHECK_EQ(after.allocation_count, before.allocation_count);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.failures, before.failures + 1);
    CHECK_EQ(after.reserved_bytes - after.empty_bytes, before.reserved_bytes - before.empty_bytes);
    CHECK_OK(quire_memory_check(b->memory));
}

#define REFUSE(b, code, ...) refuse((b), (code), &(quire_allocation_options){__VA_ARGS__})

static quire_budget_info budget_of(fixture *b, uint32_t heap)
{
    quire_budget_info info;
    CHECK_OK(quire_device_get_budget(b->device, heap, &info));
    CHECK_EQ(info.used, b->fake.heap_bytes[heap]);
    return info;
}

static uint64_t page_size(fixture *b, quire_allocation allocation)
{
    quire_page_info page;
    CHECK_OK(quire_page_get_info(b->memory, fixture_info(b, allocation).page, &page));
    return page.size;
}

/* ---- accounts ----------------------------------------------------------------------------- */

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

/* ---- limits of heaps ---------------------------------------------------------------------- */

UNIT(budget, a_heap_limit_holds_on_every_path_to_a_page)
{
    fixture b;
    make(&b);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, 2 * PAGE));
    quire_allocation shared = ALLOCATE(&b, .size = PAGE);
    ALLOCATE(&b, .size = PAGE, .dedicated = true);
    REFUSE(&b, OVER, .size = 1);
    REFUSE(&b, OVER, .size = 2 * PAGE);
    REFUSE(&b, OVER, .size = 1, .dedicated = true);
    REFUSE(&b, OVER, .size = 1, .name = "named", .zero = true);
    quire_buffer buffer;
    quire_image image;
    CHECK_FAILS(quire_buffer_create(b.memory, &(quire_buffer_options){.size = 10}, &buffer), OVER);
    CHECK_FAILS(quire_image_create(b.memory, &(quire_image_options){.width = 10}, &image), OVER);
    CHECK_FAILS(quire_reserve(b.memory, &(quire_allocation_options){.size = 1}, &shared), OVER);
    CHECK_EQ(b.fake.calls[FAKE_PAGE_CREATE], 2); /* none of them queried the backend */
    CHECK_EQ(b.fake.objects, 0);
    fixture_end(&b);
}

UNIT(budget, a_refusal_reports_its_numbers)
{
    fixture b;
    make(&b);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, PAGE + 256));
    ALLOCATE(&b, .size = PAGE);
    REFUSE(&b, OVER, .size = 1000);
    CHECK_HAS(quire_last_error(), "cannot allocate 1000 B at alignment 1: ");
    CHECK_HAS(quire_last_error(), "; memory 'weights' (kind 0, DEVICE_LOCAL): 1 page, ");
    CHECK_HAS(quire_last_error(),
              "a page of 1 KiB: heap 0 has 64 KiB of pages and a limit of 64.25");
    CHECK_EQ(quire_last_native_code(), 0);
    ALLOCATE(&b, .size = 256);
    fixture_end(&b);
}

UNIT(budget, smaller_pages_are_created_from_the_rest)
{
    fixture b;
    make(&b);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, PAGE + PAGE / 4));
    ALLOCATE(&b, .size = PAGE);
    quire_allocation small = ALLOCATE(&b, .size = 1000);
    CHECK_EQ(page_size(&b, small), PAGE / 4);
    CHECK_EQ(b.fake.calls[FAKE_PAGE_CREATE], 2);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, 0));
    CHECK_EQ(page_size(&b, ALLOCATE(&b, .size = PAGE / 4)), PAGE);
    fixture_end(&b);
}

UNIT(budget, requests_that_fit_existing_pages_are_served)
{
    fixture b;
    make(&b);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, PAGE));
    ALLOCATE(&b, .size = 1000);
    REFUSE(&b, OVER, .size = PAGE);
    for (int i = 0; i < 10; i++)
        ALLOCATE(&b, .size = 5000);
    REFUSE(&b, OVER, .size = PAGE / 4);
    fixture_end(&b);
}

UNIT(budget, a_failure_before_a_created_page_is_not_the_threads_last_error)
{
    fixture b;
    make(&b);
    quire_allocation none;
    CHECK_FAILS(quire_allocate(b.memory, &(quire_allocation_options){.size = 0}, &none),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, PAGE / 2));
    ALLOCATE(&b, .size = 1000);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    fixture_end(&b);
}

UNIT(budget, a_limit_below_the_bytes_in_use_releases_nothing)
{
    fixture b;
    make(&b);
    quire_allocation first = ALLOCATE(&b, .size = PAGE);
    ALLOCATE(&b, .size = PAGE);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, PAGE + PAGE / 2));
    CHECK_EQ(budget_of(&b, 0).used, 2 * PAGE);
    CHECK_EQ(budget_of(&b, 0).available, 0);
    REFUSE(&b, OVER, .size = 256);
    CHECK_OK(quire_free(b.memory, first));
    CHECK_EQ(b.fake.pages, 2);
    ALLOCATE(&b, .size = PAGE / 2, .dedicated = true); /* the empty page is destroyed for it */
    CHECK_EQ(b.fake.heap_bytes[0], PAGE + PAGE / 2);
    REFUSE(&b, OVER, .size = 256);
    fixture_end(&b);
}

UNIT(budget, a_heap_is_shared_by_its_memories_and_no_other_heap_counts)
{
    fixture b;
    make(&b);
    quire_memory *window = NULL, *host = NULL;
    quire_allocation made;
    quire_memory_options options = {.kind_mask = 1 << 3, .pages = POLICY};
    CHECK_OK(quire_memory_create(b.device, &options, &window)); /* of heap 0, another kind */
    options.kind_mask = 1 << 1;
    CHECK_OK(quire_memory_create(b.device, &options, &host)); /* of heap 1 */
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, 2 * PAGE));
    ALLOCATE(&b, .size = PAGE);
    const quire_allocation_options whole = {.size = PAGE};
    CHECK_OK(quire_allocate(window, &whole, &made));
    CHECK_FAILS(quire_allocate(window, &whole, &made), OVER);
    REFUSE(&b, OVER, .size = PAGE);
    for (int i = 0; i < 4; i++)
        CHECK_OK(quire_allocate(host, &whole, &made));
    CHECK_EQ(budget_of(&b, 1).used, 4 * PAGE);
    quire_memory_destroy_all(&window);
    ALLOCATE(&b, .size = PAGE);
    quire_memory_destroy_all(&host);
    CHECK_EQ(budget_of(&b, 1).used, 0);
    fixture_end(&b);
}

/* ---- budgets of the backend --------------------------------------------------------------- */

UNIT(budget, the_backends_budget_includes_the_use_by_others)
{
    fixture b;
    make_reporting(&b, 4 * PAGE, PAGE);
    ALLOCATE(&b, .size = PAGE);
    ALLOCATE(&b, .size = PAGE, .dedicated = true);
    ALLOCATE(&b, .size = PAGE);
    REFUSE(&b, OVER, .size = 1);
    REFUSE(&b, OVER, .size = 1, .dedicated = true);
    CHECK_HAS(quire_last_error(),
              "heap 0 has 192 KiB of pages and 64 KiB of other memory, and its budget is 256 KiB");
    CHECK_EQ(b.fake.calls[FAKE_PAGE_CREATE], 3);
    fixture_end(&b);
}

UNIT(budget, a_budget_that_shrinks_and_grows_takes_effect)
{
    fixture b;
    make_reporting(&b, 4 * PAGE, 0);
    ALLOCATE(&b, .size = PAGE);
    quire_allocation second = ALLOCATE(&b, .size = PAGE);
    fake_set_budget(&b.fake, 0, PAGE, 0); /* below the bytes in use */
    REFUSE(&b, OVER, .size = 1);
    CHECK_OK(quire_free(b.memory, second));
    REFUSE(&b, OVER, .size = 1, .dedicated = true);
    CHECK_EQ(b.fake.pages, 1); /* the empty page was destroyed first */
    fake_set_budget(&b.fake, 0, 3 * PAGE, PAGE);
    ALLOCATE(&b, .size = PAGE);
    REFUSE(&b, OVER, .size = 1);
    fake_set_budget(&b.fake, 0, 3 * PAGE, 0); /* the others release their memory */
    ALLOCATE(&b, .size = PAGE);
    fake_set_budget(&b.fake, 0, 0, 100 * PAGE); /* no budget is set */
    ALLOCATE(&b, .size = PAGE);
    fixture_end(&b);
}

UNIT(budget, the_smaller_of_limit_and_budget_decides)
{
    fixture b;
    make_reporting(&b, 3 * PAGE, 0);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, 2 * PAGE));
    ALLOCATE(&b, .size = 2 * PAGE);
    REFUSE(&b, OVER, .size = 1);
    CHECK_HAS(quire_last_error(), "a limit of 128 KiB");
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, UINT64_MAX));
    ALLOCATE(&b, .size = PAGE);
    REFUSE(&b, OVER, .size = 1);
    CHECK_HAS(quire_last_error(), "its budget is 192 KiB");
    fixture_end(&b);
}

UNIT(budget, the_backend_is_queried_only_where_a_page_is_created)
{
    fixture b;
    make_reporting(&b, 4 * PAGE, 0);
    CHECK_EQ(b.fake.calls[FAKE_HEAP_BUDGET], 0);
    quire_allocation made = ALLOCATE(&b, .size = 100);
    for (int i = 0; i < 100; i++)
        ALLOCATE(&b, .size = 100);
    CHECK_OK(quire_free(b.memory, made));
    CHECK_EQ(b.fake.calls[FAKE_HEAP_BUDGET], 1);
    ALLOCATE(&b, .size = 100, .dedicated = true);
    CHECK_EQ(b.fake.calls[FAKE_HEAP_BUDGET], 2);
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(b.memory, &stats));
    CHECK_EQ(stats.backend_calls, 2); /* the query counts for the device */
    quire_device_stats device;
    CHECK_OK(quire_device_get_stats(b.device, &device));
    CHECK_EQ(device.backend_calls, 4);
    budget_of(&b, 0);
    CHECK_EQ(b.fake.calls[FAKE_HEAP_BUDGET], 3);
    fixture_end(&b);
}

UNIT(budget, no_page_is_created_without_an_answer)
{
    static const quire_result codes[] = {QUIRE_ERROR_DEVICE_LOST, QUIRE_ERROR_BACKEND_FAILURE,
                                         QUIRE_ERROR_NOT_PERMITTED};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        fixture b;
        make_reporting(&b, 4 * PAGE, 0);
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
        fixture_open(
            &b, &(quire_memory_options){
                    .flags = QUIRE_HOST_VISIBLE, .limit = PAGE, .pages = POLICY, .kind_mask = 2});
        CHECK_OK(quire_device_set_page_limit(b.device, 1));
        fake_fail(&b.fake, call, false, QUIRE_ERROR_NOT_PERMITTED);
        REFUSE(&b, QUIRE_ERROR_NOT_PERMITTED, .size = PAGE);
        CHECK_EQ(budget_of(&b, 1).available, PAGE);
        ALLOCATE(&b, .size = PAGE);
        fixture_end(&b);
    }
}

/* ---- queries ------------------------------------------------------------------------------ */

UNIT(budget, a_backend_without_budgets_has_budgets_of_its_heaps)
{
    fixture b;
    make(&b);
    ALLOCATE(&b, .size = 100);
    quire_budget_info info = budget_of(&b, 0);
    CHECK_EQ(info.size, b.fake.info.heaps[0].size);
    CHECK_EQ(info.limit, 0);
    CHECK_EQ(info.budget, info.size);
    CHECK_EQ(info.used, PAGE);
    CHECK_EQ(info.usage, PAGE);
    CHECK_EQ(info.available, info.size - PAGE);
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, 10 * PAGE));
    info = budget_of(&b, 0);
    CHECK_EQ(info.limit, 10 * PAGE);
    CHECK_EQ(info.budget, info.size);
    CHECK_EQ(info.available, 9 * PAGE);
    fixture_end(&b);
}

UNIT(budget, the_backends_answer_is_reported)
{
    fixture b;
    make_reporting(&b, 10 * PAGE, 3 * PAGE);
    ALLOCATE(&b, .size = 100);
    quire_budget_info info = budget_of(&b, 0);
    CHECK_EQ(info.budget, 10 * PAGE);
    CHECK_EQ(info.used, PAGE);
    CHECK_EQ(info.usage, 4 * PAGE);
    CHECK_EQ(info.available, 6 * PAGE);
    fake_set_budget(&b.fake, 0, 2 * PAGE, 3 * PAGE);
    CHECK_EQ(budget_of(&b, 0).available, 0);
    info = budget_of(&b, 1); /* the backend reports nothing for this one, and it is empty */
    CHECK_EQ(info.budget, info.size);
    CHECK_EQ(info.usage, 0);
    CHECK_EQ(info.available, info.size);
    fixture_end(&b);
}

UNIT(budget, invalid_heaps_and_devices_are_refused)
{
    fixture b;
    make(&b);
    quire_budget_info info = {.size = 1};
    CHECK_FAILS(quire_device_get_budget(b.device, 2, &info), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(info.size, 0);
    CHECK_HAS(quire_last_error(), "no heap 2: it has 2");
    CHECK_FAILS(quire_device_set_heap_limit(b.device, 2, 1), QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_device_set_heap_limit(NULL, 0, 1), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_device_set_page_limit(NULL, 1), QUIRE_ERROR_INVALID_ARGUMENT);
    fixture_end(&b);
}

/* ---- pages of the device ------------------------------------------------------------------ */

UNIT(budget, the_callers_page_limit_holds_beside_the_backends)
{
    fixture b;
    fixture_prepare(&b);
    b.fake.info.limits.max_pages = 3;
    fixture_open(&b, &(quire_memory_options){.pages = POLICY});
    CHECK_OK(quire_device_set_page_limit(b.device, 2));
    ALLOCATE(&b, .size = PAGE);
    ALLOCATE(&b, .size = 1, .dedicated = true);
    REFUSE(&b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    REFUSE(&b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1, .dedicated = true);
    CHECK_HAS(quire_last_error(), "the device has 2 pages, and its limit is 2");
    CHECK_OK(quire_device_set_page_limit(b.device, 10));
    ALLOCATE(&b, .size = PAGE);
    REFUSE(&b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    CHECK_HAS(quire_last_error(), "the device has 3 pages, and its limit is 3");
    CHECK_OK(quire_device_set_page_limit(b.device, 1)); /* below what there is */
    REFUSE(&b, QUIRE_ERROR_TOO_MANY_PAGES, .size = 1);
    fixture_end(&b);
}

/* ---- memories ----------------------------------------------------------------------------- */

UNIT(budget, a_memorys_limit_holds_for_its_pages)
{
    fixture b;
    fixture_make(
        &b, &(quire_memory_options){.name = "weights", .limit = PAGE + PAGE / 2, .pages = POLICY});
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(b.memory, &info));
    CHECK_EQ(info.limit, PAGE + PAGE / 2);
    ALLOCATE(&b, .size = PAGE);
    CHECK_EQ(page_size(&b, ALLOCATE(&b, .size = 100)), PAGE / 2);
    REFUSE(&b, OVER, .size = PAGE);
    REFUSE(&b, OVER, .size = 256, .dedicated = true);
    CHECK_HAS(quire_last_error(), "memory 'weights' has 96 KiB of pages and a limit of 96 KiB");
    CHECK_OK(quire_memory_set_limit(b.memory, 2 * PAGE));
    ALLOCATE(&b, .size = PAGE / 2, .dedicated = true);
    CHECK_OK(quire_memory_set_limit(b.memory, 0));
    CHECK_OK(quire_memory_get_info(b.memory, &info));
    CHECK_EQ(info.limit, 0);
    ALLOCATE(&b, .size = 4 * PAGE);
    fixture_end(&b);
}

UNIT(budget, a_memorys_limit_may_be_a_share_of_its_heap)
{
    fixture b;
    fixture_prepare(&b);
    b.fake.info.heaps[0].size = 4 * PAGE + 8;
    fixture_open(&b, &(quire_memory_options){.limit_percent = 50, .pages = POLICY});
    const struct {
        uint64_t bytes, percent, limit;
    } cases[] = {{0, 50, 2 * PAGE + 4}, {PAGE, 50, PAGE},       {3 * PAGE, 50, 2 * PAGE + 4},
                 {0, 1, PAGE / 25},     {0, 100, 4 * PAGE + 8}, {PAGE, 0, PAGE}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_memory *memory = NULL;
        quire_memory_info info;
        CHECK_OK(quire_memory_create(
            b.device,
            &(quire_memory_options){.limit = cases[i].bytes,
                                    .limit_percent = (uint32_t)cases[i].percent},
            &memory));
        CHECK_OK(quire_memory_get_info(memory, &info));
        CHECK_EQ(info.limit, cases[i].limit);
        CHECK_OK(quire_memory_destroy(&memory));
    }
    ALLOCATE(&b, .size = PAGE);
    ALLOCATE(&b, .size = PAGE);
    REFUSE(&b, OVER, .size = PAGE);
    fixture_end(&b);
}

UNIT(budget, a_memorys_limit_does_not_apply_to_others)
{
    fixture b;
    make(&b);
    quire_memory *other = NULL;
    quire_allocation made;
    CHECK_OK(quire_memory_create(b.device, &(quire_memory_options){.limit = PAGE, .pages = POLICY},
                                 &other));
    for (int i = 0; i < 3; i++)
        ALLOCATE(&b, .size = PAGE);
    CHECK_OK(quire_allocate(other, &(quire_allocation_options){.size = PAGE}, &made));
    CHECK_FAILS(quire_allocate(other, &(quire_allocation_options){.size = 1}, &made), OVER);
    quire_memory_destroy_all(&other);
    fixture_end(&b);
}

UNIT(budget, a_memory_with_a_lower_limit_destroys_its_empty_pages_at_once)
{
    fixture b;
    make(&b);
    quire_allocation made[4];
    for (int i = 0; i < 4; i++)
        made[i] = ALLOCATE(&b, .size = PAGE);
    for (int i = 1; i < 4; i++)
        CHECK_OK(quire_free(b.memory, made[i]));
    CHECK_OK(quire_memory_set_limit(b.memory, 4 * PAGE));
    CHECK_EQ(b.fake.pages, 4);
    CHECK_OK(quire_memory_set_limit(b.memory, 3 * PAGE));
    CHECK_EQ(b.fake.pages, 3);
    CHECK_OK(quire_memory_set_limit(b.memory, PAGE / 2)); /* the first page is in use */
    CHECK_EQ(b.fake.pages, 1);
    REFUSE(&b, OVER, .size = 1);
    CHECK_OK(quire_free(b.memory, made[0]));
    ALLOCATE(&b, .size = PAGE); /* the existing page */
    CHECK_OK(quire_memory_set_limit(b.memory, 0));
    CHECK_EQ(b.fake.pages, 1);
    CHECK_FAILS(quire_memory_set_limit(NULL, 1), QUIRE_ERROR_INVALID_ARGUMENT);
    fixture_end(&b);
}

/* ---- pages that turn out larger ----------------------------------------------------------- */

enum { ROUNDED = 100000 };

UNIT(budget, bytes_beyond_the_requested_page_size_count)
{
    fixture b;
    make_reporting(&b, 0, 0);
    b.fake.page_rounding = ROUNDED;
    CHECK_OK(quire_device_set_heap_limit(b.device, 0, 2 * ROUNDED));
    CHECK_OK(quire_memory_set_limit(b.memory, 2 * ROUNDED));
    ALLOCATE(&b, .size = 1, .dedicated = true);
    ALLOCATE(&b, .size = PAGE);
    CHECK_EQ(budget_of(&b, 0).used, 2 * ROUNDED);
    CHECK_EQ(budget_of(&b, 0).available, 0);
    REFUSE(&b, OVER, .size = PAGE);
    fixture_end(&b);
}

UNIT(budget, a_page_that_turns_out_too_large_is_destroyed)
{
    for (int by = 0; by < 3; by++) {
        fixture b;
        make_reporting(&b, by == 0 ? ROUNDED - 1 : 0, 0);
        b.fake.page_rounding = ROUNDED;
        CHECK_OK(quire_device_set_heap_limit(b.device, 0, by == 1 ? ROUNDED - 1 : 0));
        CHECK_OK(quire_memory_set_limit(b.memory, by == 2 ? ROUNDED - 1 : 0));
        REFUSE(&b, OVER, .size = PAGE);
        CHECK_EQ(b.fake.calls[FAKE_PAGE_CREATE], 1);
        REFUSE(&b, OVER, .size = PAGE, .dedicated = true);
        REFUSE(&b, OVER, .size = 1); /* each smaller page turns out as large */
        CHECK_EQ(b.fake.pages, 0);
        CHECK_EQ(budget_of(&b, 0).used, 0);
        fake_set_budget(&b.fake, 0, 0, 0);
        CHECK_OK(quire_device_set_heap_limit(b.device, 0, 0));
        CHECK_OK(quire_memory_set_limit(b.memory, 0));
        ALLOCATE(&b, .size = PAGE);
        fixture_end(&b);
    }
}
