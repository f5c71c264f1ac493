/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan_image.c - what the emulated Vulkan driver tells of layouts and sparse tiles of images
 * that are used against a rule of Vulkan.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

enum { TEXELS = 8 * 8 };
static const VkImageLayout GENERAL = VK_IMAGE_LAYOUT_GENERAL;

/* An image of 8 x 8 bytes in memory of its own. */
static VkImage make_image(fv_fixture *f)
{
    const VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = VK_FORMAT_R8_UINT,
        .extent = {8, 8, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    };
    VkImage image;
    VkMemoryRequirements needs;
    CHECK_VK(FV(f, vkCreateImage)(f->device, &info, NULL, &image));
    FV(f, vkGetImageMemoryRequirements)(f->device, image, &needs);
    VkDeviceMemory memory = fv_fixture_memory(f, needs.size, fv_fixture_coherent(f));
    CHECK_VK(FV(f, vkBindImageMemory)(f->device, image, memory, 0));
    return image;
}

static void transit(fv_fixture *f, VkCommandBuffer commands, VkImage image, VkImageLayout from)
{
    VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                    .oldLayout = from,
                                    .newLayout = GENERAL,
                                    .image = image,
                                    .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0,
                                                         VK_REMAINING_MIP_LEVELS, 0,
                                                         VK_REMAINING_ARRAY_LAYERS}};
    FV(f, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL,
     1, &barrier);
}

FV_UNIT_ON(fake_vulkan_image, layouts_are_followed, fv_fixture_open(f, NULL, 0))
{
    fv_visible one = fv_fixture_visible(f, TEXELS);
    VkImage image = make_image(f);
    VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                .imageExtent = {8, 8, 1}};
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV(f, vkCmdCopyBufferToImage)(commands, one.buffer, image, GENERAL, 1, &region);
    fv_fixture_run(f, commands);
    fv_fixture_expect(f, "VUID-vkCmdCopyBufferToImage-dstImageLayout-00180");
    commands = fv_fixture_begin(f);
    transit(f, commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    fv_fixture_run(f, commands);
    fv_fixture_expect(f, "VUID-VkImageMemoryBarrier-oldLayout-01197");
    region.imageExtent.width = 9;
    FV_TOLD(
        f, "VUID-vkCmdCopyBufferToImage-imageOffset-00200",
        FV(f, vkCmdCopyBufferToImage)(fv_fixture_begin(f), one.buffer, image, GENERAL, 1, &region));
}

UNIT(fake_vulkan_image, the_undefined_layout_loses_texels_where_asked_for)
{
    for (uint32_t dirty = 0; dirty < 2; dirty++) {
        fv_fixture f;
        fv_fixture_open(&f, NULL, dirty ? FV_DIRTY : 0);
        fv_visible one = fv_fixture_visible(&f, TEXELS);
        VkImage image = make_image(&f);
        VkBufferImageCopy region = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                    .imageExtent = {8, 8, 1}};
        VkClearColorValue color = {.uint32 = {3}};
        VkImageSubresourceRange range = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
        VkCommandBuffer commands = fv_fixture_begin(&f);
        transit(&f, commands, image, VK_IMAGE_LAYOUT_UNDEFINED);
        FV(&f, vkCmdClearColorImage)(commands, image, GENERAL, &color, 1, &range);
        transit(&f, commands, image, VK_IMAGE_LAYOUT_UNDEFINED);
        FV(&f, vkCmdCopyImageToBuffer)(commands, image, GENERAL, one.buffer, 1, &region);
        fv_fixture_run(&f, commands);
        CHECK_EQ(one.bytes[TEXELS - 1], dirty ? 0xa5 : 3);
        fv_fixture_leave(&f);
    }
}

/* ---- sparse images --------------------------------------------------------------------------- */

enum { TILE = 65536, SIDE = 256 }; /* bytes; texels of four tiles of 128 x 128 */

FV_UNIT_ON(fake_vulkan_image, tiles_are_whole_and_in_the_image, fv_fixture_open(f, NULL, 0))
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
    CHECK_VK(FV(f, vkCreateImage)(f->device, &info, NULL, &image));
    FV(f, vkGetImageMemoryRequirements)(f->device, image, &needs);
    VkDeviceMemory memory = fv_fixture_memory(f, 2 * TILE, fv_fixture_coherent(f));
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
        const VkSparseImageMemoryBindInfo of_image = {image, 1, &wrong[i].bind};
        const VkBindSparseInfo bind = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
                                       .imageBindCount = 1,
                                       .pImageBinds = &of_image};
        FV_TOLD(f, wrong[i].part, FV(f, vkQueueBindSparse)(f->queue, 1, &bind, VK_NULL_HANDLE));
    }
}
