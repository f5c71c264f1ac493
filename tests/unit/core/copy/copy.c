/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.c - random copies between all kinds of memory, of one device, of two devices of a backend
 * and of two backends, and host memory: copy regions of every shape against a model that copies
 * byte by byte. Single copies and fills are in copy_calls.c.
 */
#include <stdio.h>

#include "tests/support/fixture.h"
#include "tests/support/random.h"

enum { PLACES = 14, ROOM = 3000, ROUNDS = 4000, KINDS = 4, DEVICE = 0, COHERENT, CACHED, WINDOW };

/* A source or target of copies, and its expected contents. */
typedef struct place {
    quire_memory *memory; /* NULL means host memory */
    quire_allocation allocation;
    unsigned char *host;
    unsigned char model[ROOM];
} place;

/*
 * Host memory, two allocations in each kind of one fake device, some of its peer (a second device
 * on the same fake) and of a device of another backend.
 */
typedef struct world {
    fake_backend fakes[2];
    quire_device *devices[3];
    quire_memory *memories[PLACES];
    uint32_t memory_count;
    place places[PLACES];
    uint32_t place_count;
    unsigned char host[ROOM];
} world;

static void prepare(world *w)
{
    memset(w, 0, sizeof *w);
    for (int i = 0; i < 2; i++) {
        fake_init(&w->fakes[i]);
        fake_offer_copies(&w->fakes[i]);
        fake_offer_fill(&w->fakes[i]);
    }
}

static void add_place(world *w, quire_memory *memory)
{
    place *p = &w->places[w->place_count++];
    p->memory = memory;
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = ROOM, .zero = true},
                            &p->allocation));
}

/* Adds a memory with this many dedicated allocations. */
static void add_memory(world *w, quire_device *device, uint32_t kind, int places)
{
    quire_memory_options options = {.kind.mask = UINT32_C(1) << kind, .pages = {.page_size = 4096}};
    quire_memory **memory = &w->memories[w->memory_count++];
    CHECK_OK(quire_memory_create(device, &options, memory));
    for (int i = 0; i < places; i++)
        add_place(w, *memory);
}

static void open_world(world *w)
{
    CHECK_OK(fake_open(&w->fakes[0], unit_memory(), &w->devices[0]));
    CHECK_OK(fake_open(&w->fakes[0], unit_memory(), &w->devices[1]));
    CHECK_OK(fake_open(&w->fakes[1], unit_memory(), &w->devices[2]));
    w->places[w->place_count++].host = w->host;
    for (uint32_t kind = 0; kind < KINDS; kind++)
        add_memory(w, w->devices[0], kind, 2);
    add_memory(w, w->devices[1], DEVICE, 1);
    add_memory(w, w->devices[1], WINDOW, 1);
    add_memory(w, w->devices[2], DEVICE, 1);
    add_memory(w, w->devices[2], CACHED, 1);
    CHECK(w->place_count < PLACES);
}

static void end_world(world *w)
{
    for (uint32_t i = 0; i < w->memory_count; i++) {
        CHECK_OK(quire_memory_check(w->memories[i]));
        quire_memory_destroy_all(&w->memories[i]);
    }
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_device_destroy(&w->devices[i]));
    for (int i = 0; i < 2; i++)
        CHECK_EQ(w->fakes[i].pages, 0);
}

/* Draws one end of a random copy. Returns false if it does not fit. */
static bool draw_end(test_random *r, const quire_copy_options *o, quire_copy_end *end)
{
    uint64_t row = o->size + random_below(r, 3) * random_below(r, 40);
    uint64_t extent = (o->rows - 1) * row + o->size;
    uint64_t slice = random_below(r, 2) ? o->rows * row : extent + random_below(r, 100);
    extent += (o->slices - 1) * slice;
    if (extent > ROOM)
        return false;
    end->offset = random_below(r, ROOM - extent + 1);
    end->row_pitch = row == o->size && random_below(r, 2) ? 0 : row;
    end->slice_pitch = slice == o->rows * row && random_below(r, 2) ? 0 : slice;
    return true;
}

static uint64_t at(const quire_copy_options *o, const quire_copy_end *end, uint64_t n)
{
    uint64_t row = end->row_pitch ? end->row_pitch : o->size;
    uint64_t slice = end->slice_pitch ? end->slice_pitch : o->rows * row;
    uint64_t line = n / o->size;
    return end->offset + line / o->rows * slice + line % o->rows * row + n % o->size;
}

static bool model_overlaps(const quire_copy_options *o)
{
    bool is_taken[ROOM] = {false};
    for (uint64_t i = 0; i < o->size * o->rows * o->slices; i++)
        is_taken[at(o, &o->to, i)] = true;
    for (uint64_t i = 0; i < o->size * o->rows * o->slices; i++)
        if (is_taken[at(o, &o->from, i)])
            return true;
    return false;
}

static void draw(test_random *r, quire_copy_options *o)
{
    do {
        bool is_large = random_below(r, 8) == 0;
        *o = (quire_copy_options){.size = 1 + random_below(r, is_large ? 900 : 60),
                                  .rows = 1 + random_below(r, 6),
                                  .slices = 1 + random_below(r, 4)};
    } while (!draw_end(r, o, &o->to) || !draw_end(r, o, &o->from));
}

static bool goes_on(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    return done <= total;
}

/* Runs one random copy, half of them in parts. Returns true if it was refused. */
static bool copy_once(world *w, test_random *r)
{
    place *to = &w->places[random_below(r, w->place_count)];
    place *from = &w->places[random_below(r, w->place_count)];
    quire_copy_options o;
    draw(r, &o);
    o.to.memory = to->memory;
    o.to.allocation = to->allocation;
    o.host_to = to->host;
    o.from.memory = from->memory;
    o.from.allocation = from->allocation;
    o.host_from = from->host;
    if (random_below(r, 2))
        o.progress = (quire_progress){goes_on, NULL, 1 + random_below(r, 200)};
    if (to->host && from->host) {
        CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_INVALID_ARGUMENT);
        return true;
    }
    if (to == from && model_overlaps(&o)) {
        CHECK_FAILS(quire_copy(&o, NULL), QUIRE_ERROR_OVERLAP);
        return true;
    }
    CHECK_OK(quire_copy(&o, NULL));
    for (uint64_t i = 0; i < o.size * o.rows * o.slices; i++)
        to->model[at(&o, &o.to, i)] = from->model[at(&o, &o.from, i)];
    return false;
}

static void expect_model(place *p)
{
    unsigned char found[ROOM];
    if (p->memory)
        CHECK_OK(quire_read(p->memory, p->allocation, 0, found, ROOM));
    CHECK(!memcmp(p->memory ? found : p->host, p->model, ROOM));
}

/* Writes new bytes into a place, so that copies change something. */
static void refresh(world *w, test_random *r)
{
    place *p = &w->places[random_below(r, w->place_count)];
    for (int i = 0; i < ROOM; i++)
        p->model[i] = (unsigned char)random_next(r);
    if (p->memory)
        CHECK_OK(quire_write(p->memory, p->allocation, 0, p->model, ROOM));
    else
        memcpy(p->host, p->model, ROOM);
}

static void run_random(world *w, uint64_t seed)
{
    test_random r = {seed};
    uint32_t refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 20 == 0)
            refresh(w, &r);
        refused += copy_once(w, &r);
        if (round % 10 == 9)
            expect_model(&w->places[random_below(&r, w->place_count)]);
    }
    for (uint32_t i = 0; i < w->place_count; i++)
        expect_model(&w->places[i]);
    CHECK(refused > 0 && refused < ROUNDS / 2);
}

UNIT(copy, copy_regions_are_copied_between_all_memories)
{
    static world w;
    prepare(&w);
    open_world(&w);
    run_random(&w, 1);
    CHECK(w.fakes[0].calls[FAKE_COPY_PAGES] > 0);
    CHECK(w.fakes[0].calls[FAKE_COPY_PEER] > 0);
    end_world(&w);
}

UNIT(copy, the_bytes_are_the_same_without_each_backend_function)
{
    static const quire_backend_features lacks[] = {
        QUIRE_BACKEND_ROWS, QUIRE_BACKEND_COPY_PAGES, QUIRE_BACKEND_COPY_PEER,
        QUIRE_BACKEND_COPY_PAGES | QUIRE_BACKEND_COPY_PEER | QUIRE_BACKEND_ROWS};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        static world w;
        prepare(&w);
        fake_leave_out(&w.fakes[0], lacks[i]);
        fake_leave_out(&w.fakes[1], lacks[i]);
        open_world(&w);
        run_random(&w, 2 + i);
        CHECK(!(lacks[i] & QUIRE_BACKEND_COPY_PAGES) || !w.fakes[0].calls[FAKE_COPY_PAGES]);
        CHECK(!(lacks[i] & QUIRE_BACKEND_COPY_PEER) || !w.fakes[0].calls[FAKE_COPY_PEER]);
        end_world(&w);
    }
}

UNIT(copy, the_bytes_are_the_same_where_a_call_is_unsupported)
{
    static const fake_call calls[] = {FAKE_COPY_PAGES, FAKE_COPY_PEER};
    for (size_t i = 0; i < 2; i++) {
        static world w;
        prepare(&w);
        w.fakes[0].unsupported = calls[i];
        open_world(&w);
        run_random(&w, 20 + i);
        CHECK(w.fakes[0].calls[calls[i]] > 0);
        CHECK_EQ(quire_last_result() == QUIRE_ERROR_UNSUPPORTED, false);
        end_world(&w);
    }
}
