/*
 * stream_model.c - random work on eight streams against an oracle with a clock: no range is ever
 * handed out before all work on it is done, or is ordered before in the stream that gets the range;
 * and a range freed on a stream is available on that stream again without a wait.
 *
 * The device is simulated: work is submitted to a stream and finishes when the clock permits, in
 * the order of the stream and after the points of other streams that it was ordered after. For
 * every granule of every page the oracle knows the last work of each stream that used it.
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
    STEPS_A_WORLD = 20000
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
    uint32_t page;
    uint64_t begin, end; /* granules */
    int home;            /* the stream it was allocated on, or -1 */
    bool used[STREAMS];  /* used by work since it was allocated */
    bool recorded[STREAMS];
} model_allocation;

/* An allocation whose work is all submitted, and the point after it. */
typedef struct model_parked {
    quire_allocation handle;
    quire_point point;
} model_parked;

static struct world {
    fake_backend fake;
    test_memory host_memory;
    quire_device *device;
    quire_memory *memory;
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
            uint64_t work = w.touched[a->page][g * STREAMS + (uint64_t)i];
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
        w.touched[a->page][g * STREAMS + (uint64_t)stream] = s->submitted;
}

static bool is_done(const model_allocation *a)
{
    for (uint64_t g = a->begin; g < a->end; g++)
        for (int i = 0; i < STREAMS; i++)
            if (w.touched[a->page][g * STREAMS + (uint64_t)i] > w.streams[i].done)
                return false;
    return true;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static void allocate(void)
{
    model_allocation *a = &w.live[w.count];
    static const uint64_t usual[] = {512, 4096, 10000, 65536, 100000, MAX_SIZE};
    uint64_t size =
        random_below(&rng, 3) ? usual[random_below(&rng, 6)] : random_size(&rng, MAX_SIZE);
    const quire_allocation_options options = {.size = size,
                                              .alignment = UINT64_C(1) << random_below(&rng, 13)};
    *a = (model_allocation){.home = (int)random_below(&rng, STREAMS + 2) - 2};
    a->home = a->home < 0 ? -1 : a->home;
    if (a->home < 0)
        CHECK_OK(quire_allocate(w.memory, &options, &a->handle));
    else
        CHECK_OK(quire_allocate_on(w.memory, &options, w.streams[a->home].stream, &a->handle));
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(w.memory, a->handle, &info));
    CHECK(info.size >= size && !(info.address & (options.alignment - 1)));
    a->page = info.page;
    a->begin = info.offset / GRANULE;
    a->end = (info.offset + info.size + GRANULE - 1) / GRANULE;
    CHECK(a->page < MAX_PAGES && a->end <= GRANULES);
    if (!w.touched[a->page])
        w.touched[a->page] = calloc((size_t)GRANULES * STREAMS, sizeof **w.touched);
    check_handed_out(a);
    if (a->home >= 0)
        /* other streams may still use it; the stream is ordered after them */
        a->used[a->home] = true;
    w.count++;
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
        CHECK_OK(quire_free(w.memory, a.handle));
    else if (is_done(&a) && random_below(&rng, 2))
        CHECK_OK(quire_free(w.memory, a.handle));
    else if (random_below(&rng, 3))
        CHECK_OK(quire_free_on(w.memory, a.handle, w.streams[on].stream));
    else {
        CHECK_OK(quire_stream_mark(w.streams[on].stream, &point));
        if (w.parked_count < MAX_PARKED && random_below(&rng, 2))
            w.parked[w.parked_count++] = (model_parked){a.handle, point};
        else
            CHECK_OK(quire_free_after(w.memory, a.handle, &point));
    }
}

/* So that points pass in any order. */
static void free_parked(void)
{
    int index = (int)random_below(&rng, (uint64_t)w.parked_count);
    model_parked parked = w.parked[index];
    w.parked[index] = w.parked[--w.parked_count];
    CHECK_OK(quire_free_after(w.memory, parked.handle, &parked.point));
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
    if (number % CHECK_EVERY == 0)
        compare();
}

/* ---- worlds --------------------------------------------------------------------------------- */

static void begin_world(void)
{
    test_memory_init(&w.host_memory);
    fake_init(&w.fake);
    w.fake.info.heaps[0].size = UINT64_C(8) << 30;
    quire_backend *table = &w.fake.table;
    table->features |= QUIRE_BACKEND_STREAMS | (can_order ? QUIRE_BACKEND_STREAM_ORDER : 0);
    table->stream_create = create;
    table->stream_destroy = destroy;
    table->stream_mark = mark;
    table->stream_passed = passed;
    table->stream_await = await;
    table->stream_order = can_order ? order : NULL;
    CHECK_OK(fake_open(&w.fake, &w.host_memory.callbacks, &w.device));
    const quire_memory_options options = {
        .pages = {.page_size = PAGE,
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
    for (int i = 0; i < MAX_PAGES; i++) {
        free(w.touched[i]);
        w.touched[i] = NULL;
    }
}

static void run(bool orders)
{
    can_order = orders;
    early = elsewhere = 0;
    for (uint64_t done = 0; done < total_steps; done += STEPS_A_WORLD) {
        begin_world();
        for (uint64_t i = 0; i < STEPS_A_WORLD && done + i < total_steps; i++)
            step(i);
        end_world();
    }
    printf("# had again before its work was done: %" PRIu64 " times on the same stream, %" PRIu64
           " times after another\n",
           early, elsewhere);
#ifndef QUIRE_CHECKED
    CHECK(total_steps < 20000 || early > total_steps / 1000);
    CHECK(total_steps < 20000 || !can_order || elsewhere);
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
