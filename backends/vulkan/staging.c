/*
 * staging.c - see staging.h.
 */
#include "backends/vulkan/staging.h"

#include <string.h>

#include "src/base/bits.h"
#include "src/base/result.h"

/* Offsets of copies between buffers and images are multiples of this, whatever the format. */
static const uint64_t HALF_ALIGNMENT = 256;

/* Times that a failed wait is tried. */
enum { MAX_WAITS = 8 };

/* ---- making ------------------------------------------------------------------------------- */

quire_result qi_vulkan_staging_init(qi_vulkan *vulkan)
{
    qi_vulkan_staging *staging = qi_host_allocate(&vulkan->host, 1, sizeof *staging);
    if (!staging)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a staging record");
    pthread_mutex_init(&staging->mutex, NULL);
    pthread_mutex_init(&staging->queue_mutex, NULL);
    staging->half = qi_align_down(vulkan->settings.staging_size / QI_VULKAN_HALVES, HALF_ALIGNMENT);
    vulkan->staging = staging;
    return QUIRE_SUCCESS;
}

void qi_vulkan_queue_take(const qi_vulkan *vulkan)
{
    if (vulkan->queue.lock)
        vulkan->queue.lock(vulkan->queue.user);
    else
        pthread_mutex_lock(&vulkan->staging->queue_mutex);
}

void qi_vulkan_queue_give(const qi_vulkan *vulkan)
{
    if (vulkan->queue.unlock)
        vulkan->queue.unlock(vulkan->queue.user);
    else
        pthread_mutex_unlock(&vulkan->staging->queue_mutex);
}

VkResult qi_vulkan_wait(const qi_vulkan *vulkan, VkFence fence)
{
    VkResult code = VK_ERROR_UNKNOWN;
    for (int i = 0; i < MAX_WAITS && code && code != VK_ERROR_DEVICE_LOST; i++)
        code = vulkan->f.WaitForFences(vulkan->device, 1, &fence, VK_TRUE, UINT64_MAX);
    return code;
}

/* Destroys what there is, in any state of the making. */
static void destroy(const qi_vulkan *vulkan, qi_vulkan_staging *s)
{
    const qi_vulkan_functions *f = &vulkan->f;
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        if (s->is_running[i]) /* nobody is left to be told that it failed */
            qi_vulkan_wait(vulkan, s->fences[i]);
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        if (s->fences[i])
            f->DestroyFence(vulkan->device, s->fences[i], vulkan->callbacks);
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        if (s->pools[i])
            f->DestroyCommandPool(vulkan->device, s->pools[i], vulkan->callbacks);
    if (s->buffer)
        f->DestroyBuffer(vulkan->device, s->buffer, vulkan->callbacks);
    if (s->memory) /* its mapping goes with it */
        f->FreeMemory(vulkan->device, s->memory, vulkan->callbacks);
    memset(s->fences, 0, sizeof s->fences);
    memset(s->pools, 0, sizeof s->pools);
    s->buffer = VK_NULL_HANDLE;
    s->memory = VK_NULL_HANDLE;
    s->is_made = false;
}

void qi_vulkan_staging_finish(qi_vulkan *vulkan)
{
    qi_vulkan_staging *staging = vulkan->staging;
    if (!staging)
        return;
    destroy(vulkan, staging);
    pthread_mutex_destroy(&staging->mutex);
    pthread_mutex_destroy(&staging->queue_mutex);
    qi_host_release(&vulkan->host, staging, 1, sizeof *staging);
    vulkan->staging = NULL;
}

/* The most preferred of the host-visible kinds: coherent, as Vulkan promises one, then cached. */
static uint32_t find_kind(const qi_vulkan *vulkan, uint32_t mask)
{
    const VkMemoryPropertyFlags never =
        VK_MEMORY_PROPERTY_PROTECTED_BIT | QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED;
    uint32_t found = UINT32_MAX;
    int best = -1;
    for (uint32_t i = 0; i < vulkan->memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = vulkan->memory.memoryTypes[i].propertyFlags;
        int rank = (flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT ? 2 : 0) +
                   (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT ? 1 : 0);
        if (!(mask >> i & 1) || !(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) || flags & never ||
            rank <= best)
            continue;
        found = i;
        best = rank;
    }
    return found;
}

static quire_result make_memory(const qi_vulkan *vulkan, qi_vulkan_staging *s)
{
    const VkBufferMemoryRequirementsInfo2 asked = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = s->buffer};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    vulkan->f.GetBufferMemoryRequirements2(vulkan->device, &asked, &needs);
    uint32_t kind = find_kind(vulkan, needs.memoryRequirements.memoryTypeBits);
    if (kind == UINT32_MAX)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "no host-visible memory kind holds buffers: nothing can be staged");
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = needs.memoryRequirements.size,
        .memoryTypeIndex = kind,
    };
    VkResult code = vulkan->f.AllocateMemory(vulkan->device, &info, vulkan->callbacks, &s->memory);
    if (code) {
        s->memory = VK_NULL_HANDLE; /* what a failure leaves there means nothing */
        return qi_vulkan_fail(code, "vkAllocateMemory of %s for staging",
                              qi_bytes(info.allocationSize).text);
    }
    code = vulkan->f.BindBufferMemory(vulkan->device, s->buffer, s->memory, 0);
    if (code)
        return qi_vulkan_fail(code, "vkBindBufferMemory for staging");
    void *bytes = NULL;
    code = vulkan->f.MapMemory(vulkan->device, s->memory, 0, VK_WHOLE_SIZE, 0, &bytes);
    if (code)
        return qi_vulkan_fail(code, "vkMapMemory for staging");
    s->bytes = bytes;
    s->is_coherent =
        vulkan->memory.memoryTypes[kind].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return QUIRE_SUCCESS;
}

static quire_result make_commands(const qi_vulkan *vulkan, qi_vulkan_staging *s, int half)
{
    const VkCommandPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT,
        .queueFamilyIndex = vulkan->queue.family,
    };
    VkResult code =
        vulkan->f.CreateCommandPool(vulkan->device, &pool, vulkan->callbacks, &s->pools[half]);
    if (code) {
        s->pools[half] = VK_NULL_HANDLE;
        return qi_vulkan_fail(code, "vkCreateCommandPool");
    }
    const VkCommandBufferAllocateInfo commands = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = s->pools[half],
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    code = vulkan->f.AllocateCommandBuffers(vulkan->device, &commands, &s->commands[half]);
    if (code)
        return qi_vulkan_fail(code, "vkAllocateCommandBuffers");
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    code = vulkan->f.CreateFence(vulkan->device, &fence, vulkan->callbacks, &s->fences[half]);
    if (code) {
        s->fences[half] = VK_NULL_HANDLE;
        return qi_vulkan_fail(code, "vkCreateFence");
    }
    return QUIRE_SUCCESS;
}

static quire_result make(const qi_vulkan *vulkan, qi_vulkan_staging *s)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = s->half * QI_VULKAN_HALVES,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, &info, vulkan->callbacks, &s->buffer);
    if (code) {
        s->buffer = VK_NULL_HANDLE;
        return qi_vulkan_fail(code, "vkCreateBuffer of %s for staging", qi_bytes(info.size).text);
    }
    quire_result result = make_memory(vulkan, s);
    for (int i = 0; i < QI_VULKAN_HALVES && !result; i++)
        result = make_commands(vulkan, s, i);
    return result;
}

/* ---- the ring ----------------------------------------------------------------------------- */

quire_result qi_vulkan_staging_enter(qi_vulkan *vulkan)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!vulkan->queue.queue)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the device was wrapped without a queue, which this takes");
    pthread_mutex_lock(&s->mutex);
    if (s->is_lost) {
        pthread_mutex_unlock(&s->mutex);
        return quire_backend_fail(QUIRE_ERROR_DEVICE_LOST, VK_ERROR_DEVICE_LOST,
                                  "the device was lost before");
    }
    if (s->is_made)
        return QUIRE_SUCCESS;
    quire_result result = make(vulkan, s);
    s->is_made = !result;
    if (result) {
        destroy(vulkan, s);
        pthread_mutex_unlock(&s->mutex);
    }
    return result;
}

/* With the mutex, and nothing being submitted. */
static bool note_left(qi_vulkan_staging *s)
{
    bool is_left = false;
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        is_left |= s->is_running[i];
    qi_atomic_store_release_u32(&s->is_left, is_left);
    return is_left;
}

quire_result qi_vulkan_staging_leave(qi_vulkan *vulkan, quire_result result)
{
    for (int i = 0; i < QI_VULKAN_HALVES; i++) {
        quire_result awaited = qi_vulkan_staging_await(vulkan, i);
        result = result ? result : awaited;
    }
    note_left(vulkan->staging);
    pthread_mutex_unlock(&vulkan->staging->mutex);
    return result;
}

bool qi_vulkan_staging_settle(qi_vulkan *vulkan)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!qi_atomic_load_acquire_u32(&s->is_left) || vulkan->has_forked)
        return true;
    qi_error before = qi_error_save();
    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        qi_ignore(qi_vulkan_staging_await(vulkan, i));
    bool is_left = note_left(s);
    pthread_mutex_unlock(&s->mutex);
    qi_error_restore(&before);
    return !is_left;
}

quire_result qi_vulkan_staging_await(qi_vulkan *vulkan, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!s->is_running[half])
        return QUIRE_SUCCESS;
    VkResult code = qi_vulkan_wait(vulkan, s->fences[half]);
    /* what could not be waited for runs on, and is waited for again before it is used */
    s->is_running[half] = code && code != VK_ERROR_DEVICE_LOST;
    s->is_signaled[half] = !s->is_running[half];
    s->is_lost |= code == VK_ERROR_DEVICE_LOST;
    return code ? qi_vulkan_fail(code, "vkWaitForFences") : QUIRE_SUCCESS;
}

static quire_result reset_fence(const qi_vulkan *vulkan, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!s->is_signaled[half])
        return QUIRE_SUCCESS;
    VkResult code = vulkan->f.ResetFences(vulkan->device, 1, &s->fences[half]);
    s->is_signaled[half] = code != VK_SUCCESS;
    return code ? qi_vulkan_fail(code, "vkResetFences") : QUIRE_SUCCESS;
}

/* Halves are whole atoms, which are 256 bytes at most. */
static VkMappedMemoryRange half_range(const qi_vulkan_staging *s, int half)
{
    return (VkMappedMemoryRange){
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
        .memory = s->memory,
        .offset = s->half * (uint64_t)half,
        .size = half + 1 == QI_VULKAN_HALVES ? VK_WHOLE_SIZE : s->half,
    };
}

quire_result qi_vulkan_staging_flush(qi_vulkan *vulkan, int half)
{
    VkMappedMemoryRange range = half_range(vulkan->staging, half);
    if (vulkan->staging->is_coherent)
        return QUIRE_SUCCESS;
    VkResult code = vulkan->f.FlushMappedMemoryRanges(vulkan->device, 1, &range);
    return code ? qi_vulkan_fail(code, "vkFlushMappedMemoryRanges for staging") : QUIRE_SUCCESS;
}

quire_result qi_vulkan_staging_invalidate(qi_vulkan *vulkan, int half)
{
    VkMappedMemoryRange range = half_range(vulkan->staging, half);
    if (vulkan->staging->is_coherent)
        return QUIRE_SUCCESS;
    VkResult code = vulkan->f.InvalidateMappedMemoryRanges(vulkan->device, 1, &range);
    return code ? qi_vulkan_fail(code, "vkInvalidateMappedMemoryRanges for staging")
                : QUIRE_SUCCESS;
}

void qi_vulkan_add_barrier(const qi_vulkan *vulkan, VkCommandBuffer commands,
                           VkPipelineStageFlags before, VkPipelineStageFlags behind)
{
    const VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT,
    };
    vulkan->f.CmdPipelineBarrier(commands, before, behind, 0, 1, &barrier, 0, NULL, 0, NULL);
}

quire_result qi_vulkan_staging_begin(qi_vulkan *vulkan, int half)
{
    VkCommandBuffer commands = vulkan->staging->commands[half];
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VkResult code = vulkan->f.ResetCommandPool(vulkan->device, vulkan->staging->pools[half], 0);
    if (code)
        return qi_vulkan_fail(code, "vkResetCommandPool");
    code = vulkan->f.BeginCommandBuffer(commands, &info);
    if (code)
        return qi_vulkan_fail(code, "vkBeginCommandBuffer");
    qi_vulkan_add_barrier(vulkan, commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                          VK_PIPELINE_STAGE_TRANSFER_BIT);
    return QUIRE_SUCCESS;
}

quire_result qi_vulkan_staging_submit(qi_vulkan *vulkan, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    qi_vulkan_add_barrier(vulkan, s->commands[half], VK_PIPELINE_STAGE_TRANSFER_BIT,
                          VK_PIPELINE_STAGE_ALL_COMMANDS_BIT | VK_PIPELINE_STAGE_HOST_BIT);
    VkResult code = vulkan->f.EndCommandBuffer(s->commands[half]);
    if (code)
        return qi_vulkan_fail(code, "vkEndCommandBuffer");
    quire_result result = reset_fence(vulkan, half);
    if (result)
        return result;
    const VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &s->commands[half],
    };
    qi_vulkan_queue_take(vulkan);
    code = vulkan->f.QueueSubmit(vulkan->queue.queue, 1, &info, s->fences[half]);
    qi_vulkan_queue_give(vulkan);
    s->is_lost |= code == VK_ERROR_DEVICE_LOST;
    if (code)
        return qi_vulkan_fail(code, "vkQueueSubmit");
    s->is_running[half] = true;
    return QUIRE_SUCCESS;
}
