/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * first_check.c - the check of the first fit finds every kind of damage to its records, with the
 * right message, and reads nothing that it has not verified. (The tree has its own tests in
 * free_tree.c.)
 */
#include "src/space/first/first.h"

#include "tests/support/damage.h"
#include "tests/support/space_steps.h"

/* Two regions. The first: live A, free B, live C with padding, free D. The second: free E. */
typedef struct bench {
    quire_space *space;
    qi_first *f;
    qi_first_node *nodes;
    uint32_t own, A, B, C, D, other, E;
} bench;

static bench make_bench(void)
{
    bench b = {0};
    uint32_t region = 0;
    quire_space_options options = {.fit = {.algorithm = QUIRE_FIT_FIRST, .max_alignment = 256},
                                   .size = 4096};
    b.space = new_space(options);
    quire_placement at[3];
    CHECK_OK(quire_space_allocate(b.space, 100, 1, 0, &at[0]));
    CHECK_OK(quire_space_allocate(b.space, 50, 1, 0, &at[1]));
    CHECK_OK(quire_space_allocate(b.space, 10, 256, 0, &at[2]));
    CHECK_OK(quire_space_add_region(b.space, 1000, 0, &region));
    CHECK_OK(quire_space_free(b.space, at[1].range));
    b.f = (qi_first *)(void *)b.space;
    b.nodes = b.f->nodes;
    b.own = b.space->regions[0].node;
    b.A = b.nodes[b.own].after;
    b.B = b.nodes[b.A].after;
    b.C = b.nodes[b.B].after;
    b.D = b.nodes[b.C].after;
    b.other = b.space->regions[1].node;
    b.E = b.nodes[b.other].after;
    CHECK_EQ(b.nodes[b.D].after, b.own);
    CHECK_EQ(b.nodes[b.C].as.live.left_padding, 106);
    return b;
}

/* The last ones point far outside the array of nodes. */
UNIT(first_check, links)
{
    bench b = make_bench();
    const char *const start = "a range does not begin where its neighbour ends";
    const char *const back = "a neighbour does not point back";
    const uint32_t wrong[] = {0, b.B, b.D, b.other, UINT32_MAX};
    DAMAGE(b.nodes[b.A].offset, 1, start);
    DAMAGE(b.nodes[b.A].size, 99, start);
    DAMAGE(b.nodes[b.C].as.live.left_padding, 105, start);
    DAMAGE(b.nodes[b.D].offset, b.nodes[b.D].offset + 1, start);
    DAMAGE(b.nodes[b.C].region, 1, start);
    DAMAGE(b.space->regions[1].start, 0, start);
    DAMAGE(b.nodes[b.own].after, b.B, start);
    DAMAGE(b.nodes[b.own].after, 0, start);
    DAMAGE(b.nodes[b.own].after, b.space->pool.top, start);
    DAMAGE(b.nodes[b.C].before, b.A, back);
    DAMAGE(b.nodes[b.B].after, b.A, back);
    DAMAGE(b.nodes[b.B].after, b.own, back);
    DAMAGE(b.nodes[b.own].before, b.C, back);
    DAMAGE(b.nodes[b.other].before, 0, back);
    DAMAGE_BY_EACH(b.nodes[b.A].before, wrong, back);
    DAMAGE(b.nodes[b.B].after, UINT32_MAX, "space:");
    DAMAGE(b.nodes[b.D].after, UINT32_MAX / 2, "space:");
    DAMAGE(b.nodes[b.own].after, UINT32_MAX, "space:");
    DAMAGE(b.space->regions[0].node, UINT32_MAX, "space:");
    end_space(b.space);
}

UNIT(first_check, nodes_and_the_end_of_a_region)
{
    bench b = make_bench();
    const char *const own = "the node of a region is damaged";
    const char *const both = "a range is neither free nor live, or both";
    const char *const fill = "the ranges of a region do not fill it";
    const uint32_t wrong[] = {0, b.other, b.A, b.D};
    DAMAGE_BY_EACH(b.space->regions[0].node, wrong, "space:");
    DAMAGE(b.nodes[b.own].is_free, true, own);
    DAMAGE(b.nodes[b.own].size, 1, own);
    DAMAGE(b.nodes[b.own].generation, b.nodes[b.own].generation + 1, own);
    DAMAGE(b.nodes[b.own].region, 1, own);
    DAMAGE(b.nodes[b.A].is_free, true, both);
    DAMAGE(b.nodes[b.B].is_free, false, both);
    DAMAGE(b.nodes[b.A].generation, b.nodes[b.A].generation + 1, both);
    DAMAGE(b.nodes[b.E].generation, b.nodes[b.E].generation + 1, "space:");
    DAMAGE(b.nodes[b.E].size, 0, both);
    DAMAGE(b.nodes[b.C].is_free, true, "two free neighbours touch");
    DAMAGE(b.nodes[b.D].size, b.nodes[b.D].size - 1, fill);
    DAMAGE(b.nodes[b.E].size, 1001, fill);
    DAMAGE(b.space->regions[0].size, 4095, fill);
    DAMAGE(b.nodes[b.own].after, b.own, fill);
    end_space(b.space);
}

UNIT(first_check, the_tree_and_the_counts)
{
    bench b = make_bench();
    const char *const once = "the tree does not hold every free range exactly once";
    const char *const live = "the live statistics do not match the ranges";
    DAMAGE(b.f->root, 0, once);
    DAMAGE(b.space->pool.spare, b.space->pool.spare + 1, once);
    DAMAGE(b.space->pool.retired, 1, once);
    DAMAGE(b.space->live_count, 3, once);
    DAMAGE(b.space->region_count, 3, once);
    DAMAGE(b.f->root, b.A, "the tree holds a range that is not free");
    DAMAGE(b.nodes[b.f->root].height, 9, "the tree is out of balance");
    DAMAGE(b.nodes[b.f->root].as.free.own[0], 1, "the tree has a wrong maximum");
    DAMAGE(b.space->live_bytes, 111, live);
    DAMAGE(b.space->padding_bytes, 0, live);
    DAMAGE(b.space->region_bytes, 5095, "the sums of live and free bytes are not the size");
    /* the check derives the expected count of free ranges from the numbers in use */
    b.space->live_count++;
    b.space->pool.spare--;
    EXPECT_REPORT(live);
    b.space->live_count--;
    b.space->pool.spare++;
    end_space(b.space);
}

UNIT(first_check, numbers_without_a_range_and_places_on_the_line)
{
    bench b = make_bench();
    const char *const place = "a region is not at its place on the line";
    quire_range ranges[3];
    for (int i = 0; i < 3; i++)
        ranges[i] = take_bytes(b.space, 10).range;
    CHECK_OK(quire_space_free_batch(b.space, ranges, 3));
    uint32_t spare = b.space->pool.unused;
    CHECK(spare != 0);
    DAMAGE(b.nodes[spare].generation, b.nodes[spare].generation + 1, "space:");
    DAMAGE(b.nodes[spare].is_free, true, "space:");
    DAMAGE(b.nodes[spare].next, spare, "space:");
    DAMAGE(b.space->pool.unused, b.A, "space:");
    DAMAGE(b.space->pool.unused, UINT32_MAX, "space:");
    DAMAGE(b.nodes[spare].generation, b.nodes[spare].generation + (UINT32_C(1) << 30), "space:");
    DAMAGE(b.nodes[b.space->pool.top].is_free, true, "space:");
    DAMAGE(b.nodes[b.space->pool.top].generation, 1, "space:");
    DAMAGE(b.nodes[0].generation, 1, "space:");
    DAMAGE(b.space->pool.top, b.space->pool.capacity + 1, "more numbers are in use");
    DAMAGE(b.f->nodes, (uintptr_t)(b.nodes + 1), "the records are not those of the pool");
    qi_stretch *places = b.space->line.stretches;
    DAMAGE(places[1].end, places[1].end + 1, place);
    DAMAGE(places[0].end, places[1].start + 1, "the places of regions overlap");
    DAMAGE(b.space->line.count, 1, place);
    DAMAGE(b.space->line.count, UINT32_MAX, "the places of regions overlap or leave the line");
    places[2] = (qi_stretch){places[1].end, places[1].end + 1}; /* belongs to no region */
    DAMAGE(b.space->line.count, 3, "the number of regions is wrong");
    end_space(b.space);
}

/* A bool that is neither true nor false would be a defect of the test. */
UNIT(first_check, the_checker_survives_random_damage)
{
    bench b = make_bench();
    for (uint64_t i = 0; i < 20; i++) {
        quire_placement at;
        CHECK_OK(quire_space_allocate(b.space, 1 + i * 5, 64, 0, &at));
        if (i % 3 == 0)
            CHECK_OK(quire_space_free(b.space, at.range));
    }
    const damage_target targets[] = {{b.f->nodes, b.space->pool.top * sizeof *b.nodes,
                                      sizeof *b.nodes, offsetof(qi_first_node, is_free)}};
    SURVIVE_RANDOM_DAMAGE(targets, 25000);
    end_space(b.space);
}
