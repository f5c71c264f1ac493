/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * broken_streams.c - see broken_streams.h.
 */
#include "tests/contract/broken_streams.h"

static void broken_destroy(void *state, uint64_t stream)
{
    const broken_backend *b = state;
    if (b->thing != BROKEN_STREAM_KEPT)
        b->wrap.base->stream_destroy(b->wrap.state, stream);
}

static quire_result broken_mark(void *state, uint64_t stream, uint64_t *value)
{
    static _Atomic uint64_t marks;
    const broken_backend *b = state;
    quire_result result = b->wrap.base->stream_mark(b->wrap.state, stream, value);
    if (b->thing == BROKEN_MARK_FALLS && !result && ++marks % 7 == 0 && *value > 1)
        *value = 1;
    if (b->thing == BROKEN_MARK_ZERO)
        *value = 0;
    if (b->thing == BROKEN_MARK_EARLY && *value > 1)
        --*value;
    return result;
}

static quire_result broken_passed(void *state, uint64_t stream, uint64_t *value)
{
    const broken_backend *b = state;
    quire_result result = b->wrap.base->stream_passed(b->wrap.state, stream, value);
    if (b->thing == BROKEN_PASSED_EARLY)
        *value += 1000;
    if (b->thing == BROKEN_PASSED_NEVER)
        *value = 0;
    return result;
}

static quire_result broken_await(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                                 bool *has_passed)
{
    const broken_backend *b = state;
    bool gives_up = b->thing == BROKEN_AWAIT_GIVES_UP && nanoseconds == UINT64_MAX;
    *has_passed = true;
    if (b->thing == BROKEN_AWAIT_LIES)
        return QUIRE_SUCCESS;
    quire_result result = b->wrap.base->stream_await(b->wrap.state, stream, value,
                                                     gives_up ? 0 : nanoseconds, has_passed);
    if (b->thing != BROKEN_AWAIT_AHEAD || result != QUIRE_ERROR_INVALID_ARGUMENT)
        return result;
    *has_passed = true;
    return QUIRE_SUCCESS;
}

static quire_result broken_order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    const broken_backend *b = state;
    if (b->thing == BROKEN_ORDER_LOST)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_ORDER_REFUSED)
        return quire_backend_fail(QUIRE_ERROR_BACKEND_FAILURE, 0, "no order");
    return b->wrap.base->stream_order(b->wrap.state, later, earlier, value);
}

static quire_result broken_copy(void *state, uint64_t stream, const quire_copy_job *job)
{
    const broken_backend *b = state;
    quire_copy_job other = *job;
    bool is_with_host = !job->to || !job->from;
    if (b->thing == BROKEN_STREAM_COPY_LOST)
        return QUIRE_SUCCESS;
    if (b->thing == BROKEN_STREAM_HOST_SHORT && is_with_host)
        other.size--;
    if (b->thing == BROKEN_STREAM_ONE_ROW)
        other.rows = 1;
    return wrap_stream_copy(state, stream, &other);
}

static quire_result broken_fill(void *state, uint64_t stream, const quire_native_page *page,
                                uint64_t offset, uint64_t size, uint8_t value)
{
    const broken_backend *b = state;
    if (b->thing == BROKEN_STREAM_FILL_NOW && b->wrap.base->fill_page)
        return b->wrap.base->fill_page(b->wrap.state, page, offset, size, value);
    if (b->thing == BROKEN_STREAM_FILL_SHORT && !--size)
        return QUIRE_SUCCESS;
    return b->wrap.base->stream_fill(b->wrap.state, stream, page, offset, size, value);
}

void broken_streams_replace(quire_backend *table)
{
    if (table->stream_create) {
        table->stream_destroy = broken_destroy;
        table->stream_mark = broken_mark;
        table->stream_passed = broken_passed;
        table->stream_await = broken_await;
    }
    if (table->stream_order)
        table->stream_order = broken_order;
    if (table->stream_copy)
        table->stream_copy = broken_copy;
    if (table->stream_fill)
        table->stream_fill = broken_fill;
}
