/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quire/cuda_pool.h - the memory pool (CUmemoryPool) from which a device creates pages of kind
 * QUIRE_CUDA_POOL: its bytes, trimming, and access of other devices. quire_cuda_settings.pool
 * selects the pool. The rules of quire/cuda.h on threads and errors hold here.
 *
 * A program may share the pool with other libraries. The numbers and the access are those of the
 * whole pool.
 */
#ifndef QUIRE_CUDA_POOL_H
#define QUIRE_CUDA_POOL_H

#include "quire/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quire_cuda_pool_info {
    void *pool; /* CUmemoryPool */
    quire_cuda_pool_source source;
    uint64_t reserved;          /* bytes that the pool holds of the device's memory */
    uint64_t reserved_high;     /* their maximum since the pool's creation or the last reset */
    uint64_t used;              /* bytes allocated from the pool: by quire and by others */
    uint64_t used_high;         /* their maximum, likewise */
    uint64_t release_threshold; /* bytes that the pool keeps beyond the used ones */
    uint64_t unused[4];
} quire_cuda_pool_info;

/*
 * Queries the driver for the numbers of the device's pool. Errors: INVALID_ARGUMENT, UNSUPPORTED
 * (the device has no kind QUIRE_CUDA_POOL), and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_pool_get_info(const quire_device *device,
                                                               quire_cuda_pool_info *info);

/*
 * Releases bytes that the pool holds and nobody uses, until at most `keep` bytes are reserved
 * (cuMemPoolTrimTo). 0: all of them. Empty pages of quire's memories count as used:
 * quire_memory_trim releases them first. Errors as quire_cuda_pool_get_info.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_pool_trim(quire_device *device, uint64_t keep);

/*
 * Sets in one call what each of `count` devices may do with all memory of the pool
 * (cuMemPoolSetAccess), present and future. Other devices keep their access. The caller ensures
 * that nothing works on the memory during the call. Errors: INVALID_ARGUMENT (as
 * quire_cuda_set_access, or less than read and write for the device itself), UNSUPPORTED (no pool;
 * a location other than a device; or a device that cannot access this one), and errors of the
 * driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_pool_set_access(quire_device *device,
                                                                 const quire_cuda_access *accesses,
                                                                 uint32_t count);

/*
 * Queries the driver for the access of the location in *access to the pool and writes its flags.
 * Errors: INVALID_ARGUMENT, UNSUPPORTED (no pool), and errors of the driver.
 */
QUIRE_API QUIRE_MUST_USE quire_result quire_cuda_pool_get_access(const quire_device *device,
                                                                 quire_cuda_access *access);

#ifdef __cplusplus
}
#endif

#endif
