/*
 * fork.c - the backend around a fork. In the child no driver's function is called any more: those
 * that ends go through are replaced by ones that do nothing, and say where something is waited for
 * that the device is lost, of which nothing runs.
 */
#include "backends/vulkan/staging.h"
#include "src/base/result.h"

quire_result qi_vulkan_check_process(const qi_vulkan *vulkan)
{
    return vulkan->has_forked
               ? qi_fail(QUIRE_ERROR_NOT_PERMITTED,
                         "the Vulkan device was opened before a fork, and does not survive it: in "
                         "the child it can only be destroyed")
               : QUIRE_SUCCESS;
}

/* ---- functions that do nothing ------------------------------------------------------------ */

#define END_NOTHING(name, type)                                                                    \
    static VKAPI_ATTR void VKAPI_CALL name(VkDevice device, type object,                           \
                                           const VkAllocationCallbacks *callbacks)                 \
    {                                                                                              \
        (void)device;                                                                              \
        (void)object;                                                                              \
        (void)callbacks;                                                                           \
    }

END_NOTHING(free_memory, VkDeviceMemory)
END_NOTHING(destroy_buffer, VkBuffer)
END_NOTHING(destroy_image, VkImage)
END_NOTHING(destroy_view, VkImageView)
END_NOTHING(destroy_sampler, VkSampler)
END_NOTHING(destroy_pool, VkCommandPool)
END_NOTHING(destroy_fence, VkFence)
END_NOTHING(destroy_semaphore, VkSemaphore)

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

/* ---- the entries of the table ------------------------------------------------------------- */

void qi_vulkan_fork_prepare(void *state)
{
    qi_vulkan *vulkan = state;
    pthread_mutex_lock(&vulkan->late.mutex);
}

void qi_vulkan_fork_done(void *state)
{
    qi_vulkan *vulkan = state;
    pthread_mutex_unlock(&vulkan->late.mutex);
}

void qi_vulkan_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS])
{
    qi_vulkan *vulkan = state;
    qi_vulkan_functions *f = &vulkan->f;
    (void)heap_bytes;
    vulkan->has_forked = true;
    vulkan->own_device = NULL; /* the parent's, as all that follows */
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
