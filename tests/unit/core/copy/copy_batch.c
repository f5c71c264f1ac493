/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_batch.c - batches of writes and reads: how they reach the bytes of each kind of memory, what
 * the backend gets, the order, and what is refused before a byte is copied.
 */
#include "tests/support/fixture.h"
#include "tests/support/host_memory.h"
#include "tests/support/random.h"
#include "tests/support/stream_steps.h"

enum { DEVICE = 0, COHERENT = 1, CACHED = 2, KINDS = 3, SIZE = 1000, ITEMS = 5000 };

static const quire_backend_features LISTS =
    QUIRE_BACKEND_COPY_MANY | QUIRE_BACKEND_STREAM_WRITE_MANY;

typedef struct world {
    fixture f;
    quire_stream *stream;
    quire_allocation a, b;
} world;

static unsigned char data[SIZE], back[SIZE];

static void prepare(world *w)
{
    fixture_prepare(&w->f);
    fake_offer_flush_many(&w->f.fake);
    fake_offer_copies(&w->f.fake);
    fake_offer_fill(&w->f.fake);
    fake_offer_streams(&w->f.fake);
    fake_offer_batches(&w->f.fake);
    for (int i = 0; i < SIZE; i++)
        data[i] = (unsigned char)(i * 3 + 1);
}

static void open_world(world *w, uint32_t kind)
{
    fixture_open(&w->f, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind});
    CHECK_OK(quire_stream_create(w->f.device, NULL, &w->stream));
    w->a = ALLOCATE(&w->f, .size = SIZE, .zero = true);
    w->b = ALLOCATE(&w->f, .size = SIZE, .zero = true);
    memset(w->f.fake.calls, 0, sizeof w->f.fake.calls);
    w->f.fake.synced_ranges = 0;
}

static void end_world(world *w)
{
    CHECK_OK(quire_stream_destroy(&w->stream));
    fixture_end(&w->f);
}

static uint64_t calls(const world *w, fake_call call)
{
    return w->f.fake.calls[call];
}

/* Four bytes at each multiple of eight. */
static void make_items(const world *w, quire_write_item *writes, quire_read_item *reads,
                       uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        quire_allocation to = i % 2 ? w->a : w->b;
        uint64_t at = i * 8 % (SIZE - 8);
        writes[i] = (quire_write_item){to, at, data + at, 4};
        reads[i] = (quire_read_item){to, at, back + at, 4};
    }
}

static void expect_items(const quire_read_item *reads, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        CHECK(!memcmp(back + reads[i].offset, data + reads[i].offset, 4));
    memset(back, 0, sizeof back);
}

UNIT(copy_batch, a_backend_gets_one_list)
{
    static quire_write_item writes[ITEMS];
    static quire_read_item reads[ITEMS];
    static const struct {
        uint64_t count, calls;
    } cases[] = {{1, 1}, {64, 1}, {65, 1}, {1000, 1}, {4096, 1}, {5000, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        world w;
        prepare(&w);
        open_world(&w, DEVICE);
        make_items(&w, writes, reads, cases[i].count);
        CHECK_OK(quire_write_batch(w.f.memory, writes, cases[i].count, NULL, NULL));
        CHECK_EQ(calls(&w, FAKE_WRITE_MANY), cases[i].calls);
        CHECK_OK(quire_read_batch(w.f.memory, reads, cases[i].count));
        CHECK_EQ(calls(&w, FAKE_READ_MANY), cases[i].calls);
        CHECK_EQ(calls(&w, FAKE_COPY_TO) + calls(&w, FAKE_COPY_FROM), 0);
        expect_items(reads, cases[i].count);
        end_world(&w);
    }
}

/* Nothing needs more memory than there is on the stack. */
UNIT(copy_batch, without_host_memory_the_lists_are_shorter)
{
    static quire_write_item writes[200];
    static quire_read_item reads[200];
    test_memory host;
    world w;
    test_memory_init(&host);
    prepare(&w);
    CHECK_OK(fake_open(&w.f.fake, &host.callbacks, &w.f.device));
    CHECK_OK(quire_memory_create(w.f.device, &(quire_memory_options){.kind.mask = 1}, &w.f.memory));
    w.a = ALLOCATE(&w.f, .size = SIZE);
    w.b = ALLOCATE(&w.f, .size = SIZE);
    make_items(&w, writes, reads, 200);
    test_memory_fail(&host, 1, true);
    CHECK_OK(quire_write_batch(w.f.memory, writes, 200, NULL, NULL));
    CHECK_EQ(calls(&w, FAKE_WRITE_MANY), 4);
    CHECK_EQ(w.f.fake.longest_list, 64);
    CHECK_OK(quire_read_batch(w.f.memory, reads, 200));
    test_memory_fail(&host, 0, false);
    expect_items(reads, 200);
    fixture_end(&w.f);
    CHECK_EQ(host.blocks, 0);
}

/* Without lists, and where the backend refuses them, one call for each item. */
UNIT_EACH(copy_batch, without_lists_each_item_is_a_call, world, w, refuses, 0, 2, prepare(w),
          end_world)
{
    quire_write_item writes[100];
    quire_read_item reads[100];
    if (!refuses)
        fake_leave_out(&w->f.fake, LISTS);
    open_world(w, DEVICE);
    make_items(w, writes, reads, 100);
    w->f.fake.unsupported = refuses ? FAKE_WRITE_MANY : FAKE_DESCRIBE;
    CHECK_OK(quire_write_batch(w->f.memory, writes, 100, NULL, NULL));
    CHECK_EQ(calls(w, FAKE_COPY_TO), 100);
    w->f.fake.unsupported = refuses ? FAKE_READ_MANY : FAKE_DESCRIBE;
    CHECK_OK(quire_read_batch(w->f.memory, reads, 100));
    CHECK_EQ(calls(w, FAKE_COPY_FROM), 100);
    CHECK_STR(quire_last_error(), "");
    expect_items(reads, 100);
}

UNIT_EACH(copy_batch, mapped_memory_is_copied_by_the_host_and_flushed_in_lists, world, w, kind,
          COHERENT, CACHED + 1, prepare(w), end_world)
{
    enum { COUNT = 120, RANGES = 2 * (SIZE + 63) / 64 };
    quire_write_item writes[COUNT];
    quire_read_item reads[COUNT];
    open_world(w, kind);
    make_items(w, writes, reads, COUNT);
    CHECK_OK(quire_write_batch(w->f.memory, writes, COUNT, NULL, NULL));
    CHECK_EQ(calls(w, FAKE_FLUSH_MANY), kind == CACHED ? 2 : 0);
    CHECK_EQ(calls(w, FAKE_INVALIDATE_MANY), 0);
    CHECK_OK(quire_read_batch(w->f.memory, reads, COUNT));
    CHECK_EQ(calls(w, FAKE_INVALIDATE_MANY), kind == CACHED ? 2 : 0);
    CHECK_EQ(calls(w, FAKE_WRITE_MANY) + calls(w, FAKE_COPY_TO), 0);
    expect_items(reads, COUNT);
}

UNIT(copy_batch, a_stream_gets_lists_or_copies_or_is_waited_for)
{
    static const struct {
        quire_backend_features without;
        fake_call refused;
        uint64_t lists, copies, waiting;
    } rows[] = {{0, FAKE_DESCRIBE, 1, 0, 101},
                {LISTS, FAKE_DESCRIBE, 0, 100, 101},
                {LISTS | QUIRE_BACKEND_STREAM_COPY, FAKE_DESCRIBE, 0, 0, 0},
                {0, FAKE_STREAM_WRITE_MANY, 1, 100, 101}};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (uint32_t kind = 0; kind < KINDS; kind++) {
            quire_write_item writes[100];
            quire_read_item reads[100];
            quire_point done = {.value = 1};
            world w;
            unit_note("row", i);
            prepare(&w);
            fake_leave_out(&w.f.fake, rows[i].without);
            open_world(&w, kind);
            make_items(&w, writes, reads, 100);
            w.f.fake.unsupported = rows[i].refused;
            fake_stream_submit(quire_stream_native(w.stream));
            CHECK_OK(quire_write_batch(w.f.memory, writes, 100, w.stream, &done));
            CHECK_EQ(calls(&w, FAKE_STREAM_WRITE_MANY), rows[i].lists);
            CHECK_EQ(calls(&w, FAKE_STREAM_COPY), rows[i].copies);
            CHECK_EQ(fake_stream_waiting(quire_stream_native(w.stream)), rows[i].waiting);
            CHECK(done.stream == (rows[i].waiting ? w.stream : NULL));
            CHECK_EQ(has_passed(done), !rows[i].waiting);
            CHECK_OK(quire_point_await(&done, QUIRE_FOREVER));
            CHECK_OK(quire_read_batch(w.f.memory, reads, 100));
            CHECK_STR(quire_last_error(), "");
            expect_items(reads, 100);
            end_world(&w);
        }
}

#define CASE(name) UNIT_ON(copy_batch, name, world, w, prepare(w), end_world)

UNIT(copy_batch, of_shared_bytes_those_of_the_later_item_remain)
{
    static unsigned char model[SIZE];
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (int lists = 0; lists < 2; lists++) {
            test_random r = {kind + 1};
            quire_write_item items[50];
            world w;
            prepare(&w);
            if (!lists)
                fake_leave_out(&w.f.fake, LISTS);
            open_world(&w, kind);
            memset(model, 0, SIZE);
            for (int i = 0; i < 50; i++) {
                uint64_t size = random_below(&r, 100), at = random_below(&r, SIZE - size);
                items[i] = (quire_write_item){w.a, at, data + i, size};
                memcpy(model + at, data + i, size);
            }
            CHECK_OK(quire_write_batch(w.f.memory, items, 50, NULL, NULL));
            CHECK_OK(quire_read(w.f.memory, w.a, 0, back, SIZE));
            CHECK(!memcmp(back, model, SIZE));
            end_world(&w);
        }
}

/* More items of one allocation than it can have uses: one after the other they share one. */
CASE(items_of_one_allocation_share_a_use)
{
    enum { MANY = 70000 };
    static quire_write_item items[MANY];
    open_world(w, COHERENT);
    for (uint64_t i = 0; i < MANY; i++)
        items[i] = (quire_write_item){w->a, i % SIZE, data + i % SIZE, 1};
    CHECK_OK(quire_write_batch(w->f.memory, items, MANY, NULL, NULL));
    CHECK_OK(quire_read(w->f.memory, w->a, 0, back, SIZE));
    CHECK(!memcmp(back, data, SIZE));
    CHECK_OK(quire_free(w->f.memory, w->a)); /* none is left */
}

/* One bad item among good ones: nothing is copied, and nothing stays in use. */
UNIT(copy_batch, all_items_are_checked_before_the_first_byte)
{
    for (uint32_t kind = 0; kind < KINDS; kind++)
        for (int on_stream = 0; on_stream < 2; on_stream++) {
            world w;
            prepare(&w);
            open_world(&w, kind);
            const quire_write_item bad[] = {{w.b, SIZE - 3, data, 4},
                                            {w.b, SIZE + 1, data, 0},
                                            {w.b, 0, NULL, 1},
                                            {{0}, 0, data, 1},
                                            {w.b, UINT64_MAX, data, 2}};
            for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
                const quire_write_item items[] = {{w.a, 0, data, 10}, {w.b, 0, data, 10}, bad[i]};
                quire_point done = {.value = 3};
                CHECK(quire_write_batch(w.f.memory, items, 3, on_stream ? w.stream : NULL, &done));
                CHECK(!done.value);
                CHECK_OK(quire_read(w.f.memory, w.a, 0, back, 10));
                CHECK_EQ(back[0], 0);
            }
            CHECK_OK(quire_free(w.f.memory, w.a));
            CHECK_OK(quire_free(w.f.memory, w.b));
            end_world(&w);
        }
}

CASE(items_of_no_bytes_copy_nothing)
{
    open_world(w, DEVICE);
    const quire_write_item none[] = {{w->a, 0, NULL, 0}, {w->a, SIZE, data, 0}};
    const quire_read_item nothing[] = {{w->a, 0, NULL, 0}, {w->a, SIZE, back, 0}};
    quire_point done;
    CHECK_OK(quire_write_batch(w->f.memory, none, 2, NULL, NULL));
    CHECK_OK(quire_write_batch(w->f.memory, none, 2, w->stream, &done));
    CHECK_OK(quire_write_batch(w->f.memory, NULL, 0, w->stream, &done));
    CHECK(!done.stream);
    CHECK_OK(quire_read_batch(w->f.memory, nothing, 2));
    CHECK_OK(quire_read_batch(w->f.memory, NULL, 0));
    CHECK_EQ(calls(w, FAKE_WRITE_MANY) + calls(w, FAKE_READ_MANY), 0);
    CHECK_EQ(calls(w, FAKE_STREAM_WRITE_MANY), 0);
}
