/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_lists.c - see memory_lists.h.
 */
#include "bench/memory_lists.h"

#include <stdlib.h>

enum { MAX_GROUP = 16, GROUP_SHARE = 4, UNIT = 256, SMALL_UNIT = 16, EQUAL_SIZE = 65536 };

/* A group replaces at most a quarter of the live ranges. */
uint32_t list_group(uint32_t slots)
{
    uint32_t share = slots / GROUP_SHARE;
    return share > MAX_GROUP ? MAX_GROUP : share ? share : 1;
}

static workload_step draw(rng *r, list_sizes sizes, uint32_t slot)
{
    static const uint32_t small[] = {64,  96,   128,  192,  256,  384, 512,
                                     768, 1024, 1536, 2048, 3072, 4096};
    if (sizes == SIZES_EQUAL)
        return (workload_step){EQUAL_SIZE, slot, UNIT};
    if (sizes == SIZES_SMALL) {
        uint64_t size = small[rng_below(r, sizeof small / sizeof *small)];
        return (workload_step){size, slot, UINT32_C(1) << (4 + rng_below(r, 5))};
    }
    bool is_large = sizes == SIZES_LARGE;
    uint64_t size = rng_log_uniform(r, is_large ? 65536 : 256, is_large ? 16777216 : 65536);
    return (workload_step){(size + UNIT - 1) / UNIT * UNIT, slot, UNIT};
}

static void draw_victims(rng *r, uint32_t *victims, uint32_t count, uint32_t slots)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = 0;
        victims[i] = (uint32_t)rng_below(r, slots);
        while (victims[j] != victims[i])
            j++;
        i -= j < i; /* a duplicate is drawn again */
    }
}

static void add_group(workload *w, rng *r, list_sizes sizes, uint32_t count)
{
    uint32_t victims[MAX_GROUP];
    draw_victims(r, victims, count, w->slots);
    for (uint32_t i = 0; i < count; i++)
        w->steps[w->count++] = (workload_step){.slot = victims[i]};
    for (uint32_t i = 0; i < count; i++)
        w->steps[w->count++] = draw(r, sizes, victims[i]);
}

bool list_make(const list_spec *spec, workload *out)
{
    uint32_t group = list_group(spec->slots);
    uint64_t warm = (spec->warm_pairs + group - 1) / group;
    uint64_t timed = (spec->timed_pairs + group - 1) / group;
    *out = (workload){.name = "list",
                      .slots = spec->slots,
                      .granule = spec->sizes == SIZES_SMALL ? SMALL_UNIT : UNIT,
                      .room = spec->slots + (warm + timed) * group * 2};
    out->steps = malloc(out->room * sizeof *out->steps);
    if (!out->steps)
        return false;
    rng r = {spec->seed};
    for (uint32_t i = 0; i < spec->slots; i++)
        out->steps[out->count++] = draw(&r, spec->sizes, i);
    for (uint64_t i = 0; i < warm; i++)
        add_group(out, &r, spec->sizes, group);
    out->timed_from = out->count;
    for (uint64_t i = 0; i < timed; i++)
        add_group(out, &r, spec->sizes, group);
    return true;
}
