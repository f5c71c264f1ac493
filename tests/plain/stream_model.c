/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * stream_model.c - random work on eight streams against an oracle with a clock: no range is ever
 * handed out before all work on it is done, or is ordered before in the stream that gets the range;
 * and a range freed on a stream is available on that stream again without a wait.
 *
 * The device is simulated: work is submitted to a stream and finishes when the clock permits, in
 * the order of the stream and after the points of other streams that it was ordered after. For
 * every granule of every page the oracle knows the last work of each stream that used it.
 *
 * The worlds differ in the fit, the shards, a limit, the granularity of images, and whether
 * allocations are found by address. Allocations are raw ranges, buffers and images. Where they are
 * found by address, the oracle is the list of live allocations: every address of a page is found
 * in the allocation that contains it, and nowhere else.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quire/quire.h"
#include "tests/support/fake.h"
#include "tests/support/plain.h"
#include "tests/support/random.h"

enum {
    STREAMS = 8,
    MAX_MARKS = 1 << 14,
    MAX_LIVE = 200,
    MAX_PARKED = 16,
    MAX_PAGES = 512,
    PAGE = 1 << 18,
    GRANULE = 256,
    GRANULES = 4 * PAGE / GRANULE, /* the granules of the largest page */
    MAX_SIZE = 3 * PAGE / 2,
    CHECK_EVERY = 256,
    STEPS_A_WORLD = 5000
};

/* Work of a stream that comes after a point of another. */
typedef struct gate {
    uint64_t begins; /* work of the stream above this */
    int other;
    uint64_t value;
} gate;

/* A point, and the work that is done when it has passed. */
typedef struct model_point {
    uint64_t work;
    uint32_t gates;          /* this many are open */
    uint64_t after[STREAMS]; /* work of the others, through any number of streams */
} model_point;

typedef struct model_stream {
    quire_stream *stream;
    uint64_t submitted, done;      /* pieces of work */
    uint64_t marked;               /* values handed out */
    model_point points[MAX_MARKS]; /* by value */
    uint64_t after[STREAMS];       /* all later work follows this work of the others */
    uint64_t passed_value;
    gate gates[MAX_MARKS];
    uint32_t gate_count, first_gate; /* those before it are open */
} model_stream;

typedef struct model_allocation {
    quire_allocation handle;
    quire_allocation_info info;
    bool optimal;        /* an image of optimal tiling */
    uint64_t begin, end; /* granules */
    int home;            /* the stream it was allocated on, or -1 */
    bool used[STREAMS];  /* used by work since it was allocated */
    bool recorded[STREAMS];
} model_allocation;

/* An allocation whose work is all submitted, and the point after it. */
typedef struct model_parked {
    model_allocation allocation;
    quire_point point;
} model_parked;

static struct world {
    fake_backend fake;
    test_memory host_memory;
    quire_device *device;
    quire_memory *memory;
    bool finds; /* by address */
    uint64_t limit, granularity;
    model_stream streams[STREAMS];
    uint64_t *touched[MAX_PAGES]; /* [granule][stream]: the last work */
    model_allocation live[MAX_LIVE];
    int count;
    model_parked parked[MAX_PARKED];
    int parked_count;
} w;

static test_random rng;
static bool can_order;
static uint64_t total_steps, seed;
/* ranges handed out before their work was done: same stream, others */
static uint64_t early, elsewhere;
static uint64_t found, refused; /* look-ups that found an allocation, and requests beyond a limit */

/* ---- the device ----------------------------------------------------------------------------- */

static model_stream *of(uint64_t number)
{
    return &w.streams[number - 1];
}

static quire_result create(void *state, const void *description, uint64_t *stream)
{
    static uint64_t next;
    (void)state;
    (void)description;
    *stream = next++ % STREAMS + 1;
    return QUIRE_SUCCESS;
}

static void destroy(void *state, uint64_t stream)
{
    (void)state;
    (void)stream;
}

static quire_result mark(void *state, uint64_t stream, uint64_t *value)
{
    model_stream *s = of(stream);
    (void)state;
    CHECK(s->marked + 1 < MAX_MARKS);
    model_point *made = &s->points[++s->marked];
    *made = (model_point){.work = s->submitted, .gates = s->gate_count};
    memcpy(made->after, s->after, sizeof made->after);
    made->after[stream - 1] = s->submitted;
    *value = s->marked;
    return QUIRE_SUCCESS;
}

/* Points pass if their work is done and their gates are open. */
static void pass(model_stream *s)
{
    for (; s->passed_value < s->marked; s->passed_value++) {
        const model_point *next = &s->points[s->passed_value + 1];
        if (next->work > s->done || next->gates > s->first_gate)
            return;
    }
}

/* Executes as much as the gates permit. */
static void advance(model_stream *s, uint64_t pieces)
{
    uint64_t to = s->done + pieces < s->submitted ? s->done + pieces : s->submitted;
    for (; s->first_gate < s->gate_count; s->first_gate++) {
        const gate *g = &s->gates[s->first_gate];
        if (w.streams[g->other].passed_value >= g->value)
            continue;
        if (to > g->begins)
            to = g->begins;
        break;
    }
    if (to > s->done)
        s->done = to;
    pass(s);
}

static quire_result passed(void *state, uint64_t stream, uint64_t *value)
{
    (void)state;
    for (int i = 0; i < STREAMS; i++)
        advance(&w.streams[i], 0);
    *value = of(stream)->passed_value;
    return QUIRE_SUCCESS;
}

static void run_all(void)
{
    for (int round = 0; round < STREAMS * STREAMS; round++)
        for (int i = 0; i < STREAMS; i++)
            advance(&w.streams[i], UINT32_MAX);
}

static quire_result await(void *state, uint64_t stream, uint64_t value, uint64_t nanoseconds,
                          bool *has_passed)
{
    uint64_t now = 0;
    if (nanoseconds)
        for (int round = 0; round < 64 * STREAMS && now < value; round++) {
            run_all();
            CHECK_OK(passed(state, stream, &now));
        }
    CHECK_OK(passed(state, stream, &now));
    *has_passed = now >= value;
    return QUIRE_SUCCESS;
}

static quire_result order(void *state, uint64_t later, uint64_t earlier, uint64_t value)
{
    model_stream *s = of(later);
    (void)state;
    CHECK(s->gate_count < MAX_MARKS);
    s->gates[s->gate_count++] =
        (gate){.begins = s->submitted, .other = (int)earlier - 1, .value = value};
    for (int i = 0; i < STREAMS; i++)
        if (s->after[i] < of(earlier)->points[value].after[i])
            s->after[i] = of(earlier)->points[value].after[i];
    return QUIRE_SUCCESS;
}

/* ---- the oracle ----------------------------------------------------------------------------- */

/* No work on the range is pending, except that of the stream that gets it. */
static void check_handed_out(const model_allocation *a)
{
    bool waits_own = false, waits_other = false;
    for (uint64_t g = a->begin; g < a->end; g++)
        for (int i = 0; i < STREAMS; i++) {
            uint64_t work = w.touched[a->info.page][g * STREAMS + (uint64_t)i];
            if (work <= w.streams[i].done)
                continue;
            if (i == a->home) {
                waits_own = true;
                continue;
            }
            CHECK(a->home >= 0 && w.streams[a->home].after[i] >= work);
            waits_other = true;
        }
    early += waits_own;
    elsewhere += waits_other;
}

static void work_on(model_allocation *a, int stream)
{
    model_stream *s = &w.streams[stream];
    s->submitted++;
    a->used[stream] = true;
    for (uint64_t g = a->begin; g < a->end; g++)
        w.touched[a->info.page][g * STREAMS + (uint64_t)stream] = s->submitted;
}

static bool is_done(const model_allocation *a)
{
    for (uint64_t g = a->begin; g < a->end; g++)
        for (int i = 0; i < STREAMS; i++)
            if (w.touched[a->info.page][g * STREAMS + (uint64_t)i] > w.streams[i].done)
                return false;
    return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static uint64_t any_size(void)
{
    static const uint64_t usual[] = {512, 4096, 10000, 65536, 100000, MAX_SIZE};
    return random_below(&rng, 3) ? usual[random_below(&rng, 6)] : random_size(&rng, MAX_SIZE);
}

/* On the fast path, in the ladder, as a batch of one, or reserved and committed. */
static quire_result make_raw(model_allocation *a, quire_stream *stream)
{
    quire_allocation_options options = {.size = any_size(),
                                        .alignment = UINT64_C(1) << random_below(&rng, 13),
                                        .name = random_below(&rng, 4) ? NULL : "raw",
                                        .stream = stream,
                                        .info = &a->info};
    if (random_below(&rng, 8) == 0) {
        options.alignment = 16;
        options.offset_alignment = 1 + random_below(&rng, 400);
    }
    uint64_t how = random_below(&rng, 8);
    quire_result result = how == 0   ? quire_allocate_batch(w.memory, &options, &a->handle, 1)
                          : how == 1 ? quire_reserve(w.memory, &options, &a->handle)
                                     : quire_allocate(w.memory, &options, &a->handle);
    if (!result && how == 1) {
        CHECK(!a->info.committed);
        CHECK_OK(quire_commit(w.memory, a->handle));
        a->info.committed = true;
    }
    CHECK(result || !(a->info.address & (options.alignment - 1)));
    return result;
}

static quire_result make_buffer(model_allocation *a, quire_stream *stream)
{
    quire_buffer buffer;
    quire_buffer_options options = {.size = any_size(),
                                    .name = random_below(&rng, 4) ? NULL : "buffer",
                                    .stream = stream,
                                    .info = &a->info};
    quire_result result = quire_buffer_create(w.memory, &options, &buffer);
    a->handle = buffer.allocation;
    return result;
}

static quire_result make_image(model_allocation *a, quire_stream *stream)
{
    quire_image image;
    a->optimal = random_below(&rng, 2);
    quire_image_options options = {.width = 32u << random_below(&rng, 4),
                                   .height = 64,
                                   .tiling =
                                       a->optimal ? QUIRE_TILING_OPTIMAL : QUIRE_TILING_LINEAR,
                                   .stream = stream,
                                   .info = &a->info};
    quire_result result = quire_image_create(w.memory, &options, &image);
    a->handle = image.allocation;
    return result;
}

/* No linear resource shares a stretch of the granularity with an image of optimal tiling. */
static void check_apart(const model_allocation *a)
{
    for (int i = 0; i < w.count; i++) {
        const quire_allocation_info *one = &a->info, *other = &w.live[i].info;
        if (w.live[i].optimal == a->optimal || other->page != one->page)
            continue;
        if (one->offset > other->offset) {
            other = one;
            one = &w.live[i].info;
        }
        CHECK((one->offset + one->size - 1) / w.granularity < other->offset / w.granularity);
    }
}

/* Compares all members but map_count; the padding between them has any value. */
static bool is_same(const quire_allocation_info *a, const quire_allocation_info *b)
{
    return a->page == b->page && a->offset == b->offset && a->left_padding == b->left_padding &&
           a->size == b->size && a->requested == b->requested && a->address == b->address &&
           a->dedicated == b->dedicated && a->object == b->object && a->native == b->native &&
           a->host == b->host && a->user_data == b->user_data && a->committed == b->committed;
}

static void allocate(void)
{
    model_allocation *a = &w.live[w.count];
    *a = (model_allocation){.home = (int)random_below(&rng, STREAMS + 2) - 2};
    a->home = a->home < 0 ? -1 : a->home;
    quire_stream *stream = a->home < 0 ? NULL : w.streams[a->home].stream;
    uint64_t what = random_below(&rng, 8);
    quire_result result = what == 0   ? make_image(a, stream)
                          : what <= 2 ? make_buffer(a, stream)
                                      : make_raw(a, stream);
    if (result) {
        CHECK(w.limit && result == QUIRE_ERROR_OVER_BUDGET && !a->handle.id && !a->info.size);
        refused++;
        return;
    }
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(w.memory, a->handle, &info));
    CHECK(info.size >= info.requested && is_same(&info, &a->info));
    a->begin = info.offset / GRANULE;
    a->end = (info.offset + info.size + GRANULE - 1) / GRANULE;
    CHECK(info.page < MAX_PAGES && a->end <= GRANULES);
    if (!w.touched[info.page])
        w.touched[info.page] = calloc((size_t)GRANULES * STREAMS, sizeof **w.touched);
    check_handed_out(a);
    check_apart(a);
    if (a->home >= 0)
        /* other streams may still use it; the stream is ordered after them */
        a->used[a->home] = true;
    w.count++;
}

static bool contains(const model_allocation *a, uint64_t address)
{
    return address >= a->info.address && address - a->info.address < a->info.size;
}

/* Returns the live allocation that contains an address, or NULL. */
static const model_allocation *owner_of(uint64_t address)
{
    for (int i = 0; i < w.count; i++)
        if (contains(&w.live[i], address))
            return &w.live[i];
    for (int i = 0; i < w.parked_count; i++)
        if (contains(&w.parked[i].allocation, address))
            return &w.parked[i].allocation;
    return NULL;
}

/* At or around an allocation, or anywhere in its page. */
static void look_up(void)
{
    const quire_allocation_info *near = &w.live[random_below(&rng, (uint64_t)w.count)].info;
    uint64_t at = random_below(&rng, 4) ? near->address + random_below(&rng, 3) * near->size / 2 -
                                              random_below(&rng, 2)
                                        : near->address - near->offset + random_below(&rng, PAGE);
    const model_allocation *expected = owner_of(at);
    quire_allocation handle;
    quire_result result = quire_memory_find(w.memory, at, &handle);
    CHECK_EQ(result, expected ? QUIRE_SUCCESS : QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_EQ(handle.id, expected ? expected->handle.id : 0);
    found += !result;
}

/* By handle or by address; `stream` may be NULL. */
static void free_now(const model_allocation *a, quire_stream *stream)
{
    if (w.finds && random_below(&rng, 2))
        CHECK_OK(quire_free_at_address(w.memory, a->info.address, stream));
    else if (stream)
        CHECK_OK(quire_free_on_stream(w.memory, a->handle, stream));
    else
        CHECK_OK(quire_free(w.memory, a->handle));
    CHECK_FAILS(quire_free(w.memory, a->handle), QUIRE_ERROR_STALE_HANDLE);
}

/* Frees as a careful caller does: every use by unfinished work is reported. */
static void free_one(int index)
{
    model_allocation a = w.live[index];
    w.live[index] = w.live[--w.count];
    int on = -1, others = 0;
    for (int i = 0; i < STREAMS; i++)
        if (a.used[i] && !a.recorded[i]) {
            others++;
            on = i;
        }
    /* the free can name one stream; the others are recorded first */
    for (int i = 0; i < STREAMS && others > 1; i++)
        if (a.used[i] && !a.recorded[i] && i != on)
            CHECK_OK(quire_record_use(w.memory, a.handle, w.streams[i].stream));
    quire_point point = {0};
    if (on < 0) /* nothing, or all of it recorded */
        free_now(&a, NULL);
    else if (is_done(&a) && random_below(&rng, 2))
        free_now(&a, NULL);
    else if (random_below(&rng, 3))
        free_now(&a, w.streams[on].stream);
    else {
        CHECK_OK(quire_stream_mark(w.streams[on].stream, &point));
        if (w.parked_count < MAX_PARKED && random_below(&rng, 2))
            w.parked[w.parked_count++] = (model_parked){a, point};
        else
            CHECK_OK(quire_free_after_point(w.memory, a.handle, &point));
    }
}

/* So that points pass in any order. */
static void free_parked(void)
{
    int index = (int)random_below(&rng, (uint64_t)w.parked_count);
    model_parked parked = w.parked[index];
    w.parked[index] = w.parked[--w.parked_count];
    CHECK_OK(quire_free_after_point(w.memory, parked.allocation.handle, &parked.point));
}

static void use_one(void)
{
    model_allocation *a = &w.live[random_below(&rng, (uint64_t)w.count)];
    int stream = (int)random_below(&rng, STREAMS);
    if (a->home >= 0 && (!can_order || random_below(&rng, 4)))
        stream = a->home;
    /* another stream must first wait for what the range was handed out with */
    if (a->home >= 0 && stream != a->home) {
        quire_point point;
        CHECK_OK(quire_stream_mark(w.streams[a->home].stream, &point));
        CHECK_OK(quire_stream_wait(w.streams[stream].stream, &point));
    }
    if (random_below(&rng, 4) == 0) {
        CHECK_OK(quire_record_use(w.memory, a->handle, w.streams[stream].stream));
        a->recorded[stream] = true;
    }
    work_on(a, stream);
}

static void compare(void)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_check(w.memory));
    CHECK_OK(quire_memory_get_stats(w.memory, &stats));
    CHECK_EQ(stats.allocation_count,
             (uint64_t)w.count + (uint64_t)w.parked_count + stats.deferred_count);
}

static void step(uint64_t number)
{
    uint64_t what = random_below(&rng, 100);
    if (what < 30 && w.count)
        use_one();
    else if (what < 55)
        advance(&w.streams[random_below(&rng, STREAMS)], 1 + random_below(&rng, 6));
    else if (what < 56)
        CHECK_OK(quire_collect(w.memory, NULL));
    else if (what < 62 && w.parked_count)
        free_parked();
    else if (w.count < MAX_LIVE && (!w.count || what < (number / 1000 % 2 ? 76u : 80u)))
        allocate();
    else if (w.count)
        free_one((int)random_below(&rng, (uint64_t)w.count));
    if (w.finds && w.count)
        look_up();
    if (number % CHECK_EVERY == 0)
        compare();
}

/* ---- worlds --------------------------------------------------------------------------------- */

static void begin_world(void)
{
    static uint64_t worlds;
    test_memory_init(&w.host_memory);
    fake_init(&w.fake);
    w.fake.info.heaps[0].size = UINT64_C(8) << 30;
    w.granularity = random_below(&rng, 2) ? 4096 : 1;
    w.fake.info.limits.buffer_image_granularity = w.granularity;
    quire_backend *table = &w.fake.table;
    table->features |= QUIRE_BACKEND_STREAMS | (can_order ? QUIRE_BACKEND_STREAM_ORDER : 0);
    table->stream_create = create;
    table->stream_destroy = destroy;
    table->stream_mark = mark;
    table->stream_passed = passed;
    table->stream_await = await;
    table->stream_order = can_order ? order : NULL;
    CHECK_OK(fake_open(&w.fake, &w.host_memory.callbacks, &w.device));
    static const quire_fit fits[] = {QUIRE_FIT_SEGREGATED, QUIRE_FIT_FIRST, QUIRE_FIT_BUDDY};
#ifdef QUIRE_CHECKED /* with red zones, ranges of the first fit share granules of the oracle */
    const quire_fit fit = fits[2 * random_below(&rng, 2)];
#else
    const quire_fit fit = fits[random_below(&rng, 3)];
#endif
    w.finds = worlds % 2;
    w.limit = worlds++ % 3 ? 0 : 10 * PAGE;
    const quire_memory_options options = {
        .fit.algorithm = fit,
        .shards = (uint32_t)random_below(&rng, 3), /* this thread works in one of them */
        .find_by_address = w.finds,
        .limit = w.limit,
        .pages = {.page_size = PAGE,
                  /* the granule of the first fit is a byte */
                  .size_granularity = fit == QUIRE_FIT_FIRST ? GRANULE : 0,
                  .dedicated_threshold = PAGE,
                  .retained_empty_bytes = random_below(&rng, 2) ? 1 : 0}};
    CHECK_OK(quire_memory_create(w.device, &options, &w.memory));
    for (int i = 0; i < STREAMS; i++) {
        memset(&w.streams[i], 0, sizeof w.streams[i]);
        CHECK_OK(quire_stream_create(w.device, NULL, &w.streams[i].stream));
    }
}

static void end_world(void)
{
    compare();
    while (w.count)
        free_one(w.count - 1);
    while (w.parked_count)
        free_parked();
    run_all();
    CHECK_OK(quire_collect(w.memory, NULL));
    run_all();
    quire_memory_destroy_all(&w.memory);
    for (int i = 0; i < STREAMS; i++)
        CHECK_OK(quire_stream_destroy(&w.streams[i].stream));
    CHECK_OK(quire_device_destroy(&w.device));
    CHECK_EQ(w.host_memory.blocks, 0);
    CHECK_EQ(w.fake.pages, 0);
    CHECK_EQ(w.fake.objects, 0);
    for (int i = 0; i < MAX_PAGES; i++) {
        free(w.touched[i]);
        w.touched[i] = NULL;
    }
}

static void run(bool orders)
{
    can_order = orders;
    early = elsewhere = found = refused = 0;
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world();
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step(i);
        end_world();
    }
    printf("# had again before its work was done: %" PRIu64 " times on the same stream, %" PRIu64
           " times after another; %" PRIu64 " found by address, %" PRIu64 " refused\n",
           early, elsewhere, found, refused);
#ifndef QUIRE_CHECKED
    CHECK(total_steps < 20000 || early > total_steps / 1000);
    CHECK(total_steps < 20000 || !can_order || elsewhere);
    CHECK(total_steps < 100000 || (found && refused));
#endif
    CHECK(can_order || !elsewhere);
}

static void ordered(void)
{
    run(true);
}

static void by_itself(void)
{
    run(false);
}

int main(int argc, char **argv)
{
    total_steps = plain_option(argc, argv, "steps", 100000);
    seed = plain_option(argc, argv, "seed", 1);
    rng.state = seed;
    printf("# --seed %" PRIu64 " --steps %" PRIu64 " of each kind\n", seed, total_steps);
    plain_case("streams that can be ordered", ordered);
    plain_case("streams that cannot", by_itself);
    return plain_end();
}
