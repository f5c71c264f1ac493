/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * broken_bytes.c - see broken_bytes.h.
 */
#include "tests/contract/broken_bytes.h"

#include <time.h>

/* ---- mappings ----------------------------------------------------------------------------- */

static quire_result broken_map(void *state, const quire_native_page *page, void **pointer)
{
    broken_backend *b = state;
    quire_result result = b->wrap.base->map(b->wrap.state, page, pointer);
    if (result)
        return result;
    if (b->thing == BROKEN_SHIFTED_MAP)
        *pointer = (char *)*pointer + 64;
    if (b->thing == BROKEN_OTHER_MAP && page->size <= BROKEN_OTHER_SIZE)
        *pointer = b->other;
    if (b->thing == BROKEN_NULL_MAP)
        *pointer = NULL;
    return QUIRE_SUCCESS;
}

static quire_result broken_flush(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size)
{
    broken_backend *b = state;
    const quire_backend *base = b->wrap.base;
    bool at_end = offset + size == page->size;
    switch (b->thing) {
    case BROKEN_LOST_FLUSH:
        return QUIRE_SUCCESS;
    case BROKEN_SHORT_FLUSH:
        return size > b->atom
                   ? base->flush(b->wrap.state, page, offset, (size - 1) / b->atom * b->atom)
                   : QUIRE_SUCCESS;
    case BROKEN_WIDE_FLUSH:
        return base->flush(b->wrap.state, page, offset,
                           page->size - offset < size + b->atom ? size : size + b->atom);
    case BROKEN_FLUSH_REFUSED:
        return at_end ? quire_backend_fail(QUIRE_ERROR_INVALID_ARGUMENT, 0, "the page's end")
                      : base->flush(b->wrap.state, page, offset, size);
    default:
        return base->flush(b->wrap.state, page, offset, size);
    }
}

static quire_result broken_invalidate(void *state, const quire_native_page *page, uint64_t offset,
                                      uint64_t size)
{
    const broken_backend *b = state;
    if (b->thing == BROKEN_LOST_INVALIDATE)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_LATE_INVALIDATE) {
        offset += b->atom;
        if (size <= b->atom)
            return QUIRE_SUCCESS;
        size -= b->atom;
    }
    return b->wrap.base->invalidate(b->wrap.state, page, offset, size);
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Larger than every copy of the scenarios. */
enum { ROOM = 16384 };

static quire_result refuse_copy(void)
{
    return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0, "there is no copy");
}

static quire_result copy_in_a_race(const broken_backend *b, const quire_native_page *page,
                                   uint64_t offset, const void *data, uint64_t size)
{
    memcpy(b->other, data, size);
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    return b->wrap.base->copy_to_page(b->wrap.state, page, offset, b->other, size);
}

static quire_result broken_copy_to(void *state, const quire_native_page *page, uint64_t offset,
                                   const void *data, uint64_t size)
{
    const broken_backend *b = state;
    const quire_backend *base = b->wrap.base;
    const char more = 'x';
    bool has_room = offset + size < page->size;
    if (b->thing == BROKEN_COPY_UNSUPPORTED)
        return refuse_copy();
    if (b->thing == BROKEN_COPY_RACE && size <= 4096)
        return copy_in_a_race(b, page, offset, data, size);
    if (b->thing == BROKEN_NO_LARGE_COPY && size > 4096)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_COPY_TO_SHORT && !--size)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_COPY_TO_LATE)
        offset += has_room;
    if (b->thing == BROKEN_COPY_TO_LONG && has_room)
        (void)base->copy_to_page(b->wrap.state, page, offset + size, &more, 1);
    return base->copy_to_page(b->wrap.state, page, offset, data, size);
}

static quire_result broken_copy_from(void *state, const quire_native_page *page, uint64_t offset,
                                     void *data, uint64_t size)
{
    const broken_backend *b = state;
    bool has_room = offset + size < page->size;
    if (b->thing == BROKEN_COPY_UNSUPPORTED)
        return refuse_copy();
    if (b->thing == BROKEN_COPY_FROM_SHORT && !--size)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_COPY_FROM_EARLY)
        offset -= offset > 0;
    if (b->thing == BROKEN_COPY_FROM_LONG && size < 4096) /* only if the tests leave room for it */
        size += has_room;
    return b->wrap.base->copy_from_page(b->wrap.state, page, offset, data, size);
}

static quire_result broken_copy_pages(void *state, const quire_copy_job *job)
{
    const broken_backend *b = state;
    quire_copy_job other = *job;
    bool both = job->to && job->from;
    bool has_gap = job->rows == 1 || (job->to_row > job->size && job->from_row > job->size);
    if (b->thing == BROKEN_PAGES_LOST)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_PAGES_SHORT && !--other.size)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_PAGES_LONG && both && has_gap && job->to_offset + ROOM < job->to->size &&
        job->from_offset + ROOM < job->from->size)
        other.size++;
    if (b->thing == BROKEN_PAGES_PITCH)
        other.from_row = job->from_row < job->to_row ? job->from_row : job->to_row;
    if (b->thing == BROKEN_PAGES_ONE_SLICE)
        other.slices = 1;
    return wrap_copy_pages(state, &other);
}

static quire_result broken_fill(void *state, const quire_native_page *page, uint64_t offset,
                                uint64_t size, uint8_t value)
{
    const broken_backend *b = state;
    if (b->thing == BROKEN_FILL_ZERO)
        value = 0;
    if (b->thing == BROKEN_FILL_LONG)
        size += offset + size < page->size;
    if (b->thing == BROKEN_FILL_SHORT) {
        offset++;
        if (!--size)
            return QUIRE_SUCCESS;
    }
    return b->wrap.base->fill_page(b->wrap.state, page, offset, size, value);
}

/* ---- backing ------------------------------------------------------------------------------ */

/* Moves the first bytes of a page by one. */
static void move_bytes(broken_backend *b, const quire_native_page *page)
{
    const quire_backend *base = b->wrap.base;
    (void)base->copy_from_page(b->wrap.state, page, 0, b->other, ROOM);
    (void)base->copy_to_page(b->wrap.state, page, 1, b->other, ROOM);
}

static quire_result broken_back(void *state, const quire_native_page *page, const quire_span *spans,
                                uint32_t count)
{
    broken_backend *b = state;
    if (b->thing == BROKEN_BACK_NOTHING)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_BACK_ONE)
        count = 1;
    quire_result result = wrap_page_back(state, page, spans, count);
    if (b->thing == BROKEN_BACK_CODE && result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY)
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0, "the heap is full");
    if (b->thing == BROKEN_BACK_LOST && !result)
        (void)b->wrap.base->fill_page(b->wrap.state, page, 0, 1, 0);
    if (b->thing == BROKEN_BACK_MOVED && !result)
        move_bytes(b, page);
    return result;
}

static void broken_unback(void *state, const quire_native_page *page, const quire_span *spans,
                          uint32_t count, bool moves)
{
    broken_backend *b = state;
    if (b->thing == BROKEN_UNBACK_NOTHING)
        return;
    wrap_page_unback(state, page, spans, count, moves);
    if (b->thing == BROKEN_UNBACK_LOST)
        (void)b->wrap.base->fill_page(b->wrap.state, page, 0, 1, 0);
}

void broken_bytes_replace(quire_backend *table)
{
    if (table->copy_pages)
        table->copy_pages = broken_copy_pages;
    if (table->fill_page)
        table->fill_page = broken_fill;
    if (table->page_back) {
        table->page_back = broken_back;
        table->page_unback = broken_unback;
    }
    table->map = broken_map;
    table->flush = broken_flush;
    table->invalidate = broken_invalidate;
    table->copy_to_page = broken_copy_to;
    table->copy_from_page = broken_copy_from;
}
