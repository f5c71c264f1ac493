/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * elastic.h - elastic pages: a sparse buffer over addresses of which some chunks have memory.
 *
 * The core makes one call at a time for a page that changes its chunks, so that the record needs no
 * lock. Other threads read only the buffer of the page meanwhile.
 *
 * Each chunk is in one of four phases. A chunk has memory unless it is EMPTY; `leftovers` is the
 * number of chunks in that phase. Between calls no chunk is MADE.
 */
#ifndef QUIRE_BACKENDS_VULKAN_ELASTIC_H
#define QUIRE_BACKENDS_VULKAN_ELASTIC_H

#include "backends/vulkan/vulkan.h"

typedef enum qi_vulkan_phase {
    QI_VULKAN_EMPTY = 0,
    QI_VULKAN_MADE,     /* has memory that was never bound */
    QI_VULKAN_LEFTOVER, /* has memory that may be bound, and that no allocation uses */
    QI_VULKAN_BACKED    /* has memory that is bound and serves allocations */
} qi_vulkan_phase;

/* Maximum number of VkDeviceMemory that wait for another place of their page. */
enum { QI_VULKAN_MAX_MOVING = 64 };

struct qi_vulkan_elastic {
    quire_page_request chunk; /* describes the memory of one chunk */
    uint64_t count;           /* of chunks */
    VkDeviceMemory *memories; /* of each chunk */
    uint8_t *phases;          /* qi_vulkan_phase of each chunk */
    uint64_t leftovers;
    VkDeviceMemory moving[QI_VULKAN_MAX_MOVING];
    uint32_t moving_count;
    VkFence fence; /* of binds that could not be waited for; otherwise VK_NULL_HANDLE */
};

/* Fills in vulkan->elastic. The state has its settings. Fails if the driver refuses a sparse
   buffer. */
QUIRE_MUST_USE quire_result qi_vulkan_elastic_detect(qi_vulkan *vulkan);

/*
 * Creates the page of a request with a max_size. UNSUPPORTED if the request cannot be elastic. A
 * failure that leaves binds of unknown outcome leaves a page in the list of deferred ones.
 */
QUIRE_MUST_USE quire_result qi_vulkan_elastic_create(qi_vulkan *vulkan,
                                                     const quire_page_request *request,
                                                     quire_native_page *page);

/*
 * Destroys what an elastic page has beside its record: buffer, memory and chunks. Accepts a page
 * that is not elastic. Returns false and changes nothing if a bind is still running, unless the
 * device `is_idle`.
 */
bool qi_vulkan_elastic_destroy(qi_vulkan *vulkan, qi_vulkan_page *page, bool is_idle);

/* ---- entries of the backend table --------------------------------------------------------- */

/* Creates an elastic page, or one of one VkDeviceMemory (page.h). */
quire_result qi_vulkan_any_page_create(void *state, const quire_page_request *request,
                                       quire_native_page *page);
quire_result qi_vulkan_page_back(void *state, const quire_native_page *page,
                                 const quire_span *spans, uint32_t count);
void qi_vulkan_page_unback(void *state, const quire_native_page *page, const quire_span *spans,
                           uint32_t count, bool moves);

#endif
