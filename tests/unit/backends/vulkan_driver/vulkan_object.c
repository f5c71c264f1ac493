/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_object.c - buffers, images, views, ranges and memory of other APIs, on a driver of this
 * machine under the validation layer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/random.h"
#include "tests/support/real_vulkan.h"
#include "tests/support/vulkan_commands.h"
#include "tests/support/vulkan_native.h"

#define INVALID QUIRE_ERROR_INVALID_ARGUMENT
#define UNSUPPORTED QUIRE_ERROR_UNSUPPORTED
#define KIB UINT64_C(1024)

static const VkBufferCreateInfo BUFFER = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .size = 1000,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
             VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
};

static const VkImageCreateInfo IMAGE = {
    VULKAN_IMAGE_2D(VK_FORMAT_R8G8B8A8_UNORM, 64, 32, 3, 2),
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

/* ---- images of every sort -------------------------------------------------------------------- */

/* Writes and reads random texels, and creates views with and without a sampler. */
static void round_trip(real_vulkan *r, quire_memory *memory, const quire_image_options *options)
{
    quire_image image;
    quire_image_info info;
    quire_lluvia_view view;
    test_random random = {options->width};
    CHECK_OK(quire_image_create(memory, options, &image));
    CHECK_OK(quire_image_get_info(memory, image, &info));
    unsigned char *in = malloc(info.minimum_size), *out = malloc(info.minimum_size);
    CHECK(in && out);
    for (uint64_t i = 0; i < info.minimum_size; i++)
        in[i] = (unsigned char)random_next(&random);
    CHECK_OK(quire_lluvia_image_write(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                      VK_IMAGE_LAYOUT_GENERAL, in, info.minimum_size));
    CHECK_OK(
        quire_lluvia_image_read(memory, image, VK_IMAGE_LAYOUT_GENERAL, out, info.minimum_size));
    CHECK(!memcmp(in, out, info.minimum_size));
    if (info.usage & (QUIRE_USAGE_SAMPLED | QUIRE_USAGE_STORAGE)) {
        CHECK_OK(quire_lluvia_view_create(memory, image,
                                          &(quire_lluvia_view_options){.sampled = true}, &view));
        CHECK(view.sampler != VK_NULL_HANDLE);
        CHECK_OK(quire_lluvia_view_destroy(r->quire, &view));
    }
    free(in);
    free(out);
    CHECK_OK(quire_free(memory, image.allocation));
}

/* Queries the requirements first. Both calls must refuse an unsupported image. Returns whether
   it is supported. */
static bool try_image(real_vulkan *r, quire_memory *memory, quire_image_options options)
{
    quire_requirements needs;
    quire_image image;
    options.usage = QUIRE_USAGE_TRANSFER_SOURCE | QUIRE_USAGE_TRANSFER_TARGET;
    quire_image_options sampled = options;
    sampled.usage |= QUIRE_USAGE_SAMPLED;
    if (!quire_image_get_requirements(r->quire, &sampled, &needs))
        options = sampled;
    quire_result result = quire_image_get_requirements(r->quire, &options, &needs);
    if (result) {
        CHECK_EQ(result, UNSUPPORTED);
        CHECK_FAILS(quire_image_create(memory, &options, &image), UNSUPPORTED);
        return false;
    }
    CHECK(needs.size && needs.alignment && needs.kind_mask);
    if (options.tiling == QUIRE_TILING_LINEAR)
        CHECK(needs.row_pitch >= options.width);
    round_trip(r, memory, &options);
    return true;
}

REAL_UNIT_ON(vulkan_object, every_channel_type_count_dimension_and_tiling, real_begin_wrapped(r))
{
    static const struct {
        uint32_t width, height, depth;
    } shapes[] = {{37, 1, 1}, {37, 5, 1}, {13, 5, 3}};
    int made = 0, asked = 0;
    quire_memory *memory = real_memory(r, NULL);
    for (int type = QUIRE_UINT8; type <= QUIRE_FLOAT64; type++)
        for (uint32_t channels = 1; channels <= 4; channels++)
            for (int shape = 0; shape < 3; shape++)
                for (int tiling = 0; tiling < 2; tiling++) {
                    const quire_image_options options = {
                        .width = shapes[shape].width,
                        .height = shapes[shape].height,
                        .depth = shapes[shape].depth,
                        .channel_count = channels,
                        .channel_type = (quire_channel_type)type,
                        .tiling = (quire_tiling)tiling,
                    };
                    CHECK(quire_vulkan_format((quire_channel_type)type, channels) !=
                          VK_FORMAT_UNDEFINED);
                    made += try_image(r, memory, options);
                    asked++;
                }
    fprintf(stderr, "%d of %d sorts of images are supported by %s\n", made, asked,
            r->properties.deviceName);
    CHECK_EQ(asked, 264);
    CHECK(made >= 40);
    real_memory_end(memory);
}

/* The staging ring is smaller than a slice and than a row. */
REAL_UNIT_ON(vulkan_object, images_larger_than_the_staging_ring, real_begin(r))
{
    r->wrap.settings.staging_size = 4 * KIB;
    real_wrap(r);
    quire_memory *memory = real_memory(r, NULL);
    const quire_image_options slices = {.width = 20, .height = 10, .depth = 50};
    const quire_image_options rows = {.width = 300, .height = 200};
    const quire_image_options parts = {
        .width = 3000, .height = 3, .channel_type = QUIRE_FLOAT32, .channel_count = 4};
    round_trip(r, memory, &slices);
    round_trip(r, memory, &rows);
    round_trip(r, memory, &parts);
    CHECK(r->locked > 100);
    real_memory_end(memory);
}

REAL_UNIT_ON(vulkan_object, wrong_texels_layouts_and_views_are_refused, real_begin_wrapped(r))
{
    static unsigned char data[64];
    quire_image image, other;
    quire_buffer buffer;
    quire_lluvia_view view;
    quire_memory *memory = real_memory(r, NULL);
    CHECK_OK(quire_image_create(memory, &(quire_image_options){.width = 8, .height = 8}, &image));
    CHECK_OK(quire_vulkan_image_create(memory, &IMAGE, NULL, &other));
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 64}, &buffer));
    const VkImageLayout any = VK_IMAGE_LAYOUT_UNDEFINED, general = VK_IMAGE_LAYOUT_GENERAL;
    CHECK_FAILS(quire_lluvia_image_write(memory, image, any, general, data, 63),
                QUIRE_ERROR_OUT_OF_RANGE);
    CHECK_FAILS(quire_lluvia_image_write(memory, image, any, general, NULL, 64), INVALID);
    CHECK_FAILS(quire_lluvia_image_write(memory, image, any, any, data, 64), INVALID);
    CHECK_FAILS(quire_lluvia_image_write(memory, other, any, general, data, 64), UNSUPPORTED);
    CHECK_FAILS(
        quire_lluvia_image_read(memory, (quire_image){buffer.allocation}, general, data, 64),
        INVALID);
    CHECK_FAILS(quire_lluvia_image_read(memory, image, any, data, 64), INVALID);
    CHECK_FAILS(quire_lluvia_image_set_layout(memory, image, any, VK_IMAGE_LAYOUT_PREINITIALIZED),
                INVALID);
    quire_lluvia_view_options options = {.sampled = true,
                                         .unnormalized = true}; /* repeat, in texels: invalid */
    CHECK_FAILS(quire_lluvia_view_create(memory, image, &options, &view), INVALID);
    CHECK(view.view == VK_NULL_HANDLE);
    options.address_u = options.address_v = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE;
    CHECK_OK(quire_lluvia_view_create(memory, image, &options, &view));
    CHECK_OK(quire_lluvia_view_destroy(r->quire, &view));
    CHECK_OK(quire_lluvia_view_destroy(r->quire, &view)); /* a view that is empty */
    options.filter = (quire_lluvia_filter)2;
    CHECK_FAILS(quire_lluvia_view_create(memory, image, &options, &view), INVALID);
    options = (quire_lluvia_view_options){.unused = {1}};
    CHECK_FAILS(quire_lluvia_view_create(memory, image, &options, &view), INVALID);
    CHECK_OK(quire_lluvia_view_create(memory, other, NULL, &view));
    CHECK(view.view != VK_NULL_HANDLE && view.sampler == VK_NULL_HANDLE);
    CHECK_OK(quire_lluvia_view_destroy(r->quire, &view));
    CHECK_OK(quire_free(memory, buffer.allocation));
    CHECK_OK(quire_free(memory, image.allocation));
    CHECK_OK(quire_free(memory, other.allocation));
    real_memory_end(memory);
}

/* ---- the caller's own descriptions----------------------------------------------------------- */

REAL_UNIT_ON(vulkan_object, buffers_and_images_from_vulkans_descriptions, real_begin_wrapped(r))
{
    quire_buffer buffer;
    quire_image image;
    quire_buffer_info buffer_info;
    quire_image_info image_info;
    quire_memory *memory = real_memory(r, NULL);
    quire_memory *visible =
        real_memory(r, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE});
    const quire_vulkan_object_options options = {
        .alignment = 4096, .name = "mine", .user_data = 7, .zero = true, .host_read = true};
    CHECK_OK(quire_vulkan_buffer_create(visible, &BUFFER, &options, &buffer));
    CHECK_OK(quire_buffer_get_info(visible, buffer, &buffer_info));
    CHECK_EQ(buffer_info.size, 1000);
    CHECK_EQ(buffer_info.place.offset % 4096, 0);
    CHECK_EQ(buffer_info.place.user_data, 7);
    CHECK(buffer_info.place.native != 0);
    CHECK_OK(quire_vulkan_image_create(memory, &IMAGE, NULL, &image));
    CHECK_OK(quire_image_get_info(memory, image, &image_info));
    CHECK_EQ(image_info.width, 64);
    CHECK_EQ(image_info.native_format, VK_FORMAT_R8G8B8A8_UNORM);
    uint64_t granularity = r->properties.limits.bufferImageGranularity;
    if (granularity <= 1024) { /* above, images have pages of their own */
        CHECK_EQ(image_info.place.offset % granularity, 0);
        CHECK_EQ(image_info.place.size % granularity, 0);
    }
    CHECK_OK(quire_lluvia_image_set_layout(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                           VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL));
    CHECK_OK(quire_free(visible, buffer.allocation));
    CHECK_OK(quire_free(memory, image.allocation));
    real_memory_end(visible);
    real_memory_end(memory);
}

REAL_UNIT_ON(vulkan_object, wrong_descriptions_are_refused, real_begin_wrapped(r))
{
    quire_buffer buffer;
    quire_image image;
    quire_requirements needs;
    quire_memory *memory = real_memory(r, NULL);
    VkBufferCreateInfo info = BUFFER;
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &info,
                                           &(quire_vulkan_object_options){.alignment = 3}, &buffer),
                INVALID);
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &info,
                                           &(quire_vulkan_object_options){.unused = {1}}, &buffer),
                INVALID);
    info.size = 0;
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &info, NULL, &buffer), INVALID);
    CHECK_FAILS(quire_vulkan_buffer_requirements(r->quire, &info, &needs), INVALID);
    info = BUFFER;
    info.flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT;
    CHECK_FAILS(quire_vulkan_buffer_create(memory, &info, NULL, &buffer), UNSUPPORTED);
    VkImageCreateInfo picture = IMAGE;
    picture.extent.width = 0;
    CHECK_FAILS(quire_vulkan_image_create(memory, &picture, NULL, &image), INVALID);
    picture.extent.width = 1u << 30;
    CHECK_FAILS(quire_vulkan_image_create(memory, &picture, NULL, &image), UNSUPPORTED);
    CHECK_FAILS(quire_vulkan_image_requirements(r->quire, &picture, &needs), UNSUPPORTED);
    picture = IMAGE;
    picture.flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT;
    CHECK_FAILS(quire_vulkan_image_create(memory, &picture, NULL, &image), UNSUPPORTED);
    CHECK_OK(quire_vulkan_buffer_requirements(r->quire, &BUFFER, &needs));
    CHECK(needs.size >= 1000);
    CHECK_OK(quire_vulkan_image_requirements(r->quire, &IMAGE, &needs));
    CHECK(needs.size >= 64 * 32 * 4 * 2);
    real_memory_end(memory);
}

/* The validation layer checks every pNext chain. */
UNIT(vulkan_object, a_chain_of_the_callers_is_behind_that_of_pages)
{
    static const VkMemoryOpaqueCaptureAddressAllocateInfo captured = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_OPAQUE_CAPTURE_ADDRESS_ALLOCATE_INFO};
    const quire_vulkan_memory_options own = {.next = &captured};
    quire_memory *memory = NULL;
    quire_buffer buffer;
    real_vulkan r;
    real_begin_wrapped(&r);
    if (VK_API_VERSION_MINOR(r.properties.apiVersion) < 2) {
        real_end(&r);
        unit_skip("the structure of the chain is of Vulkan 1.2");
    }
    CHECK_OK(quire_vulkan_memory_create(r.quire, NULL, &own, &memory));
    for (int i = 0; i < 3; i++)
        CHECK_OK(quire_vulkan_buffer_create(
            memory, &BUFFER, &(quire_vulkan_object_options){.dedicated = i > 1}, &buffer));
    quire_memory_destroy_all(&memory);
    real_end(&r);
}

REAL_UNIT_ON(vulkan_object, objects_share_the_bytes_of_a_range, real_begin_wrapped(r))
{
    quire_allocation range;
    quire_vulkan_alias *all[4] = {NULL};
    quire_vulkan_alias_info info;
    uint32_t words[3] = {0};
    quire_memory *memory = real_memory(r, NULL);
    VkImageCreateInfo picture = IMAGE;
    picture.flags = VK_IMAGE_CREATE_ALIAS_BIT;
    CHECK_OK(quire_allocate(
        memory, &(quire_allocation_options){.size = 128 * KIB, .alignment = 64 * KIB}, &range));
    for (unsigned i = 0; i < 4; i++) {
        const quire_vulkan_alias_options at = {.offset = i == 1 ? 512 : 0};
        CHECK_OK(i < 2 ? quire_vulkan_alias_buffer_create(memory, range, &BUFFER, &at, &all[i])
                       : quire_vulkan_alias_image_create(memory, range, &picture, &at, &all[i]));
    }
    for (unsigned i = 0; i < 2; i++) {
        CHECK_OK(quire_vulkan_alias_get_info(all[i], &info));
        vulkan_commands_fill(r->quire, info.buffer, 0, VK_WHOLE_SIZE, i + 1);
    }
    CHECK_OK(quire_read(memory, range, 0, &words[0], 4));
    CHECK_OK(quire_read(memory, range, 508, &words[1], 8));
    CHECK_EQ(words[0], 1);
    CHECK_EQ(words[1], 1);
    CHECK_EQ(words[2], 2); /* the other object overwrote it */
    for (unsigned i = 0; i < 4; i++) {
        CHECK_FAILS(quire_free(memory, range), QUIRE_ERROR_BUSY);
        CHECK_OK(quire_vulkan_alias_destroy(&all[i]));
    }
    CHECK_OK(quire_free(memory, range));
    real_memory_end(memory);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

REAL_UNIT_ON(vulkan_object, a_caller_who_binds_gets_memory_and_offset, real_begin_wrapped(r))
{
    VkBuffer native;
    quire_allocation allocation;
    quire_vulkan_range range;
    VkMemoryDedicatedRequirements dedicated = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
                                   .pNext = &dedicated};
    quire_memory *memory = real_memory(r, NULL);
    CHECK_EQ(REAL(r, vkCreateBuffer)(r->device, &BUFFER, NULL, &native), 0);
    REAL(r, vkGetBufferMemoryRequirements2)
    (r->device,
     &(VkBufferMemoryRequirementsInfo2){
         .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = native},
     &needs);
    quire_allocation_options options = {.name = "kept"};
    CHECK_OK(quire_vulkan_range_options(memory, &needs, QUIRE_TILING_LINEAR, &options));
    CHECK_EQ(options.size, needs.memoryRequirements.size);
    CHECK_STR(options.name, "kept");
    CHECK_OK(quire_reserve(memory, &options, &allocation));
    CHECK_OK(quire_vulkan_get_range(memory, allocation, &range));
    CHECK_EQ(REAL(r, vkBindBufferMemory)(r->device, native, range.memory, range.memory_offset), 0);
    CHECK_OK(quire_commit(memory, allocation));
    CHECK_OK(quire_vulkan_range_options(memory, &needs, QUIRE_TILING_OPTIMAL, &options));
    CHECK_EQ(options.alignment % r->properties.limits.bufferImageGranularity, 0);
    REAL(r, vkDestroyBuffer)(r->device, native, NULL);
    CHECK_OK(quire_free(memory, allocation));
    needs.memoryRequirements.memoryTypeBits = 0;
    CHECK_FAILS(quire_vulkan_range_options(memory, &needs, QUIRE_TILING_LINEAR, &options),
                UNSUPPORTED);
    needs.memoryRequirements.memoryTypeBits = 1;
    dedicated.requiresDedicatedAllocation = VK_TRUE;
    CHECK_FAILS(quire_vulkan_range_options(memory, &needs, QUIRE_TILING_LINEAR, &options),
                UNSUPPORTED);
    needs.memoryRequirements.alignment = 3;
    CHECK_FAILS(quire_vulkan_range_options(memory, &needs, QUIRE_TILING_LINEAR, &options), INVALID);
    real_memory_end(memory);
}

/* The copy path of memory that is not host-visible. lavapipe has no such memory, so that the test
   calls the path directly. */
REAL_UNIT_ON(vulkan_object, copies_and_fills_go_through_the_ring, real_begin(r))
{
    enum { SIZE = 50001 };
    static unsigned char in[SIZE], out[SIZE];
    quire_allocation allocation;
    quire_native native;
    test_random random = {5};
    r->wrap.settings.staging_size = 8 * KIB;
    real_wrap(r);
    quire_memory *memory = real_memory(r, NULL);
    const quire_backend *table = quire_device_backend(r->quire);
    void *state = quire_device_state(r->quire);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = SIZE}, &allocation));
    CHECK_OK(quire_allocation_get_native(memory, allocation, &native));
    for (int i = 0; i < SIZE; i++)
        in[i] = (unsigned char)random_next(&random);
    CHECK_OK(table->copy_to_page(state, &native.page, native.offset, in, SIZE));
    CHECK_OK(table->copy_from_page(state, &native.page, native.offset, out, SIZE));
    CHECK(!memcmp(in, out, SIZE));
    for (int i = 0; i < 300; i++) { /* unaligned ends */
        uint64_t offset = random_below(&random, SIZE);
        uint64_t size = 1 + random_below(&random, i < 100 ? 9 : SIZE - offset);
        size = size > SIZE - offset ? SIZE - offset : size;
        CHECK_OK(table->fill_page(state, &native.page, native.offset + offset, size, (uint8_t)i));
        memset(in + offset, i & 255, size);
    }
    CHECK_OK(table->copy_from_page(state, &native.page, native.offset, out, SIZE));
    CHECK(!memcmp(in, out, SIZE));
    CHECK(r->locked > 300);
    CHECK_OK(quire_free(memory, allocation));
    real_memory_end(memory);
}

/* ---- other APIs ------------------------------------------------------------------------------ */

/* Buffers in an exportable page need a struct in their pNext chain, otherwise the layer reports
   them. The caller's chain is kept. */
static void bind_with_chain(quire_memory *memory, VkExternalMemoryHandleTypeFlags type)
{
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = type};
    VkBufferCreateInfo info = BUFFER;
    quire_buffer buffer;
    info.pNext = &external;
    CHECK_OK(quire_vulkan_buffer_create(memory, &info, NULL, &buffer));
    CHECK_OK(quire_free(memory, buffer.allocation));
}

/* Exports a page as a descriptor, and imports it as another page with the same bytes. */
static void export_and_import(VkExternalMemoryHandleTypeFlagBits type, const char *extension)
{
    real_vulkan r;
    quire_allocation mine, theirs;
    quire_buffer buffer;
    quire_memory_info info;
    quire_allocation_info place;
    int descriptor;
    char text[16] = {0};
    real_begin(&r);
    real_require(&r, extension);
    r.wrap.settings.export_types = type;
    real_wrap(&r);
    const quire_intent intent = QUIRE_INTENT_EXPORT;
    quire_memory *memory = real_memory(
        &r, &(quire_memory_options){.kind.intent = intent, .pages = {.page_size = 64 * KIB}});
    if (type != VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT && quire_memory_preallocate(memory, 1))
        unit_skip("%s has %s, and %s", r.properties.deviceName, extension, quire_last_error());
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = 100}, &buffer));
    bind_with_chain(memory, type);
    CHECK_OK(quire_allocate(memory, &(quire_allocation_options){.size = 100}, &mine));
    CHECK_OK(quire_write(memory, mine, 0, "over the border", 16));
    CHECK_OK(quire_vulkan_export_fd(memory, mine, type, &descriptor));
    CHECK(descriptor >= 0);
    quire_vulkan_import import = {.type = type, .descriptor = descriptor, .size = 64 * KIB};
    CHECK_OK(quire_vulkan_import_range(memory, &import, &theirs));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(info.page_count, 2);
    CHECK_OK(quire_allocation_get_info(memory, mine, &place));
    CHECK_OK(quire_read(memory, theirs, place.offset, text, 16));
    CHECK_STR(text, "over the border");
    CHECK_FAILS(quire_vulkan_export_fd(memory, theirs, type, &descriptor), UNSUPPORTED);
    CHECK_EQ(descriptor, -1);
    CHECK_OK(quire_free(memory, theirs));
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(info.page_count, 1); /* it is not retained, because no other allocation could use it */
    CHECK_OK(quire_free(memory, mine));
    CHECK_OK(quire_free(memory, buffer.allocation));
    real_memory_end(memory);
    quire_memory *plain = real_memory(&r, NULL);
    CHECK_OK(quire_allocate(plain, &(quire_allocation_options){.size = 1}, &mine));
    CHECK_FAILS(quire_vulkan_export_fd(plain, mine, type, &descriptor), UNSUPPORTED);
    CHECK_OK(quire_free(plain, mine));
    real_memory_end(plain);
    real_end(&r);
}

UNIT(vulkan_object, pages_are_exported_and_imported_by_descriptor)
{
    export_and_import(VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
                      VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
}

/* A driver can offer the extension although this machine has no means to create a dma-buf. */
UNIT(vulkan_object, and_as_dma_bufs)
{
    export_and_import(VK_EXTERNAL_MEMORY_HANDLE_TYPE_DMA_BUF_BIT_EXT,
                      VK_EXT_EXTERNAL_MEMORY_DMA_BUF_EXTENSION_NAME);
}

UNIT(vulkan_object, host_memory_is_imported_where_it_lies)
{
    enum { SIZE = 64 * 1024 }; /* the largest alignment that Vulkan allows a driver to require */
    real_vulkan r;
    quire_allocation allocation;
    uint32_t mask = 0;
    char *bytes = aligned_alloc(SIZE, SIZE);
    CHECK(bytes != NULL);
    strcpy(bytes, "of the host");
    real_begin_wrapped(&r);
    real_require(&r, VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
    quire_vulkan_import import = {.type = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                                  .pointer = bytes,
                                  .size = SIZE,
                                  .name = "imported"};
    CHECK_OK(quire_vulkan_import_kinds(r.quire, &import, &mask));
    CHECK(mask != 0);
    quire_memory *memory = real_memory(
        &r, &(quire_memory_options){.kind.required = QUIRE_HOST_VISIBLE, .kind.mask = mask});
    CHECK_OK(quire_vulkan_import_range(memory, &import, &allocation));
    char text[16] = {0};
    CHECK_OK(quire_read(memory, allocation, 0, text, 12));
    CHECK_STR(text, "of the host");
    CHECK_OK(quire_write(memory, allocation, SIZE - 2, "!", 1));
    CHECK_EQ(bytes[SIZE - 2], '!');
    CHECK_OK(quire_free(memory, allocation));
    import.size = 100;
    CHECK_FAILS(quire_vulkan_import_range(memory, &import, &allocation), INVALID);
    import.size = 0;
    CHECK_FAILS(quire_vulkan_import_range(memory, &import, &allocation), INVALID);
    import.size = SIZE;
    import.buffer = (VkBuffer)(uintptr_t)1; /* never used */
    CHECK_FAILS(quire_vulkan_import_range(memory, &import, &allocation), INVALID);
    CHECK_HAS(quire_last_error(), "cannot be dedicated");
    CHECK_FAILS(quire_vulkan_import_kinds(r.quire, &import, &mask), INVALID);
    import.buffer = VK_NULL_HANDLE;
    import.type =
        VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_MAPPED_FOREIGN_MEMORY_BIT_EXT; /* not supported */
    CHECK_FAILS(quire_vulkan_import_range(memory, &import, &allocation), UNSUPPORTED);
    real_memory_end(memory);
    real_end(&r);
    free(bytes);
}

/* ---- nobody's bytes are another's ------------------------------------------------------------ */

/* Fills buffers in one command buffer, without a barrier: an overlap is a hazard. */
static void fill_all(real_vulkan *r, const VkBuffer *buffers, uint32_t count)
{
    const vulkan_commands commands = vulkan_commands_begin(r->quire);
    for (uint32_t i = 0; i < count; i++)
        REAL(r, vkCmdFillBuffer)(commands.buffer, buffers[i], 0, VK_WHOLE_SIZE, i);
    vulkan_commands_run(&commands);
}

/* Many buffers that live at the same time, after others were freed: the layer certifies that they
   share no byte. */
REAL_UNIT_ON(vulkan_object, no_two_live_buffers_share_a_byte, real_begin_wrapped(r))
{
    enum { COUNT = 400 };
    quire_buffer made[COUNT];
    VkBuffer natives[COUNT];
    test_random random = {11};
    quire_memory *memory =
        real_memory(r, &(quire_memory_options){.pages = {.page_size = 256 * KIB}});
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < COUNT; i++) {
            if (round && random_below(&random, 2))
                continue;
            if (round)
                CHECK_OK(quire_free(memory, made[i].allocation));
            CHECK_OK(quire_buffer_create(
                memory, &(quire_buffer_options){.size = 4 + random_below(&random, 1024) * 4},
                &made[i]));
            natives[i] = vulkan_buffer_of(memory, made[i]);
        }
    fill_all(r, natives, COUNT);
    CHECK_STR(r->first, "");
    const VkBuffer twice[] = {natives[0], natives[0]}; /* the layer must report this overlap */
    fill_all(r, twice, 2);
    CHECK_HAS(r->first, "SYNC-HAZARD-WRITE-AFTER-WRITE");
    r->messages = 0;
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_free(memory, made[i].allocation));
    real_memory_end(memory);
}
