/*
 * registry.c - see registry.h.
 */
#include "src/adapters/vma/registry.h"

#include "quire/quire_vma.h"
#include "src/adapters/vma/allocation.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static VmaAllocator newest; /* under the mutex, like next_allocator of each allocator */

void qi_vma_registry_add(VmaAllocator allocator)
{
    pthread_mutex_lock(&mutex);
    allocator->next_allocator = newest;
    newest = allocator;
    pthread_mutex_unlock(&mutex);
}

void qi_vma_registry_remove(VmaAllocator allocator)
{
    pthread_mutex_lock(&mutex);
    VmaAllocator *link = &newest;
    while (*link != allocator)
        link = &(*link)->next_allocator;
    *link = allocator->next_allocator;
    pthread_mutex_unlock(&mutex);
}

/* The mutex keeps the allocator while its record is read. */
void quire_vma_get_info_of_handle(VmaAllocation handle, VmaAllocationInfo *info)
{
    const qi_vma_allocation *a = NULL;
    *info = (VmaAllocationInfo){0};
    pthread_mutex_lock(&mutex);
    if (!newest)
        qi_vma_fail(VK_ERROR_VALIDATION_FAILED_EXT, "there is no allocator");
    for (VmaAllocator at = newest; at && !a; at = at->next_allocator)
        a = qi_vma_table_find(&at->allocations, (uintptr_t)handle);
    if (a)
        qi_vma_describe(a, info);
    pthread_mutex_unlock(&mutex);
    if (!a)
        qi_vma_print("VmaAllocation_T");
}
