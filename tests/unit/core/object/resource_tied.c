/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource_tied.c - pages that are tied to one object, objects from a backend's own description,
 * and pages of existing memory.
 */
#include "tests/support/fixture.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT

static const quire_memory_options LOCAL = {.kind.required = QUIRE_DEVICE_LOCAL,
                                           .pages = {.page_size = 64 * 1024}};

static void make(fixture *f)
{
    fixture_prepare(f);
    f->fake.object_needs.dedicated = true;
    fixture_open(f, &LOCAL);
}

static quire_buffer buffer_of(fixture *f, uint64_t size)
{
    quire_buffer buffer = BUFFER(f, .size = size);
    return buffer;
}

static bool is_alone(fixture *f, quire_buffer buffer)
{
    quire_buffer_info info;
    CHECK_OK(quire_buffer_get_info(f->memory, buffer, &info));
    return info.place.dedicated;
}

#define MADE(name) UNIT_ON(resource_tied, name, fixture, f, make(f), fixture_end)

/* ---- tied pages ------------------------------------------------------------------------------ */

MADE(the_page_has_exactly_the_objects_size_and_is_freed_with_it)
{
    quire_buffer_info info;
    quire_buffer a = buffer_of(f, 1001), b = buffer_of(f, 77);
    CHECK_EQ(f->fake.pages, 2);
    CHECK_EQ(f->fake.page_bytes, 1078);
    CHECK_OK(quire_buffer_get_info(f->memory, a, &info));
    CHECK_EQ(info.place.offset, 0);
    CHECK_EQ(info.place.left_padding, 0);
    CHECK_EQ(info.place.size, 1001);
    CHECK(info.place.dedicated);
    CHECK_OK(quire_free(f->memory, a.allocation));
    CHECK_EQ(f->fake.page_bytes, 77); /* not retained */
    CHECK_EQ(f->fake.last_page.object, QUIRE_OBJECT_BUFFER);
    CHECK_OK(quire_free(f->memory, b.allocation));
    CHECK_EQ(f->fake.pages, 0);
}

MADE(an_equal_object_gets_another_page)
{
    for (int i = 0; i < 3; i++) {
        quire_buffer buffer = buffer_of(f, 5000);
        CHECK_EQ(f->fake.calls[FAKE_PAGE_CREATE], (uint64_t)i + 1);
        CHECK_OK(quire_free(f->memory, buffer.allocation));
    }
}

#define CASE(name) UNIT_ON(resource_tied, name, fixture, f, fixture_prepare(f), fixture_end)

/* The policy's rounding and padding do not apply to pages that must have an exact size. */
CASE(the_policy_adds_nothing)
{
    quire_buffer_info info;
    f->fake.object_needs.dedicated = true;
    f->fake.address_step = 32; /* weakly aligned: the backend must handle that here */
    f->fake.info.limits.page_alignment = 32;
    fixture_open(f, &(quire_memory_options){.pages = {.page_size = 64 * 1024,
                                                      .size_granularity = 512,
                                                      .extra_padding = 100,
                                                      .page_granularity = 4096}});
    quire_buffer buffer = buffer_of(f, 999);
    CHECK_OK(quire_buffer_get_info(f->memory, buffer, &info));
    CHECK_EQ(info.place.size, 999);
    CHECK_EQ(f->fake.last_page.size, 999);
}

MADE(without_memory_for_the_page_nothing_is_left)
{
    quire_buffer buffer;
    f->fake.page_budget = 4096;
    CHECK_FAILS(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 4097}, &buffer),
                QUIRE_ERROR_OUT_OF_DEVICE_MEMORY);
    CHECK_EQ(f->fake.objects, 0);
    CHECK_EQ(f->fake.pages, 0);
    buffer = buffer_of(f, 4096);
}

CASE(freed_from_another_shard_it_is_released_when_its_own_is_used)
{
    f->fake.object_needs.dedicated = true;
    fixture_open(f, &(quire_memory_options){.shards = 2, .pages = {.page_size = 64 * 1024}});
    quire_buffer buffer = buffer_of(f, 100);
    fixture_free_elsewhere(f, buffer.allocation);
    CHECK_EQ(f->fake.objects, 0);
    buffer_of(f, 100);
    CHECK_EQ(f->fake.pages, 1);
}

MADE(zeros_are_written_after_the_object_is_bound)
{
    unsigned char bytes[1001];
    quire_buffer buffer = BUFFER(f, .size = 1001, .zero = true);
    CHECK_OK(quire_read(f->memory, buffer.allocation, 0, bytes, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++)
        CHECK_EQ(bytes[i], 0);
    CHECK_OK(quire_free(f->memory, buffer.allocation));
    fake_fail(&f->fake, 4, false, QUIRE_ERROR_DEVICE_LOST); /* object, page, bind, zeros */
    CHECK_FAILS(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 1001, .zero = true},
                                    &buffer),
                QUIRE_ERROR_DEVICE_LOST);
    CHECK_EQ(f->fake.failed_call, FAKE_COPY_TO);
    CHECK_EQ(f->fake.objects, 0);
    CHECK_EQ(f->fake.pages, 0);
}

/* ---- a page that the driver prefers --------------------------------------------------------- */

/* The driver's preferences are ignored there, its needs are not. */
CASE(never_dedicated_follows_needs_and_not_preferences)
{
    f->fake.object_needs.prefers_dedicated = true;
    fixture_open(f, &(quire_memory_options){
                        .pages = {.page_size = 64 * 1024, .dedicated = QUIRE_DEDICATED_NEVER}});
    quire_buffer beside = buffer_of(f, 1000);
    CHECK(!is_alone(f, beside));
    f->fake.object_needs.dedicated = true;
    quire_buffer own = buffer_of(f, 1000);
    CHECK(is_alone(f, own));
    CHECK_EQ(f->fake.pages, 2);
}

CASE(an_object_that_prefers_a_page_is_placed_without_one_if_none_is_available)
{
    f->fake.object_needs.prefers_dedicated = true;
    fixture_open(f, &LOCAL);
    quire_buffer first = buffer_of(f, 1000);
    CHECK(is_alone(f, first));
    CHECK_OK(quire_free(f->memory, first.allocation));
    ALLOCATE(f, .size = 60 * 1024);
    CHECK_OK(quire_device_set_page_limit(f->device, 1));
    quire_buffer second = buffer_of(f, 1000);
    CHECK(!is_alone(f, second));
}

/* The pages that are left are for objects that require one. */
CASE(a_preference_is_followed_until_three_quarters_of_the_pages_exist)
{
    quire_buffer made[6], buffer;
    f->fake.object_needs.prefers_dedicated = true;
    f->fake.info.limits.max_pages = 8;
    fixture_open(f, &LOCAL);
    for (int i = 0; i < 6; i++) {
        made[i] = buffer_of(f, 1000);
        CHECK(is_alone(f, made[i]));
    }
    for (int i = 0; i < 20; i++)
        CHECK(!is_alone(f, buffer_of(f, 1000)));
    CHECK_EQ(f->fake.pages, 7);
    f->fake.object_needs.dedicated = true;
    CHECK(is_alone(f, buffer_of(f, 1000)));
    CHECK_FAILS(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 1000}, &buffer),
                QUIRE_ERROR_TOO_MANY_PAGES);
    f->fake.object_needs.dedicated = false;
    for (int i = 0; i < 3; i++) /* 5 of 8 pages are left */
        CHECK_OK(quire_free(f->memory, made[i].allocation));
    CHECK_EQ(f->fake.pages, 5);
    CHECK(is_alone(f, buffer_of(f, 1000)));
    CHECK(!is_alone(f, buffer_of(f, 1000)));
}

CASE(the_callers_limit_of_pages_counts_for_preferences)
{
    f->fake.object_needs.prefers_dedicated = true;
    f->fake.info.limits.max_pages = 8;
    fixture_open(f, &LOCAL);
    CHECK_OK(quire_device_set_page_limit(f->device, 2));
    CHECK(is_alone(f, buffer_of(f, 1000)));
    CHECK(is_alone(f, buffer_of(f, 1000))); /* less than three quarters of 2 existed */
    CHECK_OK(quire_device_set_page_limit(f->device, 3));
    CHECK(is_alone(f, buffer_of(f, 1000)));
    CHECK_OK(quire_device_set_page_limit(f->device, 4));
    CHECK(!is_alone(f, buffer_of(f, 1000)));
    CHECK_OK(quire_device_set_page_limit(f->device, 0)); /* the device's own is 8 */
    CHECK(is_alone(f, buffer_of(f, 1000)));
}

CASE(a_backend_that_fills_is_called_once)
{
    fake_offer_fill(&f->fake);
    fixture_open(f, &LOCAL);
    ALLOCATE(f, .size = 200000, .zero = true);
    CHECK_EQ(f->fake.calls[FAKE_FILL_PAGE], 1);
    CHECK_EQ(f->fake.calls[FAKE_COPY_TO], 0);
}

#define MEMORY(name, ...)                                                                          \
    UNIT_ON(resource_tied, name, fixture, f, fixture_make(f, __VA_ARGS__), fixture_end)

/* ---- the backend's own descriptions---------------------------------------------------------- */

MEMORY(an_object_is_created_from_a_description, &LOCAL)
{
    quire_allocation made;
    quire_allocation_info info;
    const uint64_t bytes = 12345;
    quire_object_options options = {.object = QUIRE_OBJECT_IMAGE,
                                    .description = &bytes,
                                    .alignment = 4096,
                                    .name = "described",
                                    .user_data = 9,
                                    .described = {.image = {.width = 7, .native_format = 44}}};
    quire_image_info image_info;
    CHECK_OK(quire_object_create(f->memory, &options, &made));
    info = fixture_info(f, made);
    CHECK_EQ(info.requested, 12345);
    CHECK_EQ(info.object, QUIRE_OBJECT_IMAGE);
    CHECK_EQ(info.user_data, 9);
    CHECK_OK(quire_image_get_info(f->memory, (quire_image){made}, &image_info));
    CHECK_EQ(image_info.width, 7);
    CHECK_EQ(image_info.native_format, 44);
    CHECK_OK(quire_free(f->memory, made));
    CHECK_EQ(f->fake.objects, 0);
}

/* The fake creates an object all the same. The destruction shows who owns it. */
MEMORY(a_borrowed_object_is_never_destroyed, &LOCAL)
{
    quire_allocation made;
    quire_native native;
    const uint64_t bytes = 100;
    const quire_object_options options = {
        .object = QUIRE_OBJECT_BUFFER, .description = &bytes, .borrowed = true};
    CHECK_OK(quire_object_create(f->memory, &options, &made));
    CHECK_OK(quire_allocation_get_native(f->memory, made, &native));
    CHECK_OK(quire_free(f->memory, made));
    CHECK_EQ(f->fake.objects, 1);
    f->fake.table.object_destroy(&f->fake, QUIRE_OBJECT_BUFFER, native.handle);
}

MADE(an_unbound_object_is_placed_and_not_bound)
{
    quire_allocation made;
    quire_native native;
    const uint64_t bytes = 100;
    quire_object_options options = {
        .object = QUIRE_OBJECT_BUFFER, .description = &bytes, .borrowed = true, .unbound = true};
    CHECK_OK(quire_object_create(f->memory, &options, &made));
    CHECK_EQ(f->fake.calls[FAKE_OBJECT_BIND], 0);
    CHECK_OK(quire_allocation_get_native(f->memory, made, &native));
    CHECK(native.handle != 0);
    CHECK_EQ(f->fake.last_page.native, native.handle); /* the page is tied to it all the same */
    CHECK_OK(quire_free(f->memory, made));
    f->fake.table.object_destroy(&f->fake, QUIRE_OBJECT_BUFFER, native.handle);
    options.borrowed = false;
    CHECK_FAILS(quire_object_create(f->memory, &options, &made), INVALID);
    CHECK_HAS(quire_last_error(), "unbound is set");
    options.borrowed = options.zero = true;
    CHECK_FAILS(quire_object_create(f->memory, &options, &made), INVALID);
    CHECK_HAS(quire_last_error(), "unbound and zero are set");
    CHECK_EQ(f->fake.objects, 0);
}

/* ---- existing memory ------------------------------------------------------------------------ */

MEMORY(existing_memory_becomes_a_page, &LOCAL)
{
    quire_allocation made;
    const char description[] = "somewhere";
    const quire_allocation_options options = {.size = 3333, .name = "adopted"};
    CHECK_OK(quire_page_adopt(f->memory, description, &options, &made));
    CHECK(f->fake.last_page.description == description);
    CHECK_EQ(f->fake.last_page.size, 3333);
    CHECK_EQ(fixture_info(f, made).size, 3333);
    CHECK_EQ(fixture_stats(f).reserved_bytes, 3333);
    CHECK_OK(quire_free(f->memory, made));
    CHECK_EQ(f->fake.pages, 0);
    CHECK_FAILS(quire_page_adopt(f->memory, description, &(quire_allocation_options){0}, &made),
                INVALID);
    fake_fail(&f->fake, 1, false, QUIRE_ERROR_NOT_PERMITTED);
    CHECK_FAILS(quire_page_adopt(f->memory, description, &options, &made),
                QUIRE_ERROR_NOT_PERMITTED);
}

/* Created pages have the requested alignment. Existing memory keeps its own. */
CASE(existing_memory_keeps_its_alignment)
{
    quire_allocation made;
    f->fake.address_step = 512;
    fixture_open(f, &(quire_memory_options){.fit.max_alignment = 1 << 20});
    const quire_allocation_options options = {.size = 3000};
    CHECK_OK(quire_page_adopt(f->memory, "somewhere", &options, &made));
    CHECK_EQ(fixture_info(f, made).address % (1 << 20), 512);
    CHECK_EQ(fixture_info(f, made).offset, 0);
}

MEMORY(priorities_reach_the_backend_and_are_from_0_to_1, &(quire_memory_options){.priority = 0.75f})
{
    ALLOCATE(f, .size = 1);
    CHECK(f->fake.last_page.priority == 0.75f);
    quire_memory *memory = NULL;
    CHECK_FAILS(quire_memory_create(f->device, &(quire_memory_options){.priority = 1.5f}, &memory),
                INVALID);
    CHECK_FAILS(quire_memory_create(f->device, &(quire_memory_options){.priority = -0.5f}, &memory),
                INVALID);
}
