/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * failing_back.h - a fake backend of which one page_back in 16 fails, for tests with threads: half
 * of these as out of memory, half as an error of the backend.
 */
#ifndef QUIRE_TESTS_SUPPORT_FAILING_BACK_H
#define QUIRE_TESTS_SUPPORT_FAILING_BACK_H

#include <stdatomic.h>

#include "tests/support/fake.h"

static quire_result (*real_back)(void *, const quire_native_page *, const quire_span *, uint32_t);
static atomic_uint_fast64_t backs, failed_backs;

static quire_result failing_back(void *state, const quire_native_page *page,
                                 const quire_span *spans, uint32_t count)
{
    const uint64_t number = atomic_fetch_add(&backs, 1);
    if (number % 16 != 15)
        return real_back(state, page, spans, count);
    atomic_fetch_add(&failed_backs, 1);
    return quire_backend_fail(number % 32 == 31 ? QUIRE_ERROR_BACKEND_FAILURE
                                                : QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                              -9, "a call that fails");
}

#endif
