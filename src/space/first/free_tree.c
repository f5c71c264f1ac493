/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * free_tree.c - an AVL tree of the free ranges of a first fit, ordered by address, with the largest
 * request that each subtree can hold (see first.h). The recursion is as deep as the tree is high:
 * at most 38 levels for the 2^26 nodes that have numbers.
 */
#include "src/space/first/first.h"

static qi_free_part *part(const qi_first *f, uint32_t node)
{
    return &f->nodes[node].as.free;
}

/* Node 0, which stands for an empty tree, is all zero. */
static uint32_t height(const qi_first *f, uint32_t node)
{
    return f->nodes[node].height;
}

/* Computes own of a node for each column. */
static void measure_own(const qi_first *f, uint32_t node)
{
    uint64_t offset = f->nodes[node].offset, size = f->nodes[node].size;
    for (uint32_t c = 0; c < QI_COLUMNS; c++) {
        uint64_t padding = qi_padding(offset, qi_column_alignment(c));
        part(f, node)->own[c] = padding < size ? qi_measure(size - padding) : 0;
    }
}

/* Computes height and maxima of a node from its children and itself. */
static void refresh(const qi_first *f, uint32_t node)
{
    qi_free_part *restrict p = part(f, node);
    const qi_free_part *l = part(f, p->left), *r = part(f, p->right);
    uint32_t left = height(f, p->left), right = height(f, p->right);
    f->nodes[node].height = (uint16_t)((left > right ? left : right) + 1);
    p->largest = f->nodes[node].size;
    qi_raise(&p->largest, l->largest);
    qi_raise(&p->largest, r->largest);
    for (uint32_t c = 0; c < QI_COLUMNS; c++) {
        int16_t below = l->best[c] > r->best[c] ? l->best[c] : r->best[c];
        p->best[c] = p->own[c] > below ? p->own[c] : below;
    }
}

static uint32_t rotate_right(const qi_first *f, uint32_t node)
{
    uint32_t top = part(f, node)->left;
    part(f, node)->left = part(f, top)->right;
    part(f, top)->right = node;
    refresh(f, node);
    refresh(f, top);
    return top;
}

static uint32_t rotate_left(const qi_first *f, uint32_t node)
{
    uint32_t top = part(f, node)->right;
    part(f, node)->right = part(f, top)->left;
    part(f, top)->left = node;
    refresh(f, node);
    refresh(f, top);
    return top;
}

/*
 * Restores the balance of a node and refreshes it. Requires correct subtrees whose heights differ
 * by at most 2. Returns the new root of the subtree.
 */
static uint32_t balance(const qi_first *f, uint32_t node)
{
    qi_free_part *p = part(f, node);
    uint32_t left = height(f, p->left), right = height(f, p->right);
    if (left > right + 1) {
        const qi_free_part *l = part(f, p->left);
        if (height(f, l->left) < height(f, l->right))
            p->left = rotate_left(f, p->left);
        return rotate_right(f, node);
    }
    if (right > left + 1) {
        const qi_free_part *r = part(f, p->right);
        if (height(f, r->right) < height(f, r->left))
            p->right = rotate_right(f, p->right);
        return rotate_left(f, node);
    }
    refresh(f, node);
    return node;
}

/* Inserts a node below `tree`. Returns the new root of the subtree. */
static uint32_t insert(const qi_first *f, uint32_t tree, uint32_t node)
{
    if (!tree)
        return node;
    qi_free_part *p = part(f, tree);
    if (f->nodes[node].offset < f->nodes[tree].offset)
        p->left = insert(f, p->left, node);
    else
        p->right = insert(f, p->right, node);
    return balance(f, tree);
}

void qi_free_tree_insert(qi_first *f, uint32_t node)
{
    part(f, node)->left = part(f, node)->right = 0;
    measure_own(f, node);
    refresh(f, node);
    f->root = insert(f, f->root, node);
}

/* Removes the lowest node of a tree. Returns the new root. */
static uint32_t remove_lowest(const qi_first *f, uint32_t tree, uint32_t *lowest)
{
    qi_free_part *p = part(f, tree);
    if (!p->left) {
        *lowest = tree;
        return p->right;
    }
    p->left = remove_lowest(f, p->left, lowest);
    return balance(f, tree);
}

/*
 * Removes a node below `tree`, found by its offset. Returns the new root. A node with two children
 * is replaced by the lowest node of its right subtree.
 */
static uint32_t remove_node(const qi_first *f, uint32_t tree, uint32_t node)
{
    qi_free_part *p = part(f, tree);
    if (tree != node) {
        if (f->nodes[node].offset < f->nodes[tree].offset)
            p->left = remove_node(f, p->left, node);
        else
            p->right = remove_node(f, p->right, node);
        return balance(f, tree);
    }
    if (!p->left || !p->right)
        return p->left ? p->left : p->right;
    uint32_t heir = 0;
    uint32_t right = remove_lowest(f, p->right, &heir);
    part(f, heir)->left = p->left;
    part(f, heir)->right = right;
    return balance(f, heir);
}

void qi_free_tree_remove(qi_first *f, uint32_t node)
{
    f->root = remove_node(f, f->root, node);
}

/* Recomputes own of a node, and the maxima on the path to the root. */
static void update(const qi_first *f, uint32_t tree, uint32_t node)
{
    if (tree == node)
        measure_own(f, node);
    else if (f->nodes[node].offset < f->nodes[tree].offset)
        update(f, part(f, tree)->left, node);
    else
        update(f, part(f, tree)->right, node);
    refresh(f, tree);
}

void qi_free_tree_update(qi_first *f, uint32_t node)
{
    update(f, f->root, node);
}

/* The exact test: whether a free range holds the request with its padding. */
static bool holds(const qi_first_node *node, uint64_t size, uint64_t alignment)
{
    uint64_t padding = qi_padding(node->offset, alignment);
    return padding < node->size && size <= node->size - padding;
}

/* Skips every subtree whose best is too small; descends left first for the lowest address. */
static uint32_t find(const qi_first *f, uint32_t tree, uint32_t column, uint64_t size,
                     uint64_t alignment)
{
    int16_t wanted = qi_measure(size);
    while (tree && part(f, tree)->best[column] >= wanted) {
        const qi_free_part *p = part(f, tree);
        uint32_t found = find(f, p->left, column, size, alignment);
        if (found)
            return found;
        if (p->own[column] >= wanted && holds(&f->nodes[tree], size, alignment))
            return tree;
        tree = p->right;
    }
    return 0;
}

uint32_t qi_free_tree_find(const qi_first *f, uint64_t size, uint64_t alignment)
{
    return find(f, f->root, qi_column_of(alignment), size, alignment);
}

uint64_t qi_free_tree_largest(const qi_first *f)
{
    return f->root ? part(f, f->root)->largest : 0;
}

/* ---- the check ---------------------------------------------------------------------------- */

enum { MAX_HEIGHT = 38 }; /* of a balanced tree with 2^26 nodes */

/* Whether own and maxima of a node are correct. Requires correct children. */
static bool measures_are_sound(const qi_first *f, uint32_t node)
{
    const qi_free_part *p = part(f, node);
    uint64_t offset = f->nodes[node].offset, size = f->nodes[node].size, largest = size;
    if (p->left)
        qi_raise(&largest, part(f, p->left)->largest);
    if (p->right)
        qi_raise(&largest, part(f, p->right)->largest);
    if (p->largest != largest)
        return false;
    for (uint32_t c = 0; c < QI_COLUMNS; c++) {
        int16_t best = p->own[c];
        best = p->left && part(f, p->left)->best[c] > best ? part(f, p->left)->best[c] : best;
        best = p->right && part(f, p->right)->best[c] > best ? part(f, p->right)->best[c] : best;
        uint64_t padding = qi_padding(offset, qi_column_alignment(c));
        uint64_t room = padding < size ? size - padding : 0;
        if (p->best[c] != best || p->own[c] != qi_measure(room))
            return false;
    }
    return true;
}

/* Checks the subtree at this depth, whose offsets must lie in [low, high). */
static quire_result check(const qi_first *f, uint32_t tree, uint32_t depth, uint64_t low,
                          uint64_t high, uint64_t *count)
{
    if (!tree)
        return QUIRE_SUCCESS;
    if (tree >= f->space.pool.top || !f->nodes[tree].is_free)
        return qi_space_damaged("the tree holds a range that is not free", tree);
    const qi_free_part *p = part(f, tree);
    uint64_t offset = f->nodes[tree].offset;
    if (offset < low || offset >= high || ++*count > f->space.pool.top)
        return qi_space_damaged("the tree is out of order", tree);
    if (depth >= MAX_HEIGHT) /* a damaged tree must not exhaust the stack */
        return qi_space_damaged("the tree is out of balance", tree);
    quire_result result = check(f, p->left, depth + 1, low, offset, count);
    if (!result)
        result = check(f, p->right, depth + 1, offset + 1, high, count);
    if (result)
        return result;
    uint32_t left = height(f, p->left), right = height(f, p->right);
    uint32_t higher = left > right ? left : right, lower = left > right ? right : left;
    if (height(f, tree) != higher + 1 || higher - lower > 1)
        return qi_space_damaged("the tree is out of balance", tree);
    if (!measures_are_sound(f, tree))
        return qi_space_damaged("the tree has a wrong maximum", tree);
    return QUIRE_SUCCESS;
}

quire_result qi_free_tree_check(const qi_first *f, uint64_t *count)
{
    *count = 0;
    return check(f, f->root, 0, 0, UINT64_MAX, count);
}
