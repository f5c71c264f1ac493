/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_handle_type_driver.c - objects in exportable and imported memory on a driver of this
 * machine under the validation layer, which reports what Vulkan forbids.
 */
#include <unistd.h>

#include "quire/vulkan_sparse.h"
#include "tests/support/real_vulkan.h"
#include "tests/support/vulkan_native.h"

#define OPAQUE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT
#define KIB UINT64_C(1024)

static const VkBufferCreateInfo BUFFER = VULKAN_BUFFER(1000, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT);
static const VkImageCreateInfo IMAGE = VULKAN_IMAGE(64, VK_IMAGE_USAGE_SAMPLED_BIT);

/* Returns a memory that is exported by descriptors. */
static quire_memory *begin(real_vulkan *r)
{
    static const quire_intent exportable = QUIRE_INTENT_EXPORT;
    real_begin(r);
    real_require(r, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    real_wrap(r);
    return real_memory(
        r, &(quire_memory_options){.kind.intent = exportable, .pages = {.page_size = 64 * KIB}});
}

REAL_UNIT(vulkan_handle_type_driver, plain_create_infos_are_valid_in_exportable_memory)
{
    quire_buffer buffer;
    quire_image image;
    quire_allocation range;
    quire_vulkan_alias *alias = NULL;
    quire_memory *memory = begin(r);
    CHECK_OK(quire_vulkan_buffer_create(memory, &BUFFER, NULL, &buffer));
    CHECK_OK(quire_write(memory, buffer.allocation, 0, "shared", 7));
    CHECK_OK(quire_allocate(
        memory, &(quire_allocation_options){.size = 8 * KIB, .alignment = 4 * KIB}, &range));
    CHECK_OK(quire_vulkan_alias_buffer_create(memory, range, &BUFFER, NULL, &alias));
    CHECK_OK(quire_vulkan_alias_destroy(&alias));
    quire_result result = quire_vulkan_image_create(memory, &IMAGE, NULL, &image);
    if (result)
        CHECK_EQ(result, QUIRE_ERROR_UNSUPPORTED);
    else
        CHECK_OK(quire_free(memory, image.allocation));
    CHECK_OK(quire_free(memory, range));
    CHECK_OK(quire_free(memory, buffer.allocation));
    real_memory_end(memory);
}

/* Creates a buffer for external memory. */
static VkBuffer make(const real_vulkan *r, VkMemoryRequirements *needs)
{
    const VkExternalMemoryBufferCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO, .handleTypes = OPAQUE};
    VkBufferCreateInfo info = BUFFER;
    VkBuffer buffer;
    info.pNext = &external;
    CHECK_EQ(REAL(r, vkCreateBuffer)(r->device, &info, NULL, &buffer), 0);
    REAL(r, vkGetBufferMemoryRequirements)(r->device, buffer, needs);
    return buffer;
}

/* Allocates memory that is dedicated to a buffer, binds and exports it. */
static int export_dedicated(const real_vulkan *r, VkBuffer buffer, uint64_t size, uint32_t kind,
                            VkDeviceMemory *memory)
{
    const VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO, .buffer = buffer};
    const VkExportMemoryAllocateInfo exported = {.sType =
                                                     VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
                                                 .pNext = &dedicated,
                                                 .handleTypes = OPAQUE};
    const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                       .pNext = &exported,
                                       .allocationSize = size,
                                       .memoryTypeIndex = kind};
    int descriptor = -1;
    CHECK_EQ(REAL(r, vkAllocateMemory)(r->device, &info, NULL, memory), 0);
    CHECK_EQ(REAL(r, vkBindBufferMemory)(r->device, buffer, *memory, 0), 0);
    const VkMemoryGetFdInfoKHR get = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, .memory = *memory, .handleType = OPAQUE};
    CHECK_EQ(REAL(r, vkGetMemoryFdKHR)(r->device, &get, &descriptor), 0);
    return descriptor;
}

REAL_UNIT(vulkan_handle_type_driver, memory_of_a_dedicated_allocation_is_imported_as_such)
{
    VkMemoryRequirements needs;
    VkDeviceMemory exported;
    quire_memory_info info;
    quire_allocation range;
    quire_vulkan_range place;
    quire_memory *memory = begin(r);
    CHECK_OK(quire_memory_get_info(memory, &info));
    VkBuffer mine = make(r, &needs), twin = make(r, &needs);
    const quire_vulkan_import import = {
        .type = OPAQUE,
        .descriptor = export_dedicated(r, mine, needs.size, info.kind, &exported),
        .size = needs.size,
        .buffer = twin,
    };
    CHECK_OK(quire_vulkan_import_range(memory, &import, &range));
    CHECK_OK(quire_vulkan_get_range(memory, range, &place));
    CHECK_EQ(REAL(r, vkBindBufferMemory)(r->device, twin, place.memory, place.memory_offset), 0);
    REAL(r, vkDestroyBuffer)(r->device, twin, NULL);
    CHECK_OK(quire_free(memory, range));
    REAL(r, vkDestroyBuffer)(r->device, mine, NULL);
    REAL(r, vkFreeMemory)(r->device, exported, NULL);
    real_memory_end(memory);
}
