/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan_bind.c - what the emulated Vulkan driver tells of objects that are bound against a
 * rule of Vulkan, and what its flags change in the requirements of objects.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#define TRANSFER (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)
#define FD VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

/* A buffer whose requirements have been queried. */
static VkBuffer make(fv_fixture *f, uint64_t size, VkBufferUsageFlags usage)
{
    VkBuffer buffer = fv_fixture_buffer(f, size, usage);
    (void)fv_fixture_needs(f, buffer);
    return buffer;
}

static VkImage make_image(fv_fixture *f, uint32_t side, VkImageTiling tiling,
                          VkImageCreateFlags flags)
{
    VkImage image;
    VkMemoryRequirements needs;
    VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                              .flags = flags,
                              .imageType = VK_IMAGE_TYPE_2D,
                              .format = VK_FORMAT_R8G8B8A8_UNORM,
                              .extent = {side, side, 1},
                              .mipLevels = 1,
                              .arrayLayers = 1,
                              .samples = VK_SAMPLE_COUNT_1_BIT,
                              .tiling = tiling,
                              .usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT};
    CHECK_VK(FV(f, vkCreateImage)(f->device, &info, NULL, &image));
    FV(f, vkGetImageMemoryRequirements)(f->device, image, &needs);
    return image;
}

static VkDeviceMemory allocate(fv_fixture *f, uint64_t size, const void *chain)
{
    VkDeviceMemory memory;
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = chain, .allocationSize = size};
    CHECK_VK(FV(f, vkAllocateMemory)(f->device, &info, NULL, &memory));
    return memory;
}

static void bind(fv_fixture *f, VkBuffer buffer, VkDeviceMemory memory, uint64_t offset)
{
    CHECK_VK(FV(f, vkBindBufferMemory)(f->device, buffer, memory, offset));
}

static void bind_told(fv_fixture *f, VkBuffer buffer, VkDeviceMemory memory, uint64_t offset,
                      const char *part)
{
    bind(f, buffer, memory, offset);
    fv_fixture_expect(f, part);
}

static void bind_image(fv_fixture *f, VkImage image, VkDeviceMemory memory, uint64_t offset)
{
    CHECK_VK(FV(f, vkBindImageMemory)(f->device, image, memory, offset));
}

static void destroy(fv_fixture *f, VkBuffer buffer)
{
    FV(f, vkDestroyBuffer)(f->device, buffer, NULL);
}

FV_UNIT_ON(fake_vulkan_bind, misplaced_buffers_are_told, fv_fixture_open(f, "mobile-lazy", 0))
{
    VkBuffer buffer = make(f, 1000, TRANSFER);
    VkMemoryRequirements needs = fv_fixture_needs(f, buffer);
    VkDeviceMemory memory = fv_fixture_memory(f, 4096, 0);
    VkDeviceMemory lazy = fv_fixture_memory(f, 4096, 3), guarded = fv_fixture_memory(f, 4096, 4);
    CHECK(needs.alignment > 1 && needs.size >= 1000 && !(needs.memoryTypeBits & 0x18));
    bind_told(f, buffer, memory, 4096, "VUID-VkBindBufferMemoryInfo-size-01037");
    bind_told(f, buffer, memory, 4096 - needs.size + needs.alignment,
              "VUID-VkBindBufferMemoryInfo-size-01037");
    CHECK(!fv_place_of(f->driver, (uint64_t)buffer).memory); /* and is not bound */
    bind(f, buffer, memory, needs.alignment);
    bind_told(f, buffer, memory, 0, "VUID-VkBindBufferMemoryInfo-buffer-07459");
    bind_told(f, make(f, 100, TRANSFER), memory, 3000 / needs.alignment * needs.alignment + 1,
              "VUID-VkBindBufferMemoryInfo-memoryOffset-01036");
    bind_told(f, make(f, 100, TRANSFER), lazy, 0, "VUID-VkBindBufferMemoryInfo-memory-01035");
    bind(f, make(f, 100, TRANSFER), guarded, 0);
    CHECK(fv_message_with(f->driver, "VUID-VkBindBufferMemoryInfo-memory-01035"));
    CHECK(fv_message_with(f->driver, "VUID-VkBindBufferMemoryInfo-None-01898"));
    fv_forget(f->driver);
}

FV_UNIT_ON(fake_vulkan_bind, overlaps_are_told_and_page_buffers_are_none,
           fv_fixture_open(f, NULL, 0))
{
    VkDeviceMemory memory = fv_fixture_memory(f, 65536, 0);
    VkBuffer high = make(f, 256, TRANSFER), over = make(f, 4096, TRANSFER);
    bind(f, make(f, 256, TRANSFER), memory, 1024);
    bind(f, make(f, 65536, TRANSFER), memory, 0);
    bind(f, high, memory, 1280);
    CHECK(!fv_message(f->driver, 0));
    bind_told(f, over, memory, 1280, "fv-overlap");
    destroy(f, over);
    destroy(f, high);
    bind(f, make(f, 4096, TRANSFER), memory, 1280); /* at the offset of the destroyed buffer */
}

FV_UNIT(fake_vulkan_bind, linear_and_optimal_keep_apart)
{
    fv_fixture_open(f, "nvidia-bar", 0); /* granularity 1024 */
    VkDeviceMemory memory = fv_fixture_memory(f, 65536, 7);
    bind(f, make(f, 100, TRANSFER), memory, 0);
    bind_image(f, make_image(f, 8, VK_IMAGE_TILING_LINEAR, 0), memory, 512);
    bind_image(f, make_image(f, 8, VK_IMAGE_TILING_OPTIMAL, 0), memory, 1024);
    bind_told(f, make(f, 100, TRANSFER), memory, 1024 + 512, "fv-granularity");
}

FV_UNIT_ON(fake_vulkan_bind, images_that_may_alias_may_overlap, fv_fixture_open(f, NULL, 0))
{
    const VkImageCreateFlags alias = VK_IMAGE_CREATE_ALIAS_BIT;
    VkImage last = make_image(f, 32, VK_IMAGE_TILING_OPTIMAL, 0);
    VkDeviceMemory memory = fv_fixture_memory(f, 65536, 0);
    bind_image(f, make_image(f, 32, VK_IMAGE_TILING_OPTIMAL, alias), memory, 0);
    bind_image(f, make_image(f, 32, VK_IMAGE_TILING_OPTIMAL, alias), memory, 0);
    bind_image(f, last, memory, 32768);
    CHECK(!fv_message(f->driver, 0));
    VkBindImageMemoryInfo again = {
        .sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO, .image = last, .memory = memory};
    FV_TOLD(f, "VUID-VkBindImageMemoryInfo-image-07460",
            FV(f, vkBindImageMemory2)(f->device, 1, &again));
}

FV_UNIT_ON(fake_vulkan_bind, freeing_memory_under_live_objects_is_a_warning,
           fv_fixture_open(f, NULL, 0))
{
    VkBuffer buffer = make(f, 100, TRANSFER), unasked = fv_fixture_buffer(f, 100, TRANSFER);
    VkDeviceMemory memory = fv_fixture_memory(f, 4096, 0);
    bind_told(f, unasked, memory, 2048, "fv-requirements");
    destroy(f, unasked);
    bind(f, buffer, memory, 0);
    FV(f, vkFreeMemory)(f->device, memory, NULL);
    CHECK_EQ(fv_message_count(f->driver, FV_WARNING), 1);
    fv_fixture_expect(f, "fv-free-bound");
    VkCommandBuffer commands = fv_fixture_begin(f);
    FV(f, vkCmdFillBuffer)(commands, buffer, 0, 4, 0);
    fv_fixture_run(f, commands);
    CHECK(fv_message_with(f->driver, "the buffer has no memory"));
    fv_forget(f->driver);
}

/* ---- memory that is not for every object ---------------------------------------------------- */

FV_UNIT_ON(fake_vulkan_bind, memory_of_a_purpose_holds_what_declares_it,
           fv_fixture_open(f, NULL, 0))
{
    VkBuffer owner = make(f, 1024, TRANSFER);
    const VkExportMemoryAllocateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = FD};
    const VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = owner};
    bind_told(f, make(f, 1024, TRANSFER), allocate(f, 4096, &exported), 0,
              "VUID-VkBindBufferMemoryInfo-memory-02726");
    VkDeviceMemory memory = allocate(f, fv_fixture_needs(f, owner).size, &dedicated);
    bind_told(f, make(f, 1024, TRANSFER), memory, 0, "VUID-VkBindBufferMemoryInfo-memory-01508");
    bind(f, owner, memory, 0);
    const VkExternalMemoryBufferCreateInfo foreign = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP_BIT};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = &foreign,
                                     .size = 1000,
                                     .usage = TRANSFER};
    FV_TOLD(f, "VUID-VkBufferCreateInfo-pNext-00920",
            FV(f, vkCreateBuffer)(f->device, &info, NULL, &owner));
}

FV_UNIT_ON(fake_vulkan_bind, addresses_need_memory_that_has_them, fv_fixture_open(f, NULL, 0))
{
    const VkBufferUsageFlags usage = TRANSFER | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                             .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkBuffer buffer = make(f, 1000, usage);
    const VkBufferDeviceAddressInfo ask = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                           .buffer = buffer};
    FV_TOLD(f, "VUID-VkBufferDeviceAddressInfo-buffer-02600",
            FV(f, vkGetBufferDeviceAddress)(f->device, &ask));
    bind(f, buffer, allocate(f, 65536, &flags), 0);
    CHECK(FV(f, vkGetBufferDeviceAddress)(f->device, &ask));
    bind_told(f, make(f, 1000, usage), fv_fixture_memory(f, 4096, 0), 0,
              "VUID-VkBindBufferMemoryInfo-bufferDeviceAddress-03339");
}

/* ---- requirements --------------------------------------------------------------------------- */

UNIT(fake_vulkan_bind, requirements_are_awkward_where_asked_for)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkMemoryRequirements usual = fv_fixture_needs(&f, make(&f, 1000, TRANSFER)), image_needs;
    fv_fixture_leave(&f);
    fv_fixture_open(&f, NULL,
                    FV_ODD_SIZES | FV_LARGE_ALIGNMENTS | FV_FEW_TYPES | FV_REQUIRE_DEDICATED);
    VkMemoryRequirements needs = fv_fixture_needs(&f, make(&f, 1000, TRANSFER));
    VkImage image = make_image(&f, 10, VK_IMAGE_TILING_OPTIMAL, 0);
    FV(&f, vkGetImageMemoryRequirements)(f.device, image, &image_needs);
    CHECK(needs.size > usual.size && needs.size % 2 == 1);
    CHECK_EQ(needs.alignment, 4096);
    CHECK_EQ(image_needs.alignment, 65536);
    CHECK(needs.memoryTypeBits && needs.memoryTypeBits != usual.memoryTypeBits);
    CHECK(!(needs.memoryTypeBits & ~usual.memoryTypeBits));
    uint32_t type = 0;
    while (!(image_needs.memoryTypeBits >> type & 1))
        type++;
    bind_image(&f, image, fv_fixture_memory(&f, 131072, type), 0);
    fv_fixture_expect(&f, "VUID-VkBindImageMemoryInfo-image-01445");
    fv_fixture_leave(&f);
}
