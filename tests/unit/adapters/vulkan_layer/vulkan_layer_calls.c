/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_layer_calls.c - the layer's other calls: allocations that are passed on, maps, names,
 * queries, sparse binds.
 */
#include <stdlib.h>

#include "tests/support/layer_fixture.h"
#include "tests/support/unit.h"

#define CASE(name, layout) LAYER_CASE(vulkan_layer_calls, name, layout)

/* ---- passed on ------------------------------------------------------------------------------- */

CASE(dedicated_external_and_large_allocations_are_the_drivers, "amd-bar")
{
    VkBuffer buffer = fv_fixture_buffer(f, 1000, COPIES);
    VkMemoryRequirements needs = fv_fixture_needs(f, buffer);
    lf_expect_passed(
        f, needs.size, 0,
        &(VkMemoryDedicatedAllocateInfo){.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
                                         .buffer = buffer});
    lf_expect_passed(
        f, 4096, 0,
        &(VkExportMemoryAllocateInfo){.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT});
    lf_expect_passed(f, 16 * MIB, 0, NULL);
    void *pointer = aligned_alloc(4096, 8192);
    lf_expect_passed(f, 8192, fv_fixture_type(f, COHERENT_FLAGS),
                     &(VkImportMemoryHostPointerInfoEXT){
                         .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
                         .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
                         .pHostPointer = pointer});
    free(pointer);
    /* these request nothing special */
    const VkMemoryDedicatedAllocateInfo nobody = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO};
    const VkExportMemoryAllocateInfo nothing = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .pNext = &nobody};
    const VkMemoryAllocateFlagsInfo address = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                               .pNext = &nothing,
                                               .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkDeviceMemory memory = lf_allocate(f, 4096, 0, &address);
    CHECK(!lf_is_passed(f, memory));
    lf_release(f, memory);
    FV(f, vkDestroyBuffer)(f->device, buffer, NULL);
}

UNIT_ALONE(vulkan_layer_calls, dedicated_allocations_are_suballocated_if_settings_allow_it)
{
    static const uint32_t FLAGS[] = {FV_PREFER_DEDICATED, FV_REQUIRE_DEDICATED};
    setenv("QUIRE_LAYER_DEDICATED", "suballocate", 1);
    for (int i = 0; i < 2; i++) {
        fv_fixture f;
        VkMemoryRequirements needs;
        lf_open(&f, fv_layout_named("amd-bar"), FLAGS[i]);
        VkImage image = lf_make_image(&f, VK_IMAGE_TILING_OPTIMAL);
        FV(&f, vkGetImageMemoryRequirements)(f.device, image, &needs);
        const VkMemoryDedicatedAllocateInfo dedicated = {
            .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .image = image};
        VkDeviceMemory memory = lf_allocate(&f, needs.size, 0, &dedicated);
        CHECK_EQ(lf_is_passed(&f, memory), FLAGS[i] == FV_REQUIRE_DEDICATED);
        CHECK_VK(FV(&f, vkBindImageMemory)(f.device, image, memory, 0));
        FV(&f, vkDestroyImage)(f.device, image, NULL);
        lf_release(&f, memory);
        fv_fixture_close(&f);
    }
}

CASE(lazily_allocated_kinds_are_the_drivers, "mobile-lazy")
{
    VkDeviceSize committed = 0;
    VkPhysicalDeviceMemoryProperties all;
    FV(f, vkGetPhysicalDeviceMemoryProperties)(f->physical, &all);
    for (uint32_t i = 0; i < all.memoryTypeCount; i++) {
        bool is_lazy = all.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT;
        if (all.memoryTypes[i].propertyFlags & VK_MEMORY_PROPERTY_PROTECTED_BIT)
            continue;
        VkDeviceMemory memory = lf_allocate(f, 4096, i, NULL);
        CHECK_EQ(lf_is_passed(f, memory), is_lazy);
        if (is_lazy)
            FV(f, vkGetDeviceMemoryCommitment)(f->device, memory, &committed);
        lf_release(f, memory);
    }
}

/* ---- maps, names, sparse --------------------------------------------------------------------- */

CASE(each_memory_is_mapped_once_and_the_page_stays_mapped, "adreno")
{
    void *one = NULL, *other = NULL, *again = NULL;
    uint32_t type = 2; /* not host-coherent */
    VkDeviceMemory a = lf_allocate(f, 1000, type, NULL), b = lf_allocate(f, 1000, type, NULL);
    CHECK_VK(FV(f, vkMapMemory)(f->device, a, 0, VK_WHOLE_SIZE, 0, &one));
    CHECK_VK(FV(f, vkMapMemory)(f->device, b, 128, 256, 0, &other));
    CHECK_EQ((uint32_t)FV(f, vkMapMemory)(f->device, b, 0, 1, 0, &again),
             (uint32_t)VK_ERROR_MEMORY_MAP_FAILED);
    CHECK_EQ((uintptr_t)one % 4096, 0);
    CHECK_EQ((uintptr_t)other % 4096, 128);
    CHECK_EQ(fv_calls(f->driver, "vkMapMemory"), 1);
    /*
     * ranges of both objects in one call; to the end of a memory whose size is not a multiple of
     * the atom, and to the end of a mapping
     */
    memset(one, 1, 1000);
    memset(other, 2, 256);
    const VkMappedMemoryRange ranges[] = {
        {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = a, .offset = 960, .size = 40},
        {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
         .memory = b,
         .offset = 128,
         .size = VK_WHOLE_SIZE},
        {.sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE, .memory = a, .size = VK_WHOLE_SIZE},
    };
    CHECK_VK(FV(f, vkFlushMappedMemoryRanges)(f->device, 3, ranges));
    CHECK_VK(FV(f, vkInvalidateMappedMemoryRanges)(f->device, 3, ranges));
    FV(f, vkUnmapMemory)(f->device, b);
    CHECK_VK(FV(f, vkMapMemory)(f->device, b, 0, VK_WHOLE_SIZE, 0, &again));
    CHECK(again == (char *)other - 128);
    CHECK_EQ(fv_calls(f->driver, "vkMapMemory"), 1);
    CHECK_EQ(fv_calls(f->driver, "vkUnmapMemory"), 0);
    lf_release(f, a);
    lf_release(f, b);
}

CASE(names_of_ranges_do_not_reach_the_driver_but_others_do, "amd-bar")
{
    char name[64];
    lf_piece p = lf_make_piece(f, 100, 0);
    VkDebugUtilsObjectNameInfoEXT info = {.sType =
                                              VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT,
                                          .objectType = VK_OBJECT_TYPE_DEVICE_MEMORY,
                                          .objectHandle = (uint64_t)(uintptr_t)p.memory,
                                          .pObjectName = "weights"};
    const VkDebugUtilsObjectTagInfoEXT tag = {.sType =
                                                  VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_TAG_INFO_EXT,
                                              .objectType = VK_OBJECT_TYPE_DEVICE_MEMORY,
                                              .objectHandle = (uint64_t)(uintptr_t)p.memory,
                                              .tagName = 1,
                                              .tagSize = 1,
                                              .pTag = "x"};
    uint64_t before = fv_calls(f->driver, "vkSetDebugUtilsObjectNameEXT");
    CHECK_VK(FV(f, vkSetDebugUtilsObjectNameEXT)(f->device, &info));
    CHECK_VK(FV(f, vkSetDebugUtilsObjectTagEXT)(f->device, &tag));
    CHECK_EQ(fv_calls(f->driver, "vkSetDebugUtilsObjectNameEXT"), before);
    info.objectType = VK_OBJECT_TYPE_BUFFER;
    info.objectHandle = (uint64_t)(uintptr_t)p.buffer;
    CHECK_VK(FV(f, vkSetDebugUtilsObjectNameEXT)(f->device, &info));
    fv_name_of(f->driver, (uint64_t)(uintptr_t)p.buffer, name, sizeof name);
    CHECK_STR(name, "weights");
    lf_end_piece(f, &p);
}

CASE(queries_of_a_range_are_answered, "amd-bar")
{
    VkDeviceSize committed = 0;
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkDeviceMemory one = lf_allocate(f, 5000, 0, &flags), other = lf_allocate(f, 5000, 0, &flags);
    FV(f, vkGetDeviceMemoryCommitment)(f->device, one, &committed);
    CHECK_EQ(committed, 5000);
    VkDeviceMemoryOpaqueCaptureAddressInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_MEMORY_OPAQUE_CAPTURE_ADDRESS_INFO, .memory = one};
    uint64_t first = FV(f, vkGetDeviceMemoryOpaqueCaptureAddress)(f->device, &info);
    info.memory = other;
    CHECK(first && FV(f, vkGetDeviceMemoryOpaqueCaptureAddress)(f->device, &info) != first);
    lf_release(f, one);
    lf_release(f, other);
}

CASE(sparse_binds_find_their_page, "amd-bar")
{
    enum { BLOCK = 64 * 1024 };
    VkBuffer buffer = VK_NULL_HANDLE;
    VkMemoryRequirements needs;
    VkCommandPool pool;
    void *pointer = NULL;
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .flags = VK_BUFFER_CREATE_SPARSE_BINDING_BIT,
                                     .size = 2 * BLOCK,
                                     .usage = COPIES};
    CHECK_VK(FV(f, vkCreateBuffer)(f->device, &info, NULL, &buffer));
    FV(f, vkGetBufferMemoryRequirements)(f->device, buffer, &needs);
    VkDeviceMemory first = lf_allocate(f, 100, 0, NULL);
    VkDeviceMemory memory = lf_allocate(f, needs.size, 0, NULL);
    const VkSparseMemoryBind binds[] = {
        /* the halves are swapped */
        {.size = needs.size / 2, .memory = memory, .memoryOffset = needs.size / 2},
        {.resourceOffset = needs.size / 2, .size = needs.size / 2, .memory = memory}};
    const VkSparseBufferMemoryBindInfo of_buffer = {
        .buffer = buffer, .bindCount = 2, .pBinds = binds};
    const VkBindSparseInfo sparse = {.sType = VK_STRUCTURE_TYPE_BIND_SPARSE_INFO,
                                     .bufferBindCount = 1,
                                     .pBufferBinds = &of_buffer};
    CHECK_VK(FV(f, vkQueueBindSparse)(f->queue, 1, &sparse, VK_NULL_HANDLE));
    CHECK_VK(FV(f, vkQueueWaitIdle)(f->queue));
    lf_piece back = lf_make_piece(f, 2 * BLOCK, fv_fixture_type(f, COHERENT_FLAGS));
    VkCommandBuffer commands = lf_begin_commands(f, &pool);
    FV(f, vkCmdFillBuffer)(commands, buffer, 0, BLOCK, 0x11111111);
    FV(f, vkCmdFillBuffer)(commands, buffer, BLOCK, BLOCK, 0x22222222);
    const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                     .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                     .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT};
    FV(f, vkCmdPipelineBarrier)
    (commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1, &barrier, 0,
     NULL, 0, NULL);
    FV(f, vkCmdCopyBuffer)(commands, buffer, back.buffer, 1, &(VkBufferCopy){.size = 2 * BLOCK});
    lf_run_commands(f, commands, pool);
    CHECK_VK(FV(f, vkMapMemory)(f->device, back.memory, 0, VK_WHOLE_SIZE, 0, &pointer));
    CHECK_EQ(((uint32_t *)pointer)[0], 0x11111111);
    CHECK_EQ(((uint32_t *)pointer)[BLOCK / sizeof(uint32_t)], 0x22222222);
    FV(f, vkDestroyBuffer)(f->device, buffer, NULL);
    lf_end_piece(f, &back);
    lf_release(f, memory);
    lf_release(f, first);
}
