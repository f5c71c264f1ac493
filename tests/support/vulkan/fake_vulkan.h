/*
 * fake_vulkan.h - a Vulkan driver for tests, in plain host memory: it poses as any memory layout,
 * really copies and fills, checks what callers do with memory, and fails where it is told to.
 *
 * Two doors lead to the same code. In a process, fv_door gives the vkGetInstanceProcAddr of a
 * driver made with fv_create, for a library that takes the caller's Vulkan. And icd.c makes it an
 * installable driver, which the Vulkan loader finds by its manifest and which takes its options
 * from the environment.
 *
 * It has what memory needs: memory, buffers, images of color formats, views, samplers, copies,
 * fills, clears, barriers, fences, semaphores, sparse binding with tiles of images. It has no
 * pipelines, descriptors, render passes, events, queries or secondary command buffers; their
 * functions are not there. Of maintenance5 it takes the usage of buffers in their chain, whether
 * that is enabled or not. Images of depth and stencil, and sparse ones of several samples, can be
 * made and placed, and hold nothing.
 *
 * What a test looks at afterwards: the messages about wrong use, the counters of calls, what is
 * alive and how much memory of each heap is taken. All fv_ functions may be called by any thread
 * at any time, also while Vulkan calls run, except for fv_create, fv_destroy and fv_door.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_FAKE_VULKAN_H
#define QUIRE_TESTS_SUPPORT_VULKAN_FAKE_VULKAN_H

#include <stdbool.h>
#include <stddef.h>

#include "tests/support/vulkan/layout.h"

typedef struct fv_driver fv_driver;

/* ---- what it is --------------------------------------------------------------------------- */

#define FV_MOST_DEVICES 4

/*
 * How it answers within what Vulkan allows, to be awkward; 0: as most drivers do.
 *
 * ODD_SIZES          objects need more than asked, an odd number of bytes
 * LARGE_ALIGNMENTS   buffers are aligned to 4 KiB, images to 64 KiB
 * FEW_TYPES          every second memory type cannot hold an object, as far as the specification
 *                    leaves that to drivers
 * PREFER_DEDICATED   images, and buffers for export, prefer memory of their own
 * REQUIRE_DEDICATED  they require it
 * STALE              of non-coherent memory host and device see different bytes, until a flush or
 *                    invalidate brings them over, by whole atoms
 * LATE               submitted work is done when somebody waits for it, not before
 * DIRTY              the first 64 KiB of fresh memory hold garbage, and so do images that come from
 *                    the undefined layout
 * PRINT              messages are printed to stderr, too
 * SINGLE_TAIL        sparse images with tiles have one mip tail for all layers
 * METADATA           they have a block of metadata for each layer
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

typedef struct fv_options {
    const fv_layout *layouts[FV_MOST_DEVICES]; /* physical devices; none: "amd-bar". Copied */
    uint32_t instance_version;                 /* 0: VK_API_VERSION_1_3 */
    uint32_t flags;                            /* FV_ODD_SIZES, ... */
    /* How long calls that need external synchronization dwell, so that two at once are noticed;
     * microseconds, 0: not. */
    uint32_t linger_us;
    uint32_t no_instance_extensions; /* FV_BIT of those not offered */
} fv_options;

/* Ends the program where there is no host memory. NULL options: all zero. */
fv_driver *fv_create(const fv_options *options);

/* Ends the program where an instance is still alive. */
void fv_destroy(fv_driver *driver);

/*
 * The vkGetInstanceProcAddr of the driver, which is the one that vkCreateInstance speaks to until
 * fv_door is called for another.
 */
PFN_vkGetInstanceProcAddr fv_door(fv_driver *driver);

/* ---- messages ----------------------------------------------------------------------------- */

typedef enum fv_severity { FV_WARNING = 0, FV_ERROR, FV_SEVERITIES } fv_severity;

/* How many there were since the start or fv_forget. */
uint32_t fv_message_count(fv_driver *driver, fv_severity severity);

/*
 * One of the first 64 of both severities, in order: "ERROR VUID-...: vkFunction: what is wrong";
 * NULL: there are not so many. Valid until fv_forget and fv_destroy.
 */
const char *fv_message(fv_driver *driver, uint32_t index);

/* The first message that contains the part; NULL: none does. */
const char *fv_message_with(fv_driver *driver, const char *part);

void fv_forget(fv_driver *driver);

/* Messages that contain the part are not counted from now on; at most 8 parts of 79 characters. */
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

/* Alive now. Physical devices and queues are not counted. */
uint64_t fv_live(fv_driver *driver, fv_kind kind);

/* Calls of a function (an alias counts as the function it stands for), or of all (NULL). */
uint64_t fv_calls(fv_driver *driver, const char *function);

typedef struct fv_heap_usage {
    uint64_t allocations, bytes; /* now; imported memory is not counted */
    uint64_t peak_bytes;
} fv_heap_usage;

fv_heap_usage fv_usage(fv_driver *driver, uint32_t physical_device, uint32_t heap);

/* Counts calls from 0 again; what is taken of the heaps becomes the peak. */
void fv_reset_counters(fv_driver *driver);

/* ---- faults ------------------------------------------------------------------------------- */

/*
 * The codes with which a function may fail, after the specification; returns how many there are
 * (0: it cannot fail, or is not known) and writes at most room of them.
 */
uint32_t fv_codes(const char *function, VkResult *codes, uint32_t room);

typedef struct fv_fault {
    const char *function; /* NULL: all that can fail, counted together */
    uint64_t call;        /* which call fails, from 1, counted from now on */
    bool from_then;       /* and all later ones */
    VkResult result; /* VK_SUCCESS: the code numbered code_index of those that fv_codes tells */
    uint32_t code_index;
} fv_fault;

/*
 * Adds a fault, at most 8. A function that may not fail with the code is let through. False where
 * that is sure beforehand, the function is not known or there are 8 already; nothing changed then.
 */
bool fv_fail(fv_driver *driver, const fv_fault *fault);

typedef struct fv_failure {
    uint64_t times;       /* calls that failed by fv_fail; 0: none, and the rest is not set */
    const char *function; /* the last of them */
    VkResult result;
} fv_failure;

fv_failure fv_failed(fv_driver *driver);

/* Takes all faults away, and those below: lost devices stay lost. */
void fv_heal(fv_driver *driver);

/* Fallible calls since the last fv_reset_counters: how far an exhaustive loop must count. */
uint64_t fv_fallible_calls(fv_driver *driver);

/* vkAllocateMemory and vkFreeMemory take this long. */
void fv_slow(fv_driver *driver, uint32_t milliseconds);

/* Every device is lost: what may return VK_ERROR_DEVICE_LOST does so, and work is not done. */
void fv_lose_devices(fv_driver *driver);

/* vkGet*ProcAddr answers NULL for this function and its aliases; at most 16 at one time. */
void fv_hide(fv_driver *driver, const char *function);

/*
 * What VK_EXT_memory_budget tells of a heap, and bytes that others use of it. Budget 0: four
 * fifths of its size, less what others use.
 */
void fv_set_budget(fv_driver *driver, uint32_t physical_device, uint32_t heap, uint64_t budget,
                   uint64_t others);

/* Bytes of a heap that can be allocated before the device is out of memory; 0: its size. */
void fv_set_capacity(fv_driver *driver, uint32_t physical_device, uint32_t heap, uint64_t bytes);

/* ---- what it knows of objects ------------------------------------------------------------- */

/* The features of a format from now on, which the caller takes away or adds; see format.c. */
void fv_set_format(fv_driver *driver, VkFormat format, VkFormatFeatureFlags linear,
                   VkFormatFeatureFlags optimal);

typedef struct fv_place {
    VkDeviceMemory memory;
    VkDeviceSize offset, size;
    uint32_t memory_type;
} fv_place;

/* Where a buffer or image lies; memory VK_NULL_HANDLE: nowhere, or not alive. */
fv_place fv_place_of(fv_driver *driver, uint64_t buffer_or_image);

#define FV_MOST_LINKS 8

typedef struct fv_memory_info {
    VkDeviceSize size;
    uint32_t type;
    float priority; /* the one set last; 0.5 where none was */
    bool mapped, dedicated, addressed, imported;
    VkExternalMemoryHandleTypeFlags exportable;
    uint32_t bound; /* live buffers and images in it */
    uint32_t link_count;
    VkStructureType links[FV_MOST_LINKS]; /* what was chained to VkMemoryAllocateInfo, in order */
} fv_memory_info;

/* False: not alive. */
bool fv_memory_of(fv_driver *driver, VkDeviceMemory memory, fv_memory_info *info);

/* The name given by vkSetDebugUtilsObjectNameEXT; "" without, or where it is not alive. Copies. */
void fv_name_of(fv_driver *driver, uint64_t handle, char *name, size_t room);

#endif
