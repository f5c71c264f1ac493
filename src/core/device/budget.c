/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * budget.c - a claim takes from the accounts of the memory, the pages and the heap in this order,
 * and gives back what it took if one refuses; the heap is last, because it may query the backend.
 * Also the limits and budgets of heaps.
 *
 * No lock is held here: a claim may call the backend.
 */
#include "src/core/device/budget.h"

#include <inttypes.h>

#include "src/base/result.h"
#include "src/base/system.h"
#include "src/core/device/device.h"

/* A cached answer may be spent up to this part of the room that it showed: 1/16. */
enum { SERVED_SHARE = 16 };

static uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* from - taken, or 0 if that is negative. */
static uint64_t subtract_to_zero(uint64_t from, uint64_t taken)
{
    return from > taken ? from - taken : 0;
}

/* ---- the budget of the backend ------------------------------------------------------------ */

/* The answer to one query of a heap. */
typedef struct heap_query {
    quire_heap_budget reported; /* zeros if the backend reports no budgets */
    uint64_t others;            /* bytes in use that are not of quire's pages */
} heap_query;

/* Returns the bytes that all pages of the heap may have by the backend's budget. */
static uint64_t granted(const heap_query *seen)
{
    return seen->reported.budget ? subtract_to_zero(seen->reported.budget, seen->others)
                                 : UINT64_MAX;
}

/* Lets an answer with a lifetime serve further claims. Threads that keep or recall answers at the
   same time may mix two of them, whose difference is the change between two queries. */
static void keep_answer(qi_heap *heap, const heap_query *seen)
{
    uint64_t now = seen->reported.lifetime ? qi_clock() : 0;
    uint64_t left = subtract_to_zero(granted(seen), qi_account_used(&heap->account));
    qi_atomic_store_release_u64(&heap->budget, seen->reported.budget);
    qi_atomic_store_release_u64(&heap->serves,
                                qi_atomic_load_u64(&heap->begun) + left / SERVED_SHARE);
    qi_atomic_store_release_u64(
        &heap->expires, seen->reported.lifetime ? now + min_of(seen->reported.lifetime, ~now) : 0);
}

/* Returns false if the last answer does not serve a claim of `bytes`. */
static bool recall_answer(const qi_heap *heap, uint64_t bytes, heap_query *out)
{
    uint64_t expires = qi_atomic_load_acquire_u64(&heap->expires);
    uint64_t room = subtract_to_zero(qi_atomic_load_acquire_u64(&heap->serves),
                                     qi_atomic_load_u64(&heap->begun));
    if (!expires || bytes > room || qi_clock() >= expires)
        return false;
    *out = (heap_query){.others = qi_atomic_load_u64(&heap->others)};
    out->reported.budget = qi_atomic_load_u64(&heap->budget);
    return true;
}

/*
 * Queries the backend and computes the bytes of others. They lie between two bounds (budget.h),
 * which are equal while no page of the heap is created or destroyed. If they differ the last
 * known value is used, moved between them. The upper bound alone would count pages that are being
 * made twice, and refuse requests that fit to threads that make pages together.
 */
static quire_result query_heap(quire_device *device, uint32_t index, heap_query *out)
{
    *out = (heap_query){.others = 0};
    if (!qi_device_offers(device, QUIRE_BACKEND_BUDGET))
        return QUIRE_SUCCESS;
    qi_heap *heap = &device->heaps[index];
    uint64_t made = qi_atomic_load_acquire_u64(&heap->made);
    uint64_t gone = qi_atomic_load_acquire_u64(&heap->gone);
    quire_result result = qi_device_heap_budget(device, index, &out->reported);
    if (result)
        return result;
    uint64_t min_own = subtract_to_zero(made, qi_atomic_load_acquire_u64(&heap->ended));
    uint64_t max_own = subtract_to_zero(qi_atomic_load_acquire_u64(&heap->begun), gone);
    /* the more of the usage is quire's own, the less belongs to others */
    uint64_t min_others = subtract_to_zero(out->reported.usage, max_own);
    uint64_t max_others = subtract_to_zero(out->reported.usage, min_own);
    out->others = min_of(qi_atomic_load_u64(&heap->others), max_others);
    if (out->others < min_others)
        out->others = min_others;
    qi_atomic_store_release_u64(&heap->others, out->others);
    keep_answer(heap, out);
    return QUIRE_SUCCESS;
}

/* ---- claims ------------------------------------------------------------------------------- */

/* An account of which `used` are in use refuses a claim. Those that the claim already has are
   returned with it. */
static void refuse(const qi_budget_claim *claim, uint64_t max, uint64_t limit, uint64_t used)
{
    qi_budget_terms *terms = claim->terms;
    terms->is_refused = true;
    terms->room = subtract_to_zero(max, used - claim->bytes);
    terms->room_by_limit = subtract_to_zero(limit, used - claim->bytes);
}

static quire_result take_of_memory(const qi_budget_claim *claim, uint64_t bytes)
{
    uint64_t max = qi_account_max(claim->memory), used = 0;
    if (qi_account_take(claim->memory, bytes, max, &used))
        return QUIRE_SUCCESS;
    refuse(claim, max, max, used);
    if (bytes > max)
        return qi_fail_at_limit(
            QI_LIMIT_MEMORY, max,
            qi_fail_naming(QUIRE_ERROR_OVER_BUDGET,
                           "a new page of %b can never fit: the limit of memory '%t' is %b",
                           claim->name, bytes, max));
    return qi_fail_at_limit(
        QI_LIMIT_MEMORY, max,
        qi_fail_naming(QUIRE_ERROR_OVER_BUDGET,
                       "a new page of %b would exceed the %b limit of memory '%t' (%b in use)",
                       claim->name, bytes, max, used));
}

/* The lower one of the backend's limit of pages and the caller's. */
static uint64_t max_pages(const quire_device *device)
{
    uint64_t max = device->info.limits.max_pages;
    return min_of(max ? max : UINT64_MAX, qi_account_max(&device->pages));
}

bool qi_budget_is_short_of_pages(const quire_device *device)
{
    uint64_t max = max_pages(device);
    return qi_account_used(&device->pages) >= max - max / 4;
}

/* Counts one page for the device, if its own limit and the backend's allow it. */
static quire_result take_page(quire_device *device)
{
    bool is_advice = device->info.limits.max_pages_is_advice;
    uint64_t max = is_advice ? qi_account_max(&device->pages) : max_pages(device), count = 0;
    if (qi_account_take(&device->pages, 1, max, &count))
        return QUIRE_SUCCESS;
    return qi_fail_at_limit(
        QI_LIMIT_DEVICE_PAGES, max,
        qi_fail_with(QUIRE_ERROR_TOO_MANY_PAGES,
                     "a new page would exceed the device's limit of %u page%s (%u in use)", max,
                     count));
}

static void give_page(const qi_budget_claim *claim)
{
    if (!claim->is_part)
        qi_account_give(&claim->device->pages, 1);
}

/*
 * Fails with OVER_BUDGET. The message names the lower one, the caller's limit or the budget; if
 * the budget is advice it names the limit if that refuses the bytes.
 */
static quire_result refuse_heap(const qi_budget_claim *claim, uint64_t bytes, uint64_t used,
                                uint64_t limit, const heap_query *seen)
{
    const uint32_t heap = claim->heap;
    bool is_limit = limit <= claim->granted ||
                    (!claim->terms->is_strict && bytes > claim->terms->room_by_limit);
    if (bytes > limit)
        return qi_fail_at_limit(
            QI_LIMIT_HEAP, limit,
            qi_fail_with(QUIRE_ERROR_OVER_BUDGET,
                         "a new page of %b can never fit: the limit of heap %u is %b", bytes, heap,
                         limit));
    if (is_limit)
        return qi_fail_at_limit(
            QI_LIMIT_HEAP, limit,
            qi_fail_with(QUIRE_ERROR_OVER_BUDGET,
                         "a new page of %b would exceed the %b limit of heap %u (%b in use)", bytes,
                         limit, heap, used));
    return qi_fail_at_limit(
        QI_LIMIT_BUDGET, seen->reported.budget,
        qi_fail_with(QUIRE_ERROR_OVER_BUDGET,
                     "a new page of %b would exceed the %b budget of heap %u (%b of pages and "
                     "%b of other memory in use)",
                     bytes, seen->reported.budget, heap, used, seen->others));
}

/* The bytes are taken from the heap, of which `used` were in use before. */
static void note_taken(const qi_budget_claim *claim, uint64_t used, uint64_t bytes)
{
    claim->terms->has_exceeded = used > claim->granted || bytes > claim->granted - used;
    qi_atomic_add_release_u64(&claim->device->heaps[claim->heap].begun, bytes);
}

/* Queries the backend's budget first, so that the amount is taken against its latest report, unless
   the last answer serves. */
static quire_result take_of_heap(qi_budget_claim *claim, uint64_t bytes)
{
    qi_heap *heap = &claim->device->heaps[claim->heap];
    qi_budget_terms *terms = claim->terms;
    heap_query seen;
    bool is_recalled = !terms->is_strict && !terms->may_exceed && recall_answer(heap, bytes, &seen);
    quire_result result =
        is_recalled ? QUIRE_SUCCESS : query_heap(claim->device, claim->heap, &seen);
    if (result)
        return result;
    uint64_t limit = qi_account_max(&heap->account), used = 0;
    claim->granted = granted(&seen);
    uint64_t max = terms->may_exceed ? limit : min_of(limit, claim->granted);
    bool is_taken = qi_account_take(&heap->account, bytes, max, &used);
    terms->excess = subtract_to_zero(used, claim->granted);
    if (!is_taken) {
        refuse(claim, max, limit, used);
        return refuse_heap(claim, bytes, used, limit, &seen);
    }
    note_taken(claim, used, bytes);
    return QUIRE_SUCCESS;
}

/* The heap comes last, because it calls the backend. A failure returns what was taken before it. */
quire_result qi_budget_claim_page(qi_budget_claim *claim, uint64_t bytes)
{
    *claim->terms = (qi_budget_terms){.is_strict = claim->terms->is_strict,
                                      .may_exceed = claim->terms->may_exceed};
    quire_result result = take_of_memory(claim, bytes);
    if (result)
        return result;
    result = claim->is_part ? QUIRE_SUCCESS : take_page(claim->device);
    if (!result) {
        result = take_of_heap(claim, bytes);
        if (result)
            give_page(claim);
    }
    if (result)
        qi_account_give(claim->memory, bytes);
    else
        claim->bytes = bytes;
    return result;
}

quire_result qi_budget_claim_more(qi_budget_claim *claim, uint64_t bytes)
{
    qi_heap *heap = &claim->device->heaps[claim->heap];
    quire_result result = take_of_memory(claim, bytes);
    if (result)
        return result;
    uint64_t limit = qi_account_max(&heap->account), used = 0;
    uint64_t max = claim->terms->is_strict ? min_of(limit, claim->granted) : limit;
    if (!qi_account_take(&heap->account, bytes, max, &used)) {
        qi_account_give(claim->memory, bytes);
        refuse(claim, max, limit, used);
        return qi_fail_at_limit(
            max == limit ? QI_LIMIT_HEAP : QI_LIMIT_BUDGET, max,
            qi_fail_with(QUIRE_ERROR_OVER_BUDGET,
                         "the backend made a page of %b where %b were requested: heap %u may have "
                         "%b of pages",
                         claim->bytes + bytes, claim->bytes, claim->heap, max));
    }
    note_taken(claim, used, bytes);
    claim->bytes += bytes;
    return QUIRE_SUCCESS;
}

void qi_budget_page_made(const qi_budget_claim *claim)
{
    qi_atomic_add_release_u64(&claim->device->heaps[claim->heap].made, claim->bytes);
}

void qi_budget_begin_return(const qi_budget_claim *claim)
{
    qi_atomic_add_release_u64(&claim->device->heaps[claim->heap].ended, claim->bytes);
}

void qi_budget_return(const qi_budget_claim *claim)
{
    qi_heap *heap = &claim->device->heaps[claim->heap];
    qi_atomic_add_release_u64(&heap->gone, claim->bytes);
    qi_account_give(&heap->account, claim->bytes);
    give_page(claim);
    qi_account_give(claim->memory, claim->bytes);
}

void qi_budget_page_failed(const qi_budget_claim *claim)
{
    qi_atomic_store_release_u64(&claim->device->heaps[claim->heap].expires, 0);
    qi_budget_return(claim);
}

void qi_budget_end_return(const qi_budget_claim *claim)
{
    qi_budget_return(claim);
    qi_atomic_add_release_u64(&claim->device->heaps[claim->heap].releases, 1);
}

/* ---- limits and budgets of heaps ---------------------------------------------------------- */

static quire_result check_heap(const quire_device *device, uint32_t heap)
{
    if (heap < device->info.heap_count)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "the device has no heap %u: it has %u", heap,
                        device->info.heap_count);
}

quire_result qi_device_set_heap_limit(quire_device *device, uint32_t heap, uint64_t bytes)
{
    quire_result result = check_heap(device, heap);
    if (result)
        return result;
    qi_account_set_limit(&device->heaps[heap].account, bytes);
    qi_atomic_add_release_u64(&device->heaps[heap].releases, 1);
    return QUIRE_SUCCESS;
}

quire_result qi_device_get_budget(quire_device *device, uint32_t heap, quire_budget_info *info)
{
    heap_query seen;
    quire_result result = check_heap(device, heap);
    if (!result)
        result = query_heap(device, heap, &seen);
    if (result)
        return result;
    const qi_account *account = &device->heaps[heap].account;
    uint64_t size = device->info.heaps[heap].size, used = qi_account_used(account);
    *info = (quire_budget_info){
        .size = size,
        .limit = qi_atomic_load_u64(&account->limit),
        .budget = seen.reported.budget ? seen.reported.budget : size,
        .reserved = used,
        .usage = seen.reported.usage ? seen.reported.usage : used,
    };
    info->available = subtract_to_zero(
        min_of(qi_account_max(account), subtract_to_zero(info->budget, seen.others)), used);
    return QUIRE_SUCCESS;
}

bool qi_device_describe_heap(quire_device *device, uint32_t heap, quire_budget_info *info)
{
    const qi_account *account = &device->heaps[heap].account;
    qi_error error;
    qi_error_save(&error);
    if (!qi_device_get_budget(device, heap, info))
        return true;
    qi_error_restore(&error);
    *info = (quire_budget_info){
        .size = device->info.heaps[heap].size,
        .limit = qi_atomic_load_u64(&account->limit),
        .reserved = qi_account_used(account),
    };
    return false;
}
