/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * model.h - the device models of the fake CUDA driver: a few real products, which tests copy and
 * change.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_MODEL_H
#define QUIRE_TESTS_SUPPORT_CUDA_MODEL_H

#include <stdint.h>

#define FC_MAX_DEVICES 8

/*
 * What a device offers.
 *
 * FABRIC: the attribute. Without FABRIC_PERMITTED creating such memory is NOT_PERMITTED, as on
 * machines where no daemon admits the process to the fabric.
 *
 * SINGLE_TAIL: sparse arrays have one mip tail for all layers; arrays without levels consist of the
 * tail.
 *
 * COMPRESSES: requested compression is granted. Without it COMPRESSION is the attribute only, and
 * reading the properties back shows that it was not granted.
 *
 * RDMA_REFUSED, FD_REFUSED: creating such memory is NOT_SUPPORTED in spite of the attribute.
 * RDMA_INACCESSIBLE: it is created and mapped, and setting its access is UNKNOWN, as on WSL2.
 * RDMA_UNGRANTED: reading the properties back shows that it was not granted.
 */
#define FC_VMM (UINT32_C(1) << 0)
#define FC_POSIX_FD (UINT32_C(1) << 1)
#define FC_FABRIC (UINT32_C(1) << 2)
#define FC_FABRIC_PERMITTED (UINT32_C(1) << 3)
#define FC_COMPRESSION (UINT32_C(1) << 4)
#define FC_COMPRESSES (UINT32_C(1) << 5)
#define FC_RDMA (UINT32_C(1) << 6)
#define FC_DMA_BUF (UINT32_C(1) << 7)
#define FC_MULTICAST (UINT32_C(1) << 8)
#define FC_HOST_NUMA_VMM (UINT32_C(1) << 9)
#define FC_HOST_VMM (UINT32_C(1) << 10)
#define FC_SPARSE_ARRAYS (UINT32_C(1) << 11)
#define FC_DEFERRED_ARRAYS (UINT32_C(1) << 12)
#define FC_POOLS (UINT32_C(1) << 13)
#define FC_MANAGED_MEMORY (UINT32_C(1) << 14)
#define FC_CONCURRENT_MANAGED (UINT32_C(1) << 15)
#define FC_INTEGRATED (UINT32_C(1) << 16)
#define FC_PAGEABLE (UINT32_C(1) << 17)
#define FC_REGISTER (UINT32_C(1) << 18)
#define FC_DECOMPRESS (UINT32_C(1) << 19)
#define FC_SINGLE_TAIL (UINT32_C(1) << 20)
#define FC_RDMA_REFUSED (UINT32_C(1) << 24)
#define FC_FD_REFUSED (UINT32_C(1) << 25)
#define FC_RDMA_INACCESSIBLE (UINT32_C(1) << 26)
#define FC_RDMA_UNGRANTED (UINT32_C(1) << 27)

typedef struct fc_model {
    const char *name;
    uint64_t bytes;                  /* of memory */
    int major, minor;                /* compute capability */
    uint32_t features;               /* FC_VMM, ... */
    uint64_t granularity;            /* of physical memory of the device, a power of two */
    uint64_t recommended;            /* the same, RECOMMENDED; 0: granularity */
    uint64_t host_granularity;       /* of physical memory of the host; 0: granularity */
    uint64_t compressed_granularity; /* for compressed memory; 0: granularity */
    uint64_t rdma_granularity;       /* for RDMA memory; 0: granularity */
    uint64_t multicast_granularity;  /* 0: granularity */
    uint64_t multicast_recommended;  /* the same, RECOMMENDED; 0: the same number */
    uint64_t texture_alignment, pitch_alignment; /* 0: 512, 32 */
    int host_node; /* NUMA node of the host nearest to it; -1: unknown */
} fc_model;

/* "h200", "a100", "gh200", "orin", "vgpu"; NULL for any other name. */
const fc_model *fc_model_named(const char *name);

#endif
