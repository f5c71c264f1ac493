/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan.h - the state of a Vulkan device and the record of a page.
 *
 * This is the lowest header of the backend: it declares no function of the backend's other files.
 * After its creation a device's state changes in six places: the staging ring (staging.h, which has
 * its own mutexes), the count of memory objects (device.h) and the table of image limits
 * (object.h), which need no lock, the list of deferred objects (under its mutex), the mark of
 * the thread that holds the queue (queues.c), and, in the child of a fork, the function table
 * (device.c).
 */
#ifndef QUIRE_BACKENDS_VULKAN_VULKAN_H
#define QUIRE_BACKENDS_VULKAN_VULKAN_H

#include <pthread.h>

#include "backends/vulkan/functions.h"
#include "quire/vulkan_sparse.h"
#include "src/base/atomic.h"
#include "src/base/host_memory.h"

/*
 * VK_EXT_zero_initialize_device_memory. Headers of 1.3 lack its names; the values are those of the
 * Vulkan registry.
 */
#define QI_VULKAN_ZERO_EXTENSION "VK_EXT_zero_initialize_device_memory"
#define QI_VULKAN_ZERO_FEATURES ((VkStructureType)1000620000)
#define QI_VULKAN_ZERO_BIT 0x00000008u /* of VkMemoryAllocateFlags */

typedef struct qi_vulkan_zero_features {
    VkStructureType sType;
    void *pNext;
    VkBool32 zeroInitializeDeviceMemory;
} qi_vulkan_zero_features;

/* The features and extensions beyond Vulkan 1.1 that the device was created with. */
typedef struct qi_vulkan_enabled {
    bool device_address;
    bool memory_budget;
    bool memory_priority;
    bool pageable;        /* priorities that change, of pages that the driver may evict */
    bool zero_initialize; /* new memory with zeros */
    bool protected_memory;
    bool device_coherent; /* AMD's device-coherent memory types */
    bool maintenance4;
    bool max_buffer; /* the extension of maintenance4, with or without its feature */
    bool timeline;   /* timeline semaphores */
    bool external_fd;
    bool dma_buf;
    bool host_pointer;
    bool win32;
    bool debug_utils;
    bool sparse_binding;
    bool sparse_buffer; /* residency of buffers; the next two: of images */
    bool sparse_image_2d;
    bool sparse_image_3d;
    bool sparse_aliased;
    VkSampleCountFlags sparse_samples; /* sample counts above 1 that support residency */
} qi_vulkan_enabled;

typedef struct qi_vulkan_staging qi_vulkan_staging;           /* staging.h */
typedef struct qi_vulkan_image_limits qi_vulkan_image_limits; /* object.c */

/* A queue that was created for the program: quire_vulkan_options.queues. */
typedef struct qi_vulkan_further {
    VkQueue queue;
    uint32_t family;
} qi_vulkan_further;

typedef struct qi_vulkan_page qi_vulkan_page;
typedef struct qi_vulkan_elastic qi_vulkan_elastic; /* elastic.h */

/* What the elastic pages of a device can be; elastic.c determines it. */
typedef struct qi_vulkan_elastic_limits {
    uint32_t kinds;       /* bit i: pages of kind i can be elastic */
    uint64_t granularity; /* bytes of a sparse block */
    uint64_t max_size;    /* bytes of a page */
    const char *missing;  /* what other kinds lack, as a clause */
} qi_vulkan_elastic_limits;

/* Objects whose destruction waits until the device no longer uses them: see deferred_destroy.h. */
typedef struct qi_vulkan_deferred {
    /* Held while the backend waits for the device. No thread holds a lock of quire's core when it
       acquires this mutex. */
    pthread_mutex_t mutex;
    quire_vulkan_sparse *sparse;
    struct qi_vulkan_stream *streams;
    struct qi_vulkan_deferred_object *objects;
    qi_vulkan_page *pages;
} qi_vulkan_deferred;

typedef struct qi_vulkan {
    qi_host host;
    qi_vulkan_functions f;
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    VkAllocationCallbacks callbacks_copy;
    const VkAllocationCallbacks *callbacks; /* callbacks_copy, or NULL */
    uint32_t api_version;
    qi_vulkan_enabled enabled;
    VkPhysicalDeviceMemoryProperties memory;
    VkPhysicalDeviceLimits limits;
    uint64_t usual_page_size;        /* maxMemoryAllocationSize, in bytes: drivers can exceed it */
    uint64_t max_buffer_size;        /* maxBufferSize, in bytes; UINT64_MAX: unknown */
    uint64_t host_pointer_alignment; /* minImportedHostPointerAlignment, in bytes */
    quire_vulkan_settings settings;  /* with the defaults filled in */
    /* that share buffers of quire; two or more: VK_SHARING_MODE_CONCURRENT */
    uint32_t families[QUIRE_VULKAN_MAX_FAMILIES + 1];
    uint32_t family_count;
    qi_atomic_u64 memory_count; /* live VkDeviceMemory of pages and streams (device.h) */
    bool limit_is_advice;       /* there may be more than maxMemoryAllocationCount */
    qi_atomic_u32 has_warned;   /* that there are */
    quire_vulkan_queue queue;
    quire_vulkan_queue sparse_queue; /* its handle is NULL: `queue` binds sparse objects */
    qi_atomic_u64 queue_holder;      /* the thread between the calls of queues.c; 0: none */
    qi_vulkan_staging *staging;
    qi_vulkan_image_limits *image_limits;
    qi_vulkan_deferred deferred;
    qi_vulkan_elastic_limits elastic;
    bool has_forked; /* this is a forked child's copy: it calls no driver function (device.c) */

    /* What quire_vulkan_open created; all NULL for a wrapped device. */
    VkInstance own_instance;
    VkDevice own_device;
    VkDebugUtilsMessengerEXT messenger;
    PFN_vkDestroyInstance destroy_instance;
    PFN_vkDestroyDevice destroy_device;
    PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;
    quire_log *log; /* the log that the messenger writes to */
    uint32_t further_count;
    qi_vulkan_further further[QUIRE_VULKAN_MAX_QUEUES];
} qi_vulkan;

#define QI_VULKAN_NO_ADDRESS UINT64_MAX

/* The usages of a buffer that copies of quire need. */
#define QI_VULKAN_TRANSFERS (VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT)

/*
 * The backend's record of a page; quire_native_page.data points to it. All members but the two
 * atomic ones are constant while the page lives. Those two are set once, without a lock.
 */
struct qi_vulkan_page {
    VkDeviceMemory memory;
    uint64_t size;      /* bytes of the page */
    uint64_t allocated; /* bytes of the VkDeviceMemory; at least `size` */
    uint32_t kind;
    VkExternalMemoryHandleTypeFlags external; /* handle types of the export, or of the import */
    bool is_exportable;
    quire_object dedicated_to; /* kind of the one object that may be bound to a dedicated page */
    uint64_t dedicated_native; /* and that object */
    VkBufferUsageFlags dedicated_usage; /* its usage as a buffer; 0: not a buffer, or unknown */
    qi_atomic_u64 buffer;               /* VkBuffer over the whole page; 0: not created yet */
    qi_atomic_u64 address;              /* device address of the page; 0: not queried yet;
                                  QI_VULKAN_NO_ADDRESS: the page has none */
    qi_vulkan_elastic *elastic;         /* NULL: the page is one VkDeviceMemory, `memory` */
    qi_vulkan_page *next_deferred;
};

static inline qi_vulkan_page *qi_vulkan_page_of(const quire_native_page *page)
{
    return (qi_vulkan_page *)(uintptr_t)page->data;
}

/* Converts handles to and from integers. Vulkan defines non-dispatchable handles as pointers on
   some platforms and as integers on others. */
#if VK_USE_64_BIT_PTR_DEFINES
#define QI_VULKAN_NUMBER(handle) ((uint64_t)(uintptr_t)(handle))
#define QI_VULKAN_HANDLE(type, number) ((type)(uintptr_t)(number))
#else
#define QI_VULKAN_NUMBER(handle) ((uint64_t)(handle))
#define QI_VULKAN_HANDLE(type, number) ((type)(number))
#endif

#endif
