/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_path.c - which path a copy takes: with every function, with each function removed, and
 * without any path. The path is the one that quire_copy_get_path reports.
 */
#include "tests/support/fixture.h"

enum { DEVICE = 0, COHERENT, CACHED, WINDOW, SIZE = 3 << 20 };

/* Two memories, one allocation in each. */
typedef struct pair {
    fake_backend fakes[2];
    quire_device *devices[2];
    quire_memory *to, *from;
    quire_allocation target, source;
} pair;

typedef enum relation { ONE_DEVICE = 0, PEERS, TWO_BACKENDS } relation;

static void prepare(pair *p)
{
    *p = (pair){.to = NULL};
    for (int i = 0; i < 2; i++) {
        fake_init(&p->fakes[i]);
        fake_offer_copies(&p->fakes[i]);
    }
}

static quire_memory *open_memory(quire_device *device, uint32_t kind)
{
    quire_memory *memory;
    CHECK_OK(quire_memory_create(device, &(quire_memory_options){.kind.mask = UINT32_C(1) << kind},
                                 &memory));
    return memory;
}

static void open_pair(pair *p, relation are, uint32_t to, uint32_t from)
{
    CHECK_OK(fake_open(&p->fakes[0], unit_memory(), &p->devices[0]));
    if (are != ONE_DEVICE)
        CHECK_OK(fake_open(&p->fakes[are == TWO_BACKENDS], unit_memory(), &p->devices[1]));
    p->to = open_memory(p->devices[0], to);
    p->from = open_memory(p->devices[are != ONE_DEVICE], from);
    const quire_allocation_options options = {.size = SIZE};
    CHECK_OK(quire_allocate(p->to, &options, &p->target));
    CHECK_OK(quire_allocate(p->from, &options, &p->source));
}

static void end_pair(pair *p)
{
    quire_memory_destroy_all(&p->to);
    quire_memory_destroy_all(&p->from);
    for (int i = 0; i < 2; i++)
        CHECK_OK(quire_device_destroy(&p->devices[i]));
    CHECK_EQ(p->fakes[0].pages + p->fakes[1].pages, 0);
}

static quire_copy_options whole(const pair *p)
{
    return (quire_copy_options){.to = {.memory = p->to, .allocation = p->target},
                                .from = {.memory = p->from, .allocation = p->source},
                                .size = SIZE};
}

/* The first byte of each allocation, straight from the fake's pages. */
static unsigned char *first_byte(quire_memory *memory, quire_allocation allocation)
{
    quire_native native;
    CHECK_OK(quire_allocation_get_native(memory, allocation, &native));
    return fake_bytes(&native.page) + native.offset;
}

static quire_copy_path path_of(quire_memory *to, quire_memory *from)
{
    quire_copy_path path;
    CHECK_OK(quire_copy_get_path(to, from, &path));
    return path;
}

/* Copies all of it: the path is the reported one, and the bytes arrive. */
static void copy(pair *p, quire_copy_path path)
{
    quire_copy_options o = whole(p);
    unsigned char *to = first_byte(p->to, p->target), *from = first_byte(p->from, p->source);
    memset(to, 1, SIZE);
    for (uint64_t i = 0; i < SIZE; i++)
        from[i] = (unsigned char)(i * 7 + i / 4099);
    CHECK_EQ(path_of(p->to, p->from), path);
    CHECK_OK(quire_copy(&o, NULL));
    CHECK(!memcmp(to, from, SIZE));
}

static uint64_t calls(const pair *p, fake_call call)
{
    return p->fakes[0].calls[call] + p->fakes[1].calls[call];
}

/* ---- paths ---------------------------------------------------------------------------------- */

/* Copies of 3 MiB, and the calls of each; staging memory has 1 MiB. */
UNIT(copy_path, each_pair_of_memories_has_its_path)
{
    static const quire_backend_features NO_PAGES = QUIRE_BACKEND_COPY_PAGES,
                                        NO_PEER = QUIRE_BACKEND_COPY_PEER;
    const struct {
        relation are;
        uint32_t to, from;
        quire_backend_features left_out;
        quire_copy_path path;
        uint64_t pages, peer, writes, reads, flushes, invalidates;
    } rows[] = {
        {ONE_DEVICE, DEVICE, DEVICE, 0, QUIRE_COPY_DIRECT, 1, 0, 0, 0, 0, 0},
        {ONE_DEVICE, DEVICE, WINDOW, 0, QUIRE_COPY_DIRECT, 1, 0, 0, 0, 0, 0},
        {ONE_DEVICE, WINDOW, DEVICE, 0, QUIRE_COPY_DIRECT, 1, 0, 0, 0, 0, 0},
        {ONE_DEVICE, WINDOW, WINDOW, 0, QUIRE_COPY_DIRECT, 1, 0, 0, 0, 0, 0},
        {ONE_DEVICE, CACHED, COHERENT, 0, QUIRE_COPY_DIRECT, 1, 0, 0, 0, 0, 0},
        /* the host reads cached memory fast */
        {ONE_DEVICE, COHERENT, CACHED, 0, QUIRE_COPY_DIRECT, 0, 0, 0, 0, 0, 1},
        {ONE_DEVICE, CACHED, CACHED, 0, QUIRE_COPY_DIRECT, 0, 0, 0, 0, 1, 1},
        {ONE_DEVICE, WINDOW, CACHED, 0, QUIRE_COPY_DIRECT, 0, 0, 0, 0, 0, 1},
        {PEERS, DEVICE, DEVICE, 0, QUIRE_COPY_DIRECT, 0, 1, 0, 0, 0, 0},
        {TWO_BACKENDS, DEVICE, DEVICE, 0, QUIRE_COPY_HOST, 0, 0, 3, 3, 0, 0},
        {TWO_BACKENDS, DEVICE, CACHED, 0, QUIRE_COPY_DIRECT, 0, 0, 1, 0, 0, 1},
        {TWO_BACKENDS, CACHED, DEVICE, 0, QUIRE_COPY_DIRECT, 0, 0, 0, 1, 1, 0},
        /* a mapping, the host alone, and staging memory */
        {ONE_DEVICE, DEVICE, WINDOW, NO_PAGES, QUIRE_COPY_DIRECT, 0, 0, 1, 0, 0, 0},
        {ONE_DEVICE, WINDOW, COHERENT, NO_PAGES, QUIRE_COPY_DIRECT, 0, 0, 0, 0, 0, 0},
        {ONE_DEVICE, DEVICE, DEVICE, NO_PAGES, QUIRE_COPY_HOST, 0, 0, 3, 3, 0, 0},
        {PEERS, DEVICE, DEVICE, NO_PEER, QUIRE_COPY_HOST, 0, 0, 3, 3, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pair p;
        prepare(&p);
        fake_leave_out(&p.fakes[0], rows[i].left_out);
        open_pair(&p, rows[i].are, rows[i].to, rows[i].from);
        copy(&p, rows[i].path);
        const uint64_t *to = p.fakes[0].calls, *from = p.fakes[rows[i].are == TWO_BACKENDS].calls;
        CHECK_EQ(calls(&p, FAKE_COPY_PAGES), rows[i].pages);
        CHECK_EQ(calls(&p, FAKE_COPY_PEER), rows[i].peer);
        CHECK(to[FAKE_COPY_TO] == rows[i].writes && calls(&p, FAKE_COPY_TO) == rows[i].writes);
        CHECK(from[FAKE_COPY_FROM] == rows[i].reads && calls(&p, FAKE_COPY_FROM) == rows[i].reads);
        CHECK(to[FAKE_FLUSH] == rows[i].flushes && calls(&p, FAKE_FLUSH) == rows[i].flushes);
        CHECK_EQ(from[FAKE_INVALIDATE], rows[i].invalidates);
        end_pair(&p);
    }
}

#define CASE(name) UNIT_ON(copy_path, name, pair, p, prepare(p), end_pair)

UNIT_EACH(copy_path, an_unsupported_call_is_replaced_and_leaves_no_error, pair, p, i, 0, 2,
          prepare(p), end_pair)
{
    static const fake_call refused[] = {FAKE_COPY_PAGES, FAKE_COPY_PEER};
    p->fakes[0].unsupported = refused[i];
    open_pair(p, refused[i] == FAKE_COPY_PEER ? PEERS : ONE_DEVICE, DEVICE, DEVICE);
    CHECK_FAILS(quire_copy(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    copy(p, QUIRE_COPY_DIRECT);
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(calls(p, refused[i]), 1);
    CHECK_EQ(calls(p, FAKE_COPY_TO), 3);
}

CASE(without_rows_each_row_is_a_job)
{
    fake_leave_out(&p->fakes[0], QUIRE_BACKEND_ROWS);
    open_pair(p, ONE_DEVICE, DEVICE, DEVICE);
    quire_copy_options o = whole(p);
    o.size = 100;
    o.rows = 5;
    o.slices = 4;
    o.to.row_pitch = 128;
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(calls(p, FAKE_COPY_PAGES), 20);
    CHECK_EQ(p->fakes[0].last_copy.rows * p->fakes[0].last_copy.slices, 1);
}

/*
 * Many rows from a memory of another backend to device memory.
 */
static void copy_rows(uint32_t from, uint64_t copies, uint64_t syncs)
{
    pair p;
    prepare(&p);
    open_pair(&p, TWO_BACKENDS, DEVICE, from);
    quire_copy_options o = whole(&p);
    o.size = 100;
    o.rows = 5;
    o.slices = 4;
    o.to.row_pitch = 128;
    unsigned char *to = first_byte(p.to, p.target), *source = first_byte(p.from, p.source);
    memset(source, 7, 2000);
    memset(to, 1, 20 * 128);
    CHECK_OK(quire_copy(&o, NULL));
    CHECK(to[0] == 7 && to[99] == 7 && to[100] == 1 && to[128] == 7 && to[19 * 128 + 99] == 7);
    CHECK_EQ(p.fakes[0].calls[FAKE_COPY_PAGES], 1);
    CHECK_EQ(p.fakes[0].calls[FAKE_COPY_TO], 0);
    CHECK_EQ(p.fakes[0].last_copy.rows * p.fakes[0].last_copy.slices, 20);
    CHECK_EQ(p.fakes[1].calls[FAKE_COPY_FROM], copies);
    CHECK_EQ(p.fakes[1].calls[FAKE_INVALIDATE], syncs);
    end_pair(&p);
}

UNIT(copy_path, rows_between_host_and_page_are_one_job)
{
    copy_rows(DEVICE, 1, 0); /* without gaps at one end: one call for all rows */
    copy_rows(CACHED, 0, 20);
    copy_rows(COHERENT, 0, 0);
}

CASE(unsupported_rows_are_copied_one_by_one)
{
    p->fakes[0].unsupported = FAKE_COPY_PAGES;
    open_pair(p, ONE_DEVICE, DEVICE, WINDOW);
    unsigned char bytes[1000] = {5};
    quire_copy_options o = {.to = {.memory = p->to, .allocation = p->target, .row_pitch = 200},
                            .host_from = bytes,
                            .size = 100,
                            .rows = 10};
    CHECK_FAILS(quire_copy(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_copy(&o, NULL));
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(calls(p, FAKE_COPY_TO), 10);
    CHECK_EQ(first_byte(p->to, p->target)[0], 5);
}

CASE(staging_memory_of_the_backend_is_reported)
{
    p->fakes[0].table.features |= QUIRE_BACKEND_STAGES;
    open_pair(p, ONE_DEVICE, DEVICE, WINDOW);
    CHECK_EQ(path_of(p->to, NULL), QUIRE_COPY_STAGED);
    CHECK_EQ(path_of(NULL, p->to), QUIRE_COPY_STAGED);
    CHECK_EQ(path_of(p->from, NULL), QUIRE_COPY_DIRECT);
    CHECK_EQ(path_of(NULL, p->from), QUIRE_COPY_DIRECT);
    CHECK_EQ(path_of(p->to, p->from), QUIRE_COPY_DIRECT);
}

/* ---- without a path ------------------------------------------------------------------------- */

UNIT_EACH(copy_path, an_impossible_copy_is_unsupported_and_never_skipped, pair, p, i, 0, 2,
          prepare(p), end_pair)
{
    static const quire_backend_features lacks[] = {QUIRE_BACKEND_COPY_TO_PAGE,
                                                   QUIRE_BACKEND_COPY_FROM_PAGE};
    fake_leave_out(&p->fakes[0], lacks[i] | QUIRE_BACKEND_COPY_PAGES);
    open_pair(p, ONE_DEVICE, DEVICE, DEVICE);
    quire_copy_options o = whole(p);
    CHECK_EQ(path_of(p->to, p->from), QUIRE_COPY_UNSUPPORTED);
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_UNSUPPORTED);
    bool can_read = lacks[i] == QUIRE_BACKEND_COPY_TO_PAGE;
    char byte = 0;
    CHECK_EQ(path_of(NULL, p->from), can_read ? QUIRE_COPY_DIRECT : QUIRE_COPY_UNSUPPORTED);
    CHECK_EQ(path_of(p->to, NULL), can_read ? QUIRE_COPY_UNSUPPORTED : QUIRE_COPY_DIRECT);
    quire_copy_options in = {.to = o.to, .host_from = &byte, .size = 1};
    quire_copy_options out = {.from = o.from, .host_to = &byte, .size = 1};
    CHECK_EQ(quire_copy(&in, NULL), can_read ? QUIRE_ERROR_UNSUPPORTED : QUIRE_SUCCESS);
    CHECK_EQ(quire_copy(&out, NULL), can_read ? QUIRE_SUCCESS : QUIRE_ERROR_UNSUPPORTED);
}

CASE(an_unsupported_fill_is_written_and_leaves_no_error)
{
    fake_offer_fill(&p->fakes[0]);
    p->fakes[0].unsupported = FAKE_FILL_PAGE;
    open_pair(p, ONE_DEVICE, DEVICE, WINDOW);
    CHECK_FAILS(quire_copy(NULL, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_OK(quire_fill(p->to, p->target,
                        &(quire_fill_options){.offset = 5, .size = 10000, .value = 3}, NULL));
    CHECK_EQ(quire_last_result(), QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_EQ(calls(p, FAKE_FILL_PAGE), 1);
    CHECK_EQ(calls(p, FAKE_COPY_TO), 2); /* 8 KiB at a time */
    const unsigned char *to = first_byte(p->to, p->target);
    CHECK(to[5] == 3 && to[10004] == 3 && to[4] != 3 && to[10005] != 3);
}

CASE(without_any_write_a_fill_is_unsupported)
{
    fake_leave_out(&p->fakes[0], QUIRE_BACKEND_COPY_TO_PAGE);
    open_pair(p, ONE_DEVICE, DEVICE, WINDOW);
    CHECK_FAILS(quire_fill(p->to, p->target, &(quire_fill_options){.value = 1}, NULL),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(quire_fill(p->from, p->source, &(quire_fill_options){.value = 1}, NULL));
}

CASE(kinds_without_bytes_have_no_path)
{
    p->fakes[0].info.kinds[DEVICE].flags = QUIRE_DEVICE_LOCAL | QUIRE_OBJECTS_ONLY;
    open_pair(p, ONE_DEVICE, DEVICE, COHERENT);
    quire_copy_options o = whole(p);
    CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(path_of(p->to, p->from), QUIRE_COPY_UNSUPPORTED);
    CHECK_EQ(path_of(p->from, p->to), QUIRE_COPY_UNSUPPORTED);
    CHECK_EQ(path_of(p->to, NULL), QUIRE_COPY_UNSUPPORTED);
}
