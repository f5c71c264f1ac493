/*
 * preset.c - the page policies of other allocators, as data (see quire/preset.h). docs/policies.md
 * gives the source of each number. Pure functions of their arguments; no lock.
 */
#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/policy.h"

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
 * re_alloc bytes afterwards; where these are 0 max_chunk is used.
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
