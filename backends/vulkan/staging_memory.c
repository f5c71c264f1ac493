/*
 * staging_memory.c - host-visible memory that copies go through: see staging_memory.h.
 */
#include "backends/vulkan/staging_memory.h"

#include "backends/vulkan/functions.h"
#include "src/base/bits.h"
#include "src/base/result.h"

/* ---- the kind -------------------------------------------------------------------------------- */

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

/* ---- creation -------------------------------------------------------------------------------- */

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

/* ---- flush and invalidate -------------------------------------------------------------------- */

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

quire_result qi_vulkan_staging_memory_invalidate(const qi_vulkan *vulkan,
                                                 const qi_vulkan_staging_memory *memory,
                                                 uint64_t offset, uint64_t size)
{
    VkMappedMemoryRange range = range_of(memory, offset, size);
    if (memory->is_coherent)
        return QUIRE_SUCCESS;
    VkResult code = vulkan->f.InvalidateMappedMemoryRanges(vulkan->device, 1, &range);
    return code ? qi_vulkan_fail(code, "vkInvalidateMappedMemoryRanges for staging")
                : QUIRE_SUCCESS;
}
