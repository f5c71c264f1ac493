/*
 * resource_bounds.c - objects whose backend requires sizes at the end of 64 bits, and buffers for
 * which caller and backend report different sizes.
 */
#include "tests/support/fixture.h"

static const uint64_t needed =
    512; /* bytes that the object needs, passed to the fake as its description */

static void make(fixture *f)
{
    fixture_prepare(f);
    f->fake.info.limits.buffer_image_granularity = 1024;
    fixture_open(f, &(quire_memory_options){.name = "frames"});
}

/* Rounded up to whole granules, the first two exceed 64 bits. */
UNIT_ON(resource_bounds, an_image_whose_bytes_overflow_is_refused, fixture, f, make(f), fixture_end)
{
    static const uint64_t sizes[] = {UINT64_MAX, UINT64_MAX - 1022, UINT64_MAX - 1023};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        quire_image none = {{1}};
        f->fake.object_needs.size = sizes[i];
        CHECK_FAILS(quire_image_create(f->memory, &(quire_image_options){.width = 4}, &none),
                    QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
        if (i < 2)
            CHECK_HAS(quire_last_error(), "bytes is requested");
        CHECK_EQ(none.allocation.id, 0);
        CHECK_EQ(f->fake.objects, 0);
        CHECK_EQ(f->fake.pages, 0);
        CHECK_OK(quire_memory_check(f->memory));
    }
}

UNIT_ON(resource_bounds, a_buffer_from_a_description_has_the_size_that_its_creator_names, fixture,
        f, make(f), fixture_end)
{
    static const uint64_t named[] = {0, 300}, expected[] = {512, 300};
    for (int i = 0; i < 2; i++) {
        quire_object_options options = {.object = QUIRE_OBJECT_BUFFER, .description = &needed};
        quire_buffer buffer;
        quire_buffer_info info;
        options.described.buffer.size = named[i];
        CHECK_OK(quire_object_create(f->memory, &options, &buffer.allocation));
        CHECK_OK(quire_buffer_get_info(f->memory, buffer, &info));
        CHECK_EQ(info.size, expected[i]);
        CHECK_OK(quire_memory_check(f->memory));
        CHECK_OK(quire_free(f->memory, buffer.allocation));
    }
}
