/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * chain.c - reads and checks the pNext chains of callers.
 */
#include "tests/support/vulkan/driver.h"

const void *fv_chained(const void *chain, VkStructureType type)
{
    const VkBaseInStructure *link = chain;
    while (link && link->sType != type)
        link = link->pNext;
    return link;
}

/* Structs that the loader and layers put in front of the caller's. */
static bool is_the_loaders(VkStructureType type)
{
    return type == VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
           type == VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO;
}

void fv_check_chain(fv_driver *driver, fv_call call, const void *chain, size_t count,
                    const VkStructureType *types)
{
    for (const VkBaseInStructure *link = chain; link; link = link->pNext) {
        bool known = is_the_loaders(link->sType);
        for (size_t i = 0; i < count; i++)
            known |= types[i] == link->sType;
        if (!known)
            fv_say(driver, FV_WARNING, "fv-chain", call, "the fake knows no struct of type %d here",
                   (int)link->sType);
        if (!is_the_loaders(link->sType) && fv_chained(link->pNext, link->sType))
            fv_say(driver, FV_ERROR, "fv-chain-unique", call, "a struct of type %d is there twice",
                   (int)link->sType);
    }
}
