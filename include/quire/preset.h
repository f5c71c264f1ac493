/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/preset.h - page policies that size pages as other allocators do.
 *
 * A preset is plain data: it fills in a quire_page_policy, which the caller may inspect, change and
 * pass to quire_memory_create. It reproduces three things: the bytes placed for a request, which
 * requests get a dedicated page, and the size of each page. It does not reproduce where a range is
 * placed (that is the fit) nor when pages are released: a memory releases empty pages when it has
 * to create a page, and the released pages no longer count for growth. As in every memory, smaller
 * pages are tried if the backend is out of memory. docs/policies.md has the formulas and their
 * sources.
 *
 * Thread-safety: safe.
 */
#ifndef QUIRE_PRESET_H
#define QUIRE_PRESET_H

#include "quire/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum quire_preset {
    /*
     * VulkanMemoryAllocator's default pools. The preferred size P is 256 MiB, or an eighth of the
     * heap if the heap has at most 1 GiB. Page sizes are P/8, P/4, P/2 and P: the smallest that is
     * above all live pages and at least twice the request. Requests above P/2 get a dedicated page.
     * Not reproduced: VMA tries a shared page if a dedicated one fails, avoids dedicated pages near
     * the device's maximum number of pages, and tries at most three smaller page sizes.
     */
    QUIRE_PRESET_VMA = 0,
    /*
     * RMM's pool_memory_resource without a maximum size. Each page is as large as all pages before
     * it together, so that the pool doubles. Sizes are multiples of 256 bytes. RMM's caller gives
     * the first size; the preset uses half of the heap, which was RMM's default. Set
     * first_page_size to change it (1: the size of the first request).
     * Not reproduced: RMM creates its first page before the first allocation, and with a maximum it
     * grows by half of what is left.
     */
    QUIRE_PRESET_RMM,
    /*
     * PyTorch's CUDACachingAllocator with default settings. Pages have 2 MiB for requests up to
     * 1 MiB, 20 MiB for requests below 10 MiB, and otherwise the size of the request rounded up to
     * a multiple of 2 MiB. Sizes are multiples of 512 bytes.
     * Not reproduced: PyTorch separates requests up to 1 MiB from others, separates streams, and
     * does not split off a remainder of up to 1 MiB from a large page. Here all requests share all
     * pages, so that fewer pages are created.
     */
    QUIRE_PRESET_PYTORCH
} quire_preset;

/*
 * Fills in the policy of a preset for a memory kind of a device: it depends on the heap and the
 * page granularity. If the heap is so small that all page sizes are equal once they are rounded to
 * the granularity, the pages do not grow. Errors: INVALID_ARGUMENT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_policy_preset(quire_preset preset,
                                                               const quire_device *device,
                                                               uint32_t kind,
                                                               quire_page_policy *policy);

/* The values of PaddlePaddle's FLAGS_allocator_strategy. */
typedef enum quire_paddle_strategy {
    /*
     * size' is size + extra_padding, rounded up to a multiple of min_chunk. A page has the larger
     * of size' and chunk, which is rounded up likewise.
     */
    QUIRE_PADDLE_AUTO_GROWTH = 0,
    /*
     * size' is size + 64 + extra_padding, rounded up to a multiple of min_chunk; 64 bytes is the
     * size of Paddle's block descriptor. A size' above max_chunk gets a dedicated page. Otherwise a
     * shared page has the larger of size' and init_alloc if it is the only shared page, and the
     * larger of size' and re_alloc beside others.
     */
    QUIRE_PADDLE_NAIVE_BEST_FIT
} quire_paddle_strategy;

/*
 * The sizes that a PaddlePaddle device reports, in bytes: the results of the six size callbacks of
 * its plugin, and one flag. Set all of them for either strategy. A strategy uses those in its
 * formula, and max_alloc.
 */
typedef struct quire_paddle_sizes {
    uint64_t min_chunk;     /* any number; 0: 1, as for a plugin without the callback */
    uint64_t max_chunk;     /* 0: every request gets a dedicated page, as several plugins want */
    uint64_t max_alloc;     /* chunk, init_alloc and re_alloc are limited to it; 0: no limit, as in
                               Paddle, which queries it and limits nothing */
    uint64_t extra_padding; /* added at the end of each allocation */
    uint64_t init_alloc;    /* 0: max_chunk, which Paddle uses always if built without CUDA and
                               HIP */
    uint64_t re_alloc;      /* 0: likewise */
    uint64_t chunk;         /* FLAGS_auto_growth_chunk_size_in_mb in bytes; 0: min_chunk; must be 0
                               for NAIVE_BEST_FIT */
    uint64_t unused[4];     /* must be zero */
} quire_paddle_sizes;

/*
 * Fills in the policy of a strategy. quire_memory_create later rounds the page sizes up to the page
 * granularity of the device. Errors: INVALID_ARGUMENT (also if a padded or rounded size exceeds 64
 * bits).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_page_policy_paddle(quire_paddle_strategy strategy,
                                                               const quire_paddle_sizes *sizes,
                                                               quire_page_policy *policy);

#ifdef __cplusplus
}
#endif

#endif
