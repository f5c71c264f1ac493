/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* plugin_copy.c - copies and fills through a plugin, and missing functions: each is replaced as its
   documentation says, or refused. None is skipped silently. */
#include "quire/transfer.h"
#include "tests/support/plugin_bench.h"
#include "tests/support/unit.h"

enum { SIZE = 5000, AT = 100 };

/* Offsets of the copying and filling functions. */
enum {
    SET = 232,
    H2D = 272,
    D2H = 280,
    D2D = 288,
    P2P = 296,
    ON_STREAM = 32 /* distance to the same function for streams */
};

static unsigned char in[SIZE], out[SIZE];

static void fill_in(unsigned seed)
{
    for (unsigned i = 0; i < SIZE; i++)
        in[i] = (unsigned char)(i * 31 + seed);
    memset(out, 0, sizeof out);
}

static quire_allocation allocate(quire_memory *m)
{
    quire_allocation a;
    CHECK_OK(quire_allocate(m, &(quire_allocation_options){.size = SIZE + AT}, &a));
    return a;
}

static void begin(plugin_bench *b, uint64_t absent)
{
    plugin_bench_begin(b, &(tp_options){.device_count = 2, .absent = absent, .base_offset = 16});
    CHECK(plugin_bench_open(b, 0, NULL) && plugin_bench_open(b, 1, NULL));
}

static quire_copy_path path_between(quire_memory *to, quire_memory *from)
{
    quire_copy_path path;
    CHECK_OK(quire_copy_get_path(to, from, &path));
    return path;
}

static quire_result copy(quire_memory *to, quire_allocation into, quire_memory *from,
                         quire_allocation of)
{
    return quire_copy(
        &(quire_copy_options){.to = {.memory = to, .allocation = into, .offset = AT},
                              .from = {.memory = from, .allocation = of, .offset = AT},
                              .size = SIZE},
        NULL);
}

/* Writes to one memory, copies to the other, and reads there. */
static void comes_through(quire_memory *to, quire_memory *from, unsigned seed)
{
    quire_allocation source = allocate(from), target = allocate(to);
    fill_in(seed);
    CHECK_OK(quire_write(from, source, AT, in, SIZE));
    CHECK_OK(copy(to, target, from, source));
    CHECK_OK(quire_read(to, target, AT, out, SIZE));
    CHECK(!memcmp(in, out, SIZE));
    CHECK_OK(quire_free(from, source));
    CHECK_OK(quire_free(to, target));
}

/* ---- everything there ----------------------------------------------------------------------- */

UNIT(plugin_copy, every_kind_to_every_kind)
{
    for (uint32_t to = 0; to < 3; to++)
        for (uint32_t from = 0; from < 3; from++) {
            plugin_bench b;
            begin(&b, 0);
            quire_memory *m = plugin_bench_memory(&b, 0, to, NULL);
            quire_memory *other = plugin_bench_memory(&b, 0, from, NULL);
            CHECK_EQ(path_between(m, other), QUIRE_COPY_DIRECT);
            comes_through(m, other, to * 3 + from);
            plugin_bench_end(&b);
        }
}

PLUGIN_UNIT_ON(plugin_copy, the_functions_that_are_called, begin(b, 0))
{
    quire_memory *m = plugin_bench_memory(b, 0, 0, NULL);
    quire_memory *host = plugin_bench_memory(b, 0, 1, NULL);
    quire_memory *peer = plugin_bench_memory(b, 1, 0, NULL);
    comes_through(m, m, 1);
    CHECK_EQ(b->tp->calls(D2D), 1);
    comes_through(peer, m, 2);
    CHECK_EQ(b->tp->calls(P2P), 1);
    uint64_t down = b->tp->calls(D2H), up = b->tp->calls(H2D);
    comes_through(host, m, 3); /* one write, one copy */
    CHECK_EQ(b->tp->calls(D2H), down + 1);
    CHECK_EQ(b->tp->calls(H2D), up + 1);
    quire_allocation a = allocate(m);
    CHECK_OK(quire_fill(m, a, &(quire_fill_options){.size = SIZE, .value = 0x5a}, NULL));
    CHECK_EQ(b->tp->calls(SET), 1);
    CHECK_OK(quire_read(m, a, 0, out, SIZE));
    for (int i = 0; i < SIZE; i++)
        CHECK_EQ(out[i], 0x5a);
    quire_allocation on_host = allocate(host);
    CHECK_OK(quire_fill(host, on_host, &(quire_fill_options){.size = SIZE, .value = 7}, NULL));
    CHECK_EQ(b->tp->calls(SET), 1);
}

PLUGIN_UNIT_ON(plugin_copy, answers_are_told, begin(b, 0))
{
    static const struct {
        int32_t status;
        quire_result code;
    } ANSWERS[] = {{TP_WARNING, QUIRE_ERROR_BACKEND_FAILURE},
                   {TP_FAILED, QUIRE_ERROR_BACKEND_FAILURE},
                   {TP_ERROR, QUIRE_ERROR_INVALID_ARGUMENT},
                   {TP_INTERNAL_ERROR, QUIRE_ERROR_BACKEND_FAILURE}};
    quire_memory *m = plugin_bench_memory(b, 0, 0, NULL);
    quire_allocation a = allocate(m);
    for (size_t i = 0; i < sizeof ANSWERS / sizeof *ANSWERS; i++) {
        b->tp->fail(&(tp_fault){.offset = H2D, .call = 1, .status = ANSWERS[i].status});
        CHECK_FAILS(quire_write(m, a, 0, in, SIZE), ANSWERS[i].code);
        CHECK_HAS(quire_last_error(), "memory_copy_h2d of plugin 'test_device' answers C_");
        CHECK_EQ(quire_last_native_code(), ANSWERS[i].status);
    }
}

/* ---- something missing ---------------------------------------------------------------------- */

/* Lacks one direction, on streams too: the copy takes another route. */
PLUGIN_UNIT(plugin_copy, a_copy_on_the_device_goes_through_the_host)
{
    begin(b, TP_BIT(D2D) | TP_BIT(D2D + ON_STREAM));
    quire_memory *m = plugin_bench_memory(b, 0, 0, NULL);
    CHECK_EQ(path_between(m, m), QUIRE_COPY_HOST);
    comes_through(m, m, 1);
}

PLUGIN_UNIT(plugin_copy, a_copy_between_devices_goes_through_the_host)
{
    begin(b, TP_BIT(P2P) | TP_BIT(P2P + ON_STREAM));
    quire_memory *m = plugin_bench_memory(b, 0, 0, NULL);
    quire_memory *peer = plugin_bench_memory(b, 1, 0, NULL);
    CHECK_EQ(path_between(peer, m), QUIRE_COPY_HOST);
    comes_through(peer, m, 1);
    CHECK_EQ(b->tp->calls(D2H), 2); /* one of them reads */
}

UNIT(plugin_copy, a_fill_is_written)
{
    plugin_bench b;
    begin(&b, TP_BIT(SET));
    quire_memory *m = plugin_bench_memory(&b, 0, 0, NULL);
    quire_allocation a = allocate(m);
    CHECK_OK(quire_fill(m, a, &(quire_fill_options){.size = SIZE, .value = 0x5a}, NULL));
    CHECK(b.tp->calls(H2D) > 0);
    CHECK_OK(quire_read(m, a, 0, out, SIZE));
    for (int i = 0; i < SIZE; i++)
        CHECK_EQ(out[i], 0x5a);
    plugin_bench_end(&b);

    begin(&b, TP_BIT(SET) | TP_BIT(H2D) | TP_BIT(H2D + ON_STREAM));
    m = plugin_bench_memory(&b, 0, 0, NULL);
    a = allocate(m);
    CHECK_FAILS(quire_fill(m, a, &(quire_fill_options){.size = SIZE, .value = 0x5a}, NULL),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_allocate(m, &(quire_allocation_options){.size = 10, .zero = true}, &a),
                QUIRE_ERROR_UNSUPPORTED);
    plugin_bench_end(&b);
}

/* Paddle skips such copies without an error. */
UNIT(plugin_copy, an_absent_copy_is_unsupported)
{
    plugin_bench b;
    quire_allocation a;
    begin(&b, TP_BIT(H2D) | TP_BIT(H2D + ON_STREAM));
    quire_memory *m = plugin_bench_memory(&b, 0, 0, NULL);
    quire_memory *host = plugin_bench_memory(&b, 0, 1, NULL);
    a = allocate(m);
    quire_allocation on_host = allocate(host);
    CHECK_FAILS(quire_write(m, a, 0, in, SIZE), QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_read(m, a, 0, out, SIZE));
    CHECK_FAILS(copy(m, a, host, on_host), QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(copy(host, on_host, m, a));
    CHECK_EQ(path_between(m, NULL), QUIRE_COPY_UNSUPPORTED);
    plugin_bench_end(&b);

    begin(&b, TP_BIT(D2H) | TP_BIT(D2H + ON_STREAM));
    m = plugin_bench_memory(&b, 0, 0, NULL);
    a = allocate(m);
    CHECK_OK(quire_write(m, a, 0, in, SIZE));
    CHECK_FAILS(quire_read(m, a, 0, out, SIZE), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(path_between(NULL, m), QUIRE_COPY_UNSUPPORTED);
    plugin_bench_end(&b);
}

/* ---- on streams alone ----------------------------------------------------------------------- */

#define SYNCHRONOUS (TP_BIT(H2D) | TP_BIT(D2H) | TP_BIT(D2D) | TP_BIT(P2P))

UNIT(plugin_copy, copies_that_are_there_on_streams_alone)
{
    plugin_bench b;
    begin(&b, SYNCHRONOUS);
    quire_memory *m = plugin_bench_memory(&b, 0, 0, NULL);
    quire_memory *peer = plugin_bench_memory(&b, 1, 0, NULL);
    CHECK_EQ(path_between(m, m), QUIRE_COPY_DIRECT);
    comes_through(m, m, 1);
    comes_through(peer, m, 2);
    CHECK_EQ(b.tp->calls(D2D + ON_STREAM), 1);
    CHECK_EQ(b.tp->calls(P2P + ON_STREAM), 1);
    CHECK_EQ(b.tp->calls(56), 2); /* a stream of its own for each device */
    plugin_bench_end(&b);

    begin(&b,
          SYNCHRONOUS | TP_BIT(128)); /* without synchronize_stream quire waits for the device */
    m = plugin_bench_memory(&b, 0, 0, NULL);
    comes_through(m, m, 3);
    plugin_bench_end(&b);
}

static void cannot_write(uint64_t absent, bool gives_no_streams)
{
    plugin_bench b;
    plugin_bench_begin(&b, &(tp_options){.absent = absent, .gives_no_streams = gives_no_streams});
    CHECK(plugin_bench_open(&b, 0, NULL));
    quire_memory *m = plugin_bench_memory(&b, 0, 0, NULL);
    quire_allocation a = allocate(m);
    CHECK_FAILS(quire_write(m, a, 0, in, SIZE), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_read(m, a, 0, out, SIZE), QUIRE_ERROR_UNSUPPORTED);
    plugin_bench_end(&b);
}

UNIT(plugin_copy, copies_on_streams_that_cannot_be_had)
{
    cannot_write(SYNCHRONOUS | TP_BIT(56), false);
    cannot_write(SYNCHRONOUS | TP_BIT(64), false);
    cannot_write(SYNCHRONOUS | TP_BIT(120) | TP_BIT(128), false);
    cannot_write(SYNCHRONOUS, true); /* create_stream succeeds, and writes nothing */
}

UNIT(plugin_copy, answers_on_a_stream_are_told)
{
    static const uint32_t OFFSETS[] = {H2D + ON_STREAM, 128};
    for (size_t i = 0; i < 2; i++) {
        plugin_bench b;
        begin(&b, SYNCHRONOUS);
        quire_memory *m = plugin_bench_memory(&b, 0, 0, NULL);
        quire_allocation a = allocate(m);
        b.tp->fail(&(tp_fault){.offset = OFFSETS[i], .call = 1, .status = TP_FAILED});
        CHECK_FAILS(quire_write(m, a, 0, in, SIZE), QUIRE_ERROR_BACKEND_FAILURE);
        CHECK_EQ(quire_last_native_code(), TP_FAILED);
        CHECK_OK(quire_write(m, a, 0, in, SIZE));
        plugin_bench_end(&b);
    }
}
