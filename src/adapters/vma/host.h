/*
 * host.h - host memory of the adapter's records, by the callbacks of the program.
 */
#ifndef QUIRE_SRC_ADAPTERS_VMA_HOST_H
#define QUIRE_SRC_ADAPTERS_VMA_HOST_H

#include <vulkan/vulkan_core.h>

#include "quire/base.h"

/* Host memory. Must not be moved while it is in use: `memory` points to the callbacks. */
typedef struct qi_vma_host {
    VkAllocationCallbacks callbacks; /* {0}: malloc and free */
    quire_host_memory memory;        /* for quire; {0}: malloc and free */
} qi_vma_host;

/* Whether the callbacks are complete, or NULL. Sets the last error otherwise. */
bool qi_vma_host_can_use(const VkAllocationCallbacks *callbacks);

/* NULL callbacks mean malloc and free. */
void qi_vma_host_begin(qi_vma_host *host, const VkAllocationCallbacks *callbacks);

/* The callbacks for the driver; NULL: its own. */
const VkAllocationCallbacks *qi_vma_host_callbacks(const qi_vma_host *host);

/* Allocates zeroed bytes. Returns NULL and sets the last error if there are none. */
void *qi_vma_host_allocate(const qi_vma_host *host, size_t size);

/* NULL releases nothing. */
void qi_vma_host_release(const qi_vma_host *host, void *pointer);

#endif
