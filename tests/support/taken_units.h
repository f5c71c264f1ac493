/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * taken_units.h - the oracle of space_churn.c, at a constant cost per operation: a bit per unit of
 * every region, the live ranges in any order, and sums over them.
 */
#ifndef QUIRE_TESTS_SUPPORT_TAKEN_UNITS_H
#define QUIRE_TESTS_SUPPORT_TAKEN_UNITS_H

#include "quire/space.h"
#include "tests/support/check.h"

enum {
    MAX_REGIONS = 8,
    MAX_UNITS = 65536, /* of a region */
    MAX_LIVE = 80000,
    ROOM = 2 * MAX_LIVE, /* the stretch that the live ranges move through as the oldest are freed */
    MAX_OLD = 256,
    STRETCH = 4 /* units of the granularity; 0 means none */
};

typedef struct live_range {
    uint64_t id, user;
    uint32_t first, end; /* units, the padding included */
    uint32_t padding;    /* units */
    uint16_t region;
    bool optimal;
} live_range;

typedef struct region {
    bool used;
    uint64_t base;
    uint32_t units, live;
    uint64_t owned[MAX_UNITS / 64];              /* a bit per unit */
    uint8_t of_kind[MAX_UNITS / STRETCH + 2][2]; /* ranges that touch a stretch */
} region;

typedef struct world {
    const quire_space_options *options;
    quire_space *space;
    uint64_t unit, max_alignment;
    uint64_t max_size;       /* of requests, bytes */
    uint32_t max_regions;    /* of this run */
    uint64_t allocate_share; /* of 100 steps, in this phase */
    uint64_t oldest_share;   /* of 100 freed ranges: the oldest; likewise the newest */
    uint64_t newest_share;
    uint64_t until_phase, until_rare, until_compare;         /* steps */
    uint64_t live_units, padding_units, region_units, print; /* sums */
    uint32_t peak, compared; /* the peak of live ranges, and calls of compare */
    uint32_t head, tail;     /* the live ranges are between */
    live_range live[ROOM];
    region regions[MAX_REGIONS];
    quire_range old[MAX_OLD]; /* some stale ones */
} world;

static world w;

/* The bits of word `i` that lie from `first` up to `end`. */
static uint64_t word_mask(uint32_t i, uint32_t first, uint32_t end)
{
    uint64_t mask = UINT64_MAX;
    if (i == first / 64)
        mask &= UINT64_MAX << first % 64;
    if (i == (end - 1) / 64)
        mask &= UINT64_MAX >> (63 - (end - 1) % 64);
    return mask;
}

/* Returns whether all units are owned, or none. */
static bool all_are(const region *r, uint32_t first, uint32_t end, bool owned)
{
    for (uint32_t i = first / 64; i <= (end - 1) / 64; i++) {
        uint64_t mask = word_mask(i, first, end);
        if ((r->owned[i] & mask) != (owned ? mask : 0))
            return false;
    }
    return true;
}

static void flip(region *r, uint32_t first, uint32_t end)
{
    for (uint32_t i = first / 64; i <= (end - 1) / 64; i++)
        r->owned[i] ^= word_mask(i, first, end);
}

/* The next unit from `from` on that is owned, or not owned; the end of the region if none is. */
static uint32_t next_unit(const region *r, uint32_t from, bool owned)
{
    while (from < r->units) {
        uint64_t word = (owned ? r->owned[from / 64] : ~r->owned[from / 64]) >> from % 64;
        if (word) {
            from += (uint32_t)__builtin_ctzll(word);
            break;
        }
        from = (from / 64 + 1) * 64;
    }
    return from < r->units ? from : r->units;
}

static bool fits_in(const region *r, uint64_t size, uint64_t alignment)
{
    for (uint32_t at = next_unit(r, 0, false); at < r->units;) {
        uint32_t end = next_unit(r, at, true);
        uint64_t padding = (UINT64_C(0) - (r->base + at * w.unit)) & (alignment - 1);
        if (padding + size <= (end - at) * w.unit)
            return true;
        at = next_unit(r, end, false);
    }
    return false;
}

/* Adds a range to the stretches at its ends, or removes it; no other range is on those between. */
static void count_kind(const live_range *range, uint8_t by)
{
    region *r = &w.regions[range->region];
    if (!w.options->buffer_image_granularity)
        return;
    uint64_t stretch = w.options->buffer_image_granularity, origin = r->base / stretch;
    uint64_t first = (r->base + (range->first + range->padding) * w.unit) / stretch - origin;
    uint64_t last = (r->base + range->end * w.unit - 1) / stretch - origin;
    for (uint64_t i = first; i <= last; i += last > first ? last - first : 1) {
        uint8_t *count = r->of_kind[i];
        count[range->optimal] = (uint8_t)(count[range->optimal] + by);
        CHECK(!count[0] || !count[1]);
    }
}

/* A number that combines everything known about a range, for the sums. */
static uint64_t print_of(uint64_t id, uint64_t user, uint64_t place, uint64_t size)
{
    uint64_t z = id * UINT64_C(0x9E3779B97F4A7C15) ^ user;
    z = (z ^ z >> 29) * UINT64_C(0xBF58476D1CE4E5B9) ^ place * UINT64_C(0x94D049BB133111EB) ^ size;
    return (z ^ z >> 32) * UINT64_C(0xD6E8FEB86659FD93);
}

/* Adds a range to all sums, or removes it (by: -1). */
static void account(const live_range *range, uint64_t by)
{
    uint64_t units = range->end - range->first - range->padding;
    uint64_t place = (uint64_t)range->region << 32 | (range->first + range->padding);
    w.live_units += by * units;
    w.padding_units += by * range->padding;
    w.print += by * print_of(range->id, range->user, place, units);
    w.regions[range->region].live += (uint32_t)by;
    flip(&w.regions[range->region], range->first, range->end);
    w.peak = w.tail - w.head > w.peak ? w.tail - w.head : w.peak;
    count_kind(range, (uint8_t)by);
}

/* Checks a placement against the request and the owned units, and records it. */
static void accept(const quire_placement *at, const quire_range_options *asked)
{
    CHECK(at->region < MAX_REGIONS && w.regions[at->region].used);
    region *r = &w.regions[at->region];
    CHECK_EQ(at->user, asked->user);
    CHECK(at->size >= asked->size);
    CHECK_EQ((at->offset | at->size | at->left_padding) & (w.unit - 1), 0);
    CHECK_EQ((r->base + at->offset) & (asked->alignment - 1), 0);
    CHECK(at->left_padding <= at->offset && at->size <= r->units * w.unit);
    CHECK(at->offset <= r->units * w.unit - at->size);
    if (w.tail == ROOM) {
        memmove(w.live, w.live + w.head, (w.tail - w.head) * sizeof *w.live);
        w.tail -= w.head;
        w.head = 0;
    }
    live_range *range = &w.live[w.tail++];
    *range = (live_range){.id = at->range.id,
                          .user = at->user,
                          .first = (uint32_t)((at->offset - at->left_padding) / w.unit),
                          .end = (uint32_t)((at->offset + at->size) / w.unit),
                          .padding = (uint32_t)(at->left_padding / w.unit),
                          .region = (uint16_t)at->region,
                          .optimal = asked->optimal};
    CHECK(all_are(r, range->first, range->end, false));
    account(range, 1);
}

static void forget(const live_range *range)
{
    CHECK(all_are(&w.regions[range->region], range->first, range->end, true));
    account(range, UINT64_MAX);
    w.old[range->id * UINT64_C(0x9E3779B97F4A7C15) >> 56] = (quire_range){range->id};
}

/* ---- comparing ---------------------------------------------------------------------------- */

typedef struct comparing {
    uint64_t live, free, end, print;
    uint32_t region;
    bool was_free;
} comparing;

static bool compare_item(void *user, const quire_space_item *item)
{
    comparing *c = user;
    const region *r = &w.regions[item->region];
    if (c->region != item->region) {
        CHECK(item->region < MAX_REGIONS && r->used);
        c->region = item->region;
        c->end = 0;
        c->was_free = false;
    }
    CHECK_EQ(item->offset - item->left_padding, c->end);
    CHECK(!(item->is_free && c->was_free) || w.options->fit.algorithm == QUIRE_FIT_BUDDY ||
          w.options->fit.slabs);
    uint64_t begin = c->end / w.unit;
    c->end = item->offset + item->size;
    c->was_free = item->is_free;
    CHECK(c->end <= r->units * w.unit);
    CHECK(all_are(r, (uint32_t)begin, (uint32_t)(c->end / w.unit), !item->is_free));
    *(item->is_free ? &c->free : &c->live) += 1;
    uint64_t place = (uint64_t)item->region << 32 | item->offset / w.unit;
    if (!item->is_free)
        c->print += print_of(item->range.id, item->user, place, item->size / w.unit);
    return true;
}

static void compare_stats(quire_space_stats *stats)
{
    CHECK_OK(quire_space_get_stats(w.space, stats));
    CHECK_EQ(stats->live_count, w.tail - w.head);
    CHECK_EQ(stats->live_bytes, w.live_units * w.unit);
    CHECK_EQ(stats->padding_bytes, w.padding_units * w.unit);
    CHECK_EQ(stats->region_bytes, w.region_units * w.unit);
    CHECK_EQ(stats->free_bytes, (w.region_units - w.live_units - w.padding_units) * w.unit);
}

/* Compares everything, which costs at most as much as 8 steps per range. */
static void compare(void)
{
    comparing c = {.region = UINT32_MAX};
    quire_space_stats stats;
    CHECK_OK(quire_space_check(w.space));
    CHECK_OK(quire_space_walk(w.space, compare_item, &c));
    compare_stats(&stats);
    CHECK_EQ(c.live, stats.live_count);
    CHECK_EQ(c.free, stats.free_count);
    CHECK_EQ(c.print, w.print);
    w.compared++;
    w.until_compare = 256 + 8 * (c.live + c.free);
}

#endif
