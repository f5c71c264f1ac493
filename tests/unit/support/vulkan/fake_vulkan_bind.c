/*
 * fake_vulkan_bind.c - the fake Vulkan driver: requirements of buffers and images, and the rules of
 * binding.
 */
#include "tests/support/unit.h"
#include "tests/support/vulkan/fixture.h"

#define TRANSFER (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

static VkBuffer make_buffer(fv_fixture *f, uint64_t size, VkMemoryRequirements *needs)
{
    VkBuffer buffer = fv_fixture_buffer(f, size, TRANSFER);
    *needs = fv_fixture_needs(f, buffer);
    return buffer;
}

static VkImage make_image(fv_fixture *f, uint32_t side, VkImageTiling tiling,
                          VkImageCreateFlags flags, VkMemoryRequirements *needs)
{
    VkImage image;
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
    FV(f, vkGetImageMemoryRequirements)(f->device, image, needs);
    return image;
}

static void bind(fv_fixture *f, VkBuffer buffer, VkDeviceMemory memory, uint64_t offset)
{
    CHECK_VK(FV(f, vkBindBufferMemory)(f->device, buffer, memory, offset));
}

static void bind_image(fv_fixture *f, VkImage image, VkDeviceMemory memory, uint64_t offset)
{
    CHECK_VK(FV(f, vkBindImageMemory)(f->device, image, memory, offset));
}

static void destroy(fv_fixture *f, VkBuffer buffer)
{
    FV(f, vkDestroyBuffer)(f->device, buffer, NULL);
}

UNIT(fake_vulkan_bind, misplaced_buffers_are_told)
{
    fv_fixture f;
    fv_fixture_open(&f, "mobile-lazy", 0);
    VkMemoryRequirements needs;
    VkBuffer buffer = make_buffer(&f, 1000, &needs);
    VkDeviceMemory memory = fv_fixture_memory(&f, 4096, 0);
    VkDeviceMemory lazy = fv_fixture_memory(&f, 4096, 3), guarded = fv_fixture_memory(&f, 4096, 4);
    CHECK(needs.alignment > 1 && needs.size >= 1000 && !(needs.memoryTypeBits & 0x18));
    bind(&f, buffer, memory, 4096);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-size-01037");
    bind(&f, buffer, memory, 4096 - needs.size + needs.alignment);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-size-01037");
    CHECK(!fv_place_of(f.driver, (uint64_t)buffer).memory); /* and is not bound */
    bind(&f, buffer, memory, needs.alignment);
    fv_place place = fv_place_of(f.driver, (uint64_t)buffer);
    CHECK(place.memory == memory && place.offset == needs.alignment && place.size == needs.size);
    bind(&f, buffer, memory, 0);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-buffer-07459");
    VkBuffer second = make_buffer(&f, 100, &needs), third = make_buffer(&f, 100, &needs);
    bind(&f, second, memory, 3000 / needs.alignment * needs.alignment + 1);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-memoryOffset-01036");
    bind(&f, third, lazy, 0);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-memory-01035");
    destroy(&f, third);
    third = make_buffer(&f, 100, &needs);
    bind(&f, third, guarded, 0);
    CHECK(fv_message_with(f.driver, "VUID-VkBindBufferMemoryInfo-memory-01035"));
    CHECK(fv_message_with(f.driver, "VUID-VkBindBufferMemoryInfo-None-01898"));
    fv_forget(f.driver);
    destroy(&f, buffer);
    destroy(&f, second);
    destroy(&f, third);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    FV(&f, vkFreeMemory)(f.device, lazy, NULL);
    FV(&f, vkFreeMemory)(f.device, guarded, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_bind, overlaps_are_told_and_page_buffers_are_none)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkMemoryRequirements needs;
    VkBuffer page = make_buffer(&f, 65536, &needs), low = make_buffer(&f, 256, &needs);
    VkBuffer high = make_buffer(&f, 256, &needs), over = make_buffer(&f, 4096, &needs);
    VkDeviceMemory memory = fv_fixture_memory(&f, 65536, 0);
    bind(&f, low, memory, 1024);
    bind(&f, page, memory, 0);
    bind(&f, high, memory, 1280);
    CHECK(!fv_message(f.driver, 0));
    bind(&f, over, memory, 1520 / needs.alignment * needs.alignment);
    fv_fixture_expect(&f, "fv-overlap");
    destroy(&f, over);
    over = make_buffer(&f, 4096, &needs);
    destroy(&f, high);
    bind(&f, over, memory, 1280); /* at the offset of the destroyed buffer */
    destroy(&f, over);
    destroy(&f, low);
    destroy(&f, page);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_bind, linear_and_optimal_keep_apart)
{
    fv_fixture f;
    fv_fixture_open(&f, "nvidia-bar", 0); /* granularity 1024 */
    VkMemoryRequirements needs, image_needs;
    VkBuffer buffer = make_buffer(&f, 100, &needs), second = make_buffer(&f, 100, &needs);
    VkImage image = make_image(&f, 8, VK_IMAGE_TILING_OPTIMAL, 0, &image_needs);
    VkImage linear = make_image(&f, 8, VK_IMAGE_TILING_LINEAR, 0, &image_needs);
    VkDeviceMemory memory = fv_fixture_memory(&f, 65536, 7);
    CHECK(image_needs.size < 512);
    bind(&f, buffer, memory, 0);
    bind_image(&f, linear, memory, 512); /* linear like the buffer */
    bind_image(&f, image, memory, 1024);
    bind(&f, second, memory, 1024 + 512);
    fv_fixture_expect(&f, "fv-granularity");
    FV(&f, vkDestroyImage)(f.device, image, NULL);
    FV(&f, vkDestroyImage)(f.device, linear, NULL);
    destroy(&f, buffer);
    destroy(&f, second);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_bind, images_that_may_alias_may_overlap)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkMemoryRequirements needs;
    VkImage one = make_image(&f, 32, VK_IMAGE_TILING_OPTIMAL, VK_IMAGE_CREATE_ALIAS_BIT, &needs);
    VkImage two = make_image(&f, 32, VK_IMAGE_TILING_OPTIMAL, VK_IMAGE_CREATE_ALIAS_BIT, &needs);
    VkImage three = make_image(&f, 32, VK_IMAGE_TILING_OPTIMAL, 0, &needs);
    VkDeviceMemory memory = fv_fixture_memory(&f, 65536, 0);
    bind_image(&f, one, memory, 0);
    bind_image(&f, two, memory, 0);
    CHECK(!fv_message(f.driver, 0));
    bind_image(&f, three, memory, needs.size + needs.alignment * 4);
    CHECK(!fv_message(f.driver, 0));
    VkBindImageMemoryInfo again = {
        .sType = VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO, .image = three, .memory = memory};
    CHECK_VK(FV(&f, vkBindImageMemory2)(f.device, 1, &again));
    fv_fixture_expect(&f, "VUID-VkBindImageMemoryInfo-image-07460");
    FV(&f, vkDestroyImage)(f.device, one, NULL);
    FV(&f, vkDestroyImage)(f.device, two, NULL);
    FV(&f, vkDestroyImage)(f.device, three, NULL);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_bind, freeing_memory_under_live_objects_is_a_warning)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkMemoryRequirements needs;
    VkBuffer buffer = make_buffer(&f, 100, &needs), unasked = fv_fixture_buffer(&f, 100, TRANSFER);
    VkDeviceMemory memory = fv_fixture_memory(&f, 4096, 0);
    bind(&f, unasked, memory, 2048);
    CHECK_EQ(fv_message_count(f.driver, FV_ERROR), 0);
    fv_fixture_expect(&f, "fv-requirements");
    destroy(&f, unasked);
    bind(&f, buffer, memory, 0);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    CHECK_EQ(fv_message_count(f.driver, FV_WARNING), 1);
    fv_fixture_expect(&f, "fv-free-bound");
    VkCommandBuffer commands = fv_fixture_begin(&f);
    FV(&f, vkCmdFillBuffer)(commands, buffer, 0, 4, 0);
    fv_fixture_run(&f, commands);
    CHECK(fv_message_with(f.driver, "the buffer has no memory"));
    fv_forget(f.driver);
    destroy(&f, buffer);
    fv_fixture_close(&f);
}

static VkMemoryRequirements2 dedication_of(fv_fixture *f, VkImage image,
                                           VkMemoryDedicatedRequirements *dedicated)
{
    VkImageMemoryRequirementsInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = image};
    *dedicated =
        (VkMemoryDedicatedRequirements){.sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS};
    VkMemoryRequirements2 all = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
                                 .pNext = dedicated};
    FV(f, vkGetImageMemoryRequirements2)(f->device, &info, &all);
    return all;
}

UNIT(fake_vulkan_bind, dedication_is_preferred_or_required_where_asked_for)
{
    static const uint32_t FLAGS[] = {0, FV_PREFER_DEDICATED, FV_REQUIRE_DEDICATED};
    for (uint32_t i = 0; i < 3; i++) {
        fv_fixture f;
        fv_fixture_open(&f, NULL, FLAGS[i]);
        VkMemoryRequirements needs;
        VkMemoryDedicatedRequirements dedicated;
        VkImage image = make_image(&f, 32, VK_IMAGE_TILING_OPTIMAL, 0, &needs);
        CHECK_EQ(dedication_of(&f, image, &dedicated).memoryRequirements.size, needs.size);
        CHECK_EQ(dedicated.prefersDedicatedAllocation, i > 0);
        CHECK_EQ(dedicated.requiresDedicatedAllocation, i == 2);
        VkDeviceMemory memory = fv_fixture_memory(&f, 65536, 0);
        bind_image(&f, image, memory, 0);
        if (i == 2)
            fv_fixture_expect(&f, "VUID-VkBindImageMemoryInfo-image-01445");
        FV(&f, vkDestroyImage)(f.device, image, NULL);
        FV(&f, vkFreeMemory)(f.device, memory, NULL);
        fv_fixture_close(&f);
    }
}

UNIT(fake_vulkan_bind, exportable_memory_holds_what_declares_its_handle_type)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkMemoryRequirements needs;
    VkBuffer plain = make_buffer(&f, 1024, &needs);
    VkExportMemoryAllocateInfo exported = {.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                           .handleTypes =
                                               VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &exported,
                                 .allocationSize = needs.size};
    VkDeviceMemory memory;
    CHECK_VK(FV(&f, vkAllocateMemory)(f.device, &info, NULL, &memory));
    bind(&f, plain, memory, 0);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-memory-02726");
    destroy(&f, plain);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_bind, a_buffer_declares_only_handle_types_that_go_together)
{
    fv_fixture f;
    VkBuffer buffer;
    fv_fixture_open(&f, NULL, 0);
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_D3D12_HEAP_BIT};
    const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                     .pNext = &external,
                                     .size = 1000,
                                     .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
    CHECK_VK(FV(&f, vkCreateBuffer)(f.device, &info, NULL, &buffer));
    fv_fixture_expect(&f, "VUID-VkBufferCreateInfo-pNext-00920");
    destroy(&f, buffer);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_bind, dedicated_memory_holds_nothing_else)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkMemoryRequirements needs;
    VkBuffer owner = make_buffer(&f, 1024, &needs), other = make_buffer(&f, 1024, &needs);
    VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = owner};
    VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                 .pNext = &dedicated,
                                 .allocationSize = needs.size};
    VkDeviceMemory memory;
    CHECK_VK(FV(&f, vkAllocateMemory)(f.device, &info, NULL, &memory));
    bind(&f, other, memory, 0);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-memory-01508");
    destroy(&f, other);
    bind(&f, owner, memory, 0);
    destroy(&f, owner);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    fv_fixture_close(&f);
}

UNIT(fake_vulkan_bind, requirements_are_awkward_where_asked_for)
{
    fv_fixture plain, odd;
    fv_fixture_open(&plain, NULL, 0);
    VkMemoryRequirements usual, needs, image_needs;
    VkBuffer buffer = make_buffer(&plain, 1000, &usual);
    destroy(&plain, buffer);
    fv_fixture_close(&plain);
    fv_fixture_open(&odd, NULL, FV_ODD_SIZES | FV_LARGE_ALIGNMENTS | FV_FEW_TYPES);
    buffer = make_buffer(&odd, 1000, &needs);
    VkImage image = make_image(&odd, 10, VK_IMAGE_TILING_OPTIMAL, 0, &image_needs);
    CHECK(needs.size > usual.size && needs.size % 2 == 1);
    CHECK_EQ(needs.alignment, 4096);
    CHECK_EQ(image_needs.alignment, 65536);
    CHECK(needs.memoryTypeBits && needs.memoryTypeBits != usual.memoryTypeBits);
    CHECK(!(needs.memoryTypeBits & ~usual.memoryTypeBits));
    destroy(&odd, buffer);
    FV(&odd, vkDestroyImage)(odd.device, image, NULL);
    fv_fixture_close(&odd);
}

/* With FEW_TYPES a device-local type stays, and for buffers a host-visible one. */
UNIT(fake_vulkan_bind, the_promised_types_stay)
{
    for (uint32_t i = 0; i < fv_layout_count; i++) {
        fv_fixture f;
        fv_fixture_open(&f, fv_layouts[i].name, FV_FEW_TYPES);
        VkMemoryRequirements needs;
        VkMemoryPropertyFlags coherent =
            VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
        bool local = false, visible = false;
        VkBuffer buffer = make_buffer(&f, 1000, &needs);
        for (uint32_t k = 0; k < fv_layouts[i].type_count; k++) {
            VkMemoryPropertyFlags flags = fv_layouts[i].types[k].propertyFlags;
            if (!(needs.memoryTypeBits >> k & 1))
                continue;
            local |= flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
            visible |= (flags & coherent) == coherent;
        }
        CHECK(local);
        CHECK_EQ(visible, strcmp(fv_layouts[i].name, "incoherent") != 0);
        destroy(&f, buffer);
        fv_fixture_close(&f);
    }
}

UNIT(fake_vulkan_bind, addresses_need_memory_that_has_them)
{
    fv_fixture f;
    fv_fixture_open(&f, NULL, 0);
    VkBufferUsageFlags usage = TRANSFER | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
    VkBuffer buffer = fv_fixture_buffer(&f, 1000, usage),
             other = fv_fixture_buffer(&f, 1000, usage);
    VkMemoryRequirements needs = fv_fixture_needs(&f, buffer);
    (void)fv_fixture_needs(&f, other);
    VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                       .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags, .allocationSize = 65536};
    VkDeviceMemory memory, plain = fv_fixture_memory(&f, 4096, 0);
    CHECK_VK(FV(&f, vkAllocateMemory)(f.device, &info, NULL, &memory));
    VkBufferDeviceAddressInfo ask = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                     .buffer = buffer};
    CHECK_EQ(FV(&f, vkGetBufferDeviceAddress)(f.device, &ask), 0);
    fv_fixture_expect(&f, "VUID-VkBufferDeviceAddressInfo-buffer-02600");
    bind(&f, buffer, memory, needs.alignment * 3);
    uint64_t address = FV(&f, vkGetBufferDeviceAddress)(f.device, &ask);
    CHECK(address && address % needs.alignment == 0);
    bind(&f, other, plain, 0);
    fv_fixture_expect(&f, "VUID-VkBindBufferMemoryInfo-bufferDeviceAddress-03339");
    destroy(&f, buffer);
    destroy(&f, other);
    FV(&f, vkFreeMemory)(f.device, memory, NULL);
    FV(&f, vkFreeMemory)(f.device, plain, NULL);
    fv_fixture_close(&f);
}
