/*
 * vulkan_default_driver.c - buffers and images from create infos without a memory of the caller,
 * and in the order of a stream, on a driver of this machine under the validation layer.
 */
#include "tests/support/real_vulkan.h"
#include "tests/support/stream_steps.h"

static const VkBufferCreateInfo BUFFER = {
    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
    .size = 1000,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
             VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
};

static const VkImageCreateInfo IMAGE = {
    .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
    .imageType = VK_IMAGE_TYPE_2D,
    .format = VK_FORMAT_R8G8B8A8_UNORM,
    .extent = {64, 32, 1},
    .mipLevels = 1,
    .arrayLayers = 1,
    .samples = VK_SAMPLE_COUNT_1_BIT,
    .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

/* Waits for the work of a stream, and destroys it. */
static void write_and_read(quire_memory *memory, quire_buffer buffer)
{
    unsigned char in[1000], out[1000];
    for (int i = 0; i < 1000; i++)
        in[i] = (unsigned char)(i * 7);
    CHECK_OK(quire_write(memory, buffer.allocation, 0, in, sizeof in));
    CHECK_OK(quire_read(memory, buffer.allocation, 0, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
}

UNIT(vulkan_default_driver, objects_need_no_memory)
{
    real_vulkan r;
    quire_memory *memory = NULL, *same = NULL;
    quire_buffer buffer;
    quire_image image;
    if (!real_begin_wrapped(&r))
        return;
    CHECK_OK(quire_vulkan_device_buffer_create(r.quire, NULL, &BUFFER, NULL, &memory, &buffer));
    write_and_read(memory, buffer);
    CHECK_OK(quire_vulkan_device_image_create(r.quire, NULL, &IMAGE, NULL, &same, &image));
    CHECK_OK(quire_free(same, image.allocation));
    CHECK_OK(quire_free(memory, buffer.allocation));
    const quire_buffer_options visible = {.size = 1000, .host_write = true, .host_read = true};
    CHECK_OK(quire_device_buffer_create(r.quire, NULL, &visible, &memory, &buffer));
    write_and_read(memory, buffer);
    CHECK_FAILS(quire_device_destroy(&r.quire), QUIRE_ERROR_BUSY);
    CHECK_OK(quire_free(memory, buffer.allocation));
    real_end(&r);
}

/* The native object is bound once, and destroyed where no kind has room. */
UNIT(vulkan_default_driver, full_kinds_leave_nothing)
{
    real_vulkan r;
    quire_device_info info;
    quire_memory *memory = NULL;
    quire_buffer buffer;
    quire_image image;
    if (!real_begin_wrapped(&r))
        return;
    CHECK_OK(quire_device_get_info(r.quire, &info));
    for (uint32_t kind = 0; kind < info.kind_count; kind++) {
        CHECK_OK(quire_device_default_memory(r.quire, kind, &memory));
        CHECK_OK(quire_memory_set_limit(memory, 1));
    }
    CHECK_FAILS(quire_vulkan_device_buffer_create(r.quire, NULL, &BUFFER, NULL, &memory, &buffer),
                QUIRE_ERROR_OVER_BUDGET);
    CHECK_FAILS(quire_vulkan_device_image_create(r.quire, NULL, &IMAGE, NULL, &memory, &image),
                QUIRE_ERROR_OVER_BUDGET);
    quire_memory *both[2] = {real_memory(&r, &(quire_memory_options){.limit = 1}),
                             real_memory(&r, NULL)};
    uint32_t chosen = 0;
    CHECK_OK(quire_vulkan_buffer_create_fallback(both, 2, &BUFFER, NULL, &chosen, &buffer));
    CHECK_EQ(chosen, 1);
    CHECK_OK(quire_free(both[1], buffer.allocation));
    real_memory_end(both[0]);
    real_memory_end(both[1]);
    real_end(&r);
}

UNIT(vulkan_default_driver, objects_reuse_ranges_in_the_order_of_a_stream)
{
    real_vulkan r;
    quire_stream *stream = NULL;
    quire_allocation_info first, again;
    quire_memory *memory = NULL;
    quire_buffer buffer;
    if (!real_begin_wrapped(&r))
        return;
    if (quire_stream_create(r.quire, NULL, &stream) == QUIRE_ERROR_UNSUPPORTED) {
        real_end(&r);
        unit_skip("the driver has no timeline semaphores");
    }
    quire_vulkan_object_options options = {.stream = stream, .info = &first};
    CHECK_OK(quire_vulkan_device_buffer_create(r.quire, NULL, &BUFFER, &options, &memory, &buffer));
    CHECK_OK(quire_free_on_stream(memory, buffer.allocation, stream));
    options.info = &again;
    CHECK_OK(quire_vulkan_device_buffer_create(r.quire, NULL, &BUFFER, &options, &memory, &buffer));
    CHECK_EQ(again.offset, first.offset);
    CHECK_OK(quire_free_on_stream(memory, buffer.allocation, stream));
    finish_and_end(&stream, memory);
    real_end(&r);
}
