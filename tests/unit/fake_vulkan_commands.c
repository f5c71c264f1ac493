/*
 * fake_vulkan_commands.c - the fake Vulkan driver: commands do what they say, in order, when it is
 * time, and their rules are kept.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#include <pthread.h>

/* A coherent buffer and where the host sees it. */
typedef struct seen {
    VkBuffer buffer;
    VkDeviceMemory memory;
    unsigned char *bytes;
} seen;

static seen make(fv_fixture *f, uint64_t size)
{
    seen made;
    void *data;
    made.buffer = fv_fixture_bound(f, size, fv_fixture_coherent(f), &made.memory);
    CHECK_VK(FV(f, vkMapMemory)(f->device, made.memory, 0, VK_WHOLE_SIZE, 0, &data));
    made.bytes = data;
    return made;
}

static void end(fv_fixture *f, const seen *made)
{
    fv_fixture_free(f, made->buffer, made->memory);
}

static uint32_t word(const seen *made, uint32_t index)
{
    uint32_t value;
    memcpy(&value, made->bytes + index * sizeof value, sizeof value);
    return value;
}

UNIT(fake_vulkan_commands, buffers_are_filled_updated_and_copied_in_order)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    seen one = make(&f, 1000), two = make(&f, 1000);
    static const uint32_t WORDS[2] = {11, 22};
    VkBufferCopy regions[2] = {{0, 8, 8}, {8, 100, 4}};
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, VK_WHOLE_SIZE, 7);
    FV(&f, vkCmdUpdateBuffer)(commands, one.buffer, 0, 8, WORDS);
    FV(&f, vkCmdCopyBuffer)(commands, one.buffer, two.buffer, 2, regions);
    CHECK_EQ(word(&one, 0), 0); /* only recorded */
    fv_fixture_run(&f, commands);
    CHECK_EQ(word(&one, 0), 11);
    CHECK_EQ(word(&one, 2), 7);
    CHECK_EQ(word(&one, 249), 7);
    CHECK_EQ(word(&two, 0), 0);
    CHECK_EQ(word(&two, 2), 11);
    CHECK_EQ(word(&two, 3), 22);
    CHECK_EQ(word(&two, 25), 7);
    CHECK_EQ(word(&two, 26), 0);
    end(&f, &one);
    end(&f, &two);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, ranges_beyond_buffers_are_told_and_not_touched)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    seen one = make(&f, 64), two = make(&f, 64);
    VkBufferCopy beyond = {32, 0, 64}, overlapping = {0, 4, 8};
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdCopyBuffer)(commands, one.buffer, two.buffer, 1, &beyond);
    fv_fixture_expect(&f, "VUID-vkCmdCopyBuffer-size-00115");
    FV(&f, vkCmdCopyBuffer)(commands, one.buffer, one.buffer, 1, &overlapping);
    fv_fixture_expect(&f, "VUID-vkCmdCopyBuffer-pRegions-00117");
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 60, 8, 1);
    fv_fixture_expect(&f, "VUID-vkCmdFillBuffer-size-00027");
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 2, 8, 1);
    fv_fixture_expect(&f, "VUID-vkCmdFillBuffer-dstOffset-00025");
    fv_fixture_run(&f, commands);
    end(&f, &one);
    end(&f, &two);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, command_buffers_have_states)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    seen one = make(&f, 64);
    VkCommandBuffer commands = fv_fixture_begin(&f);
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "VUID-vkQueueSubmit-pCommandBuffers-00070");
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    fv_fixture_expect(&f, "VUID-vkEndCommandBuffer-commandBuffer-00059");
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, 4, 1);
    fv_fixture_expect(&f, "fv-recording");
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE));
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE)); /* one time only */
    fv_fixture_expect(&f, "VUID-vkQueueSubmit-pCommandBuffers-00070");
    CHECK_VK(FV(&f, vkResetCommandBuffer)(commands, 0));
    fv_fixture_expect(&f, "VUID-vkResetCommandBuffer-commandBuffer-00046");
    CHECK_VK(FV(&f, vkResetCommandPool)(f.device, f.pool, 0));
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 1, &commands);
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 1, &commands);
    fv_fixture_expect(&f, "the command buffer was destroyed");
    end(&f, &one);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, a_queue_takes_command_buffers_of_its_family)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkQueue other;
    FV(&f, vkGetDeviceQueue)(f.device, 1, 0, &other);
    VkCommandBuffer commands = fv_fixture_begin(&f);
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    CHECK_VK(FV(&f, vkQueueSubmit)(other, 1, &submit, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "VUID-vkQueueSubmit-pCommandBuffers-00074");
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, late_work_is_done_when_somebody_waits)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, FV_LATE);
    seen one = make(&f, 64);
    VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VkFence fence;
    CHECK_VK(FV(&f, vkCreateFence)(f.device, &info, NULL, &fence));
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, 64, 9);
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, fence));
    CHECK_EQ(word(&one, 0), 0);
    CHECK_EQ(FV(&f, vkGetFenceStatus)(f.device, fence), VK_NOT_READY);
    CHECK_VK(FV(&f, vkResetFences)(f.device, 1, &fence));
    fv_fixture_expect(&f, "VUID-vkResetFences-pFences-01123");
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 0, NULL);
    CHECK_VK(FV(&f, vkWaitForFences)(f.device, 1, &fence, VK_TRUE, UINT64_MAX));
    CHECK_EQ(word(&one, 15), 9);
    CHECK_VK(FV(&f, vkGetFenceStatus)(f.device, fence));
    FV(&f, vkDestroyFence)(f.device, fence, NULL);
    end(&f, &one);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, what_is_at_work_must_not_be_destroyed)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, FV_LATE);
    seen one = make(&f, 64);
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, 64, 9);
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands};
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE));
    FV(&f, vkDestroyBuffer)(f.device, one.buffer, NULL);
    fv_fixture_expect(&f, "VUID-vkDestroyBuffer-buffer-00922");
    FV(&f, vkFreeMemory)(f.device, one.memory, NULL);
    fv_fixture_expect(&f, "VUID-vkFreeMemory-memory-00677");
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 1, &commands);
    fv_fixture_expect(&f, "VUID-vkFreeCommandBuffers-pCommandBuffers-00047");
    CHECK_VK(FV(&f, vkDeviceWaitIdle)(f.device));
    fv_fixture_close(&f);
}

/* ---- images ------------------------------------------------------------------------------- */

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

/* Bytes go through an image of every shape and tiling and come back the same. */
static void round_trip(const VkImageCreateInfo *info, uint32_t texel)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    uint32_t layers = info->arrayLayers ? info->arrayLayers : 1;
    uint32_t size = info->extent.width * info->extent.height * info->extent.depth * layers * texel;
    seen source = make(&f, size), target = make(&f, size);
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
    end(&f, &source);
    end(&f, &target);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, images_of_every_shape_keep_their_texels)
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

UNIT(fake_vulkan_commands, linear_images_lie_as_their_layout_says)
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

UNIT(fake_vulkan_commands, layouts_are_followed)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    seen one = make(&f, 64);
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
    end(&f, &one);
    end_image(&f, image, memory);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, the_undefined_layout_loses_texels_where_asked_for)
{
    for (uint32_t dirty = 0; dirty < 2; dirty++) {
        fv_fixture f;
        fv_fixture_open(&f, NULL, dirty ? FV_DIRTY : 0);
        seen one = make(&f, 64);
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
        end(&f, &one);
        fv_fixture_close(&f);
    }
}

UNIT(fake_vulkan_commands, formats_can_be_taken_away)
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

/* ---- semaphores --------------------------------------------------------------------------- */

static VkSemaphore make_semaphore(fv_fixture *f, bool timeline)
{
    VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                      .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
    VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                  .pNext = timeline ? &type : NULL};
    VkSemaphore semaphore;
    CHECK_VK(FV(f, vkCreateSemaphore)(f->device, &info, NULL, &semaphore));
    return semaphore;
}

UNIT(fake_vulkan_commands, work_waits_for_a_timeline)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    seen one = make(&f, 64);
    VkSemaphore semaphore = make_semaphore(&f, true);
    uint64_t three = 3, four = 4, value;
    VkTimelineSemaphoreSubmitInfo values = {.sType =
                                                VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                            .waitSemaphoreValueCount = 1,
                                            .pWaitSemaphoreValues = &three,
                                            .signalSemaphoreValueCount = 1,
                                            .pSignalSemaphoreValues = &four};
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, 64, 9);
    CHECK_VK(FV(&f, vkEndCommandBuffer)(commands));
    VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .pNext = &values,
                           .waitSemaphoreCount = 1,
                           .pWaitSemaphores = &semaphore,
                           .pWaitDstStageMask = &stage,
                           .commandBufferCount = 1,
                           .pCommandBuffers = &commands,
                           .signalSemaphoreCount = 1,
                           .pSignalSemaphores = &semaphore};
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE));
    VkSemaphoreWaitInfo wait = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                .semaphoreCount = 1,
                                .pSemaphores = &semaphore,
                                .pValues = &four};
    CHECK_EQ(FV(&f, vkWaitSemaphores)(f.device, &wait, 1000000), VK_TIMEOUT);
    CHECK_EQ(word(&one, 0), 0);
    VkSemaphoreSignalInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = semaphore, .value = 3};
    CHECK_VK(FV(&f, vkSignalSemaphore)(f.device, &signal));
    CHECK_EQ(word(&one, 0), 9);
    CHECK_VK(FV(&f, vkWaitSemaphores)(f.device, &wait, UINT64_MAX));
    CHECK_VK(FV(&f, vkGetSemaphoreCounterValue)(f.device, semaphore, &value));
    CHECK_EQ(value, 4);
    CHECK_VK(FV(&f, vkSignalSemaphore)(f.device, &signal));
    fv_fixture_expect(&f, "VUID-VkSemaphoreSignalInfo-value-03258");
    FV(&f, vkDestroySemaphore)(f.device, semaphore, NULL);
    end(&f, &one);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, a_binary_semaphore_joins_two_queues)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkSemaphore semaphore = make_semaphore(&f, false);
    VkQueue other;
    VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
    FV(&f, vkGetDeviceQueue)(f.device, 2, 1, &other);
    VkSubmitInfo signal = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                           .signalSemaphoreCount = 1,
                           .pSignalSemaphores = &semaphore};
    VkSubmitInfo wait = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                         .waitSemaphoreCount = 1,
                         .pWaitSemaphores = &semaphore,
                         .pWaitDstStageMask = &stage};
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_VK(FV(&f, vkQueueSubmit)(other, 1, &wait, VK_NULL_HANDLE));
        CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &signal, VK_NULL_HANDLE));
        CHECK_VK(FV(&f, vkQueueWaitIdle)(other));
    }
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &signal, VK_NULL_HANDLE));
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &signal, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "VUID-VkSubmitInfo-pSignalSemaphores-03242");
    FV(&f, vkDestroySemaphore)(f.device, semaphore, NULL);
    fv_fixture_close(&f);
}

/* ---- threads ------------------------------------------------------------------------------ */

/* Until it is noticed that two do so, at most ten seconds. */
static void *submit_until_told(void *state)
{
    fv_fixture *f = state;
    PFN_vkQueueSubmit submit = FV(f, vkQueueSubmit);
    for (uint32_t i = 0; i < 10000 && !fv_message(f->driver, 0); i++)
        CHECK_VK(submit(f->queue, 0, NULL, VK_NULL_HANDLE));
    return NULL;
}

UNIT(fake_vulkan_commands, two_threads_on_one_queue_are_told)
{
    fv_fixture f;
    fv_options options = {.linger_us = 1000};
    fv_fixture_open_with(&f, &options);
    for (uint32_t i = 0; i < 20; i++) /* one at a time is well */
        CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 0, NULL, VK_NULL_HANDLE));
    CHECK(!fv_message(f.driver, 0));
    pthread_t other;
    CHECK(!pthread_create(&other, NULL, submit_until_told, &f));
    submit_until_told(&f);
    pthread_join(other, NULL);
    CHECK(fv_message_with(f.driver, "fv-threads"));
    fv_forget(f.driver);
    fv_fixture_close(&f);
}

/* ---- sparse ------------------------------------------------------------------------------- */

UNIT(fake_vulkan_commands, sparse_buffers_lie_where_they_are_bound)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkBuffer sparse;
    VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT | VK_BUFFER_CREATE_SPARSE_RESIDENCY_BIT,
        .size = 65536 * 4,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    CHECK_VK(FV(&f, vkCreateBuffer)(f.device, &info, NULL, &sparse));
    CHECK_EQ(fv_fixture_needs(&f, sparse).alignment, 65536);
    VkDeviceMemory memory = fv_fixture_memory(&f, 65536 * 2, fv_fixture_coherent(&f));
    VkSparseMemoryBind binds[2] = {{.size = 65536, .memory = memory, .memoryOffset = 65536},
                                   {.resourceOffset = 131072, .size = 65536, .memory = memory}};
    VkSparseBufferMemoryBindInfo of_buffer = {sparse, 2, binds};
    VkBindSparseInfo bind = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
                             .bufferBindCount = 1,
                             .pBufferBinds = &of_buffer};
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &bind, VK_NULL_HANDLE));
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, sparse, 65532, 65536 * 3 - 65532, 5); /* over a hole */
    fv_fixture_run(&f, commands);
    void *data;
    CHECK_VK(FV(&f, vkMapMemory)(f.device, memory, 0, VK_WHOLE_SIZE, 0, &data));
    const uint32_t *words = data;
    CHECK_EQ(words[0], 5);
    CHECK_EQ(words[16383], 5);
    CHECK_EQ(words[16384], 0);
    CHECK_EQ(words[32767], 5);
    binds[0].memoryOffset = 4;
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &bind, VK_NULL_HANDLE));
    fv_fixture_expect(&f, "fv-sparse-alignment");
    binds[0] = (VkSparseMemoryBind){.size = 65536}; /* takes the memory away */
    CHECK_VK(FV(&f, vkQueueBindSparse)(f.queue, 1, &bind, VK_NULL_HANDLE));
    FV(&f, vkDestroyBuffer)(f.device, sparse, NULL);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}
