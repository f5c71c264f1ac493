/*
 * buddy.h - shared by the unit tests of the buddy fit: spaces with a granule of 1 that are checked
 * after each step, and the blocks that a walk reports.
 */
#ifndef QUIRE_TESTS_SUPPORT_BUDDY_H
#define QUIRE_TESTS_SUPPORT_BUDDY_H

#include "quire/space.h"
#include "tests/support/unit.h"

static inline quire_space *make_space(uint64_t size, uint64_t max_alignment)
{
    quire_space *space = NULL;
    quire_space_options options = {.fit = {.algorithm = QUIRE_FIT_BUDDY, .granule = 1},
                                   .size = size};
    options.fit.max_alignment = max_alignment;
    options.host_memory = unit_memory();
    CHECK_OK(quire_space_create(&options, &space));
    return space;
}

static inline void end_space(quire_space *space)
{
    CHECK_OK(quire_space_check(space));
    quire_space_destroy(&space);
}

static inline uint32_t add(quire_space *space, uint64_t size, uint64_t base)
{
    uint32_t region = 99;
    CHECK_OK(quire_space_add_region(space, size, base, &region));
    CHECK_OK(quire_space_check(space));
    return region;
}

static inline quire_placement take(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    memset(&at, 0xff, sizeof at); /* the call writes every field */
    CHECK_OK(quire_space_allocate(space, size, alignment, 0, &at));
    CHECK_OK(quire_space_check(space));
    CHECK_EQ(at.left_padding, 0);
    CHECK_EQ(at.reserved, 0);
    return at;
}

static inline void give(quire_space *space, quire_range range)
{
    CHECK_OK(quire_space_free(space, range));
    CHECK_OK(quire_space_check(space));
}

static inline void refuse(quire_space *space, uint64_t size, uint64_t alignment)
{
    quire_placement at;
    CHECK_FAILS(quire_space_allocate(space, size, alignment, 0, &at), QUIRE_ERROR_NO_SPACE);
    CHECK_EQ(at.range.id, 0);
    CHECK_OK(quire_space_check(space));
}

static inline quire_space_stats stats_of(const quire_space *space)
{
    quire_space_stats stats;
    CHECK_OK(quire_space_get_stats(space, &stats));
    return stats;
}

/* ---- the ranges that a walk reports --------------------------------------------------------- */

enum { MAX_ITEMS = 40 };

typedef struct picture {
    quire_space_item items[MAX_ITEMS];
    uint64_t count, free_count;
} picture;

static inline bool note(void *user, const quire_space_item *item)
{
    picture *p = user;
    CHECK(p->count < MAX_ITEMS);
    p->items[p->count++] = *item;
    p->free_count += item->is_free;
    return true;
}

static inline picture look(const quire_space *space)
{
    picture p = {.count = 0};
    CHECK_OK(quire_space_walk(space, note, &p));
    CHECK_EQ(stats_of(space).free_count, p.free_count);
    return p;
}

/* A region is free and consists of blocks of these sizes. A size of 0 ends the list. */
static inline void expect_free(const quire_space *space, uint32_t region, const uint64_t *sizes)
{
    picture p = look(space);
    uint64_t offset = 0, i = 0;
    while (i < p.count && p.items[i].region < region)
        i++;
    for (; *sizes; offset += *sizes++, i++) {
        CHECK(i < p.count && p.items[i].region == region && p.items[i].is_free);
        CHECK_EQ(p.items[i].offset, offset);
        CHECK_EQ(p.items[i].size, *sizes);
    }
    CHECK(i == p.count || p.items[i].region > region);
}

#endif
