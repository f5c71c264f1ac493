/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.h - the bytes of a copy between pages and host memory as spans, the commands that copy them
 * through staging memory, and copies and fills that are complete on return.
 */
#ifndef QUIRE_BACKENDS_VULKAN_COPY_H
#define QUIRE_BACKENDS_VULKAN_COPY_H

#include "backends/vulkan/staging.h"
#include "quire/backend.h"

/* ---- spans -------------------------------------------------------------------------------- */

/*
 * A span is a run of bytes without a gap at either end. It comes from a job of rows or from a list,
 * in order, and is cut where the staging memory ends. In the staging memory the spans lie one after
 * the other. The functions take no lock: a position belongs to the calling thread, and the staging
 * memory and the command buffer are protected by their owner.
 */

/* A position in a copy. A copy of the record remembers the position. */
typedef struct qi_vulkan_spans {
    bool is_write;             /* from host memory to the pages; otherwise back */
    const quire_copy_job *job; /* one end is host memory; NULL: the list */
    const quire_page_copy *list;
    uint64_t count;
    uint64_t slice, row, item, byte;    /* the first byte that is left */
    const quire_native_page *last_page; /* the page of the last span, and the buffer over it */
    VkBuffer last_buffer;
} qi_vulkan_spans;

/* Return the first position of a job or a list. */
qi_vulkan_spans qi_vulkan_spans_of_job(const quire_copy_job *job);
qi_vulkan_spans qi_vulkan_spans_of_list(const quire_page_copy *list, uint64_t count, bool is_write);

/* Creates the buffers over all pages of the copy. Called before the first span is recorded, so that
   a page without a buffer is refused before a byte is copied. */
QUIRE_MUST_USE quire_result qi_vulkan_spans_prepare(qi_vulkan *vulkan,
                                                    const qi_vulkan_spans *spans);

static inline bool qi_vulkan_spans_are_done(const qi_vulkan_spans *spans)
{
    return spans->job ? spans->slice == spans->job->slices : spans->item == spans->count;
}

/* Returns the bytes that are left, or `most` if there are more. */
uint64_t qi_vulkan_spans_left(const qi_vulkan_spans *spans, uint64_t most);

/* Bytes of staging memory: a part of it for one submission. */
typedef struct qi_vulkan_part {
    const qi_vulkan_staging_memory *memory;
    uint64_t begin, room;
} qi_vulkan_part;

/*
 * Records copies of the next spans between the part and the pages, as many as fit, and moves the
 * position on. Of a write it copies the bytes of the host into the part. Spans of a write that
 * share bytes are written in order.
 */
QUIRE_MUST_USE quire_result qi_vulkan_spans_record(qi_vulkan *vulkan, VkCommandBuffer commands,
                                                   const qi_vulkan_part *part,
                                                   qi_vulkan_spans *spans);

/* ---- entries of the backend table: copies and fills --------------------------------------- */

/* vkCmdFillBuffer needs offsets and sizes that are multiples of 4. */
enum { QI_VULKAN_FILL_WORD = 4 };

/* All of them use the device's queue and are UNSUPPORTED without one. They are complete on
   return. */
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
