/*
 * quire/vulkan.h - the Vulkan backend: pages are VkDeviceMemory, buffers and images are VkBuffer
 * and VkImage, on a device of quire's own or on the caller's.
 *
 * Vulkan 1.1 is the least; what later versions and extensions offer is used where the device has it
 * enabled, and never required. In a build without the backend every function here answers
 * UNSUPPORTED (or a null handle), so that programs link either way.
 *
 * Where a function takes a memory, buffer or allocation, the errors of handles are those of
 * quire_allocation_get_info, and a memory of another backend is INVALID_ARGUMENT. Handles given out
 * stay quire's. VkResult codes are kept: see quire_last_native_code. docs/vulkan.md tells more.
 * Sparse objects and aliases are in quire/vulkan_sparse.h.
 *
 * Thread-safety: any thread may call anything on a live device or memory.
 */
#ifndef QUIRE_VULKAN_H
#define QUIRE_VULKAN_H

#include <vulkan/vulkan_core.h>

#include "quire/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices -------------------------------------------------------------------------------- */

/*
 * The queue for copies between the host and memory that it cannot reach, fills, layout changes and
 * the binding of sparse objects. Without one these are UNSUPPORTED.
 */
typedef struct quire_vulkan_queue {
    VkQueue queue; /* NULL: none */
    /* its family: one that uses the memory, for quire hands nothing over between families; it must
       be able to transfer, for texels to compute or draw, and for sparse objects to bind them */
    uint32_t family;
    /*
     * Called around each use of the queue, which lasts as long as one submission; a thread that
     * holds it waits for nothing. Must not call quire and must not fork: locks of the backend are
     * held. Both NULL: nobody else uses the queue.
     */
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void *user;
} quire_vulkan_queue;

/* What open and wrap have in common. */
typedef struct quire_vulkan_settings {
    quire_device_options device;
    const VkAllocationCallbacks *callbacks; /* copied; NULL: the driver's own */
    /* bytes of host memory through which copies go, taken when the first one is made; from 4 KiB to
       1 GiB; 0: 4 MiB */
    uint64_t staging_size;
    /* of the buffers that quire_vulkan_page_buffer tells; 0: everything that core Vulkan has for
       buffers, with device address where that is enabled */
    VkBufferUsageFlags page_usage;
    /*
     * How pages of memories with an exportable intent can be handed out; 0: as opaque POSIX file
     * descriptors (opaque win32 handles on Windows).
     */
    VkExternalMemoryHandleTypeFlags export_types;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_settings;

typedef struct quire_vulkan_options {
    /*
     * Which device: its index in the order of the driver ("0"), or a part of its name, whatever the
     * case. NULL: the environment variable QUIRE_VULKAN_DEVICE, which says the same; without it the
     * first discrete GPU, else integrated, else virtual, else any.
     */
    const char *device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr; /* NULL: the loader that the system has */
    quire_vulkan_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_options;

/*
 * Opens a device of quire's own: instance, device and one queue for computing, ended with it.
 * Layers come from the environment (VK_INSTANCE_LAYERS); what they and the driver have to say goes
 * to the device's log, where there is one, as lines that begin with "vulkan: ". These are written
 * from inside the Vulkan call that they are about, also one of the program's own, so that a
 * debugger shows it. Vulkan permits no calls of Vulkan from there, and a page may be half made: the
 * sink must not call quire for such a line. All features of Vulkan 1.0 are enabled that the device
 * has, robustBufferAccess apart, and what this backend uses. NULL options mean {0}. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (no loader, no driver, no such device, or none of Vulkan 1.1),
 * OUT_OF_HOST_MEMORY, and what Vulkan answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_open(const quire_vulkan_options *options,
                                                        quire_device **device);

/* The caller's device. Everything outlives the quire device; the structs are read in the call. */
typedef struct quire_vulkan_wrap_options {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    PFN_vkGetDeviceProcAddr get_device_proc_addr; /* NULL: asked of get_instance_proc_addr; a layer
                                                     gives the next one's */
    /*
     * What the two were made with: version and extensions of the instance, extensions and features
     * of the device, in pEnabledFeatures or in the chain. NULL: Vulkan 1.1, and nothing enabled.
     */
    const VkInstanceCreateInfo *instance_info;
    const VkDeviceCreateInfo *device_info;
    quire_vulkan_queue queue;
    quire_vulkan_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_wrap_options;

/*
 * Takes memory from the caller's device. Only functions that get_instance_proc_addr gives are
 * called: neither the loader nor volk is touched. Memory kinds of features that are not enabled
 * (protected, AMD device-coherent) are described and refused.
 * Errors: INVALID_ARGUMENT (a null handle, a missing function, which is named), UNSUPPORTED (below
 * Vulkan 1.1; a group of several physical devices), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_wrap(const quire_vulkan_wrap_options *options,
                                                        quire_device **device);

typedef struct quire_vulkan_handles {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue; /* NULL: none */
    uint32_t queue_family;
    uint32_t api_version; /* used: the least of instance and device */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    uint64_t unused[4];
} quire_vulkan_handles;

/* Errors: INVALID_ARGUMENT (also for a device of another backend). */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_get_handles(quire_device *device,
                                                               quire_vulkan_handles *handles);

/* ---- memories ------------------------------------------------------------------------------- */

/* Beside quire_memory_options. */
typedef struct quire_vulkan_memory_options {
    /*
     * What VkMemoryAllocateInfo of each page has in its chain behind the structs that quire puts
     * there. It is not copied: it must stay as it is while the memory lives. NULL: nothing.
     */
    const void *next;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_memory_options;

/*
 * quire_memory_create with a chain of the caller's. NULL `own` means {0}. Errors as there, and
 * INVALID_ARGUMENT (a device of another backend; a struct that is chained twice, or that quire
 * chains itself: flags, priority, dedicated, export and import, the first two of which it has
 * options for).
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_memory_create(quire_device *device, const quire_memory_options *options,
                           const quire_vulkan_memory_options *own, quire_memory **memory);

/* ---- what objects need ---------------------------------------------------------------------- */

/*
 * What a buffer or image would need, before any memory is made; kind_mask, given to
 * quire_memory_options or quire_kind_request, chooses among the kinds that can hold it. The object
 * is not kept. Errors: INVALID_ARGUMENT, UNSUPPORTED (sparse, disjoint; a format that the device
 * does not support so), and what Vulkan answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_buffer_requirements(
    quire_device *device, const VkBufferCreateInfo *info, quire_requirements *requirements);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_image_requirements(
    quire_device *device, const VkImageCreateInfo *info, quire_requirements *requirements);

/*
 * The options with which quire_allocate or quire_reserve finds a raw range for an object that the
 * caller made and will bind: size and alignment, to the granularity of buffers and images where the
 * object is of optimal tiling. The other fields stay as they are. An object that requires dedicated
 * memory (a chained VkMemoryDedicatedRequirements says so) is UNSUPPORTED: see
 * quire_vulkan_buffer_place; one that prefers it becomes `dedicated`.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (also where the memory's kind cannot hold it).
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_range_options(quire_memory *memory, const VkMemoryRequirements2 *requirements,
                           bool optimal, quire_allocation_options *options);

/* ---- objects -------------------------------------------------------------------------------- */

/* Beside the caller's own VkBufferCreateInfo or VkImageCreateInfo. */
typedef struct quire_vulkan_object_options {
    uint64_t alignment; /* at least; 0: what Vulkan asks */
    const char *name;   /* also its debug name where VK_EXT_debug_utils is enabled */
    uint64_t user_data;
    bool zero;
    bool dedicated;
    bool host_read;
    bool host_write;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_object_options;

/*
 * As quire_buffer_create and quire_image_create, from Vulkan's own description, its chain included.
 * NULL options mean {0}. Errors as theirs, and as quire_vulkan_buffer_requirements.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_buffer_create(quire_memory *memory, const VkBufferCreateInfo *info,
                           const quire_vulkan_object_options *options, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_image_create(quire_memory *memory, const VkImageCreateInfo *info,
                          const quire_vulkan_object_options *options, quire_image *image);

/*
 * Places and binds an object that the caller made, and that stays the caller's: it must be
 * destroyed by the caller, before or after quire_free. For `optimal` see above.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_buffer_place(quire_memory *memory, VkBuffer native,
                          const quire_vulkan_object_options *options, quire_buffer *buffer);
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_image_place(quire_memory *memory, VkImage native, bool optimal,
                         const quire_vulkan_object_options *options, quire_image *image);

/* The native object; VK_NULL_HANDLE with the thread's last error set where there is none. */
QUIRE_API VkBuffer quire_vulkan_buffer(quire_memory *memory, quire_buffer buffer);
QUIRE_API VkImage quire_vulkan_image(quire_memory *memory, quire_image image);

/*
 * The format of `channel_count` channels (1 to 4) of a type; VK_FORMAT_UNDEFINED for what is none.
 * Whether the device supports it for an image is asked by quire_image_get_requirements.
 */
QUIRE_API VkFormat quire_vulkan_format(quire_channel_type type, uint32_t channel_count);

/* ---- ranges --------------------------------------------------------------------------------- */

/* Where an allocation lies, in Vulkan's words. */
typedef struct quire_vulkan_range {
    VkDeviceMemory memory;
    VkDeviceSize memory_offset;
    VkDeviceSize size;
    VkBuffer buffer; /* one that covers the range; quire_vulkan_page_buffer only */
    VkDeviceSize buffer_offset;
    VkDeviceAddress address; /* of the range in `buffer`; 0 where device addresses are not enabled,
                                page_usage leaves them out, or the page is tied to a buffer of the
                                caller's, whose usage quire does not know */
    uint64_t unused[4];
} quire_vulkan_range;

/* Memory, offset and size, for a caller who binds. Calls nothing of Vulkan. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_get_range(quire_memory *memory,
                                                             quire_allocation allocation,
                                                             quire_vulkan_range *range);

/*
 * The same, and the one buffer that covers the page: made the first time somebody asks, destroyed
 * with the page, of settings.page_usage. So thousands of ranges need one VkBuffer. Allocate with
 * the alignment that the use of the range asks (minStorageBufferOffsetAlignment, ...). UNSUPPORTED
 * where the kind holds no such buffers or the page is tied to an image.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_page_buffer(quire_memory *memory,
                                                               quire_allocation allocation,
                                                               quire_vulkan_range *range);

/* ---- images: views, layouts, texels --------------------------------------------------------- */

typedef enum quire_vulkan_filter {
    QUIRE_VULKAN_NEAREST = 0,
    QUIRE_VULKAN_LINEAR
} quire_vulkan_filter;

/* {0}: a view of the whole image that is not sampled. */
typedef struct quire_vulkan_view_options {
    bool sampled; /* with a sampler, by the following */
    quire_vulkan_filter filter;
    VkSamplerAddressMode address_u, address_v, address_w; /* 0: VK_SAMPLER_ADDRESS_MODE_REPEAT;
        without normalized coordinates only the two CLAMP_TO modes (edge, border) for u and v */
    bool normalized;    /* coordinates from 0 to 1, else in texels, which needs a 1D or 2D image */
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_view_options;

typedef struct quire_vulkan_view {
    VkImageView view;
    VkSampler sampler; /* VK_NULL_HANDLE: not sampled */
} quire_vulkan_view;

/*
 * A view of an image that quire_image_create or quire_vulkan_image_create made: first mip level and
 * layer, colour. The caller destroys it before the image is freed. NULL options mean {0}.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_view_create(quire_memory *memory, quire_image image,
                         const quire_vulkan_view_options *options, quire_vulkan_view *view);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_view_destroy(quire_device *device,
                                                                quire_vulkan_view *view);

/*
 * Changes the layout of an image from `before`, which the caller knows (UNDEFINED: contents may be
 * lost), to `after`. Complete on return, like the two below.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_image_set_layout(quire_memory *memory,
                                                                    quire_image image,
                                                                    VkImageLayout before,
                                                                    VkImageLayout after);

/*
 * Copies all texels of an image that quire_image_create made, packed without padding, x first:
 * `size` must be quire_image_info.minimum_size. Before a write the image is in layout `before`,
 * afterwards in `after`; a read leaves it in `layout`. The image needs the transfer usage. On
 * failure the layout is not known.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_image_write(quire_memory *memory,
                                                               quire_image image,
                                                               VkImageLayout before,
                                                               VkImageLayout after,
                                                               const void *data, uint64_t size);
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_image_read(quire_memory *memory,
                                                              quire_image image,
                                                              VkImageLayout layout, void *data,
                                                              uint64_t size);

/* ---- other APIs and processes --------------------------------------------------------------- */

/*
 * A descriptor of the page that an allocation lies in, made with an exportable intent and of a type
 * among settings.export_types; where the allocation lies is told by quire_vulkan_get_range. The
 * caller closes it. On failure it is -1. UNSUPPORTED for pages and types that cannot be exported.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_export_fd(quire_memory *memory, quire_allocation allocation,
                       VkExternalMemoryHandleTypeFlagBits type, int *descriptor);

/* Memory that somebody else made. */
typedef struct quire_vulkan_import {
    VkExternalMemoryHandleTypeFlagBits
        type;       /* OPAQUE_FD, DMA_BUF, HOST_ALLOCATION, win32 handles */
    int descriptor; /* for the first two; taken over on success */
    void *pointer; /* host memory, a multiple of minImportedHostPointerAlignment, which must outlive
                      the allocation; or a win32 HANDLE, which stays the caller's */
    uint64_t size; /* bytes, all of it */
    const char *name;
    uint64_t user_data;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_import;

/*
 * Makes an allocation of memory that exists: a page of its own, given back with the allocation. It
 * counts in figures and budgets like any other. UNSUPPORTED where the memory's kind cannot take it:
 * quire_vulkan_import_kinds tells which can.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_import_range(quire_memory *memory,
                                                                const quire_vulkan_import *import,
                                                                quire_allocation *allocation);

/* A mask of the kinds that can take it; of opaque descriptors, which cannot be asked, all. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_import_kinds(quire_device *device,
                                                                const quire_vulkan_import *import,
                                                                uint32_t *kind_mask);

/* ---- streams -------------------------------------------------------------------------------- */

/*
 * A stream is a timeline semaphore. Its owner may be
 *  - the caller, who submits the work and signals the values: quire_stream_announce tells which
 *    value, and quire looks at the semaphore and waits for it, but submits nothing. It is ordered
 *    behind others by the caller's own waits; copies on it are done when the call returns.
 *  - quire, which makes the semaphore and submits to a queue: each mark, wait, fill and copy
 *    between pages is a submission that signals the next value. A mark comes behind everything that
 *    was submitted to the queue before, by whomever; a wait holds up whatever is submitted to it
 *    later. Copies between host memory and pages, and fills that are not whole words of 4 bytes,
 *    wait for the stream and are done when the call returns.
 */
typedef struct quire_vulkan_stream_options {
    /* a timeline semaphore of the device that the caller signals, and that outlives the stream and
       what was ordered behind its points; VK_NULL_HANDLE: quire makes one */
    VkSemaphore semaphore;
    /* another queue of the device's, for quire's own semaphore alone, whose family can transfer and
       uses the memory; NULL: the device's queue, whose lock holds here too. Queues without a lock
       are used by quire only */
    quire_vulkan_queue queue;
    const char *name;   /* copied; NULL: "stream" */
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_stream_options;

/*
 * Makes a stream; quire_stream_create makes one of quire's own on the device's queue.
 * quire_stream_destroy waits for what was submitted to one of quire's own, a second at most: its
 * semaphore then stays until that is done, or the device ends. Errors: INVALID_ARGUMENT (also a
 * semaphore together with a queue), UNSUPPORTED (timelineSemaphore is not enabled, or no queue),
 * OUT_OF_HOST_MEMORY, and what Vulkan answers.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_stream_wrap(
    quire_device *device, const quire_vulkan_stream_options *options, quire_stream **stream);

/*
 * The semaphore of a stream; quire_point.value is its value. One of quire's own lives as long as
 * the stream, may be waited for and must not be signalled. Errors: INVALID_ARGUMENT (also for a
 * stream of another backend, or a held one).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_stream_get(quire_stream *stream,
                                                              VkSemaphore *semaphore);

#ifdef __cplusplus
}
#endif

#endif
