/*
 * fork.c - the backend before and after a fork.
 *
 * A driver does not survive a fork, so that the child must not call it. Public functions answer
 * NOT_PERMITTED there (qi_vulkan_check_process). Destruction remains possible: the functions that
 * it calls are replaced. Those that destroy do nothing, and those that wait report a lost device,
 * on which nothing is running.
 */
#include "backends/vulkan/fork.h"

#include "backends/vulkan/vulkan.h"

/* ---- replacements of driver functions -------------------------------------------------------- */

#define DESTROY_NOTHING(name, type)                                                                \
    static VKAPI_ATTR void VKAPI_CALL name(VkDevice device, type object,                           \
                                           const VkAllocationCallbacks *callbacks)                 \
    {                                                                                              \
        (void)device;                                                                              \
        (void)object;                                                                              \
        (void)callbacks;                                                                           \
    }

DESTROY_NOTHING(free_memory, VkDeviceMemory)
DESTROY_NOTHING(destroy_buffer, VkBuffer)
DESTROY_NOTHING(destroy_image, VkImage)
DESTROY_NOTHING(destroy_view, VkImageView)
DESTROY_NOTHING(destroy_sampler, VkSampler)
DESTROY_NOTHING(destroy_pool, VkCommandPool)
DESTROY_NOTHING(destroy_fence, VkFence)
DESTROY_NOTHING(destroy_semaphore, VkSemaphore)

static VKAPI_ATTR void VKAPI_CALL unmap_memory(VkDevice device, VkDeviceMemory memory)
{
    (void)device;
    (void)memory;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_idle(VkDevice device)
{
    (void)device;
    return VK_ERROR_DEVICE_LOST;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_fences(VkDevice device, uint32_t count,
                                                  const VkFence *fences, VkBool32 all,
                                                  uint64_t nanoseconds)
{
    (void)count;
    (void)fences;
    (void)all;
    (void)nanoseconds;
    return wait_idle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL wait_semaphores(VkDevice device,
                                                      const VkSemaphoreWaitInfo *info,
                                                      uint64_t nanoseconds)
{
    (void)info;
    (void)nanoseconds;
    return wait_idle(device);
}

static VKAPI_ATTR VkResult VKAPI_CALL get_counter(VkDevice device, VkSemaphore semaphore,
                                                  uint64_t *value)
{
    (void)semaphore;
    (void)value;
    return wait_idle(device);
}

/* ---- the entries of the table ---------------------------------------------------------------- */

/* The mutex is held across the fork, so that the child gets lists in a consistent state. */
void qi_vulkan_fork_prepare(void *state)
{
    qi_vulkan *vulkan = state;
    pthread_mutex_lock(&vulkan->deferred.mutex);
}

void qi_vulkan_fork_done(void *state)
{
    qi_vulkan *vulkan = state;
    pthread_mutex_unlock(&vulkan->deferred.mutex);
}

void qi_vulkan_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_vulkan *vulkan = state;
    qi_vulkan_functions *f = &vulkan->f;
    (void)heap_bytes;
    vulkan->has_forked = true;
    vulkan->own_device = NULL; /* the parent destroys it, and the next two */
    vulkan->own_instance = NULL;
    vulkan->messenger = VK_NULL_HANDLE;
    f->FreeMemory = free_memory;
    f->UnmapMemory = unmap_memory;
    f->DestroyBuffer = destroy_buffer;
    f->DestroyImage = destroy_image;
    f->DestroyImageView = destroy_view;
    f->DestroySampler = destroy_sampler;
    f->DestroyCommandPool = destroy_pool;
    f->DestroyFence = destroy_fence;
    f->DestroySemaphore = destroy_semaphore;
    f->DeviceWaitIdle = wait_idle;
    f->WaitForFences = wait_fences;
    f->WaitSemaphores = wait_semaphores;
    f->GetSemaphoreCounterValue = get_counter;
}
