/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memories.c - selects memories: see memory.h.
 */
#include "bench/memory.h"

roster memories_of(const memory_bench *b, unsigned sharing)
{
    roster all = subjects_chosen(&b->subjects, &b->wanted_subjects, &b->unwanted_subjects);
    roster out = {.count = 0};
    for (size_t i = 0; i < all.count; i++)
        if (sharing & 1u << how_of(all.items[i])->sharing)
            out.items[out.count++] = all.items[i];
    return out;
}

roster plain_memories_of(const memory_bench *b, unsigned sharing)
{
    roster all = memories_of(b, sharing), out = {.count = 0};
    for (size_t i = 0; i < all.count; i++)
        if (!how_of(all.items[i])->strategy)
            out.items[out.count++] = all.items[i];
    return out;
}
