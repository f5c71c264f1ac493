/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource_bounds.c - objects whose backend requires sizes at the end of 64 bits, buffers for which
 * caller and backend report different sizes, and features that a backend or an image lacks.
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

UNIT_EACH(resource_bounds, an_object_of_a_backend_without_objects, fixture, f, type,
          QUIRE_OBJECT_BUFFER, QUIRE_OBJECT_IMAGE + 1, fixture_prepare(f), fixture_end)
{
    f->fake.table.features &= ~QUIRE_BACKEND_OBJECTS;
    f->fake.table.object_create = NULL;
    f->fake.table.object_bind = NULL;
    f->fake.table.object_destroy = NULL;
    fixture_open(f, &(quire_memory_options){.name = "frames"});
    quire_allocation none = {1};
    const quire_object_options options = {.object = (quire_object)type, .description = &needed};
    CHECK_FAILS(quire_object_create(f->memory, &options, &none), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "has no objects");
    CHECK_EQ(none.id, 0);
    CHECK_EQ(fixture_stats(f).allocation_count, 0);
    CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], 0);
}

static void expect_no_rows(fixture *f, quire_image image, const char *says)
{
    quire_image_rows rows = {.size = 1};
    unsigned char bytes[64];
    CHECK_FAILS(quire_image_get_rows(f->memory, image, NULL, &rows), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), says);
    CHECK_EQ(rows.size, 0);
    CHECK_FAILS(quire_image_write(f->memory, image, NULL, bytes, 0, 0), QUIRE_ERROR_UNSUPPORTED);
    CHECK_FAILS(quire_image_read(f->memory, image, NULL, bytes, 0, 0), QUIRE_ERROR_UNSUPPORTED);
}

UNIT_MEMORY(resource_bounds, rows_of_an_image_known_only_to_its_backend, f, .name = "frames")
{
    quire_image image;
    const quire_object_options options = {.object = QUIRE_OBJECT_IMAGE, .description = &needed};
    CHECK_OK(quire_object_create(f->memory, &options, &image.allocation));
    expect_no_rows(f, image, "not created by quire_image_create");
}

static quire_result (*make_object)(void *state, const quire_object_request *request,
                                   uint64_t *native, quire_requirements *requirements);

/* Opaque layout: it has no rows to report. */
static quire_result make_without_rows(void *state, const quire_object_request *request,
                                      uint64_t *native, quire_requirements *requirements)
{
    quire_result result = make_object(state, request, native, requirements);
    requirements->row_pitch = requirements->slice_pitch = 0;
    return result;
}

UNIT_PREPARED(resource_bounds, rows_of_an_image_in_the_backends_own_order, f)
{
    make_object = f->fake.table.object_create;
    f->fake.table.object_create = make_without_rows;
    fixture_open(f, &(quire_memory_options){.name = "frames"});
    quire_image image = IMAGE(f, .width = 4, .tiling = QUIRE_TILING_OPTIMAL);
    expect_no_rows(f, image, "in the backend's own order");
}
