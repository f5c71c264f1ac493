/*
 * staging_memory.h - host-visible memory that copies go through: one buffer in one VkDeviceMemory,
 * mapped while it exists. The staging ring has one, and every stream that copies from host memory.
 *
 * The functions take no lock: the owner of the record protects it.
 */
#ifndef QUIRE_BACKENDS_VULKAN_STAGING_MEMORY_H
#define QUIRE_BACKENDS_VULKAN_STAGING_MEMORY_H

#include "backends/vulkan/vulkan.h"

/* Parts that are flushed or invalidated separately begin at multiples of this many bytes: the
   largest nonCoherentAtomSize that Vulkan allows. */
#define QI_VULKAN_STAGING_ALIGNMENT UINT64_C(256)

/* All members are constant from make to destroy. Zero: not made. */
typedef struct qi_vulkan_staging_memory {
    VkDeviceMemory memory;
    VkBuffer buffer;
    char *bytes; /* the mapping */
    uint64_t size;
    bool is_coherent;
} qi_vulkan_staging_memory;

/*
 * Returns the memory kind of the mask for staging memory, UINT32_MAX if none is suitable. If the
 * host reads the memory, a cached kind is best: the host reads uncached memory word by word, and
 * quire invalidates where that is necessary. If the host only writes it, a coherent kind is best,
 * which needs no flush. Among equals, a kind that is not device-local: staging memory leaves the
 * small host-visible heap of a GPU to the program.
 */
uint32_t qi_vulkan_staging_kind(const qi_vulkan *vulkan, uint32_t mask, bool is_read);

/* Creates memory of a size that is a multiple of the alignment. On failure nothing is left. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_memory_make(const qi_vulkan *vulkan, uint64_t size,
                                                          bool is_read,
                                                          qi_vulkan_staging_memory *made);

/* The device must not use it any more. Accepts memory that was not made. */
void qi_vulkan_staging_memory_destroy(const qi_vulkan *vulkan, qi_vulkan_staging_memory *memory);

/* Make the host's writes to a part visible to the device, and the device's to the host. They do
   nothing if the memory is host-coherent. `offset` is a multiple of the alignment. */
QUIRE_MUST_USE quire_result qi_vulkan_staging_memory_flush(const qi_vulkan *vulkan,
                                                           const qi_vulkan_staging_memory *memory,
                                                           uint64_t offset, uint64_t size);
QUIRE_MUST_USE quire_result
qi_vulkan_staging_memory_invalidate(const qi_vulkan *vulkan, const qi_vulkan_staging_memory *memory,
                                    uint64_t offset, uint64_t size);

#endif
