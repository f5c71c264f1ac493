/*
 * chain.h - VkMemoryAllocateInfo of a page, and what is chained to it.
 */
#ifndef QUIRE_BACKENDS_VULKAN_CHAIN_H
#define QUIRE_BACKENDS_VULKAN_CHAIN_H

#include "backends/vulkan/external.h"

/* The structs point to each other: it stays where it was described. */
typedef struct qi_vulkan_chain {
    VkMemoryAllocateInfo info;
    VkMemoryAllocateFlagsInfo flags;
    VkMemoryPriorityAllocateInfoEXT priority;
    VkMemoryDedicatedAllocateInfo dedicated;
    VkExportMemoryAllocateInfo exported;
    qi_vulkan_import_link imported;
} qi_vulkan_chain;

/* UNSUPPORTED: memory that cannot be imported here. */
QUIRE_MUST_USE quire_result qi_vulkan_chain_describe(const qi_vulkan *vulkan,
                                                     const quire_page_request *request,
                                                     qi_vulkan_chain *chain);

#endif
