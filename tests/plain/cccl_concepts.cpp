/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cccl_concepts.cpp - quire::device_resource against CCCL's own concepts, where the CUDA Toolkit is
 * installed. It is compiled and not run. CCCL 3.1 renamed them; cpp_resources.cpp restates those.
 */
#include <cuda/memory_resource>

#include "quire/quire.hpp"

using resource = quire::device_resource<cuda::mr::device_accessible>;

#if CCCL_VERSION < 3001000
static_assert(cuda::mr::async_resource_with<resource, cuda::mr::device_accessible>);
static_assert(!cuda::mr::resource_with<resource, cuda::mr::host_accessible>);

/* A reference of CCCL takes the resource, and calls it with a stream of CCCL. */
void *allocate(cuda::mr::async_resource_ref<cuda::mr::device_accessible> pool,
               cuda::stream_ref stream);

void *allocate(cuda::mr::async_resource_ref<cuda::mr::device_accessible> pool,
               cuda::stream_ref stream)
{
    return pool.allocate_async(1, 256, stream);
}

void *allocate_from(resource &pool, cuda::stream_ref stream);

void *allocate_from(resource &pool, cuda::stream_ref stream)
{
    return allocate(pool, stream);
}
#endif
