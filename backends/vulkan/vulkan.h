/*
 * vulkan.h - the state of a Vulkan device and of its pages; what the files of the backend share.
 */
#ifndef QUIRE_BACKENDS_VULKAN_VULKAN_H
#define QUIRE_BACKENDS_VULKAN_VULKAN_H

#include <pthread.h>

#include "backends/vulkan/functions.h"
#include "quire/vulkan_sparse.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"

/* What is enabled beyond Vulkan 1.1. */
typedef struct qi_vulkan_enabled {
    bool device_address;
    bool memory_budget;
    bool memory_priority;
    bool protected_memory;
    bool device_coherent; /* AMD's kinds */
    bool maintenance4;
    bool timeline; /* semaphores */
    bool external_fd;
    bool dma_buf;
    bool host_pointer;
    bool win32;
    bool debug_utils;
    bool sparse_binding;
    bool sparse_buffer; /* residency, like the two below */
    bool sparse_image_2d;
    bool sparse_image_3d;
    bool sparse_aliased;
    VkSampleCountFlags sparse_samples; /* residency of images with so many, beyond 1 */
} qi_vulkan_enabled;

/* See staging.c. */
typedef struct qi_vulkan_staging qi_vulkan_staging;

typedef struct qi_vulkan_page qi_vulkan_page;

/* See late.c. */
typedef struct qi_vulkan_late {
    pthread_mutex_t mutex; /* under it Vulkan is waited for; no lock of quire is held around it */
    quire_vulkan_sparse *sparse;
    struct qi_vulkan_stream *streams;
    struct qi_vulkan_late_object *objects;
    qi_vulkan_page *pages;
} qi_vulkan_late;

typedef struct qi_vulkan {
    qi_host host;
    qi_vulkan_functions f;
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    VkAllocationCallbacks callbacks_copy;
    const VkAllocationCallbacks *callbacks; /* the copy, or NULL */
    uint32_t api_version;
    qi_vulkan_enabled enabled;
    VkPhysicalDeviceMemoryProperties memory;
    VkPhysicalDeviceLimits limits;
    uint64_t max_page;              /* maxMemoryAllocationSize */
    uint64_t max_host_alignment;    /* minImportedHostPointerAlignment */
    quire_vulkan_settings settings; /* defaults resolved */
    quire_vulkan_queue queue;
    qi_vulkan_staging *staging;
    qi_vulkan_late late;
    bool has_forked; /* this is the copy of a child: no driver is called (fork.c) */

    /* what quire_vulkan_open made; NULL where wrapped */
    VkInstance own_instance;
    VkDevice own_device;
    VkDebugUtilsMessengerEXT messenger;
    PFN_vkDestroyInstance destroy_instance;
    PFN_vkDestroyDevice destroy_device;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;
    quire_log *log; /* where the messenger writes */
} qi_vulkan;

#define QI_VULKAN_NO_ADDRESS UINT64_MAX

/* A page beyond the core's record: quire_native_page.data. */
struct qi_vulkan_page {
    VkDeviceMemory memory;
    uint64_t size;      /* of the page */
    uint64_t allocated; /* of its memory */
    uint32_t kind;
    VkExternalMemoryHandleTypeFlags external; /* it can be exported as, or was imported as */
    bool is_exportable;
    quire_object tied; /* to the one object that may be bound to it */
    uint64_t tied_native;
    qi_atomic_u64 buffer;  /* VkBuffer over the page, made when first wanted; 0: none yet */
    qi_atomic_u64 address; /* of the page, once it is known; 0: not yet, QI_VULKAN_NO_ADDRESS: it
                              has none */
    qi_vulkan_page *next_late;
};

static inline qi_vulkan_page *qi_vulkan_page_of(const quire_native_page *page)
{
    return (qi_vulkan_page *)(uintptr_t)page->data;
}

/* Handles as numbers: some platforms have them as pointers, others as integers. */
#if VK_USE_64_BIT_PTR_DEFINES
#define QI_VULKAN_NUMBER(handle) ((uint64_t)(uintptr_t)(handle))
#define QI_VULKAN_HANDLE(type, number) ((type)(uintptr_t)(number))
#else
#define QI_VULKAN_NUMBER(handle) ((uint64_t)(handle))
#define QI_VULKAN_HANDLE(type, number) ((type)(number))
#endif

/* ---- result.c ------------------------------------------------------------------------------- */

/* Fails with what a VkResult means and "<what>: VK_ERROR_...". */
quire_result qi_vulkan_fail(VkResult code, const char *format, ...) QUIRE_PRINTF(2, 3);

/* What a VkResult other than VK_SUCCESS is to quire. */
quire_result qi_vulkan_result(VkResult code);

/* "VK_ERROR_DEVICE_LOST"; "VkResult -1234" for one that is not known goes into the buffer. */
const char *qi_vulkan_result_name(VkResult code, char *buffer, size_t size);

/* ---- device.c ------------------------------------------------------------------------------- */

/*
 * Makes a quire device of a state whose instance, device, functions' source and what was made for
 * it are set; on failure the state is as it was. The state's host memory is initialised.
 */
QUIRE_MUST_USE quire_result qi_vulkan_make(qi_vulkan *vulkan,
                                           const quire_vulkan_wrap_options *options,
                                           quire_device **device);

/* Settings must be valid before anything is made. */
QUIRE_MUST_USE quire_result qi_vulkan_check_settings(const quire_vulkan_settings *settings);

/* Ends what open made; the state itself too. */
void qi_vulkan_end(qi_vulkan *vulkan);

/* The state of a device or memory of this backend, or NULL with INVALID_ARGUMENT, or with
   NOT_PERMITTED in the child of a fork. */
qi_vulkan *qi_vulkan_of(quire_device *device);

/* ---- fork.c: entries of the table, as quire/backend.h says ---------------------------------- */

void qi_vulkan_fork_prepare(void *state);
void qi_vulkan_fork_done(void *state);
void qi_vulkan_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

/* NOT_PERMITTED in the child of a fork. */
QUIRE_MUST_USE quire_result qi_vulkan_check_process(const qi_vulkan *vulkan);

/* The native side of an allocation in a memory of this backend. */
QUIRE_MUST_USE quire_result qi_vulkan_native(quire_memory *memory, quire_allocation allocation,
                                             quire_native *native, qi_vulkan **vulkan);

/* The state behind a memory, and what is known of it. */
QUIRE_MUST_USE quire_result qi_vulkan_of_memory(quire_memory *memory, quire_memory_info *info,
                                                qi_vulkan **vulkan);

/* ---- enabled.c ------------------------------------------------------------------------------ */

/* What the create infos say, either of which may be NULL. */
qi_vulkan_enabled qi_vulkan_find_enabled(uint32_t api_version, const VkInstanceCreateInfo *instance,
                                         const VkDeviceCreateInfo *device);

/* ---- page.c: entries of the table ------------------------------------------------------------ */

quire_result qi_vulkan_page_create(void *state, const quire_page_request *request,
                                   quire_native_page *page);
void qi_vulkan_page_destroy(void *state, const quire_native_page *page);
quire_result qi_vulkan_page_map(void *state, const quire_native_page *page, void **pointer);
void qi_vulkan_page_unmap(void *state, const quire_native_page *page);
quire_result qi_vulkan_page_flush(void *state, const quire_native_page *page, uint64_t offset,
                                  uint64_t size);
quire_result qi_vulkan_page_invalidate(void *state, const quire_native_page *page, uint64_t offset,
                                       uint64_t size);
quire_result qi_vulkan_page_flush_many(void *state, const quire_page_range *ranges, uint32_t count);
quire_result qi_vulkan_page_invalidate_many(void *state, const quire_page_range *ranges,
                                            uint32_t count);

/* Ends a page with its buffer, at once. */
void qi_vulkan_page_free(qi_vulkan *vulkan, qi_vulkan_page *page);

/* The buffer over a page, made when there is none yet. */
QUIRE_MUST_USE quire_result qi_vulkan_page_buffer(qi_vulkan *vulkan, const quire_native_page *page,
                                                  VkBuffer *buffer);

/* ---- range.c: an entry of the table ---------------------------------------------------------- */

uint64_t qi_vulkan_device_address(void *state, const quire_native_page *page, uint64_t buffer);

/* ---- object.c: entries of the table ---------------------------------------------------------- */

quire_result qi_vulkan_object_create(void *state, const quire_object_request *request,
                                     uint64_t *native, quire_requirements *requirements);
quire_result qi_vulkan_object_bind(void *state, quire_object object, uint64_t native,
                                   const quire_native_page *page, uint64_t offset);
void qi_vulkan_object_destroy(void *state, quire_object object, uint64_t native);
/* The same at once, whatever the device may be working on. */
void qi_vulkan_object_end(const qi_vulkan *vulkan, quire_object object, uint64_t native);
quire_result qi_vulkan_image_needs(void *state, const quire_image_options *options,
                                   quire_requirements *requirements);

/* What a buffer would need, which is not kept. */
QUIRE_MUST_USE quire_result qi_vulkan_buffer_needs(const qi_vulkan *vulkan,
                                                   const VkBufferCreateInfo *info,
                                                   quire_requirements *out);

/* Names a native object where VK_EXT_debug_utils is enabled and there is a name. */
void qi_vulkan_name(const qi_vulkan *vulkan, VkObjectType type, uint64_t native, const char *name);

/* An object in the backend's own words: quire_object_request.description. One of these is set. */
typedef struct qi_vulkan_description {
    const VkBufferCreateInfo *buffer;
    const VkImageCreateInfo *image;
    uint64_t existing;
    const char *name;
} qi_vulkan_description;

/* ---- sparse.c ------------------------------------------------------------------------------- */

/* Whether create flags of a buffer or image are of a sparse one. */
bool qi_vulkan_is_sparse(VkFlags flags);

/* UNSUPPORTED where a description is sparse in a way that is not enabled. */
QUIRE_MUST_USE quire_result qi_vulkan_check_sparse(const qi_vulkan *vulkan,
                                                   const qi_vulkan_description *own);

/* ---- late.c --------------------------------------------------------------------------------- */

void qi_vulkan_late_init(qi_vulkan *vulkan);

/* Frees a page or destroys an object, unless the device may still be working on it: then later. */
void qi_vulkan_late_free(qi_vulkan *vulkan, qi_vulkan_page *page);
void qi_vulkan_late_destroy(qi_vulkan *vulkan, quire_object object, uint64_t native);

/* At the end of the device: nothing is left. */
void qi_vulkan_late_finish(qi_vulkan *vulkan);

/* ---- image.c -------------------------------------------------------------------------------- */

/* What Vulkan makes of quire's options. */
VkImageCreateInfo qi_vulkan_image_info(const quire_image_options *options);

/* UNSUPPORTED where the device does not support such an image. */
QUIRE_MUST_USE quire_result qi_vulkan_check_image(const qi_vulkan *vulkan,
                                                  const VkImageCreateInfo *info);

/* ---- copy.c: entries of the table ------------------------------------------------------------ */

quire_result qi_vulkan_copy_pages(void *state, const quire_copy_job *job);
quire_result qi_vulkan_copy_to_page(void *state, const quire_native_page *page, uint64_t offset,
                                    const void *data, uint64_t size);
quire_result qi_vulkan_copy_from_page(void *state, const quire_native_page *page, uint64_t offset,
                                      void *data, uint64_t size);
quire_result qi_vulkan_fill_page(void *state, const quire_native_page *page, uint64_t offset,
                                 uint64_t size, uint8_t value);

/* ---- stream.c: entries of the table ---------------------------------------------------------- */

quire_result qi_vulkan_stream_create(void *state, const void *description, uint64_t *stream);
void qi_vulkan_stream_destroy(void *state, uint64_t stream);
quire_result qi_vulkan_stream_mark(void *state, uint64_t stream, uint64_t *value);
quire_result qi_vulkan_stream_passed(void *state, uint64_t stream, uint64_t *value);
quire_result qi_vulkan_stream_await(void *state, uint64_t stream, uint64_t value,
                                    uint64_t nanoseconds, bool *has_passed);
quire_result qi_vulkan_stream_order(void *state, uint64_t later, uint64_t earlier, uint64_t value);
quire_result qi_vulkan_stream_copy(void *state, uint64_t stream, const quire_copy_job *job);
quire_result qi_vulkan_stream_fill(void *state, uint64_t stream, const quire_native_page *page,
                                   uint64_t offset, uint64_t size, uint8_t value);

#endif
