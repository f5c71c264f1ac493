/*
 * copy.h - entries of the backend table: copies and fills that are complete on return.
 *
 * All of them use the device's queue and are UNSUPPORTED without one.
 */
#ifndef QUIRE_BACKENDS_VULKAN_COPY_H
#define QUIRE_BACKENDS_VULKAN_COPY_H

#include "quire/backend.h"

quire_result qi_vulkan_copy_pages(void *state, const quire_copy_job *job);
quire_result qi_vulkan_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size);
quire_result qi_vulkan_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size);
quire_result qi_vulkan_write_many(void *state, const quire_page_copy *copies, uint64_t count);
quire_result qi_vulkan_read_many(void *state, const quire_page_copy *copies, uint64_t count);
quire_result qi_vulkan_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value);

#endif
