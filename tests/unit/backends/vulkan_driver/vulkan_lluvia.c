/*
 * vulkan_lluvia.c - the Vulkan scenarios of Lluvia, on a driver of this machine under the
 * validation layer: sizes, pages, mappings, copies, images, views and layouts.
 */
#include "tests/support/real_vulkan.h"
#include "tests/support/vulkan_native.h"

#define KIB UINT64_C(1024)

static const quire_memory_flags HOST = QUIRE_HOST_VISIBLE | QUIRE_HOST_COHERENT;

static quire_memory *memory_of(real_vulkan *r, quire_memory_flags flags, uint64_t page_size)
{
    return real_memory(r, &(quire_memory_options){.kind.required = flags,
                                                  .fit.algorithm = QUIRE_FIT_FIRST,
                                                  .pages = {.page_size = page_size}});
}

static quire_buffer buffer_of(quire_memory *memory, uint64_t size)
{
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(memory, &(quire_buffer_options){.size = size}, &buffer));
    return buffer;
}

static quire_buffer_info info_of(quire_memory *memory, quire_buffer buffer)
{
    quire_buffer_info info;
    CHECK_OK(quire_buffer_get_info(memory, buffer, &info));
    return info;
}

/* ---- buffers ------------------------------------------------------------------------------- */

static void one_buffer_of_100(quire_memory_flags flags)
{
    real_vulkan r;
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r, flags, 2 * KIB);
    quire_buffer buffer = buffer_of(memory, 100);
    CHECK_EQ(info_of(memory, buffer).size, 100);
    vulkan_buffer_of(memory, buffer);
    CHECK_OK(quire_free(memory, buffer.allocation));
    real_memory_end(memory);
    real_end(&r);
}

UNIT(vulkan_lluvia, a_device_local_buffer_has_the_size_asked)
{
    one_buffer_of_100(QUIRE_DEVICE_LOCAL);
}

UNIT(vulkan_lluvia, a_host_visible_coherent_buffer_has_the_size_asked)
{
    one_buffer_of_100(HOST);
}

/* The page has the size of the last buffer, which Lluvia's page scan puts into a second page. */
UNIT(vulkan_lluvia, a_buffer_as_large_as_a_page)
{
    static const uint64_t sizes[] = {128, 32, 768, 2048, 4096};
    static const uint64_t alignment = 64; /* the alignment of its measurements */
    static const struct {
        uint32_t page;
        uint64_t offset, padding;
    } places[] = {{0, 0, 0}, {0, 128, 0}, {0, 192, 32}, {0, 960, 0}, {1, 0, 0}};
    enum { COUNT = sizeof sizes / sizeof *sizes };
    real_vulkan r;
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r, QUIRE_DEVICE_LOCAL, 4 * KIB);
    quire_buffer buffers[COUNT];
    quire_requirements needs;
    const VkBufferCreateInfo asked = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                      .size = 32,
                                      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    CHECK_OK(quire_vulkan_buffer_requirements(r.quire, &asked, &needs));
    for (int i = 0; i < COUNT; i++) {
        buffers[i] = buffer_of(memory, sizes[i]);
        quire_buffer_info info = info_of(memory, buffers[i]);
        CHECK_EQ(info.size, sizes[i]);
        CHECK_EQ(info.place.page, places[i].page);
        if (needs.alignment == alignment && needs.size == 32) {
            CHECK_EQ(info.place.offset, places[i].offset);
            CHECK_EQ(info.place.left_padding, places[i].padding);
        }
    }
    quire_memory_info info;
    CHECK_OK(quire_memory_get_info(memory, &info));
    CHECK_EQ(info.page_count, 2);
    for (int i = 0; i < COUNT; i++)
        CHECK_OK(quire_free(memory, buffers[i].allocation));
    real_memory_end(memory);
    real_end(&r);
}

/* ---- mapping ------------------------------------------------------------------------------- */

/* Maps two buffers. In Lluvia the second buffer of a page cannot be mapped while the first is. */
static void map_two(uint64_t page_size, uint64_t size, bool same_page)
{
    real_vulkan r;
    void *p[2];
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r, HOST, page_size);
    quire_buffer a = buffer_of(memory, size), b = buffer_of(memory, size);
    CHECK((info_of(memory, a).place.page == info_of(memory, b).place.page) == same_page);
    CHECK_OK(quire_map(memory, a.allocation, &p[0]));
    CHECK_OK(quire_map(memory, b.allocation, &p[1]));
    memset(p[0], 0x11, size);
    memset(p[1], 0x22, size);
    CHECK_EQ(((unsigned char *)p[0])[size - 1], 0x11);
    CHECK_OK(quire_unmap(memory, a.allocation));
    CHECK_OK(quire_unmap(memory, b.allocation));
    CHECK_OK(quire_free(memory, a.allocation));
    CHECK_OK(quire_free(memory, b.allocation));
    real_memory_end(memory);
    real_end(&r);
}

UNIT(vulkan_lluvia, buffers_of_different_pages_are_mapped_at_once)
{
    map_two(256, 256, false);
}

UNIT(vulkan_lluvia, and_of_one_page_too)
{
    map_two(KIB, 512, true);
}

UNIT(vulkan_lluvia, a_struct_is_mapped_and_set)
{
    typedef struct parameters {
        int number;
        float ratio;
    } parameters;
    real_vulkan r;
    void *p;
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory =
        real_memory(&r, &(quire_memory_options){.kind.required = HOST,
                                                .pages = {.dedicated = QUIRE_DEDICATED_ALWAYS}});
    quire_buffer buffer;
    CHECK_OK(quire_buffer_create(
        memory, &(quire_buffer_options){.size = sizeof(parameters), .usage = QUIRE_USAGE_UNIFORM},
        &buffer));
    CHECK_OK(quire_map(memory, buffer.allocation, &p));
    *(parameters *)p = (parameters){789456, 3.1415f};
    CHECK_OK(quire_unmap(memory, buffer.allocation));
    CHECK_OK(quire_map(memory, buffer.allocation, &p));
    CHECK_EQ(((parameters *)p)->number, 789456);
    CHECK(((parameters *)p)->ratio == 3.1415f);
    CHECK_OK(quire_unmap(memory, buffer.allocation));
    CHECK_OK(quire_free(memory, buffer.allocation));
    real_memory_end(memory);
    real_end(&r);
}

/* Copies 128 integers from host to device to host, with a command buffer of the caller. */
UNIT(vulkan_lluvia, buffers_are_copied_by_the_device)
{
    enum { COUNT = 128 };
    real_vulkan r;
    int32_t in[COUNT], out[COUNT] = {0};
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *host = memory_of(&r, HOST, 4 * KIB);
    quire_memory *local = memory_of(&r, QUIRE_DEVICE_LOCAL, 4 * KIB);
    quire_buffer from = buffer_of(host, sizeof in), middle = buffer_of(local, sizeof in),
                 to = buffer_of(host, sizeof in);
    for (int i = 0; i < COUNT; i++)
        in[i] = i * i - 77;
    CHECK_OK(quire_write(host, from.allocation, 0, in, sizeof in));
    VkCommandPool pool;
    VkCommandBuffer commands;
    CHECK_EQ(REAL(&r, vkCreateCommandPool)(
                 r.device,
                 &(VkCommandPoolCreateInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO},
                 NULL, &pool),
             0);
    CHECK_EQ(
        REAL(&r, vkAllocateCommandBuffers)(
            r.device,
            &(VkCommandBufferAllocateInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                           .commandPool = pool,
                                           .commandBufferCount = 1},
            &commands),
        0);
    CHECK_EQ(REAL(&r, vkBeginCommandBuffer)(
                 commands,
                 &(VkCommandBufferBeginInfo){.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO}),
             0);
    const VkBufferCopy whole = {.size = sizeof in};
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    REAL(&r, vkCmdCopyBuffer)
    (commands, vulkan_buffer_of(host, from), vulkan_buffer_of(local, middle), 1, &whole);
    REAL(&r, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
     NULL, 0, NULL);
    REAL(&r, vkCmdCopyBuffer)
    (commands, vulkan_buffer_of(local, middle), vulkan_buffer_of(host, to), 1, &whole);
    CHECK_EQ(REAL(&r, vkEndCommandBuffer)(commands), 0);
    CHECK_EQ(REAL(&r, vkQueueSubmit)(r.queue, 1,
                                     &(VkSubmitInfo){.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                                                     .commandBufferCount = 1,
                                                     .pCommandBuffers = &commands},
                                     VK_NULL_HANDLE),
             0);
    CHECK_EQ(REAL(&r, vkQueueWaitIdle)(r.queue), 0);
    CHECK_OK(quire_read(host, to.allocation, 0, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
    REAL(&r, vkDestroyCommandPool)(r.device, pool, NULL);
    CHECK_OK(quire_free(host, from.allocation));
    CHECK_OK(quire_free(host, to.allocation));
    CHECK_OK(quire_free(local, middle.allocation));
    real_memory_end(host);
    real_memory_end(local);
    real_end(&r);
}

/* ---- images -------------------------------------------------------------------------------- */

UNIT(vulkan_lluvia, a_device_local_image_with_layout_and_view)
{
    real_vulkan r;
    quire_image image;
    quire_image_info info;
    quire_lluvia_view view;
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r, QUIRE_DEVICE_LOCAL, 4096 * KIB);
    const quire_image_options options = {
        .width = 640,
        .height = 480,
        .usage = QUIRE_USAGE_STORAGE | QUIRE_USAGE_SAMPLED | QUIRE_USAGE_TRANSFER_TARGET,
    };
    CHECK_OK(quire_image_create(memory, &options, &image));
    CHECK_OK(quire_image_get_info(memory, image, &info));
    CHECK_EQ(info.dimensions, 2);
    CHECK_EQ(info.minimum_size, 640 * 480);
    CHECK(info.place.size >= info.minimum_size);
    CHECK_OK(quire_lluvia_image_set_layout(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                           VK_IMAGE_LAYOUT_GENERAL));
    CHECK_EQ(r.locked, 1);
    CHECK_OK(quire_lluvia_view_create(memory, image, NULL, &view));
    CHECK(view.view != VK_NULL_HANDLE);
    CHECK(view.sampler == VK_NULL_HANDLE);
    CHECK_OK(quire_lluvia_view_destroy(r.quire, &view));
    CHECK_OK(quire_free(memory, image.allocation));
    real_memory_end(memory);
    real_end(&r);
}

UNIT(vulkan_lluvia, image_sizes)
{
    real_vulkan r;
    quire_image image;
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r, QUIRE_DEVICE_LOCAL, 4096 * KIB);
    CHECK_OK(quire_image_create(memory, &(quire_image_options){.width = 1}, &image));
    CHECK_OK(quire_free(memory, image.allocation));
    CHECK_OK(quire_image_create(
        memory, &(quire_image_options){.width = 32, .height = 32, .depth = 32}, &image));
    CHECK_OK(quire_free(memory, image.allocation));
    CHECK_FAILS(quire_image_create(memory, &(quire_image_options){.height = 1}, &image),
                QUIRE_ERROR_INVALID_ARGUMENT);
    CHECK_FAILS(quire_image_create(
                    memory, &(quire_image_options){.width = 1u << 30, .height = 1u << 10}, &image),
                QUIRE_ERROR_UNSUPPORTED);
    real_memory_end(memory);
    real_end(&r);
}

UNIT(vulkan_lluvia, an_image_is_copied_there_and_back)
{
    enum { SIDE = 128 };
    static unsigned char in[SIDE * SIDE], out[SIDE * SIDE];
    real_vulkan r;
    quire_image image;
    if (!real_begin_wrapped(&r))
        return;
    quire_memory *memory = memory_of(&r, QUIRE_DEVICE_LOCAL, 4096 * KIB);
    for (int i = 0; i < SIDE * SIDE; i++)
        in[i] = (unsigned char)(i % 255);
    CHECK_OK(
        quire_image_create(memory, &(quire_image_options){.width = SIDE, .height = SIDE}, &image));
    CHECK_OK(quire_lluvia_image_write(memory, image, VK_IMAGE_LAYOUT_UNDEFINED,
                                      VK_IMAGE_LAYOUT_GENERAL, in, sizeof in));
    CHECK_OK(quire_lluvia_image_read(memory, image, VK_IMAGE_LAYOUT_GENERAL, out, sizeof out));
    CHECK(!memcmp(in, out, sizeof in));
    CHECK_OK(quire_free(memory, image.allocation));
    real_memory_end(memory);
    real_end(&r);
}

UNIT(vulkan_lluvia, there_is_host_memory_and_device_memory)
{
    real_vulkan r;
    uint32_t kind;
    if (!real_begin_wrapped(&r))
        return;
    CHECK_OK(quire_device_choose_kind(r.quire, &(quire_kind_request){.required = HOST}, &kind));
    CHECK_OK(quire_device_choose_kind(
        r.quire, &(quire_kind_request){.required = QUIRE_DEVICE_LOCAL}, &kind));
    real_end(&r);
}
