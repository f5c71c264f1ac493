/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * staging.c - staging memory and the staging ring: see staging.h.
 *
 * The ring has its memory, and for each half a command pool, a command buffer and a fence. Nothing
 * of it exists before the first call that needs it.
 */
#include "backends/vulkan/staging.h"

#include <string.h>

#include "backends/vulkan/functions.h"
#include "backends/vulkan/queues.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- staging memory: the kind ------------------------------------------------------------- */

static int rank_of(VkMemoryPropertyFlags flags, bool is_read)
{
    int cached = flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT ? 1 : 0;
    int coherent = flags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT ? 1 : 0;
    int is_far = flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? 0 : 1;
    return is_read ? cached * 4 + coherent * 2 + is_far : coherent * 4 + is_far * 2 + cached;
}

uint32_t qi_vulkan_staging_kind(const qi_vulkan *vulkan, uint32_t mask, bool is_read)
{
    const VkMemoryPropertyFlags never =
        VK_MEMORY_PROPERTY_PROTECTED_BIT | QUIRE_DEVICE_COHERENT | QUIRE_DEVICE_UNCACHED;
    uint32_t found = UINT32_MAX;
    int best = -1;
    for (uint32_t i = 0; i < vulkan->memory.memoryTypeCount; i++) {
        VkMemoryPropertyFlags flags = vulkan->memory.memoryTypes[i].propertyFlags;
        int rank = rank_of(flags, is_read);
        if (!(mask >> i & 1) || !(flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) || flags & never ||
            rank <= best)
            continue;
        found = i;
        best = rank;
    }
    return found;
}

/* ---- staging memory: creation ------------------------------------------------------------- */

/* Allocates, binds and maps the memory. The caller destroys what a failure leaves. */
static quire_result make_memory(const qi_vulkan *vulkan, bool is_read, qi_vulkan_staging_memory *m)
{
    const VkBufferMemoryRequirementsInfo2 query = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = m->buffer};
    VkMemoryRequirements2 requirements = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2};
    vulkan->f.GetBufferMemoryRequirements2(vulkan->device, &query, &requirements);
    uint32_t kind =
        qi_vulkan_staging_kind(vulkan, requirements.memoryRequirements.memoryTypeBits, is_read);
    if (kind == UINT32_MAX)
        return quire_backend_fail(
            QUIRE_ERROR_UNSUPPORTED, 0,
            "no host-visible memory kind holds buffers: staging is not possible");
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = requirements.memoryRequirements.size,
        .memoryTypeIndex = kind,
    };
    VkResult code = vulkan->f.AllocateMemory(vulkan->device, &info, vulkan->callbacks, &m->memory);
    if (code) {
        m->memory = VK_NULL_HANDLE; /* undefined after a failure */
        return qi_vulkan_fail(code, "vkAllocateMemory of %s for staging",
                              qi_bytes(info.allocationSize).text);
    }
    code = vulkan->f.BindBufferMemory(vulkan->device, m->buffer, m->memory, 0);
    if (code)
        return qi_vulkan_fail(code, "vkBindBufferMemory for staging");
    void *bytes = NULL;
    code = vulkan->f.MapMemory(vulkan->device, m->memory, 0, VK_WHOLE_SIZE, 0, &bytes);
    if (code)
        return qi_vulkan_fail(code, "vkMapMemory for staging");
    m->bytes = bytes;
    m->is_coherent =
        vulkan->memory.memoryTypes[kind].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    return QUIRE_SUCCESS;
}

/* The buffer is only a source and a target of transfers. */
quire_result qi_vulkan_staging_memory_make(const qi_vulkan *vulkan, uint64_t size, bool is_read,
                                           qi_vulkan_staging_memory *made)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    *made = (qi_vulkan_staging_memory){.size = size};
    VkResult code = vulkan->f.CreateBuffer(vulkan->device, &info, vulkan->callbacks, &made->buffer);
    if (code) {
        *made = (qi_vulkan_staging_memory){0};
        return qi_vulkan_fail(code, "vkCreateBuffer of %s for staging", qi_bytes(size).text);
    }
    quire_result result = make_memory(vulkan, is_read, made);
    if (result)
        qi_vulkan_staging_memory_destroy(vulkan, made);
    return result;
}

void qi_vulkan_staging_memory_destroy(const qi_vulkan *vulkan, qi_vulkan_staging_memory *memory)
{
    const qi_vulkan_functions *f = &vulkan->f;
    if (memory->buffer)
        f->DestroyBuffer(vulkan->device, memory->buffer, vulkan->callbacks);
    if (memory->memory) /* also unmaps it */
        f->FreeMemory(vulkan->device, memory->memory, vulkan->callbacks);
    *memory = (qi_vulkan_staging_memory){0};
}

/* ---- staging memory: flush and invalidate ------------------------------------------------- */

/* The end is rounded up to the alignment, which is a multiple of nonCoherentAtomSize. */
static VkMappedMemoryRange range_of(const qi_vulkan_staging_memory *m, uint64_t offset,
                                    uint64_t size)
{
    uint64_t end = offset + size;
    end += qi_padding(end, QI_VULKAN_STAGING_ALIGNMENT);
    return (VkMappedMemoryRange){
        .sType = VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE,
        .memory = m->memory,
        .offset = offset,
        .size = end >= m->size ? VK_WHOLE_SIZE : end - offset,
    };
}

quire_result qi_vulkan_staging_memory_flush(const qi_vulkan *vulkan,
                                            const qi_vulkan_staging_memory *memory, uint64_t offset,
                                            uint64_t size)
{
    VkMappedMemoryRange range = range_of(memory, offset, size);
    if (memory->is_coherent)
        return QUIRE_SUCCESS;
    VkResult code = vulkan->f.FlushMappedMemoryRanges(vulkan->device, 1, &range);
    return code ? qi_vulkan_fail(code, "vkFlushMappedMemoryRanges for staging") : QUIRE_SUCCESS;
}

static quire_result invalidate_memory(const qi_vulkan *vulkan,
                                      const qi_vulkan_staging_memory *memory, uint64_t offset,
                                      uint64_t size)
{
    VkMappedMemoryRange range = range_of(memory, offset, size);
    if (memory->is_coherent)
        return QUIRE_SUCCESS;
    VkResult code = vulkan->f.InvalidateMappedMemoryRanges(vulkan->device, 1, &range);
    return code ? qi_vulkan_fail(code, "vkInvalidateMappedMemoryRanges for staging")
                : QUIRE_SUCCESS;
}

/* ---- the ring: creation ------------------------------------------------------------------- */

quire_result qi_vulkan_staging_init(qi_vulkan *vulkan)
{
    qi_vulkan_staging *staging = qi_host_allocate(&vulkan->host, 1, sizeof *staging);
    if (!staging)
        return qi_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, "no host memory for a staging record");
    pthread_mutex_init(&staging->mutex, NULL);
    pthread_mutex_init(&staging->queue_mutex, NULL);
    staging->half = qi_align_down(vulkan->settings.staging_size / QI_VULKAN_HALVES,
                                  QI_VULKAN_STAGING_ALIGNMENT);
    vulkan->staging = staging;
    return QUIRE_SUCCESS;
}

/* Waits for the work of the ring and destroys its objects. Accepts a partly created ring. Errors of
   the waits are dropped: no call is left to return them. */
static void destroy(const qi_vulkan *vulkan, qi_vulkan_staging *s)
{
    const qi_vulkan_functions *f = &vulkan->f;
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        if (s->is_running[i])
            qi_vulkan_wait_fence(vulkan, s->fences[i]);
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        if (s->fences[i])
            f->DestroyFence(vulkan->device, s->fences[i], vulkan->callbacks);
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        if (s->pools[i])
            f->DestroyCommandPool(vulkan->device, s->pools[i], vulkan->callbacks);
    qi_vulkan_staging_memory_destroy(vulkan, &s->memory);
    memset(s->fences, 0, sizeof s->fences);
    memset(s->pools, 0, sizeof s->pools);
    s->is_made = false;
}

void qi_vulkan_staging_destroy(qi_vulkan *vulkan)
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

/* Creates the commands and the fence of a half. The caller destroys what a failure leaves. */
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
    quire_result result =
        qi_vulkan_staging_memory_make(vulkan, s->half * QI_VULKAN_HALVES, true, &s->memory);
    for (int i = 0; i < QI_VULKAN_HALVES && !result; i++)
        result = make_commands(vulkan, s, i);
    return result;
}

/* ---- the ring: use ------------------------------------------------------------------------ */

/* Returns with the mutex locked on success, and unlocked on failure. */
quire_result qi_vulkan_staging_acquire(qi_vulkan *vulkan)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!vulkan->queue.queue)
        return quire_backend_fail(QUIRE_ERROR_UNSUPPORTED, 0,
                                  "the device was wrapped without a queue, which this call needs");
    quire_result held = qi_vulkan_check_queue(vulkan);
    if (held)
        return held;
    pthread_mutex_lock(&s->mutex);
    if (s->is_lost) {
        pthread_mutex_unlock(&s->mutex);
        return quire_backend_fail(QUIRE_ERROR_DEVICE_LOST, VK_ERROR_DEVICE_LOST,
                                  "the device was lost in an earlier call");
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

/* Records whether a half is still running, and returns it. Requires the mutex. */
static bool note_pending(qi_vulkan_staging *s)
{
    bool is_running = false;
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        is_running |= s->is_running[i];
    qi_atomic_store_release_u32(&s->has_pending, is_running);
    return is_running;
}

/* Waits for both halves even after a failure, because the caller reuses its memory afterwards. */
quire_result qi_vulkan_staging_release(qi_vulkan *vulkan, quire_result result)
{
    for (int i = 0; i < QI_VULKAN_HALVES; i++) {
        quire_result awaited = qi_vulkan_staging_wait(vulkan, i);
        result = result ? result : awaited;
    }
    note_pending(vulkan->staging);
    pthread_mutex_unlock(&vulkan->staging->mutex);
    return result;
}

/* The common case reads one atomic and takes no lock. In the child of a fork no work is running. */
bool qi_vulkan_staging_retire(qi_vulkan *vulkan)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!qi_atomic_load_acquire_u32(&s->has_pending) || vulkan->has_forked)
        return true;
    qi_error before;
    qi_error_save(&before);
    pthread_mutex_lock(&s->mutex);
    for (int i = 0; i < QI_VULKAN_HALVES; i++)
        qi_ignore(qi_vulkan_staging_wait(vulkan, i));
    bool has_pending = note_pending(s);
    pthread_mutex_unlock(&s->mutex);
    qi_error_restore(&before);
    return !has_pending;
}

/* After a device loss nothing is running. After another failed wait the half counts as running. */
quire_result qi_vulkan_staging_wait(qi_vulkan *vulkan, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!s->is_running[half])
        return QUIRE_SUCCESS;
    VkResult code = qi_vulkan_wait_fence(vulkan, s->fences[half]);
    s->is_running[half] = code && code != VK_ERROR_DEVICE_LOST;
    s->is_signaled[half] = !s->is_running[half];
    s->is_lost |= code == VK_ERROR_DEVICE_LOST;
    return code ? qi_vulkan_fail(code, "vkWaitForFences") : QUIRE_SUCCESS;
}

/* A fence must be unsignaled when it is submitted. */
static quire_result reset_fence(const qi_vulkan *vulkan, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    if (!s->is_signaled[half])
        return QUIRE_SUCCESS;
    VkResult code = vulkan->f.ResetFences(vulkan->device, 1, &s->fences[half]);
    s->is_signaled[half] = code != VK_SUCCESS;
    return code ? qi_vulkan_fail(code, "vkResetFences") : QUIRE_SUCCESS;
}

quire_result qi_vulkan_staging_flush(qi_vulkan *vulkan, int half)
{
    const qi_vulkan_staging *s = vulkan->staging;
    return qi_vulkan_staging_memory_flush(vulkan, &s->memory, s->half * (uint64_t)half, s->half);
}

quire_result qi_vulkan_staging_invalidate(qi_vulkan *vulkan, int half)
{
    const qi_vulkan_staging *s = vulkan->staging;
    return invalidate_memory(vulkan, &s->memory, s->half * (uint64_t)half, s->half);
}

/* ALL_COMMANDS as the first scope orders the transfers after everything submitted before. */
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
    qi_vulkan_record_barrier(vulkan, commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                             VK_PIPELINE_STAGE_TRANSFER_BIT);
    return QUIRE_SUCCESS;
}

/* The last barrier includes the host stage, because the host reads the ring after its wait. */
quire_result qi_vulkan_staging_submit(qi_vulkan *vulkan, int half)
{
    qi_vulkan_staging *s = vulkan->staging;
    qi_vulkan_record_barrier(vulkan, s->commands[half], VK_PIPELINE_STAGE_TRANSFER_BIT,
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
    qi_vulkan_queue_lock(vulkan);
    code = vulkan->f.QueueSubmit(vulkan->queue.queue, 1, &info, s->fences[half]);
    qi_vulkan_queue_unlock(vulkan);
    s->is_lost |= code == VK_ERROR_DEVICE_LOST;
    if (code)
        return qi_vulkan_fail(code, "vkQueueSubmit");
    s->is_running[half] = true;
    return QUIRE_SUCCESS;
}
