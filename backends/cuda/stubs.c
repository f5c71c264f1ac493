/*
 * stubs.c - the functions of quire/cuda.h, quire/cuda_array.h and quire/cuda_pool.h in a build
 * without the backend. They zero their outputs and fail with UNSUPPORTED.
 */
#include "quire/cuda_array.h"
#include "quire/cuda_pool.h"
#include "src/base/result.h"
#include "src/base/stub.h"

static quire_result refuse(void)
{
    return qi_fail(QUIRE_ERROR_UNSUPPORTED, "this build of quire has no CUDA backend");
}

quire_result quire_cuda_open(const quire_cuda_options *options, quire_device **device)
{
    UNUSED(options);
    CLEAR(device, NULL);
    return refuse();
}

quire_result quire_cuda_wrap(const quire_cuda_wrap_options *options, quire_device **device)
{
    UNUSED(options);
    CLEAR(device, NULL);
    return refuse();
}

quire_result quire_cuda_get_info(quire_device *device, quire_cuda_info *info)
{
    UNUSED(device);
    CLEAR(info, (quire_cuda_info){0});
    return refuse();
}

quire_result quire_cuda_get_kind_info(quire_device *device, uint32_t kind,
                                      quire_cuda_kind_info *info)
{
    UNUSED(device);
    UNUSED(kind);
    CLEAR(info, (quire_cuda_kind_info){0});
    return refuse();
}

quire_result quire_cuda_find_kind(quire_device *device, quire_cuda_page_kind page_kind,
                                  int32_t node, uint32_t *kind)
{
    UNUSED(device);
    UNUSED(page_kind);
    UNUSED(node);
    CLEAR(kind, 0);
    return refuse();
}

quire_result quire_cuda_release_kept(quire_device *device)
{
    UNUSED(device);
    return refuse();
}

quire_result quire_cuda_pool_get_info(quire_device *device, quire_cuda_pool_info *info)
{
    UNUSED(device);
    CLEAR(info, (quire_cuda_pool_info){0});
    return refuse();
}

quire_result quire_cuda_pool_trim(quire_device *device, uint64_t keep)
{
    UNUSED(device);
    UNUSED(keep);
    return refuse();
}

quire_result quire_cuda_pool_set_access(quire_device *device, const quire_cuda_access *accesses,
                                        uint32_t count)
{
    UNUSED(device);
    UNUSED(accesses);
    UNUSED(count);
    return refuse();
}

quire_result quire_cuda_pool_get_access(quire_device *device, quire_cuda_access *access)
{
    UNUSED(device);
    if (access)
        access->flags = QUIRE_CUDA_NO_ACCESS;
    return refuse();
}

quire_result quire_cuda_get_range(quire_memory *memory, quire_allocation allocation,
                                  quire_cuda_range *range)
{
    UNUSED(memory);
    UNUSED(allocation);
    CLEAR(range, (quire_cuda_range){0});
    return refuse();
}

quire_result quire_cuda_set_access(quire_memory *memory, quire_allocation allocation,
                                   const quire_cuda_access *accesses, uint32_t count)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(accesses);
    UNUSED(count);
    return refuse();
}

quire_result quire_cuda_get_access(quire_memory *memory, quire_allocation allocation,
                                   quire_cuda_access *access)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(access);
    return refuse();
}

quire_result quire_cuda_export_fd(quire_memory *memory, quire_allocation allocation,
                                  int *descriptor)
{
    UNUSED(memory);
    UNUSED(allocation);
    CLEAR(descriptor, -1);
    return refuse();
}

quire_result quire_cuda_export_ipc(quire_memory *memory, quire_allocation allocation, void *ipc)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(ipc);
    return refuse();
}

quire_result quire_cuda_export_fabric(quire_memory *memory, quire_allocation allocation,
                                      void *fabric)
{
    UNUSED(memory);
    UNUSED(allocation);
    UNUSED(fabric);
    return refuse();
}

quire_result quire_cuda_export_dma_buf(quire_memory *memory, quire_allocation allocation,
                                       int *descriptor)
{
    UNUSED(memory);
    UNUSED(allocation);
    CLEAR(descriptor, -1);
    return refuse();
}

quire_result quire_cuda_import_range(quire_memory *memory, const quire_cuda_import *import,
                                     quire_allocation *allocation)
{
    UNUSED(memory);
    UNUSED(import);
    CLEAR(allocation, (quire_allocation){0});
    return refuse();
}

quire_result quire_cuda_retain_handle(quire_device *device, uint64_t address, uint64_t *handle)
{
    UNUSED(device);
    UNUSED(address);
    CLEAR(handle, 0);
    return refuse();
}

quire_result quire_cuda_release_handle(quire_device *device, uint64_t handle)
{
    UNUSED(device);
    UNUSED(handle);
    return refuse();
}

quire_result quire_cuda_multicast_create(quire_device *device,
                                         const quire_cuda_multicast_options *options,
                                         quire_cuda_multicast **multicast)
{
    UNUSED(device);
    UNUSED(options);
    CLEAR(multicast, NULL);
    return refuse();
}

quire_result quire_cuda_multicast_export_fd(const quire_cuda_multicast *multicast, int *descriptor)
{
    UNUSED(multicast);
    CLEAR(descriptor, -1);
    return refuse();
}

quire_result quire_cuda_multicast_export_fabric(const quire_cuda_multicast *multicast, void *fabric)
{
    UNUSED(multicast);
    UNUSED(fabric);
    return refuse();
}

quire_result quire_cuda_multicast_import(quire_device *device,
                                         const quire_cuda_multicast_import_options *options,
                                         quire_cuda_multicast **multicast)
{
    UNUSED(device);
    UNUSED(options);
    CLEAR(multicast, NULL);
    return refuse();
}

quire_result quire_cuda_multicast_bind_address(quire_cuda_multicast *multicast, uint64_t offset,
                                               uint64_t address, uint64_t size)
{
    UNUSED(multicast);
    UNUSED(offset);
    UNUSED(address);
    UNUSED(size);
    return refuse();
}

quire_result quire_cuda_multicast_bind(quire_cuda_multicast *multicast, uint64_t offset,
                                       quire_memory *memory, quire_allocation allocation)
{
    UNUSED(multicast);
    UNUSED(offset);
    UNUSED(memory);
    UNUSED(allocation);
    return refuse();
}

quire_result quire_cuda_multicast_unbind(quire_cuda_multicast *multicast, int32_t ordinal,
                                         uint64_t offset, uint64_t size)
{
    UNUSED(multicast);
    UNUSED(ordinal);
    UNUSED(offset);
    UNUSED(size);
    return refuse();
}

quire_result quire_cuda_multicast_get_info(const quire_cuda_multicast *multicast,
                                           quire_cuda_multicast_info *info)
{
    UNUSED(multicast);
    CLEAR(info, (quire_cuda_multicast_info){0});
    return refuse();
}

quire_result quire_cuda_multicast_map(quire_cuda_multicast *multicast, int32_t ordinal,
                                      uint64_t *address)
{
    UNUSED(multicast);
    UNUSED(ordinal);
    CLEAR(address, 0);
    return refuse();
}

quire_result quire_cuda_multicast_unmap(quire_cuda_multicast *multicast, int32_t ordinal)
{
    UNUSED(multicast);
    UNUSED(ordinal);
    return refuse();
}

quire_result quire_cuda_multicast_destroy(quire_cuda_multicast **multicast)
{
    UNUSED(multicast);
    return refuse();
}

quire_result quire_cuda_array_create(quire_memory *memory, const quire_cuda_array_options *options,
                                     quire_image *image)
{
    UNUSED(memory);
    UNUSED(options);
    CLEAR(image, (quire_image){{0}});
    return refuse();
}

quire_result quire_cuda_array_get_info(quire_memory *memory, quire_image image,
                                       quire_cuda_array_info *info)
{
    UNUSED(memory);
    UNUSED(image);
    CLEAR(info, (quire_cuda_array_info){0});
    return refuse();
}

quire_result quire_cuda_stream_wrap(quire_device *device, void *native, const char *name,
                                    quire_stream **stream)
{
    UNUSED(device);
    UNUSED(native);
    UNUSED(name);
    CLEAR(stream, NULL);
    return refuse();
}

quire_result quire_cuda_stream_get(quire_stream *stream, void **native)
{
    UNUSED(stream);
    CLEAR(native, NULL);
    return refuse();
}
