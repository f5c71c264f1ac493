/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * space_fuzz.h - decodes the input of space_fuzz.c, and holds the naive list of live ranges that a
 * space is compared with.
 */
#ifndef QUIRE_TESTS_FUZZ_SPACE_FUZZ_H
#define QUIRE_TESTS_FUZZ_SPACE_FUZZ_H

#include <stdlib.h>

#include "quire/space.h"
#include "tests/support/check.h"
#include "tests/support/defer.h"

enum { MAX_LIVE = 240, MAX_REGIONS = 6, MAX_BATCH = 24, MAX_OLD = 16 };

/* No block of host memory is larger, because the input requests regions of any size. */
enum { MAX_BLOCK = 1 << 20 };

typedef struct live_range {
    quire_placement at;
    bool optimal;
} live_range;

typedef struct region {
    bool used;
    uint64_t base, size;
} region;

static const uint8_t *input;
static size_t input_left;

static quire_space *space;
static quire_space_options options; /* as resolved */
static region regions[MAX_REGIONS];
static live_range live[MAX_LIVE];
static quire_range old[MAX_OLD]; /* some stale ones, or {0} */
static uint32_t live_count;
static bool few_sizes;
static uint64_t host_blocks;
static uint32_t host_fails_in; /* host calls; 0 means it does not fail */

/* ---- the input ---------------------------------------------------------------------------- */

static uint8_t byte(void)
{
    if (!input_left)
        return 0;
    input_left--;
    return *input++;
}

static uint32_t below(uint32_t n)
{
    return byte() % n;
}

/* Any number, with many around powers of two. */
static uint64_t any_number(void)
{
    uint64_t number = 0;
    switch (below(4)) {
    case 0:
        return byte();
    case 1:
        number = UINT64_C(1) << below(64);
        return number + below(3) - 1;
    case 2:
        return UINT64_MAX - byte();
    default:
        for (int i = 0; i < 8; i++)
            number = number << 8 | byte();
        return number;
    }
}

/* 1 to 65536; small and large ones are equally likely by magnitude. */
static uint64_t some_length(void)
{
    uint32_t shift = below(16), high = byte();
    return 1 + ((high << 8 | byte()) >> shift);
}

/* Size of a request, in granules or bytes; few different sizes, for slabs. */
static uint64_t some_size(void)
{
    return few_sizes ? 1 + below(2) : some_length();
}

/* Mostly valid, sometimes any value. */
static uint64_t some_alignment(void)
{
    uint8_t b = byte();
    return b < 180 ? UINT64_C(1) << b % 10 : b < 245 ? UINT64_C(1) << b % 31 : any_number();
}

/* ---- host memory -------------------------------------------------------------------------- */

static void *host_allocate(void *user, size_t size, size_t alignment)
{
    (void)user;
    if ((host_fails_in && --host_fails_in == 0) || size > MAX_BLOCK)
        return NULL;
    void *block = NULL;
    if (posix_memalign(&block, alignment < sizeof block ? sizeof block : alignment, size))
        return NULL;
    host_blocks++;
    return block;
}

static void host_release(void *user, void *block, size_t size, size_t alignment)
{
    (void)user;
    (void)size;
    (void)alignment;
    host_blocks--;
    free(block);
}

/* ---- the oracle --------------------------------------------------------------------------- */

static uint64_t begin_of(const quire_placement *at)
{
    return at->offset - at->left_padding;
}

static uint64_t end_of(const quire_placement *at)
{
    return at->offset + at->size;
}

/* Index of the live range with an id; live_count if none. */
static uint32_t find(uint64_t id)
{
    uint32_t i = 0;
    while (i < live_count && live[i].at.range.id != id)
        i++;
    return i;
}

/* Returns whether a call with this range must give the code. */
static bool answers(quire_result result, uint64_t id)
{
    if (find(id) < live_count)
        return !result;
    if (!id)
        return result == QUIRE_ERROR_INVALID_ARGUMENT;
    return result == QUIRE_ERROR_STALE_HANDLE || result == QUIRE_ERROR_FOREIGN_HANDLE;
}

/* Two ranges of one region. */
static bool share_a_stretch(const quire_placement *a, const quire_placement *b)
{
    uint64_t base = regions[a->region].base, stretch = options.buffer_image_granularity;
    return (base + a->offset) / stretch <= (base + end_of(b) - 1) / stretch &&
           (base + b->offset) / stretch <= (base + end_of(a) - 1) / stretch;
}

static void accept(const quire_placement *at, const quire_range_options *asked)
{
    CHECK(at->region < MAX_REGIONS && regions[at->region].used);
    const region *r = &regions[at->region];
    uint64_t alignment = asked->alignment + !asked->alignment;
    CHECK(at->range.id && find(at->range.id) == live_count);
    CHECK(at->size >= asked->size && at->size <= r->size && at->offset <= r->size - at->size);
    CHECK(at->left_padding <= at->offset);
    CHECK_EQ((at->size | at->offset | at->left_padding) & (options.fit.granule - 1), 0);
    CHECK_EQ((r->base + at->offset) & (alignment - 1), 0);
    CHECK_EQ(at->user, asked->user);
    for (uint32_t i = 0; i < live_count; i++) {
        const quire_placement *other = &live[i].at;
        if (other->region != at->region)
            continue;
        CHECK(end_of(other) <= begin_of(at) || end_of(at) <= begin_of(other));
        CHECK(!options.buffer_image_granularity || live[i].optimal == asked->optimal ||
              !share_a_stretch(at, other));
    }
    live[live_count++] = (live_range){.at = *at, .optimal = asked->optimal};
}

/* Returns whether a hole that begins at `begin` holds the request. */
static bool fits_at(uint32_t number, uint64_t begin, const quire_range_options *asked)
{
    const region *r = &regions[number];
    uint64_t end = r->size, alignment = asked->alignment + !asked->alignment;
    uint64_t padding = (UINT64_C(0) - (r->base + begin)) & (alignment - 1);
    for (uint32_t i = 0; i < live_count; i++)
        if (live[i].at.region == number && begin_of(&live[i].at) >= begin &&
            begin_of(&live[i].at) < end)
            end = begin_of(&live[i].at);
    return padding <= end - begin && asked->size <= end - begin - padding;
}

/* What a full search must find, for the fits that guarantee it. */
static bool fits(const quire_range_options *asked)
{
    bool promised =
        options.fit.algorithm == QUIRE_FIT_SEGREGATED || options.fit.algorithm == QUIRE_FIT_FIRST;
    if ((asked->bounded && !asked->lowest) || !promised || options.fit.slabs ||
        options.buffer_image_granularity)
        return false;
    for (uint32_t i = 0; i < MAX_REGIONS; i++)
        if (regions[i].used && fits_at(i, 0, asked))
            return true;
    for (uint32_t i = 0; i < live_count; i++)
        if (fits_at(live[i].at.region, end_of(&live[i].at), asked))
            return true;
    return false;
}

static void forget(uint32_t index)
{
    old[live[index].at.offset / options.fit.granule % MAX_OLD] = live[index].at.range;
    live[index] = live[--live_count];
}

/* ---- the whole space ---------------------------------------------------------------------- */

typedef struct comparing {
    uint32_t live, free, region;
    uint64_t end;
} comparing;

static bool compare_item(void *user, const quire_space_item *item)
{
    comparing *c = user;
    CHECK(item->region < MAX_REGIONS && regions[item->region].used);
    if (item->region != c->region)
        c->end = 0;
    c->region = item->region;
    CHECK_EQ(item->offset - item->left_padding, c->end);
    CHECK(item->size && item->size <= regions[item->region].size - item->offset);
    c->end = item->offset + item->size;
    *(item->is_free ? &c->free : &c->live) += 1;
    if (item->is_free) {
        for (uint32_t i = 0; i < live_count; i++)
            CHECK(live[i].at.region != item->region || end_of(&live[i].at) <= item->offset ||
                  c->end <= begin_of(&live[i].at));
        return true;
    }
    uint32_t index = find(item->range.id);
    CHECK(index < live_count);
    const quire_placement *at = &live[index].at;
    CHECK(at->region == item->region && at->offset == item->offset && at->size == item->size);
    CHECK(at->left_padding == item->left_padding && at->user == item->user);
    return true;
}

static void compare(void)
{
    comparing c = {.region = UINT32_MAX};
    quire_space_stats stats;
    uint64_t bytes = 0, padding = 0, region_bytes = 0, count = 0;
    CHECK_OK(quire_space_check(space));
    CHECK_OK(quire_space_walk(space, compare_item, &c));
    CHECK_OK(quire_space_get_stats(space, &stats));
    for (uint32_t i = 0; i < live_count; i++) {
        bytes += live[i].at.size;
        padding += live[i].at.left_padding;
    }
    for (uint32_t i = 0; i < MAX_REGIONS; i++) {
        region_bytes += regions[i].used ? regions[i].size : 0;
        count += regions[i].used;
    }
    CHECK(c.live == live_count && stats.live_count == live_count && stats.free_count == c.free);
    CHECK(stats.live_bytes == bytes && stats.padding_bytes == padding);
    CHECK(stats.region_bytes == region_bytes && stats.region_count == count);
    CHECK_EQ(stats.free_bytes, region_bytes - bytes - padding);
}

#endif
