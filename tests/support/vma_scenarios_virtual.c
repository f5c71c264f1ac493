/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_scenarios_virtual.c - virtual blocks with an algorithm that determines every offset: the
 * strategy MIN_OFFSET, and the linear algorithm. The requests are random, with a constant seed.
 * Alignment is 1 if quire leaves its gap to the allocation after it and VMA uses the gap.
 */
#include "tests/support/random.h"
#include "tests/support/vma_scenarios.h"

#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 4000, MAX_LIVE = 100, LARGEST = 60 };

typedef struct world {
    VmaVirtualBlock block;
    VmaVirtualAllocation live[MAX_LIVE]; /* the oldest first */
    uint32_t count;
    test_random random;
} world;

/* How a block is used. */
typedef struct use {
    const char *name;
    VkDeviceSize unit; /* of the sizes */
    VkFlags block, allocation;
    bool is_aligned, has_upper;
    bool from_newest, from_oldest; /* which allocation is freed; neither: a random one */
} use;

static const use USES[] = {
    {"lowest", 1, 0, VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT, true, false, false,
     false},
    {"lowest of terabytes", (UINT64_C(1) << 30) + 1, 0,
     VMA_VIRTUAL_ALLOCATION_CREATE_STRATEGY_MIN_OFFSET_BIT, false, false, false, false},
    {"stack", 1, VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT, 0, true, false, true, false},
    {"ring", 1, VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT, 0, false, false, false, true},
    {"double stack", 1, VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT, 0, true, true, true, false},
    {"linear", 1, VMA_VIRTUAL_BLOCK_CREATE_LINEAR_ALGORITHM_BIT, 0, false, false, false, false},
};

static void note_statistics(const world *w, vma_notes *notes)
{
    VmaStatistics plain;
    VmaDetailedStatistics s;
    vmaGetVirtualBlockStatistics(w->block, &plain);
    vmaCalculateVirtualBlockStatistics(w->block, &s);
    NOTE("blockCount", plain.blockCount);
    NOTE("blockBytes", plain.blockBytes);
    NOTE("allocationCount", plain.allocationCount);
    NOTE("allocationBytes", plain.allocationBytes);
    NOTE("detailed allocationBytes", s.statistics.allocationBytes);
    NOTE("allocationSizeMin", s.allocationSizeMin);
    NOTE("allocationSizeMax", s.allocationSizeMax);
    NOTE("unusedRangeCount", s.unusedRangeCount);
    NOTE("unusedRangeSizeMin", s.unusedRangeSizeMin);
    NOTE("unusedRangeSizeMax", s.unusedRangeSizeMax);
    NOTE("empty", vmaIsVirtualBlockEmpty(w->block));
}

/* The characters of the description that are no white space, as one number. VMA's linear blocks
   miss allocations in it unless they are stacks. */
static void note_description(const world *w, const use *u, vma_notes *notes)
{
    char *text;
    uint64_t sum = 0, count = 0;
    if (u->block && !u->from_newest)
        return;
    vmaBuildVirtualBlockStatsString(w->block, &text, VK_TRUE);
    for (const char *c = text; *c; c++)
        if (*c > ' ') {
            sum = sum * 31 + (unsigned char)*c;
            count++;
        }
    vmaFreeVirtualBlockStatsString(w->block, text);
    NOTE("description", sum);
    NOTE("length of the description", count);
}

static void allocate(world *w, const use *u, vma_notes *notes)
{
    bool upper = u->has_upper && random_below(&w->random, 2);
    const VmaVirtualAllocationCreateInfo info = {
        .size = random_size(&w->random, LARGEST) * u->unit,
        .alignment = u->is_aligned ? UINT64_C(1) << random_below(&w->random, 6) : 0,
        .flags = u->allocation | (upper ? VMA_VIRTUAL_ALLOCATION_CREATE_UPPER_ADDRESS_BIT : 0u),
        .pUserData = (void *)(uintptr_t)(w->count % 3 + 1)};
    VkDeviceSize offset = 0;
    VmaVirtualAllocationInfo seen;
    NOTE("result", vmaVirtualAllocate(w->block, &info, &w->live[w->count], &offset));
    NOTE("offset", offset);
    NOTE("is null", !w->live[w->count]);
    if (!w->live[w->count])
        return;
    vmaGetVirtualAllocationInfo(w->block, w->live[w->count], &seen);
    NOTE("info offset", seen.offset);
    NOTE("info size", seen.size);
    NOTE("has user data", seen.pUserData == info.pUserData);
    w->count++;
}

static void release(world *w, const use *u)
{
    uint32_t index = (uint32_t)random_below(&w->random, w->count);
    if (u->from_newest)
        index = w->count - 1;
    if (u->from_oldest)
        index = 0;
    vmaVirtualFree(w->block, w->live[index]);
    w->count--;
    for (uint32_t i = index; i < w->count; i++)
        w->live[i] = w->live[i + 1];
}

static void play(const use *u, vma_notes *notes)
{
    world w = {.random.state = 1};
    const VmaVirtualBlockCreateInfo info = {.size = 1000 * u->unit, .flags = u->block};
    vma_scenario(notes, "virtual %s", u->name);
    NOTE("created", vmaCreateVirtualBlock(&info, &w.block));
    note_statistics(&w, notes);
    note_description(&w, u, notes);
    for (uint32_t i = 0; i < STEPS; i++) {
        bool is_growing = i / 100 % 2 == 0;
        if (w.count < MAX_LIVE && random_below(&w.random, 100) < (is_growing ? 70 : 30))
            allocate(&w, u, notes);
        else if (w.count)
            release(&w, u);
        if (i % 10 == 0)
            note_statistics(&w, notes);
        if (i % 100 == 0)
            note_description(&w, u, notes);
        if (i % 1000 == 999) {
            vmaClearVirtualBlock(w.block);
            w.count = 0;
        }
    }
    vmaClearVirtualBlock(w.block);
    note_statistics(&w, notes);
    vmaDestroyVirtualBlock(w.block);
}

void OF_SUBJECT(vma_virtual_run)(vma_notes *notes)
{
    for (size_t i = 0; i < COUNT_OF(USES); i++)
        play(&USES[i], notes);
}
