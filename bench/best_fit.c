/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * best_fit.c - see best_fit.h. All ranges form a list by address. Free ranges are also in a treap
 * by size and offset: a search tree that is a heap in random ranks, which keeps it balanced. It is
 * deliberately simple rather than fast.
 */
#include "bench/best_fit.h"

#include <stdbool.h>
#include <stdlib.h>

#include "bench/workload.h"

typedef struct range {
    uint64_t offset, size;
    struct range *before, *after; /* by address; NULL at the ends of the arena */
    struct range *left, *right;   /* free ranges: by size, then offset */
    uint64_t rank;
    bool is_free;
} range;

typedef struct best_fit {
    range *tree;
    range *first;
    rng ranks;
} best_fit;

/* ---- the tree of free ranges -------------------------------------------------------------- */

static bool is_less(const range *one, const range *other)
{
    return one->size != other->size ? one->size < other->size : one->offset < other->offset;
}

/* Splits a tree into the ranges that are less than `at` and the others. */
static void part(range *tree, const range *at, range **less, range **rest)
{
    if (!tree) {
        *less = *rest = NULL;
    } else if (is_less(tree, at)) {
        part(tree->right, at, &tree->right, rest);
        *less = tree;
    } else {
        part(tree->left, at, less, &tree->left);
        *rest = tree;
    }
}

/* Joins two trees. Every range of `left` is less than every range of `right`. */
static range *join(range *left, range *right)
{
    if (!left || !right)
        return left ? left : right;
    if (left->rank > right->rank) {
        left->right = join(left->right, right);
        return left;
    }
    right->left = join(left, right->left);
    return right;
}

static void insert(best_fit *fit, range *r)
{
    r->is_free = true;
    r->rank = rng_next(&fit->ranks);
    range **at = &fit->tree;
    while (*at && (*at)->rank > r->rank)
        at = is_less(r, *at) ? &(*at)->left : &(*at)->right;
    part(*at, r, &r->left, &r->right);
    *at = r;
}

static void extract(best_fit *fit, range *r)
{
    range **at = &fit->tree;
    while (*at != r)
        at = is_less(r, *at) ? &(*at)->left : &(*at)->right;
    *at = join(r->left, r->right);
    r->is_free = false;
}

static bool holds(const range *r, uint64_t size, uint64_t alignment)
{
    uint64_t padding = (0 - r->offset) & (alignment - 1);
    return r->size >= padding && r->size - padding >= size;
}

/* Finds the least range that holds the request. Skips the left subtree of a range too small. */
static range *find(range *tree, uint64_t size, uint64_t alignment)
{
    if (!tree)
        return NULL;
    range *found = tree->size < size ? NULL : find(tree->left, size, alignment);
    if (found)
        return found;
    return holds(tree, size, alignment) ? tree : find(tree->right, size, alignment);
}

/* ---- the list of all ranges --------------------------------------------------------------- */

/* Truncates `r` to `size` bytes and returns a new range for the rest. Aborts without memory. */
static range *split(range *r, uint64_t size)
{
    range *rest = calloc(1, sizeof *rest);
    if (!rest)
        abort();
    *rest =
        (range){.offset = r->offset + size, .size = r->size - size, .before = r, .after = r->after};
    if (r->after)
        r->after->before = rest;
    r->after = rest;
    r->size = size;
    return rest;
}

/* Extends `r` by the range after it, which is freed. */
static void absorb(range *r)
{
    range *gone = r->after;
    r->size += gone->size;
    r->after = gone->after;
    if (gone->after)
        gone->after->before = r;
    free(gone);
}

/* ---- the subject -------------------------------------------------------------------------- */

static void *create(const subject *self, const subject_arena *arena)
{
    (void)self;
    best_fit *fit = calloc(1, sizeof *fit);
    range *all = calloc(1, sizeof *all);
    if (!fit || !all) {
        free(fit);
        free(all);
        return NULL;
    }
    all->size = arena->size;
    fit->first = all;
    insert(fit, all);
    return fit;
}

static void destroy(void *state)
{
    best_fit *fit = state;
    while (fit->first) {
        range *next = fit->first->after;
        free(fit->first);
        fit->first = next;
    }
    free(fit);
}

static uint64_t allocate(void *state, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    best_fit *fit = state;
    range *r = find(fit->tree, size, alignment);
    *offset = 0;
    if (!r)
        return 0;
    extract(fit, r);
    uint64_t padding = (0 - r->offset) & (alignment - 1);
    if (padding) {
        range *padded = split(r, padding);
        insert(fit, r);
        r = padded;
    }
    if (r->size > size)
        insert(fit, split(r, size));
    *offset = r->offset;
    return (uint64_t)r;
}

static void release(void *state, uint64_t handle)
{
    best_fit *fit = state;
    range *r = (range *)handle; /* NOLINT: the handle is the record's address */
    if (r->after && r->after->is_free) {
        extract(fit, r->after);
        absorb(r);
    }
    if (r->before && r->before->is_free) {
        r = r->before;
        extract(fit, r);
        absorb(r);
    }
    insert(fit, r);
}

const subject BEST_FIT = {.name = "exact best fit",
                          .kind = SUBJECT_REFERENCE,
                          .create = create,
                          .destroy = destroy,
                          .allocate = allocate,
                          .free = release};
