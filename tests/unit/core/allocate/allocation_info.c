/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * allocation_info.c - the description that an allocating call writes beside the handle: equal to
 * that of quire_allocation_get_info on success, zeros on failure.
 */
#include "tests/support/deferred_reuse.h"

static void check_same(bench *w, quire_allocation allocation, const quire_allocation_info *info)
{
    quire_allocation_info expected;
    CHECK_OK(quire_allocation_get_info(w->f.memory, allocation, &expected));
    CHECK_EQ(info->page, expected.page);
    CHECK_EQ(info->dedicated, expected.dedicated);
    CHECK_EQ(info->committed, expected.committed);
    CHECK_EQ(info->offset, expected.offset);
    CHECK_EQ(info->left_padding, expected.left_padding);
    CHECK_EQ(info->size, expected.size);
    CHECK_EQ(info->requested, expected.requested);
    CHECK_EQ(info->address, expected.address);
    CHECK_EQ(info->user_data, expected.user_data);
    CHECK_EQ(info->map_count, 0);
    CHECK_EQ(info->object, expected.object);
    CHECK_EQ(info->native, expected.native);
}

/* A description that the next call must overwrite in full. */
static quire_allocation_info dirty(void)
{
    quire_allocation_info info;
    memset(&info, 0xaa, sizeof info);
    return info;
}

static void check_zero(const quire_allocation_info *info)
{
    const unsigned char *bytes = (const unsigned char *)info;
    for (size_t i = 0; i < sizeof *info; i++)
        CHECK_EQ(bytes[i], 0);
}

#define CASE(name) UNIT_ON(allocation_info, name, bench, w, begin(w), end)

CASE(of_every_way_to_allocate_is_that_of_get_info)
{
    const quire_allocation_options cases[] = {
        {.size = 100, .user_data = 7},
        {.size = 3000, .alignment = 4096, .name = "named"},
        {.size = 1000, .zero = true},
        {.size = 2 * PAGE, .user_data = 8}, /* a dedicated page, by the policy */
        {.size = 100, .dedicated = true},
        {.size = 100, .stream = w->a},
        {.size = 100, .stream = w->a, .name = "on a stream"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        quire_allocation_info info = dirty();
        quire_allocation_options options = cases[i];
        quire_allocation made;
        options.info = &info;
        CHECK_OK(quire_allocate(w->f.memory, &options, &made));
        check_same(w, made, &info);
        info = dirty();
        CHECK_OK(quire_reserve(w->f.memory, &options, &made));
        CHECK(!info.committed);
        check_same(w, made, &info);
        CHECK_OK(quire_abort(w->f.memory, made));
        info = dirty();
        uint32_t chosen = 0;
        CHECK_OK(quire_allocate_fallback(&w->f.memory, 1, &options, &chosen, &made));
        check_same(w, made, &info);
    }
}

CASE(of_a_reused_range_is_that_of_the_new_allocation)
{
    CHECK_OK(quire_free_on_stream(w->f.memory, ON(w, w->a, .size = KIB, .user_data = 1), w->a));
    quire_allocation_info info = dirty();
    quire_allocation made = ON(w, w->a, .size = KIB - 7, .user_data = 2, .info = &info);
    CHECK_EQ(info.user_data, 2);
    CHECK_EQ(info.requested, KIB - 7);
    check_same(w, made, &info);
}

CASE(of_a_batch_is_an_array)
{
    enum { COUNT = 150 }; /* more than one group */
    static quire_allocation made[COUNT];
    static quire_allocation_info info[COUNT];
    quire_stream *streams[] = {NULL, w->a};
    for (int s = 0; s < 2; s++) {
        memset(info, 0xaa, sizeof info);
        const quire_allocation_options options = {.size = KIB, .stream = streams[s], .info = info};
        CHECK_OK(quire_allocate_batch(w->f.memory, &options, made, COUNT));
        for (int i = 0; i < COUNT; i++)
            check_same(w, made[i], &info[i]);
    }
}

CASE(of_a_buffer_and_an_image_has_the_object)
{
    quire_allocation_info info = dirty();
    quire_buffer buffer;
    quire_image image;
    uint32_t chosen = 0;
    CHECK_OK(quire_buffer_create(
        w->f.memory, &(quire_buffer_options){.size = 100, .user_data = 5, .info = &info}, &buffer));
    CHECK_EQ(info.object, QUIRE_OBJECT_BUFFER);
    CHECK(info.native);
    check_same(w, buffer.allocation, &info);
    info = dirty();
    CHECK_OK(quire_buffer_create_fallback(
        &w->f.memory, 1, &(quire_buffer_options){.size = 100, .info = &info}, &chosen, &buffer));
    check_same(w, buffer.allocation, &info);
    info = dirty();
    CHECK_OK(quire_image_create(
        w->f.memory, &(quire_image_options){.width = 9, .user_data = 6, .info = &info}, &image));
    CHECK_EQ(info.object, QUIRE_OBJECT_IMAGE);
    check_same(w, image.allocation, &info);
    info = dirty();
    CHECK_OK(quire_image_create_fallback(
        &w->f.memory, 1, &(quire_image_options){.width = 9, .info = &info}, &chosen, &image));
    check_same(w, image.allocation, &info);
}

UNIT_PREPARED(allocation_info, has_the_address_that_the_backend_reports_on_request, f)
{
    fake_offer_device_address(&f->fake);
    f->fake.device_address = 0x7000;
    fixture_open(f, &(quire_memory_options){0});
    quire_allocation_info info = dirty(), later;
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(f->memory, &(quire_buffer_options){.size = 100, .info = &info},
                                 &buffer));
    CHECK_OK(quire_allocation_get_info(f->memory, buffer.allocation, &later));
    CHECK_EQ(info.address, later.address);
}

CASE(of_adopted_memory)
{
    const uint64_t size = 2 * PAGE;
    quire_allocation_info info = dirty();
    quire_allocation adopted;
    CHECK_OK(quire_page_adopt(w->f.memory, &size,
                              &(quire_allocation_options){.size = size, .info = &info}, &adopted));
    check_same(w, adopted, &info);
}

CASE(is_zero_after_a_failure)
{
    quire_allocation_info info = dirty(), many[3];
    const quire_allocation_options bad = {.size = UINT64_MAX, .info = &info},
                                   on = {.size = UINT64_MAX, .stream = w->a, .info = &info};
    const quire_buffer_options buffers = {.size = UINT64_MAX, .info = &info};
    const quire_image_options images = {.info = &info};
    quire_allocation made;
    quire_buffer buffer;
    quire_image image;
    uint32_t chosen;
    quire_memory *none = NULL;
#define ZEROED(call)                                                                               \
    do {                                                                                           \
        info = dirty();                                                                            \
        CHECK(call);                                                                               \
        check_zero(&info);                                                                         \
    } while (0)
    ZEROED(quire_allocate(w->f.memory, &bad, &made));
    ZEROED(quire_allocate(NULL, &bad, &made));
    ZEROED(quire_allocate(w->f.memory, &bad, NULL));
    ZEROED(quire_allocate(w->f.memory, &on, &made));
    ZEROED(quire_reserve(w->f.memory, &bad, &made));
    ZEROED(quire_allocate_fallback(&w->f.memory, 1, &bad, &chosen, &made));
    ZEROED(quire_allocate_fallback(&none, 1, &bad, &chosen, &made));
    ZEROED(quire_page_adopt(w->f.memory, NULL, &bad, &made));
    ZEROED(quire_buffer_create(w->f.memory, &buffers, &buffer));
    ZEROED(quire_buffer_create(NULL, &buffers, &buffer));
    ZEROED(quire_buffer_create_fallback(&none, 1, &buffers, &chosen, &buffer));
    ZEROED(quire_image_create(w->f.memory, &images, &image));
    ZEROED(quire_image_create(w->f.memory, &images, NULL));
    ZEROED(quire_image_create_fallback(&none, 1, &images, &chosen, &image));
#undef ZEROED
    memset(many, 0xaa, sizeof many);
    quire_allocation batch[3];
    CHECK(quire_allocate_batch(
        w->f.memory, &(quire_allocation_options){.size = UINT64_MAX, .info = many}, batch, 3));
    for (int i = 0; i < 3; i++)
        check_zero(&many[i]);
}
