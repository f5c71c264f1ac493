/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource.c - buffers: their options and infos, with and without native objects; handles of the
 * wrong type. Images are in resource_image.c, failing objects in resource_object.c.
 */
#include "tests/support/fixture.h"

static void make(fixture *b, quire_memory_flags flags)
{
    fixture_prepare(b);
    quire_memory_options options = {.kind.required = flags, .fit.algorithm = QUIRE_FIT_FIRST};
    fixture_open(b, &options);
}

static quire_buffer_info info_of(fixture *b, quire_buffer buffer)
{
    quire_buffer_info info;
    CHECK_OK(quire_buffer_get_info(b->memory, buffer, &info));
    return info;
}

#define CASE(name, ...) UNIT_ON(resource, name, fixture, b, make(b, __VA_ARGS__), fixture_end)

CASE(a_buffer_is_for_storage_and_both_transfers_by_default, QUIRE_DEVICE_LOCAL)
{
    quire_buffer buffer = BUFFER(b, .size = 100, .user_data = 5, .name = "weights");
    quire_buffer_info info = info_of(b, buffer);
    CHECK_EQ(info.size, 100);
    CHECK_EQ(info.usage,
             QUIRE_USAGE_STORAGE | QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET);
    CHECK_EQ(info.place.object, QUIRE_OBJECT_BUFFER);
    CHECK_EQ(info.place.size, 100);
    CHECK_EQ(info.place.requested, 100);
    CHECK_EQ(info.place.user_data, 5);
    CHECK(info.place.committed);
    char name[16];
    CHECK_OK(quire_allocation_get_name(b->memory, buffer.allocation, name, sizeof name));
    CHECK_STR(name, "weights");
}

CASE(invalid_buffer_options_are_refused_before_an_object_is_created, QUIRE_DEVICE_LOCAL)
{
    static const struct {
        quire_buffer_options options;
        quire_result code;
        const char *says;
    } cases[] = {
        {{.size = 0}, QUIRE_ERROR_INVALID_ARGUMENT, "buffer of size 0"},
        {{.size = 1, .alignment = 96}, QUIRE_ERROR_INVALID_ARGUMENT, "alignment 96"},
        {{.size = 1, .alignment = UINT64_C(4) << 20},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "alignment 4194304 exceeds the maximum of memory 'memory', 2097152"},
        {{.size = 1, .unused = {0, 1}},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "quire_buffer_options.unused[1]"},
        {{.size = 1, .usage = QUIRE_USAGE_SAMPLED},
         QUIRE_ERROR_INVALID_ARGUMENT,
         "usage 0x40 is not of buffers"},
        {{.size = 1, .host_read = true}, QUIRE_ERROR_NOT_HOST_VISIBLE, "not host-visible"},
        {{.size = 1, .host_write = true}, QUIRE_ERROR_NOT_HOST_VISIBLE, "not host-visible"},
    };
    quire_buffer buffer;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buffer.allocation.id = 1;
        CHECK_FAILS(quire_buffer_create(b->memory, &cases[i].options, &buffer), cases[i].code);
        CHECK_HAS(quire_last_error(), cases[i].says);
        CHECK_EQ(buffer.allocation.id, 0);
    }
    CHECK_EQ(b->fake.calls[FAKE_OBJECT_CREATE] + b->fake.calls[FAKE_PAGE_CREATE], 0);
}

CASE(a_native_buffer_is_bound_to_its_range_and_reported, QUIRE_DEVICE_LOCAL)
{
    quire_buffer first = BUFFER(b, .size = 100), second = BUFFER(b, .size = 100);
    quire_buffer_info info = info_of(b, second);
    CHECK_EQ(info.place.offset, 128);
    CHECK(info.place.native != 0);
    CHECK(info.place.native != info_of(b, first).place.native);
    CHECK_EQ(b->fake.calls[FAKE_OBJECT_BIND], 2);
    CHECK_EQ(b->fake.objects, 2);
    CHECK_OK(quire_free(b->memory, first.allocation));
    CHECK_EQ(b->fake.objects, 1);
}

CASE(a_backend_may_need_more_than_requested, QUIRE_DEVICE_LOCAL)
{
    b->fake.object_needs.size = 5000;
    b->fake.object_needs.alignment = 1024;
    BUFFER(b, .size = 100);
    quire_buffer_info info = info_of(b, BUFFER(b, .size = 100));
    CHECK_EQ(info.size, 100);
    CHECK_EQ(info.place.requested, 100);
    CHECK_EQ(info.place.size, 5000);
    CHECK_EQ(info.place.offset, 5120);
}

CASE(a_driver_that_needs_a_dedicated_page_gets_it, QUIRE_DEVICE_LOCAL)
{
    b->fake.object_needs.dedicated = true;
    quire_buffer_info info = info_of(b, BUFFER(b, .size = 100));
    CHECK(info.place.dedicated);
    CHECK(b->fake.last_page.dedicated);
    CHECK_EQ(b->fake.last_page.size, 100); /* exactly as large as the object */
    CHECK_EQ(b->fake.last_page.object, QUIRE_OBJECT_BUFFER);
    CHECK_EQ(b->fake.last_page.native, info.place.native);
}

CASE(handles_of_another_type_are_refused, QUIRE_DEVICE_LOCAL)
{
    quire_buffer buffer = BUFFER(b, .size = 1);
    quire_buffer_info buffer_info = {.size = 1};
    quire_image_info image_info = {.width = 1};
    quire_image image = IMAGE(b, .width = 1);
    quire_allocation range = ALLOCATE(b, .size = 1);
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    CHECK_FAILS(quire_buffer_get_info(b->memory, (quire_buffer){image.allocation}, &buffer_info),
                invalid);
    CHECK_HAS(quire_last_error(), "of memory 'memory' is an image, not a buffer");
    CHECK_EQ(buffer_info.size, 0);
    CHECK_FAILS(quire_buffer_get_info(b->memory, (quire_buffer){range}, &buffer_info), invalid);
    CHECK_HAS(quire_last_error(), "of memory 'memory' is a raw range, not a buffer");
    CHECK_FAILS(quire_image_get_info(b->memory, (quire_image){buffer.allocation}, &image_info),
                invalid);
    CHECK_HAS(quire_last_error(), "of memory 'memory' is a buffer, not an image");
    CHECK_EQ(image_info.width, 0);
    CHECK_OK(quire_free(b->memory, range)); /* the refused calls do not keep it in use */
    CHECK_OK(quire_free(b->memory, image.allocation));
    CHECK_OK(quire_free(b->memory, buffer.allocation));
}

CASE(renaming_a_buffer_keeps_the_rest, QUIRE_DEVICE_LOCAL)
{
    quire_buffer buffer = BUFFER(b, .size = 100, .usage = QUIRE_USAGE_INDEX);
    uint64_t native = info_of(b, buffer).place.native;
    static const char *const names[] = {"first", NULL, "second"};
    for (int i = 0; i < 3; i++) {
        char name[16];
        CHECK_OK(quire_allocation_set_name(b->memory, buffer.allocation, names[i]));
        CHECK_OK(quire_allocation_get_name(b->memory, buffer.allocation, name, sizeof name));
        CHECK_STR(name, names[i] ? names[i] : "");
        quire_buffer_info info = info_of(b, buffer);
        CHECK_EQ(info.usage, QUIRE_USAGE_INDEX);
        CHECK_EQ(info.place.native, native);
        CHECK_EQ(info.place.object, QUIRE_OBJECT_BUFFER);
    }
}
