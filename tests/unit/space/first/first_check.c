/*
 * first_check.c - the check of the first fit finds every kind of damage to its records, with the
 * right message, and reads nothing that it has not verified. (The tree has its own tests in
 * free_tree.c.)
 */
#include "src/space/first/first.h"

#include "tests/support/random.h"
#include "tests/support/unit.h"

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
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &b.space));
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

static void end_bench(bench *b)
{
    CHECK_OK(quire_space_check(b->space));
    quire_space_destroy(&b->space);
}

/* Sets a field, expects the message, and restores the field. */
#define DAMAGE(b, field, value, message)                                                           \
    do {                                                                                           \
        __typeof__(field) kept = (field);                                                          \
        (field) = (__typeof__(field))(value);                                                      \
        CHECK_FAILS(quire_space_check((b)->space), QUIRE_ERROR_CORRUPTED);                         \
        CHECK_HAS(quire_last_error(), message);                                                    \
        (field) = kept;                                                                            \
        CHECK_OK(quire_space_check((b)->space));                                                   \
    } while (0)

UNIT(first_check, the_start_of_a_range)
{
    bench b = make_bench();
    const char *const message = "a range does not begin where its neighbour ends";
    DAMAGE(&b, b.nodes[b.A].offset, 1, message);
    DAMAGE(&b, b.nodes[b.A].size, 99, message);
    DAMAGE(&b, b.nodes[b.C].as.live.left_padding, 105, message);
    DAMAGE(&b, b.nodes[b.D].offset, b.nodes[b.D].offset + 1, message);
    DAMAGE(&b, b.nodes[b.C].region, 1, message);
    DAMAGE(&b, b.space->regions[1].start, 0, message);
    DAMAGE(&b, b.nodes[b.own].after, b.B, message);
    DAMAGE(&b, b.nodes[b.own].after, 0, message);
    DAMAGE(&b, b.nodes[b.own].after, b.space->pool.top, message);
    end_bench(&b);
}

UNIT(first_check, links_of_neighbours)
{
    bench b = make_bench();
    const char *const message = "a neighbour does not point back";
    DAMAGE(&b, b.nodes[b.C].before, b.A, message);
    DAMAGE(&b, b.nodes[b.B].after, b.A, message);
    DAMAGE(&b, b.nodes[b.B].after, b.own, message);
    DAMAGE(&b, b.nodes[b.own].before, b.C, message);
    DAMAGE(&b, b.nodes[b.other].before, 0, message);
    end_bench(&b);
}

UNIT(first_check, the_link_of_the_first_range_to_its_region)
{
    bench b = make_bench();
    const uint32_t wrong[] = {0, b.B, b.D, b.other, UINT32_MAX};
    for (int i = 0; i < 5; i++)
        DAMAGE(&b, b.nodes[b.A].before, wrong[i], "does not point back");
    end_bench(&b);
}

/* Each of these links points far outside the array of nodes. */
UNIT(first_check, a_link_outside_the_array_is_not_followed)
{
    bench b = make_bench();
    DAMAGE(&b, b.nodes[b.B].after, UINT32_MAX, "space:");
    DAMAGE(&b, b.nodes[b.D].after, UINT32_MAX / 2, "space:");
    DAMAGE(&b, b.nodes[b.own].after, UINT32_MAX, "space:");
    DAMAGE(&b, b.space->regions[0].node, UINT32_MAX, "space:");
    end_bench(&b);
}

UNIT(first_check, the_node_of_a_region)
{
    bench b = make_bench();
    DAMAGE(&b, b.space->regions[0].node, 0, "space:");
    DAMAGE(&b, b.space->regions[0].node, b.other, "space:");
    DAMAGE(&b, b.space->regions[0].node, b.A, "space:");
    DAMAGE(&b, b.space->regions[0].node, b.D, "space:");
    end_bench(&b);
}

UNIT(first_check, the_node_of_a_region_marked_free_or_live_or_moved)
{
    bench b = make_bench();
    const char *const message = "the node of a region is damaged";
    DAMAGE(&b, b.nodes[b.own].is_free, true, message);
    DAMAGE(&b, b.nodes[b.own].size, 1, message);
    DAMAGE(&b, b.nodes[b.own].generation, b.nodes[b.own].generation + 1, message);
    DAMAGE(&b, b.nodes[b.own].region, 1, message);
    end_bench(&b);
}

UNIT(first_check, a_range_that_is_neither_free_nor_live_or_both)
{
    bench b = make_bench();
    const char *const message = "a range is neither free nor live, or both";
    DAMAGE(&b, b.nodes[b.A].is_free, true, message);
    DAMAGE(&b, b.nodes[b.B].is_free, false, message);
    DAMAGE(&b, b.nodes[b.A].generation, b.nodes[b.A].generation + 1, message);
    DAMAGE(&b, b.nodes[b.E].generation, b.nodes[b.E].generation + 1, "space:");
    DAMAGE(&b, b.nodes[b.E].size, 0, message);
    end_bench(&b);
}

UNIT(first_check, free_neighbours_that_did_not_merge)
{
    bench b = make_bench();
    DAMAGE(&b, b.nodes[b.C].is_free, true, "two free neighbours touch");
    end_bench(&b);
}

UNIT(first_check, the_end_of_a_region)
{
    bench b = make_bench();
    const char *const message = "the ranges of a region do not fill it";
    DAMAGE(&b, b.nodes[b.D].size, b.nodes[b.D].size - 1, message);
    DAMAGE(&b, b.nodes[b.E].size, 1001, message);
    DAMAGE(&b, b.space->regions[0].size, 4095, message);
    DAMAGE(&b, b.nodes[b.own].after, b.own, message);
    end_bench(&b);
}

UNIT(first_check, the_tree_and_the_counts)
{
    bench b = make_bench();
    const char *const message = "the tree does not hold every free range exactly once";
    DAMAGE(&b, b.f->root, 0, message);
    DAMAGE(&b, b.space->pool.spare, b.space->pool.spare + 1, message);
    DAMAGE(&b, b.space->pool.retired, 1, message);
    DAMAGE(&b, b.space->live_count, 3, message);
    DAMAGE(&b, b.space->region_count, 3, message);
    DAMAGE(&b, b.f->root, b.A, "the tree holds a range that is not free");
    DAMAGE(&b, b.nodes[b.f->root].height, 9, "the tree is out of balance");
    DAMAGE(&b, b.nodes[b.f->root].as.free.own[0], 1, "the tree has a wrong maximum");
    end_bench(&b);
}

UNIT(first_check, live_counts_and_sums)
{
    bench b = make_bench();
    const char *const message = "the live statistics do not match the ranges";
    DAMAGE(&b, b.space->live_bytes, 111, message);
    DAMAGE(&b, b.space->padding_bytes, 0, message);
    DAMAGE(&b, b.space->region_bytes, 5095,
           "the sums of live and free bytes are not the size of the regions");
    /* the check derives the expected count of free ranges from the numbers in use */
    b.space->live_count++;
    b.space->pool.spare--;
    CHECK_FAILS(quire_space_check(b.space), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), message);
    b.space->live_count--;
    b.space->pool.spare++;
    end_bench(&b);
}

UNIT(first_check, numbers_without_a_range)
{
    bench b = make_bench();
    quire_placement at[3];
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_space_allocate(b.space, 10, 1, 0, &at[i]));
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_space_free(b.space, at[i].range));
    uint32_t spare = b.space->pool.unused;
    CHECK(spare != 0);
    DAMAGE(&b, b.nodes[spare].generation, b.nodes[spare].generation + 1, "space:");
    DAMAGE(&b, b.nodes[spare].is_free, true, "space:");
    DAMAGE(&b, b.nodes[spare].next, spare, "space:");
    DAMAGE(&b, b.space->pool.unused, b.A, "space:");
    DAMAGE(&b, b.space->pool.unused, UINT32_MAX, "space:");
    DAMAGE(&b, b.nodes[spare].generation, b.nodes[spare].generation + (UINT32_C(1) << 30),
           "space:");
    DAMAGE(&b, b.nodes[b.space->pool.top].is_free, true, "space:");
    DAMAGE(&b, b.nodes[b.space->pool.top].generation, 1, "space:");
    DAMAGE(&b, b.nodes[0].generation, 1, "space:");
    DAMAGE(&b, b.space->pool.top, b.space->pool.capacity + 1, "more numbers are in use");
    DAMAGE(&b, b.f->nodes, b.nodes + 1, "the records are not those of the pool");
    end_bench(&b);
}

UNIT(first_check, addresses_of_regions_on_the_line)
{
    bench b = make_bench();
    qi_stretch *places = b.space->line.stretches;
    DAMAGE(&b, places[1].end, places[1].end + 1, "a region is not at its place on the line");
    DAMAGE(&b, places[0].end, places[1].start + 1, "the places of regions overlap");
    DAMAGE(&b, b.space->line.count, 1, "a region is not at its place on the line");
    DAMAGE(&b, b.space->line.count, UINT32_MAX, "the places of regions overlap or leave the line");
    places[2] = (qi_stretch){places[1].end, places[1].end + 1}; /* belongs to no region */
    DAMAGE(&b, b.space->line.count, 3, "the number of regions is wrong");
    end_bench(&b);
}

/* ---- random damage ------------------------------------------------------------------------- */

UNIT(first_check, the_checker_survives_random_damage)
{
    bench b = make_bench();
    for (uint64_t i = 0; i < 20; i++) {
        quire_placement at;
        CHECK_OK(quire_space_allocate(b.space, 1 + i * 5, 64, 0, &at));
        if (i % 3 == 0)
            CHECK_OK(quire_space_free(b.space, at.range));
    }
    size_t size = b.space->pool.top * sizeof *b.f->nodes;
    test_random r = {17};
    for (int i = 0; i < 50000; i++) {
        unsigned char *places[4], kept[4];
        for (int j = 0; j < 4; j++) {
            size_t at = random_below(&r, size);
            if (at % sizeof *b.nodes == offsetof(qi_first_node, is_free))
                at--; /* a bool that is neither true nor false would be a defect of the test */
            places[j] = (unsigned char *)b.f->nodes + at;
            kept[j] = *places[j];
            *places[j] = (unsigned char)(random_next(&r) & random_next(&r));
        }
        quire_result result = quire_space_check(b.space);
        CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_CORRUPTED);
        for (int j = 4; j-- > 0;)
            *places[j] = kept[j];
    }
    end_bench(&b);
}
