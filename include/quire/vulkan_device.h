/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vulkan_device.h - devices of the Vulkan backend: opening one, wrapping the caller's, their
 * queues, and which features quire uses. Included by quire/vulkan.h, whose rules on threads and
 * errors hold here.
 */
#ifndef QUIRE_VULKAN_DEVICE_H
#define QUIRE_VULKAN_DEVICE_H

#include <vulkan/vulkan_core.h>

#include "quire/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options that open and wrap have in common ---------------------------------------------- */

/*
 * A queue for copies between the host and memory that it cannot reach, copies between pages that
 * the host cannot reach, their fills, layout changes, texels, streams that quire signals, and the
 * binding of sparse objects. Without a queue these are UNSUPPORTED.
 */
typedef struct quire_vulkan_queue {
    VkQueue queue; /* NULL: none */
    /* Family of the queue. It must be a family that uses the memory, because quire transfers no
       ownership between families. It must support transfer; for texels compute or graphics; for
       sparse objects sparse binding, unless there is a sparse_queue. */
    uint32_t family;
    /*
     * quire calls lock before and unlock after each submission, and in quire_vulkan_queue_lock and
     * quire_vulkan_queue_unlock. Between lock and unlock of a submission quire waits for nothing,
     * so that others hold up their thread for a short time only. The two functions must not call
     * quire and must not fork, because quire holds locks of the backend. Both NULL: the program
     * uses the queue only between quire_vulkan_queue_lock and quire_vulkan_queue_unlock.
     */
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void *user;
} quire_vulkan_queue;

/*
 * What maxMemoryAllocationCount means. Some drivers serve more memory objects than they state, and
 * programs rely on it (godotengine/godot #120603).
 */
typedef enum quire_vulkan_memory_limit {
    /* ADVICE on AMD's proprietary driver for integrated GPUs (the same report) and on SwiftShader,
       which state 4096; STRICT on others. */
    QUIRE_VULKAN_LIMIT_BY_DRIVER,
    QUIRE_VULKAN_LIMIT_STRICT, /* TOO_MANY_PAGES beyond it */
    QUIRE_VULKAN_LIMIT_ADVICE, /* a warning in the log, once; then the driver decides */
} quire_vulkan_memory_limit;

/* The most families of a device that quire_vulkan_settings.queue_families may name. */
#define QUIRE_VULKAN_MAX_FAMILIES 16
/* As queue_family_count: all families that the device was created with queues of. */
#define QUIRE_VULKAN_ALL_FAMILIES UINT32_MAX

typedef struct quire_vulkan_settings {
    quire_device_options device;
    const VkAllocationCallbacks *callbacks; /* copied; NULL: the driver's own */
    /* Bytes of host-visible memory that copies between the host and other memory go through, half
       of them in each submission. The device allocates them for its first such copy, and each
       stream for its first copy from host memory. 4 KiB to 1 GiB; 0: 4 MiB. */
    uint64_t staging_size;
    /* Usage of the buffers of quire_vulkan_page_buffer. quire adds the two transfer usages. 0:
       every usage of core Vulkan, with device addresses if they are enabled. */
    VkBufferUsageFlags page_usage;
    /*
     * Export types of pages of memories with an exportable intent; 0: opaque POSIX file descriptors
     * (opaque win32 handles on Windows).
     */
    VkExternalMemoryHandleTypeFlags export_types;
    quire_vulkan_memory_limit memory_limit;
    /*
     * Families whose queues use the buffers of quire_vulkan_page_buffer and of quire_buffer_create,
     * each once; copied. With the family of the device's queue, which quire adds, they are two or
     * more: the buffers have VK_SHARING_MODE_CONCURRENT, and no ownership is transferred. Otherwise
     * VK_SHARING_MODE_EXCLUSIVE. QUIRE_VULKAN_ALL_FAMILIES needs no list; a wrapped device has it
     * from device_info. Objects with a create info have the sharing mode of that.
     */
    const uint32_t *queue_families;
    uint32_t queue_family_count; /* 0: exclusive */
    uint64_t unused[4];          /* must be zero */
} quire_vulkan_settings;

/* ---- a device of quire's own ---------------------------------------------------------------- */

#define QUIRE_VULKAN_MAX_QUEUES 16

typedef struct quire_vulkan_options {
    /*
     * Selects the device: its index in the driver's order ("0"), or a part of its name in any case.
     * NULL: the value of the environment variable QUIRE_VULKAN_DEVICE in the same form; if it is
     * not set, the first discrete GPU, otherwise integrated, otherwise virtual, otherwise any.
     */
    const char *device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr; /* NULL: of the system's loader */
    /* Names of extensions that are enabled in addition to those that quire uses. An extension that
       another one requires must be named too. A name may occur twice. Vulkan forbids the feature
       bufferDeviceAddress beside VK_EXT_buffer_device_address: quire then does not enable it, and
       has no device addresses. */
    const char *const *instance_extensions;
    uint32_t instance_extension_count;
    const char *const *device_extensions;
    uint32_t device_extension_count;
    /*
     * The pNext chain of VkDeviceCreateInfo: structs of features, or others. NULL: none. quire adds
     * its own structs in front of the chain, but none of a type that the chain has. Features that
     * quire uses and that have a member in one of the chain's structs are set to VK_TRUE there, so
     * that after a success these structs state what is enabled. After a failure the chain is as
     * before. Read and written during the call only.
     */
    void *chain;
    /* Flags that the family of the device's queue must have in addition to compute:
       VK_QUEUE_GRAPHICS_BIT, ... */
    VkQueueFlags queue_flags;
    /*
     * Further queues, for the program: each element has the flags that the family of one queue must
     * have; 0: any. The family with the fewest further flags is preferred. A queue that another
     * family can serve, also the device's queue, leaves a full family to one that needs it. quire
     * does not use these queues; quire_vulkan_get_queue returns them. At most
     * QUIRE_VULKAN_MAX_QUEUES.
     */
    const VkQueueFlags *queues;
    uint32_t queue_count;
    quire_vulkan_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_options;

/*
 * Creates an instance of at most Vulkan 1.3 (1.4 if the chain has its struct of features), a
 * device, and one compute queue, which are destroyed with the quire device. All features of Vulkan
 * 1.0 that the device has are enabled, except robustBufferAccess, and those that this backend uses.
 * If the device can bind sparse objects only on queues of another family, a queue of that family is
 * created too, if the program's wishes leave one. NULL options mean {0}.
 *
 * The environment selects layers (VK_INSTANCE_LAYERS). If the device has a log, messages of layers
 * and of the driver are logged as lines that begin with "vulkan: ". They are written from inside
 * the Vulkan call that they are about, which may be a call of the program, so that a debugger shows
 * it. Vulkan permits no calls of Vulkan there, and a page may be half created: for such a line the
 * sink must not call quire.
 *
 * Errors: INVALID_ARGUMENT (also a struct that occurs twice in the chain), UNSUPPORTED (no loader,
 * no driver, no such device, or no device with Vulkan 1.1; and the sentence names them: extensions
 * or features that the device does not have, a wished queue that it does not have, a group of
 * several physical devices), OUT_OF_HOST_MEMORY, and errors of Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_open(const quire_vulkan_options *options,
                                                        quire_device **device);

/* ---- a device of the caller ----------------------------------------------------------------- */

/*
 * The handles must outlive the quire device; the structs that are pointed to are read during the
 * call only.
 */
typedef struct quire_vulkan_wrap_options {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    /* NULL: queried from get_instance_proc_addr. A layer sets the function of the next layer. */
    PFN_vkGetDeviceProcAddr get_device_proc_addr;
    /*
     * How instance and device were created, which Vulkan cannot be queried for: version and
     * extensions of the instance; extensions and features of the device, in pEnabledFeatures or in
     * the chain. An instance_info without pApplicationInfo, or with apiVersion 0, means Vulkan 1.0,
     * as in Vulkan. quire_vulkan_get_features says what quire found. NULL: the fields below.
     */
    const VkInstanceCreateInfo *instance_info;
    const VkDeviceCreateInfo *device_info;
    /* The same without create infos. INVALID_ARGUMENT beside the create info of the object. quire
       does not check whether the device has what they name. A feature of a version above
       api_version counts only if its extension is named. */
    uint32_t api_version; /* of the instance: VK_API_VERSION_1_3, ...; 0: Vulkan 1.1 */
    uint32_t instance_extension_count;
    const char *const *instance_extensions; /* names of those that are enabled */
    const char *const *device_extensions;
    uint32_t device_extension_count;
    const VkPhysicalDeviceFeatures2 *features; /* enabled, with those in its chain; NULL: none */
    quire_vulkan_queue queue;
    /*
     * A queue that binds sparse objects, with its own lock. Its family needs only sparse binding.
     * NULL: `queue` binds them. If it is the same queue as `queue`, the lock of `queue` is used. A
     * bind waits on the host for its completion, so that no semaphore orders the two queues, and it
     * accesses no memory, so that no ownership is transferred.
     */
    quire_vulkan_queue sparse_queue;
    quire_vulkan_settings settings;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_wrap_options;

/*
 * Opens a quire device on a device of the caller. quire calls only functions from
 * get_instance_proc_addr: it does not touch the loader or volk. Memory kinds that need a feature
 * that is not enabled (protected, AMD device-coherent) are reported, and using them is UNSUPPORTED.
 * Errors: INVALID_ARGUMENT (a null handle; a missing function, which the sentence names; a queue
 * family that does not exist or occurs twice), UNSUPPORTED (below Vulkan 1.1; a group of several
 * physical devices), OUT_OF_HOST_MEMORY.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_wrap(const quire_vulkan_wrap_options *options,
                                                        quire_device **device);

/* ---- what a device has ---------------------------------------------------------------------- */

typedef struct quire_vulkan_handles {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    /* NULL: none. A program that submits to it while other threads use quire does so between
       quire_vulkan_queue_lock and quire_vulkan_queue_unlock. */
    VkQueue queue;
    uint32_t queue_family;
    uint32_t api_version; /* that quire uses: the lower one of instance and device */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    VkQueue sparse_queue; /* NULL: `queue` binds sparse objects, if its family can */
    uint32_t sparse_family;
    uint64_t unused[4];
} quire_vulkan_handles;

/* Writes the native handles of a device. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_get_handles(const quire_device *device,
                                                               quire_vulkan_handles *handles);

/*
 * The optional features and extensions that quire uses on a device: those that are enabled, as the
 * options of quire_vulkan_wrap say, or by quire_vulkan_open, and whose functions exist.
 * docs/vulkan.md says what each is for. quire logs the list, and what it found not enabled, when it
 * creates the device (QUIRE_LOG_INFO).
 */
typedef struct quire_vulkan_features {
    bool buffer_device_address;
    bool timeline_semaphore;
    bool maintenance4;
    bool memory_budget;
    bool memory_priority;
    bool pageable_memory; /* VK_EXT_pageable_device_local_memory */
    bool zero_initialize; /* VK_EXT_zero_initialize_device_memory */
    bool protected_memory;
    bool device_coherent_memory; /* of AMD */
    bool external_memory_fd;
    bool external_memory_dma_buf;
    bool external_memory_host;
    bool external_memory_win32;
    bool debug_utils;
    bool sparse_queue; /* a queue exists whose family can bind sparse objects */
    bool sparse_binding;
    bool sparse_residency_buffer;
    bool sparse_residency_image_2d;
    bool sparse_residency_image_3d;
    bool sparse_residency_aliased;
    VkSampleCountFlags sparse_residency_samples; /* sample counts above 1 */
    uint64_t unused[4];
} quire_vulkan_features;

/* Writes the features that quire uses. Errors: INVALID_ARGUMENT. */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_get_features(const quire_device *device,
                                                                quire_vulkan_features *features);

/* ---- queues ---------------------------------------------------------------------------------- */

/*
 * Writes the queue of quire_vulkan_options.queues with this index, and its family. It has no lock
 * functions: quire does not use it. Errors: INVALID_ARGUMENT, OUT_OF_RANGE (the options had fewer).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_get_queue(const quire_device *device,
                                                             uint32_t index,
                                                             quire_vulkan_queue *queue);

/*
 * Lock and unlock the device's queue, so that the program can submit to it while other threads use
 * quire. On a device of quire_vulkan_open they also lock its sparse queue. On a wrapped device they
 * call the lock functions of `queue`, or use quire's mutex if it has none.
 *
 * The thread that locks unlocks, before the device is destroyed. In between it may call functions
 * of Vulkan on the queue. It must not fork and must not call quire on this device: a function that
 * submits to the queue fails there with NOT_PERMITTED.
 *
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (lock: the device has no queue), NOT_PERMITTED (lock: the
 * thread holds the queue already; unlock: it does not hold it).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_queue_lock(quire_device *device);
QUIRE_API quire_result quire_vulkan_queue_unlock(quire_device *device);

#ifdef __cplusplus
}
#endif

#endif
