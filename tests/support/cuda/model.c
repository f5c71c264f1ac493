/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * model.c - see model.h.
 */
#include "tests/support/cuda/model.h"

#include <stddef.h>
#include <string.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

#define COMMON                                                                                     \
    (FC_VMM | FC_POSIX_FD | FC_POOLS | FC_MANAGED_MEMORY | FC_CONCURRENT_MANAGED | FC_REGISTER |   \
     FC_SPARSE_ARRAYS | FC_DEFERRED_ARRAYS | FC_COMPRESSION | FC_RDMA | FC_DMA_BUF)

static const fc_model MODELS[] = {
    /* a data centre GPU in a machine outside a fabric */
    {.name = "h200",
     .bytes = 141 * GIB,
     .major = 9,
     .features = COMMON | FC_COMPRESSES | FC_FABRIC | FC_MULTICAST | FC_HOST_NUMA_VMM | FC_HOST_VMM,
     .granularity = 2 * MIB},
    {.name = "a100",
     .bytes = 80 * GIB,
     .major = 8,
     .features = COMMON | FC_COMPRESSES,
     .granularity = 2 * MIB},
    /* the memory of the processor is as near as its own and has larger pages */
    {.name = "gh200",
     .bytes = 96 * GIB,
     .major = 9,
     .features = COMMON | FC_COMPRESSES | FC_FABRIC | FC_FABRIC_PERMITTED | FC_MULTICAST |
                 FC_HOST_NUMA_VMM | FC_HOST_VMM | FC_PAGEABLE | FC_DECOMPRESS,
     .granularity = 2 * MIB,
     .host_granularity = 4 * MIB,
     .multicast_granularity = 512 * MIB},
    /* on one chip with the processor; its handles cannot be exported */
    {.name = "orin",
     .bytes = 30 * GIB,
     .major = 8,
     .minor = 7,
     .features = FC_VMM | FC_MANAGED_MEMORY | FC_INTEGRATED | FC_POOLS,
     .granularity = 64 << 10,
     .recommended = 2 * MIB,
     .host_node = -1},
    /* a virtual GPU whose addresses the hypervisor manages */
    {.name = "vgpu",
     .bytes = 16 * GIB,
     .major = 7,
     .minor = 5,
     .features = 0,
     .granularity = 2 * MIB,
     .host_node = -1},
};

const fc_model *fc_model_named(const char *name)
{
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++)
        if (!strcmp(MODELS[i].name, name))
            return &MODELS[i];
    return NULL;
}
