/*
 * preset.c - see quire/preset.h: the page policies of other allocators, as data. Where the figures
 * come from is said in docs/policies.md. Pure functions of their arguments, no lock.
 */
#include "quire/preset.h"

#include "src/base/bits.h"
#include "src/base/result.h"
#include "src/core/device/policy.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* ---- systems that look at the heap -------------------------------------------------------- */

/* Growth that comes to nothing once all is rounded would be refused as a contradiction. */
static void drop_idle_growth(quire_page_policy *policy, const quire_device *device, uint32_t kind)
{
    quire_page_policy resolved = qi_policy_resolve(policy, device, kind);
    if (resolved.first_page_size < resolved.max_page)
        return;
    policy->growth_percent = 0;
    policy->growth = QUIRE_GROWTH_LAST;
    policy->request_factor = 0;
}

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

quire_result quire_page_policy_preset(quire_preset preset, const quire_device *device,
                                      uint32_t kind, quire_page_policy *policy)
{
    if (policy)
        *policy = (quire_page_policy){0};
    if (!device || !policy)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_page_policy_preset: device or policy is null");
    if (device->is_disabled)
        return qi_refuse_disabled();
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

enum { PADDLE_DESCRIPTOR = 64 }; /* bytes of memory::detail::MemoryBlock::Desc, before each block */

static uint64_t cut(uint64_t size, uint64_t most)
{
    return most && size > most ? most : size;
}

static quire_result auto_growth(const quire_paddle_sizes *sizes, uint64_t multiple,
                                quire_page_policy *policy)
{
    uint64_t over = sizes->chunk % multiple, chunk = 0;
    if (qi_add_overflows(sizes->chunk, over ? multiple - over : 0, &chunk))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a chunk of %u bytes cannot be rounded up to a multiple of %u",
                            sizes->chunk, multiple);
    *policy = (quire_page_policy){
        .page_size = cut(chunk > multiple ? chunk : multiple, sizes->max_alloc),
        .size_granularity = multiple,
        .extra_padding = sizes->extra_padding,
    };
    return QUIRE_SUCCESS;
}

/* The smallest request whose padded and rounded size is above max_chunk; 0: every one. */
static uint64_t first_above(uint64_t max_chunk, uint64_t multiple, uint64_t padding)
{
    uint64_t max_padded = max_chunk - max_chunk % multiple;
    return max_padded > padding ? max_padded - padding + 1 : 0;
}

static quire_result naive_best_fit(const quire_paddle_sizes *sizes, uint64_t multiple,
                                   quire_page_policy *policy)
{
    uint64_t padding = 0;
    if (sizes->chunk)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "a chunk of %b is given: naive_best_fit has none", sizes->chunk);
    if (qi_add_overflows(sizes->extra_padding, PADDLE_DESCRIPTOR, &padding))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "%u bytes of padding cannot be counted with %u of a descriptor",
                            sizes->extra_padding, PADDLE_DESCRIPTOR);
    *policy = (quire_page_policy){.size_granularity = multiple, .extra_padding = padding};
    policy->dedicated_threshold = first_above(sizes->max_chunk, multiple, padding);
    if (!policy->dedicated_threshold) {
        policy->dedicated = QUIRE_DEDICATED_ALWAYS;
        return QUIRE_SUCCESS;
    }
    uint64_t init = sizes->init_alloc ? sizes->init_alloc : sizes->max_chunk;
    uint64_t again = sizes->re_alloc ? sizes->re_alloc : sizes->max_chunk;
    policy->first_page_size = cut(init, sizes->max_alloc);
    policy->page_size = cut(again, sizes->max_alloc);
    policy->growth = QUIRE_GROWTH_LARGEST;
    return QUIRE_SUCCESS;
}

quire_result quire_page_policy_paddle(quire_paddle_strategy strategy,
                                      const quire_paddle_sizes *sizes, quire_page_policy *policy)
{
    if (policy)
        *policy = (quire_page_policy){0};
    if (!sizes || !policy)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT,
                       "quire_page_policy_paddle: sizes or policy is null");
    quire_result result = qi_check_unused(sizes, "quire_paddle_sizes");
    if (result)
        return result;
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
