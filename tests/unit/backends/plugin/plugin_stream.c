/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* plugin_stream.c - streams of a plugin: points by events, by queries of the stream, by waiting;
   order between streams; copies in order; streams of the caller. */
#include <dlfcn.h>

#include "quire/transfer.h"
#include "tests/support/plugin_bench.h"
#include "tests/support/on_stream.h"
#include "tests/support/stream_steps.h"
#include "tests/support/unit.h"

enum { SIZE = 3000 };

/* Offsets of the stream functions. */
enum {
    CREATE_STREAM = 56,
    QUERY_STREAM = 72,
    CREATE_EVENT = 88,
    RECORD_EVENT = 96,
    DESTROY_EVENT = 104,
    QUERY_EVENT = 112,
    WAIT_DEVICE = 120,
    WAIT_STREAM = 128,
    WAIT_EVENT = 136,
    ORDER = 144
};

static unsigned char in[SIZE], out[SIZE];

typedef struct world {
    plugin_bench b;
    quire_memory *memory;
    quire_allocation made;
    uint64_t address;
} world;

static void begin(world *w, const tp_options *options)
{
    quire_native native;
    plugin_bench_begin(&w->b, options);
    CHECK(plugin_bench_open(&w->b, 0, NULL));
    w->memory = plugin_bench_memory(&w->b, 0, 0, NULL);
    CHECK_OK(quire_allocate(w->memory, &(quire_allocation_options){.size = SIZE, .zero = true},
                            &w->made));
    CHECK_OK(quire_allocation_get_native(w->memory, w->made, &native));
    w->address = native.page.address + native.offset;
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_stream_create(w->b.device, NULL, &w->b.streams[i]));
    for (int i = 0; i < SIZE; i++)
        in[i] = (unsigned char)(i * 7 + 1);
}

static void end(world *w)
{
    plugin_bench_end(&w->b);
}

#define CASE(name, begin) UNIT_ON(plugin_stream, name, world, w, begin, end)

static quire_point write_on(world *w, int stream)
{
    quire_point done;
    const quire_copy_options options = {
        .to = {.memory = w->memory, .allocation = w->made}, .host_from = in, .size = SIZE};
    CHECK_OK(copy_on_stream(w->b.streams[stream], &options, &done));
    return done;
}

static bool is_written(world *w)
{
    CHECK(w->b.tp->look(w->address, out, SIZE));
    return !memcmp(in, out, SIZE);
}

/* ---- points --------------------------------------------------------------------------------- */

CASE(a_copy_is_done_when_its_point_has_passed, begin(w, NULL))
{
    w->b.tp->hold(true);
    quire_point done = write_on(w, 0);
    CHECK(done.stream == w->b.streams[0] && done.value);
    CHECK(!has_passed(done) && !is_written(w));
    w->b.tp->hold(false);
    CHECK(has_passed(done));
    CHECK(is_written(w));
    CHECK(w->b.tp->calls(QUERY_EVENT) > 0 && !w->b.tp->calls(QUERY_STREAM));
}

CASE(waiting_without_a_limit_sleeps_for_the_event, begin(w, NULL))
{
    w->b.tp->hold(true);
    quire_point first = write_on(w, 0), last = write_on(w, 0);
    CHECK_OK(quire_point_await(&first, QUIRE_FOREVER));
    CHECK_EQ(w->b.tp->calls(WAIT_EVENT), 1);
    CHECK(is_written(w));
    CHECK(!has_passed(last));
    CHECK_OK(quire_point_await(&last, QUIRE_FOREVER));
}

CASE(waiting_with_a_limit_asks, begin(w, NULL))
{
    w->b.tp->hold(true);
    quire_point done = write_on(w, 0);
    CHECK_FAILS(quire_point_await(&done, 0), QUIRE_ERROR_BUSY);
    CHECK_FAILS(quire_point_await(&done, 2000000), QUIRE_ERROR_BUSY);
    CHECK(w->b.tp->calls(QUERY_EVENT) < 60); /* nothing spins */
    CHECK_EQ(w->b.tp->calls(WAIT_EVENT), 0);
    w->b.tp->hold(false);
    CHECK_OK(quire_point_await(&done, 1000000000));
    CHECK(is_written(w));
}

CASE(events_are_used_again, begin(w, NULL))
{
    for (int i = 0; i < 100; i++) {
        quire_point done = write_on(w, 0);
        CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    }
    CHECK(w->b.tp->calls(CREATE_EVENT) <= 2);
    w->b.tp->hold(true);
    for (int i = 0; i < 100; i++)
        write_on(w, 1);
    w->b.tp->hold(false);
}

/* Every combination of functions that can report that a point has passed. */
UNIT(plugin_stream, points_without_some_functions)
{
    static const struct {
        uint64_t absent;
        bool can_ask, gives_no_events;
    } CASES[] = {
        {TP_BIT(QUERY_EVENT), true, false},
        {TP_BIT(WAIT_EVENT), true, false},
        {TP_BIT(QUERY_STREAM), true, false},
        {TP_BIT(QUERY_EVENT) | TP_BIT(QUERY_STREAM), false, false},
        {TP_BIT(CREATE_EVENT), true, false},
        {TP_BIT(RECORD_EVENT) | TP_BIT(WAIT_STREAM), true, false},
        {TP_BIT(DESTROY_EVENT) | TP_BIT(QUERY_STREAM), false, false},
        {TP_BIT(CREATE_EVENT) | TP_BIT(QUERY_STREAM) | TP_BIT(WAIT_STREAM), false, false},
        {TP_BIT(CREATE_EVENT) | TP_BIT(WAIT_DEVICE) | TP_BIT(WAIT_STREAM), true, false},
        {0, true, true},
        {TP_BIT(QUERY_STREAM), false, true},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        world w;
        begin(&w, &(tp_options){.absent = CASES[i].absent,
                                .gives_no_events = CASES[i].gives_no_events});
        quire_point done = write_on(&w, 0);
        CHECK_EQ(has_passed(done), CASES[i].can_ask);
        if (!CASES[i].can_ask)
            CHECK_FAILS(quire_point_await(&done, 1000), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
        CHECK(is_written(&w));
        plugin_bench_end(&w.b);
    }
}

UNIT(plugin_stream, no_streams_without_a_way_to_wait)
{
    static const uint64_t ABSENT[] = {TP_BIT(CREATE_STREAM), TP_BIT(64),
                                      TP_BIT(CREATE_EVENT) | TP_BIT(QUERY_STREAM) |
                                          TP_BIT(WAIT_STREAM) | TP_BIT(WAIT_DEVICE)};
    for (size_t i = 0; i < sizeof ABSENT / sizeof *ABSENT; i++) {
        plugin_bench b;
        quire_stream *none = NULL;
        plugin_bench_begin(&b, &(tp_options){.absent = ABSENT[i]});
        CHECK(plugin_bench_open(&b, 0, NULL));
        CHECK_FAILS(quire_stream_create(b.device, NULL, &none), QUIRE_ERROR_UNSUPPORTED);
        plugin_bench_end(&b);
    }
}

/* ---- order ---------------------------------------------------------------------------------- */

CASE(one_stream_behind_another, begin(w, NULL))
{
    quire_point first, last;
    w->b.tp->hold(true);
    first = write_on(w, 0);
    CHECK_OK(quire_stream_wait(w->b.streams[1], &first));
    CHECK_EQ(w->b.tp->calls(ORDER), 1);
    CHECK_OK(quire_stream_mark(w->b.streams[1], &last));
    CHECK(!is_written(w));
    CHECK_OK(quire_point_await(&last, QUIRE_FOREVER));
    CHECK(is_written(w));
    CHECK_OK(quire_stream_wait(w->b.streams[1], &first)); /* has passed */
    CHECK_EQ(w->b.tp->calls(ORDER), 1);
}

UNIT(plugin_stream, order_that_the_plugin_has_not)
{
    world w;
    begin(&w, &(tp_options){.absent = TP_BIT(ORDER)});
    w.b.tp->hold(true);
    quire_point first = write_on(&w, 0);
    CHECK_FAILS(quire_stream_wait(w.b.streams[1], &first), QUIRE_ERROR_UNSUPPORTED);
    plugin_bench_end(&w.b);

    begin(&w, &(tp_options){.gives_no_events = true});
    w.b.tp->hold(true);
    first = write_on(&w, 0);
    CHECK_FAILS(quire_stream_wait(w.b.streams[1], &first), QUIRE_ERROR_UNSUPPORTED);
    plugin_bench_end(&w.b);
}

/* ---- copies --------------------------------------------------------------------------------- */

/* Complete on return, after the work of the stream. */
UNIT(plugin_stream, copies_that_the_plugin_has_not_on_streams)
{
    world w;
    begin(&w, &(tp_options){.absent = TP_BIT(304)});
    quire_point done = write_on(&w, 0);
    CHECK(!done.stream);
    CHECK(is_written(&w));
    plugin_bench_end(&w.b);

    begin(&w, &(tp_options){.gives_no_streams = true});
    done = write_on(&w, 0);
    CHECK(is_written(&w));
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    plugin_bench_end(&w.b);
}

/* Copies up, within the device, and down: each on a stream, or complete on return if that function
   is missing. */
static void there_and_back(uint64_t absent, bool waits)
{
    world w;
    quire_allocation other;
    quire_point done[3];
    begin(&w, &(tp_options){.absent = absent});
    CHECK_OK(quire_allocate(w.memory, &(quire_allocation_options){.size = SIZE}, &other));
    w.b.tp->hold(true);
    memset(out, 0, SIZE);
    const quire_copy_end first = {.memory = w.memory, .allocation = w.made},
                         second = {.memory = w.memory, .allocation = other};
    const quire_copy_options ways[] = {{.to = first, .host_from = in, .size = SIZE},
                                       {.to = second, .from = first, .size = SIZE},
                                       {.host_to = out, .from = second, .size = SIZE}};
    for (int i = 0; i < 3; i++)
        CHECK_OK(copy_on_stream(w.b.streams[0], &ways[i], &done[i]));
    CHECK_EQ(memcmp(in, out, SIZE) != 0, waits);
    CHECK_OK(quire_point_await(&done[2], QUIRE_FOREVER));
    CHECK(!memcmp(in, out, SIZE));
    plugin_bench_end(&w.b);
}

UNIT(plugin_stream, copies_of_every_way)
{
    there_and_back(0, true);
    there_and_back(TP_BIT(304), true);
    there_and_back(TP_BIT(320), true);
    there_and_back(TP_BIT(312), false);
    there_and_back(TP_BIT(304) | TP_BIT(312) | TP_BIT(320) | TP_BIT(328), false);
}

CASE(fills_are_done_on_return, begin(w, NULL))
{
    quire_point done;
    CHECK_OK(quire_fill(w->memory, w->made,
                        &(quire_fill_options){.size = SIZE, .value = 9, .stream = w->b.streams[0]},
                        &done));
    CHECK(w->b.tp->look(w->address, out, SIZE));
    CHECK(out[0] == 9 && out[SIZE - 1] == 9);
}

/* Like custom_cpu, Paddle's example: null streams and events, and no query functions. */
UNIT(plugin_stream, a_plugin_that_does_everything_at_once)
{
    static const uint64_t ABSENT[] = {TP_BIT(QUERY_EVENT) | TP_BIT(QUERY_STREAM) | TP_BIT(232),
                                      TP_BIT(QUERY_EVENT) | TP_BIT(QUERY_STREAM) |
                                          TP_BIT(WAIT_STREAM)};
    for (size_t i = 0; i < sizeof ABSENT / sizeof *ABSENT; i++) {
        world w;
        quire_point point;
        quire_memory_stats stats;
        begin(&w, &(tp_options){.gives_no_streams = true, .absent = ABSENT[i]});
        write_on(&w, 0);
        CHECK(is_written(&w));
        CHECK_OK(quire_stream_mark(w.b.streams[0], &point));
        CHECK(has_passed(point));
        CHECK_OK(quire_free_on_stream(w.memory, w.made, w.b.streams[0]));
        CHECK_OK(quire_collect(w.memory, NULL));
        CHECK_OK(quire_memory_get_stats(w.memory, &stats));
        CHECK_EQ(stats.allocation_count, 0);
        plugin_bench_end(&w.b);
    }
}

/* Two devices with a stream each. */
UNIT_ON(plugin_stream, a_copy_between_devices_on_either_stream, world, w, (void)w, end)
{
    quire_stream *other = NULL;
    quire_allocation target;
    begin(w, &(tp_options){.device_count = 2});
    CHECK(plugin_bench_open(&w->b, 1, NULL));
    quire_memory *peer = plugin_bench_memory(&w->b, 1, 0, NULL);
    CHECK_OK(quire_allocate(peer, &(quire_allocation_options){.size = SIZE}, &target));
    CHECK_OK(quire_stream_create(w->b.devices[1], NULL, &other));
    quire_stream *streams[] = {w->b.streams[0], other};
    CHECK_OK(quire_write(w->memory, w->made, 0, in, SIZE));
    for (int i = 0; i < 2; i++) {
        quire_point done;
        const quire_copy_options options = {.to = {.memory = peer, .allocation = target},
                                            .from = {.memory = w->memory, .allocation = w->made},
                                            .size = SIZE};
        CHECK_OK(quire_fill(peer, target, &(quire_fill_options){.size = SIZE}, NULL));
        CHECK_OK(copy_on_stream(streams[i], &options, &done));
        CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
        CHECK_EQ(w->b.tp->calls(328), i + 1);
        CHECK_OK(quire_read(peer, target, 0, out, SIZE));
        CHECK(!memcmp(in, out, SIZE));
    }
    CHECK_OK(quire_stream_destroy(&other));
}

/* ---- streams of the caller's ---------------------------------------------------------------- */

/* Returns a function of the test plugin by its offset. */
static void *function_at(uint32_t offset)
{
    static unsigned char block[4096];
    unsigned char params[1024] = {0}, *interface = block;
    size_t size = 88;
    void (*init)(void *) = NULL;
    void *library = dlopen(TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL), *function = NULL;
    CHECK(library);
    void *found = dlsym(library, "InitPlugin");
    memcpy(&init, &found, sizeof init);
    memcpy(params, &size, sizeof size);
    memcpy(params + 8, &interface, sizeof interface);
    init(params);
    memcpy(&function, block + offset, sizeof function);
    dlclose(library);
    return function;
}

UNIT_ON(plugin_stream, a_stream_that_exists_is_taken_and_left, world, w, (void)w, end)
{
    quire_stream *wrapped = NULL;
    void *own = NULL, *told = NULL;
    int32_t device = 3;
    int32_t (*create)(int32_t *, void **) = NULL, (*destroy)(int32_t *, void *) = NULL;
    void *functions[] = {function_at(CREATE_STREAM), function_at(64)};
    memcpy(&create, &functions[0], sizeof create);
    memcpy(&destroy, &functions[1], sizeof destroy);
    begin(w, NULL);
    CHECK_EQ(create(&device, &own), 0);
    CHECK_OK(quire_plugin_stream_wrap(w->b.device, own, "mine", &wrapped));
    CHECK_OK(quire_plugin_get_stream(wrapped, &told));
    CHECK(told == own);
    CHECK_OK(quire_plugin_get_stream(w->b.streams[0], &told));
    CHECK(told && told != own);
    quire_stream *before = w->b.streams[0];
    w->b.streams[0] = wrapped;
    quire_point done = write_on(w, 0);
    CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
    CHECK(is_written(w));
    w->b.streams[0] = before;
    CHECK_OK(quire_stream_destroy(&wrapped));
    CHECK_EQ(destroy(&device, own), 0); /* it was still there */
}
