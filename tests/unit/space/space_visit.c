/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_visit.c - a visitor that ends a walk ends it immediately: at every position of every fit,
 * in slabs, at gaps, and at the border between two regions. Walks within its calls do not disturb
 * the walk.
 */
#include "src/space/space.h"
#include "tests/support/defer.h"
#include "tests/support/space_steps.h"

enum { MOST = 400 };

typedef struct visitor {
    quire_space_item items[MOST];
    uint64_t calls, last;      /* the call that returns false; 0 means none */
    const quire_space *nested; /* what each call walks as well, or NULL */
} visitor;

static bool stop(void *user, const quire_space_item *item)
{
    (void)user;
    return item->is_free;
}

static bool visit(void *user, const quire_space_item *item)
{
    visitor *v = user;
    CHECK(v->calls < MOST);
    v->items[v->calls++] = *item;
    if (v->nested)
        CHECK_OK(quire_space_walk(v->nested, stop, NULL));
    return v->calls != v->last;
}

static void walk(const quire_space *space, visitor *v, uint64_t last)
{
    *v = (visitor){.last = last, .nested = space};
    CHECK_OK(quire_space_walk(space, visit, v));
}

/* Compares field by field, because the padding between fields is not set. */
static bool are_same(const quire_space_item *a, const quire_space_item *b)
{
    return a->region == b->region && a->is_free == b->is_free && a->offset == b->offset &&
           a->left_padding == b->left_padding && a->size == b->size && a->range.id == b->range.id &&
           a->user == b->user;
}

/* The visitor is called up to the item at which it ends the walk, and not afterwards. */
static void end_at_each_position(const quire_space *space, uint64_t least)
{
    static visitor whole, part;
    walk(space, &whole, 0);
    CHECK(whole.calls >= least);
    for (uint64_t last = 1; last <= whole.calls; last++) {
        walk(space, &part, last);
        CHECK_EQ(part.calls, last);
        for (uint64_t i = 0; i < last; i++)
            CHECK(are_same(&part.items[i], &whole.items[i]));
    }
}

/* The caller learns that a visitor ended the walk of a region, at the last range too. */
static void end_at_each_position_of_a_region(const quire_space *space, uint32_t region)
{
    static visitor whole, part;
    whole = (visitor){0};
    CHECK(qi_space_walk_region(space, region, visit, &whole));
    for (uint64_t last = 1; last <= whole.calls; last++) {
        part = (visitor){.last = last};
        CHECK(!qi_space_walk_region(space, region, visit, &part));
        CHECK_EQ(part.calls, last);
    }
}

static quire_space *make_space(quire_space_options options)
{
    options.size = 1 << 16;
    options.fit.max_alignment = 256;
    return new_space(options);
}

/* Ranges of several sizes; every third is freed again. */
static void fill(quire_space *space, int count)
{
    for (int i = 0; i < count; i++) {
        quire_placement at;
        CHECK_OK(quire_space_allocate(space, 100 + 300 * (uint64_t)(i % 5), 1, (uint64_t)i, &at));
        if (i % 3 == 1)
            CHECK_OK(quire_space_free(space, at.range));
    }
}

static void with_two_regions(quire_space_options options, bool deferred)
{
    quire_space *space = make_space(options);
    uint32_t other = 0;
    if (deferred)
        defer_frees(space, 0);
    CHECK_OK(quire_space_add_region(space, 1 << 14, 0, &other));
    fill(space, 60);
    end_at_each_position(space, 20);
    end_at_each_position_of_a_region(space, 0);
    end_at_each_position_of_a_region(space, other);
    end_space(space);
}

UNIT(space_visit, fits_with_several_regions)
{
    with_two_regions((quire_space_options){.fit.granule = 16}, false);
    with_two_regions((quire_space_options){.fit.granule = 16}, true);
    with_two_regions((quire_space_options){.fit = {.granule = 16, .slabs = true}}, false);
    with_two_regions((quire_space_options){.fit.algorithm = QUIRE_FIT_FIRST}, false);
    with_two_regions((quire_space_options){.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 16}},
                     false);
}

/* Live ranges and gaps alternate, below and above the free range between the two ends. */
UNIT(space_visit, the_linear_fit)
{
    quire_space *space = make_space((quire_space_options){.fit.algorithm = QUIRE_FIT_LINEAR});
    end_at_each_position(space, 1);
    quire_range lower[9], upper[9];
    for (int i = 0; i < 9; i++) {
        lower[i] = take_bytes(space, 100).range;
        upper[i] = take_with(space, (quire_range_options){.size = 100, .upper = true}).range;
    }
    for (int i = 0; i < 9; i += 2) {
        CHECK_OK(quire_space_free(space, lower[i]));
        CHECK_OK(quire_space_free(space, upper[i]));
    }
    end_at_each_position(space, 16);
    end_at_each_position_of_a_region(space, 0);
    end_space(space);
}
