/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * selection.c - selects the subjects of bench_space that a part measures: see bench.h.
 */
#include "bench/bench.h"
#include "bench/vma.h"

roster roster_of(const bench *b, unsigned kinds)
{
    roster all = subjects_chosen(&b->subjects, &b->wanted_subjects, &b->unwanted_subjects);
    roster out = {.count = 0};
    for (size_t i = 0; i < all.count; i++)
        if (kinds & 1u << all.items[i]->kind && (kinds & TAKE_BATCHES || !all.items[i]->free_batch))
            out.items[out.count++] = all.items[i];
    return out;
}

const subject *yardstick(const bench *b)
{
    roster all = roster_of(b, TAKE_PEERS);
    for (size_t i = 0; i < all.count; i++)
        if (all.items[i] == &VMA_BLOCKS[0])
            return all.items[i];
    return NULL;
}
