/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * range.c - public functions on ranges in Vulkan's terms: for callers that bind objects themselves,
 * and for callers that use the one buffer that covers a page. Device addresses.
 */
#include "backends/vulkan/device.h"
#include "backends/vulkan/page.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- options ------------------------------------------------------------------------------ */

static const VkMemoryDedicatedRequirements *dedicated_of(const VkMemoryRequirements2 *requirements)
{
    const VkBaseInStructure *link = requirements->pNext;
    while (link && link->sType != VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS)
        link = link->pNext;
    return (const VkMemoryDedicatedRequirements *)link;
}

/* Takes no lock unless it fails: programs call it for each object. */
static quire_result check_needs(const quire_memory *memory, const VkMemoryRequirements *needed)
{
    uint32_t kind = quire_memory_kind(memory);
    quire_memory_info info;
    if (!needed->size || !qi_is_power_of_two(needed->alignment))
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "memory requirements of %u byte%s, alignment %u", needed->size,
                            needed->alignment);
    if (needed->memoryTypeBits >> kind & 1)
        return QUIRE_SUCCESS;
    quire_result result = quire_memory_get_info(memory, &info);
    return result ? result
                  : qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                                 "memory '%s' has kind %u: the object needs one of the kinds 0x%x",
                                 info.name, kind, needed->memoryTypeBits);
}

/* Translates memory requirements into options. `granularity` separates optimal images from linear
   neighbours. */
static quire_result apply(const qi_vulkan *vulkan, uint64_t granularity,
                          const VkMemoryRequirements2 *requirements,
                          quire_allocation_options *options)
{
    const VkMemoryRequirements *needed = &requirements->memoryRequirements;
    const VkMemoryDedicatedRequirements *dedicated = dedicated_of(requirements);
    if (dedicated && dedicated->requiresDedicatedAllocation)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "the object requires a dedicated page: see quire_vulkan_buffer_place and "
                       "quire_vulkan_image_place");
    uint64_t size = 0;
    if (qi_align_up_overflows(needed->size, granularity, &size))
        return qi_fail_with(QUIRE_ERROR_OUT_OF_DEVICE_MEMORY, "an object of %u byte%s",
                            needed->size);
    options->size = size;
    options->alignment = needed->alignment > granularity ? needed->alignment : granularity;
    options->dedicated |= dedicated && dedicated->prefersDedicatedAllocation &&
                          !qi_vulkan_is_short_of_memories(vulkan);
    return QUIRE_SUCCESS;
}

/* Keeps the fields of the options that the requirements do not determine. */
quire_result quire_vulkan_range_options(const quire_memory *memory,
                                        const VkMemoryRequirements2 *requirements,
                                        quire_tiling tiling, quire_allocation_options *options)
{
    if (!memory || !requirements || !options)
        return qi_fail_null("quire_vulkan_range_options", !memory         ? "memory"
                                                          : !requirements ? "requirements"
                                                                          : "options");
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_memory(memory, &vulkan);
    if (!result)
        result = check_needs(memory, &requirements->memoryRequirements);
    if (result)
        return result;
    if (tiling != QUIRE_TILING_OPTIMAL && tiling != QUIRE_TILING_LINEAR)
        return qi_fail_with(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_vulkan_range_options: unknown tiling %u", (uint64_t)tiling);
    uint64_t granularity =
        tiling == QUIRE_TILING_OPTIMAL ? vulkan->limits.bufferImageGranularity : 1;
    return apply(vulkan, granularity ? granularity : 1, requirements, options);
}

/* ---- the place of an allocation ----------------------------------------------------------- */

/* An elastic page has a VkDeviceMemory for each chunk, so that a range of it has no single one. */
static void describe(const quire_native *native, quire_vulkan_range *range)
{
    *range = (quire_vulkan_range){
        .memory = qi_vulkan_page_of(&native->page)->memory,
        .memory_offset = native->offset,
        .size = native->size,
    };
}

/* `call`: the function that needs the one VkDeviceMemory of a page. */
static quire_result refuse_elastic(const quire_native *native, const char *call)
{
    return qi_vulkan_page_of(&native->page)->elastic
               ? qi_fail_text(QUIRE_ERROR_UNSUPPORTED,
                              "%s: the allocation lies in an elastic page, whose chunks are a "
                              "VkDeviceMemory each: see quire_vulkan_page_buffer",
                              call)
               : QUIRE_SUCCESS;
}

quire_result quire_vulkan_get_range(const quire_memory *memory, quire_allocation allocation,
                                    quire_vulkan_range *range)
{
    if (range)
        *range = (quire_vulkan_range){.size = 0};
    if (!memory || !range)
        return qi_fail_null("quire_vulkan_get_range", !memory ? "memory" : "range");
    quire_native native;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_allocation(memory, allocation, &native, &vulkan);
    if (!result)
        result = refuse_elastic(&native, "quire_vulkan_get_range");
    if (!result)
        describe(&native, range);
    return result;
}

quire_result quire_vulkan_set_priority(quire_memory *memory, quire_allocation allocation,
                                       float priority)
{
    if (!memory)
        return qi_fail_null("quire_vulkan_set_priority", "memory");
    if (!(priority >= 0 && priority <= 1)) /* false for NaN as well */
        return qi_fail_text(QUIRE_ERROR_INVALID_ARGUMENT,
                            "quire_vulkan_set_priority: priority %g is not from 0 to 1",
                            (double)priority);
    quire_native native;
    qi_vulkan *vulkan = NULL;
    quire_result result = qi_vulkan_of_allocation(memory, allocation, &native, &vulkan);
    if (!result)
        result = refuse_elastic(&native, "quire_vulkan_set_priority");
    if (result)
        return result;
    if (!vulkan->enabled.pageable)
        return qi_fail(QUIRE_ERROR_UNSUPPORTED,
                       "quire_vulkan_set_priority: the device was created without the feature "
                       "pageableDeviceLocalMemory");
    vulkan->f.SetDeviceMemoryPriorityEXT(
        vulkan->device, QI_VULKAN_HANDLE(VkDeviceMemory, native.page.handle), priority);
    return QUIRE_SUCCESS;
}

static VkDeviceAddress query_address(const qi_vulkan *vulkan, VkBuffer buffer)
{
    const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                            .buffer = buffer};
    return vulkan->f.GetBufferDeviceAddress(vulkan->device, &info);
}

/*
 * Returns the address of the buffer over a page and creates that buffer if necessary. If no buffer
 * can cover the page the record keeps that. If the driver is out of memory the result is 0 and the
 * next call tries again. Concurrent callers store the same value.
 */
static VkDeviceAddress address_of_page(qi_vulkan *vulkan, const quire_native_page *native)
{
    qi_vulkan_page *page = qi_vulkan_page_of(native);
    VkBuffer buffer = VK_NULL_HANDLE;
    uint64_t address = qi_atomic_load_u64(&page->address);
    if (!address) {
        qi_error before;
        qi_error_save(&before);
        quire_result result = qi_vulkan_page_buffer(vulkan, native, &buffer);
        qi_error_restore(&before);
        if (!result)
            address = query_address(vulkan, buffer);
        else if (result == QUIRE_ERROR_UNSUPPORTED)
            address = QI_VULKAN_NO_ADDRESS;
        if (address)
            qi_atomic_store_release_u64(&page->address, address);
    }
    return address == QI_VULKAN_NO_ADDRESS ? 0 : address;
}

/* A buffer of quire's own is queried itself. Other objects use the address of the page. */
uint64_t qi_vulkan_device_address(void *state, const quire_native_page *page, uint64_t buffer)
{
    qi_vulkan *vulkan = state;
    if (!vulkan->enabled.device_address)
        return 0;
    if (buffer)
        return query_address(vulkan, QI_VULKAN_HANDLE(VkBuffer, buffer));
    /* The one buffer of a dedicated page can be the caller's, with a usage that has no address. */
    if (qi_vulkan_page_of(page)->dedicated_to ||
        !(vulkan->settings.page_usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT))
        return 0;
    return address_of_page(vulkan, page);
}

/* Returns the address of an allocation. In a dedicated page it is the address of the one object. */
static quire_result find_address(qi_vulkan *vulkan, const quire_memory *memory,
                                 quire_allocation allocation, const quire_native *native,
                                 VkDeviceAddress *address)
{
    if (qi_vulkan_page_of(&native->page)->dedicated_to) {
        quire_allocation_info info;
        quire_result result = quire_allocation_get_info(memory, allocation, &info);
        *address = info.address;
        return result;
    }
    VkDeviceAddress page = qi_vulkan_device_address(vulkan, &native->page, 0);
    *address = page ? page + native->offset : 0;
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_page_buffer(const quire_memory *memory, quire_allocation allocation,
                                      quire_vulkan_range *range)
{
    if (range)
        *range = (quire_vulkan_range){.size = 0};
    if (!memory || !range)
        return qi_fail_null("quire_vulkan_page_buffer", !memory ? "memory" : "range");
    quire_native native;
    qi_vulkan *vulkan = NULL;
    VkBuffer buffer = VK_NULL_HANDLE;
    quire_result result = qi_vulkan_of_allocation(memory, allocation, &native, &vulkan);
    if (!result)
        result = qi_vulkan_page_buffer(vulkan, &native.page, &buffer);
    VkDeviceAddress address = 0;
    if (!result)
        result = find_address(vulkan, memory, allocation, &native, &address);
    if (result)
        return result;
    describe(&native, range);
    range->buffer = buffer;
    range->buffer_offset = native.offset;
    range->address = address;
    return QUIRE_SUCCESS;
}

/* ---- native objects ----------------------------------------------------------------------- */

/* Writes the native object of an allocation; 0 on failure. */
static quire_result get_object(const quire_memory *memory, quire_allocation allocation,
                               quire_object object, uint64_t *handle)
{
    quire_native native;
    qi_vulkan *vulkan = NULL;
    *handle = 0;
    quire_result result = qi_vulkan_of_allocation(memory, allocation, &native, &vulkan);
    if (result)
        return result;
    if (native.object != object)
        return qi_fail(QUIRE_ERROR_INVALID_ARGUMENT, object == QUIRE_OBJECT_BUFFER
                                                         ? "the handle is not a buffer"
                                                         : "the handle is not an image");
    *handle = native.handle;
    return QUIRE_SUCCESS;
}

quire_result quire_vulkan_buffer_get(const quire_memory *memory, quire_buffer buffer,
                                     VkBuffer *native)
{
    uint64_t handle = 0;
    if (native)
        *native = VK_NULL_HANDLE;
    if (!memory || !native)
        return qi_fail_null("quire_vulkan_buffer_get", !memory ? "memory" : "native");
    quire_result result = get_object(memory, buffer.allocation, QUIRE_OBJECT_BUFFER, &handle);
    *native = QI_VULKAN_HANDLE(VkBuffer, handle);
    return result;
}

quire_result quire_vulkan_image_get(const quire_memory *memory, quire_image image, VkImage *native)
{
    uint64_t handle = 0;
    if (native)
        *native = VK_NULL_HANDLE;
    if (!memory || !native)
        return qi_fail_null("quire_vulkan_image_get", !memory ? "memory" : "native");
    quire_result result = get_object(memory, image.allocation, QUIRE_OBJECT_IMAGE, &handle);
    *native = QI_VULKAN_HANDLE(VkImage, handle);
    return result;
}
