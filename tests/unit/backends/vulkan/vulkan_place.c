/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_place.c - where objects of create infos are placed: options that restrict the pages of one
 * object, and objects that the caller binds.
 */
#include "backends/vulkan/vulkan.h"
#include "quire/vulkan_sparse.h"
#include "tests/support/unit.h"
#include "tests/support/vulkan_bench.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)
#define NO_ROOM QUIRE_ERROR_OUT_OF_DEVICE_MEMORY

static const VkBufferCreateInfo BUFFER =
    VULKAN_BUFFER(64 * KIB, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                VK_BUFFER_USAGE_TRANSFER_DST_BIT);
static const VkImageCreateInfo IMAGE =
    VULKAN_IMAGE(64, VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT);

static quire_memory *begin(vulkan_bench *b, const char *layout, uint32_t flags)
{
    vulkan_bench_start(b, layout, flags);
    quire_memory *memory =
        vulkan_bench_memory(b, &(quire_memory_options){.kind.required = QUIRE_DEVICE_LOCAL});
    fv_reset_counters(b->driver);
    return memory;
}

static uint64_t pages_made(vulkan_bench *b)
{
    return fv_calls(b->driver, "vkAllocateMemory");
}

/* ---- existing pages ------------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_place, objects_take_only_existing_pages_on_request, begin(b, NULL, 0))
{
    quire_buffer buffer;
    quire_image image;
    quire_memory *own = NULL;
    const quire_vulkan_object_options options = {.existing_pages = true};
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &BUFFER, &options, &buffer), NO_ROOM);
    CHECK_FAILS(quire_vulkan_image_create(memory, &IMAGE, &options, &image), NO_ROOM);
    CHECK_HAS(quire_last_error(), "existing_pages is set");
    CHECK_FAILS(
        quire_vulkan_device_buffer_create(b->device, NULL, &BUFFER, &options, &own, &buffer),
        NO_ROOM);
    CHECK(own == NULL);
    b->has_defaults = true;
    CHECK_EQ(pages_made(b), 0);
    CHECK_OK(quire_memory_preallocate(memory, 1));
    CHECK_OK(quire_vulkan_buffer_create(memory, &BUFFER, &options, &buffer));
    CHECK_OK(quire_vulkan_image_create(memory, &IMAGE, &options, &image));
    CHECK_EQ(pages_made(b), 1);
}

VULKAN_UNIT_IN(vulkan_place, an_object_that_requires_a_page_is_refused_an_existing_one,
               begin(b, NULL, FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS))
{
    quire_buffer buffer;
    CHECK_OK(quire_memory_preallocate(memory, 1));
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &BUFFER,
                                           &(quire_vulkan_object_options){.existing_pages = true},
                                           &buffer),
                NO_ROOM);
    CHECK_EQ(pages_made(b), 1);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 0);
}

/* The parts become smaller until they fit into the free ranges. */
VULKAN_UNIT_IN(vulkan_place, the_parts_of_a_sparse_object_take_only_existing_pages_on_request,
               begin(b, NULL, 0))
{
    quire_allocation filler;
    quire_vulkan_sparse *sparse = NULL;
    VkBufferCreateInfo info = BUFFER;
    const quire_vulkan_object_options options = {.existing_pages = true};
    info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    info.size = 512 * KIB;
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, &options, &sparse), NO_ROOM);
    CHECK_OK(quire_memory_preallocate(memory, 1));
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 256 * KIB}, &filler));
    CHECK_OK(quire_vulkan_sparse_buffer_create(memory, &info, &options, &sparse));
    CHECK_EQ(pages_made(b), 1);
}

/* ---- budgets -------------------------------------------------------------------------------- */

VULKAN_UNIT_IN(vulkan_place, objects_stay_within_the_budget_on_request, begin(b, NULL, 0))
{
    quire_buffer buffer;
    quire_image image;
    quire_vulkan_sparse *sparse = NULL;
    VkBufferCreateInfo info = BUFFER;
    const quire_vulkan_object_options options = {.within_budget = true};
    info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    quire_memory_info memory_info;
    quire_device_info device_info;
    CHECK_OK(quire_memory_get_info(memory, &memory_info));
    CHECK_OK(quire_device_get_info(b->device, &device_info));
    fv_set_budget(b->driver, 0, device_info.kinds[memory_info.kind].heap, 1, 0);
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &BUFFER, &options, &buffer),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_FAILS(quire_vulkan_image_create(memory, &IMAGE, &options, &image),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, &options, &sparse),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_EQ(pages_made(b), 0);
    CHECK_OK(quire_vulkan_buffer_create(memory, &BUFFER, NULL, &buffer));
    CHECK_EQ(pages_made(b), 1);
}

/* ---- objects that the caller binds ---------------------------------------------------------- */

#define CALL(b, name) VULKAN_CALL(vulkan_bench_handles(b), name)

static VkBuffer native_buffer(vulkan_bench *b)
{
    VkBuffer native = VK_NULL_HANDLE;
    CHECK_EQ(CALL(b, vkCreateBuffer)(vulkan_bench_handles(b).device, &BUFFER, NULL, &native), 0);
    return native;
}

static VkImage native_image(vulkan_bench *b)
{
    VkImage native = VK_NULL_HANDLE;
    CHECK_EQ(CALL(b, vkCreateImage)(vulkan_bench_handles(b).device, &IMAGE, NULL, &native), 0);
    return native;
}

static bool is_bound(vulkan_bench *b, uint64_t native)
{
    return fv_place_of(b->driver, native).memory != VK_NULL_HANDLE;
}

static void use(quire_memory *memory, quire_allocation allocation)
{
    char bytes[8] = "";
    CHECK_OK(quire_write(memory, allocation, 0, "quire", 6));
    CHECK_OK(quire_read(memory, allocation, 0, bytes, 6));
    CHECK(!strcmp(bytes, "quire"));
}

/* What the driver says of dedicated pages. */
static const uint32_t DEDICATION[] = {
    0,
    FV_PREFER_DEDICATED | FV_DEDICATED_BUFFERS,
    FV_REQUIRE_DEDICATED | FV_DEDICATED_BUFFERS,
};
enum { DEDICATIONS = sizeof DEDICATION / sizeof *DEDICATION };

VULKAN_UNIT_EACH(vulkan_place, the_caller_binds_an_unbound_buffer, i, DEDICATIONS)
{
    quire_buffer buffer;
    quire_vulkan_range range;
    quire_allocation_info info;
    quire_memory *memory = begin(b, NULL, DEDICATION[i]);
    VkBuffer native = native_buffer(b);
    const quire_vulkan_object_options options = {
        .create_info = &BUFFER, .unbound = true, .info = &info};
    CHECK_OK(quire_vulkan_buffer_place(memory, native, &options, &buffer));
    CHECK(vulkan_buffer_of(memory, buffer) == native);
    CHECK(!is_bound(b, QI_VULKAN_NUMBER(native)));
    CHECK_EQ(info.dedicated, i != 0);
    if (!info.dedicated)
        use(memory, buffer.allocation); /* through the buffer over the page */
    CHECK_OK(quire_vulkan_get_range(memory, buffer.allocation, &range));
    CHECK_EQ(vulkan_bench_page(b, memory, buffer.allocation).dedicated, i != 0);
    CHECK_EQ(CALL(b, vkBindBufferMemory)(vulkan_bench_handles(b).device, native, range.memory,
                                         range.memory_offset),
             0);
    use(memory, buffer.allocation);
    CALL(b, vkDestroyBuffer)(vulkan_bench_handles(b).device, native, NULL);
    CHECK_OK(quire_free(memory, buffer.allocation));
}

VULKAN_UNIT_EACH(vulkan_place, the_caller_binds_an_unbound_image, i, DEDICATIONS)
{
    quire_image image;
    quire_vulkan_range range;
    quire_allocation_info info;
    quire_memory *memory = begin(b, NULL, DEDICATION[i]);
    VkImage native = native_image(b);
    const quire_vulkan_object_options options = {.unbound = true, .info = &info};
    CHECK_OK(quire_vulkan_image_place(memory, native, &options, &image));
    CHECK(!is_bound(b, QI_VULKAN_NUMBER(native)));
    CHECK_EQ(info.dedicated, i != 0);
    CHECK_OK(quire_vulkan_get_range(memory, image.allocation, &range));
    CHECK_EQ(CALL(b, vkBindImageMemory)(vulkan_bench_handles(b).device, native, range.memory,
                                        range.memory_offset),
             0);
    CALL(b, vkDestroyImage)(vulkan_bench_handles(b).device, native, NULL);
    CHECK_OK(quire_free(memory, image.allocation));
}

VULKAN_UNIT_EACH(vulkan_place, an_object_that_is_never_bound_is_freed_like_others, i, DEDICATIONS)
{
    quire_buffer buffer;
    quire_point point;
    quire_stream *stream = NULL;
    quire_memory *memory = begin(b, NULL, DEDICATION[i]);
    VkBuffer native = native_buffer(b);
    CHECK_OK(quire_stream_create(b->device, NULL, &stream));
    const quire_vulkan_object_options options = {
        .create_info = &BUFFER, .unbound = true, .name = "unbound", .stream = stream};
    CHECK_OK(quire_vulkan_buffer_place(memory, native, &options, &buffer));
    CHECK_OK(quire_free_on_stream(memory, buffer.allocation, stream));
    CHECK_OK(quire_vulkan_buffer_place(memory, native, &options, &buffer));
    CHECK_OK(quire_free(memory, buffer.allocation));
    CHECK(!is_bound(b, QI_VULKAN_NUMBER(native)));
    CALL(b, vkDestroyBuffer)(vulkan_bench_handles(b).device, native, NULL);
    CHECK_OK(quire_stream_mark(stream, &point));
    CHECK_OK(quire_point_await(&point, QUIRE_FOREVER));
    CHECK_OK(quire_collect(memory, NULL));
    CHECK_OK(quire_stream_destroy(&stream));
}

VULKAN_UNIT_IN(vulkan_place, an_unbound_object_that_finds_no_room_stays_the_callers,
               begin(b, NULL, 0))
{
    quire_buffer buffer = {{1}};
    VkBuffer native = native_buffer(b);
    const quire_vulkan_object_options options = {.unbound = true, .existing_pages = true};
    CHECK_FAILS(quire_vulkan_buffer_place(memory, native, &options, &buffer), NO_ROOM);
    CHECK_EQ(buffer.allocation.id, 0);
    CHECK_EQ(fv_live(b->driver, FV_BUFFER), 1);
    CALL(b, vkDestroyBuffer)(vulkan_bench_handles(b).device, native, NULL);
}

VULKAN_UNIT_IN(vulkan_place, unbound_is_refused_where_the_caller_cannot_bind, begin(b, NULL, 0))
{
    const quire_result invalid = QUIRE_ERROR_INVALID_ARGUMENT;
    const quire_vulkan_object_options options = {.unbound = true},
                                      zero = {.unbound = true, .zero = true};
    quire_buffer buffer;
    quire_image image;
    uint32_t chosen = 0;
    quire_vulkan_sparse *sparse = NULL;
    VkBufferCreateInfo info = BUFFER;
    quire_memory *own = NULL;
    info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &BUFFER, &options, &buffer), invalid);
    CHECK_HAS(quire_last_error(), "quire_vulkan_object_options.unbound");
    CHECK_FAILS(quire_vulkan_image_create(memory, &IMAGE, &options, &image), invalid);
    CHECK_FAILS(
        quire_vulkan_buffer_create_fallback(&memory, 1, &BUFFER, &options, &chosen, &buffer),
        invalid);
    CHECK_FAILS(quire_vulkan_image_create_fallback(&memory, 1, &IMAGE, &options, &chosen, &image),
                invalid);
    CHECK_FAILS(
        quire_vulkan_device_buffer_create(b->device, NULL, &BUFFER, &options, &own, &buffer),
        invalid);
    CHECK_FAILS(quire_vulkan_device_image_create(b->device, NULL, &IMAGE, &options, &own, &image),
                invalid);
    CHECK_FAILS(quire_vulkan_sparse_buffer_create(memory, &info, &options, &sparse), invalid);
    CHECK_HAS(quire_last_error(), "quire_vulkan_object_options.unbound");
    CHECK_EQ(fv_live(b->driver, FV_BUFFER) + fv_live(b->driver, FV_IMAGE), 0);
    VkBuffer native = native_buffer(b);
    VkImage picture = native_image(b);
    CHECK_FAILS(quire_vulkan_buffer_place(memory, native, &zero, &buffer), invalid);
    CHECK_HAS(quire_last_error(), "zeros are written after the object is bound");
    CHECK_FAILS(quire_vulkan_image_place(memory, picture, &zero, &image), invalid);
    CALL(b, vkDestroyBuffer)(vulkan_bench_handles(b).device, native, NULL);
    CALL(b, vkDestroyImage)(vulkan_bench_handles(b).device, picture, NULL);
    CHECK_EQ(pages_made(b), 0);
}

/* ---- objects of the caller, without a memory ------------------------------------------------- */

VULKAN_UNIT_ON(vulkan_place, objects_of_the_caller_are_placed_in_the_best_memory_with_room,
               begin(b, "amd-bar", 0))
{
    quire_buffer buffer;
    quire_image image;
    quire_memory *memory = NULL, *next = NULL;
    quire_memory_info info;
    VkBuffer native = native_buffer(b), second = native_buffer(b);
    VkImage picture = native_image(b);
    const quire_kind_request upload = {.intent = QUIRE_INTENT_UPLOAD};
    CHECK_OK(quire_vulkan_device_buffer_place(b->device, &upload, native,
                                              &(quire_vulkan_object_options){.name = "mine"},
                                              &memory, &buffer));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK(info.mappable && !(info.flags & QUIRE_DEVICE_LOCAL));
    CHECK(vulkan_buffer_of(memory, buffer) == native);
    CHECK_OK(quire_device_free(b->device, buffer.allocation));
    CALL(b, vkDestroyBuffer)(vulkan_bench_handles(b).device, native, NULL);

    CHECK_OK(quire_vulkan_device_image_place(b->device, NULL, picture, NULL, &memory, &image));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK(info.flags & QUIRE_DEVICE_LOCAL);
    CHECK(vulkan_image_of(memory, image) == picture);
    CHECK_OK(quire_device_free(b->device, image.allocation));
    CALL(b, vkDestroyImage)(vulkan_bench_handles(b).device, picture, NULL);

    CHECK_OK(quire_memory_set_limit(memory, 1)); /* full: the next kind follows */
    CHECK_OK(quire_vulkan_device_buffer_place(b->device, NULL, second, NULL, &next, &buffer));
    CHECK(next != memory);
    CHECK_OK(quire_device_free(b->device, buffer.allocation));
    CHECK_FAILS(quire_vulkan_device_buffer_place(b->device,
                                                 &(quire_kind_request){.required = QUIRE_PROTECTED},
                                                 second, NULL, &next, &buffer),
                QUIRE_ERROR_UNSUPPORTED);
    CHECK(next == NULL && !buffer.allocation.id);
    CALL(b, vkDestroyBuffer)(vulkan_bench_handles(b).device, second, NULL);
}

/* A linear image keeps the granularity to its neighbours of optimal tiling; without its create info
   the caller says that it is linear. */
VULKAN_UNIT_ON(vulkan_place, the_tiling_of_an_image_without_a_create_info_is_an_option,
               begin(b, NULL, 0))
{
    quire_image image;
    VkImage picture = native_image(b);
    quire_memory *memory =
        vulkan_bench_memory(b, &(quire_memory_options){.kind.required = QUIRE_DEVICE_LOCAL});
    CHECK_FAILS(quire_vulkan_image_place(memory, picture,
                                         &(quire_vulkan_object_options){.tiling = (quire_tiling)2},
                                         &image),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "tiling 2 is unknown");
    quire_buffer buffer;
    CHECK_FAILS(quire_vulkan_buffer_create(
                    memory, &BUFFER, &(quire_vulkan_object_options){.tiling = QUIRE_TILING_LINEAR},
                    &buffer),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_HAS(quire_last_error(), "is of an image that the caller created");
    CHECK_OK(quire_vulkan_image_place(
        memory, picture, &(quire_vulkan_object_options){.tiling = QUIRE_TILING_LINEAR}, &image));
    CHECK_OK(quire_free(memory, image.allocation));
    CALL(b, vkDestroyImage)(vulkan_bench_handles(b).device, picture, NULL);
}
