/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compact_model.c - random operations on memories that are compacted in small steps meanwhile,
 * against a model that knows the bytes and the place of every allocation. On the host backend and
 * on the fake one, whose memory is dirty and whose pages lie at odd addresses.
 *
 * Only a step changes a place, and only that of an allocation that can move. Compared after each
 * step: the number of places that changed with the moves that were reported, the moves with the
 * limits, and the statistics before with those after. Compared now and then: places, alignments,
 * names, bytes and pointers of all, that none overlaps another, and which allocation has
 * an address.
 *
 *     compact_model [--steps N] [--seed N]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "quire/host.h"
#include "quire/quire.h"
#include "src/core/checked.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"
#include "tests/support/random_policy.h"

enum { MAX_LIVE = 250, MAX_SIZE = 20000, MAX_BATCH = 12, STEPS_A_WORLD = 1000, COMPARE_EVERY = 64 };

typedef struct item {
    quire_allocation handle;
    quire_allocation_info info;
    unsigned char *bytes; /* what it contains */
    uint64_t alignment;
    char name[12];
    bool is_movable, is_committed;
    int maps, holds;
    void *pointer; /* of the maps */
} item;

typedef struct world {
    test_memory host_memory;
    fake_backend fake;
    bool is_fake;
    quire_device *device;
    quire_memory *memory;
    quire_memory_info info;
    bool finds, is_movable; /* options of the memory */
    quire_compaction *compaction;
    quire_compact_stats done; /* of it */
    uint64_t time, limit, floor;
    item live[MAX_LIVE];
    uint32_t count;
    uint64_t last_number;
} world;

static test_random rng;
static uint64_t total_steps, moves, pages_freed, refusals;
static uint32_t shards; /* of every memory */

static item *random_item(world *w)
{
    return &w->live[random_below(&rng, w->count)];
}

static quire_memory_stats stats_of(const world *w)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(w->memory, &stats));
    return stats;
}

static quire_allocation_info info_of(const world *w, const item *i)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(w->memory, i->handle, &info));
    return info;
}

static bool can_move(const item *i)
{
    return i->is_movable && i->is_committed && !i->maps && !i->holds;
}

/* ---- contents ----------------------------------------------------------------------------- */

static void write_part(world *w, item *i, uint64_t offset, uint64_t size)
{
    for (uint64_t at = offset; at < offset + size; at++)
        i->bytes[at] = (unsigned char)random_next(&rng);
    CHECK_OK(quire_write(w->memory, i->handle, offset, i->bytes + offset, size));
}

static void read_all(world *w, const item *i)
{
    static unsigned char found[MAX_SIZE];
    CHECK_OK(quire_read(w->memory, i->handle, 0, found, i->info.requested));
    CHECK(!memcmp(found, i->bytes, i->info.requested));
}

static void rewrite(world *w, item *i)
{
    const uint64_t offset = random_below(&rng, i->info.requested);
    write_part(w, i, offset, 1 + random_below(&rng, i->info.requested - offset));
}

/* ---- allocations -------------------------------------------------------------------------- */

static void accept(world *w, const quire_allocation_options *options, quire_allocation handle,
                   bool is_movable, bool is_committed)
{
    item *i = &w->live[w->count++];
    *i = (item){.handle = handle,
                .alignment = options->alignment,
                .is_movable = is_movable,
                .is_committed = is_committed};
    i->info = info_of(w, i);
    CHECK_EQ(i->info.requested, options->size);
    i->bytes = malloc(options->size);
    CHECK(i->bytes);
    if (options->name)
        snprintf(i->name, sizeof i->name, "%s", options->name);
    if (is_committed)
        write_part(w, i, 0, options->size);
}

/* A limit may refuse a request. */
static bool is_served(const world *w, quire_result result)
{
    if (!result)
        return true;
    CHECK(w->limit);
    CHECK_EQ(result, QUIRE_ERROR_OVER_BUDGET);
    refusals++;
    return false;
}

typedef struct request {
    world *w;
    const quire_allocation_options *options;
    quire_allocation *made;
    uint64_t count;
    quire_result result;
} request;

static void *serve(void *user)
{
    request *r = user;
    r->result = quire_allocate_batch(r->w->memory, r->options, r->made, r->count);
    return NULL;
}

/* The other shards get allocations by other threads. */
static void serve_elsewhere(request *r)
{
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, serve, r), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void allocate_some(world *w, const quire_allocation_options *options, bool is_movable)
{
    quire_allocation made[MAX_BATCH];
    request r = {w, options, made, 1, QUIRE_SUCCESS};
    if (random_below(&rng, 8) == 0)
        r.count += random_below(&rng, MAX_BATCH);
    if (r.count > MAX_LIVE - w->count)
        r.count = MAX_LIVE - w->count;
    if (shards > 1 && random_below(&rng, 4) == 0)
        serve_elsewhere(&r);
    else
        serve(&r);
    if (!r.result || is_served(w, r.result))
        for (uint64_t i = 0; i < r.count; i++)
            accept(w, options, made[i], is_movable, true);
}

static void allocate(world *w)
{
    char name[12];
    quire_allocation handle;
    const uint64_t what = random_below(&rng, 20);
    snprintf(name, sizeof name, "n%u", (unsigned)(++w->last_number % 100000));
    quire_allocation_options options = {
        .size = random_size(&rng, MAX_SIZE),
        .alignment = UINT64_C(1) << random_below(&rng, 13),
        .name = random_below(&rng, 3) ? NULL : name,
        .dedicated = what == 0,
        .offset_alignment = what == 1 ? 1 + random_below(&rng, 3000) : 0,
        .movable = !w->is_movable && random_below(&rng, 6) != 0,
    };
    if (options.offset_alignment)
        options.alignment = UINT64_C(1) << random_below(&rng, 5);
    const bool is_movable =
        (options.movable || w->is_movable) && !options.dedicated && !options.offset_alignment;
    if (what != 2)
        allocate_some(w, &options, is_movable);
    else if (is_served(w, quire_reserve(w->memory, &options, &handle)))
        accept(w, &options, handle, is_movable, false);
}

static void make_buffer(world *w)
{
    quire_buffer buffer;
    const quire_buffer_options options = {.size = random_size(&rng, MAX_SIZE),
                                          .alignment = UINT64_C(1) << random_below(&rng, 10),
                                          .movable = random_below(&rng, 2)};
    if (!is_served(w, quire_buffer_create(w->memory, &options, &buffer)))
        return;
    accept(w, &(quire_allocation_options){.size = options.size, .alignment = options.alignment},
           buffer.allocation, options.movable || w->is_movable, true);
}

static void end(world *w, item *i)
{
    for (; i->maps; i->maps--)
        CHECK_OK(quire_unmap(w->memory, i->handle));
    for (; i->holds; i->holds--)
        CHECK_OK(quire_allocation_release(w->memory, i->handle));
    if (i->is_committed) {
        read_all(w, i);
        CHECK_OK(quire_free(w->memory, i->handle));
    } else {
        CHECK_OK(quire_abort(w->memory, i->handle));
    }
    CHECK_FAILS(quire_free(w->memory, i->handle), QUIRE_ERROR_STALE_HANDLE);
    free(i->bytes);
    *i = w->live[--w->count];
}

/* ---- what keeps an allocation ------------------------------------------------------------- */

static void map(world *w, item *i)
{
    void *pointer = NULL;
    CHECK_OK(quire_map(w->memory, i->handle, &pointer));
    CHECK(!i->maps || pointer == i->pointer);
    i->pointer = pointer;
    i->maps++;
    CHECK_OK(quire_invalidate(w->memory, i->handle, 0, 0));
    CHECK(!memcmp(pointer, i->bytes, i->info.requested));
}

static void unmap(world *w, item *i)
{
    CHECK_OK(quire_unmap(w->memory, i->handle));
    i->maps--;
}

static void hold(world *w, item *i, bool begins)
{
    CHECK_OK(begins ? quire_allocation_hold(w->memory, i->handle)
                    : quire_allocation_release(w->memory, i->handle));
    i->holds += begins ? 1 : -1;
}

static void touch(world *w, item *i)
{
    const uint64_t what = random_below(&rng, 10);
    if (!i->is_committed) {
        CHECK_OK(quire_commit(w->memory, i->handle));
        i->is_committed = true;
        write_part(w, i, 0, i->info.requested);
    } else if (i->maps) {
        unmap(w, i);
    } else if (i->holds) {
        hold(w, i, false);
    } else if (what == 0) {
        hold(w, i, true);
    } else if (what == 1 && w->info.mappable) {
        map(w, i);
    } else if (what < 5) {
        read_all(w, i);
    } else {
        rewrite(w, i);
    }
}

/* ---- compaction --------------------------------------------------------------------------- */

/* A step changed nothing but places, of those that can move. Returns how many. */
static uint64_t learn_places(world *w)
{
    uint64_t changed = 0;
    for (item *i = w->live; i < w->live + w->count; i++) {
        const quire_allocation_info now = info_of(w, i);
        if (now.page != i->info.page || now.offset != i->info.offset) {
            CHECK(can_move(i));
            changed++;
            i->info = now;
        }
    }
    return changed;
}

static void expect_limits(const quire_compact_limits *limits, const quire_compact_stats *before,
                          const quire_compact_stats *after)
{
    const uint64_t moved = after->moves - before->moves;
    const uint64_t bytes = after->bytes_moved - before->bytes_moved;
    CHECK(!limits->moves || moved <= limits->moves);
    CHECK(!limits->bytes || bytes <= limits->bytes || moved == 1);
    moves += moved;
    pages_freed += after->pages_freed - before->pages_freed;
}

static void step_compaction(world *w, const quire_compact_limits *limits)
{
    const quire_memory_stats before = stats_of(w);
    const quire_compact_stats so_far = w->done;
    CHECK_OK(quire_compact_step(w->compaction, limits, &w->done));
    const quire_memory_stats after = stats_of(w);
    expect_limits(limits, &so_far, &w->done);
    CHECK(learn_places(w) <= w->done.moves - so_far.moves);
    CHECK_EQ(after.allocation_count, before.allocation_count);
    CHECK_EQ(after.requested_bytes, before.requested_bytes);
    CHECK_EQ(after.live_bytes, before.live_bytes);
    CHECK_EQ(after.allocations, before.allocations);
    CHECK_EQ(after.frees, before.frees);
    CHECK(after.reserved_bytes <= before.reserved_bytes);
    CHECK(after.reserved_bytes == before.reserved_bytes || after.reserved_bytes >= w->floor);
}

static void begin_compaction(world *w)
{
    CHECK_OK(quire_compact_begin(w->memory, &w->compaction));
    w->done = (quire_compact_stats){.moves = 0};
}

static void end_compaction(world *w)
{
    quire_compact_end(&w->compaction);
    CHECK(!w->compaction);
}

/* From begin to end without another call between, after which there is nothing left to do. */
static void compact_all(world *w)
{
    const quire_compact_limits none = {0};
    for (int i = 0; i < 2; i++) {
        end_compaction(w);
        begin_compaction(w);
        step_compaction(w, &none);
        CHECK(w->done.is_complete);
        CHECK(w->done.pages_freed || !w->done.moves);
    }
    CHECK_EQ(w->done.moves, 0);
}

static void compact(world *w)
{
    if (!w->compaction)
        begin_compaction(w);
    const quire_compact_limits limits = {
        .moves = random_below(&rng, 3) ? 1 + random_below(&rng, 6) : 0,
        .bytes = random_below(&rng, 3) ? 0 : 1 + random_below(&rng, 40000),
        .records = random_below(&rng, 3) ? 0 : 1 + random_below(&rng, 40),
        .largest_free = random_below(&rng, 3) ? 0 : 1 + random_below(&rng, 50000),
    };
    if (random_below(&rng, 16) == 0)
        compact_all(w);
    else
        step_compaction(w, &limits);
    if (w->done.is_complete || random_below(&rng, 30) == 0)
        end_compaction(w);
}

/* ---- policies ----------------------------------------------------------------------------- */

static void change_policy(world *w)
{
    const uint64_t bytes = random_below(&rng, 2) ? random_below(&rng, 1 << 20) : 0;
    const uint64_t what = random_below(&rng, 3);
    if (what == 0) {
        CHECK_OK(quire_memory_trim(w->memory, bytes, NULL));
        w->floor = 0;
    } else if (what == 1) {
        CHECK_OK(quire_memory_set_limit(w->memory, bytes));
        w->limit = bytes;
        w->floor = 0; /* it may take what was promised */
    } else if (!w->limit) {
        CHECK_OK(quire_memory_preallocate(w->memory, bytes));
        w->floor = bytes;
    }
}

/* ---- comparing ---------------------------------------------------------------------------- */

static int by_place(const void *one, const void *other)
{
    const quire_allocation_info *a = one, *b = other;
    if (a->page != b->page)
        return a->page < b->page ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static void expect_apart(const world *w)
{
    static quire_allocation_info sorted[MAX_LIVE];
    for (uint32_t i = 0; i < w->count; i++)
        sorted[i] = w->live[i].info;
    qsort(sorted, w->count, sizeof *sorted, by_place);
    for (uint32_t i = 1; i < w->count; i++)
        CHECK(sorted[i].page != sorted[i - 1].page ||
              sorted[i - 1].offset + sorted[i - 1].size <=
                  sorted[i].offset - sorted[i].left_padding);
}

static void expect_found(const world *w, const item *i)
{
    quire_allocation found;
    const quire_allocation_info *info = &i->info;
    if (!w->finds || !info->address || !i->is_committed)
        return;
    CHECK_OK(quire_memory_find(w->memory, info->address + random_below(&rng, info->size), &found));
    CHECK_EQ(found.id, i->handle.id);
}

static void compare_one(world *w, item *i)
{
    char name[sizeof i->name];
    const quire_allocation_info now = info_of(w, i);
    CHECK_EQ(now.page, i->info.page);
    CHECK_EQ(now.offset, i->info.offset);
    CHECK_EQ(now.size, i->info.size);
    CHECK_EQ(now.address, i->info.address);
    CHECK_EQ((now.address ? now.address : now.offset) % i->alignment, 0);
    CHECK_OK(quire_allocation_get_name(w->memory, i->handle, name, sizeof name));
    CHECK(!strcmp(name, i->name));
    if (i->maps)
        CHECK(!memcmp(i->pointer, i->bytes, now.requested));
    if (i->is_committed && random_below(&rng, 4) == 0)
        read_all(w, i);
    expect_found(w, i);
}

static void compare(world *w)
{
    uint64_t requested = 0;
    CHECK_OK(quire_memory_check(w->memory));
    for (uint32_t i = 0; i < w->count; i++) {
        compare_one(w, &w->live[i]);
        requested += w->live[i].info.requested;
    }
    expect_apart(w);
    const quire_memory_stats stats = stats_of(w);
    CHECK_EQ(stats.allocation_count, w->count);
    CHECK_EQ(stats.requested_bytes, requested);
    if (w->is_fake) {
        CHECK_EQ(w->fake.page_bytes, stats.reserved_bytes);
        CHECK_EQ(w->fake.pages, stats.page_count);
    }
}

/* ---- worlds ------------------------------------------------------------------------------- */

static uint64_t read_time(void *user)
{
    return ((world *)user)->time;
}

static void open_fake(world *w)
{
    static const uint64_t steps[] = {0, 16, 64, 4096 + 16, 256};
    quire_limits *limits = &w->fake.info.limits;
    fake_init(&w->fake);
    if (random_below(&rng, 2))
        fake_offer_copies(&w->fake);
    w->fake.address_step = steps[random_below(&rng, sizeof steps / sizeof *steps)];
    limits->page_alignment = w->fake.address_step
                                 ? w->fake.address_step & (~w->fake.address_step + 1)
                                 : UINT64_C(1) << 32;
    if (limits->non_coherent_atom > limits->page_alignment) /* such kinds would be rejected */
        limits->non_coherent_atom = limits->page_alignment;
    CHECK_OK(fake_open(&w->fake, &w->host_memory.callbacks, &w->device));
}

static void begin_world(world *w, bool is_fake)
{
    memset(w, 0, sizeof *w);
    w->is_fake = is_fake;
    test_memory_init(&w->host_memory);
    if (is_fake)
        open_fake(w);
    else
        CHECK_OK(quire_host_open(
            &(quire_host_options){.device = {.host_memory = &w->host_memory.callbacks}},
            &w->device));
    w->finds = random_below(&rng, 2);
    w->is_movable = random_below(&rng, 2);
    const quire_memory_options options = {
        .shards = shards,
        .clock = {read_time, w},
        .kind.mask = UINT32_C(1) << random_below(&rng, 4),
        .pages = random_policy(&rng),
        .find_by_address = w->finds,
        .movable = w->is_movable,
        .map_on_demand = random_below(&rng, 3) == 0,
    };
    CHECK_OK(quire_memory_create(w->device, &options, &w->memory));
    CHECK_OK(quire_memory_get_info(w->memory, &w->info));
}

static void end_world(world *w)
{
    while (w->count)
        end(w, random_item(w));
    if (w->compaction)
        end_compaction(w);
    compare(w);
    CHECK_OK(quire_memory_destroy(&w->memory));
    CHECK_OK(quire_device_destroy(&w->device));
    CHECK_EQ(w->host_memory.blocks, 0);
    CHECK_EQ(w->fake.pages + w->fake.objects + w->fake.maps, 0);
}

static void step(world *w, uint64_t number)
{
    const bool fills = number / 250 % 2 == 0;
    const uint64_t what = random_below(&rng, 1000);
    w->time += random_below(&rng, 20);
    if (what < 5)
        change_policy(w);
    else if (what < 120)
        compact(w);
    else if (what < 300 && w->count)
        touch(w, random_item(w));
    else if ((what < (fills ? 720u : 560u) || !w->count) && w->count < MAX_LIVE)
        what % 16 ? allocate(w) : make_buffer(w);
    else
        end(w, random_item(w));
    if (number % COMPARE_EVERY == 0)
        compare(w);
}

static void run(bool is_fake)
{
    static world w;
    moves = pages_freed = 0;
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world(&w, is_fake);
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step(&w, i);
        end_world(&w);
    }
    CHECK(total_steps < STEPS_A_WORLD || (moves > total_steps / 100 && pages_freed));
    printf("# %" PRIu64 " moves, %" PRIu64 " pages freed\n", moves, pages_freed);
}

static void on_host(void)
{
    run(false);
}

static void on_fake(void)
{
    run(true);
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 100000);
    rng.state = plain_option(argc, argv, "seed", 1);
    printf("# --seed %" PRIu64 " --steps %" PRIu64 " for each case\n", rng.state, total_steps);
    if (QI_IS_CHECKED) {
        plain_skip("compaction", "checked builds move nothing");
        return plain_end();
    }
    shards = 1;
    plain_case("memories of the host backend", on_host);
    plain_case("memories of a backend with objects, dirty memory and odd addresses", on_fake);
    shards = 3;
    plain_case("memories of the host backend with three shards", on_host);
    plain_case("memories of a backend with objects, and three shards", on_fake);
    printf("# a limit refused %" PRIu64 " requests\n", refusals);
    return plain_end();
}
