/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * shape.h - all ranges of a space as a walk reports them, to compare a space with an earlier state
 * or with another space.
 */
#ifndef QUIRE_TESTS_SUPPORT_SHAPE_H
#define QUIRE_TESTS_SUPPORT_SHAPE_H

#include <stdlib.h>

#include "quire/space.h"
#include "tests/support/check.h"

typedef struct shape {
    quire_space_item *items;
    uint64_t count, capacity;
} shape;

static inline bool shape_visit(void *user, const quire_space_item *item)
{
    shape *s = user;
    if (s->count == s->capacity) {
        s->capacity = s->capacity ? s->capacity * 2 : 64;
        s->items = realloc(s->items, s->capacity * sizeof *s->items);
        CHECK(s->items != NULL);
    }
    s->items[s->count++] = *item;
    return true;
}

/* Records the ranges of a space after checking it. */
static inline shape shape_of(const quire_space *space)
{
    shape s = {0};
    CHECK_OK(quire_space_check(space));
    CHECK_OK(quire_space_walk(space, shape_visit, &s));
    return s;
}

static inline void shape_end(shape *s)
{
    free(s->items);
    *s = (shape){0};
}

/* Checks that two shapes are equal; with ids, that the live ranges are the same ones. */
static inline void shape_compare(const shape *a, const shape *b, bool with_ids)
{
    CHECK_EQ(a->count, b->count);
    for (uint64_t i = 0; i < a->count; i++) {
        const quire_space_item *x = &a->items[i], *y = &b->items[i];
        CHECK_EQ(x->region, y->region);
        CHECK_EQ(x->offset, y->offset);
        CHECK_EQ(x->left_padding, y->left_padding);
        CHECK_EQ(x->size, y->size);
        CHECK_EQ(x->is_free, y->is_free);
        CHECK_EQ(x->user, y->user);
        CHECK(!with_ids || x->range.id == y->range.id);
    }
}

/* Checks that two spaces have the same ranges; their ids differ. */
static inline void shape_expect_alike(const quire_space *one, const quire_space *other)
{
    shape a = shape_of(one), b = shape_of(other);
    shape_compare(&a, &b, false);
    shape_end(&a);
    shape_end(&b);
}

#endif
