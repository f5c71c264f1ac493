/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * policy.c - by default a page has a share of the bytes of all pages, so that pages grow with use
 * (see policy.h). Defaults, checks, sizes of pages and of allocations, and presets. Pure functions
 * of their arguments.
 */
#include "src/core/device/policy.h"

#include "src/base/bits.h"
#include "src/base/result.h"

/*
 * 32 MiB: large enough that a training run of 23 GiB makes fewer than 400 backend calls, small
 * enough that the unused part of the last page costs little. A page is at most an eighth of the
 * heap, so that one page does not fill a small heap.
 */
static const uint64_t DEFAULT_PAGE_SIZE = UINT64_C(32) << 20;
enum { HEAP_FRACTION = 8, MAX_GROWTH_PERCENT = 1000 };

/*
 * Pages that follow use start at 1 MiB: a program with a few buffers reserves that much. A page is
 * a twelfth of the bytes of all pages, and more in larger memories: those bytes / 500 MiB of them.
 * 10 MiB thus grow by 10 percent, 60 MiB by 20, and pages above 108 MiB have 32 MiB. The constants
 * were measured with the traces of docs/benchmarks.md: doublings reserve up to 1.9 times the peak
 * of a program below 256 MiB, these at most 1.3 times, and large programs make a few pages more.
 */
static const uint64_t SMALLEST_PAGE_SIZE = UINT64_C(1) << 20;
static const uint64_t WHOLE_SHARE = UINT64_C(500) << 20;
enum { SMALL_SHARE = 12 };

/* Pages that follow use are multiples of 64 KiB: most sizes of buffers leave no rest in them. */
static const uint64_t WHOLE_UNIT = UINT64_C(64) << 10;

/* A request above the next page gets a page of its size, rounded up by less than a 64th of it. */
enum { REQUEST_UNITS = 64 };

/*
 * A page that follows use counts at most this many times the bytes of its shard. A shard that holds
 * little thus has small pages in a memory that holds much. The third page of a shard has 32 MiB, so
 * that 16 shards add 32 pages to the 640 of a memory of 20 GiB: 5 percent.
 */
enum { SHARD_FACTOR = 32 };

/* Rounds up to the granularity, or down if rounding up exceeds 64 bits. */
static uint64_t round_size(uint64_t size, uint64_t granularity)
{
    uint64_t rounded = 0;
    return qi_align_up_overflows(size, granularity, &rounded) ? qi_align_down(size, granularity)
                                                              : rounded;
}

/* The coarser of both. What is not a power of two stays: qi_policy_validate refuses it. */
static uint64_t resolve_granularity(uint64_t requested, uint64_t backend)
{
    bool is_finer = !requested || (qi_is_power_of_two(requested) && requested < backend);
    return is_finer ? backend : requested;
}

/*
 * Whether the pages follow use. A limit on the number of pages is a limit on bytes too, which small
 * pages would lower, and one page for everything cannot be replaced by larger ones. Both keep pages
 * of the default size.
 */
static bool follows_use(const quire_page_policy *requested, bool has_one_page)
{
    return !requested->page_size && !requested->first_page_size && !requested->growth_percent &&
           requested->growth == QUIRE_GROWTH_LAST && !requested->max_page &&
           !requested->max_pages && !has_one_page;
}

quire_page_policy qi_policy_resolve(const quire_page_policy *requested, const quire_device *device,
                                    uint32_t kind, bool has_one_page)
{
    quire_page_policy policy = *requested;
    uint64_t heap = device->info.heaps[device->info.kinds[kind].heap].size;
    uint64_t granularity =
        resolve_granularity(requested->page_granularity, device->info.limits.page_granularity);
    policy.page_granularity = granularity;
    if (!policy.page_size) {
        uint64_t share = qi_align_down(heap / HEAP_FRACTION, granularity);
        policy.page_size = share < DEFAULT_PAGE_SIZE ? share : DEFAULT_PAGE_SIZE;
        policy.page_size += share ? 0 : granularity; /* a tiny heap still has pages */
    }
    policy.page_size = round_size(policy.page_size, granularity);
    if (follows_use(requested, has_one_page)) {
        policy.growth = QI_GROWTH_USE;
        if (policy.page_size > SMALLEST_PAGE_SIZE)
            policy.first_page_size = SMALLEST_PAGE_SIZE;
    }
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

static quire_result check_growth_kind(const quire_page_policy *requested)
{
    if ((unsigned)requested->growth > QUIRE_GROWTH_RESERVED)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no kind of growth %u",
                            (uint64_t)requested->growth);
    return QUIRE_SUCCESS;
}

/* Refuses growth that cannot happen: without a larger page to reach, or without steps to take. */
static quire_result check_growth(const quire_page_policy *policy)
{
    if (policy->growth_percent > MAX_GROWTH_PERCENT)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages cannot grow by %u percent: at most %u", policy->growth_percent,
                            MAX_GROWTH_PERCENT);
    if (policy->growth_percent && policy->first_page_size >= policy->max_page)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages cannot grow by %u percent: the first one, %b, is as large as "
                            "the largest",
                            policy->growth_percent, policy->first_page_size);
    if (policy->growth == QUIRE_GROWTH_RESERVED && !policy->growth_percent)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "pages that grow by a share of the reserved bytes need a growth percent");
    if (policy->request_factor > 1 &&
        (!policy->growth_percent || policy->growth == QUIRE_GROWTH_RESERVED))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "pages of %u times the request need pages that grow by steps",
                            policy->request_factor);
    return QUIRE_SUCCESS;
}

/* `below` is max_request of the class before it; UINT64_MAX after the last class in use. */
static quire_result check_class(const quire_page_class *class, uint32_t number, uint64_t below)
{
    if (!class->max_request && class->page_size)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "page class %u has pages of %b for no request", number,
                            class->page_size);
    if (class->max_request && class->max_request <= below)
        return qi_fail_with(
            QUIRE_ERROR_INVALID_ARGUMENT,
            "page class %u, up to %b, follows an unused class or is not above the one before it",
            number, class->max_request);
    if (class->page_size < class->max_request)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "page class %u: no page of %b holds a request of %b", number,
                            class->page_size, class->max_request);
    return QUIRE_SUCCESS;
}

/* Classes in use come first, in ascending order of their requests. */
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

/* Refuses settings that have no effect in the chosen mode. */
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

quire_result qi_policy_validate(const quire_page_policy *requested, const quire_page_policy *policy)
{
    if (!qi_is_power_of_two(policy->page_granularity))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "page granularity %u is not a power of two", policy->page_granularity);
    quire_result result = check_growth_kind(requested);
    if (!result)
        result = check_growth(policy);
    if (result)
        return result;
    if (policy->max_page < policy->page_size || policy->max_page < policy->first_page_size)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "largest page %b is below the page size %b or the first page's %b",
                            policy->max_page, policy->page_size, policy->first_page_size);
    result = check_classes(policy);
    if (!result)
        result = check_dedicated(requested);
    return result ? result : qi_check_unused(policy, "quire_page_policy");
}

/* ---- sizes of pages ----------------------------------------------------------------------- */

/* A percentage of `size`, rounded up to the granularity and at most max_page. Above 100 percent the
   result exceeds `size` unless max_page prevents it. */
static uint64_t percent_of(const quire_page_policy *policy, uint64_t size, uint64_t percent,
                           uint64_t granularity)
{
    uint64_t share = 0;
    if (qi_multiply_overflows(size, percent, &share))
        return policy->max_page;
    share = round_size(share / 100 + (share % 100 != 0), granularity);
    return share < policy->max_page ? share : policy->max_page;
}

/* The step of growth after `step`; max_page is the last step. */
static uint64_t step_after(const quire_page_policy *policy, uint64_t step, uint64_t granularity)
{
    return percent_of(policy, step, 100 + (uint64_t)policy->growth_percent, granularity);
}

/* The first step of growth above the largest page; page_size if pages do not grow. */
static uint64_t step_above(const quire_page_policy *policy, uint64_t largest, uint64_t granularity)
{
    if (largest && !policy->growth_percent)
        return policy->page_size;
    uint64_t step = policy->first_page_size;
    while (step <= largest && step < policy->max_page)
        step = step_after(policy, step, granularity);
    return step;
}

/* The size of a page that follows use beside pages of `bytes`. The largest one has at most 32 MiB,
   so that no product exceeds 64 bits. */
static uint64_t share_of(const quire_page_policy *policy, uint64_t bytes)
{
    if (bytes / SMALL_SHARE >= policy->page_size)
        return policy->page_size;
    return bytes / SMALL_SHARE + bytes * bytes / WHOLE_SHARE;
}

static uint64_t between(uint64_t low, uint64_t value, uint64_t high)
{
    return value < low ? low : value < high ? value : high;
}

/*
 * The bytes of all shared pages count, those being made included. The sum changes little when a few
 * pages leave, so that a large memory does not return to small pages.
 */
static uint64_t page_by_use(const quire_page_policy *policy, const qi_page_history *history,
                            uint64_t granularity)
{
    uint64_t bytes = history->total;
    if (bytes / SHARD_FACTOR > history->own)
        bytes = history->own * SHARD_FACTOR;
    uint64_t size = share_of(policy, bytes);
    qi_raise(&size, history->floor);
    qi_raise(&granularity, WHOLE_UNIT);
    return between(policy->first_page_size, round_size(size, granularity), policy->page_size);
}

/* The size of a page that follows use for a request above the next page. */
static uint64_t page_by_request(uint64_t needed)
{
    uint64_t unit = (UINT64_C(1) << qi_highest_bit(needed)) / REQUEST_UNITS;
    return unit ? round_size(needed, unit) : needed;
}

/* Sizes of pages are multiples of the coarser granularity, and so of both: powers of two. */
static uint64_t coarser(const quire_page_policy *policy, uint64_t granularity)
{
    return policy->page_granularity > granularity ? policy->page_granularity : granularity;
}

/*
 * Four kinds of growth: by use; the step above the largest page; a share of all pages; the step
 * after the last page. Without a growth percent every page but the first has page_size.
 */
uint64_t qi_policy_next_page(const quire_page_policy *policy, const qi_page_history *history,
                             uint64_t granularity)
{
    uint64_t unit = coarser(policy, granularity);
    if (policy->growth == QI_GROWTH_USE)
        return page_by_use(policy, history, unit);
    if (policy->growth == QUIRE_GROWTH_LARGEST)
        return step_above(policy, history->largest, unit);
    if (policy->growth == QUIRE_GROWTH_RESERVED)
        return history->total ? percent_of(policy, history->total, policy->growth_percent, unit)
                              : policy->first_page_size;
    if (!history->last)
        return policy->first_page_size;
    return policy->growth_percent ? step_after(policy, history->last, unit) : policy->page_size;
}

/*
 * The first class that the request fits into decides alone. A page that follows use is rounded up
 * for a larger request: pages of exactly its size would make a page for each of many requests that
 * grow slowly, since the empty pages leave each time. Other pages take further steps of growth
 * until they hold request_factor times the request, or have the largest size.
 */
uint64_t qi_policy_page_for(const quire_page_policy *policy, uint64_t next, uint64_t size,
                            uint64_t needed, uint64_t granularity)
{
    for (int i = 0; i < QUIRE_MAX_PAGE_CLASSES; i++)
        if (size <= policy->classes[i].max_request)
            return policy->classes[i].page_size;
    if (policy->growth == QI_GROWTH_USE && next < needed)
        return page_by_request(needed);
    uint64_t min = 0, unit = coarser(policy, granularity);
    if (policy->request_factor > 1 && qi_multiply_overflows(size, policy->request_factor, &min))
        min = UINT64_MAX;
    while (next && next < min && next < policy->max_page)
        next = step_after(policy, next, unit);
    return next;
}

uint64_t qi_policy_round(const quire_page_policy *policy, uint64_t needed)
{
    uint64_t rounded = 0;
    return qi_align_up_overflows(needed, policy->page_granularity, &rounded) ? needed : rounded;
}

/* ---- sizes of allocations ----------------------------------------------------------------- */

/* The size granularity need not be a power of two. */
bool qi_policy_size_overflows(const quire_page_policy *policy, uint64_t requested, uint64_t *size)
{
    uint64_t padded = 0;
    if (qi_add_overflows(requested, policy->extra_padding, &padded))
        return true;
    uint64_t over = padded % policy->size_granularity;
    return qi_add_overflows(padded, over ? policy->size_granularity - over : 0, size);
}

/* ---- presets ------------------------------------------------------------------------------ */

/*
 * The page policies of other allocators, as data (see quire/preset.h). docs/policies.md gives the
 * source of each number. Pure functions of their arguments; no lock.
 */

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* ---- policies that depend on the heap ----------------------------------------------------- */

/* On a small heap the first page is as large as the largest once both are rounded. Growth is then
   removed, because qi_policy_validate refuses growth that cannot happen. */
static void drop_idle_growth(quire_page_policy *policy, const quire_device *device, uint32_t kind)
{
    quire_page_policy resolved = qi_policy_resolve(policy, device, kind, false);
    if (resolved.first_page_size < resolved.max_page)
        return;
    policy->growth_percent = 0;
    policy->growth = QUIRE_GROWTH_LAST;
    policy->request_factor = 0;
}

/*
 * The preferred size P is 256 MiB, or an eighth of a heap of at most 1 GiB. Pages are P/8, P/4, P/2
 * and P: the smallest step above all existing pages that holds the request twice. Requests above
 * P/2 get a dedicated page.
 */
static quire_page_policy vma_policy(uint64_t heap)
{
    uint64_t preferred = heap <= GIB ? heap / 8 : 256 * MIB;
    preferred += qi_padding(preferred, 32);
    return (quire_page_policy){
        .page_size = preferred,
        .first_page_size = preferred / 8,
        .growth_percent = 100,
        .growth = QUIRE_GROWTH_LARGEST,
        .request_factor = 2,
        .dedicated_threshold = preferred / 2 + 1,
    };
}

/* The first page is half of the heap; each page is as large as all pages before it together. */
static quire_page_policy rmm_policy(uint64_t heap)
{
    const uint64_t multiple = 256;
    return (quire_page_policy){
        .first_page_size = qi_align_down(heap / 2, multiple),
        .growth_percent = 100,
        .growth = QUIRE_GROWTH_RESERVED,
        .max_page = qi_align_down(heap, multiple),
        .size_granularity = multiple,
    };
}

/*
 * Pages of 2 MiB for requests up to 1 MiB, of 20 MiB for requests below 10 MiB, and otherwise the
 * request rounded up to 2 MiB.
 */
static quire_page_policy pytorch_policy(void)
{
    const uint64_t multiple = 512;
    return (quire_page_policy){
        .page_size = 2 * MIB,
        .page_granularity = 2 * MIB,
        .classes = {{.max_request = 1 * MIB, .page_size = 2 * MIB},
                    {.max_request = 10 * MIB - multiple, .page_size = 20 * MIB}},
        .size_granularity = multiple,
    };
}

quire_result qi_policy_preset(quire_preset preset, const quire_device *device, uint32_t kind,
                              quire_page_policy *policy)
{
    if (preset != QUIRE_PRESET_VMA && preset != QUIRE_PRESET_RMM && preset != QUIRE_PRESET_PYTORCH)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no preset %u",
                            (uint64_t)preset);
    if (kind >= device->info.kind_count)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "there is no memory kind %u: the device has %u", kind,
                            device->info.kind_count);
    uint64_t heap = device->info.heaps[device->info.kinds[kind].heap].size;
    *policy = preset == QUIRE_PRESET_VMA   ? vma_policy(heap)
              : preset == QUIRE_PRESET_RMM ? rmm_policy(heap)
                                           : pytorch_policy();
    drop_idle_growth(policy, device, kind);
    return QUIRE_SUCCESS;
}

/* ---- PaddlePaddle ------------------------------------------------------------------------- */

/* Bytes of memory::detail::MemoryBlock::Desc, which lies before each block. */
enum { PADDLE_DESCRIPTOR = 64 };

/* `max` of 0 means no limit. */
static uint64_t cap(uint64_t size, uint64_t max)
{
    return max && size > max ? max : size;
}

/* A page is the larger of the placed size and the chunk, which is rounded up to min_chunk. */
static quire_result auto_growth(const quire_paddle_sizes *sizes, uint64_t multiple,
                                quire_page_policy *policy)
{
    uint64_t over = sizes->chunk % multiple, chunk = 0;
    if (qi_add_overflows(sizes->chunk, over ? multiple - over : 0, &chunk))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a chunk of %u byte%s cannot be rounded up to a multiple of %u",
                            sizes->chunk, multiple);
    *policy = (quire_page_policy){
        .page_size = cap(chunk > multiple ? chunk : multiple, sizes->max_alloc),
        .size_granularity = multiple,
        .extra_padding = sizes->extra_padding,
    };
    return QUIRE_SUCCESS;
}

/* The smallest request whose padded and rounded size exceeds max_chunk; 0 means every request. */
static uint64_t first_above(uint64_t max_chunk, uint64_t multiple, uint64_t padding)
{
    uint64_t max_padded = max_chunk - max_chunk % multiple;
    return max_padded > padding ? max_padded - padding + 1 : 0;
}

/*
 * A placed size above max_chunk gets a dedicated page. Other pages have init_alloc bytes first and
 * re_alloc bytes afterwards; if these are 0 max_chunk is used.
 */
static quire_result naive_best_fit(const quire_paddle_sizes *sizes, uint64_t multiple,
                                   quire_page_policy *policy)
{
    uint64_t padding = 0;
    if (sizes->chunk)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a chunk of %b is given: naive_best_fit has none", sizes->chunk);
    if (qi_add_overflows(sizes->extra_padding, PADDLE_DESCRIPTOR, &padding))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "%u byte%s of padding and %u of a descriptor exceed 64 bits",
                            sizes->extra_padding, PADDLE_DESCRIPTOR);
    *policy = (quire_page_policy){.size_granularity = multiple, .extra_padding = padding};
    policy->dedicated_threshold = first_above(sizes->max_chunk, multiple, padding);
    if (!policy->dedicated_threshold) {
        policy->dedicated = QUIRE_DEDICATED_ALWAYS;
        return QUIRE_SUCCESS;
    }
    uint64_t init = sizes->init_alloc ? sizes->init_alloc : sizes->max_chunk;
    uint64_t again = sizes->re_alloc ? sizes->re_alloc : sizes->max_chunk;
    policy->first_page_size = cap(init, sizes->max_alloc);
    policy->page_size = cap(again, sizes->max_alloc);
    policy->growth = QUIRE_GROWTH_LARGEST;
    return QUIRE_SUCCESS;
}

quire_result qi_policy_paddle(quire_paddle_strategy strategy, const quire_paddle_sizes *sizes,
                              quire_page_policy *policy)
{
    uint64_t multiple = sizes->min_chunk ? sizes->min_chunk : 1;
    switch (strategy) {
    case QUIRE_PADDLE_AUTO_GROWTH:
        return auto_growth(sizes, multiple, policy);
    case QUIRE_PADDLE_NAIVE_BEST_FIT:
        return naive_best_fit(sizes, multiple, policy);
    }
    return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT, "there is no strategy %u",
                        (uint64_t)strategy);
}
