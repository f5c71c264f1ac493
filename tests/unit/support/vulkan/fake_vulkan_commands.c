/*
 * fake_vulkan_commands.c - the fake Vulkan driver: commands on buffers and their order, and the
 * states of command buffers.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

UNIT(fake_vulkan_commands, buffers_are_filled_updated_and_copied_in_order)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_visible one = fv_fixture_visible(&f, 1000), two = fv_fixture_visible(&f, 1000);
    static const uint32_t WORDS[2] = {11, 22};
    VkBufferCopy regions[2] = {{0, 8, 8}, {8, 100, 4}};
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, one.buffer, 0, VK_WHOLE_SIZE, 7);
    FV(&f, vkCmdUpdateBuffer)(commands, one.buffer, 0, 8, WORDS);
    FV(&f, vkCmdCopyBuffer)(commands, one.buffer, two.buffer, 2, regions);
    CHECK_EQ(fv_word(&one, 0), 0); /* only recorded */
    fv_fixture_run(&f, commands);
    CHECK_EQ(fv_word(&one, 0), 11);
    CHECK_EQ(fv_word(&one, 2), 7);
    CHECK_EQ(fv_word(&one, 249), 7);
    CHECK_EQ(fv_word(&two, 0), 0);
    CHECK_EQ(fv_word(&two, 2), 11);
    CHECK_EQ(fv_word(&two, 3), 22);
    CHECK_EQ(fv_word(&two, 25), 7);
    CHECK_EQ(fv_word(&two, 26), 0);
    fv_fixture_hide(&f, &one);
    fv_fixture_hide(&f, &two);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, ranges_beyond_buffers_are_told_and_not_touched)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_visible one = fv_fixture_visible(&f, 64), two = fv_fixture_visible(&f, 64);
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
    fv_fixture_hide(&f, &one);
    fv_fixture_hide(&f, &two);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_commands, command_buffers_have_states)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    fv_visible one = fv_fixture_visible(&f, 64);
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
    CHECK_VK(FV(&f, vkQueueSubmit)(f.queue, 1, &submit, VK_NULL_HANDLE)); /* an error: one-time */
    fv_fixture_expect(&f, "VUID-vkQueueSubmit-pCommandBuffers-00070");
    CHECK_VK(FV(&f, vkResetCommandBuffer)(commands, 0));
    fv_fixture_expect(&f, "VUID-vkResetCommandBuffer-commandBuffer-00046");
    CHECK_VK(FV(&f, vkResetCommandPool)(f.device, f.pool, 0));
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 1, &commands);
    FV(&f, vkFreeCommandBuffers)(f.device, f.pool, 1, &commands);
    fv_fixture_expect(&f, "the command buffer was destroyed");
    fv_fixture_hide(&f, &one);
    fv_fixture_close(&f);
}
