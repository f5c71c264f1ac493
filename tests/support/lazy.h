/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lazy.h - shared by the unit tests of what is written about a memory: one with two lazy
 * allocations, of which one has some memory and the other none.
 */
#ifndef QUIRE_TESTS_SUPPORT_LAZY_H
#define QUIRE_TESTS_SUPPORT_LAZY_H

#include "tests/support/fixture.h"

/* Bytes of a chunk, and of what the memory holds: three chunks and an allocation of a granule. */
enum { LAZY_CHUNK = 16384, LAZY_HELD = 3 * LAZY_CHUNK + 256 };

/* The memory has "cache/a", 8 chunks of which 3 have memory, "cache/b", 4 chunks without memory,
   and "plain", 100 bytes. */
static inline void lazy_begin(fixture *f)
{
    fixture_prepare(f);
    fake_offer_growth(&f->fake);
    fixture_open(f, &(quire_memory_options){.name = "one",
                                            .kind.mask = 1,
                                            .elastic = true,
                                            .address_space = 64 * LAZY_CHUNK,
                                            .pages = {.page_size = LAZY_CHUNK}});
    const quire_allocation first =
        ALLOCATE(f, .size = 8 * LAZY_CHUNK, .lazy = true, .name = "cache/a");
    const quire_view ranges[] = {{first, LAZY_CHUNK, LAZY_CHUNK}, {first, 6 * LAZY_CHUNK, 0}};
    ALLOCATE(f, .size = 4 * LAZY_CHUNK, .lazy = true, .name = "cache/b");
    ALLOCATE(f, .size = 100, .name = "plain");
    CHECK_OK(quire_back_range(f->memory, ranges, 2));
    CHECK_EQ(fixture_stats(f).live_bytes, LAZY_HELD);
}

#endif
