/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tool.c - a tool that receives NVTX calls as sanitizers do: a library that NVTX loads because
 * NVTX_INJECTION64_PATH names it. It counts the calls and keeps the last range of each kind.
 */
#include "tests/support/nvtx/tool.h"

#include <nvtx3/nvToolsExtMem.h>
#include <string.h>

#define VISIBLE __attribute__((visibility("default")))

static nvtx_calls calls;

VISIBLE const nvtx_calls *nvtx_tool(void)
{
    return &calls;
}

static void take(const void *desc, size_t size, nvtx_range *last)
{
    nvtxMemVirtualRangeDesc_t range;
    calls.wrong += size != sizeof range;
    memcpy(&range, desc, sizeof range);
    *last = (nvtx_range){range.ptr, range.size};
}

static nvtxMemHeapHandle_t register_heap(nvtxDomainHandle_t domain, nvtxMemHeapDesc_t const *desc)
{
    (void)domain;
    calls.wrong += desc->extCompatID != NVTX_EXT_COMPATID_MEM || desc->structSize != sizeof *desc ||
                   desc->usage != NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR ||
                   desc->type != NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
    take(desc->typeSpecificDesc, desc->typeSpecificDescSize, &calls.heap);
    calls.heaps++;
    return (nvtxMemHeapHandle_t)(uintptr_t)calls.heap.begin;
}

static void unregister_heap(nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap)
{
    (void)domain;
    calls.wrong += (const void *)heap != calls.heap.begin;
    calls.heaps_ended++;
}

static void register_regions(nvtxDomainHandle_t domain, nvtxMemRegionsRegisterBatch_t const *desc)
{
    (void)domain;
    calls.wrong += desc->extCompatID != NVTX_EXT_COMPATID_MEM || desc->structSize != sizeof *desc ||
                   (const void *)desc->heap != calls.heap.begin || desc->regionCount != 1;
    take(desc->regionDescElements, desc->regionDescElementSize, &calls.region);
    calls.regions++;
}

static void unregister_regions(nvtxDomainHandle_t domain,
                               nvtxMemRegionsUnregisterBatch_t const *desc)
{
    (void)domain;
    calls.wrong += desc->refCount != 1 || desc->refType != NVTX_MEM_REGION_REF_TYPE_POINTER ||
                   desc->refElements->pointer != calls.region.begin;
    calls.regions_ended++;
}

/* NVTX calls this function for each of its extensions. */
VISIBLE int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module);

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
    if (module->moduleId != NVTX_EXT_MODULEID_MEM || module->compatId != NVTX_EXT_COMPATID_MEM)
        return 0;
    intptr_t *slots = module->segments[0].functionSlots;
    slots[NVTX3EXT_CBID_nvtxMemHeapRegister] = (intptr_t)register_heap;
    slots[NVTX3EXT_CBID_nvtxMemHeapUnregister] = (intptr_t)unregister_heap;
    slots[NVTX3EXT_CBID_nvtxMemRegionsRegister] = (intptr_t)register_regions;
    slots[NVTX3EXT_CBID_nvtxMemRegionsUnregister] = (intptr_t)unregister_regions;
    return 1;
}
