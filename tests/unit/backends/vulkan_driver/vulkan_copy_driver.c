/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_copy_driver.c - copies between pages on a driver of this machine, under synchronization
 * validation: consecutive copies without a wait by the caller, and lists from and to the host.
 *
 * Software drivers have one memory kind, which is host-visible, so that the core copies with the
 * processor. Therefore the test calls the backend through its table.
 */
#include "tests/support/random.h"
#include "tests/support/real_vulkan.h"

enum { SIZE = 65536, ROUNDS = 40, PLACES = 3 };

typedef struct place {
    quire_allocation allocation;
    quire_native native;
    unsigned char model[SIZE];
} place;

typedef struct world {
    real_vulkan r;
    quire_memory *memory;
    place places[PLACES];
} world;

static void begin(world *w)
{
    real_begin_wrapped(&w->r);
    w->memory = real_memory(&w->r, &(quire_memory_options){.pages = {.page_size = 2 * SIZE}});
    for (int k = 0; k < PLACES; k++) {
        place *p = &w->places[k];
        CHECK_OK(
            quire_allocate(w->memory, &(quire_allocation_options){.size = SIZE}, &p->allocation));
        CHECK_OK(quire_allocation_get_native(w->memory, p->allocation, &p->native));
        for (int i = 0; i < SIZE; i++)
            p->model[i] = (unsigned char)(k * 50 + i * 3 + i / 500);
        CHECK_OK(quire_write(w->memory, p->allocation, 0, p->model, SIZE));
    }
}

static void end(world *w)
{
    for (int k = 0; k < PLACES; k++)
        CHECK_OK(quire_free(w->memory, w->places[k].allocation));
    real_memory_end(w->memory);
    real_end(&w->r);
}

#define CASE(name, begin) UNIT_ON(vulkan_copy_driver, name, world, w, begin, end)

static void call(world *w, const quire_copy_job *job)
{
    const quire_backend *table = quire_device_backend(w->r.quire);
    quire_copy_job complete = *job;
    complete.to_state = complete.from_state = quire_device_state(w->r.quire);
    CHECK_OK(table->copy_pages(complete.to_state, &complete));
}

static void model_copy(const quire_copy_job *job, unsigned char *to, const unsigned char *from)
{
    for (uint64_t k = 0; k < job->slices; k++)
        for (uint64_t i = 0; i < job->rows; i++)
            memcpy(to + k * job->to_slice + i * job->to_row,
                   from + k * job->from_slice + i * job->from_row, job->size);
}

static void expect_models(world *w)
{
    static unsigned char found[SIZE];
    for (int k = 0; k < PLACES; k++) {
        CHECK_OK(quire_read(w->memory, w->places[k].allocation, 0, found, SIZE));
        CHECK(!memcmp(found, w->places[k].model, SIZE));
    }
}

/* Up to 700 rows, which are three submissions. */
static quire_copy_job draw(test_random *r)
{
    quire_copy_job job = {.size = 1 + random_below(r, 30),
                          .rows = 1 + random_below(r, 140),
                          .slices = 1 + random_below(r, 5)};
    job.to_row = job.size + random_below(r, 20);
    job.from_row = job.size + random_below(r, 20);
    job.to_slice = job.rows * job.to_row + random_below(r, 90);
    job.from_slice = job.rows * job.from_row + random_below(r, 90);
    return job;
}

CASE(rows_are_copied_between_places_again_and_again, begin(w))
{
    test_random r = {1};
    for (int n = 0; n < ROUNDS; n++) {
        uint64_t to = random_below(&r, PLACES), from = (to + 1 + random_below(&r, 2)) % PLACES;
        quire_copy_job job = draw(&r);
        job.to = &w->places[to].native.page;
        job.from = &w->places[from].native.page;
        job.to_offset = w->places[to].native.offset;
        job.from_offset = w->places[from].native.offset;
        call(w, &job);
        model_copy(&job, w->places[to].model, w->places[from].model);
    }
    expect_models(w);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Random parts of all places, some of which share bytes: the later ones remain. */
CASE(lists_are_copied_in_order, begin(w))
{
    enum { PARTS = 500, LONGEST = 200 };
    static unsigned char source[SIZE], found[PARTS][LONGEST];
    static quire_page_copy writes[PARTS], reads[PARTS];
    test_random r = {11};
    const quire_backend *table = quire_device_backend(w->r.quire);
    void *state = quire_device_state(w->r.quire);
    for (int i = 0; i < SIZE; i++)
        source[i] = (unsigned char)random_next(&r);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < PARTS; i++) {
            place *p = &w->places[random_below(&r, PLACES)];
            uint64_t size = 1 + random_below(&r, LONGEST), at = random_below(&r, SIZE - size);
            uint64_t from = random_below(&r, SIZE - size);
            writes[i] =
                (quire_page_copy){&p->native.page, p->native.offset + at, source + from, size};
            memcpy(p->model + at, source + from, size);
            reads[i] = (quire_page_copy){&p->native.page, p->native.offset + at, found[i], size};
        }
        CHECK_OK(table->write_many(state, writes, PARTS));
        CHECK_OK(table->read_many(state, reads, PARTS));
        for (int i = 0; i < PARTS; i++)
            for (int k = 0; k < PLACES; k++)
                if (reads[i].page == &w->places[k].native.page)
                    CHECK(
                        !memcmp(found[i],
                                w->places[k].model + (reads[i].offset - w->places[k].native.offset),
                                reads[i].size));
    }
    expect_models(w);
}
