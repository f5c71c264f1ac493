/*
 * fixture.c - see fixture.h.
 */
#include "tests/support/fixture.h"

void fixture_prepare(fixture *f)
{
    *f = (fixture){.device = NULL};
    fake_init(&f->fake);
}

void fixture_open(fixture *f, const quire_memory_options *options)
{
    CHECK_OK(fake_open(&f->fake, unit_memory(), &f->device));
    CHECK_OK(quire_memory_create(f->device, options, &f->memory));
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

quire_allocation_info fixture_info(fixture *f, quire_allocation allocation)
{
    quire_allocation_info info;
    CHECK_OK(quire_allocation_get_info(f->memory, allocation, &info));
    return info;
}
