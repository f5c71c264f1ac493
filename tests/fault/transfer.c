/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * transfer.c - every backend call and every host allocation of every way of a copy or fill fails,
 * once and from then on, with every code that a backend may answer: the code arrives, both
 * allocations are as they were and not in use, the source keeps its bytes, no host memory is lost,
 * and the same call succeeds afterwards.
 */
#include "src/core/state/memory.h"
#include "tests/fault/fault.h"
#include "tests/support/on_stream.h"
#include "tests/support/state.h"

enum { DEVICE = 0, COHERENT, CACHED, WINDOW, SIZE = 2500000 };

/* ---- the world ------------------------------------------------------------------------------ */

typedef struct world {
    test_memory host;
    fake_backend fakes[2];
    quire_device *devices[2];
    quire_memory *to, *from;
    quire_allocation target, source;
    quire_image image; /* in `to` */
    quire_stream *stream;
} world;

/* What a scenario is made of; how its ends are and what the backend lacks. */
typedef struct scenario {
    const char *name;
    uint32_t to, from;
    int where; /* 0: one device; 1: peers; 2: two backends */
    quire_backend_features lacks;
    fake_call unsupported;
    quire_result (*run)(world *w);
} scenario;

static unsigned char bytes[SIZE];

static quire_memory *memory_of(quire_device *device, uint32_t kind)
{
    quire_memory *memory;
    CHECK_OK(quire_memory_create(device, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind},
                                 &memory));
    return memory;
}

static void begin(world *w, const scenario *s)
{
    memset(w, 0, sizeof *w);
    test_memory_init(&w->host);
    for (int i = 0; i < 2; i++) {
        fake_init(&w->fakes[i]);
        fake_offer_copies(&w->fakes[i]);
        fake_offer_fill(&w->fakes[i]);
        fake_offer_streams(&w->fakes[i]);
        fake_leave_out(&w->fakes[i], s->lacks);
        w->fakes[i].unsupported = s->unsupported;
    }
    CHECK_OK(fake_open(&w->fakes[0], &w->host.callbacks, &w->devices[0]));
    if (s->where)
        CHECK_OK(fake_open(&w->fakes[s->where == 2], &w->host.callbacks, &w->devices[1]));
    w->to = memory_of(w->devices[0], s->to);
    w->from = memory_of(w->devices[s->where != 0], s->from);
    const quire_allocation_options options = {.size = SIZE};
    const quire_image_options image = {.width = 100, .height = 9, .tiling = QUIRE_TILING_LINEAR};
    CHECK_OK(quire_allocate(w->to, &options, &w->target));
    CHECK_OK(quire_allocate(w->from, &options, &w->source));
    CHECK_OK(quire_image_create(w->to, &image, &w->image));
    CHECK_OK(quire_stream_create(w->devices[0], NULL, &w->stream));
}

static void end(world *w)
{
    fake_stream_run(quire_stream_native(w->stream), UINT64_MAX);
    CHECK_OK(quire_stream_destroy(&w->stream));
    CHECK_OK(quire_free(w->to, w->target));
    CHECK_OK(quire_free(w->from, w->source));
    CHECK_OK(quire_free(w->to, w->image.allocation));
    CHECK_OK(quire_memory_destroy(&w->to));
    CHECK_OK(quire_memory_destroy(&w->from));
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_device_destroy(&w->devices[i]));
    CHECK_EQ(w->fakes[0].pages + w->fakes[1].pages, 0);
    CHECK_EQ(w->fakes[0].streams, 0);
    CHECK_EQ(w->host.blocks, 0);
    for (int i = 0; i < 2; i++)
        pthread_mutex_destroy(&w->fakes[i].lock);
}

/* ---- what is made to fail ------------------------------------------------------------------- */

static quire_copy_options whole(const world *w)
{
    return (quire_copy_options){.to = {.memory = w->to, .allocation = w->target},
                                .from = {.memory = w->from, .allocation = w->source},
                                .size = SIZE};
}

static quire_result copy_whole(world *w)
{
    quire_copy_options o = whole(w);
    return quire_copy(&o, NULL);
}

static quire_copy_options in_rows(const world *w)
{
    quire_copy_options o = whole(w);
    o.size = 100;
    o.rows = 3;
    o.slices = 2;
    o.to.row_pitch = 160;
    o.from.row_pitch = 128;
    return o;
}

static quire_result copy_rows(world *w)
{
    quire_copy_options o = in_rows(w);
    return quire_copy(&o, NULL);
}

static quire_result copy_in(world *w)
{
    quire_copy_options o = in_rows(w);
    o.from = (quire_copy_end){0};
    o.host_from = bytes;
    return quire_copy(&o, NULL);
}

static quire_result copy_out(world *w)
{
    quire_copy_options o = in_rows(w);
    o.to = (quire_copy_end){0};
    o.host_to = bytes;
    return quire_copy(&o, NULL);
}

static bool goes_on(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return done <= total;
}

static quire_result copy_in_steps(world *w)
{
    quire_copy_options o = whole(w);
    o.progress = (quire_progress){goes_on, NULL, 1000000};
    return quire_copy(&o, NULL);
}

static quire_result fill(world *w)
{
    return quire_fill(w->to, w->target,
                      &(quire_fill_options){.offset = 3, .size = 20000, .value = 7}, NULL);
}

static quire_result pass_image(world *w)
{
    quire_result result = quire_image_write(w->to, w->image, NULL, bytes, 0, 0);
    return result ? result : quire_image_read(w->to, w->image, NULL, bytes, 0, 0);
}

/* There is work before it. The core waits for that work if the backend cannot. */
static quire_result copy_in_order(world *w)
{
    quire_point done;
    quire_copy_options o = in_rows(w);
    fake_stream_submit(quire_stream_native(w->stream));
    quire_result result = copy_on_stream(w->stream, &o, &done);
    CHECK(!result || (!done.stream && !done.value));
    return result;
}

static quire_result fill_on(world *w)
{
    quire_point done;
    fake_stream_submit(quire_stream_native(w->stream));
    quire_result result =
        quire_fill(w->to, w->target, &(quire_fill_options){.value = 5, .stream = w->stream}, &done);
    CHECK(!result || (!done.stream && !done.value));
    return result;
}

enum { NO_PAGES = QUIRE_BACKEND_COPY_PAGES, NO_ROWS = QUIRE_BACKEND_ROWS };

static const scenario scenarios[] = {
    {"pages of a device", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, copy_whole},
    {"rows of pages", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, copy_rows},
    {"rows one by one", DEVICE, DEVICE, 0, NO_ROWS, FAKE_DESCRIBE, copy_rows},
    {"pages, in steps", DEVICE, WINDOW, 0, 0, FAKE_DESCRIBE, copy_in_steps},
    {"peers", DEVICE, DEVICE, 1, 0, FAKE_DESCRIBE, copy_whole},
    {"through the host", DEVICE, DEVICE, 2, 0, FAKE_DESCRIBE, copy_whole},
    {"rows through the host", DEVICE, DEVICE, 2, 0, FAKE_DESCRIBE, copy_rows},
    {"without copy_pages", DEVICE, DEVICE, 0, NO_PAGES, FAKE_DESCRIBE, copy_whole},
    {"copy_pages unsupported", DEVICE, DEVICE, 0, 0, FAKE_COPY_PAGES, copy_rows},
    {"copy_peer unsupported", DEVICE, DEVICE, 1, 0, FAKE_COPY_PEER, copy_whole},
    {"by the host", CACHED, CACHED, 0, 0, FAKE_DESCRIBE, copy_rows},
    {"from a mapping", DEVICE, CACHED, 2, 0, FAKE_DESCRIBE, copy_rows},
    {"into a mapping", CACHED, DEVICE, 2, NO_ROWS, FAKE_DESCRIBE, copy_rows},
    {"from host memory", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, copy_in},
    {"from host memory, row by row", DEVICE, DEVICE, 0, NO_ROWS, FAKE_DESCRIBE, copy_in},
    {"to host memory", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, copy_out},
    {"to host memory, not coherent", DEVICE, CACHED, 0, 0, FAKE_DESCRIBE, copy_out},
    {"a fill", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, fill},
    {"a fill without its function", DEVICE, DEVICE, 0, QUIRE_BACKEND_FILL, FAKE_DESCRIBE, fill},
    {"a fill of a mapping", CACHED, DEVICE, 0, 0, FAKE_DESCRIBE, fill},
    {"texels", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, pass_image},
    {"a copy on a stream", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, copy_in_order},
    {"rows on a stream", DEVICE, DEVICE, 0, NO_ROWS, FAKE_DESCRIBE, copy_in_order},
    {"a copy after a stream's work", DEVICE, DEVICE, 0, QUIRE_BACKEND_STREAM_COPY, FAKE_DESCRIBE,
     copy_in_order},
    {"a copy that the stream refuses", DEVICE, DEVICE, 0, 0, FAKE_STREAM_COPY, copy_in_order},
    {"a fill on a stream", DEVICE, DEVICE, 0, 0, FAKE_DESCRIBE, fill_on},
    {"a fill after a stream's work", DEVICE, DEVICE, 0, QUIRE_BACKEND_STREAM_FILL, FAKE_DESCRIBE,
     fill_on},
};

/* ---- the faults ----------------------------------------------------------------------------- */

static const quire_result codes[] = {QUIRE_ERROR_OUT_OF_DEVICE_MEMORY,
                                     QUIRE_ERROR_OUT_OF_HOST_MEMORY, QUIRE_ERROR_NOT_PERMITTED,
                                     QUIRE_ERROR_DEVICE_LOST, QUIRE_ERROR_BACKEND_FAILURE};

static const scenario *current;

/* Who fails: the n-th call of a backend, or of the host memory. */
static void plan(world *w, int who, uint64_t call, bool from_then, quire_result code)
{
    if (who < 2)
        fake_fail(&w->fakes[who], call, from_then, code);
    else
        test_memory_fail(&w->host, call, from_then);
}

static uint64_t calls_of(const world *w, int who)
{
    return who < 2 ? w->fakes[who].fallible_calls : w->host.calls;
}

static void fill_source(world *w)
{
    static unsigned char pattern[SIZE];
    if (!pattern[1])
        for (uint64_t i = 0; i < SIZE; i++)
            pattern[i] = (unsigned char)(i * 13 + i / 977);
    memcpy(bytes, pattern, SIZE); /* copies to the host write there */
    CHECK_OK(quire_write(w->from, w->source, 0, bytes, SIZE));
}

static void check_source(world *w)
{
    static unsigned char found[SIZE];
    CHECK_OK(quire_read(w->from, w->source, 0, found, SIZE));
    CHECK(!memcmp(found, bytes, SIZE));
}

/* The maps and uses of an allocation, of which a call that returned leaves none. */
static uint64_t uses_of(const quire_memory *memory, quire_allocation allocation)
{
    const qi_atomic_u64 *state = qi_slot_state(&memory->slots, qi_handle_slot(allocation.id));
    return qi_atomic_load_u64(state) & ((UINT64_C(1) << QI_PHASE_SHIFT) - 1);
}

static void check_unused(world *w)
{
    CHECK_EQ(uses_of(w->to, w->target), 0);
    CHECK_EQ(uses_of(w->from, w->source), 0);
    CHECK_EQ(uses_of(w->to, w->image.allocation), 0);
}

static void fail_once(world *w, int who, uint64_t call, bool from_then, quire_result code)
{
    uint64_t to = state_of_memory(w->to), from = state_of_memory(w->from);
    uint64_t blocks = w->host.blocks;
    plan(w, who, call, from_then, code);
    quire_result result = current->run(w);
    bool was_hit = calls_of(w, who) >= call;
    plan(w, who, 0, false, QUIRE_SUCCESS);
    CHECK(was_hit);
    CHECK_EQ(result, code);
    CHECK_EQ(quire_last_result(), code);
    CHECK_EQ(state_of_memory(w->to), to);
    CHECK_EQ(state_of_memory(w->from), from);
    CHECK_EQ(w->host.blocks, blocks);
    check_unused(w);
    fake_stream_run(quire_stream_native(w->stream), UINT64_MAX);
    CHECK_OK(quire_stream_destroy(&w->stream));
    CHECK_OK(quire_stream_create(w->devices[0], NULL, &w->stream));
    CHECK_OK(current->run(w));
}

typedef struct target {
    world w;
    int who;
    bool from_then;
    quire_result code;
} target;

static bool run(void *context, uint64_t call)
{
    target *t = context;
    fail_once(&t->w, t->who, call, t->from_then, t->code);
    return true;
}

static void fail_each(target *t)
{
    world *w = &t->w;
    CHECK_OK(current->run(w)); /* the first run records the uses of the stream */
    plan(w, t->who, 0, false, QUIRE_SUCCESS);
    CHECK_OK(current->run(w));
    uint64_t calls = calls_of(w, t->who);
    t->from_then = false;
    fault_sweep(run, t, calls);
    t->from_then = true;
    fault_sweep(run, t, calls);
}

static void sweep_target(target *t)
{
    begin(&t->w, current);
    fill_source(&t->w);
    fail_each(t);
    if (current->run != copy_out && current->run != pass_image)
        check_source(&t->w);
    end(&t->w);
}

static void sweep(const void *scenario_)
{
    static target t;
    current = scenario_;
    for (t.who = 0; t.who < 2; t.who++)
        for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
            t.code = codes[i];
            sweep_target(&t);
        }
    t.code = QUIRE_ERROR_OUT_OF_HOST_MEMORY; /* t.who: host memory */
    sweep_target(&t);
}

int main(int argc, char **argv)
{
    fault_begin(argc, argv);
    FAULT_TABLE(scenarios, sweep);
    return fault_end();
}
