/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vulkan.h - the Vulkan backend: pages are VkDeviceMemory, buffers and images are VkBuffer
 * and VkImage, on a device of quire's own or of the caller.
 *
 * The minimum is Vulkan 1.1. quire uses features of later versions and extensions if the device has
 * them enabled, and never requires them. In a build without this backend every function here
 * returns UNSUPPORTED, so that programs link either way. docs/vulkan.md has
 * more. Devices and their queues are in quire/vulkan_device.h, exports and imports in
 * quire/vulkan_share.h, both of which this header includes; sparse objects and aliases are in
 * quire/vulkan_sparse.h, views and texels of images in quire/lluvia.h.
 *
 * Thread-safety: any thread may call any function on live objects. Native handles that a function
 * writes belong to quire.
 *
 * Errors: a device, memory or stream of another backend is INVALID_ARGUMENT. A function that takes
 * an allocation, buffer or image also has the errors of quire_allocation_get_info, and one that
 * calls Vulkan the errors of Vulkan. quire_last_native_code has the VkResult.
 */
#ifndef QUIRE_VULKAN_H
#define QUIRE_VULKAN_H

#include <vulkan/vulkan_core.h>

#include "quire/backend.h"
#include "quire/vulkan_device.h"
#include "quire/vulkan_share.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memories ------------------------------------------------------------------------------- */

/* Options in addition to quire_memory_options. */
typedef struct quire_vulkan_memory_options {
    /*
     * Structs that are appended to the pNext chain of VkMemoryAllocateInfo of each page. Not
     * copied: the chain must stay unchanged while the memory lives. NULL: none.
     */
    const void *next;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_memory_options;

/*
 * Like quire_memory_create, with a pNext chain. A NULL `own` means {0}. Errors as
 * quire_memory_create; INVALID_ARGUMENT also for a struct that occurs twice or that quire chains
 * itself: flags, priority, dedicated, export and import. For the first two quire has options.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_memory_create(quire_device *device, const quire_memory_options *options,
                           const quire_vulkan_memory_options *own, quire_memory **memory);

/* ---- what objects need ---------------------------------------------------------------------- */

/*
 * Write what a buffer or image would need, without creating memory. Pass kind_mask as
 * quire_kind_request.mask to choose among the kinds that can hold it. If quire creates a native
 * object for this, it destroys it again. Errors: INVALID_ARGUMENT, UNSUPPORTED
 * (sparse or disjoint objects; a format that the device does not support for this use; a buffer
 * above quire_limits.max_buffer), and errors of Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_buffer_requirements(
    quire_device *device, const VkBufferCreateInfo *info, quire_requirements *requirements);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_image_requirements(
    quire_device *device, const VkImageCreateInfo *info, quire_requirements *requirements);

/*
 * Writes the size and alignment of a raw range for an object that the caller created and will bind,
 * for quire_allocate or quire_reserve. `tiling` is that of an image; a buffer counts as linear.
 * With QUIRE_TILING_OPTIMAL both are rounded to the granularity of buffers and images. Sets
 * `dedicated` if the object prefers dedicated memory and less than three quarters of
 * quire_limits.max_pages exist on the device. The other fields stay as they are.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (the memory's kind cannot hold the object; or the object
 * requires dedicated memory, as a chained VkMemoryDedicatedRequirements says: use
 * quire_vulkan_buffer_place or quire_vulkan_image_place).
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_range_options(const quire_memory *memory, const VkMemoryRequirements2 *requirements,
                           quire_tiling tiling, quire_allocation_options *options);

/* ---- objects -------------------------------------------------------------------------------- */

/* Options in addition to a VkBufferCreateInfo or VkImageCreateInfo. */
typedef struct quire_vulkan_object_options {
    uint64_t alignment; /* minimum, a power of two; 0: only what Vulkan requires */
    /* These eleven as in quire_allocation_options. The name is also the debug name of a native
       object that quire creates, if VK_EXT_debug_utils is enabled. */
    const char *name;
    uint64_t user_data;
    bool zero;
    bool dedicated;
    bool host_read;
    bool host_write;
    bool mapped;
    bool existing_pages;
    bool within_budget;
    /*
     * For quire_vulkan_buffer_place and quire_vulkan_image_place, without `zero`; INVALID_ARGUMENT
     * otherwise. quire does not bind the object: the caller binds it to the range that
     * quire_vulkan_get_range returns, or never. Until then only the bytes of the range exist.
     * quire_write and the like access them, except in a dedicated page that the host cannot map:
     * there they go through the object itself, which must be bound.
     */
    bool unbound;
    /* The tiling of an image for quire_vulkan_image_place without a create info; otherwise that of
       the create info, and INVALID_ARGUMENT if this one is linear and that is not. */
    quire_tiling tiling;
    quire_stream *stream;
    quire_allocation_info *info;
    /*
     * The VkBufferCreateInfo or VkImageCreateInfo that the object was created with, for
     * quire_vulkan_buffer_place and quire_vulkan_image_place; NULL in other calls. Read during the
     * call. Vulkan cannot be queried for it. With NULL the object cannot be placed in an exportable
     * memory; a buffer has a dedicated page only if the driver requires it, and then quire cannot
     * copy its bytes unless the host can map them.
     */
    const void *create_info;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_object_options;

/*
 * Like quire_buffer_create and quire_image_create, from Vulkan's own create info with its chain.
 * quire adds two things that it may lack: to a buffer the transfer usages, unless the memory is
 * exportable or the usage is in the chain; in an exportable memory the handle types of the memory.
 * NULL options mean {0}. Errors as quire_buffer_create and quire_vulkan_buffer_requirements;
 * INVALID_ARGUMENT also for a chain with other handle types than those of an exportable memory,
 * UNSUPPORTED also for an object that the device cannot export.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                           const quire_vulkan_object_options *options, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                          const quire_vulkan_object_options *options, quire_image *image);

/*
 * Create a buffer or image in the first of `count` memories that can hold it and has room, as
 * quire_buffer_create_fallback. The memories are of this backend. NULL options mean {0}. Errors as
 * quire_buffer_create_fallback and quire_vulkan_buffer_create.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_buffer_create_fallback(
    quire_memory *const *memories, uint32_t count, const VkBufferCreateInfo *info,
    const quire_vulkan_object_options *options, uint32_t *chosen, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_image_create_fallback(
    quire_memory *const *memories, uint32_t count, const VkImageCreateInfo *info,
    const quire_vulkan_object_options *options, uint32_t *chosen, quire_image *image);

/*
 * Create a buffer or image without creating a memory first: in the device's default memory of the
 * best kind that can hold it and has room, as quire_device_buffer_create (quire/default_memory.h).
 * They write the memory that it lies in. NULL as `kinds` or `options` means {0}. Errors as
 * quire_device_buffer_create and quire_vulkan_buffer_create.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_device_buffer_create(
    quire_device *device, const quire_kind_request *kinds, const VkBufferCreateInfo *info,
    const quire_vulkan_object_options *options, quire_memory **memory, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_device_image_create(
    quire_device *device, const quire_kind_request *kinds, const VkImageCreateInfo *info,
    const quire_vulkan_object_options *options, quire_memory **memory, quire_image *image);

/*
 * Allocate a range for an object that the caller created, and bind it unless options->unbound says
 * that the caller will. A page that the driver requires or prefers to be dedicated to the object is
 * dedicated to it in either case. The object stays the caller's, who destroys it before or after
 * quire_free. An image without a create info is of options->tiling: optimal unless the caller says
 * that it is linear. NULL options mean {0}. Errors as quire_vulkan_buffer_create; INVALID_ARGUMENT
 * also for an exportable memory without options->create_info.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_buffer_place(quire_memory *memory, VkBuffer native,
                          const quire_vulkan_object_options *options, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_image_place(quire_memory *memory, VkImage native,
                         const quire_vulkan_object_options *options, quire_image *image);

/*
 * The same without creating a memory first: in the device's default memory of the best kind that
 * can hold the object and has room, as quire_vulkan_device_buffer_create. They write the memory.
 * Errors as quire_vulkan_device_buffer_create and quire_vulkan_buffer_place. An object that could
 * not be bound is not tried in another memory: Vulkan forbids to bind it twice.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_device_buffer_place(
    quire_device *device, const quire_kind_request *kinds, VkBuffer native,
    const quire_vulkan_object_options *options, quire_memory **memory, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_device_image_place(
    quire_device *device, const quire_kind_request *kinds, VkImage native,
    const quire_vulkan_object_options *options, quire_memory **memory, quire_image *image);

/*
 * Write the native object, which belongs to quire unless it was placed. Errors: INVALID_ARGUMENT
 * (also another sort of object).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_buffer_get(const quire_memory *memory,
                                                              quire_buffer buffer,
                                                              VkBuffer *native);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_image_get(const quire_memory *memory,
                                                             quire_image image, VkImage *native);

/*
 * Returns the format of 1 to 4 channels of a type; VK_FORMAT_UNDEFINED if there is none.
 * quire_image_get_requirements tests whether the device supports it for an image.
 */
QUIRE_API VkFormat quire_vulkan_format(quire_channel_type type, uint32_t channel_count);

/* ---- ranges --------------------------------------------------------------------------------- */

/* The position of an allocation in native memory. */
typedef struct quire_vulkan_range {
    VkDeviceMemory memory; /* VK_NULL_HANDLE in an elastic page, whose chunks have one each */
    VkDeviceSize memory_offset;
    VkDeviceSize size;
    VkBuffer buffer; /* covers the range; from quire_vulkan_page_buffer only */
    VkDeviceSize buffer_offset;
    /* Of the range in `buffer`. 0 if device addresses are not enabled, if page_usage leaves them
       out, or if the page is dedicated to a buffer of the caller, whose usage is unknown. */
    VkDeviceAddress address;
    uint64_t unused[4];
} quire_vulkan_range;

/* Writes memory, offset and size, for a caller who binds. Calls no function of Vulkan. Errors:
   UNSUPPORTED (the allocation lies in an elastic page). */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_get_range(const quire_memory *memory,
                                                             quire_allocation allocation,
                                                             quire_vulkan_range *range);

/*
 * Changes the priority of the page that has the allocation, from 0 to 1, as in Vulkan: 0 is the
 * lowest. quire_memory_options.priority is that of new pages. A driver that runs out of device
 * memory evicts pages of lower priority first. The priority of a shared page is that of all its
 * allocations: an allocation that needs its own has a dedicated page. A page that is kept for a
 * later allocation keeps its priority. Thread-safe. Errors: INVALID_ARGUMENT, UNSUPPORTED (the
 * device was created without the feature pageableDeviceLocalMemory; an elastic page). Source:
 * vkSetDeviceMemoryPriorityEXT.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_set_priority(quire_memory *memory,
                                                                quire_allocation allocation,
                                                                float priority);

/*
 * Like quire_vulkan_get_range, also in elastic pages, and also writes the one buffer that covers
 * the page, so that thousands of ranges need one VkBuffer. quire creates it for the first such
 * query with settings.page_usage, and destroys it with the page. Allocate with the alignment that
 * the use of the range requires (minStorageBufferOffsetAlignment, ...). Errors: UNSUPPORTED (the
 * kind cannot hold such buffers; the page is dedicated to an image, or is larger than
 * quire_limits.max_buffer), and errors of Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_page_buffer(const quire_memory *memory,
                                                               quire_allocation allocation,
                                                               quire_vulkan_range *range);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * A stream is a timeline semaphore. Either of two owners signals it:
 *  - The caller, who submits the work and signals the values. quire_stream_announce announces a
 *    value, which is at most maxTimelineSemaphoreValueDifference above the current one. quire
 *    queries the semaphore and waits for it, but submits nothing. The caller's own waits order the
 *    stream after others. Copies on it are complete on return.
 *  - quire, which creates the semaphore and submits to a queue. Each mark, wait and fill, and each
 *    copy between pages or from host memory, is a submission that signals the next value; a large
 *    copy from host memory is several. A mark follows everything submitted to the queue before, by
 *    anyone. A wait delays everything submitted to the queue later. Copies to host memory, and
 *    fills that are not whole words of 4 bytes, wait for the stream and are complete on return.
 */
typedef struct quire_vulkan_stream_options {
    /* A timeline semaphore of the device that the caller signals. It must outlive the stream and
       all work ordered after its points. VK_NULL_HANDLE: quire creates one. */
    VkSemaphore semaphore;
    /* Another queue of the device, only with quire's own semaphore. Its family must support
       transfer and use the memory. NULL: the device's queue with its lock functions. A queue
       without lock functions is used by quire only. */
    quire_vulkan_queue queue;
    const char *name;   /* copied; NULL: "stream" */
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_stream_options;

/*
 * Creates a stream. quire_stream_create creates one with quire's own semaphore on the device's
 * queue. For such a stream quire_stream_destroy waits at most one second for submitted work; the
 * semaphore then lives until the work is done or the device is destroyed.
 * Errors: INVALID_ARGUMENT (also for a semaphore together with a queue), UNSUPPORTED
 * (timelineSemaphore is not enabled, or there is no queue), OUT_OF_HOST_MEMORY, and errors of
 * Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_stream_wrap(
    quire_device *device, const quire_vulkan_stream_options *options, quire_stream **stream);

/*
 * Writes the semaphore of a stream; quire_point.value is its value. The caller may wait for a
 * semaphore of quire's own, which lives as long as the stream, but must not signal it. Errors:
 * INVALID_ARGUMENT (also for a capture stream).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_stream_get(const quire_stream *stream,
                                                              VkSemaphore *semaphore);

#ifdef __cplusplus
}
#endif

#endif
