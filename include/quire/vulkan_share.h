/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/vulkan_share.h - sharing memory of the Vulkan backend with other APIs and processes:
 * exports and imports. Included by quire/vulkan.h, whose rules on threads and errors hold here.
 */
#ifndef QUIRE_VULKAN_SHARE_H
#define QUIRE_VULKAN_SHARE_H

#include <vulkan/vulkan_core.h>

#include "quire/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Exports the page of an allocation as a file descriptor, which the caller closes. The memory must
 * have an exportable intent, and `type` must be among quire_vulkan_settings.export_types.
 * quire_vulkan_get_range has the position of the allocation. On failure *descriptor is -1. Errors:
 * UNSUPPORTED (the page or the type cannot be exported), and errors of Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result
quire_vulkan_export_fd(quire_memory *memory, quire_allocation allocation,
                       VkExternalMemoryHandleTypeFlagBits type, int *descriptor);

/* Memory that something else created. */
typedef struct quire_vulkan_import {
    VkExternalMemoryHandleTypeFlagBits
        type;       /* OPAQUE_FD, DMA_BUF, HOST_ALLOCATION, win32 handles */
    int descriptor; /* OPAQUE_FD, DMA_BUF: quire owns it on success */
    /* HOST_ALLOCATION: host memory at a multiple of minImportedHostPointerAlignment, which must
       outlive the allocation. Win32: a HANDLE, which stays the caller's. */
    void *pointer;
    uint64_t size;    /* bytes of the whole memory */
    const char *name; /* copied; NULL: none */
    uint64_t user_data;
    /*
     * An object of the caller's that the memory is dedicated to, created for handle type `type`;
     * at most one. `size` must be the size that the object requires. The caller binds it to the
     * range at offset 0, and nothing else. quire copies bytes of the range only if the host can map
     * it. Needed where the memory was exported from a dedicated allocation, and where the device
     * imports the type only so; not with HOST_ALLOCATION, which Vulkan forbids. VK_NULL_HANDLE: the
     * memory is not dedicated.
     */
    VkBuffer buffer;
    VkImage image;
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_import;

/*
 * Makes an allocation of existing memory: a dedicated page, released with the allocation. It counts
 * in statistics and budgets like other pages. Errors as quire_allocate; INVALID_ARGUMENT also for
 * two objects, an object with host memory, or a size that is not the object's; UNSUPPORTED (the
 * memory's kind cannot import it: quire_vulkan_import_kinds has the kinds that can; or the device
 * imports the handle type only into memory that is dedicated to an object).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_import_range(quire_memory *memory,
                                                                const quire_vulkan_import *import,
                                                                quire_allocation *allocation);

/*
 * Writes a mask of the kinds that can import it; for an opaque descriptor, which Vulkan cannot
 * query, all kinds. With an object it has only kinds that can hold the object. Errors:
 * INVALID_ARGUMENT, UNSUPPORTED, and errors of Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_import_kinds(quire_device *device,
                                                                const quire_vulkan_import *import,
                                                                uint32_t *kind_mask);

#ifdef __cplusplus
}
#endif

#endif
