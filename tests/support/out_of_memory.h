/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * out_of_memory.h - shared by the unit tests of exhausted memories: a small memory, and refusals
 * with a given message.
 */
#ifndef QUIRE_TESTS_SUPPORT_OUT_OF_MEMORY_H
#define QUIRE_TESTS_SUPPORT_OUT_OF_MEMORY_H

#include <stdio.h>

#include "tests/support/fixture.h"

enum { PAGE = 4096 };
#define KIB UINT64_C(1024)

static inline void make(fixture *f, uint32_t shards, quire_page_policy pages)
{
    fixture_make(f, &(quire_memory_options){.shards = shards, .pages = pages});
}

static inline void expect_refused(fixture *f, quire_allocation_options options, quire_result code,
                                  const char *words)
{
    quire_allocation none = {1};
    CHECK_FAILS(quire_allocate(f->memory, &options, &none), code);
    CHECK_EQ(none.id, 0);
    CHECK_HAS(quire_last_error(), words);
    CHECK_OK(quire_memory_check(f->memory));
}

#endif
