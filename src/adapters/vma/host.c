/*
 * host.c - see host.h.
 */
#include "src/adapters/vma/host.h"

#include <stdlib.h>
#include <string.h>

#include "src/adapters/vma/error.h"

/* The largest alignment that quire asks its host memory for. */
enum { RECORD_ALIGNMENT = 64 };

static void *allocate_for_quire(void *user, size_t size, size_t alignment)
{
    const VkAllocationCallbacks *callbacks = user;
    return callbacks->pfnAllocation(callbacks->pUserData, size, alignment,
                                    VK_SYSTEM_ALLOCATION_SCOPE_OBJECT);
}

static void release_for_quire(void *user, void *pointer, size_t size, size_t alignment)
{
    const VkAllocationCallbacks *callbacks = user;
    (void)size;
    (void)alignment;
    callbacks->pfnFree(callbacks->pUserData, pointer);
}

bool qi_vma_host_can_use(const VkAllocationCallbacks *callbacks)
{
    if (!callbacks || (callbacks->pfnAllocation && callbacks->pfnFree))
        return true;
    qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT,
                "pAllocationCallbacks: pfnAllocation or pfnFree is null");
    return false;
}

void qi_vma_host_begin(qi_vma_host *host, const VkAllocationCallbacks *callbacks)
{
    *host = (qi_vma_host){.callbacks = {.pUserData = NULL}};
    if (!callbacks)
        return;
    host->callbacks = *callbacks;
    host->memory = (quire_host_memory){
        .allocate = allocate_for_quire, .release = release_for_quire, .user = &host->callbacks};
}

const VkAllocationCallbacks *qi_vma_host_callbacks(const qi_vma_host *host)
{
    return host->callbacks.pfnAllocation ? &host->callbacks : NULL;
}

void *qi_vma_host_allocate(const qi_vma_host *host, size_t size)
{
    const VkAllocationCallbacks *callbacks = &host->callbacks;
    void *pointer = callbacks->pfnAllocation
                        ? callbacks->pfnAllocation(callbacks->pUserData, size, RECORD_ALIGNMENT,
                                                   VK_SYSTEM_ALLOCATION_SCOPE_OBJECT)
                        : malloc(size);
    if (pointer)
        return memset(pointer, 0, size);
    qi_vma_fail(VK_ERROR_OUT_OF_HOST_MEMORY, "no host memory for %zu bytes", size);
    return NULL;
}

void qi_vma_host_release(const qi_vma_host *host, void *pointer)
{
    if (pointer && host->callbacks.pfnFree)
        host->callbacks.pfnFree(host->callbacks.pUserData, pointer);
    else
        free(pointer);
}
