/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * lazy.c - the contract: lazy allocations have memory in the chunks that were asked for. A model
 * knows these chunks. Their contents and places stay while other chunks, of the same allocation and
 * of others, get and lose their memory. As in elastic.c, each size is checked before new bytes are
 * touched.
 */
#include "quire/elastic.h"
#include "tests/contract/elastic.h"

enum { LAZIES = 3, LENGTH = 12, SINGLES = 6, ADDRESSES = 4 * COUNT, EDGE = 4096, STEPS = 80 };

typedef struct lazy {
    quire_allocation handle;
    quire_native place;
    unsigned char *pointer; /* of its map; NULL: it has none */
    uint64_t keys[LENGTH];  /* of the pattern of each chunk; 0: the chunk has no memory */
} lazy;

typedef struct lazies {
    elastic e;
    lazy all[LAZIES];
    bool is_made[SINGLES]; /* ordinary allocations of a chunk each, in e.made */
    uint64_t last_key;
    uint64_t limit; /* in chunks; 0: none */
} lazies;

/* ---- the model ------------------------------------------------------------------------------ */

static uint64_t chunks_of(const lazy *l, uint32_t first, uint32_t count)
{
    uint64_t backed = 0;
    for (uint32_t i = first; i < first + count; i++)
        backed += l->keys[i] != 0;
    return backed;
}

static uint64_t chunks_in_use(const lazies *m)
{
    uint64_t used = 0;
    for (int i = 0; i < LAZIES; i++)
        used += chunks_of(&m->all[i], 0, LENGTH);
    for (int i = 0; i < SINGLES; i++)
        used += m->is_made[i];
    return used;
}

/* Statistics, records and the backend agree with the model. */
static void count(const lazies *m)
{
    const uint64_t size = elastic_size(&m->e), used = chunks_in_use(m) * m->e.chunk;
    const quire_memory_stats stats = kit_stats(m->e.memory);
    CHECK(size >= used);
    CHECK_EQ(stats.live_bytes, used);
    CHECK_EQ(stats.requested_bytes, used);
    CHECK_EQ(stats.free_bytes, size - used);
    CHECK(!m->limit || size <= m->limit * m->e.chunk);
    for (int i = 0; i < LAZIES; i++) {
        const lazy *l = &m->all[i];
        if (!l->handle.id)
            continue;
        const quire_allocation_info info = kit_info(m->e.memory, l->handle);
        CHECK_EQ(info.size, LENGTH * m->e.chunk);
        CHECK_EQ(info.backed, chunks_of(l, 0, LENGTH) * m->e.chunk);
    }
}

/* ---- contents ------------------------------------------------------------------------------- */

/* Both ends of a chunk. */
static void write_chunk(const elastic *e, const lazy *l, uint32_t chunk)
{
    unsigned char bytes[EDGE];
    for (uint32_t end = 0; end < 2; end++) {
        const uint64_t offset = chunk * e->chunk + (end ? e->chunk - EDGE : 0);
        kit_fill(l->keys[chunk], offset, bytes, EDGE);
        CHECK_OK(quire_write(e->memory, l->handle, offset, bytes, EDGE));
    }
}

static void read_chunk(const elastic *e, const lazy *l, uint32_t chunk)
{
    unsigned char bytes[EDGE];
    for (uint32_t end = 0; end < 2; end++) {
        const uint64_t offset = chunk * e->chunk + (end ? e->chunk - EDGE : 0);
        CHECK_OK(quire_read(e->memory, l->handle, offset, bytes, EDGE));
        kit_expect(l->keys[chunk], offset, bytes, EDGE);
        if (l->pointer && kit_is_coherent(e->w, e->kind))
            kit_expect(l->keys[chunk], offset, l->pointer + offset, EDGE);
    }
}

/* No byte of a chunk without memory is read, written or filled. */
static void expect_no_bytes(const elastic *e, const lazy *l, uint32_t chunk)
{
    unsigned char byte = 1;
    const uint64_t offset = chunk * e->chunk;
    CHECK_FAILS(quire_write(e->memory, l->handle, offset, &byte, 1), QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_read(e->memory, l->handle, offset + e->chunk - 1, &byte, 1),
                QUIRE_ERROR_WRONG_STATE);
    CHECK_FAILS(quire_fill(e->memory, l->handle,
                           &(quire_fill_options){.offset = offset, .size = e->chunk}, NULL),
                QUIRE_ERROR_WRONG_STATE);
}

static void look_at_lazy(const lazies *m, const lazy *l)
{
    const elastic *e = &m->e;
    const quire_native native = kit_native(e->memory, l->handle);
    CHECK_EQ(native.page.handle, l->place.page.handle);
    CHECK_EQ(native.page.address, l->place.page.address);
    CHECK_EQ(native.offset, l->place.offset);
    CHECK(native.host == l->place.host);
    for (uint32_t i = 0; i < LENGTH && e->has_bytes; i++) {
        if (l->keys[i])
            read_chunk(e, l, i);
        else
            expect_no_bytes(e, l, i);
    }
}

static void look_at_all(const lazies *m)
{
    const elastic *e = &m->e;
    count(m);
    for (int i = 0; i < LAZIES; i++)
        if (m->all[i].handle.id)
            look_at_lazy(m, &m->all[i]);
    for (uint32_t i = 0; i < SINGLES && e->has_bytes; i++)
        if (m->is_made[i])
            kit_read(e->memory, e->made[i], e->chunk, 1 + i);
}

/* ---- changes -------------------------------------------------------------------------------- */

static void make_lazy(lazies *m, uint32_t number)
{
    elastic *e = &m->e;
    lazy *l = &m->all[number];
    void *pointer = NULL;
    *l = (lazy){.handle = ALLOCATE(e->memory, .size = LENGTH * e->chunk, .lazy = true)};
    if (kit_maps_elastic(e->w, e->kind))
        CHECK_OK(quire_map(e->memory, l->handle, &pointer));
    l->pointer = pointer;
    l->place = kit_native(e->memory, l->handle);
}

/* Its chunks are free, whatever they held. */
static void end_lazy(lazies *m, uint32_t number)
{
    lazy *l = &m->all[number];
    if (l->pointer)
        CHECK_OK(quire_unmap(m->e.memory, l->handle));
    CHECK_OK(quire_free(m->e.memory, l->handle));
    *l = (lazy){0};
}

/* Returns false if the limit refused the memory, as it must where the chunks in use exceed it. */
static bool back(lazies *m, uint32_t number, uint32_t first, uint32_t length)
{
    elastic *e = &m->e;
    lazy *l = &m->all[number];
    const quire_view range = {l->handle, first * e->chunk, length * e->chunk};
    const uint64_t missing = length - chunks_of(l, first, length);
    quire_result result = quire_back_range(e->memory, &range, 1);
    if (missing && m->limit && chunks_in_use(m) + missing > m->limit) {
        CHECK_FAILS(result, QUIRE_ERROR_OVER_BUDGET);
        return false;
    }
    CHECK_OK(result);
    bool is_new[LENGTH] = {false};
    for (uint32_t i = first; i < first + length; i++) {
        is_new[i] = !l->keys[i];
        if (is_new[i])
            l->keys[i] = ++m->last_key;
    }
    count(m);
    for (uint32_t i = first; i < first + length && e->has_bytes; i++)
        if (is_new[i])
            write_chunk(e, l, i);
    return true;
}

static void unback(lazies *m, uint32_t number, uint32_t first, uint32_t length)
{
    const elastic *e = &m->e;
    lazy *l = &m->all[number];
    const quire_view range = {l->handle, first * e->chunk, length * e->chunk};
    const uint64_t size = elastic_size(e), leaving = chunks_of(l, first, length);
    CHECK_OK(quire_unback_range(e->memory, &range, 1, NULL));
    for (uint32_t i = first; i < first + length; i++)
        l->keys[i] = 0;
    count(m);
    CHECK_EQ(elastic_size(e), size - leaving * e->chunk);
}

/* As `back`, for an ordinary allocation of one chunk. */
static bool make_single(lazies *m, uint32_t number)
{
    elastic *e = &m->e;
    const quire_allocation_options options = {.size = e->chunk};
    quire_result result = quire_allocate(e->memory, &options, &e->made[number]);
    if (m->limit && chunks_in_use(m) + 1 > m->limit) {
        CHECK_FAILS(result, QUIRE_ERROR_OVER_BUDGET);
        return false;
    }
    CHECK_OK(result);
    m->is_made[number] = true;
    count(m);
    if (e->has_bytes)
        kit_write(e->memory, e->made[number], e->chunk, 1 + number);
    return true;
}

static void end_single(lazies *m, uint32_t number)
{
    CHECK_OK(quire_free(m->e.memory, m->e.made[number]));
    m->is_made[number] = false;
}

/* The first single lies at the start of the page. */
static lazies begin_lazies(const contract_world *w, uint32_t kind)
{
    lazies m = {.e = begin_elastic(w, kind, 0)};
    const uint64_t chunk = m.e.chunk;
    kit_end(&m.e.memory);
    m.e = begin_elastic(w, kind, ADDRESSES * chunk);
    make_single(&m, 0);
    for (uint32_t i = 0; i < LAZIES; i++)
        make_lazy(&m, i);
    count(&m);
    return m;
}

static void set_limit(lazies *m, uint64_t chunks)
{
    CHECK_OK(quire_memory_set_limit(m->e.memory, chunks * m->e.chunk));
    m->limit = chunks;
}

/* A trim leaves the chunks in use alone. */
static void trim(const lazies *m)
{
    CHECK_OK(quire_memory_trim(m->e.memory, 0, NULL));
    CHECK_EQ(elastic_size(&m->e), chunks_in_use(m) * m->e.chunk);
}

static void end_lazies(lazies *m)
{
    for (uint32_t i = 0; i < LAZIES; i++)
        if (m->all[i].handle.id)
            end_lazy(m, i);
    for (uint32_t i = 0; i < SINGLES; i++)
        if (m->is_made[i])
            end_single(m, i);
    count(m);
    trim(m);
    kit_end(&m->e.memory);
}

/* ---- scenarios ------------------------------------------------------------------------------ */

static void step(lazies *m, test_random *r)
{
    const uint32_t number = (uint32_t)random_below(r, LAZIES);
    const uint32_t single = (uint32_t)random_below(r, SINGLES);
    const uint32_t first = (uint32_t)random_below(r, LENGTH);
    const uint32_t length = 1 + (uint32_t)random_below(r, LENGTH - first);
    const uint64_t what = random_below(r, 20);
    if (!m->all[number].handle.id)
        make_lazy(m, number);
    else if (what < 8)
        back(m, number, first, length);
    else if (what < 14)
        unback(m, number, first, length);
    else if (what == 14)
        end_lazy(m, number);
    else if (what == 15)
        trim(m);
    else if (m->is_made[single])
        end_single(m, single);
    else
        make_single(m, single);
}

static void contents_stay(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    test_random r = {kind + 1};
    lazies m = begin_lazies(w, kind);
    set_limit(&m, COUNT);
    /* each access submits, which takes long under sanitizers */
    const int steps = w->info.limits.elastic_unmapped ? TEST_ROUNDS(STEPS) : STEPS;
    for (int i = 0; i < steps; i++) {
        step(&m, &r);
        look_at_all(&m);
    }
    end_lazies(&m);
}

/* Chunks 1 and 2 get their memory in one call, 0 and 3 in two others. */
static void chunks_have_no_borders(contract_world *w, uint32_t kind)
{
    unsigned char bytes[2 * EDGE];
    if (!is_elastic(w, kind))
        return;
    lazies m = begin_lazies(w, kind);
    elastic *e = &m.e;
    lazy *l = &m.all[1];
    back(&m, 1, 1, 2);
    back(&m, 1, 0, 1);
    back(&m, 1, 2, 2);
    for (uint32_t border = 1; border < 4 && e->has_bytes; border++) {
        const uint64_t start = border * e->chunk - EDGE;
        kit_fill(90 + border, 0, bytes, sizeof bytes);
        CHECK_OK(quire_write(e->memory, l->handle, start, bytes, sizeof bytes));
        memset(bytes, 0, sizeof bytes);
        CHECK_OK(quire_read(e->memory, l->handle, start, bytes, sizeof bytes));
        kit_expect(90 + border, 0, bytes, sizeof bytes);
        if (l->pointer && kit_is_coherent(w, kind))
            kit_expect(90 + border, 0, l->pointer + start, sizeof bytes);
    }
    if (e->has_bytes) {
        const uint64_t start = 4 * e->chunk - EDGE;
        CHECK_FAILS(quire_write(e->memory, l->handle, start, bytes, sizeof bytes),
                    QUIRE_ERROR_WRONG_STATE);
        CHECK_FAILS(quire_read(e->memory, l->handle, start, bytes, sizeof bytes),
                    QUIRE_ERROR_WRONG_STATE);
    }
    end_lazies(&m);
}

/* The limit is met by one allocation, and what another loses or a free leaves serves. */
static void one_limit_serves_all(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    lazies m = begin_lazies(w, kind);
    set_limit(&m, COUNT);
    for (uint32_t i = 1; i < SINGLES; i++)
        CHECK(make_single(&m, i));
    CHECK(back(&m, 0, 1, COUNT - SINGLES));
    CHECK(!back(&m, 1, 3, 1));
    look_at_all(&m);
    unback(&m, 0, 4, 3);
    CHECK(!back(&m, 1, 2, 4));
    CHECK(back(&m, 1, 2, 3));
    for (uint32_t i = 1; i < SINGLES; i += 2)
        end_single(&m, i);
    CHECK(back(&m, 2, 9, 3)); /* in the memory of free chunks elsewhere */
    CHECK_EQ(elastic_size(&m.e), COUNT * m.e.chunk);
    look_at_all(&m);
    end_lazy(&m, 1);
    CHECK(back(&m, 2, 6, 3));
    CHECK_EQ(elastic_size(&m.e), COUNT * m.e.chunk);
    look_at_all(&m);
    end_lazies(&m);
}

/* A list whose last range exceeds the limit gives no memory to the first. */
static void a_list_gets_all_or_nothing(contract_world *w, uint32_t kind)
{
    if (!is_elastic(w, kind))
        return;
    lazies m = begin_lazies(w, kind);
    const uint64_t chunk = m.e.chunk;
    const quire_view ranges[] = {{m.all[0].handle, 2 * chunk, 3 * chunk},
                                 {m.all[2].handle, 0, 4 * chunk},
                                 {m.all[0].handle, 4 * chunk, 6 * chunk}};
    back(&m, 0, 7, 2);
    set_limit(&m, 10);
    CHECK_FAILS(quire_back_range(m.e.memory, ranges, 3), QUIRE_ERROR_OVER_BUDGET);
    look_at_all(&m);
    set_limit(&m, COUNT);
    CHECK_OK(quire_back_range(m.e.memory, ranges, 3));
    for (uint32_t i = 2; i < 10; i++)
        m.all[0].keys[i] = m.all[0].keys[i] ? m.all[0].keys[i] : ++m.last_key;
    for (uint32_t i = 0; i < 4; i++)
        m.all[2].keys[i] = ++m.last_key;
    count(&m);
    for (uint32_t i = 2; i < 10 && m.e.has_bytes; i++)
        write_chunk(&m.e, &m.all[0], i);
    for (uint32_t i = 0; i < 4 && m.e.has_bytes; i++)
        write_chunk(&m.e, &m.all[2], i);
    look_at_all(&m);
    CHECK_OK(quire_unback_range(m.e.memory, ranges, 3, NULL));
    memset(m.all[0].keys, 0, sizeof m.all[0].keys);
    memset(m.all[2].keys, 0, sizeof m.all[2].keys);
    trim(&m);
    look_at_all(&m);
    end_lazies(&m);
}

/* ---- frees that wait ------------------------------------------------------------------------ */

/* Its bytes are live until the point passes, and count as deferred. */
static void expect_deferred(const lazies *m, uint64_t chunks)
{
    const uint64_t chunk = m->e.chunk;
    CHECK_OK(quire_memory_trim(m->e.memory, 0, NULL));
    CHECK_EQ(elastic_size(&m->e), (chunks_in_use(m) + chunks) * chunk);
    CHECK_EQ(kit_stats(m->e.memory).deferred_bytes, chunks * chunk);
    CHECK_EQ(kit_stats(m->e.memory).live_bytes, (chunks_in_use(m) + chunks) * chunk);
}

static void free_after_mark(lazies *m, uint32_t number, quire_stream *stream)
{
    lazy *l = &m->all[number];
    quire_point point;
    if (l->pointer)
        CHECK_OK(quire_unmap(m->e.memory, l->handle));
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_free_after_point(m->e.memory, l->handle, &point));
    CHECK_FAILS(quire_back_range(m->e.memory, &(quire_view){l->handle, 0, 1}, 1),
                QUIRE_ERROR_STALE_HANDLE);
    *l = (lazy){0};
}

/* The points of a capture stream pass when it is destroyed. */
static void chunks_stay_until_a_point(contract_world *w, uint32_t kind)
{
    quire_stream *stream = NULL;
    if (!is_elastic(w, kind))
        return;
    lazies m = begin_lazies(w, kind);
    back(&m, 0, 2, 3);
    back(&m, 1, 0, 2);
    set_limit(&m, 8);
    CHECK_OK(quire_stream_create(w->device, &(quire_stream_options){.capture = true}, &stream));
    free_after_mark(&m, 0, stream);
    expect_deferred(&m, 3);
    CHECK_FAILS(quire_back_range(m.e.memory, &(quire_view){m.all[2].handle, 0, 3 * m.e.chunk}, 1),
                QUIRE_ERROR_OVER_BUDGET);
    expect_deferred(&m, 3);
    look_at_lazy(&m, &m.all[1]);
    CHECK_OK(quire_stream_destroy(&stream));
    CHECK_EQ(kit_stats(m.e.memory).deferred_bytes, 0);
    count(&m);
    CHECK(back(&m, 2, 0, 5));
    look_at_all(&m);
    end_lazies(&m);
}

static void chunks_stay_until_work_ends(contract_world *w, uint32_t kind)
{
    quire_stream *stream = NULL;
    quire_point point;
    if (!is_elastic(w, kind))
        return;
    quire_result result = quire_stream_create(w->device, NULL, &stream);
    if (result == QUIRE_ERROR_UNSUPPORTED)
        return;
    CHECK_OK(result);
    lazies m = begin_lazies(w, kind);
    back(&m, 0, 2, 3);
    back(&m, 1, 3, 2);
    back(&m, 2, 0, 1);
    free_after_mark(&m, 0, stream);
    lazy *l = &m.all[1];
    if (l->pointer)
        CHECK_OK(quire_unmap(m.e.memory, l->handle));
    CHECK_OK(quire_free_on_stream(m.e.memory, l->handle, stream));
    *l = (lazy){0};
    CHECK_OK(quire_collect(m.e.memory, NULL)); /* sets the mark that the free waits for */
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_collect(m.e.memory, NULL));
    trim(&m);
    look_at_all(&m);
    CHECK(back(&m, 2, 0, LENGTH));
    look_at_all(&m);
    CHECK_OK(quire_stream_destroy(&stream));
    end_lazies(&m);
}

/* Mapped allocations with and without memory, and one whose free waits. */
static void destroy_all_ends_lazies(contract_world *w, uint32_t kind)
{
    quire_stream *stream = NULL;
    if (!is_elastic(w, kind))
        return;
    lazies m = begin_lazies(w, kind);
    back(&m, 0, 2, 3);
    back(&m, 1, 0, LENGTH);
    CHECK_OK(quire_stream_create(w->device, &(quire_stream_options){.capture = true}, &stream));
    free_after_mark(&m, 0, stream);
    look_at_lazy(&m, &m.all[1]);
    CHECK(elastic_size(&m.e) >= (1 + 3 + LENGTH) * m.e.chunk);
    quire_memory_destroy_all(&m.e.memory);
    CHECK(!m.e.memory);
    CHECK_EQ(elastic_budget(&m.e).reserved, 0);
    CHECK(w->subject->is_shared || elastic_budget(&m.e).usage == m.e.usage);
    CHECK_OK(quire_stream_destroy(&stream));
}

const contract_scenario contract_lazy[] = {
    {.name = "chunks of lazy allocations keep contents and places while others get and lose memory",
     .of_kind = contents_stay,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "chunks of a lazy allocation have no borders",
     .of_kind = chunks_have_no_borders,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "a limit serves lazy allocations as long as the chunks in use leave room",
     .of_kind = one_limit_serves_all,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "a list of ranges of lazy allocations gets memory as a whole or not at all",
     .of_kind = a_list_gets_all_or_nothing,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "a lazy allocation that is freed keeps its chunks until a point passes",
     .of_kind = chunks_stay_until_a_point,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "chunks of freed lazy allocations leave after the work of a stream",
     .of_kind = chunks_stay_until_work_ends,
     .applies = kit_has_growth,
     .is_exact = true},
    {.name = "destroy_all ends lazy allocations with and without memory",
     .of_kind = destroy_all_ends_lazies,
     .applies = kit_has_growth,
     .is_exact = true},
    {0},
};
