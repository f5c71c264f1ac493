/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fixture.c - see fixture.h.
 */
#include "tests/support/fixture.h"

#include "src/base/thread.h"

void fixture_prepare(fixture *f)
{
    *f = (fixture){.device = NULL};
    fake_init(&f->fake);
}

static uint64_t no_time(void *user)
{
    (void)user;
    return 0;
}

/* By default pages leave after a second: without a clock that stands, slow runs would lose some. */
void fixture_open(fixture *f, const quire_memory_options *options)
{
    quire_memory_options own = options ? *options : (quire_memory_options){0};
    if (!own.clock.now && !own.pages.retention_nanoseconds)
        own.clock.now = no_time;
    CHECK_OK(fake_open(&f->fake, unit_memory(), &f->device));
    CHECK_OK(quire_memory_create(f->device, &own, &f->memory));
}

void fixture_make(fixture *f, const quire_memory_options *options)
{
    fixture_prepare(f);
    fixture_open(f, options);
}

void fixture_end(fixture *f)
{
    CHECK_OK(quire_memory_check(f->memory));
    quire_memory_destroy_all(&f->memory);
    CHECK_OK(quire_device_destroy(&f->device));
    CHECK_EQ(f->fake.pages, 0);
    CHECK_EQ(f->fake.page_bytes, 0);
    CHECK_EQ(f->fake.objects, 0);
    CHECK_EQ(f->fake.maps, 0);
    CHECK(f->fake.ended);
}

quire_allocation fixture_allocate(fixture *f, const quire_allocation_options *options)
{
    quire_allocation allocation;
    CHECK_OK(quire_allocate(f->memory, options, &allocation));
    return allocation;
}

void fixture_allocate_fails(fixture *f, quire_result code, const quire_allocation_options *options)
{
    quire_allocation none = {1};
    CHECK_FAILS(quire_allocate(f->memory, options, &none), code);
    CHECK_EQ(none.id, 0);
}

quire_buffer fixture_buffer(fixture *f, const quire_buffer_options *options)
{
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(f->memory, options, &buffer));
    return buffer;
}

quire_image fixture_image(fixture *f, const quire_image_options *options)
{
    quire_image image;
    CHECK_OK(quire_image_create(f->memory, options, &image));
    return image;
}

quire_allocation_info fixture_info(fixture *f, quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(f->memory, allocation, &info));
    return info;
}

quire_memory_stats fixture_stats(fixture *f)
{
    quire_memory_stats stats;
    CHECK_OK(quire_memory_get_stats(f->memory, &stats));
    return stats;
}

/* ---- another thread ----------------------------------------------------------------------- */

typedef struct errand {
    fixture *f;
    const quire_allocation_options *options; /* NULL means idle */
    quire_allocation allocation;
} errand;

static void *run_errand(void *user)
{
    errand *e = user;
    if (e->options)
        e->allocation = fixture_allocate(e->f, e->options);
    else
        CHECK_OK(quire_free(e->f->memory, e->allocation));
    return NULL;
}

static quire_allocation send(errand e)
{
    pthread_t thread;
    CHECK_EQ(qi_thread_number(), 0); /* so that the other thread has number 1 */
    CHECK_EQ(pthread_create(&thread, NULL, run_errand, &e), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return e.allocation;
}

quire_allocation fixture_allocate_elsewhere(fixture *f, const quire_allocation_options *options)
{
    return send((errand){.f = f, .options = options});
}

void fixture_free_elsewhere(fixture *f, quire_allocation allocation)
{
    send((errand){.f = f, .allocation = allocation});
}
