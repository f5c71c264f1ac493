/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * fake_vulkan.h - a Vulkan driver for tests, in host memory. It imitates any memory layout,
 * executes copies and fills, checks how callers use memory, and fails if a test requests it.
 *
 * The driver can be entered in two ways. Within a process, fv_door returns the
 * vkGetInstanceProcAddr of a driver of fv_create, for a library that uses the caller's Vulkan. As
 * an installable driver (icd.c) it is found by the Vulkan loader through its manifest, and its
 * options are environment variables.
 *
 * It has what memory needs: memory, buffers, images of color formats, views, samplers, copies,
 * fills, clears, barriers, fences, semaphores, and sparse binding with tiles of images. It has no
 * pipelines, descriptors, render passes, events, queries or secondary command buffers, and lacks
 * their functions. It accepts maintenance5's usage of buffers and maintenance6's status of binds in
 * the pNext chain, also if that feature is not enabled. Images of depth and stencil formats, and
 * sparse images with several samples, can be created and bound, but have no contents.
 *
 * Afterwards a test examines the messages about errors of the caller, the counters of calls, the
 * live objects, and the usage of each heap. Any thread may call the fv_ functions at any time, also
 * during Vulkan calls, except for fv_create, fv_destroy and fv_door.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_FAKE_VULKAN_H
#define QUIRE_TESTS_SUPPORT_VULKAN_FAKE_VULKAN_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/support/vulkan/layout.h"

typedef struct fv_driver fv_driver;

/* ---- what it is --------------------------------------------------------------------------- */

#define FV_MAX_DEVICES 4

/*
 * Unusual behaviour that Vulkan allows. 0: the driver behaves like most drivers.
 *
 * ODD_SIZES          objects need more bytes than requested, and an odd number
 * LARGE_ALIGNMENTS   buffers are aligned to 4 KiB, images to 64 KiB
 * FEW_TYPES          every second memory type cannot hold an object, if the specification
 *                    permits that
 * PREFER_DEDICATED   images, and buffers for export, prefer a dedicated allocation
 * REQUIRE_DEDICATED  they require it
 * STALE              host and device see different bytes of non-coherent memory until a flush or
 *                    invalidate, which copies whole atoms
 * LATE               submitted work is executed only when a call waits for it
 * DIRTY              the first 64 KiB of new memory contain garbage, and so do images after a
 *                    transition from the undefined layout
 * PRINT              messages are also printed to stderr
 * SINGLE_TAIL        sparse images with tiles have one mip tail for all layers
 * METADATA           sparse images have a block of metadata for each layer
 * DEDICATED_BUFFERS  PREFER_DEDICATED and REQUIRE_DEDICATED apply to all buffers that are not only
 *                    for transfers
 * DEDICATED_ONLY     external handle types of files require a dedicated allocation
 * SOFT_SIZES         memory objects above maxMemoryAllocationSize are granted
 * SOFT_COUNT         so are more memory objects than maxMemoryAllocationCount
 * SPARSE_APART       only a queue family of its own binds sparse objects, and it does nothing else
 */
#define FV_ODD_SIZES UINT32_C(0x01)
#define FV_LARGE_ALIGNMENTS UINT32_C(0x02)
#define FV_FEW_TYPES UINT32_C(0x04)
#define FV_PREFER_DEDICATED UINT32_C(0x08)
#define FV_REQUIRE_DEDICATED UINT32_C(0x10)
#define FV_STALE UINT32_C(0x20)
#define FV_LATE UINT32_C(0x40)
#define FV_DIRTY UINT32_C(0x80)
#define FV_PRINT UINT32_C(0x100)
#define FV_SINGLE_TAIL UINT32_C(0x200)
#define FV_METADATA UINT32_C(0x400)
#define FV_DEDICATED_BUFFERS UINT32_C(0x10000)
#define FV_DEDICATED_ONLY UINT32_C(0x20000)
#define FV_SOFT_SIZES UINT32_C(0x40000)
#define FV_SOFT_COUNT UINT32_C(0x80000)
#define FV_SPARSE_APART UINT32_C(0x800)

typedef struct fv_options {
    const fv_layout *layouts[FV_MAX_DEVICES]; /* physical devices, copied; none: "amd-bar" */
    uint32_t instance_version;                /* 0: VK_API_VERSION_1_3 */
    uint32_t flags;                           /* FV_ODD_SIZES, ... */
    /* Duration of calls that need external synchronization, so that two at the same time are
     * detected; in microseconds, 0: no delay. */
    uint32_t linger_us;
    uint32_t no_instance_extensions; /* FV_BIT of those to hide */
} fv_options;

/* Aborts if host memory is exhausted. NULL options: all zero. */
fv_driver *fv_create(const fv_options *options);

/* Aborts if an instance still exists. */
void fv_destroy(fv_driver *driver);

/*
 * Returns the vkGetInstanceProcAddr of the driver. vkCreateInstance uses this driver until fv_door
 * is called for another one.
 */
PFN_vkGetInstanceProcAddr fv_door(fv_driver *driver);

/* ---- messages ----------------------------------------------------------------------------- */

typedef enum fv_severity { FV_WARNING = 0, FV_ERROR, FV_SEVERITIES } fv_severity;

/* The number of messages since the start or fv_forget. */
uint32_t fv_message_count(fv_driver *driver, fv_severity severity);

/*
 * Returns one of the first 64 messages of both severities, in order: "ERROR VUID-...: vkFunction:
 * what is wrong". NULL: there are fewer messages. Valid until fv_forget or fv_destroy.
 */
const char *fv_message(fv_driver *driver, uint32_t index);

/* Returns the first message that contains the part. NULL: no message does. */
const char *fv_message_with(fv_driver *driver, const char *part);

void fv_forget(fv_driver *driver);

/* From now on, messages that contain the part are ignored. At most 8 parts of 79 characters. */
void fv_allow(fv_driver *driver, const char *part);

/* ---- counters ----------------------------------------------------------------------------- */

/* Kinds of objects. */
#define FV_OBJECTS(X)                                                                              \
    X(INSTANCE, "instance")                                                                        \
    X(PHYSICAL_DEVICE, "physical device")                                                          \
    X(DEVICE, "device")                                                                            \
    X(QUEUE, "queue")                                                                              \
    X(COMMAND_BUFFER, "command buffer")                                                            \
    X(COMMAND_POOL, "command pool")                                                                \
    X(MEMORY, "memory")                                                                            \
    X(BUFFER, "buffer")                                                                            \
    X(IMAGE, "image")                                                                              \
    X(IMAGE_VIEW, "image view")                                                                    \
    X(SAMPLER, "sampler")                                                                          \
    X(FENCE, "fence")                                                                              \
    X(SEMAPHORE, "semaphore")                                                                      \
    X(MESSENGER, "messenger")

typedef enum fv_kind {
#define X(kind, name) FV_##kind,
    FV_OBJECTS(X)
#undef X
        FV_KINDS
} fv_kind;

const char *fv_kind_name(fv_kind kind);

/* Returns the number of live objects. Physical devices and queues are not counted. */
uint64_t fv_live(fv_driver *driver, fv_kind kind);

/* Returns the number of calls of a function, including its aliases, or of all functions (NULL). */
uint64_t fv_calls(fv_driver *driver, const char *function);

typedef struct fv_heap_usage {
    uint64_t allocations, bytes; /* now; imported memory is not counted */
    uint64_t peak_bytes;
} fv_heap_usage;

fv_heap_usage fv_usage(fv_driver *driver, uint32_t physical_device, uint32_t heap);

/* Returns the largest number of submissions that waited to be executed at the same time. With
   FV_LATE: that a program had in flight. */
uint64_t fv_most_pending(fv_driver *driver);

/* Sets the call counters to 0, and the peaks to the current usage. */
void fv_reset_counters(fv_driver *driver);

/* ---- faults ------------------------------------------------------------------------------- */

/*
 * Returns the number of codes with which a function may fail according to the specification, and
 * writes at most `room` of them. 0: the function cannot fail, or is unknown.
 */
uint32_t fv_codes(const char *function, VkResult *codes, uint32_t room);

typedef struct fv_fault {
    const char *function; /* NULL: all that can fail, with one common counter */
    uint64_t call;        /* number of the failing call; 1 is the next one */
    bool from_then;       /* all later calls fail, too */
    VkResult result;      /* VK_SUCCESS: the code with index code_index in fv_codes */
    uint32_t code_index;
} fv_fault;

/*
 * Adds a fault. A call that must not fail with the code does not fail. Returns false and changes
 * nothing if the fault can never occur, the function is unknown, or there are 8 faults already.
 */
bool fv_fail(fv_driver *driver, const fv_fault *fault);

typedef struct fv_failure {
    uint64_t times; /* calls that failed because of fv_fail; 0: the other members are not set */
    const char *function; /* the last one */
    VkResult result;
} fv_failure;

fv_failure fv_failed(fv_driver *driver);

/* Removes all faults, including those below. Lost devices stay lost. */
void fv_heal(fv_driver *driver);

/* Returns the number of calls that could fail since the last fv_reset_counters: the number of
   iterations of an exhaustive loop. */
uint64_t fv_fallible_calls(fv_driver *driver);

/* Loses all devices: every call that may return VK_ERROR_DEVICE_LOST does so, and submitted work is
   not executed. */
void fv_lose_devices(fv_driver *driver);

/* Makes vkGet*ProcAddr return NULL for this function and its aliases. At most 16 functions. */
void fv_hide(fv_driver *driver, const char *function);

/*
 * Sets the budget of a heap that VK_EXT_memory_budget reports, and the bytes that other processes
 * use. Budget 0: four fifths of the size of the heap, minus these bytes.
 */
void fv_set_budget(fv_driver *driver, uint32_t physical_device, uint32_t heap, uint64_t budget,
                   uint64_t others);

/* Sets the number of bytes of a heap that can be allocated. 0: its size. */
void fv_set_capacity(fv_driver *driver, uint32_t physical_device, uint32_t heap, uint64_t bytes);

/* ---- what it knows of objects ------------------------------------------------------------- */

/* Replaces the features of a format: see format.c. */
void fv_set_format(fv_driver *driver, VkFormat format, VkFormatFeatureFlags linear,
                   VkFormatFeatureFlags optimal);

typedef struct fv_place {
    VkDeviceMemory memory;
    VkDeviceSize offset, size;
    uint32_t memory_type;
} fv_place;

/* Returns the place of a buffer or image. memory VK_NULL_HANDLE: it is not bound, or not alive. */
fv_place fv_place_of(fv_driver *driver, uint64_t buffer_or_image);

#define FV_MAX_LINKS 8

typedef struct fv_memory_info {
    VkDeviceSize size;
    uint32_t type;
    float priority; /* the last one that was set; default 0.5 */
    bool mapped, dedicated, addressed, imported, zeroed;
    VkExternalMemoryHandleTypeFlags exportable;
    uint32_t bound; /* number of live buffers and images in it */
    uint32_t link_count;
    VkStructureType links[FV_MAX_LINKS]; /* the pNext chain of VkMemoryAllocateInfo */
} fv_memory_info;

/* Returns false if the memory is not alive. */
bool fv_memory_of(fv_driver *driver, VkDeviceMemory memory, fv_memory_info *info);

/* The enabled features of a device: FV_SPARSE_BINDING, ... */
uint32_t fv_features_of(VkDevice device);

/* Copies the name that vkSetDebugUtilsObjectNameEXT set. "": no name, or the object is not
   alive. */
void fv_name_of(fv_driver *driver, uint64_t handle, char *name, size_t room);

#endif
