/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource_object.c - native objects of buffers and images on the fake backend: after a failure of
 * any step no object and no range is left.
 */
#include "tests/support/fixture.h"

static void open_prepared(fixture *b)
{
    quire_memory_options options = {.name = "frames",
                                    .fit = {.algorithm = QUIRE_FIT_FIRST, .max_alignment = 4096},
                                    .pages = {.page_size = 65536, .max_pages = 1}};
    fixture_open(b, &options);
}

static void make(fixture *b)
{
    fixture_prepare(b);
    open_prepared(b);
}

static void end(fixture *b)
{
    CHECK_OK(quire_memory_check(b->memory));
    CHECK_OK(quire_memory_destroy(&b->memory)); /* no allocation is live */
    CHECK_OK(quire_device_destroy(&b->device));
    CHECK_EQ(b->fake.pages, 0);
    CHECK_EQ(b->fake.objects, 0);
    CHECK(b->fake.ended);
}

/* A buffer (0) or an image (1) of this many bytes. */
static quire_result create(fixture *b, uint32_t type, uint32_t size, quire_allocation *allocation)
{
    if (type)
        return quire_image_create(
            b->memory, &(quire_image_options){.width = size, .zero = true, .name = "image"},
            (quire_image *)allocation);
    return quire_buffer_create(
        b->memory, &(quire_buffer_options){.size = size, .zero = true, .name = "buffer"},
        (quire_buffer *)allocation);
}

#define CASE(name) UNIT_ON(resource_object, name, fixture, b, make(b), end)

/* Neither type can be created: the call returns this code and message and leaves nothing. */
static void expect_refused(fixture *b, uint32_t size, quire_result code, const char *says)
{
    for (uint32_t type = 0; type < 2; type++) {
        quire_allocation none = {1};
        CHECK_FAILS(create(b, type, size, &none), code);
        CHECK_HAS(quire_last_error(), says);
        CHECK_EQ(none.id, 0);
        CHECK_EQ(b->fake.objects, 0);
        quire_memory_stats stats = fixture_stats(b);
        CHECK_EQ(stats.allocation_count, 0);
        CHECK_EQ(stats.live_bytes, 0);
        CHECK_OK(quire_memory_check(b->memory));
    }
}

CASE(an_object_unsuited_to_the_kind_is_refused_and_destroyed)
{
    b->fake.object_needs.kind_mask = 0xe; /* the memory is of kind 0 */
    expect_refused(b, 100, QUIRE_ERROR_UNSUPPORTED,
                   "memory 'frames' is of kind 0, and the object needs one of kinds 0xe"); /* D11 */
    CHECK_EQ(b->fake.calls[FAKE_OBJECT_CREATE], 2);
    CHECK_EQ(b->fake.calls[FAKE_PAGE_CREATE], 0);
}

UNIT(resource_object, an_object_without_room_is_destroyed)
{
    fixture b;
    make(&b);
    expect_refused(&b, (1u << 30) + 1, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "has 1 GiB in all");
    CHECK_EQ(b.fake.calls[FAKE_OBJECT_CREATE], 2);
    end(&b);
    make(&b);
    fake_fail(&b.fake, 2, true, QUIRE_ERROR_OUT_OF_DEVICE_MEMORY); /* object, page */
    quire_allocation none;
    CHECK_FAILS(create(&b, 0, 100, &none), QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(b.fake.objects, 0);
    end(&b);
}

CASE(an_object_with_an_unavailable_alignment_is_destroyed)
{
    b->fake.object_needs.alignment = 8192;
    expect_refused(b, 100, QUIRE_ERROR_INVALID_ARGUMENT,
                   "alignment 8192 exceeds the maximum of memory 'frames', 4096");
}

/* ---- data of objects ---------------------------------------------------------------------- */

CASE(a_buffer_needs_no_host_memory_if_a_record_exists)
{
    quire_buffer buffer;
    for (int i = 0; i < 100; i++) {
        buffer = BUFFER(b, .size = 100);
        CHECK_OK(quire_free(b->memory, buffer.allocation));
        if (i == 0)
            test_memory_fail(unit_memory_state(), 1, true);
    }
    CHECK_EQ(unit_memory_state()->calls, 0);
    test_memory_fail(unit_memory_state(), 0, false);
}

/* The allocation has this user data and this object. */
static void expect_kept(fixture *b, quire_allocation allocation, uint64_t user_data,
                        uint64_t native)
{
    quire_allocation_info info = fixture_info(b, allocation);
    CHECK_EQ(info.user_data, user_data);
    CHECK_EQ(info.native, native);
    CHECK(native != 0);
}

UNIT_EACH(resource_object, user_data_name_and_object_are_kept_side_by_side, fixture, b, type, 0, 2,
          make(b), end)
{
    quire_allocation allocation;
    CHECK_OK(create(b, type, 100, &allocation));
    uint64_t native = fixture_info(b, allocation).native;
    expect_kept(b, allocation, 0, native);
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, UINT64_MAX));
    expect_kept(b, allocation, UINT64_MAX, native);
    CHECK_OK(quire_allocation_set_name(b->memory, allocation, NULL));
    expect_kept(b, allocation, UINT64_MAX, native);
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, 0));
    CHECK_OK(quire_allocation_set_name(b->memory, allocation, NULL));
    expect_kept(b, allocation, 0, native);
    CHECK_OK(quire_allocation_set_name(b->memory, allocation, "again"));
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, 5));
    expect_kept(b, allocation, 5, native);
    CHECK_OK(quire_free(b->memory, allocation));
    CHECK_EQ(b->fake.objects, 0);
}

CASE(user_data_without_host_memory_stays_0)
{
    quire_buffer_info info;
    quire_buffer buffer = BUFFER(b, .size = 100);
    quire_allocation allocation = buffer.allocation;
    uint64_t native = fixture_info(b, allocation).native;
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_FAILS(quire_allocation_set_user_data(b->memory, allocation, 1),
                QUIRE_ERROR_OUT_OF_HOST_MEMORY);
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, 0));
    expect_kept(b, allocation, 0, native);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, 1));
    test_memory_fail(unit_memory_state(), 1, true);
    CHECK_OK(quire_allocation_set_user_data(b->memory, allocation, 2)); /* its record exists now */
    expect_kept(b, allocation, 2, native);
    test_memory_fail(unit_memory_state(), 0, false);
    CHECK_OK(quire_buffer_get_info(b->memory, buffer, &info));
    CHECK_EQ(info.size, 100);
    CHECK_OK(quire_free(b->memory, allocation));
}

CASE(a_range_that_reuses_the_record_of_an_object_is_no_object)
{
    quire_buffer buffer = BUFFER(b, .size = 100, .user_data = 3, .usage = 1);
    CHECK_OK(quire_free(b->memory, buffer.allocation));
    for (int i = 0; i < 200; i++) { /* until the record is reused */
        quire_allocation range = ALLOCATE(b, .size = 100);
        quire_allocation_info info = fixture_info(b, range);
        CHECK_EQ(info.user_data, 0);
        CHECK_EQ(info.native, 0);
        CHECK_EQ(info.object, QUIRE_OBJECT_NONE);
        CHECK_FAILS(
            quire_buffer_get_info(b->memory, (quire_buffer){range}, &(quire_buffer_info){0}),
            QUIRE_ERROR_INVALID_ARGUMENT);
        CHECK_OK(quire_free(b->memory, range));
    }
    CHECK_EQ(b->fake.objects, 0);
}

static quire_result create_without_handle(void *state, const quire_object_request *request,
                                          uint64_t *native, quire_requirements *needs)
{
    (void)state;
    (void)request;
    *native = 0;
    *needs = (quire_requirements){.size = 100, .alignment = 64, .kind_mask = UINT32_MAX};
    return QUIRE_SUCCESS;
}

static void never_destroy(void *state, quire_object object, uint64_t native)
{
    (void)state;
    check_failed(__FILE__, __LINE__, "object %d is destroyed: %llu", (int)object,
                 (unsigned long long)native);
}

static quire_result never_bind(void *state, quire_object object, uint64_t native,
                               const quire_native_page *page, uint64_t offset)
{
    (void)page;
    (void)offset;
    never_destroy(state, object, native);
    return QUIRE_ERROR_BACKEND_FAILURE;
}

#define PREPARED(name) UNIT_ON(resource_object, name, fixture, b, fixture_prepare(b), end)

PREPARED(an_object_with_handle_0_is_a_range_neither_bound_nor_destroyed)
{
    quire_buffer buffer;
    quire_image image;
    quire_native native;
    b->fake.table.object_create = create_without_handle;
    b->fake.table.object_bind = never_bind;
    b->fake.table.object_destroy = never_destroy;
    open_prepared(b);
    buffer = BUFFER(b, .size = 90);
    image = IMAGE(b, .width = 10);
    CHECK_OK(quire_allocation_get_native(b->memory, buffer.allocation, &native));
    CHECK(native.object == QUIRE_OBJECT_BUFFER && native.handle == 0 && native.size >= 100);
    CHECK_EQ(native.offset % 64, 0);
    CHECK_OK(quire_free(b->memory, buffer.allocation));
    CHECK_OK(quire_free(b->memory, image.allocation));
}

CASE(invalid_requirements_are_a_backend_failure)
{
    static const struct {
        uint64_t alignment;
        uint32_t mask;
        const char *says;
    } cases[] = {{0, 1, "alignment 0,"}, {96, 1, "alignment 96,"}, {64, 0, "memory kinds 0x0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        b->fake.object_needs.alignment = cases[i].alignment;
        b->fake.object_needs.kind_mask = cases[i].mask;
        expect_refused(b, 100, QUIRE_ERROR_BACKEND_FAILURE, cases[i].says);
        quire_requirements needs = {.size = 1};
        CHECK_FAILS(
            quire_image_get_requirements(b->device, &(quire_image_options){.width = 100}, &needs),
            QUIRE_ERROR_BACKEND_FAILURE);
        CHECK_EQ(needs.size, 0);
    }
}

/* ---- backends with only some functions ---------------------------------------------------- */

PREPARED(without_images_none_are_created)
{
    b->fake.table.features &= ~(QUIRE_BACKEND_IMAGES | QUIRE_BACKEND_OBJECTS);
    b->fake.table.image_requirements = NULL;
    b->fake.table.object_create = NULL;
    b->fake.table.object_bind = NULL;
    b->fake.table.object_destroy = NULL;
    open_prepared(b);
    quire_allocation none = {1};
    quire_requirements needs;
    CHECK_FAILS(create(b, 1, 100, &none), QUIRE_ERROR_UNSUPPORTED);
    CHECK_HAS(quire_last_error(), "backend fake has no images");
    CHECK_EQ(none.id, 0);
    CHECK_FAILS(quire_image_get_requirements(b->device, &(quire_image_options){.width = 1}, &needs),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK_OK(create(b, 0, 100, &none));
    CHECK_OK(quire_free(b->memory, none));
}

PREPARED(objects_without_images_are_buffers_only)
{
    b->fake.table.features &= ~QUIRE_BACKEND_IMAGES;
    b->fake.table.image_requirements = NULL;
    open_prepared(b);
    quire_allocation image = {1};
    CHECK_FAILS(create(b, 1, 100, &image), QUIRE_ERROR_UNSUPPORTED);
    CHECK_EQ(image.id, 0);
    CHECK_EQ(b->fake.calls[FAKE_OBJECT_CREATE], 0);
}

PREPARED(images_without_objects_are_ranges_with_the_backends_requirements)
{
    b->fake.table.features &= ~QUIRE_BACKEND_OBJECTS;
    b->fake.table.object_create = NULL;
    b->fake.table.object_bind = NULL;
    b->fake.table.object_destroy = NULL;
    b->fake.object_needs.alignment = 1024;
    b->fake.object_needs.dedicated = true;
    open_prepared(b);
    quire_image image;
    quire_image_info info;
    CHECK_OK(create(b, 1, 100, &image.allocation));
    CHECK_OK(quire_image_get_info(b->memory, image, &info));
    CHECK_EQ(info.place.native, 0);
    CHECK_EQ(info.place.size, 100);
    CHECK(info.place.dedicated);
    CHECK_EQ(b->fake.objects, 0);
    CHECK_OK(quire_free(b->memory, image.allocation));
}

CASE(the_backend_sees_resolved_options)
{
    quire_requirements needs;
    b->fake.object_needs.size = 0; /* as large as the options say */
    CHECK_OK(quire_image_get_requirements(b->device, &(quire_image_options){.width = 10}, &needs));
    CHECK_EQ(needs.size, 10); /* height, depth and channels of 0 would make it 0 */
    CHECK_EQ(needs.row_pitch, 10);
    CHECK_EQ(b->fake.calls[FAKE_IMAGE_REQUIREMENTS], 1);
    CHECK_EQ(b->fake.objects, 0);
}
