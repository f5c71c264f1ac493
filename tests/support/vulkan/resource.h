/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * resource.h - memory objects of the fake driver, and their resources: buffers and images.
 *
 * A memory object has a list of its resources, ordered by offset; a resource points to its memory.
 * After the memory is freed its resources have no bytes.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_RESOURCE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_RESOURCE_H

#include "tests/support/vulkan/bytes.h"
#include "tests/support/vulkan/device.h"

typedef struct fv_resource fv_resource;

typedef struct fv_bound {
    uint64_t offset, end;
    fv_resource *resource;
} fv_bound;

typedef struct fv_memory {
    fv_object object;
    fv_bytes bytes;
    uint64_t size;
    uint32_t type, heap;
    uint64_t address; /* device address */
    float priority;

    bool mapped;
    uint64_t map_offset, map_size;

    uint64_t dedicated; /* handle of the only resource that may be bound; 0: any */
    bool addressed;     /* VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT */
    bool zeroed;        /* VK_MEMORY_ALLOCATE_ZERO_INITIALIZE_BIT_EXT */
    bool imported;      /* not counted in a heap */
    VkExternalMemoryHandleTypeFlags exportable, imported_as;
    int file; /* of exported and imported bytes; -1: none */

    VkStructureType links[FV_MAX_LINKS];
    uint32_t link_count;

    fv_bound *bound;
    uint32_t bound_count, bound_room;
    uint64_t widest; /* bytes of the largest resource ever bound */
} fv_memory;

/* A request for memory, with the contents of its pNext chain. */
typedef struct fv_request {
    uint64_t size;
    uint32_t type;
    VkMemoryAllocateFlags flags;
    const VkMemoryDedicatedAllocateInfo *dedicated;
    const VkExportMemoryAllocateInfo *exported;
    const VkImportMemoryFdInfoKHR *file;
    const VkImportMemoryHostPointerInfoEXT *pointer;
    const VkMemoryPriorityAllocateInfoEXT *priority;
} fv_request;

/* A part of a sparse resource. */
typedef struct fv_piece {
    uint64_t offset, size; /* in the resource */
    uint64_t memory;       /* a handle */
    uint64_t memory_offset;
} fv_piece;

struct fv_resource {
    fv_object object;
    VkMemoryRequirements needs;
    bool prefers_dedicated, requires_dedicated;
    bool linear; /* buffers, and images of linear tiling */
    bool alias;  /* may share bytes with others */
    bool sparse, guarded /* protected */;
    bool asked; /* the caller queried the requirements */
    bool bound; /* is bound, or was bound */
    VkExternalMemoryHandleTypeFlags external;
    fv_memory *memory; /* NULL: not bound, or freed */
    uint64_t offset;
    fv_piece *pieces; /* of a sparse resource, ordered by offset */
    uint32_t piece_count;
};

typedef struct fv_buffer {
    fv_resource resource;
    uint64_t size;
    VkBufferUsageFlags usage;
    uint64_t sparse_address;
    uint32_t sharing; /* a bit for each family that shares it; 0: exclusive */
    uint32_t owner;   /* of an exclusive buffer: the family that wrote it last, plus 1; 0: none */
} fv_buffer;

static inline fv_device *fv_device_of(const fv_resource *resource)
{
    return resource->object.device;
}

/* memory.c */
void fv_memory_end(fv_memory *memory);

/* external.c: the bytes and the file of imported and exportable memory. */
VkResult fv_external_bytes(fv_device *device, const fv_request *request, fv_memory *memory);
void fv_check_external(fv_device *device, const fv_request *request);
uint32_t fv_host_pointer_types(const fv_layout *layout);

/* external.c: checks the handle types that a buffer or image declares. `call` creates it. */
void fv_check_handle_types(fv_device *device, fv_call call, VkExternalMemoryHandleTypeFlags types);

/* resource.c: the memory types of a resource, and the effect of the options on requirements. Images
   and resources that are to be `alone` get the dedicated allocations of the options. */
uint32_t fv_types_for(const fv_layout *layout, bool transient, bool guarded);
void fv_be_awkward(const fv_device *device, bool image, bool alone, fv_resource *resource);
void fv_tell_requirements(const fv_resource *resource, VkMemoryRequirements2 *out);

/* A query of the requirements of a buffer or an image, by kind and handle. */
void fv_requirements_of(fv_device *device, fv_call call, fv_kind kind, uint64_t handle,
                        VkMemoryRequirements2 *out);

/* The calls that destroy a buffer or an image. */
void fv_resource_destroy(fv_device *device, fv_call call, fv_kind kind, uint64_t handle);
void fv_resource_end(fv_resource *resource, fv_call call);

/* bind.c: adds to and removes from a memory's list. */
void fv_bind(fv_resource *resource, fv_memory *memory, uint64_t offset, fv_call call);
void fv_unbind(fv_resource *resource);

/* buffer.c */
VkResult fv_buffer_describe(fv_device *device, const VkBufferCreateInfo *info, fv_buffer *buffer);

#endif
