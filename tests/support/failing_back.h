/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * failing_back.h - a fake backend of which one page_back in 16 fails (failing_call.h).
 */
#ifndef QUIRE_TESTS_SUPPORT_FAILING_BACK_H
#define QUIRE_TESTS_SUPPORT_FAILING_BACK_H

#include "tests/support/failing_call.h"

static quire_result (*real_back)(void *, const quire_native_page *, const quire_span *, uint32_t);

static quire_result failing_back(void *state, const quire_native_page *page,
                                 const quire_span *spans, uint32_t count)
{
    quire_result result = fail_now_and_then();
    return result ? result : real_back(state, page, spans, count);
}

#endif
