/*
 * slabs_check.c - the check finds damage to every record of the slabs, with the right message, and
 * survives any damage.
 */
#include "tests/support/random.h"
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

static void end_bench(bench *b)
{
    end_slab_space(b->space);
}

/* Expects this message, or any if it is NULL. */
static void expect_sentence(const bench *b, const char *message)
{
    CHECK_FAILS(quire_space_check(b->space), QUIRE_ERROR_CORRUPTED);
    if (message)
        CHECK_HAS(quire_last_error(), message);
}

#define EXPECT_FOUND(b, field, value, message)                                                     \
    do {                                                                                           \
        __typeof__(field) kept = (field);                                                          \
        (field) = (__typeof__(field))(value);                                                      \
        expect_sentence((b), (message));                                                           \
        (field) = kept;                                                                            \
    } while (0)

/* ---- fields -------------------------------------------------------------------------------- */

UNIT(slabs_check, the_node_of_a_slab)
{
    bench b = make_bench();
    uint32_t node = b.items[A].node;
    const char *mark = "a range is marked as a slab that does not exist";
    EXPECT_FOUND(&b, b.items[A].node, b.items[B].node, mark);
    EXPECT_FOUND(&b, b.items[A].node, 0, mark);
    EXPECT_FOUND(&b, b.nodes[node].next, B, mark);
    EXPECT_FOUND(&b, b.nodes[node].next, 0, mark);
    EXPECT_FOUND(&b, b.nodes[node].next, UINT32_MAX, mark);
    EXPECT_FOUND(&b, b.nodes[node].next, E, mark);
    EXPECT_FOUND(&b, b.items[A].offset, b.items[A].offset + 1, "a slab and its node do not match");
    EXPECT_FOUND(&b, b.items[A].region, 1, "a slab and its node do not match");
    EXPECT_FOUND(&b, b.nodes[node].owner, b.nodes[node].owner & ~QI_SLAB_MARK,
                 "a slab and its node do not match");
    EXPECT_FOUND(&b, b.items[E].node, node, "the chain of unused slabs is broken");
    EXPECT_FOUND(&b, b.items[F].node, node, "a slab and its node do not match");
    EXPECT_FOUND(&b, b.items[F].node, b.space->pool.top, "a slab and its node do not match");
    end_bench(&b);
}

UNIT(slabs_check, the_mark_on_other_nodes)
{
    bench b = make_bench();
    quire_placement at;
    CHECK_OK(quire_space_allocate(b.space, 5000, 1, 1000, &at));
    uint32_t node = qi_handle_slot(at.range.id);
    b.nodes = qi_segregated_of(b.space)->nodes;
    EXPECT_FOUND(&b, b.nodes[node].owner, b.nodes[node].owner | QI_SLAB_MARK,
                 "a range is marked as a slab that does not exist");
    end_bench(&b);
}

UNIT(slabs_check, the_size_of_a_slab)
{
    bench b = make_bench();
    const char *size = "the size of a slab is not the sum of its slots";
    EXPECT_FOUND(&b, b.items[A].stride, b.items[A].stride + 1, size);
    EXPECT_FOUND(&b, b.items[A].slots, 3, size);
    EXPECT_FOUND(&b, b.items[A].slots, 0, size);
    EXPECT_FOUND(&b, b.items[A].slots, 65, size);
    EXPECT_FOUND(&b, b.items[A].class, QI_SLAB_CLASSES, size);
    EXPECT_FOUND(&b, b.items[A].class, b.items[A].class + 1, NULL);
    EXPECT_FOUND(&b, b.items[C].class, b.items[C].class + 1, "the statistics of a class of slabs");
    end_bench(&b);
}

UNIT(slabs_check, bits_generations_and_live_slots_of_a_slab)
{
    bench b = make_bench();
    const char *slots = "the slots of a slab do not match its bits";
    uint32_t *generations = b.slabs->generations + A * QI_SLAB_SLOTS;
    for (int i = 0; i < 64; i++)
        EXPECT_FOUND(&b, b.items[A].free, b.items[A].free ^ UINT64_C(1) << i, slots);
    for (int i = 0; i < 64; i++)
        EXPECT_FOUND(&b, generations[i], generations[i] ^ 1, slots);
    EXPECT_FOUND(&b, generations[0], QI_LAST_GENERATION + 1, slots);
    EXPECT_FOUND(&b, generations[1], QI_LAST_GENERATION + 1, slots);
    EXPECT_FOUND(&b, generations[1], QI_LAST_GENERATION + 3, slots);
    EXPECT_FOUND(&b, b.items[A].live, 1, slots);
    EXPECT_FOUND(&b, b.items[A].live, 3, slots);
    EXPECT_FOUND(&b, b.items[A].worn, 1, slots);
    end_bench(&b);
}

/* Numbers without a slab: an old handle would be taken for a live one, or a new one would be stale.
   */
UNIT(slabs_check, generations_of_unused_numbers)
{
    bench b = make_bench();
    const char *in_use = "a slot of an unused slab has a generation in use";
    uint32_t *unused = b.slabs->generations + E * QI_SLAB_SLOTS;
    for (int i = 0; i < 64; i++)
        EXPECT_FOUND(&b, unused[i], unused[i] + 1, in_use);
    EXPECT_FOUND(&b, unused[3], QI_LAST_GENERATION + 1, in_use);
    EXPECT_FOUND(&b, b.slabs->generations[F * QI_SLAB_SLOTS], QI_LAST_GENERATION + 3, in_use);
    EXPECT_FOUND(&b, b.slabs->first_generation, 1, "new slots would start with a generation");
    EXPECT_FOUND(&b, b.slabs->first_generation, QI_LAST_GENERATION + 1,
                 "new slots would start with a generation");
    end_bench(&b);
}

UNIT(slabs_check, the_lists)
{
    bench b = make_bench();
    uint32_t class = b.items[A].class, first = b.slabs->classes[class].head;
    uint32_t second = first == A ? B : A;
    const char *belongs = "a list of slabs holds a slab that does not belong to it";
    qi_slab_class *of = &b.slabs->classes[class];
    CHECK_EQ(b.items[first].next, second);
    const uint32_t wrong[] = {C, D, E, F, 7, UINT32_MAX};
    for (int i = 0; i < 6; i++) {
        EXPECT_FOUND(&b, of->head, wrong[i], belongs);
        EXPECT_FOUND(&b, b.items[first].next, wrong[i], belongs);
    }
    EXPECT_FOUND(&b, b.items[first].before, second, belongs);
    EXPECT_FOUND(&b, b.items[second].before, 0, belongs);
    EXPECT_FOUND(&b, of->head, second, belongs);
    EXPECT_FOUND(&b, b.items[second].next, first, NULL); /* a circle */
    EXPECT_FOUND(&b, of->head, 0, "the statistics of the slabs are wrong");
    EXPECT_FOUND(&b, b.items[first].next, 0, "the statistics of the slabs are wrong");
    EXPECT_FOUND(&b, b.slabs->classes[0].head, A, belongs);
    end_bench(&b);
}

UNIT(slabs_check, the_counts)
{
    bench b = make_bench();
    qi_slab_class *of = &b.slabs->classes[b.items[D].class];
    const char *class = "the statistics of a class of slabs are wrong";
    const char *all = "the statistics of the slabs are wrong";
    EXPECT_FOUND(&b, of->slots, of->slots + 1, class);
    EXPECT_FOUND(&b, of->empty, 0, class);
    EXPECT_FOUND(&b, of->empty, C, class);
    EXPECT_FOUND(&b, b.slabs->count, 3, all);
    EXPECT_FOUND(&b, b.slabs->empty, 2, all);
    EXPECT_FOUND(&b, b.slabs->slots, b.slabs->slots + 1, all);
    EXPECT_FOUND(&b, b.space->live_count, 8, NULL);
    end_bench(&b);
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
    expect_sentence(&b, "a class has two slabs in reserve");
    quire_space_destroy(&b.space);
}

UNIT(slabs_check, the_chain_of_unused_numbers)
{
    bench b = make_bench();
    const char *chain = "the chain of unused slabs is broken";
    const uint32_t wrong[] = {0, A, F, 7, UINT32_MAX};
    for (int i = 0; i < 5; i++)
        EXPECT_FOUND(&b, b.slabs->unused, wrong[i], chain);
    EXPECT_FOUND(&b, b.items[E].next, E, chain);
    EXPECT_FOUND(&b, b.items[E].next, A, chain);
    EXPECT_FOUND(&b, b.items[E].worn, 1, chain);
    EXPECT_FOUND(&b, b.items[F].worn, 0, chain);
    EXPECT_FOUND(&b, b.slabs->top, 8, chain);
    end_bench(&b);
}

/* An abandoned number whose node looks like a slab's, in a record that was never taken. */
UNIT(slabs_check, a_node_at_the_top)
{
    bench b = make_bench();
    qi_node *node = &b.nodes[b.space->pool.top], before = *node;
    CHECK(b.space->pool.top < b.space->pool.capacity);
    *node = (qi_node){.generation = 1, .next = F, .offset = b.items[F].offset};
    node->owner = b.items[F].region | QI_SLAB_MARK;
    node->size = (uint32_t)b.items[F].slots * b.items[F].stride;
    EXPECT_FOUND(&b, b.items[F].node, b.space->pool.top, "a slab and its node do not match");
    *node = before;
    end_bench(&b);
}

/* The check reads the nodes of the slabs first. They name slabs below top. */
UNIT(slabs_check, more_slabs_than_records)
{
    bench b = make_bench();
    uint32_t node = b.items[A].node;
    b.nodes[node].next = UINT32_MAX - 1;
    EXPECT_FOUND(&b, b.slabs->top, UINT32_MAX, NULL);
    b.nodes[node].next = A;
    EXPECT_FOUND(&b, b.slabs->top, b.slabs->capacity + 1, NULL);
    end_bench(&b);
}

/* ---- random damage ------------------------------------------------------------------------- */

typedef struct target {
    void *bytes;
    size_t size;
} target;

/* Writes random bytes to a few places of the records, checks, and restores them. */
static void damage_at_random(const quire_space *space, const target *targets, size_t count,
                             test_random *r)
{
    struct {
        unsigned char *place, kept;
    } changes[8];
    int many = 1 + (int)random_below(r, 8);
    for (int i = 0; i < many; i++) {
        const target *t = &targets[random_below(r, count)];
        changes[i].place = (unsigned char *)t->bytes + random_below(r, t->size);
        changes[i].kept = *changes[i].place;
        *changes[i].place = (unsigned char)(random_next(r) & random_next(r));
    }
    quire_result result = quire_space_check(space);
    CHECK(result == QUIRE_SUCCESS || result == QUIRE_ERROR_CORRUPTED);
    for (int i = many; i-- > 0;)
        *changes[i].place = changes[i].kept;
}

UNIT(slabs_check, the_checker_survives_random_damage)
{
    bench b = make_bench();
    const target targets[] = {
        {b.items, b.slabs->top * sizeof *b.items},
        {b.items + A, sizeof *b.items},
        {b.nodes, b.space->pool.top * sizeof *b.nodes},
        {b.slabs->generations, b.slabs->top * QI_SLAB_SLOTS * sizeof *b.slabs->generations},
        {b.slabs->classes, sizeof b.slabs->classes},
        {&b.slabs->classes[b.items[A].class], sizeof b.slabs->classes[0]},
        {&b.slabs->top, sizeof b.slabs->top},
        {&b.slabs->unused, sizeof b.slabs->unused},
        {&b.slabs->first_generation, sizeof b.slabs->first_generation},
        {&b.slabs->slots, sizeof b.slabs->slots},
        {&b.space->pool.top, sizeof b.space->pool.top},
    };
    test_random r = {31};
    for (int i = 0; i < 50000; i++)
        damage_at_random(b.space, targets, sizeof targets / sizeof *targets, &r);
    end_bench(&b);
}
