/*
 * budget.c - see budget.h; and the public calls that set and tell the limits of a device.
 */
#include "src/core/device/budget.h"

#include <inttypes.h>

#include "src/base/result.h"
#include "src/core/device/device.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* What is left of `from`; 0 where more than all of it is taken. */
static uint64_t rest(uint64_t from, uint64_t taken)
{
    return from > taken ? from - taken : 0;
}

/* ---- what the backend grants -------------------------------------------------------------- */

/* What was known of a heap when the backend was asked. */
typedef struct outlook {
    quire_heap_budget reported; /* zeros where the backend tells nothing */
    uint64_t others;            /* bytes that are not of quire's pages */
} outlook;

/*
 * The others' bytes lie between two bounds, which are equal while no page of the heap comes or
 * goes; else what was known before is taken as far as it lies between them. To take the upper bound
 * would count pages that are being made twice, and refuse what fits to threads that make pages
 * together.
 */
static quire_result look(quire_device *device, uint32_t index, outlook *out)
{
    *out = (outlook){.others = 0};
    if (!qi_device_offers(device, QUIRE_BACKEND_BUDGET))
        return QUIRE_SUCCESS;
    qi_heap *heap = &device->heaps[index];
    uint64_t made = qi_atomic_load_acquire_u64(&heap->made);
    uint64_t gone = qi_atomic_load_acquire_u64(&heap->gone);
    quire_result result = qi_device_heap_budget(device, index, &out->reported);
    if (result)
        return result;
    uint64_t own_least = rest(made, qi_atomic_load_acquire_u64(&heap->ended));
    uint64_t own_most = rest(qi_atomic_load_acquire_u64(&heap->begun), gone);
    uint64_t least_others = rest(out->reported.usage, own_most);
    uint64_t max_others = rest(out->reported.usage, own_least);
    out->others = least(qi_atomic_load_u64(&heap->others), max_others);
    if (out->others < least_others)
        out->others = least_others;
    qi_atomic_store_release_u64(&heap->others, out->others);
    return QUIRE_SUCCESS;
}

/* What all pages of the heap may take by the backend's word. */
static uint64_t granted(const outlook *seen)
{
    return seen->reported.budget ? rest(seen->reported.budget, seen->others) : UINT64_MAX;
}

/* ---- taking ------------------------------------------------------------------------------- */

static quire_result take_of_memory(const qi_taking *taking, uint64_t bytes)
{
    uint64_t most = qi_account_max(taking->memory), used = 0;
    if (qi_account_take(taking->memory, bytes, most, &used))
        return QUIRE_SUCCESS;
    return qi_fail_text(
        QUIRE_ERROR_OVER_BUDGET, "a page of %s: memory '%s' has %s of pages and may have %s",
        qi_bytes(bytes).text, taking->name, qi_bytes(used).text, qi_bytes(most).text);
}

static quire_result take_page(quire_device *device)
{
    uint64_t most = device->info.limits.max_pages, count = 0;
    most = least(most ? most : UINT64_MAX, qi_account_max(&device->pages));
    if (qi_account_take(&device->pages, 1, most, &count))
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_TOO_MANY_PAGES,
                        "the device has %u page%s, as many as it may: %u", count, most);
}

static void give_page(const qi_taking *taking)
{
    if (!taking->is_part)
        qi_account_give(&taking->device->pages, 1);
}

/* Refuses bytes of a heap: `limit` and `grant` are what its pages may take, the lesser decides. */
static quire_result refuse_heap(uint32_t heap, uint64_t bytes, uint64_t used, uint64_t limit,
                                const outlook *seen)
{
    if (limit <= granted(seen))
        return qi_fail_text(QUIRE_ERROR_OVER_BUDGET,
                            "a page of %s: heap %" PRIu32 " has %s of pages and may have %s",
                            qi_bytes(bytes).text, heap, qi_bytes(used).text, qi_bytes(limit).text);
    return qi_fail_text(QUIRE_ERROR_OVER_BUDGET,
                        "a page of %s: heap %" PRIu32 " has %s of pages and %s of others, and its "
                        "budget is %s",
                        qi_bytes(bytes).text, heap, qi_bytes(used).text,
                        qi_bytes(seen->others).text, qi_bytes(seen->reported.budget).text);
}

static quire_result take_of_heap(qi_taking *taking, uint64_t bytes)
{
    qi_heap *heap = &taking->device->heaps[taking->heap];
    outlook seen;
    quire_result result = look(taking->device, taking->heap, &seen);
    if (result)
        return result;
    uint64_t limit = qi_account_max(&heap->account), used = 0;
    taking->most = granted(&seen);
    if (!qi_account_take(&heap->account, bytes, least(limit, taking->most), &used))
        return refuse_heap(taking->heap, bytes, used, limit, &seen);
    qi_atomic_add_release_u64(&heap->begun, bytes);
    return QUIRE_SUCCESS;
}

quire_result qi_budget_take(qi_taking *taking, uint64_t bytes)
{
    quire_result result = take_of_memory(taking, bytes);
    if (result)
        return result;
    result = taking->is_part ? QUIRE_SUCCESS : take_page(taking->device);
    if (!result) {
        result = take_of_heap(taking, bytes);
        if (result)
            give_page(taking);
    }
    if (result)
        qi_account_give(taking->memory, bytes);
    else
        taking->bytes = bytes;
    return result;
}

quire_result qi_budget_take_more(qi_taking *taking, uint64_t bytes)
{
    qi_heap *heap = &taking->device->heaps[taking->heap];
    quire_result result = take_of_memory(taking, bytes);
    if (result)
        return result;
    uint64_t most = least(taking->most, qi_account_max(&heap->account)), used = 0;
    if (!qi_account_take(&heap->account, bytes, most, &used)) {
        qi_account_give(taking->memory, bytes);
        return qi_fail_with(QUIRE_ERROR_OVER_BUDGET,
                            "the backend made a page of %b where %b were asked: heap %u may have "
                            "%b of pages",
                            taking->bytes + bytes, taking->bytes, taking->heap, most);
    }
    qi_atomic_add_release_u64(&heap->begun, bytes);
    taking->bytes += bytes;
    return QUIRE_SUCCESS;
}

/* ---- giving ------------------------------------------------------------------------------- */

void qi_budget_made(const qi_taking *taking)
{
    qi_atomic_add_release_u64(&taking->device->heaps[taking->heap].made, taking->bytes);
}

void qi_budget_ending(const qi_taking *taking)
{
    qi_atomic_add_release_u64(&taking->device->heaps[taking->heap].ended, taking->bytes);
}

void qi_budget_give(const qi_taking *taking)
{
    qi_heap *heap = &taking->device->heaps[taking->heap];
    qi_atomic_add_release_u64(&heap->gone, taking->bytes);
    qi_account_give(&heap->account, taking->bytes);
    give_page(taking);
    qi_account_give(taking->memory, taking->bytes);
}

/* ---- public calls ------------------------------------------------------------------------- */

static quire_result check_heap(const quire_device *device, uint32_t heap)
{
    if (heap < device->info.heap_count)
        return QUIRE_SUCCESS;
    return qi_fail_with(QUIRE_ERROR_OUT_OF_RANGE, "the device has no heap %u, it has %u", heap,
                        device->info.heap_count);
}

quire_result quire_device_set_heap_limit(quire_device *device, uint32_t heap, uint64_t bytes)
{
    if (!device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_device_set_heap_limit: device is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    quire_result result = check_heap(device, heap);
    if (!result)
        qi_account_set_limit(&device->heaps[heap].account, bytes);
    return result;
}

quire_result quire_device_set_page_limit(quire_device *device, uint64_t pages)
{
    if (!device)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, "quire_device_set_page_limit: device is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    qi_account_set_limit(&device->pages, pages);
    return QUIRE_SUCCESS;
}

quire_result quire_device_get_budget(quire_device *device, uint32_t heap, quire_budget_info *info)
{
    if (info)
        *info = (quire_budget_info){0};
    if (!device || !info)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_device_get_budget: device or info is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
    outlook seen;
    quire_result result = check_heap(device, heap);
    if (!result)
        result = look(device, heap, &seen);
    if (result)
        return result;
    const qi_account *account = &device->heaps[heap].account;
    uint64_t size = device->info.heaps[heap].size, used = qi_account_used(account);
    *info = (quire_budget_info){
        .size = size,
        .limit = qi_atomic_load_u64(&account->limit),
        .budget = seen.reported.budget ? seen.reported.budget : size,
        .used = used,
        .usage = seen.reported.usage ? seen.reported.usage : used,
    };
    info->available = rest(least(qi_account_max(account), rest(info->budget, seen.others)), used);
    return QUIRE_SUCCESS;
}
