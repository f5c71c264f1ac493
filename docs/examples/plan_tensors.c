/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * plan_tensors.c - a memory plan for an inference engine: tensors with lifetimes as an exporter
 * such as ExecuTorch lists them, in a fast bank of a fixed size and a slow one.
 *
 * Each tensor has the numbers of the first and the last operation that uses it. The engine keeps
 * the input and the output in the slow bank, where the application reads and writes them. The
 * residual addition works in place: its output is its first input. All other tensors may go to the
 * fast bank; what finds no room there goes to the slow one.
 *
 *     cc plan_tensors.c $(pkg-config --cflags --libs quire) && ./a.out
 */
#include <inttypes.h>
#include <stdio.h>

#include <quire/host.h>
#include <quire/quire.h>

enum { FAST = 1, SLOW = 2, KIB = 1024 };

static const quire_plan_item tensors[] = {
    {.size = 147 * KIB, .first_use = 0, .last_use = 1, .arena = SLOW, .name = "input"},
    {.size = 196 * KIB, .first_use = 1, .last_use = 4, .alias_group = 1, .name = "conv1"},
    {.size = 54 * KIB, .first_use = 1, .last_use = 1, .name = "conv1.scratch"},
    {.size = 196 * KIB, .first_use = 2, .last_use = 3, .name = "conv2"},
    {.size = 54 * KIB, .first_use = 2, .last_use = 2, .name = "conv2.scratch"},
    {.size = 196 * KIB, .first_use = 3, .last_use = 4, .name = "conv3"},
    {.size = 196 * KIB, .first_use = 4, .last_use = 5, .alias_group = 1, .name = "add"},
    {.size = 49 * KIB, .first_use = 5, .last_use = 6, .name = "pool"},
    {.size = 300 * KIB, .first_use = 6, .last_use = 7, .name = "dense"},
    {.size = 4 * KIB, .first_use = 7, .last_use = 8, .arena = SLOW, .name = "output"},
};

enum { TENSORS = sizeof tensors / sizeof *tensors };

static const quire_plan_arena banks[] = {{.capacity = 450 * KIB}, {.capacity = 0}};

static int fail(void)
{
    fprintf(stderr, "%s\n", quire_last_error());
    return 1;
}

/* The slow bank as one allocation with a view for each tensor in it. */
static int allocate_slow(const quire_plan_problem *problem, const quire_plan_place *places)
{
    quire_device *device = NULL;
    quire_memory *memory = NULL;
    quire_allocation slow;
    quire_view views[TENSORS];
    const quire_allocation_options options = {.name = "slow bank"};
    if (quire_host_open(NULL, &device) || quire_memory_create(device, NULL, &memory) ||
        quire_plan_allocate(memory, problem, places, SLOW, &options, &slow, views) ||
        quire_view_write(memory, views[0], 0, "pixels", 7))
        return fail();
    return quire_free(memory, slow) || quire_memory_destroy(&memory) ||
                   quire_device_destroy(&device)
               ? fail()
               : 0;
}

int main(void)
{
    const quire_plan_problem problem = {
        .items = tensors, .item_count = TENSORS, .arenas = banks, .arena_count = 2};
    quire_plan_place places[TENSORS];
    uint64_t peaks[2];
    if (quire_plan(&problem, NULL, places, NULL) ||
        quire_plan_check(&problem, places, peaks, NULL)) /* proves what quire_plan did */
        return fail();
    for (int i = 0; i < TENSORS; i++)
        printf("%-14s %4" PRIu64 " KiB, operations %" PRIu64 " to %" PRIu64 ": %s bank at %" PRIu64
               "\n",
               tensors[i].name, tensors[i].size / KIB, tensors[i].first_use, tensors[i].last_use,
               places[i].arena == FAST ? "fast" : "slow", places[i].offset);
    printf("fast bank: %" PRIu64 " of 450 KiB, slow bank: %" PRIu64 " KiB\n", peaks[0] / KIB,
           peaks[1] / KIB);
    return allocate_slow(&problem, places);
}
