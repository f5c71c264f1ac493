/*
 * quire/preset.h - page policies that size their pages as other allocators do.
 *
 * A preset is plain data: a quire_page_policy filled in, to be looked at, changed and given to
 * quire_memory_create. It reproduces what a page is asked for with: the bytes placed for a request,
 * which requests get a page of their own, and the size of each page. It does not reproduce where a
 * range goes (that is the fit) nor when pages are given back: empty pages go when a page has to be
 * made, and what they counted for in growth goes with them. Where the backend has too little memory
 * smaller pages are tried as in every memory. docs/policies.md has the formulas and their sources.
 */
#ifndef QUIRE_PRESET_H
#define QUIRE_PRESET_H

#include "quire/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum quire_preset {
    /*
     * VulkanMemoryAllocator's default pools. The preferred size P is 256 MiB, or an eighth of a
     * heap of at most 1 GiB. Pages are P/8, P/4, P/2, P: the smallest that is above all there are
     * and holds the request twice. Requests above P/2 get a page of their own.
     * Not reproduced: a page of its own is neither tried in a shared page when it cannot be had nor
     * avoided near the device's most pages; smaller pages are tried more than three times.
     */
    QUIRE_PRESET_VMA = 0,
    /*
     * RMM's pool_memory_resource without a maximum: each page is as large as all pages before it
     * together, so that the pool doubles. Sizes are multiples of 256 bytes.
     * RMM takes the first size from its caller; here it is half the heap, as it was by default, and
     * first_page_size changes it (1: the first request).
     * Not reproduced: the first page comes with the first allocation; a maximum, with which RMM
     * grows by half of what is left.
     */
    QUIRE_PRESET_RMM,
    /*
     * PyTorch's CUDACachingAllocator with its default settings: pages of 2 MiB for requests up to
     * 1 MiB, of 20 MiB for those below 10 MiB, else the request, up to a multiple of 2 MiB. Sizes
     * are multiples of 512 bytes.
     * Not reproduced: PyTorch keeps requests up to 1 MiB in pages apart from others, and apart by
     * stream, and does not split off a rest of up to 1 MiB of a large page; here all share all
     * pages, so that fewer are made.
     */
    QUIRE_PRESET_PYTORCH
} quire_preset;

/*
 * Fills in the policy of a system for a memory kind of a device, whose heap and page granularity it
 * depends on. In a heap too small for the sizes of a system to differ once they are multiples of
 * the granularity, pages do not grow. Errors: INVALID_ARGUMENT. Thread-safety: safe.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_policy_preset(quire_preset preset,
                                                               const quire_device *device,
                                                               uint32_t kind,
                                                               quire_page_policy *policy);

/* PaddlePaddle's FLAGS_allocator_strategy. */
typedef enum quire_paddle_strategy {
    /*
     * size' = size + extra_padding, up to a multiple of min_chunk. A page is the larger of size'
     * and chunk, which is rounded up likewise.
     */
    QUIRE_PADDLE_AUTO_GROWTH = 0,
    /*
     * size' = size + 64 + extra_padding, up to a multiple of min_chunk: the 64 bytes are those of
     * Paddle's block descriptor. A size' above max_chunk gets a page of its own; else a page is the
     * larger of size' and init_alloc, and of size' and re_alloc beside other shared pages.
     */
    QUIRE_PADDLE_NAIVE_BEST_FIT
} quire_paddle_strategy;

/*
 * What a PaddlePaddle device says of sizes: the answers of the six size callbacks of its plugin, to
 * be handed on whatever the strategy, and one flag; bytes. A strategy uses those that stand in its
 * formula above, and max_alloc.
 */
typedef struct quire_paddle_sizes {
    uint64_t min_chunk;     /* any number; 0: 1, as for a plugin without the callback */
    uint64_t max_chunk;     /* 0: all get a page of their own, as several plugins want it */
    uint64_t max_alloc;     /* chunk, init_alloc and re_alloc are cut to it; 0: they are not, as in
                               Paddle, which asks for it and cuts nothing */
    uint64_t extra_padding; /* bytes behind each allocation */
    uint64_t init_alloc; /* 0: max_chunk, which builds of Paddle without CUDA and HIP always take */
    uint64_t re_alloc;   /* 0: likewise */
    uint64_t chunk;      /* FLAGS_auto_growth_chunk_size_in_mb in bytes; 0: min_chunk; must be 0
                               for NAIVE_BEST_FIT */
    uint64_t unused[4];  /* must be zero */
} quire_paddle_sizes;

/*
 * Fills in the policy of a strategy. Pages are made multiples of the device's page granularity
 * later, when a memory is made with the policy.
 * Errors: INVALID_ARGUMENT (also for sizes that cannot be counted once padded and rounded).
 * Thread-safety: safe.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_policy_paddle(quire_paddle_strategy strategy,
                                                               const quire_paddle_sizes *sizes,
                                                               quire_page_policy *policy);

#ifdef __cplusplus
}
#endif

#endif
