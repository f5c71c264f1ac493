/*
 * fake_vulkan_image.c - the fake Vulkan driver: texels and layouts of images.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

static VkImage make_image(fv_fixture *f, const VkImageCreateInfo *wanted, VkDeviceMemory *memory)
{
    VkImageCreateInfo info = *wanted;
    VkImage image;
    VkMemoryRequirements needs;
    info.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO;
    info.mipLevels = info.mipLevels ? info.mipLevels : 1;
    info.arrayLayers = info.arrayLayers ? info.arrayLayers : 1;
    info.samples = VK_SAMPLE_COUNT_1_BIT;
    info.usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT;
    CHECK_VK(FV(f, vkCreateImage)(f->device, &info, NULL, &image));
    FV(f, vkGetImageMemoryRequirements)(f->device, image, &needs);
    *memory = fv_fixture_memory(f, needs.size, fv_fixture_coherent(f));
    CHECK_VK(FV(f, vkBindImageMemory)(f->device, image, *memory, 0));
    return image;
}

static void transit(fv_fixture *f, VkCommandBuffer commands, VkImage image, VkImageLayout from,
                    VkImageLayout to)
{
    VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                    .oldLayout = from,
                                    .newLayout = to,
                                    .image = image,
                                    .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0,
                                                         VK_REMAINING_MIP_LEVELS, 0,
                                                         VK_REMAINING_ARRAY_LAYERS}};
    FV(f, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL,
     1, &barrier);
}

static void end_image(fv_fixture *f, VkImage image, VkDeviceMemory memory)
{
    FV(f, vkDestroyImage)(f->device, image, NULL);
    FV(f, vkFreeMemory)(f->device, memory, NULL);
}

/* Copies bytes into and out of images of every shape and tiling, and compares them. */
static void round_trip(const VkImageCreateInfo *info, uint32_t texel)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    uint32_t layers = info->arrayLayers ? info->arrayLayers : 1;
    uint32_t size = info->extent.width * info->extent.height * info->extent.depth * layers * texel;
    fv_visible source = fv_fixture_visible(&f, size), target = fv_fixture_visible(&f, size);
    VkDeviceMemory memory;
    VkImage image = make_image(&f, info, &memory);
    VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, layers},
                                .imageExtent = info->extent};
    for (uint32_t i = 0; i < size; i++)
        source.bytes[i] = (unsigned char)(i * 7 + i / 251);
    VkCommandBuffer commands = fv_fixture_begin(&f);
    transit(&f, commands, image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    FV(&f, vkCmdCopyBufferToImage)
    (commands, source.buffer, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
    transit(&f, commands, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_GENERAL);
    FV(&f, vkCmdCopyImageToBuffer)
    (commands, image, VK_IMAGE_LAYOUT_GENERAL, target.buffer, 1, &region);
    fv_fixture_run(&f, commands);
    CHECK(!memcmp(source.bytes, target.bytes, size));
    end_image(&f, image, memory);
    fv_fixture_hide(&f, &source);
    fv_fixture_hide(&f, &target);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_image, images_of_every_shape_keep_their_texels)
{
    round_trip(&(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_1D,
                                    .format = VK_FORMAT_R8_UINT,
                                    .extent = {37, 1, 1}},
               1);
    round_trip(&(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_2D,
                                    .format = VK_FORMAT_R16G16_SFLOAT,
                                    .extent = {13, 9, 1},
                                    .arrayLayers = 3},
               4);
    round_trip(&(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_3D,
                                    .format = VK_FORMAT_R32G32B32A32_SFLOAT,
                                    .extent = {5, 6, 7},
                                    .mipLevels = 2},
               16);
    round_trip(&(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_2D,
                                    .format = VK_FORMAT_R8G8B8_UNORM,
                                    .extent = {13, 9, 1},
                                    .tiling = VK_IMAGE_TILING_LINEAR},
               3);
    round_trip(&(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_2D,
                                    .format = VK_FORMAT_R64G64_SINT,
                                    .extent = {4, 4, 1}},
               16);
}

UNIT(fake_vulkan_image, linear_images_lie_as_their_layout_says)
{
    fv_fixture f;
    fv_fixture_open(&f, "intel-uma", 0);
    VkDeviceMemory memory;
    VkImage image = make_image(&f,
                               &(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_2D,
                                                    .format = VK_FORMAT_R8G8B8A8_UNORM,
                                                    .extent = {5, 3, 1},
                                                    .tiling = VK_IMAGE_TILING_LINEAR},
                               &memory);
    VkImageSubresource part = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0};
    VkSubresourceLayout layout;
    FV(&f, vkGetImageSubresourceLayout)(f.device, image, &part, &layout);
    CHECK_EQ(layout.rowPitch, 128); /* optimalBufferCopyRowPitchAlignment */
    VkClearColorValue color = {.float32 = {1, 0, 0.5f, 2}};
    VkImageSubresourceRange range = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    VkCommandBuffer commands = fv_fixture_begin(&f);
    transit(&f, commands, image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
    FV(&f, vkCmdClearColorImage)(commands, image, VK_IMAGE_LAYOUT_GENERAL, &color, 1, &range);
    fv_fixture_run(&f, commands);
    void *data;
    static const unsigned char TEXEL[4] = {255, 0, 128, 255};
    CHECK_VK(FV(&f, vkMapMemory)(f.device, memory, 0, VK_WHOLE_SIZE, 0, &data));
    const unsigned char *bytes = data;
    CHECK(!memcmp(bytes + 2 * layout.rowPitch + 4 * sizeof TEXEL, TEXEL, sizeof TEXEL));
    CHECK_EQ(bytes[5 * sizeof TEXEL], 0); /* between the rows */
    end_image(&f, image, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_image, layouts_are_followed)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_visible one = fv_fixture_visible(&f, 64);
    VkDeviceMemory memory;
    VkImage image = make_image(&f,
                               &(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_2D,
                                                    .format = VK_FORMAT_R8_UNORM,
                                                    .extent = {8, 8, 1}},
                               &memory);
    VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                .imageExtent = {8, 8, 1}};
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdCopyBufferToImage)
    (commands, one.buffer, image, VK_IMAGE_LAYOUT_GENERAL, 1, &region);
    fv_fixture_run(&f, commands);
    fv_fixture_expect(&f, "VUID-vkCmdCopyBufferToImage-dstImageLayout-00180");
    commands = fv_fixture_begin(&f);
    transit(&f, commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, VK_IMAGE_LAYOUT_GENERAL);
    fv_fixture_run(&f, commands);
    fv_fixture_expect(&f, "VUID-VkImageMemoryBarrier-oldLayout-01197");
    region.imageExtent.width = 9;
    commands = fv_fixture_begin(&f);
    FV(&f, vkCmdCopyBufferToImage)
    (commands, one.buffer, image, VK_IMAGE_LAYOUT_GENERAL, 1, &region);
    fv_fixture_expect(&f, "VUID-vkCmdCopyBufferToImage-imageOffset-00200");
    CHECK_VK(FV(&f, vkResetCommandPool)(f.device, f.pool, 0));
    fv_fixture_hide(&f, &one);
    end_image(&f, image, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_image, the_undefined_layout_loses_texels_where_asked_for)
{
    for (uint32_t dirty = 0; dirty < 2; dirty++) {
        fv_fixture f;
        fv_fixture_open(&f, NULL, dirty ? FV_DIRTY : 0);
        fv_visible one = fv_fixture_visible(&f, 64);
        VkDeviceMemory memory;
        VkImage image = make_image(&f,
                                   &(VkImageCreateInfo){.imageType = VK_IMAGE_TYPE_2D,
                                                        .format = VK_FORMAT_R8_UINT,
                                                        .extent = {8, 8, 1}},
                                   &memory);
        VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                    .imageExtent = {8, 8, 1}};
        VkClearColorValue color = {.uint32 = {3}};
        VkImageSubresourceRange range = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        VkCommandBuffer commands = fv_fixture_begin(&f);
        transit(&f, commands, image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
        FV(&f, vkCmdClearColorImage)(commands, image, VK_IMAGE_LAYOUT_GENERAL, &color, 1, &range);
        transit(&f, commands, image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
        FV(&f, vkCmdCopyImageToBuffer)
        (commands, image, VK_IMAGE_LAYOUT_GENERAL, one.buffer, 1, &region);
        fv_fixture_run(&f, commands);
        CHECK_EQ(one.bytes[63], dirty ? 0xa5 : 3);
        end_image(&f, image, memory);
        fv_fixture_hide(&f, &one);
        fv_fixture_close(&f);
    }
}

UNIT(fake_vulkan_image, formats_can_be_taken_away)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkFormatProperties has;
    FV(&f, vkGetPhysicalDeviceFormatProperties)(f.physical, VK_FORMAT_R32_SFLOAT, &has);
    CHECK(has.optimalTilingFeatures & VK_FORMAT_FEATURE_STORAGE_IMAGE_BIT);
    fv_set_format(f.driver, VK_FORMAT_R32_SFLOAT, 0, VK_FORMAT_FEATURE_TRANSFER_DST_BIT);
    VkImageFormatProperties limits;
    CHECK_EQ(FV(&f, vkGetPhysicalDeviceImageFormatProperties)(
                 f.physical, VK_FORMAT_R32_SFLOAT, VK_IMAGE_TYPE_2D, VK_IMAGE_TILING_OPTIMAL,
                 VK_IMAGE_USAGE_STORAGE_BIT, 0, &limits),
             VK_ERROR_FORMAT_NOT_SUPPORTED);
    CHECK_VK(FV(&f, vkGetPhysicalDeviceImageFormatProperties)(
        f.physical, VK_FORMAT_R32_SFLOAT, VK_IMAGE_TYPE_2D, VK_IMAGE_TILING_OPTIMAL,
        VK_IMAGE_USAGE_TRANSFER_DST_BIT, 0, &limits));
    fv_fixture_close(&f);
}

/* ---- sparse images --------------------------------------------------------------------------- */

enum { TILE = 65536, SIDE = 256 }; /* bytes; texels of four tiles of 128 x 128 */

static VkImage make_tiled(fv_fixture *f)
{
    const VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .flags = VK_IMAGE_CREATE_SPARSE_BINDING_BIT | VK_IMAGE_CREATE_SPARSE_RESIDENCY_BIT,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = VK_FORMAT_R8G8B8A8_UNORM,
        .extent = {SIDE, SIDE, 1},
        .mipLevels = 2,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    };
    VkImage image;
    VkMemoryRequirements needs;
    VkSparseImageMemoryRequirements told;
    uint32_t count = 1;
    CHECK_VK(FV(f, vkCreateImage)(f->device, &info, NULL, &image));
    FV(f, vkGetImageMemoryRequirements)(f->device, image, &needs);
    CHECK_EQ(needs.alignment, TILE);
    CHECK_EQ(needs.size, 5 * TILE);
    FV(f, vkGetImageSparseMemoryRequirements)(f->device, image, &count, &told);
    CHECK_EQ(count, 1);
    CHECK_EQ(told.formatProperties.imageGranularity.width, SIDE / 2);
    CHECK_EQ(told.imageMipTailFirstLod, 2); /* none */
    CHECK_EQ(told.imageMipTailSize, 0);
    return image;
}

static void bind_tiles(fv_fixture *f, VkImage image, uint32_t count,
                       const VkSparseImageMemoryBind *binds)
{
    const VkSparseImageMemoryBindInfo of_image = {image, count, binds};
    const VkBindSparseInfo bind = {
        .sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO, .imageBindCount = 1, .pImageBinds = &of_image};
    CHECK_VK(FV(f, vkQueueBindSparse)(f->queue, 1, &bind, VK_NULL_HANDLE));
}

/* Writes its index into each texel of level 0 that has memory. */
static void write_numbers(fv_fixture *f, VkImage image)
{
    fv_visible source = fv_fixture_visible(f, (uint64_t)SIDE * SIDE * 4);
    const VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                      .imageExtent = {SIDE, SIDE, 1}};
    for (uint32_t i = 0; i < SIDE * SIDE; i++)
        memcpy(source.bytes + (size_t)i * 4, &i, 4);
    VkCommandBuffer commands = fv_fixture_begin(f);
    transit(f, commands, image, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    FV(f, vkCmdCopyBufferToImage)
    (commands, source.buffer, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, 1, &region);
    fv_fixture_run(f, commands);
    fv_fixture_hide(f, &source);
}

UNIT(fake_vulkan_image, tiles_lie_where_they_are_bound)
{
    fv_fixture f;
    void *data;
    fv_fixture_open(&f, NULL, 0);
    VkImage image = make_tiled(&f);
    VkDeviceMemory memory = fv_fixture_memory(&f, 4 * TILE, fv_fixture_coherent(&f));
    const VkImageSubresource first = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0};
    VkSparseImageMemoryBind binds[] = {
        {first, {SIDE / 2, 0, 0}, {SIDE / 2, SIDE, 1}, memory, TILE, 0}, /* right: two tiles */
        {first, {0, SIDE / 2, 0}, {SIDE / 2, SIDE / 2, 1}, memory, 0, 0},
    };
    bind_tiles(&f, image, 2, binds);
    write_numbers(&f, image);
    CHECK_VK(FV(&f, vkMapMemory)(f.device, memory, 0, VK_WHOLE_SIZE, 0, &data));
    const uint32_t *words = data;
    CHECK_EQ(words[0], SIDE * SIDE / 2); /* lower left */
    CHECK_EQ(words[1], SIDE * SIDE / 2 + 1);
    CHECK_EQ(words[SIDE / 2], SIDE * (SIDE / 2 + 1));          /* its second row */
    CHECK_EQ(words[TILE / 4], SIDE / 2);                       /* upper right */
    CHECK_EQ(words[TILE / 4 * 2 - 1], SIDE * SIDE / 2 - 1);    /* its last */
    CHECK_EQ(words[TILE / 4 * 2], SIDE * SIDE / 2 + SIDE / 2); /* lower right */
    CHECK_EQ(words[TILE / 4 * 3], 0);
    binds[1].memory = VK_NULL_HANDLE;
    bind_tiles(&f, image, 1, &binds[1]);
    memset(data, 0, 4 * TILE);
    write_numbers(&f, image);
    CHECK_EQ(words[0], 0);
    CHECK_EQ(words[TILE / 4], SIDE / 2);
    end_image(&f, image, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_image, tiles_are_whole_and_in_the_image)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkImage image = make_tiled(&f);
    VkDeviceMemory memory = fv_fixture_memory(&f, 2 * TILE, fv_fixture_coherent(&f));
    const VkImageSubresource first = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0};
    const VkExtent3D one = {SIDE / 2, SIDE / 2, 1};
    const struct {
        VkSparseImageMemoryBind bind;
        const char *part;
    } wrong[] = {
        {{first, {1, 0, 0}, one, memory, 0, 0}, "VUID-VkSparseImageMemoryBind-offset-01107"},
        {{first, {0, SIDE, 0}, one, memory, 0, 0}, "VUID-VkSparseImageMemoryBind-offset-01107"},
        {{first, {0, 0, 0}, {1, 1, 1}, memory, 0, 0}, "VUID-VkSparseImageMemoryBind-offset-01107"},
        {{first, {0, 0, 0}, one, memory, 4, 0}, "fv-sparse-alignment"},
        {{first, {0, 0, 0}, one, memory, 2 * TILE, 0}, "VUID-VkSparseMemoryBind-size-01102"},
        {{{VK_IMAGE_ASPECT_COLOR_BIT, 2, 0}, {0, 0, 0}, one, memory, 0, 0}, "01722"},
        {{{VK_IMAGE_ASPECT_COLOR_BIT, 0, 1}, {0, 0, 0}, one, memory, 0, 0}, "01722"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bind_tiles(&f, image, 1, &wrong[i].bind);
        fv_fixture_expect(&f, wrong[i].part);
    }
    end_image(&f, image, memory);
    fv_fixture_close(&f);
}
