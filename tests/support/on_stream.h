/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * on_stream.h - quire_allocate and quire_copy with a stream that is not in the options.
 */
#ifndef QUIRE_TESTS_SUPPORT_ON_STREAM_H
#define QUIRE_TESTS_SUPPORT_ON_STREAM_H

#include "quire/quire.h"

/* Allocates with a copy of the options that has the stream. */
QUIRE_MUST_USE static inline quire_result allocate_on_stream(
    quire_memory *memory, const quire_allocation_options *options, quire_stream *stream,
    quire_allocation *allocation)
{
    quire_allocation_options on = options ? *options : (quire_allocation_options){0};
    on.stream = stream;
    return quire_allocate(memory, options ? &on : NULL, allocation);
}

/* Copies with a copy of the options that has the stream. */
QUIRE_MUST_USE static inline quire_result copy_on_stream(quire_stream *stream,
                                                         const quire_copy_options *options,
                                                         quire_point *done)
{
    quire_copy_options on = options ? *options : (quire_copy_options){0};
    on.stream = stream;
    return quire_copy(options ? &on : NULL, done);
}

#endif
