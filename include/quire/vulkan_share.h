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
    uint64_t unused[4]; /* must be zero */
} quire_vulkan_import;

/*
 * Makes an allocation of existing memory: a dedicated page, released with the allocation. It counts
 * in statistics and budgets like other pages. Errors as quire_allocate; UNSUPPORTED (the memory's
 * kind cannot import it: quire_vulkan_import_kinds has the kinds that can).
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_import_range(quire_memory *memory,
                                                                const quire_vulkan_import *import,
                                                                quire_allocation *allocation);

/*
 * Writes a mask of the kinds that can import it; all kinds for an opaque descriptor, which Vulkan
 * cannot query. Errors: INVALID_ARGUMENT, UNSUPPORTED, and errors of Vulkan.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_vulkan_import_kinds(quire_device *device,
                                                                const quire_vulkan_import *import,
                                                                uint32_t *kind_mask);

#ifdef __cplusplus
}
#endif

#endif
