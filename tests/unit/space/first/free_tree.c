/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * free_tree.c - the tree of free ranges, on nodes built by hand: it stays balanced and ordered
 * under any insertions and removals, and finds the lowest address that a search of all nodes finds.
 */
#include "src/space/first/first.h"

#include "src/base/bits.h"
#include "tests/support/random.h"
#include "tests/support/unit.h"

/* Node i lies in the stretch of the line that starts at i * WIDTH. */
enum { NODES = 600, WIDTH = 1 << 18 };

static qi_first tree;
static qi_first_node nodes[NODES + 1];
static uint32_t in_tree;

static void make_tree(void)
{
    memset(nodes, 0, sizeof nodes);
    in_tree = 0;
    tree = (qi_first){.nodes = nodes};
    tree.space.pool.top = NODES + 1;
}

static void insert(uint32_t node, uint64_t offset, uint64_t size)
{
    nodes[node] = (qi_first_node){.offset = offset, .size = size, .is_free = true};
    qi_free_tree_insert(&tree, node);
    in_tree++;
}

static void take_out(uint32_t node)
{
    qi_free_tree_remove(&tree, node);
    nodes[node].is_free = false;
    in_tree--;
}

static void insert_in_stretch(uint32_t node, test_random *r)
{
    uint64_t into = random_size(r, WIDTH / 2) - 1;
    uint64_t offset = (uint64_t)node * WIDTH + (random_below(r, 4) ? into & ~UINT64_C(63) : into);
    insert(node, offset, random_size(r, WIDTH - into - 1));
}

/* Counts a subtree. Checks that it lies in [low, high) and is no deeper than its height states. */
static uint32_t count_below(uint32_t node, uint64_t low, uint64_t high, uint32_t *height)
{
    if (!node) {
        *height = 0;
        return 0;
    }
    uint64_t offset = nodes[node].offset;
    uint32_t left = 0, right = 0;
    CHECK(nodes[node].is_free && offset >= low && offset < high);
    uint32_t count = 1 + count_below(nodes[node].as.free.left, low, offset, &left);
    count += count_below(nodes[node].as.free.right, offset + 1, high, &right);
    CHECK(left <= right + 1 && right <= left + 1);
    *height = 1 + (left > right ? left : right);
    return count;
}

static void expect_sound(void)
{
    uint64_t count = 0;
    uint32_t height = 0;
    CHECK_OK(qi_free_tree_check(&tree, &count));
    CHECK_EQ(count, in_tree);
    CHECK_EQ(count_below(tree.root, 0, UINT64_MAX, &height), in_tree);
}

/* ---- the parts ----------------------------------------------------------------------------- */

UNIT(free_tree, a_column_serves_alignments_up_to_the_next_column)
{
    for (uint32_t k = 0; k < 6; k++)
        CHECK_EQ(qi_column_of(UINT64_C(1) << k), 0);
    for (uint32_t k = 6; k < 17; k++) {
        CHECK_EQ(qi_column_of(UINT64_C(1) << k), k - 5);
        CHECK_EQ(qi_column_alignment(k - 5), UINT64_C(1) << k);
    }
    for (uint32_t k = 17; k < 64; k++)
        CHECK_EQ(qi_column_of(UINT64_C(1) << k), QI_COLUMNS - 1);
    CHECK_EQ(qi_column_alignment(0), 1);
}

UNIT(free_tree, a_measure_never_falls_and_is_exact_below_1024)
{
    for (uint64_t size = 0; size < 1 << 20; size++) {
        CHECK(size >= 1024 || (uint64_t)qi_measure(size) == size);
        CHECK(qi_measure(size + 1) >= qi_measure(size));
        CHECK(qi_measure(size + 1) - qi_measure(size) <= 1);
    }
    for (uint32_t k = 10; k < 64; k++) {
        uint64_t power = UINT64_C(1) << k;
        CHECK_EQ(qi_measure(power), qi_measure(power - 1) + 1);
        CHECK_EQ(qi_measure(power + (power >> 9)), qi_measure(power) + 1);
        CHECK_EQ(qi_measure(power + (power >> 9) - 1), qi_measure(power));
    }
    CHECK(qi_measure(UINT64_MAX) > qi_measure(UINT64_MAX / 2)); /* no sign */
}

/* ---- order and balance --------------------------------------------------------------------- */

UNIT(free_tree, an_empty_tree_finds_nothing)
{
    make_tree();
    expect_sound();
    CHECK_EQ(qi_free_tree_find(&tree, 1, 1), 0);
    CHECK_EQ(qi_free_tree_largest(&tree), 0);
}

UNIT(free_tree, sorted_insertions_keep_the_tree_balanced)
{
    for (int falling = 0; falling < 2; falling++) {
        make_tree();
        for (uint32_t i = 1; i <= 511; i++) {
            uint32_t node = falling ? 512 - i : i;
            insert(node, node * 100, 50);
            expect_sound();
        }
        CHECK_EQ(nodes[tree.root].height, 9); /* 511 nodes in a perfect tree */
        for (uint32_t i = 1; i <= 511; i++) {
            take_out(falling ? i : 512 - i);
            expect_sound();
        }
        CHECK_EQ(tree.root, 0);
    }
}

UNIT(free_tree, random_ranges_are_inserted_and_removed)
{
    make_tree();
    test_random r = {13};
    for (int i = 0; i < 10000; i++) {
        uint32_t node = 1 + (uint32_t)random_below(&r, NODES);
        bool fills = i / 1000 % 2 == 0;
        if (!nodes[node].is_free && (fills || random_below(&r, 4) == 0))
            insert_in_stretch(node, &r);
        else if (nodes[node].is_free)
            take_out(node);
        expect_sound();
    }
}

/* ---- searches ------------------------------------------------------------------------------ */

static uint32_t naive_find(uint64_t size, uint64_t alignment)
{
    for (uint32_t i = 1; i <= NODES; i++) {
        uint64_t padding = (alignment - nodes[i].offset % alignment) % alignment;
        if (nodes[i].is_free && padding + size <= nodes[i].size)
            return i;
    }
    return 0;
}

static uint64_t naive_largest(void)
{
    uint64_t largest = 0;
    for (uint32_t i = 1; i <= NODES; i++)
        if (nodes[i].is_free && nodes[i].size > largest)
            largest = nodes[i].size;
    return largest;
}

static void expect_finds(test_random *r)
{
    for (int i = 0; i < 20; i++) {
        uint64_t size = random_size(r, WIDTH), alignment = UINT64_C(1) << random_below(r, 21);
        CHECK_EQ(qi_free_tree_find(&tree, size, alignment), naive_find(size, alignment));
    }
    CHECK_EQ(qi_free_tree_largest(&tree), naive_largest());
}

UNIT(free_tree, the_lowest_range_that_fits_is_found_for_every_size_and_alignment)
{
    make_tree();
    test_random r = {14};
    for (int i = 0; i < 4000; i++) {
        uint32_t node = 1 + (uint32_t)random_below(&r, NODES);
        if (nodes[node].is_free)
            take_out(node);
        else
            insert_in_stretch(node, &r);
        expect_finds(&r);
    }
}

/* The rounded measures of these sizes are equal. */
UNIT(free_tree, ranges_of_nearly_the_same_size_are_distinguished_exactly)
{
    make_tree();
    for (uint32_t i = 1; i <= 400; i++)
        insert(i, (uint64_t)i * WIDTH + 1, (1 << 17) + (i * 7919 % 400));
    expect_sound();
    for (uint64_t extra = 0; extra < 400; extra++)
        for (uint32_t k = 0; k < 21; k += 5)
            CHECK_EQ(qi_free_tree_find(&tree, (1 << 17) + extra, UINT64_C(1) << k),
                     naive_find((1 << 17) + extra, UINT64_C(1) << k));
    CHECK_EQ(qi_free_tree_largest(&tree), (1 << 17) + 399);
}

UNIT(free_tree, a_range_is_found_up_to_its_last_byte)
{
    make_tree();
    insert(1, 1000, 24); /* for 1024 the padding alone reaches the end */
    insert(2, (1 << 20) - 5, 100);
    CHECK_EQ(qi_free_tree_find(&tree, 24, 1), 1);
    CHECK_EQ(qi_free_tree_find(&tree, 25, 1), 2);
    CHECK_EQ(qi_free_tree_find(&tree, 1, 1024), 2);
    CHECK_EQ(qi_free_tree_find(&tree, 95, 1 << 20), 2);
    CHECK_EQ(qi_free_tree_find(&tree, 96, 1 << 20), 0);
    CHECK_EQ(qi_free_tree_find(&tree, UINT64_MAX, 1), 0);
}

UNIT(free_tree, a_range_that_shrank_grew_or_moved_is_found_by_its_new_values)
{
    make_tree();
    test_random r = {15};
    for (uint32_t i = 1; i <= NODES; i++)
        insert_in_stretch(i, &r);
    for (int i = 0; i < 4000; i++) {
        uint32_t node = 1 + (uint32_t)random_below(&r, NODES);
        uint64_t into = random_below(&r, WIDTH - 1);
        nodes[node].offset = (uint64_t)node * WIDTH + into;
        nodes[node].size = 1 + random_below(&r, WIDTH - into);
        qi_free_tree_update(&tree, node);
        if (i % 16 == 0) {
            expect_sound();
            expect_finds(&r);
        }
    }
}

/* The search skips subtrees: it does not find a range in a subtree whose maximum is set to 0. */
UNIT(free_tree, subtrees_with_too_little_free_space_are_skipped)
{
    make_tree();
    for (uint32_t i = 1; i <= 7; i++)
        insert(i, i * 1000, i * 100);
    uint32_t right = nodes[tree.root].as.free.right;
    CHECK_EQ(qi_free_tree_find(&tree, 650, 1), 7);
    memset(nodes[right].as.free.best, 0, sizeof nodes[right].as.free.best);
    CHECK_EQ(qi_free_tree_find(&tree, 650, 1), 0);
    CHECK_EQ(qi_free_tree_find(&tree, 350, 1), 4);
}

/* A refusal states the largest range: it must not take longer with more free ranges. */
UNIT(free_tree, the_largest_range_is_known_at_the_root)
{
    make_tree();
    for (uint32_t i = 1; i <= 7; i++)
        insert(i, i * 1000, 700);
    CHECK_EQ(qi_free_tree_largest(&tree), 700);
    nodes[tree.root].as.free.largest = 5;
    CHECK_EQ(qi_free_tree_largest(&tree), 5);
}

/* ---- damage -------------------------------------------------------------------------------- */

static void expect_damaged(const char *message)
{
    uint64_t count = 0;
    CHECK_FAILS(qi_free_tree_check(&tree, &count), QUIRE_ERROR_CORRUPTED);
    CHECK_HAS(quire_last_error(), message);
}

/* Sets a field, expects the message, and restores the field. */
#define DAMAGE(field, value, message)                                                              \
    do {                                                                                           \
        __typeof__(field) kept = (field);                                                          \
        (field) = (__typeof__(field))(value);                                                      \
        expect_damaged(message);                                                                   \
        (field) = kept;                                                                            \
        expect_sound();                                                                            \
    } while (0)

/* 4 is above 2 and 6, which are above 1, 3, 5 and 7. */
static void make_perfect_tree(void)
{
    make_tree();
    for (uint32_t i = 1; i <= 7; i++)
        insert(i, i * 1000, i * 100);
    CHECK_EQ(tree.root, 4);
}

UNIT(free_tree, the_checker_finds_misplaced_nodes)
{
    make_perfect_tree();
    const char *const message = "the tree holds a range that is not free";
    DAMAGE(nodes[3].is_free, false, message);
    DAMAGE(nodes[5].as.free.left, 9, message); /* was never free */
    DAMAGE(nodes[7].as.free.right, NODES + 1, message);
    DAMAGE(nodes[6].as.free.left, UINT32_MAX, message);
    DAMAGE(tree.root, NODES + 1, message);
}

UNIT(free_tree, the_checker_finds_wrong_order_and_cycles)
{
    make_perfect_tree();
    const char *const message = "the tree is out of order";
    DAMAGE(nodes[3].offset, 4000, message);
    DAMAGE(nodes[5].offset, 3999, message);
    DAMAGE(nodes[1].offset, 2001, message);
    DAMAGE(nodes[7].as.free.right, 4, message);
    DAMAGE(nodes[2].as.free.left, 2, message);
    DAMAGE(nodes[2].as.free.left, 3, message);
}

UNIT(free_tree, the_checker_finds_imbalance)
{
    make_perfect_tree();
    const char *const message = "the tree is out of balance";
    DAMAGE(nodes[1].height, 2, message);
    DAMAGE(nodes[4].height, 2, message);
    DAMAGE(nodes[4].as.free.left, 0, message); /* still allowed in a tree of height 2 */
}

UNIT(free_tree, the_checker_finds_a_wrong_maximum_in_a_node)
{
    make_perfect_tree();
    const char *const message = "the tree has a wrong maximum";
    for (uint32_t c = 0; c < QI_COLUMNS; c++) {
        DAMAGE(nodes[3].as.free.own[c], nodes[3].as.free.own[c] + 1, message);
        DAMAGE(nodes[3].as.free.best[c], nodes[3].as.free.best[c] - 1, message);
        DAMAGE(nodes[4].as.free.best[c], nodes[4].as.free.best[c] + 1, message);
    }
    DAMAGE(nodes[3].as.free.largest, nodes[3].as.free.largest - 1, message);
    DAMAGE(nodes[4].as.free.largest, nodes[4].as.free.largest + 1, message);
    DAMAGE(nodes[3].size, 299, message);
    DAMAGE(nodes[3].offset, 3001, message);
}
