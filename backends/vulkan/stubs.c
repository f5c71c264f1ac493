/*
 * stubs.c - the functions of quire/vulkan.h in a build without the backend. They zero their outputs
 * and return UNSUPPORTED.
 */
#include "quire/vulkan.h"
#include "src/base/result.h"
#include "src/base/stub.h"

static quire_result refuse(void)
{
    return qi_fail(
        QUIRE_ERROR_UNSUPPORTED,
        "this build of quire has no Vulkan backend: its build needs the Vulkan headers and "
        "volk");
}

quire_result quire_vulkan_open(const quire_vulkan_options *options, quire_device **device)
{
    UNUSED(options);
    CLEAR(device, NULL);
    return refuse();
}

quire_result quire_vulkan_wrap(const quire_vulkan_wrap_options *options, quire_device **device)
{
    UNUSED(options);
    CLEAR(device, NULL);
    return refuse();
}

quire_result quire_vulkan_get_handles(quire_device *device, quire_vulkan_handles *handles)
{
    UNUSED(device);
    CLEAR(handles, (quire_vulkan_handles){0});
    return refuse();
}

quire_result quire_vulkan_get_features(quire_device *device, quire_vulkan_features *features)
{
    UNUSED(device);
    CLEAR(features, (quire_vulkan_features){0});
    return refuse();
}

quire_result quire_vulkan_get_queue(quire_device *device, uint32_t index, quire_vulkan_queue *queue)
{
    UNUSED(device);
    UNUSED(index);
    CLEAR(queue, (quire_vulkan_queue){0});
    return refuse();
}

quire_result quire_vulkan_queue_lock(quire_device *device)
{
    UNUSED(device);
    return refuse();
}

quire_result quire_vulkan_queue_unlock(quire_device *device)
{
    UNUSED(device);
    return refuse();
}

quire_result quire_vulkan_memory_create(quire_device *device, const quire_memory_options *options,
                                        const quire_vulkan_memory_options *own,
                                        quire_memory **memory)
{
    UNUSED(device);
    UNUSED(options);
    UNUSED(own);
    CLEAR(memory, NULL);
    return refuse();
}

quire_result quire_vulkan_buffer_requirements(quire_device *device, const VkBufferCreateInfo *info,
                                              quire_requirements *requirements)
{
    UNUSED(device);
    UNUSED(info);
    CLEAR(requirements, (quire_requirements){0});
    return refuse();
}

quire_result quire_vulkan_image_requirements(quire_device *device, const VkImageCreateInfo *info,
                                             quire_requirements *requirements)
{
    UNUSED(device);
    UNUSED(info);
    CLEAR(requirements, (quire_requirements){0});
    return refuse();
}

quire_result quire_vulkan_range_options(quire_memory *memory,
                                        const VkMemoryRequirements2 *requirements, bool optimal,
                                        quire_allocation_options *options)
{
    UNUSED(memory);
    UNUSED(requirements);
    UNUSED(optimal);
    UNUSED(options);
    return refuse();
}

quire_result quire_vulkan_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                                        const quire_vulkan_object_options *options,
                                        quire_buffer *buffer)
{
    UNUSED(memory);
    UNUSED(info);
    UNUSED(options);
    CLEAR(buffer, (quire_buffer){0});
    return refuse();
}

quire_result quire_vulkan_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                                       const quire_vulkan_object_options *options,
                                       quire_image *image)
{
    UNUSED(memory);
    UNUSED(info);
    UNUSED(options);
    CLEAR(image, (quire_image){0});
    return refuse();
}

quire_result quire_vulkan_buffer_create_fallback(quire_memory *const *memories, uint32_t count,
                                                 const VkBufferCreateInfo *info,
                                                 const quire_vulkan_object_options *options,
                                                 uint32_t *chosen, quire_buffer *buffer)
{
    UNUSED(memories);
    UNUSED(count);
    UNUSED(info);
    UNUSED(options);
    CLEAR(chosen, 0);
    CLEAR(buffer, (quire_buffer){0});
    return refuse();
}

quire_result quire_vulkan_image_create_fallback(quire_memory *const *memories, uint32_t count,
                                                const VkImageCreateInfo *info,
                                                const quire_vulkan_object_options *options,
                                                uint32_t *chosen, quire_image *image)
{
    UNUSED(memories);
    UNUSED(count);
    UNUSED(info);
    UNUSED(options);
    CLEAR(chosen, 0);
    CLEAR(image, (quire_image){0});
    return refuse();
}

quire_result quire_vulkan_device_buffer_create(quire_device *device,
                                               const quire_kind_choice *choice,
                                               const VkBufferCreateInfo *info,
                                               const quire_vulkan_object_options *options,
                                               quire_memory **memory, quire_buffer *buffer)
{
    UNUSED(device);
    UNUSED(choice);
    UNUSED(info);
    UNUSED(options);
    CLEAR(memory, NULL);
    CLEAR(buffer, (quire_buffer){0});
    return refuse();
}

quire_result quire_vulkan_device_image_create(quire_device *device, const quire_kind_choice *choice,
                                              const VkImageCreateInfo *info,
                                              const quire_vulkan_object_options *options,
                                              quire_memory **memory, quire_image *image)
{
    UNUSED(device);
    UNUSED(choice);
    UNUSED(info);
    UNUSED(options);
    CLEAR(memory, NULL);
    CLEAR(image, (quire_image){0});
    return refuse();
}

quire_result quire_vulkan_buffer_place(quire_memory *memory, VkBuffer native,
                                       const quire_vulkan_object_options *options,
                                       quire_buffer *buffer)
{
    UNUSED(memory);
    UNUSED(native);
    UNUSED(options);
    CLEAR(buffer, (quire_buffer){0});
    return refuse();
}

quire_result quire_vulkan_image_place(quire_memory *memory, VkImage native, bool optimal,
                                      const quire_vulkan_object_options *options,
                                      quire_image *image)
{
    UNUSED(memory);
    UNUSED(native);
    UNUSED(optimal);
    UNUSED(options);
    CLEAR(image, (quire_image){0});
    return refuse();
}

VkBuffer quire_vulkan_buffer(quire_memory *memory, quire_buffer buffer)
{
    UNUSED(memory);
    UNUSED(buffer);
    qi_ignore(refuse());
    return VK_NULL_HANDLE;
}

VkImage quire_vulkan_image(quire_memory *memory, quire_image image)
{
    UNUSED(memory);
    UNUSED(image);
    qi_ignore(refuse());
    return VK_NULL_HANDLE;
}

VkFormat quire_vulkan_format(quire_channel_type type, uint32_t channel_count)
{
    UNUSED(type);
    UNUSED(channel_count);
    return VK_FORMAT_UNDEFINED;
}

quire_result quire_vulkan_get_range(quire_memory *memory, quire_allocation allocation,
                                    quire_vulkan_range *range)
{
    UNUSED(memory);
    UNUSED(allocation);
    CLEAR(range, (quire_vulkan_range){.size = 0});
    return refuse();
}

quire_result quire_vulkan_set_priority(quire_memory *memory, quire_allocation allocation,
                                       float priority)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(priority);
    return refuse();
}

quire_result quire_vulkan_page_buffer(quire_memory *memory, quire_allocation allocation,
                                      quire_vulkan_range *range)
{
    UNUSED(memory);
    UNUSED(allocation);
    CLEAR(range, (quire_vulkan_range){.size = 0});
    return refuse();
}

quire_result quire_vulkan_view_create(quire_memory *memory, quire_image image,
                                      const quire_vulkan_view_options *options,
                                      quire_vulkan_view *view)
{
    UNUSED(memory);
    UNUSED(image);
    UNUSED(options);
    CLEAR(view, (quire_vulkan_view){VK_NULL_HANDLE, VK_NULL_HANDLE});
    return refuse();
}

quire_result quire_vulkan_view_destroy(quire_device *device, quire_vulkan_view *view)
{
    UNUSED(device);
    UNUSED(view);
    return refuse();
}

quire_result quire_vulkan_image_set_layout(quire_memory *memory, quire_image image,
                                           VkImageLayout before, VkImageLayout after)
{
    UNUSED(memory);
    UNUSED(image);
    UNUSED(before);
    UNUSED(after);
    return refuse();
}

quire_result quire_vulkan_image_write(quire_memory *memory, quire_image image, VkImageLayout before,
                                      VkImageLayout after, const void *data, uint64_t size)
{
    UNUSED(data);
    UNUSED(size);
    return quire_vulkan_image_set_layout(memory, image, before, after);
}

quire_result quire_vulkan_image_read(quire_memory *memory, quire_image image, VkImageLayout layout,
                                     void *data, uint64_t size)
{
    UNUSED(data);
    UNUSED(size);
    return quire_vulkan_image_set_layout(memory, image, layout, layout);
}

quire_result quire_vulkan_export_fd(quire_memory *memory, quire_allocation allocation,
                                    VkExternalMemoryHandleTypeFlagBits type, int *descriptor)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(type);
    CLEAR(descriptor, -1);
    return refuse();
}

quire_result quire_vulkan_import_range(quire_memory *memory, const quire_vulkan_import *import,
                                       quire_allocation *allocation)
{
    UNUSED(memory);
    UNUSED(import);
    CLEAR(allocation, (quire_allocation){0});
    return refuse();
}

quire_result quire_vulkan_import_kinds(quire_device *device, const quire_vulkan_import *import,
                                       uint32_t *kind_mask)
{
    UNUSED(device);
    UNUSED(import);
    CLEAR(kind_mask, 0);
    return refuse();
}

quire_result quire_vulkan_stream_wrap(quire_device *device,
                                      const quire_vulkan_stream_options *options,
                                      quire_stream **stream)
{
    UNUSED(device);
    UNUSED(options);
    CLEAR(stream, NULL);
    return refuse();
}

quire_result quire_vulkan_stream_get(quire_stream *stream, VkSemaphore *semaphore)
{
    UNUSED(stream);
    CLEAR(semaphore, VK_NULL_HANDLE);
    return refuse();
}
