/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * memory_model.c - random operations on memories against a naive oracle, on the host backend and on
 * the fake one, whose memory is dirty and whose pages lie at odd addresses.
 *
 * The oracle keeps one owner per byte of every page. Every allocation in accessible memory holds
 * its own pattern, which is verified before it is freed: so a byte that two allocations share, or
 * that a page loses, is detected. The oracle knows since when each page is empty. It checks that no
 * page is kept that the policy does not keep, and that no promised page is destroyed.
 *
 * It knows which chunks of an elastic memory are in use. A request is refused only if these and the
 * request exceed the limit, or if no run of bytes without an owner has room for it. A trim leaves
 * nothing but chunks in use and its target. Of a lazy allocation it knows the chunks that have
 * memory, each of which has a pattern of its own.
 */
#include <stdio.h>
#include <stdlib.h>

#include "quire/elastic.h"
#include "quire/host.h"
#include "quire/quire.h"
#include "src/core/state/memory.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/random_policy.h"
#include "src/core/page/empty.h"

enum {
    MAX_LIVE = 300,
    MAX_PAGES = 4096,
    STEPS_A_WORLD = 4000,
    CHECK_EVERY = 64,
    MAX_SIZE = 40000,
    MAX_CHUNKS = 2048,
    MAX_LENGTH = 16 /* of a lazy allocation, in chunks */
};

typedef struct model_page {
    uint64_t size;
    uint32_t *owner; /* key of the allocation, or 0 */
    uint32_t live;
} model_page;

typedef struct model_allocation {
    quire_allocation handle;
    quire_allocation_info info;
    uint32_t key; /* never reused: also the seed of its pattern */
    bool committed;
    int maps;
    bool is_lazy;
    uint32_t chunks[MAX_LENGTH]; /* keys of its chunks; 0: no memory */
} model_allocation;

typedef struct world {
    test_memory host_memory;
    fake_backend fake;
    bool is_fake;
    quire_device *device;
    quire_memory *memory;
    quire_memory_info info;
    bool parts_images; /* images of optimal tiling have a shard for themselves */
    bool has_images;   /* of optimal tiling, at any time */
    model_page pages[MAX_PAGES];
    model_allocation live[MAX_LIVE];
    int count;
    uint32_t next_key;
    uint64_t live_bytes, requested;

    bool is_elastic;
    uint32_t users[MAX_CHUNKS]; /* allocations in each chunk */
    uint64_t limit;             /* 0: none */
    uint64_t refusals;

    quire_page_policy policy;
    uint64_t time;                   /* the value of the memory's clock */
    bool finds;                      /* with the option find_by_address */
    uint64_t floor;                  /* of quire_memory_preallocate, until a trim */
    uint64_t promised;               /* of it; a limit can take dedicated pages below the floor */
    uint64_t empty_since[MAX_PAGES]; /* the maximum age */
} world;

static test_random rng;
static uint64_t total_steps, seed, limits_met, addresses_met;

/* ---- the oracle --------------------------------------------------------------------------- */

/* The chunks of an elastic page that the allocation uses. */
static void use_chunks(world *w, const model_allocation *a, bool take)
{
    const uint64_t chunk = w->info.page_size, end = a->info.offset + a->info.size;
    const uint64_t first = (a->info.offset - a->info.left_padding) / chunk;
    for (uint64_t i = first; i * chunk < end; i++)
        if (!a->is_lazy || a->chunks[i - first])
            w->users[i] += take ? 1 : UINT32_MAX;
}

static void own(world *w, const model_allocation *a, bool take)
{
    CHECK(a->info.page < MAX_PAGES);
    model_page *page = &w->pages[a->info.page];
    quire_page_info info;
    CHECK_OK(quire_page_get_info(w->memory, a->info.page, &info));
    if (w->is_elastic && !info.dedicated) {
        info.size = w->info.address_space; /* of which the chunks in use have memory */
        use_chunks(w, a, take);
    }
    if (!page->owner) {
        page->size = info.size;
        page->owner = calloc(info.size, sizeof *page->owner);
    }
    CHECK_EQ(page->size, info.size);
    CHECK(a->info.offset + a->info.size <= page->size);
    uint32_t was = take ? 0 : a->key, is = take ? a->key : 0;
    for (uint64_t i = a->info.offset - a->info.left_padding; i < a->info.offset + a->info.size;
         i++) {
        CHECK_EQ(page->owner[i], was);
        page->owner[i] = is;
    }
    page->live += take ? 1 : UINT32_MAX;
    w->empty_since[a->info.page] = w->time;
    if (!page->live) { /* from here on the page may be destroyed and its number reused */
        free(page->owner);
        *page = (model_page){0};
    }
}

static void fill_pattern(uint32_t key, unsigned char *bytes, uint64_t size)
{
    test_random r = {key};
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = (unsigned char)(i % 8 ? r.state >> (i % 8 * 8) : random_next(&r));
}

static void write_pattern(world *w, const model_allocation *a)
{
    static unsigned char bytes[MAX_SIZE * 4];
    fill_pattern(a->key, bytes, a->info.requested);
    CHECK_OK(quire_write(w->memory, a->handle, 0, bytes, a->info.requested));
}

/* Verifies a random chunk of a lazy allocation. */
static void check_chunk(const world *w, const model_allocation *a)
{
    static unsigned char expected[MAX_SIZE * 4], found[MAX_SIZE * 4];
    const uint64_t chunk = w->info.page_size, i = random_below(&rng, a->info.size / chunk);
    quire_result result = quire_read(w->memory, a->handle, i * chunk, found, chunk);
    if (!a->chunks[i]) {
        CHECK_FAILS(result, QUIRE_ERROR_WRONG_STATE);
        return;
    }
    CHECK_OK(result);
    fill_pattern(a->chunks[i], expected, chunk);
    CHECK(!memcmp(found, expected, chunk));
}

static void check_pattern(world *w, const model_allocation *a)
{
    if (a->is_lazy) {
        check_chunk(w, a);
        return;
    }
    static unsigned char expected[MAX_SIZE * 4], found[MAX_SIZE * 4];
    fill_pattern(a->key, expected, a->info.requested);
    uint64_t from = random_below(&rng, a->info.requested);
    uint64_t size = 1 + random_below(&rng, a->info.requested - from);
    CHECK_OK(quire_read(w->memory, a->handle, from, found, size));
    CHECK(!memcmp(found, expected + from, size));
}

static void check_zero(world *w, quire_allocation handle, uint64_t size)
{
    static unsigned char found[MAX_SIZE * 4];
    CHECK_OK(quire_read(w->memory, handle, 0, found, size));
    for (uint64_t i = 0; i < size; i++)
        CHECK_EQ(found[i], 0);
}

/* ---- empty pages -------------------------------------------------------------------------- */

static uint64_t read_time(void *user)
{
    return ((world *)user)->time;
}

/* A page may be created and left empty: the request then fits elsewhere by a longer search. */
static void see_page(void *user, quire_memory *memory, const quire_event *event)
{
    world *w = user;
    (void)memory;
    CHECK(event->page < MAX_PAGES);
    w->empty_since[event->page] = w->time;
}

/* Returns whether only quire_memory_preallocate keeps a page. */
static bool is_promised(const world *w, const quire_memory_stats *stats, uint64_t size)
{
    return stats->reserved_bytes - size < w->floor;
}

static uint64_t pages_destroyed(const world *w)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    return stats.pages_destroyed;
}

/*
 * Called after a call that began with this many pages destroyed. A page that the policy no longer
 * keeps exists only because of a promise, or the call destroyed as many pages as one call may.
 */
static void check_kept(world *w, uint64_t destroyed)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    if (stats.pages_destroyed - destroyed >= QI_EMPTY_PAGES_PER_CALL)
        return;
    CHECK(stats.reserved_bytes >= w->promised);
    uint64_t bytes = w->policy.retained_empty_bytes, age = w->policy.retention_nanoseconds;
    bool is_above = bytes && stats.empty_bytes > bytes;
    /* The other shards keep their pages until a thread works there. */
    if (w->info.shards > 1 || (w->parts_images && w->has_images))
        return;
    for (uint32_t i = 0; i < MAX_PAGES && (is_above || age); i++) {
        quire_page_info info;
        if (quire_page_get_info(w->memory, i, &info))
            continue;
        bool is_old = age && w->time - w->empty_since[i] >= age;
        if (w->is_elastic && !info.dedicated) /* stays, without memory */
            continue;
        if (!info.allocation_count && (is_above || is_old))
            CHECK(is_promised(w, &stats, info.size));
    }
}

/* ---- elastic memories ---------------------------------------------------------------------- */

/* Of the shared page; 0 before it is made. */
static quire_page_info elastic_page(const world *w, uint64_t *dedicated_in_use)
{
    quire_page_info page = {0}, info;
    *dedicated_in_use = 0;
    for (uint32_t i = 0; i < MAX_PAGES; i++) {
        if (quire_page_get_info(w->memory, i, &info))
            continue;
        if (!info.dedicated)
            page = info;
        else if (info.allocation_count)
            *dedicated_in_use += info.size;
    }
    return page;
}

static uint64_t chunks_in_use(const world *w)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < MAX_CHUNKS; i++)
        count += w->users[i] != 0;
    return count;
}

/* The longest run of bytes of the shared page that have no owner. */
static uint64_t longest_gap(const world *w, uint32_t page)
{
    const uint32_t *owner = w->pages[page].owner;
    uint64_t run = 0, longest = owner ? 0 : w->info.address_space;
    for (uint64_t i = 0; owner && i < w->info.address_space; i++) {
        run = owner[i] ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

/*
 * Returns whether the result is a success. A refusal must be one that free chunks elsewhere could
 * not prevent. `size` is what the request needs at most, with all padding.
 */
static bool is_served(world *w, quire_result result, uint64_t size)
{
    if (!result)
        return true;
    CHECK(w->is_elastic);
    if (result != QUIRE_ERROR_OVER_BUDGET)
        CHECK_FAILS(result, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    char error[512];
    snprintf(error, sizeof error, "%s", quire_last_error());
    uint64_t dedicated, chunk = w->info.page_size;
    quire_page_info page = elastic_page(w, &dedicated);
    uint64_t used = chunks_in_use(w) * chunk + dedicated;
    uint64_t needed = size + 2 * chunk; /* an edge, and what a search can miss */
    used = used > w->floor ? used : w->floor;
    if (result == QUIRE_ERROR_OVER_BUDGET) {
        if (!w->limit || used + needed <= w->limit)
            check_failed(__FILE__, __LINE__,
                         "%" PRIu64 " of %" PRIu64 " bytes are in use, %" PRIu64 " are needed: %s",
                         used, w->limit, needed, error);
        limits_met++;
    } else {
        if (longest_gap(w, page.page) >= needed)
            check_failed(__FILE__, __LINE__, "%" PRIu64 " bytes have addresses: %s", needed, error);
        addresses_met++;
    }
    w->refusals++;
    return false;
}

static void check_chunks(const world *w)
{
    uint64_t dedicated, chunk = w->info.page_size;
    quire_page_info page = elastic_page(w, &dedicated);
    CHECK_EQ(page.size % chunk, 0);
    CHECK(page.size >= chunks_in_use(w) * chunk);
    CHECK_EQ(page.live_bytes + page.free_bytes, page.size);
}

/* After a trim: chunks in use, or at most `target` free bytes. */
static void check_trimmed(const world *w, uint64_t target)
{
    uint64_t dedicated;
    quire_page_info page = elastic_page(w, &dedicated);
    CHECK(page.free_bytes <= target || page.size == chunks_in_use(w) * w->info.page_size);
}

/* A limit below the use takes what no allocation uses, down to the promise. */
static void set_limit(world *w)
{
    quire_memory_stats stats;
    uint64_t dedicated, limit = random_below(&rng, 4) ? 1 + random_below(&rng, 3 << 20) : 0;
    CHECK_OK(quire_memory_set_limit(w->memory, limit));
    w->limit = limit;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    elastic_page(w, &dedicated);
    uint64_t least = chunks_in_use(w) * w->info.page_size + dedicated;
    if (w->floor + w->info.page_size <= limit) /* whole chunks leave */
        CHECK(stats.reserved_bytes <= limit || stats.reserved_bytes <= least);
    if (stats.reserved_bytes < w->promised) /* empty dedicated pages leave in spite of it */
        w->promised = stats.reserved_bytes;
    if (limit && limit < w->floor) /* chunks that a refused request takes cannot come back */
        w->promised = 0;
}

/* Whether a preallocation exceeds neither the limit nor the addresses. Changes them for it. */
static bool may_promise(world *w, uint64_t bytes)
{
    uint64_t dedicated;
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    quire_page_info page = elastic_page(w, &dedicated);
    if (w->limit && w->limit < bytes + w->info.page_size)
        CHECK_OK(quire_memory_set_limit(w->memory, w->limit = 0));
    uint64_t taken = page.size; /* addresses; lazy allocations have more than memory */
    for (int i = 0; i < w->count; i++)
        for (uint64_t at = 0; w->live[i].is_lazy && at * w->info.page_size < w->live[i].info.size;
             at++)
            taken += w->live[i].chunks[at] ? 0 : w->info.page_size;
    return bytes <= stats.reserved_bytes ||
           w->info.address_space - taken >= bytes - stats.reserved_bytes + w->info.page_size;
}

/* ---- promises and trims -------------------------------------------------------------------- */

static void promise(world *w)
{
    uint64_t bytes = random_below(&rng, 3) ? random_below(&rng, 1 << 20) : 0;
    if (w->is_elastic && !may_promise(w, bytes))
        return;
    CHECK_OK(quire_memory_preallocate(w->memory, bytes));
    w->promised = w->floor = bytes;
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK(stats.reserved_bytes >= bytes);
    for (uint32_t i = 0; i < MAX_PAGES; i++) /* some pages are new, and empty since now */
        w->empty_since[i] = w->time;
}

static void trim(world *w)
{
    quire_memory_stats before, after;
    uint64_t target = random_below(&rng, 1 << 20), released = 0;
    CHECK_OK(quire_memory_get_stats(w->memory, &before));
    CHECK_OK(quire_memory_trim(w->memory, target, &released));
    CHECK_OK(quire_memory_get_stats(w->memory, &after));
    CHECK_EQ(before.reserved_bytes - after.reserved_bytes, released);
    CHECK(after.empty_bytes <= target);
    w->promised = w->floor = 0;
    if (w->is_elastic)
        check_trimmed(w, target);
    check_kept(w, after.pages_destroyed);
}

/* Bytes of the largest image, and the most that its alignment and that of a buffer can take. */
enum { MAX_IMAGE = 64 * 64 * 16, MAX_PADDING = 2 * 4096 };

/* ---- operations --------------------------------------------------------------------------- */

static void accept(world *w, quire_allocation handle, bool committed, uint64_t alignment)
{
    model_allocation *a = &w->live[w->count++];
    *a = (model_allocation){.handle = handle, .key = ++w->next_key, .committed = committed};
    CHECK_OK(quire_allocation_get_info(w->memory, handle, &a->info));
    CHECK_EQ(a->info.committed, committed);
    CHECK(a->info.size >= a->info.requested);
    CHECK_EQ((a->info.address ? a->info.address : a->info.offset) & (alignment - 1), 0);
    w->live_bytes += a->info.size + a->info.left_padding;
    w->requested += a->info.requested;
    own(w, a, true);
    if (committed)
        write_pattern(w, a);
}

static void make_raw(world *w)
{
    char name[16];
    snprintf(name, sizeof name, "n%u", w->next_key);
    bool commit = random_below(&rng, 5) != 0;
    quire_allocation_options options = {
        .size = random_size(&rng, MAX_SIZE),
        .alignment = UINT64_C(1) << random_below(&rng, 13),
        .name = random_below(&rng, 3) ? NULL : name,
        .zero = random_below(&rng, 8) == 0,
        .dedicated = random_below(&rng, 20) == 0,
    };
    if (random_below(&rng, 8) == 0) { /* pages may begin at multiples of 16 only */
        options.alignment = UINT64_C(1) << random_below(&rng, 5);
        options.offset_alignment = 1 + random_below(&rng, 3000);
    }
    quire_allocation handle;
    quire_result result = commit ? quire_allocate(w->memory, &options, &handle)
                                 : quire_reserve(w->memory, &options, &handle);
    /* of the offset, the address and the granule together */
    uint64_t alignment = options.alignment > 256 ? options.alignment : 256;
    alignment *= options.offset_alignment ? options.offset_alignment : 1;
    if (!is_served(w, result, options.size + 2 * alignment))
        return;
    if (options.zero && commit)
        check_zero(w, handle, options.size);
    accept(w, handle, commit, options.alignment);
    if (options.offset_alignment)
        CHECK_EQ(w->live[w->count - 1].info.offset % options.offset_alignment, 0);
}

static void make_buffer(world *w)
{
    quire_buffer buffer;
    quire_buffer_options options = {.size = random_size(&rng, MAX_SIZE),
                                    .zero = random_below(&rng, 8) == 0};
    if (!is_served(w, quire_buffer_create(w->memory, &options, &buffer),
                   options.size + MAX_PADDING))
        return;
    if (options.zero)
        check_zero(w, buffer.allocation, options.size);
    accept(w, buffer.allocation, true, 64);
}

static void make_image(world *w)
{
    quire_image image;
    quire_image_options options = {
        .width = 1 + (uint32_t)random_below(&rng, 64),
        .height = 1 + (uint32_t)random_below(&rng, 64),
        .channel_count = 1 + (uint32_t)random_below(&rng, 4),
        .channel_type = (quire_channel_type)random_below(&rng, 5),
        .tiling = (quire_tiling)random_below(&rng, 2),
    };
    w->has_images |= options.tiling == QUIRE_TILING_OPTIMAL;
    if (!is_served(w, quire_image_create(w->memory, &options, &image), MAX_IMAGE + MAX_PADDING))
        return;
    accept(w, image.allocation, true, 64);
}

static void make_lazy(world *w)
{
    quire_allocation handle;
    const uint64_t size = w->info.page_size * (1 + random_below(&rng, MAX_LENGTH));
    const quire_allocation_options options = {.size = size, .lazy = true};
    quire_result result = quire_allocate(w->memory, &options, &handle);
    if (result == QUIRE_ERROR_OUT_OF_DEVICE_MEMORY && w->floor) { /* promised chunks keep theirs */
        CHECK_OK(quire_memory_trim(w->memory, 0, NULL));
        w->promised = w->floor = 0;
        w->refusals++;
        result = quire_allocate(w->memory, &options, &handle);
    }
    if (!is_served(w, result, size))
        return;
    model_allocation *a = &w->live[w->count++];
    *a = (model_allocation){
        .handle = handle, .key = ++w->next_key, .committed = true, .is_lazy = true};
    CHECK_OK(quire_allocation_get_info(w->memory, handle, &a->info));
    own(w, a, true);
}

/* A refusal for the limit, which the chunks in use and the missing ones must exceed. */
static void expect_limit(const world *w, quire_result result, uint64_t missing)
{
    uint64_t dedicated;
    CHECK_FAILS(result, QUIRE_ERROR_OVER_BUDGET);
    elastic_page(w, &dedicated);
    uint64_t used = chunks_in_use(w) * w->info.page_size + dedicated;
    used = used > w->floor ? used : w->floor;
    CHECK(w->limit && used + missing > w->limit);
    limits_met++;
}

/* Backs chunks, or takes their memory. */
static void change_lazy(world *w, model_allocation *a, bool backs)
{
    static unsigned char bytes[MAX_SIZE * 4];
    const uint64_t chunk = w->info.page_size, first = random_below(&rng, a->info.size / chunk);
    const uint64_t end = first + 1 + random_below(&rng, a->info.size / chunk - first);
    const quire_view range = {a->handle, first * chunk, (end - first) * chunk};
    quire_result result = backs ? quire_back_range(w->memory, &range, 1)
                                : quire_unback_range(w->memory, &range, 1, NULL);
    uint64_t changed = 0;
    for (uint64_t i = first; i < end; i++)
        changed += !a->chunks[i] == backs ? chunk : 0;
    if (backs && result) {
        expect_limit(w, result, changed);
        return;
    }
    CHECK_OK(result);
    use_chunks(w, a, false);
    for (uint64_t i = first; i < end; i++) {
        if (backs && !a->chunks[i]) {
            a->chunks[i] = ++w->next_key;
            fill_pattern(a->chunks[i], bytes, chunk);
            CHECK_OK(quire_write(w->memory, a->handle, i * chunk, bytes, chunk));
        }
        a->chunks[i] = backs ? a->chunks[i] : 0;
    }
    use_chunks(w, a, true);
    w->live_bytes += backs ? changed : 0 - changed;
    w->requested += backs ? changed : 0 - changed;
}

static void finish_reserved(world *w, model_allocation *a)
{
    CHECK_FAILS(quire_free(w->memory, a->handle), QUIRE_ERROR_WRONG_STATE);
    CHECK_OK(quire_commit(w->memory, a->handle));
    a->committed = true;
    write_pattern(w, a);
}

static void remove_at(world *w, int index)
{
    model_allocation *a = &w->live[index];
    while (a->maps) {
        CHECK_FAILS(quire_free(w->memory, a->handle), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_unmap(w->memory, a->handle));
        a->maps--;
    }
    uint64_t destroyed = pages_destroyed(w);
    /* an elastic page never counts as empty */
    bool is_kept = w->is_elastic && w->pages[a->info.page].size == w->info.address_space;
    own(w, a, false);
    CHECK_OK(quire_allocation_get_info(w->memory, a->handle, &a->info)); /* of the bytes it has */
    w->live_bytes -= a->info.backed + a->info.left_padding;
    w->requested -= a->is_lazy ? a->info.backed : a->info.requested;
    if (a->committed) {
        check_pattern(w, a);
        if (w->finds && a->info.address && random_below(&rng, 2))
            CHECK_OK(quire_free_at_address(w->memory, a->info.address, NULL));
        else
            CHECK_OK(quire_free(w->memory, a->handle));
    } else {
        CHECK_OK(quire_abort(w->memory, a->handle));
    }
    CHECK_FAILS(quire_free(w->memory, a->handle), QUIRE_ERROR_STALE_HANDLE);
    if (!w->pages[a->info.page].live && !is_kept)
        check_kept(w, destroyed);
    *a = w->live[--w->count];
}

static void map(world *w, model_allocation *a)
{
    void *pointer = NULL;
    if (!w->info.mappable) {
        CHECK_FAILS(quire_map(w->memory, a->handle, &pointer), QUIRE_ERROR_NOT_HOST_VISIBLE);
        return;
    }
    static unsigned char expected[MAX_SIZE * 4];
    CHECK_OK(quire_map(w->memory, a->handle, &pointer));
    a->maps++;
    if (a->is_lazy) /* of which some bytes have memory */
        return;
    fill_pattern(a->key, expected, a->info.requested);
    CHECK(!memcmp(pointer, expected, a->info.requested));
}

static void touch(world *w, model_allocation *a)
{
    if (!a->committed)
        finish_reserved(w, a);
    else if (random_below(&rng, 3) == 0)
        map(w, a);
    else if (a->is_lazy && random_below(&rng, 4))
        change_lazy(w, a, random_below(&rng, 5) < 3);
    else
        check_pattern(w, a);
}

/* ---- comparing ---------------------------------------------------------------------------- */

typedef struct counting {
    uint64_t live, bytes, requested;
} counting;

static bool count_item(void *user, const quire_item *item)
{
    counting *c = user;
    if (item->is_free)
        return true;
    c->live++;
    c->bytes += item->backed + item->left_padding;
    c->requested += item->requested < item->backed ? item->requested : item->backed;
    return true;
}

/* Returns the handle of the committed allocation with a byte of a page; 0 if there is none. */
static uint64_t owner_of(const world *w, uint32_t page, uint64_t byte)
{
    uint32_t key = w->pages[page].owner[byte];
    for (int i = 0; i < w->count; i++)
        if (w->live[i].key == key && key)
            return w->live[i].committed && byte >= w->live[i].info.offset ? w->live[i].handle.id
                                                                          : 0;
    return 0;
}

/* Looks up a random byte of each page, by device address and by host pointer. */
static void find_random(world *w)
{
    for (uint32_t i = 0; i < MAX_PAGES; i++) {
        if (!w->pages[i].owner)
            continue;
        const qi_device_page *native = &qi_page_at(&w->memory->pages, i)->native;
        const uint64_t bases[] = {native->native.address, (uintptr_t)native->host};
        for (int j = 0; j < 2; j++) {
            quire_allocation found;
            uint64_t byte = random_below(&rng, w->pages[i].size);
            if (!bases[j])
                continue;
            quire_result result = quire_memory_find(w->memory, bases[j] + byte, &found);
            CHECK_EQ(found.id, owner_of(w, i, byte));
            CHECK_EQ(result, found.id ? QUIRE_SUCCESS : QUIRE_ERROR_OUT_OF_RANGE);
        }
    }
}

static void compare(world *w)
{
    counting c = {0};
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(w->memory));
    CHECK_OK(quire_memory_walk(w->memory, count_item, &c));
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    CHECK_EQ(c.live, (uint64_t)w->count);
    CHECK_EQ(c.bytes, w->live_bytes);
    CHECK_EQ(stats.live_bytes, w->live_bytes);
    CHECK_EQ(stats.requested_bytes, w->requested);
    CHECK_EQ(stats.allocation_count, (uint64_t)w->count);
    CHECK_EQ(stats.pages_created - stats.pages_destroyed, stats.page_count);
    CHECK_EQ(stats.failures, w->refusals);
    if (w->is_elastic)
        check_chunks(w);
    if (w->finds)
        find_random(w);
    CHECK(stats.reserved_bytes >= w->promised);
    if (w->is_fake) {
        CHECK_EQ(w->fake.page_bytes, stats.reserved_bytes);
        CHECK_EQ(w->fake.pages, stats.page_count);
    }
}

/* ---- worlds ------------------------------------------------------------------------------- */

/* Few addresses and a small limit, so that both are met. */
static void make_elastic(world *w, quire_memory_options *options)
{
    const uint64_t chunk = UINT64_C(4096) << random_below(&rng, 5);
    w->policy = (quire_page_policy){
        .page_size = chunk,
        .dedicated_threshold = w->policy.dedicated_threshold,
        .retained_empty_bytes = w->policy.retained_empty_bytes,
        .retention_nanoseconds = w->policy.retention_nanoseconds,
    };
    options->pages = w->policy;
    options->elastic = true;
    options->shards = 1;
    options->fit.algorithm = QUIRE_FIT_SEGREGATED;
    options->address_space = UINT64_C(1) << (19 + random_below(&rng, 4));
    if (random_below(&rng, 2))
        options->limit = w->limit = (1 << 18) + random_below(&rng, 2 << 20);
}

static void begin_world(world *w, bool is_fake, bool is_elastic)
{
    static const uint64_t steps[] = {0, 16, 64, 4096 + 16, 256};
    memset(w, 0, sizeof *w);
    w->is_fake = is_fake;
    w->is_elastic = is_elastic;
    test_memory_init(&w->host_memory);
    if (is_fake) {
        fake_init(&w->fake);
        fake_offer_growth(&w->fake);
        w->fake.address_step = steps[random_below(&rng, sizeof steps / sizeof *steps)];
        if (is_elastic) /* such a page begins at a multiple of the granule */
            w->fake.address_step -= w->fake.address_step % 256;
        w->fake.info.limits.page_alignment =
            w->fake.address_step ? w->fake.address_step & (~w->fake.address_step + 1)
                                 : UINT64_C(1) << 32;
        quire_limits *limits = &w->fake.info.limits;
        if (limits->non_coherent_atom > limits->page_alignment) /* such kinds would be rejected */
            limits->non_coherent_atom = limits->page_alignment;
        limits->buffer_image_granularity = UINT64_C(1) << random_below(&rng, 13);
        CHECK_OK(fake_open(&w->fake, &w->host_memory.callbacks, &w->device));
    } else {
        quire_host_options host = {.device = {.host_memory = &w->host_memory.callbacks}};
        CHECK_OK(quire_host_open(&host, &w->device));
    }
    w->policy = random_policy(&rng);
    quire_memory_options options = {
        .shards = 1 + (uint32_t)random_below(&rng, 2),
        .clock = {read_time, w},
        .fit.algorithm = (quire_fit)random_below(&rng, 3), /* segregated, first, buddy */
        .kind.mask = UINT32_C(1) << random_below(&rng, 4),
        .pages = w->policy,
        .find_by_address = random_below(&rng, 2),
    };
    if (is_elastic)
        make_elastic(w, &options);
    w->finds = options.find_by_address;
    CHECK_OK(quire_memory_create(w->device, &options, &w->memory));
    CHECK_OK(quire_memory_get_info(w->memory, &w->info));
    w->parts_images = w->is_fake && w->fake.info.limits.buffer_image_granularity > 1024 &&
                      !is_elastic && options.fit.algorithm != QUIRE_FIT_FIRST;
    const quire_hook hook = {.event = see_page, .user = w, .kinds = QUIRE_EVENT_PAGE_MADE};
    CHECK_OK(quire_memory_set_hook(w->memory, &hook));
}

static void end_world(world *w)
{
    while (w->count)
        remove_at(w, (int)random_below(&rng, (uint64_t)w->count));
    compare(w);
    CHECK_OK(quire_memory_destroy(&w->memory));
    CHECK_OK(quire_device_destroy(&w->device));
    CHECK_EQ(w->host_memory.blocks, 0);
    CHECK_EQ(w->fake.pages + w->fake.objects + w->fake.maps, 0);
    CHECK(!w->is_fake || w->fake.ended);
}

static void step(world *w, uint64_t number)
{
    bool filling = number / 300 % 2 == 0;
    uint64_t what = random_below(&rng, 1000);
    w->time += random_below(&rng, 20);
    if (what < 10 && w->is_elastic && what >= 6)
        set_limit(w);
    else if (what < 3)
        trim(w);
    else if (what < 6)
        promise(w);
    else if (what < 200 && w->count)
        touch(w, &w->live[random_below(&rng, (uint64_t)w->count)]);
    else if ((what < (filling ? 700u : 500u) || !w->count) && w->count < MAX_LIVE)
        w->is_elastic &&what % 11 == 0 ? make_lazy(w)
        : what % 4 == 0                ? make_buffer(w)
        : what % 7 == 0                ? make_image(w)
                                       : make_raw(w);
    else
        remove_at(w, (int)random_below(&rng, (uint64_t)w->count));
    if (number % CHECK_EVERY == 0)
        compare(w);
}

static void run(bool is_fake, bool is_elastic)
{
    static world w;
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world(&w, is_fake, is_elastic);
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step(&w, i);
        end_world(&w);
    }
}

static void on_host(void)
{
    run(false, false);
}

static void on_fake(void)
{
    run(true, false);
}

static void elastic_on_host(void)
{
    run(false, true);
}

static void elastic_on_fake(void)
{
    run(true, true);
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 100000);
    seed = plain_option(argc, argv, "seed", 1);
    rng.state = seed;
    printf("# --seed %" PRIu64 " --steps %" PRIu64 " for each backend\n", seed, total_steps);
    plain_case("memories of the host backend", on_host);
    plain_case("memories of a backend with objects, dirty memory and odd addresses", on_fake);
    plain_case("elastic memories of the host backend", elastic_on_host);
    plain_case("elastic memories of the fake backend", elastic_on_fake);
    printf("# %" PRIu64 " requests met a limit and %" PRIu64 " the end of the addresses\n",
           limits_met, addresses_met);
    return plain_end();
}
