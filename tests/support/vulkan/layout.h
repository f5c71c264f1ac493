/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layout.h - the properties of a fake Vulkan device: heaps, memory types, limits, extensions,
 * features.
 *
 * Layouts are data. layouts.c has some real ones, tests modify copies of them, and layout_file.c
 * reads more from JSON.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_LAYOUT_H
#define QUIRE_TESTS_SUPPORT_VULKAN_LAYOUT_H

#include <stdint.h>

#include <vulkan/vulkan.h>

/*
 * Extensions that the fake can offer: name of the bit, extension, its scope, and the core version
 * that contains it (0: none). An extension that the device's core version contains is always
 * offered.
 */
#define FV_EXTENSIONS(X)                                                                           \
    X(PROPERTIES2, "VK_KHR_get_physical_device_properties2", INSTANCE, VK_API_VERSION_1_1)         \
    X(MEMORY_CAPABILITIES, "VK_KHR_external_memory_capabilities", INSTANCE, VK_API_VERSION_1_1)    \
    X(DEBUG_UTILS, "VK_EXT_debug_utils", INSTANCE, 0)                                              \
    X(REQUIREMENTS2, "VK_KHR_get_memory_requirements2", DEVICE, VK_API_VERSION_1_1)                \
    X(DEDICATED, "VK_KHR_dedicated_allocation", DEVICE, VK_API_VERSION_1_1)                        \
    X(BIND2, "VK_KHR_bind_memory2", DEVICE, VK_API_VERSION_1_1)                                    \
    X(MAINTENANCE3, "VK_KHR_maintenance3", DEVICE, VK_API_VERSION_1_1)                             \
    X(DEVICE_GROUP, "VK_KHR_device_group", DEVICE, VK_API_VERSION_1_1)                             \
    X(EXTERNAL, "VK_KHR_external_memory", DEVICE, VK_API_VERSION_1_1)                              \
    X(TIMELINE, "VK_KHR_timeline_semaphore", DEVICE, VK_API_VERSION_1_2)                           \
    X(ADDRESS, "VK_KHR_buffer_device_address", DEVICE, VK_API_VERSION_1_2)                         \
    X(MAINTENANCE4, "VK_KHR_maintenance4", DEVICE, VK_API_VERSION_1_3)                             \
    X(BUDGET, "VK_EXT_memory_budget", DEVICE, 0)                                                   \
    X(PRIORITY, "VK_EXT_memory_priority", DEVICE, 0)                                               \
    X(PAGEABLE, "VK_EXT_pageable_device_local_memory", DEVICE, 0)                                  \
    X(ZERO, "VK_EXT_zero_initialize_device_memory", DEVICE, 0)                                     \
    X(FD, "VK_KHR_external_memory_fd", DEVICE, 0)                                                  \
    X(DMA_BUF, "VK_EXT_external_memory_dma_buf", DEVICE, 0)                                        \
    X(HOST_POINTER, "VK_EXT_external_memory_host", DEVICE, 0)                                      \
    X(DEVICE_COHERENT, "VK_AMD_device_coherent_memory", DEVICE, 0)                                 \
    X(ADDRESS_EXT, "VK_EXT_buffer_device_address", DEVICE, 0)                                      \
    X(PORTABILITY, "VK_KHR_portability_subset", DEVICE, 0)

typedef enum fv_extension {
#define X(bit, name, scope, core) FV_EXT_##bit,
    FV_EXTENSIONS(X)
#undef X
        FV_EXTENSION_COUNT
} fv_extension;

#define FV_BIT(extension) (UINT32_C(1) << (FV_EXT_##extension))

/* Features. Those of an extension are offered together with the extension. */
#define FV_SPARSE_BINDING UINT32_C(0x01)
#define FV_SPARSE_BUFFER UINT32_C(0x02) /* residency of buffers */
#define FV_PROTECTED UINT32_C(0x04)
#define FV_TIMELINE UINT32_C(0x08)
#define FV_ADDRESS UINT32_C(0x10)
#define FV_PRIORITY UINT32_C(0x20)
#define FV_PAGEABLE UINT32_C(0x40)
#define FV_DEVICE_COHERENT UINT32_C(0x80)
#define FV_ZERO UINT32_C(0x4000) /* zeroInitializeDeviceMemory */
#define FV_MAINTENANCE4 UINT32_C(0x100)
#define FV_SYNC2 UINT32_C(0x200)  /* synchronization2, which every device of 1.3 has */
#define FV_ROBUST UINT32_C(0x400) /* robustBufferAccess, which every device has */
#define FV_SPARSE_ALIASED UINT32_C(0x800)
#define FV_SPARSE_IMAGE UINT32_C(0x1000)   /* residency of 2D and 3D images */
#define FV_SPARSE_SAMPLES UINT32_C(0x2000) /* residency of images with 4 samples */

typedef struct fv_layout {
    const char *name;   /* for fv_layout_named */
    const char *source; /* source of the values */
    VkPhysicalDeviceType type;
    uint32_t api_version; /* VK_API_VERSION_1_1 and later */
    uint32_t vendor, device;
    VkDriverId driver; /* 0: none that is known */

    uint32_t heap_count, type_count;
    VkMemoryHeap heaps[VK_MAX_MEMORY_HEAPS];
    VkMemoryType types[VK_MAX_MEMORY_TYPES];

    /* limits; 0: a common value, see fv_layout_complete */
    uint64_t granularity;            /* bufferImageGranularity */
    uint64_t atom;                   /* nonCoherentAtomSize */
    uint32_t max_allocations;        /* maxMemoryAllocationCount */
    uint64_t max_allocation;         /* maxMemoryAllocationSize, bytes */
    uint64_t max_buffer;             /* maxBufferSize, bytes */
    uint64_t map_alignment;          /* minMemoryMapAlignment */
    uint64_t host_pointer_alignment; /* minImportedHostPointerAlignment */
    uint64_t sparse_space;           /* sparseAddressSpaceSize, bytes */
    uint64_t storage_alignment, uniform_alignment, texel_alignment, copy_alignment;

    uint32_t extensions; /* FV_BIT of those that the core version lacks */
    uint32_t
        features; /* FV_SPARSE_, FV_PROTECTED, ... in addition to those of version and extensions */
} fv_layout;

/* The built-in layouts, and one of them by name (NULL: unknown name). */
extern const fv_layout fv_layouts[];
extern const uint32_t fv_layout_count;
const fv_layout *fv_layout_named(const char *name);

/* Fills in common values for limits of 0, and the features of version and extensions. */
void fv_layout_complete(fv_layout *layout);

#endif
