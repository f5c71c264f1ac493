/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * slabs_check.c - the check finds damage to every record of the slabs, with the right message, and
 * survives any damage.
 */
#include "tests/support/damage.h"
#include "tests/support/slabs.h"

/*
 * Four slabs of 4 slots: A with live slots 0 and 2, B of the same class with slot 0 live, C full, D
 * cached; E is an unused number, F an abandoned one.
 */
enum { A = 1, B, C, D, E, F };

typedef struct bench {
    quire_space *space;
    qi_slabs *slabs;
    qi_slab *items;
    qi_node *nodes;
} bench;

static bench make_bench(void)
{
    bench b = {.space = make_slab_space((quire_space_options){.size = 100000, .fit.granule = 1})};
    static const uint64_t sizes[] = {0, 100, 100, 300, 500, 700, 900};
    quire_range ranges[7][4];
    b.slabs = slabs_of(b.space);
    for (uint32_t i = A; i <= F; i++)
        for (int j = 0; j < 4; j++) {
            ranges[i][j] = take_slot_for(b.space, sizes[i], i).range;
            CHECK_EQ(slab_number(ranges[i][j]), i);
        }
    b.items = b.slabs->items;
    b.nodes = qi_segregated_of(b.space)->nodes;
    for (int j = 0; j < 4; j++) {
        b.slabs->generations[F * QI_SLAB_SLOTS + j] = QI_LAST_GENERATION;
        ranges[F][j].id =
            qi_handle(b.space->tag, QI_LAST_GENERATION, qi_handle_slot(ranges[F][j].id));
        CHECK_OK(quire_space_free(b.space, ranges[F][j]));
        CHECK_OK(quire_space_free(b.space, ranges[E][j]));
    }
    qi_slabs_release_empty(qi_segregated_of(b.space));
    for (int j = 0; j < 4; j++) {
        CHECK_OK(quire_space_free(b.space, ranges[D][j]));
        if (j == 1 || j == 3)
            CHECK_OK(quire_space_free(b.space, ranges[A][j]));
        if (j > 0)
            CHECK_OK(quire_space_free(b.space, ranges[B][j]));
    }
    CHECK(b.slabs->top == 7 && b.slabs->unused == E && b.items[F].worn);
    expect_sound(b.space);
    return b;
}

UNIT(slabs_check, nodes_and_sizes_of_slabs)
{
    bench b = make_bench();
    uint32_t node = b.items[A].node;
    const char *const mark = "a range is marked as a slab that does not exist";
    const char *const match = "a slab and its node do not match";
    const char *const size = "the size of a slab is not the sum of its slots";
    const uint32_t wrong[] = {B, 0, UINT32_MAX, E};
    DAMAGE(b.items[A].node, b.items[B].node, mark);
    DAMAGE(b.items[A].node, 0, mark);
    DAMAGE_BY_EACH(b.nodes[node].next, wrong, mark);
    DAMAGE(b.items[A].offset, b.items[A].offset + 1, match);
    DAMAGE(b.items[A].region, 1, match);
    DAMAGE(b.nodes[node].owner, b.nodes[node].owner & ~QI_SLAB_MARK, match);
    DAMAGE(b.items[E].node, node, "the chain of unused slabs is broken");
    DAMAGE(b.items[F].node, node, match);
    DAMAGE(b.items[F].node, b.space->pool.top, match);
    DAMAGE(b.items[A].stride, b.items[A].stride + 1, size);
    DAMAGE(b.items[A].slots, 3, size);
    DAMAGE(b.items[A].slots, 0, size);
    DAMAGE(b.items[A].slots, 65, size);
    DAMAGE(b.items[A].class, QI_SLAB_CLASSES, size);
    DAMAGE(b.items[A].class, b.items[A].class + 1, "space:");
    DAMAGE(b.items[C].class, b.items[C].class + 1, "the statistics of a class of slabs");
    quire_placement at;
    CHECK_OK(quire_space_allocate(b.space, 5000, 1, 1000, &at)); /* no slab */
    b.nodes = qi_segregated_of(b.space)->nodes;
    node = qi_handle_slot(at.range.id);
    DAMAGE(b.nodes[node].owner, b.nodes[node].owner | QI_SLAB_MARK, mark);
    end_slab_space(b.space);
}

/* Generations of numbers without a slab too: an old handle would be taken for a live one, or a new
   one would be stale. */
UNIT(slabs_check, bits_generations_and_live_slots)
{
    bench b = make_bench();
    const char *const slots = "the slots of a slab do not match its bits";
    const char *const in_use = "a slot of an unused slab has a generation in use";
    const char *const first = "new slots would start with a generation";
    uint32_t *of_a = b.slabs->generations + A * QI_SLAB_SLOTS,
             *of_e = b.slabs->generations + E * QI_SLAB_SLOTS;
    DAMAGE_EACH_BIT(b.items[A].free, slots);
    for (int i = 0; i < 64; i++) {
        DAMAGE(of_a[i], of_a[i] ^ 1, slots);
        DAMAGE(of_e[i], of_e[i] + 1, in_use);
    }
    DAMAGE(of_a[0], QI_LAST_GENERATION + 1, slots);
    DAMAGE(of_a[1], QI_LAST_GENERATION + 1, slots);
    DAMAGE(of_a[1], QI_LAST_GENERATION + 3, slots);
    DAMAGE(b.items[A].live, 1, slots);
    DAMAGE(b.items[A].live, 3, slots);
    DAMAGE(b.items[A].worn, 1, slots);
    DAMAGE(of_e[3], QI_LAST_GENERATION + 1, in_use);
    DAMAGE(b.slabs->generations[F * QI_SLAB_SLOTS], QI_LAST_GENERATION + 3, in_use);
    DAMAGE(b.slabs->first_generation, 1, first);
    DAMAGE(b.slabs->first_generation, QI_LAST_GENERATION + 1, first);
    end_slab_space(b.space);
}

UNIT(slabs_check, lists_and_counts)
{
    bench b = make_bench();
    const char *const belongs = "a list of slabs holds a slab that does not belong to it";
    const char *const class = "the statistics of a class of slabs are wrong";
    const char *const all = "the statistics of the slabs are wrong";
    const char *const chain = "the chain of unused slabs is broken";
    const uint32_t wrong[] = {C, D, E, F, 7, UINT32_MAX}, wrong_unused[] = {0, A, F, 7, UINT32_MAX};
    qi_slab_class *of_a = &b.slabs->classes[b.items[A].class],
                  *of_d = &b.slabs->classes[b.items[D].class];
    uint32_t first = of_a->head, second = first == A ? B : A;
    CHECK_EQ(b.items[first].next, second);
    DAMAGE_BY_EACH(of_a->head, wrong, belongs);
    DAMAGE_BY_EACH(b.items[first].next, wrong, belongs);
    DAMAGE(b.items[first].before, second, belongs);
    DAMAGE(b.items[second].before, 0, belongs);
    DAMAGE(of_a->head, second, belongs);
    DAMAGE(b.items[second].next, first, "space:"); /* a circle */
    DAMAGE(of_a->head, 0, all);
    DAMAGE(b.items[first].next, 0, all);
    DAMAGE(b.slabs->classes[0].head, A, belongs);
    DAMAGE(of_d->slots, of_d->slots + 1, class);
    DAMAGE(of_d->empty, 0, class);
    DAMAGE(of_d->empty, C, class);
    DAMAGE(b.slabs->count, 3, all);
    DAMAGE(b.slabs->empty, 2, all);
    DAMAGE(b.slabs->slots, b.slabs->slots + 1, all);
    DAMAGE(b.space->live_count, 8, "space:");
    DAMAGE_BY_EACH(b.slabs->unused, wrong_unused, chain);
    DAMAGE(b.items[E].next, E, chain);
    DAMAGE(b.items[E].next, A, chain);
    DAMAGE(b.items[E].worn, 1, chain);
    DAMAGE(b.items[F].worn, 0, chain);
    DAMAGE(b.slabs->top, 8, chain);
    end_slab_space(b.space);
}

UNIT(slabs_check, two_cached_slabs)
{
    bench b = make_bench();
    quire_range range = {qi_handle(b.space->tag, b.slabs->generations[B * QI_SLAB_SLOTS],
                                   QI_SLAB_SLOT | B * QI_SLAB_SLOTS)};
    CHECK_OK(quire_space_free(b.space, range));
    CHECK_EQ(b.slabs->classes[b.items[B].class].empty, B);
    b.slabs->classes[b.items[B].class].empty = 0; /* so that A is not destroyed */
    for (uint32_t slot = 0; slot < 4; slot += 2) {
        range.id = qi_handle(b.space->tag, b.slabs->generations[A * QI_SLAB_SLOTS + slot],
                             QI_SLAB_SLOT | (A * QI_SLAB_SLOTS + slot));
        CHECK_OK(quire_space_free(b.space, range));
    }
    EXPECT_REPORT("a class has two slabs in reserve");
    quire_space_destroy(&b.space);
}

/* An abandoned number whose node looks like a slab's, in a record that was never taken; and more
   slabs than records: the check reads the nodes of the slabs first, which name slabs below top. */
UNIT(slabs_check, nodes_and_slabs_beyond_the_records)
{
    bench b = make_bench();
    uint32_t top = b.space->pool.top, slab_top = b.slabs->top;
    qi_node *node = &b.nodes[top], before = *node;
    CHECK(top < b.space->pool.capacity);
    *node = (qi_node){.generation = 1, .next = F, .offset = b.items[F].offset};
    node->owner = b.items[F].region | QI_SLAB_MARK;
    node->size = (uint32_t)b.items[F].slots * b.items[F].stride;
    uint32_t of_f = b.items[F].node;
    b.items[F].node = top;
    EXPECT_REPORT("a slab and its node do not match");
    b.items[F].node = of_f;
    *node = before;
    node = &b.nodes[b.items[A].node];
    node->next = UINT32_MAX - 1;
    b.slabs->top = UINT32_MAX;
    EXPECT_REPORT("space:");
    node->next = A;
    b.slabs->top = slab_top;
    DAMAGE(b.slabs->top, b.slabs->capacity + 1, "space:");
    end_slab_space(b.space);
}

UNIT(slabs_check, the_checker_survives_random_damage)
{
    bench b = make_bench();
    const damage_target targets[] = {
        {b.items, b.slabs->top * sizeof *b.items, 0, 0},
        {b.items + A, sizeof *b.items, 0, 0},
        {b.nodes, b.space->pool.top * sizeof *b.nodes, 0, 0},
        {b.slabs->generations, b.slabs->top * QI_SLAB_SLOTS * sizeof *b.slabs->generations, 0, 0},
        {b.slabs->classes, sizeof b.slabs->classes, 0, 0},
        {&b.slabs->classes[b.items[A].class], sizeof b.slabs->classes[0], 0, 0},
        {&b.slabs->top, sizeof b.slabs->top, 0, 0},
        {&b.slabs->unused, sizeof b.slabs->unused, 0, 0},
        {&b.slabs->first_generation, sizeof b.slabs->first_generation, 0, 0},
        {&b.slabs->slots, sizeof b.slabs->slots, 0, 0},
        {&b.space->pool.top, sizeof b.space->pool.top, 0, 0},
    };
    SURVIVE_RANDOM_DAMAGE(targets, 20000);
    end_slab_space(b.space);
}
