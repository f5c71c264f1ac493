/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_zero.c - QUIRE_LAYER_ZERO: programs that count on the zeros of new memory.
 */
#include <stdlib.h>

#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

static const VkMemoryPropertyFlags VISIBLE = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;

/* Returns the number of bytes other than 0 that the host sees in a memory object. */
static uint64_t count_others(fv_fixture *f, VkDeviceMemory memory, uint64_t size)
{
    unsigned char *bytes = NULL;
    uint64_t others = 0;
    const VkMappedMemoryRange range = {
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = memory, .size = VK_WHOLE_SIZE};
    CHECK_VK(FV(f, vkMapMemory)(f->device, memory, 0, VK_WHOLE_SIZE, 0, (void **)&bytes));
    CHECK_VK(FV(f, vkInvalidateMappedMemoryRanges)(f->device, 1, &range));
    for (uint64_t i = 0; i < size; i++)
        others += bytes[i] != 0;
    memset(bytes, 0xa5, size); /* for the next program that counts on zeros here */
    CHECK_VK(FV(f, vkFlushMappedMemoryRanges)(f->device, 1, &range));
    FV(f, vkUnmapMemory)(f->device, memory);
    return others;
}

/* On all layouts, some of whose types are not coherent, new pages contain garbage. */
UNIT_ALONE(vulkan_layer_zero, ranges_are_zeroed_on_every_layout_and_each_time)
{
    setenv("QUIRE_LAYER_ZERO", "on", 1);
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        fv_fixture f;
        VkPhysicalDeviceMemoryProperties all;
        lf_open(&f, &fv_layouts[i], FV_STALE | FV_DIRTY);
        FV(&f, vkGetPhysicalDeviceMemoryProperties)(f.physical, &all);
        for (uint32_t type = 0; type < all.memoryTypeCount; type++)
            for (int round = 0; round < 3; round++) {
                VkMemoryPropertyFlags flags = all.memoryTypes[type].propertyFlags;
                if (!(flags & VISIBLE) || flags & VK_MEMORY_PROPERTY_PROTECTED_BIT)
                    continue;
                VkDeviceMemory memory = lf_allocate(&f, 5000, type, NULL);
                CHECK(!lf_is_passed(&f, memory));
                CHECK_EQ(count_others(&f, memory, 5000), 0);
                lf_release(&f, memory);
            }
        fv_fixture_close(&f);
    }
}

/* The device reads the zeros before the program maps anything. */
UNIT_ALONE(vulkan_layer_zero, the_device_sees_the_zeros)
{
    enum { SIZE = 4096 };
    fv_fixture f;
    VkCommandPool pool;
    setenv("QUIRE_LAYER_ZERO", "on", 1);
    lf_open(&f, fv_layout_named("adreno"), FV_STALE | FV_DIRTY);
    lf_piece from = lf_make_piece(&f, SIZE, 2), to = lf_make_piece(&f, SIZE, 0);
    VkCommandBuffer commands = lf_begin_commands(&f, &pool);
    FV(&f, vkCmdFillBuffer)(commands, to.buffer, 0, SIZE, 0x11111111);
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT};
    FV(&f, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
     NULL, 0, NULL);
    FV(&f, vkCmdCopyBuffer)(commands, from.buffer, to.buffer, 1, &(VkBufferCopy){.size = SIZE});
    lf_run_commands(&f, commands, pool);
    CHECK_EQ(count_others(&f, to.memory, SIZE), 0);
    lf_end_piece(&f, &from);
    lf_end_piece(&f, &to);
    fv_fixture_close(&f);
}

/* The host cannot write such memory, and the layer has no queue: the driver gives what it gives. */
UNIT_ALONE(vulkan_layer_zero, types_that_are_not_host_visible_are_passed_on)
{
    fv_fixture f;
    setenv("QUIRE_LAYER_ZERO", "on", 1);
    lf_open_named(&f, "amd-bar");
    lf_expect_passed(&f, 1000, 0, NULL);
    fv_fixture_close(&f);
    setenv("QUIRE_LAYER_ZERO", "off", 1);
    lf_open_named(&f, "amd-bar");
    VkDeviceMemory memory = lf_allocate(&f, 1000, 0, NULL);
    CHECK(!lf_is_passed(&f, memory));
    lf_release(&f, memory);
    fv_fixture_close(&f);
}

UNIT_ALONE(vulkan_layer_zero, a_range_that_cannot_be_flushed_is_passed_on)
{
    fv_fixture f;
    setenv("QUIRE_LAYER_ZERO", "on", 1);
    lf_open_named(&f, "adreno");
    CHECK(fv_fail(f.driver, &(fv_fault){.function = "vkFlushMappedMemoryRanges",
                                        .call = 1,
                                        .from_then = true,
                                        .result = VK_ERROR_OUT_OF_HOST_MEMORY}));
    VkDeviceMemory memory = lf_allocate(&f, 1000, 2, NULL);
    CHECK(lf_is_passed(&f, memory));
    lf_release(&f, memory);
    fv_heal(f.driver);
    fv_fixture_close(&f);
}
