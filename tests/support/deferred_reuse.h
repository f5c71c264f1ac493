/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * deferred_reuse.h - shared by the unit tests of allocations on streams, beside deferred_free.h.
 */
#ifndef QUIRE_TESTS_SUPPORT_DEFERRED_REUSE_H
#define QUIRE_TESTS_SUPPORT_DEFERRED_REUSE_H

#define BENCH_PAGES                                                                                \
    {                                                                                              \
        .page_size = PAGE, .dedicated_threshold = PAGE                                             \
    }

#include "tests/support/deferred_free.h"
#include "tests/support/on_stream.h"

static inline quire_allocation allocate_on(bench *w, const quire_allocation_options *options,
                                           quire_stream *stream)
{
    quire_allocation allocation;
    CHECK_OK(allocate_on_stream(w->f.memory, options, stream, &allocation));
    CHECK_OK(quire_memory_check(w->f.memory));
    return allocation;
}

#define ON(w, stream, ...) allocate_on((w), &(quire_allocation_options){__VA_ARGS__}, (stream))

/* Page and offset in one number. */
static inline uint64_t place_at(bench *w, quire_allocation allocation)
{
    quire_allocation_info info = fixture_info(&w->f, allocation);
    return (uint64_t)info.page * PAGE * 16 + info.offset;
}

#endif
