/*
 * policy.c - see policy.h.
 */
#include "src/core/device/policy.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/*
 * 32 MiB: large enough that a training run of 23 GiB makes under 400 backend calls, small enough
 * that the last page costs little. A small heap is not filled by one page.
 */
static const uint64_t DEFAULT_PAGE_SIZE = UINT64_C(32) << 20;
enum { HEAP_FRACTION = 8, MAX_GROWTH_PERCENT = 1000 };

/* Up to the granularity; sizes near 2^64 down. */
static uint64_t round_size(uint64_t size, uint64_t granularity)
{
    uint64_t rounded = 0;
    return qi_align_up_overflows(size, granularity, &rounded) ? qi_align_down(size, granularity)
                                                              : rounded;
}

/* What is no power of two stays, to be refused. */
static uint64_t resolve_granularity(uint64_t asked, uint64_t backend)
{
    bool is_finer = !asked || (qi_is_power_of_two(asked) && asked < backend);
    return is_finer ? backend : asked;
}

quire_page_policy qi_policy_resolve(const quire_page_policy *asked, const quire_device *device,
                                    uint32_t kind)
{
    quire_page_policy policy = *asked;
    uint64_t heap = device->info.heaps[device->info.kinds[kind].heap].size;
    uint64_t granularity =
        resolve_granularity(asked->page_granularity, device->info.limits.page_granularity);
    policy.page_granularity = granularity;
    if (!policy.page_size) {
        uint64_t share = qi_align_down(heap / HEAP_FRACTION, granularity);
        policy.page_size = share < DEFAULT_PAGE_SIZE ? share : DEFAULT_PAGE_SIZE;
        policy.page_size += share ? 0 : granularity;
    }
    policy.page_size = round_size(policy.page_size, granularity);
    if (!policy.first_page_size)
        policy.first_page_size = policy.page_size;
    policy.first_page_size = round_size(policy.first_page_size, granularity);
    if (!policy.max_page)
        policy.max_page =
            policy.page_size > policy.first_page_size ? policy.page_size : policy.first_page_size;
    policy.max_page = round_size(policy.max_page, granularity);
    for (int i = 0; i < QUIRE_MAX_PAGE_CLASSES; i++)
        policy.classes[i].page_size = round_size(policy.classes[i].page_size, granularity);
    if (!policy.size_granularity)
        policy.size_granularity = 1;
    return policy;
}

/* ---- checks ------------------------------------------------------------------------------- */

static quire_result check_growth(const quire_page_policy *policy)
{
    if (policy->growth_percent > MAX_GROWTH_PERCENT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages cannot grow by %u percent, most %u", policy->growth_percent,
                            MAX_GROWTH_PERCENT);
    if (policy->growth_percent && policy->first_page_size >= policy->max_page)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages cannot grow by %u percent: the first one, %b, is as large as "
                            "the largest",
                            policy->growth_percent, policy->first_page_size);
    if (policy->growth != QUIRE_GROWTH_LAST && policy->growth != QUIRE_GROWTH_LARGEST &&
        policy->growth != QUIRE_GROWTH_RESERVED)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no kind of growth %u",
                            (uint64_t)policy->growth);
    if (policy->growth == QUIRE_GROWTH_RESERVED && !policy->growth_percent)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "pages that are a share of what is reserved need a growth percent");
    if (policy->request_factor > 1 &&
        (!policy->growth_percent || policy->growth == QUIRE_GROWTH_RESERVED))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages of %u times the request need pages that grow by steps",
                            policy->request_factor);
    return QUIRE_SUCCESS;
}

/* `below`: the largest request of the classes before; UINT64_MAX behind the last one. */
static quire_result check_class(const quire_page_class *class, uint32_t number, uint64_t below)
{
    if (!class->max_request && class->page_size)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "page class %u has pages of %b for no request", number,
                            class->page_size);
    if (class->max_request && class->max_request <= below)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "page class %u, up to %b, lies behind the last or not above the one "
                            "before it",
                            number, class->max_request);
    if (class->page_size < class->max_request)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "page class %u: no page of %b holds a request of %b", number,
                            class->page_size, class->max_request);
    return QUIRE_SUCCESS;
}

static quire_result check_classes(const quire_page_policy *policy)
{
    uint64_t below = 0;
    for (uint32_t i = 0; i < QUIRE_MAX_PAGE_CLASSES; i++) {
        quire_result result = check_class(&policy->classes[i], i, below);
        if (result)
            return result;
        below = policy->classes[i].max_request;
        below = below ? below : UINT64_MAX;
    }
    return QUIRE_SUCCESS;
}

static quire_result check_dedicated(const quire_page_policy *policy)
{
    if ((unsigned)policy->dedicated > QUIRE_DEDICATED_NEVER)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no dedicated mode %u",
                            (uint64_t)policy->dedicated);
    if (policy->dedicated == QUIRE_DEDICATED_BY_SIZE)
        return QUIRE_SUCCESS;
    if (policy->dedicated_threshold)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       policy->dedicated == QUIRE_DEDICATED_NEVER
                           ? "a dedicated threshold contradicts pages that are never dedicated"
                           : "a dedicated threshold contradicts one page per object");
    if (policy->dedicated == QUIRE_DEDICATED_NEVER)
        return QUIRE_SUCCESS;
    if (policy->growth != QUIRE_GROWTH_LAST || policy->request_factor > 1 ||
        policy->classes[0].max_request)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a kind of growth, a request factor or page classes contradict one page "
                       "per object");
    return QUIRE_SUCCESS;
}

quire_result qi_policy_validate(const quire_page_policy *policy)
{
    if (!qi_is_power_of_two(policy->page_granularity))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "page granularity %u is not a power of two", policy->page_granularity);
    quire_result result = check_growth(policy);
    if (result)
        return result;
    if (policy->max_page < policy->page_size || policy->max_page < policy->first_page_size)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest page %b is below the page size %b or the first page's %b",
                            policy->max_page, policy->page_size, policy->first_page_size);
    result = check_classes(policy);
    if (!result)
        result = check_dedicated(policy);
    return result ? result : qi_check_unused(policy, "quire_page_policy");
}

/* ---- sizes of pages ----------------------------------------------------------------------- */

/* So many percent, rounded up, and no more than the largest page; above 100 always more. */
static uint64_t percent_of(const quire_page_policy *policy, uint64_t size, uint64_t percent,
                           uint64_t granularity)
{
    uint64_t share = 0;
    if (qi_multiply_overflows(size, percent, &share))
        return policy->max_page;
    share = round_size(share / 100 + (share % 100 != 0), granularity);
    return share < policy->max_page ? share : policy->max_page;
}

/* The step of growth after this one; the largest page is the last. */
static uint64_t step_after(const quire_page_policy *policy, uint64_t step, uint64_t granularity)
{
    return percent_of(policy, step, 100 + (uint64_t)policy->growth_percent, granularity);
}

static uint64_t step_above(const quire_page_policy *policy, uint64_t largest, uint64_t granularity)
{
    if (largest && !policy->growth_percent)
        return policy->page_size;
    uint64_t step = policy->first_page_size;
    while (step <= largest && step < policy->max_page)
        step = step_after(policy, step, granularity);
    return step;
}

/* Sizes of pages are multiples of both. */
static uint64_t coarser(const quire_page_policy *policy, uint64_t granularity)
{
    return policy->page_granularity > granularity ? policy->page_granularity : granularity;
}

qi_page_history qi_policy_history(const quire_page_policy *policy, const qi_pages *pages)
{
    qi_page_history history = {.last = pages->last_size};
    for (uint32_t i = 0; policy->growth != QUIRE_GROWTH_LAST && i < pages->top; i++) {
        const qi_page *page = qi_page_at(pages, i);
        bool is_making = page->phase == QI_PAGE_MAKING;
        if (page->dedicated ||
            (!is_making && page->phase != QI_PAGE_LIVE && page->phase != QI_PAGE_MOVING))
            continue;
        uint64_t size = is_making ? page->wanted : page->native.size;
        qi_raise(&history.largest, size);
        history.total += size;
    }
    return history;
}

uint64_t qi_policy_next_page(const quire_page_policy *policy, const qi_page_history *history,
                             uint64_t granularity)
{
    uint64_t unit = coarser(policy, granularity);
    if (policy->growth == QUIRE_GROWTH_LARGEST)
        return step_above(policy, history->largest, unit);
    if (policy->growth == QUIRE_GROWTH_RESERVED)
        return history->total ? percent_of(policy, history->total, policy->growth_percent, unit)
                              : policy->first_page_size;
    if (!history->last)
        return policy->first_page_size;
    return policy->growth_percent ? step_after(policy, history->last, unit) : policy->page_size;
}

uint64_t qi_policy_page_for(const quire_page_policy *policy, uint64_t next, uint64_t size,
                            uint64_t granularity)
{
    for (int i = 0; i < QUIRE_MAX_PAGE_CLASSES; i++)
        if (size <= policy->classes[i].max_request)
            return policy->classes[i].page_size;
    uint64_t least = 0, unit = coarser(policy, granularity);
    if (policy->request_factor > 1 && qi_multiply_overflows(size, policy->request_factor, &least))
        least = UINT64_MAX;
    while (next && next < least && next < policy->max_page)
        next = step_after(policy, next, unit);
    return next;
}

uint64_t qi_policy_round(const quire_page_policy *policy, uint64_t needed)
{
    uint64_t rounded = 0;
    return qi_align_up_overflows(needed, policy->page_granularity, &rounded) ? needed : rounded;
}

/* ---- sizes of allocations ----------------------------------------------------------------- */

bool qi_policy_size_overflows(const quire_page_policy *policy, uint64_t requested, uint64_t *size)
{
    uint64_t padded = 0;
    if (qi_add_overflows(requested, policy->extra_padding, &padded))
        return true;
    uint64_t over = padded % policy->size_granularity;
    return qi_add_overflows(padded, over ? policy->size_granularity - over : 0, size);
}
