/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * page.h - pages: VkDeviceMemory, its mapping, and the buffer that covers it.
 */
#ifndef QUIRE_BACKENDS_VULKAN_PAGE_H
#define QUIRE_BACKENDS_VULKAN_PAGE_H

#include "backends/vulkan/vulkan.h"

/* ---- entries of the backend table --------------------------------------------------------- */

quire_result qi_vulkan_page_create(void *state, const quire_page_request *request,
                                   quire_native_page *page);
quire_result qi_vulkan_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_vulkan_page_unmap(void *state, const quire_native_page *page);
quire_result qi_vulkan_page_flush(void *state, const quire_native_page *page, uint64_t offset,
                                  uint64_t size);
quire_result qi_vulkan_page_invalidate(void *state, const quire_native_page *page, uint64_t offset,
                                       uint64_t size);
quire_result qi_vulkan_page_flush_many(void *state, const quire_page_range *ranges, uint32_t count);
quire_result qi_vulkan_page_invalidate_many(void *state, const quire_page_range *ranges,
                                            uint32_t count);

/* ---- pages -------------------------------------------------------------------------------- */

/* UNSUPPORTED if the kind needs a feature that the device was created without;
   OUT_OF_DEVICE_MEMORY if its heap is smaller than `size`. */
QUIRE_MUST_USE quire_result qi_vulkan_check_kind(const qi_vulkan *vulkan, uint32_t kind,
                                                 uint64_t size);

/* Allocates the VkDeviceMemory that a request describes, of exactly request->size bytes, and counts
   it. *memory is VK_NULL_HANDLE on failure. */
QUIRE_MUST_USE quire_result qi_vulkan_memory_make(qi_vulkan *vulkan,
                                                  const quire_page_request *request,
                                                  VkDeviceMemory *memory);

/* Frees it, also if it is mapped. */
void qi_vulkan_memory_free(qi_vulkan *vulkan, VkDeviceMemory memory);

/* Destroys a page and its buffer immediately. The device must not use them any more, and an elastic
   page has been destroyed by qi_vulkan_elastic_destroy. */
void qi_vulkan_page_destroy_now(qi_vulkan *vulkan, qi_vulkan_page *page);

/*
 * Returns the buffer that covers a page and creates it on the first call. Thread-safe, without a
 * lock. UNSUPPORTED if no buffer can cover the page.
 */
QUIRE_MUST_USE quire_result qi_vulkan_page_buffer(qi_vulkan *vulkan, const quire_native_page *page,
                                                  VkBuffer *buffer);

/*
 * Like qi_vulkan_page_buffer, for a copy or fill that needs one transfer usage of the buffer.
 * UNSUPPORTED also if the page is dedicated to a buffer without this usage.
 */
QUIRE_MUST_USE quire_result qi_vulkan_copy_buffer(qi_vulkan *vulkan, const quire_native_page *page,
                                                  VkBufferUsageFlags usage, VkBuffer *buffer);

/* ---- an entry of the backend table in range.c --------------------------------------------- */

/* Returns the device address of a buffer, or of the page if `buffer` is 0. 0: it has none. */
uint64_t qi_vulkan_device_address(void *state, const quire_native_page *page, uint64_t buffer);

#endif
