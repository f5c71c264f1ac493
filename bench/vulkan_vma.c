/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_vma.c - the functions of VMA's subjects on a Vulkan device: see vulkan_memories.h. Where
 * quire gets a page size, VMA gets a pool of blocks of that size.
 */
#include "bench/vulkan_memories.h"

#include <stdlib.h>
#include <string.h>

#include "bench/mock_driver.h"
#include "quire/vulkan.h"

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>

#include "bench/vma_functions.h"

_Static_assert(VMA_MIN_TIME == VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT, "VMA's value");

#define MAPPED                                                                                     \
    ((VmaAllocationCreateFlags)(VMA_ALLOCATION_CREATE_MAPPED_BIT |                                 \
                                VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT))

/* The two handles of a buffer or image. Unused records form a list by `next`. */
typedef struct vma_object {
    VkBuffer buffer;
    VkImage image;
    VmaAllocation allocation;
    uint64_t next;
} vma_object;

typedef struct vma_state {
    quire_device *device;
    VmaAllocator allocator;
    VmaAllocationCreateInfo request;
    vma_object *objects; /* indexed from 1 */
    uint64_t first;      /* the first unused record; 0 means none */
} vma_state;

void destroy_vma(void *user)
{
    vma_state *state = user;
    if (state->allocator)
        vmaDestroyPool(state->allocator, state->request.pool);
    vmaDestroyAllocator(state->allocator);
    quire_device_destroy(&state->device);
    free(state->objects);
    free(state);
}

static VKAPI_ATTR void VKAPI_CALL count_made(VmaAllocator allocator, uint32_t type,
                                             VkDeviceMemory memory, VkDeviceSize size, void *user)
{
    (void)allocator;
    (void)type;
    (void)memory;
    (void)size;
    (void)user;
    qi_atomic_add_u64(&the_driver.made, 1);
}

static VKAPI_ATTR void VKAPI_CALL count_given(VmaAllocator allocator, uint32_t type,
                                              VkDeviceMemory memory, VkDeviceSize size, void *user)
{
    (void)allocator;
    (void)type;
    (void)memory;
    (void)size;
    (void)user;
    qi_atomic_add_u64(&the_driver.given, 1);
}

/* Passes VMA the same instance and device that quire opened, and counts its memory objects. */
static VkResult make_allocator(const quire_vulkan_handles *h, VmaAllocator *allocator)
{
    PFN_vkGetDeviceProcAddr of_device =
        (PFN_vkGetDeviceProcAddr)h->get_instance_proc_addr(h->instance, "vkGetDeviceProcAddr");
    const VmaVulkanFunctions functions =
        vma_functions_of(h->instance, h->get_instance_proc_addr, h->device, of_device);
    const VmaDeviceMemoryCallbacks counting = {.pfnAllocate = count_made, .pfnFree = count_given};
    const VmaAllocatorCreateInfo info = {
        .physicalDevice = h->physical_device,
        .device = h->device,
        .instance = h->instance,
        .pVulkanFunctions = &functions,
        .pDeviceMemoryCallbacks = vulkan_is_mocked ? NULL : &counting,
        .vulkanApiVersion = VK_API_VERSION_1_1,
    };
    return vmaCreateAllocator(&info, allocator);
}

/*
 * Opens its own device through quire, so that both projects use identical device options. Links all
 * records into the list of unused ones. destroy_vma frees what exists after a failure.
 */
static bool make_vma(vma_state *state, const subject *self, const subject_arena *arena)
{
    const quire_intent intent = vulkan_intent(self);
    quire_vulkan_handles handles;
    VmaPoolCreateInfo pool = {.blockSize = arena->size};
    state->objects = calloc(arena->ranges + 1, sizeof *state->objects);
    if (!state->objects || vulkan_open(&state->device) ||
        quire_vulkan_get_handles(state->device, &handles) ||
        quire_device_choose_kind(state->device, &(quire_kind_request){.intent = intent},
                                 &pool.memoryTypeIndex))
        return false;
    for (uint64_t i = arena->ranges; i; i--) {
        state->objects[i].next = state->first;
        state->first = i;
    }
    return make_allocator(&handles, &state->allocator) == VK_SUCCESS &&
           (!arena->size ||
            vmaCreatePool(state->allocator, &pool, &state->request.pool) == VK_SUCCESS);
}

void *create_vma(const subject *self, const subject_arena *arena)
{
    vma_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    bool upload = ((const vulkan_how *)self->how)->upload;
    state->request.requiredFlags =
        upload ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    state->request.flags = how_of(self)->strategy | (upload ? MAPPED : 0);
    if (make_vma(state, self, arena))
        return state;
    destroy_vma(state);
    return NULL;
}

uint64_t allocate_vma(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const vma_state *state = user;
    const VkMemoryRequirements needs = {
        .size = size, .alignment = alignment, .memoryTypeBits = UINT32_MAX};
    VmaAllocation allocation = VK_NULL_HANDLE;
    *offset = 0;
    VkResult result =
        vmaAllocateMemory(state->allocator, &needs, &state->request, &allocation, NULL);
    return result == VK_SUCCESS ? (uint64_t)allocation : 0;
}

void release_vma(void *user, uint64_t handle)
{
    const vma_state *state = user;
    vmaFreeMemory(state->allocator, (VmaAllocation)handle);
}

/* Takes a record from the list; the handle is its index. Returns 0 on failure. */
uint64_t create_vma_buffer(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    vma_state *state = user;
    uint64_t handle = state->first;
    vma_object *o = &state->objects[handle];
    const VkBufferCreateInfo info = vulkan_buffer_info(size);
    *offset = 0;
    if (!handle || vmaCreateBufferWithAlignment(state->allocator, &info, &state->request, alignment,
                                                &o->buffer, &o->allocation, NULL))
        return 0;
    state->first = o->next;
    return handle;
}

static void give_back(vma_state *state, uint64_t handle)
{
    state->objects[handle].next = state->first;
    state->first = handle;
}

void destroy_vma_buffer(void *user, uint64_t handle)
{
    vma_state *state = user;
    const vma_object *o = &state->objects[handle];
    vmaDestroyBuffer(state->allocator, o->buffer, o->allocation);
    give_back(state, handle);
}

/* The pool keeps the memory mapped. Returns 0 on any failure, which the harness reports. */
uint64_t create_vma_upload(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    vma_state *state = user;
    uint64_t handle = state->first;
    vma_object *o = &state->objects[handle];
    const VkBufferCreateInfo info = vulkan_buffer_info(size);
    VmaAllocationInfo place;
    *offset = 0;
    if (!handle || vmaCreateBufferWithAlignment(state->allocator, &info, &state->request, alignment,
                                                &o->buffer, &o->allocation, &place))
        return 0;
    state->first = o->next;
    memset(place.pMappedData, 1, UPLOADED);
    return vmaFlushAllocation(state->allocator, o->allocation, 0, UPLOADED) ? 0 : handle;
}

/* VMA has no alignment for images; those of the lists are 1. */
uint64_t create_vma_image(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    vma_state *state = user;
    uint64_t handle = state->first;
    vma_object *o = &state->objects[handle];
    const VkImageCreateInfo info = vulkan_image_info(size);
    (void)alignment;
    *offset = 0;
    if (!handle ||
        vmaCreateImage(state->allocator, &info, &state->request, &o->image, &o->allocation, NULL))
        return 0;
    state->first = o->next;
    return handle;
}

void destroy_vma_image(void *user, uint64_t handle)
{
    vma_state *state = user;
    const vma_object *o = &state->objects[handle];
    vmaDestroyImage(state->allocator, o->image, o->allocation);
    give_back(state, handle);
}
