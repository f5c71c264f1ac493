/*
 * backend_page.c - calls that create, resize, map and destroy pages (see device.h).
 *
 * A claim (budget.h) surrounds each of them: bytes count against every limit from before the
 * backend makes them until after it destroyed them. No lock is held.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/backend_call.h"

/* Raises the peak as well. */
static void count_bytes(quire_device *device, uint64_t size)
{
    uint64_t reserved = qi_atomic_add_u64(&device->reserved_bytes, size) + size;
    qi_atomic_raise_u64(&device->peak_reserved_bytes, reserved);
}

static void destroy_native(quire_device *device, qi_calls *calls, const quire_native_page *page)
{
    qi_backend_call call = qi_backend_call_begin();
    device->table.page_destroy(device->state, page);
    qi_backend_call_end(device, calls, call, QUIRE_SUCCESS);
}

/*
 * A page smaller than requested would let allocations reach beyond it. The address is checked only
 * for pages that the backend places: adopted memory (with a description) keeps its address.
 */
static quire_result check_page(const quire_device *device, const quire_page_request *request,
                               const quire_native_page *page)
{
    uint64_t promised = device->info.limits.page_alignment;
    uint64_t alignment = promised ? promised : request->alignment;
    if (request->max_size && page->size != request->max_size)
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page that may grow to %b where %b were requested",
                            page->size, request->max_size);
    if (page->size < request->size)
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page of %b where %b were requested", page->size,
                            request->size);
    if (!request->description && qi_padding(page->address, alignment))
        return qi_fail_with(QUIRE_ERROR_BACKEND_FAILURE,
                            "the backend made a page at %x, which is not a multiple of %b",
                            page->address, alignment);
    return QUIRE_SUCCESS;
}

static quire_result create_native(quire_device *device, qi_calls *calls,
                                  const quire_page_request *request, quire_native_page *page)
{
    *page = (quire_native_page){0};
    qi_backend_call call = qi_backend_call_begin();
    quire_result result = qi_backend_call_end(
        device, calls, call, device->table.page_create(device->state, request, page));
    if (result)
        return result;
    result = check_page(device, request, page);
    if (result)
        destroy_native(device, calls, page);
    return result;
}

quire_result qi_device_page_map(quire_device *device, qi_calls *calls, qi_device_page *page)
{
    void *host = NULL;
    qi_backend_call call = qi_backend_call_begin();
    quire_result result = qi_backend_call_end(
        device, calls, call, device->table.map(device->state, &page->native, &host));
    if (result)
        return result;
    if (!host)
        return qi_fail(QUIRE_ERROR_BACKEND_FAILURE, "the backend mapped a page to NULL");
    page->host = host;
    return QUIRE_SUCCESS;
}

/* Does not write to the page: its destruction has only a constant one. */
static void unmap_native(quire_device *device, qi_calls *calls, const quire_native_page *page)
{
    qi_backend_call call = qi_backend_call_begin();
    device->table.unmap(device->state, page);
    qi_backend_call_end(device, calls, call, QUIRE_SUCCESS);
}

void qi_device_page_unmap(quire_device *device, qi_calls *calls, qi_device_page *page)
{
    unmap_native(device, calls, &page->native);
    page->host = NULL;
}

/*
 * Creates and maps a page whose requested bytes are claimed. An elastic page begins with the
 * requested size; of any other page all bytes that the backend made are claimed.
 */
static quire_result create_and_map(qi_budget_claim *claim, qi_calls *calls,
                                   const quire_page_request *request, qi_device_page *page)
{
    quire_device *device = claim->device;
    quire_result result = create_native(device, calls, request, &page->native);
    if (result)
        return result;
    page->size = request->max_size ? request->size : page->native.size;
    if (page->size > request->size)
        result = qi_budget_claim_more(claim, page->size - request->size);
    page->host = NULL;
    bool maps = device->info.kinds[page->kind].flags & QUIRE_HOST_VISIBLE && !page->on_demand;
    if (!result && maps)
        result = qi_device_page_map(device, calls, page);
    if (result)
        destroy_native(device, calls, &page->native);
    return result;
}

static qi_budget_claim claim_for(quire_device *device, qi_account *account, uint32_t kind)
{
    return (qi_budget_claim){
        .device = device, .memory = account, .heap = device->info.kinds[kind].heap};
}

/* Keeps the claim where the backend succeeded and returns it where the backend failed. */
static quire_result settle(const qi_budget_claim *claim, quire_result result)
{
    if (result) {
        qi_budget_page_failed(claim);
        return result;
    }
    qi_budget_page_made(claim);
    count_bytes(claim->device, claim->bytes);
    return QUIRE_SUCCESS;
}

quire_result qi_device_page_create(quire_device *device, qi_calls *calls, qi_account *account,
                                   qi_budget_terms *terms, const quire_page_request *request,
                                   qi_device_page *page)
{
    page->kind = request->kind;
    qi_budget_claim claim = claim_for(device, account, request->kind);
    claim.name = request->label;
    claim.terms = terms;
    quire_result result = qi_budget_claim_page(&claim, request->size);
    return result ? result : settle(&claim, create_and_map(&claim, calls, request, page));
}

void qi_device_page_destroy(quire_device *device, qi_calls *calls, qi_account *account,
                            const qi_device_page *page)
{
    qi_budget_claim claim = claim_for(device, account, page->kind);
    claim.bytes = page->size;
    qi_budget_begin_return(&claim);
    if (page->host)
        unmap_native(device, calls, &page->native);
    destroy_native(device, calls, &page->native);
    qi_budget_end_return(&claim);
    qi_atomic_sub_u64(&device->reserved_bytes, claim.bytes);
}

static quire_result resize(quire_device *device, qi_calls *calls, const quire_native_page *page,
                           uint64_t from, uint64_t to)
{
    qi_backend_call call = qi_backend_call_begin();
    return qi_backend_call_end(device, calls, call,
                               device->table.page_resize(device->state, page, from, to));
}

quire_result qi_device_page_grow(quire_device *device, qi_calls *calls, qi_account *account,
                                 qi_budget_terms *terms, const char *name,
                                 const qi_device_page *page, uint64_t to)
{
    qi_budget_claim claim = claim_for(device, account, page->kind);
    claim.name = name;
    claim.terms = terms;
    claim.is_part = true;
    quire_result result = qi_budget_claim_page(&claim, to - page->size);
    return result ? result : settle(&claim, resize(device, calls, &page->native, page->size, to));
}

void qi_device_page_shrink(quire_device *device, qi_calls *calls, qi_account *account,
                           const qi_device_page *page, uint64_t from, uint64_t to)
{
    qi_budget_claim claim = claim_for(device, account, page->kind);
    claim.bytes = from - to;
    claim.is_part = true;
    qi_budget_begin_return(&claim);
    /* shrinking cannot fail: what the backend may report is dropped */
    qi_error before;
    qi_error_save(&before);
    qi_ignore(resize(device, calls, &page->native, from, to));
    qi_error_restore(&before);
    qi_budget_end_return(&claim);
    qi_atomic_sub_u64(&device->reserved_bytes, claim.bytes);
}
