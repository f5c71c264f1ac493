/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * nvToolsExtMem.h - stands in for NVIDIA's header of this name: the part of NVTX that the adapter
 * calls, so that it is compiled and tested without it. The functions are the test's.
 */
#ifndef QUIRE_TESTS_SUPPORT_NVTX_NVTOOLSEXTMEM_H
#define QUIRE_TESTS_SUPPORT_NVTX_NVTOOLSEXTMEM_H

#include <stddef.h>
#include <stdint.h>

#define NVTX_EXT_COMPATID_MEM 0x0102
#define NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR 0x1
#define NVTX_MEM_TYPE_VIRTUAL_ADDRESS 0x1
#define NVTX_MEM_REGION_REF_TYPE_POINTER 0x1

typedef struct nvtx_domain *nvtxDomainHandle_t;
typedef struct nvtx_heap *nvtxMemHeapHandle_t;
typedef struct nvtx_region *nvtxMemRegionHandle_t;

typedef union nvtxMemRegionRef_t {
    void const *pointer;
    nvtxMemRegionHandle_t handle;
} nvtxMemRegionRef_t;

typedef struct nvtxMemVirtualRangeDesc_t {
    size_t size;
    void const *ptr;
} nvtxMemVirtualRangeDesc_t;

typedef struct nvtxMemHeapDesc_t {
    uint16_t extCompatID, structSize;
    uint32_t reserved0;
    uint32_t usage;
    uint32_t type;
    size_t typeSpecificDescSize;
    void const *typeSpecificDesc;
    uint32_t category;
    uint32_t messageType;
    void const *message;
} nvtxMemHeapDesc_t;

typedef struct nvtxMemRegionsRegisterBatch_t {
    uint16_t extCompatID, structSize;
    uint32_t regionType;
    nvtxMemHeapHandle_t heap;
    size_t regionCount;
    size_t regionDescElementSize;
    void const *regionDescElements;
    nvtxMemRegionHandle_t *regionHandleElementsOut;
} nvtxMemRegionsRegisterBatch_t;

typedef struct nvtxMemRegionsUnregisterBatch_t {
    uint16_t extCompatID, structSize;
    uint32_t refType;
    size_t refCount;
    size_t refElementSize;
    nvtxMemRegionRef_t const *refElements;
} nvtxMemRegionsUnregisterBatch_t;

nvtxDomainHandle_t nvtxDomainCreateA(const char *name);
void nvtxDomainDestroy(nvtxDomainHandle_t domain);
nvtxMemHeapHandle_t nvtxMemHeapRegister(nvtxDomainHandle_t domain, nvtxMemHeapDesc_t const *desc);
void nvtxMemHeapUnregister(nvtxDomainHandle_t domain, nvtxMemHeapHandle_t heap);
void nvtxMemRegionsRegister(nvtxDomainHandle_t domain, nvtxMemRegionsRegisterBatch_t const *desc);
void nvtxMemRegionsUnregister(nvtxDomainHandle_t domain,
                              nvtxMemRegionsUnregisterBatch_t const *desc);

#endif
