/*
 * chain.h - VkMemoryAllocateInfo of a page with its pNext chain.
 */
#ifndef QUIRE_BACKENDS_VULKAN_CHAIN_H
#define QUIRE_BACKENDS_VULKAN_CHAIN_H

#include "backends/vulkan/external.h"

/* The structs point to each other, so that a chain must not be moved or copied. */
typedef struct qi_vulkan_chain {
    VkMemoryAllocateInfo info;
    VkMemoryAllocateFlagsInfo flags;
    VkMemoryPriorityAllocateInfoEXT priority;
    VkMemoryDedicatedAllocateInfo dedicated;
    VkExportMemoryAllocateInfo exported;
    qi_vulkan_import_link imported;
} qi_vulkan_chain;

/* Whether the driver makes the page with zeros: it can, and the page is wanted so. Vulkan makes
   neither imported nor protected memory with zeros. */
bool qi_vulkan_makes_zeros(const qi_vulkan *vulkan, const quire_page_request *request);

/* Fills in the chain for a page. UNSUPPORTED: the platform cannot import the memory, or the device
   cannot export it. */
QUIRE_MUST_USE quire_result qi_vulkan_chain_describe(const qi_vulkan *vulkan,
                                                     const quire_page_request *request,
                                                     qi_vulkan_chain *chain);

#endif
