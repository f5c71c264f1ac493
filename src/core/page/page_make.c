/*
 * page_make.c - makes a page: numbers it under the locks, creates it without them, and publishes it
 * under them.
 *
 * The thread that makes a page owns its record in phase MAKING. Until the page is published, other
 * threads read only what the lock of the pages protects.
 */
#include "src/core/page/page_make.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/policy.h"
#include "src/core/find/addresses.h"
#include "src/core/page/elastic_end.h"
#include "src/core/page/elastic_shrink.h"
#include "src/core/page/empty_pages.h"
#include "src/core/page/page_attempt.h"
#include "src/core/page/page_give_back.h"
#include "src/core/page/page_history.h"
#include "src/core/page/page_number.h"
#include "src/core/page/page_region.h"
#include "src/core/page/page_size.h"
#include "src/core/page/retention.h"
#include "src/space/space.h"

/*
 * Requires no lock. Creates a page of one size. If memory is exhausted, it gives back the empty
 * pages of all shards and tries again.
 */
static quire_result create_sized(qi_page_attempt *a, const quire_page_request *request,
                                 qi_device_page *native, qi_page_events *events)
{
    quire_memory *memory = a->memory;
    quire_result result;
    bool is_exhausted;
    do {
        qi_page_attempt_start(a);
        result = qi_device_page_create(memory->device, &memory->calls, &memory->account, &a->terms,
                                       request, native);
        is_exhausted = qi_is_out_of_memory(result) || result == QUIRE_ERROR_TOO_MANY_PAGES;
    } while (is_exhausted && qi_pages_give_back_empty(memory, UINT64_MAX, events));
    return result;
}

/*
 * Requires no lock. Creates the page in the backend. If memory is exhausted, it requests smaller
 * sizes, down to the size that the request needs.
 */
static quire_result create(quire_memory *memory, qi_page *page, const qi_page_plan *p,
                           qi_device_page *native, qi_page_progress *progress)
{
    const qi_tie tie = p->tie ? *p->tie : (qi_tie){.native = 0};
    quire_page_request request = {
        .kind = memory->kind,
        .dedicated = page->dedicated,
        .exportable = memory->exportable,
        .size = page->wanted,
        .alignment = qi_page_alignment(memory, memory->max_alignment),
        .label = memory->name,
        .object = tie.object,
        .native = tie.native,
        .object_description = tie.native ? tie.description : NULL,
        .description = tie.native ? NULL : tie.description,
        .priority = memory->priority,
        .extra = memory->extra,
        .max_size = qi_elastic_max_size(page->shard, page->wanted, page->dedicated),
        .zero = page->dedicated && progress->zero,
    };
    native->on_demand = memory->maps_on_demand;
    qi_page_attempt a =
        qi_page_attempt_begin(memory, page->wanted, p->needed, page->reduced, progress);
    quire_result result;
    a.is_tied = page->tied;
    do {
        request.size = a.size;
        result = create_sized(&a, &request, native, &progress->events);
    } while (qi_page_attempt_again(&a, result, progress));
    page->over_budget = a.terms.has_exceeded;
    /* red zones are written to a page first, and may flush bytes beside them */
    page->fresh = request.zero && native->native.is_zero && !QI_IS_CHECKED;
    return result;
}

/* Requires the lock of the pages. */
static void count_in(qi_pages *pages, const qi_page *page)
{
    quire_memory_stats *stats = &pages->stats;
    qi_page_history_change(page, page->wanted, page->native.size);
    stats->pages_created++;
    stats->pages_over_budget += page->over_budget;
    stats->page_count++;
    stats->reserved_bytes += page->native.size;
    qi_raise(&stats->peak_page_count, stats->page_count);
    qi_raise(&stats->peak_reserved_bytes, stats->reserved_bytes);
}

/* Requires no lock. Returns the device address of a page, or 0. Memories need it to find
   allocations by address. */
static uint64_t address_of(quire_memory *memory, const qi_device_page *native)
{
    if (!memory->addresses || native->native.address)
        return native->native.address;
    return qi_device_address(memory->device, &memory->calls, native, 0);
}

/* Requires the shard's lock. The page gets its place in the space and in the addresses. */
static quire_result enter(qi_shard *shard, qi_page *page, uint64_t address)
{
    quire_result result = qi_addresses_enter_page(shard->memory, page, address);
    if (result || page->dedicated)
        return result;
    result = qi_page_add_region(shard, page);
    if (result)
        qi_addresses_leave_page(shard->memory, page);
    return result;
}

/* Requires the shard's lock. The page becomes part of the memory. */
static quire_result publish(qi_shard *shard, qi_page *page, const qi_device_page *native,
                            uint64_t address)
{
    qi_pages *pages = &shard->memory->pages;
    page->native = *native;
    quire_result result = enter(shard, page, address);
    if (result)
        return result;
    qi_checked_page_made(page);
    qi_empty_pages_add(page);
    qi_lock_acquire(&pages->lock);
    page->phase = QI_PAGE_LIVE;
    pages->changes++;
    count_in(pages, page);
    qi_lock_release(&pages->lock);
    return QUIRE_SUCCESS;
}

/* Requires no lock, and returns with the shard's lock acquired. Makes and publishes a numbered
   page. */
static quire_result make_numbered(qi_shard *shard, qi_page *page, const qi_page_plan *p,
                                  qi_page_progress *progress)
{
    quire_memory *memory = shard->memory;
    qi_device_page native = {0};
    quire_result result = create(memory, page, p, &native, progress);
    uint64_t address = result ? 0 : address_of(memory, &native);
    qi_lock_acquire(&shard->lock);
    if (result)
        return result;
    result = publish(shard, page, &native, address);
    if (result) {
        qi_lock_release(&shard->lock);
        qi_device_page_destroy(memory->device, &memory->calls, &memory->account, &native);
        qi_lock_acquire(&shard->lock);
    }
    return result;
}

void qi_page_give_back_before(qi_shard *shard, uint64_t needed, qi_page_events *events)
{
    quire_memory *memory = shard->memory;
    /* the time limit of the policy applies to all shards, not only to this one */
    bool others = qi_shard_count(memory) > 1 && (memory->policy.retention_nanoseconds ||
                                                 qi_retention_is_default(&memory->policy));
    qi_page *leaving = qi_empty_pages_take_oldest(shard, needed, QI_EMPTY_PAGES_PER_CALL, NULL);
    leaving = qi_elastic_shrink(shard, 0, leaving);
    if (!leaving && !others)
        return;
    qi_lock_release(&shard->lock);
    if (others)
        leaving = qi_empty_pages_apply_all(memory, QI_EMPTY_PAGES_PER_CALL, leaving);
    qi_pages_give_back(memory, leaving, events);
    qi_lock_acquire(&shard->lock);
}

/* Requires the shard's lock. Calls qi_page_begin under the lock of the pages. */
static quire_result number(qi_shard *shard, const qi_page_plan *p, qi_page **page,
                           qi_page_events *events)
{
    qi_pages *pages = &shard->memory->pages;
    qi_lock_acquire(&pages->lock);
    quire_result result = qi_page_begin(shard, p, events, page);
    qi_lock_release(&pages->lock);
    return result;
}

/*
 * Like `number`. If the memory has as many pages as it may have, it releases and reacquires the
 * lock to give back the empty pages of all shards, and tries again.
 */
static quire_result number_or_give(qi_shard *shard, const qi_page_plan *p, qi_page **page,
                                   qi_page_events *events)
{
    quire_result result = number(shard, p, page, events);
    if (result != QUIRE_ERROR_TOO_MANY_PAGES || qi_shard_count(shard->memory) == 1)
        return result;
    qi_lock_release(&shard->lock);
    bool has_given = qi_pages_give_back_empty(shard->memory, UINT64_MAX, events) != 0;
    qi_lock_acquire(&shard->lock);
    return has_given ? number(shard, p, page, events) : result;
}

/* Requires the shard's lock. Releases and reacquires it. Numbers and makes a page for the plan. */
static quire_result make_planned(qi_shard *shard, const qi_page_plan *p, qi_page **out,
                                 qi_page_progress *progress)
{
    quire_memory *memory = shard->memory;
    qi_page *page = NULL;
    quire_result result = number_or_give(shard, p, &page, &progress->events);
    if (result)
        return result;
    qi_lock_release(&shard->lock);
    result = make_numbered(shard, page, p, progress);
    qi_lock_acquire(&memory->pages.lock);
    qi_page_end(&memory->pages, page, result, &progress->events);
    qi_lock_release(&memory->pages.lock);
    *out = page;
    return result;
}

uint64_t qi_page_most(const qi_shard *shard, const qi_page_progress *progress)
{
    uint64_t excess = qi_align_down(progress->excess, qi_page_unit(shard->memory));
    return progress->may_exceed ? (excess ? excess : 1) : 0;
}

quire_result qi_page_make(qi_shard *shard, uint64_t size, uint64_t alignment, bool dedicated,
                          qi_page **page, qi_page_progress *progress)
{
    qi_page_plan p = {.size = size, .dedicated = dedicated, .most = qi_page_most(shard, progress)};
    quire_result result = qi_page_needed_size(shard, size, alignment, dedicated, &p.needed);
    return result ? result : make_planned(shard, &p, page, progress);
}

quire_result qi_page_make_tied(qi_shard *shard, uint64_t size, const qi_tie *tie, qi_page **page,
                               qi_page_progress *progress)
{
    const qi_page_plan p = {.size = size, .needed = size, .dedicated = true, .tie = tie};
    quire_result result = qi_page_check_total(shard->memory, size, size);
    return result ? result : make_planned(shard, &p, page, progress);
}

void qi_page_keep(const qi_page *page)
{
    qi_pages *pages = &page->shard->memory->pages;
    if (page->dedicated)
        return;
    qi_lock_acquire(&pages->lock);
    pages->last_size = page->policy_size;
    qi_lock_release(&pages->lock);
}
