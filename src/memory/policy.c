/*
 * policy.c - see policy.h.
 */
#include "src/memory/policy.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/*
 * 32 MiB: large enough that a training run of 23 GiB makes under 400 backend calls, small enough
 * that the last page costs little. A small heap is not filled by one page.
 */
static const uint64_t DEFAULT_PAGE_SIZE = UINT64_C(32) << 20;
enum { HEAP_FRACTION = 8, MOST_GROWTH_PERCENT = 1000 };

/* Up to the granularity; sizes near 2^64 down. */
static uint64_t round_size(uint64_t size, uint64_t granularity)
{
    uint64_t rounded = 0;
    return qi_align_up_overflows(size, granularity, &rounded) ? qi_align_down(size, granularity)
                                                              : rounded;
}

quire_page_policy qi_policy_resolve(const quire_page_policy *asked, const quire_device *device,
                                    uint32_t kind)
{
    quire_page_policy policy = *asked;
    uint64_t heap = device->info.heaps[device->info.kinds[kind].heap].size;
    uint64_t granularity = device->info.limits.page_granularity;
    if (!policy.page_size) {
        uint64_t share = qi_align_down(heap / HEAP_FRACTION, granularity);
        policy.page_size = share < DEFAULT_PAGE_SIZE ? share : DEFAULT_PAGE_SIZE;
        policy.page_size += share ? 0 : granularity;
    }
    policy.page_size = round_size(policy.page_size, granularity);
    if (!policy.first_page_size)
        policy.first_page_size = policy.page_size;
    policy.first_page_size = round_size(policy.first_page_size, granularity);
    if (!policy.largest_page)
        policy.largest_page =
            policy.page_size > policy.first_page_size ? policy.page_size : policy.first_page_size;
    policy.largest_page = round_size(policy.largest_page, granularity);
    if (!policy.size_granularity)
        policy.size_granularity = 1;
    return policy;
}

quire_result qi_policy_validate(const quire_page_policy *policy)
{
    if (policy->growth_percent > MOST_GROWTH_PERCENT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages cannot grow by %u percent, most %u", policy->growth_percent,
                            MOST_GROWTH_PERCENT);
    if (policy->growth_percent && policy->first_page_size >= policy->largest_page)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages cannot grow by %u percent: the first one, %b, is as large as "
                            "the largest",
                            policy->growth_percent, policy->first_page_size);
    if (policy->largest_page < policy->page_size || policy->largest_page < policy->first_page_size)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest page %b is below the page size %b or the first page's %b",
                            policy->largest_page, policy->page_size, policy->first_page_size);
    if (policy->dedicated != QUIRE_DEDICATED_BY_SIZE && policy->dedicated != QUIRE_DEDICATED_ALWAYS)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no dedicated mode %u",
                            (uint64_t)policy->dedicated);
    if (policy->dedicated == QUIRE_DEDICATED_ALWAYS && policy->dedicated_threshold)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "a dedicated threshold contradicts one page per object");
    return qi_check_reserved(policy, "quire_page_policy");
}

uint64_t qi_policy_next_page(const quire_page_policy *policy, uint64_t last, uint64_t granularity)
{
    if (!last)
        return policy->first_page_size;
    if (!policy->growth_percent)
        return policy->page_size;
    uint64_t grown = 0;
    if (qi_multiply_overflows(last, 100 + policy->growth_percent, &grown))
        return policy->largest_page;
    grown = round_size(grown / 100, granularity);
    return grown < policy->largest_page ? grown : policy->largest_page;
}

bool qi_policy_size_overflows(const quire_page_policy *policy, uint64_t requested, uint64_t *size)
{
    uint64_t padded = 0;
    if (qi_add_overflows(requested, policy->extra_padding, &padded))
        return true;
    uint64_t over = padded % policy->size_granularity;
    return qi_add_overflows(padded, over ? policy->size_granularity - over : 0, size);
}
