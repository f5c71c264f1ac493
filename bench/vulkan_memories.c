/*
 * vulkan_memories.c - memories of quire and of the Vulkan Memory Allocator on a Vulkan device, as
 * subjects: raw ranges (quire_allocate, vmaAllocateMemory) and buffers (quire_buffer_create,
 * vmaCreateBuffer). All open the device in the same way and use the same memory kind, page size and
 * buffer usage.
 */
#include <stdlib.h>

#include "bench/memories.h"
#include "bench/mock_driver.h"
#include "quire/quire.h"
#include "quire/vulkan.h"
#include "src/base/result.h"

/* ---- quire ---------------------------------------------------------------------------------- */

typedef struct quire_state {
    quire_device *device;
    quire_memory *memory;
} quire_state;

static void destroy_quire(void *user)
{
    quire_state *state = user;
    quire_memory_destroy_all(&state->memory);
    qi_ignore(quire_device_destroy(&state->device));
    free(state);
}

/* Counts pages in the_driver, where the mock driver counts its blocks. */
static void count_page(void *user, quire_memory *memory, const quire_event *event)
{
    (void)user;
    (void)memory;
    qi_atomic_add_u64(event->kind == QUIRE_EVENT_PAGE_MADE ? &the_driver.made : &the_driver.given,
                      1);
}

static void *create_quire(const subject *self, const subject_arena *arena)
{
    static const quire_hook hook = {.event = count_page,
                                    .kinds = QUIRE_EVENT_PAGE_MADE | QUIRE_EVENT_PAGE_GONE};
    const quire_memory_options options = {.granule = arena->unit, .pages.page_size = arena->size};
    quire_state *state = calloc(1, sizeof *state);
    (void)self;
    if (!state)
        return NULL;
    if (!quire_vulkan_open(NULL, &state->device) &&
        !quire_memory_create(state->device, &options, &state->memory) &&
        !quire_memory_set_hook(state->memory, &hook))
        return state;
    destroy_quire(state);
    return NULL;
}

static uint64_t allocate_range(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    quire_allocation_options options = {.size = size, .alignment = alignment};
    quire_allocation allocation;
    *offset = 0; /* unused by these benchmarks */
    qi_ignore(quire_allocate(state->memory, &options, &allocation));
    return allocation.id; /* 0 on failure */
}

static uint64_t create_buffer(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    const quire_state *state = user;
    quire_buffer_options options = {.size = size, .alignment = alignment};
    quire_buffer buffer;
    *offset = 0;
    qi_ignore(quire_buffer_create(state->memory, &options, &buffer));
    return buffer.allocation.id;
}

static void release_quire(void *user, uint64_t handle)
{
    const quire_state *state = user;
    qi_ignore(quire_free(state->memory, (quire_allocation){handle}));
}

static const char *quire_absent(const subject *self)
{
    quire_device *device = NULL;
    (void)self;
    if (quire_vulkan_open(NULL, &device))
        return quire_last_error();
    qi_ignore(quire_device_destroy(&device));
    return NULL;
}

#define QUIRE(make)                                                                                \
    {                                                                                              \
        .name = "quire", .kind = SUBJECT_MEMORY, .how = &(const memory_how){.shards = 0},          \
        .absent = quire_absent, .create = create_quire, .destroy = destroy_quire,                  \
        .allocate = (make), .free = release_quire                                                  \
    }

/* ---- VMA ------------------------------------------------------------------------------------ */

#ifdef BENCH_HAS_VMA

#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>

/* The two handles of a buffer. Unused records form a list by `next`. */
typedef struct vma_buffer {
    VkBuffer buffer;
    VmaAllocation allocation;
    uint64_t next;
} vma_buffer;

typedef struct vma_state {
    quire_device *device;
    VmaAllocator allocator;
    VmaAllocationCreateInfo request;
    vma_buffer *buffers; /* indexed from 1 */
    uint64_t first;      /* the first unused record; 0 means none */
} vma_state;

static void destroy_vma(void *user)
{
    vma_state *state = user;
    if (state->allocator)
        vmaDestroyPool(state->allocator, state->request.pool);
    vmaDestroyAllocator(state->allocator);
    qi_ignore(quire_device_destroy(&state->device));
    free(state->buffers);
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
#define OF_INSTANCE(name) .name = (PFN_##name)h->get_instance_proc_addr(h->instance, #name)
#define OF_DEVICE(name) .name = (PFN_##name)of_device(h->device, #name)
#define OF_DEVICE_2(name) .name##KHR = (PFN_##name##KHR)of_device(h->device, #name)
    PFN_vkGetDeviceProcAddr of_device =
        (PFN_vkGetDeviceProcAddr)h->get_instance_proc_addr(h->instance, "vkGetDeviceProcAddr");
    const VmaVulkanFunctions functions = {
        OF_INSTANCE(vkGetPhysicalDeviceProperties),
        OF_INSTANCE(vkGetPhysicalDeviceMemoryProperties),
        OF_DEVICE(vkAllocateMemory),
        OF_DEVICE(vkFreeMemory),
        OF_DEVICE(vkMapMemory),
        OF_DEVICE(vkUnmapMemory),
        OF_DEVICE(vkFlushMappedMemoryRanges),
        OF_DEVICE(vkInvalidateMappedMemoryRanges),
        OF_DEVICE(vkBindBufferMemory),
        OF_DEVICE(vkBindImageMemory),
        OF_DEVICE(vkGetBufferMemoryRequirements),
        OF_DEVICE(vkGetImageMemoryRequirements),
        OF_DEVICE(vkCreateBuffer),
        OF_DEVICE(vkDestroyBuffer),
        OF_DEVICE(vkCreateImage),
        OF_DEVICE(vkDestroyImage),
        OF_DEVICE(vkCmdCopyBuffer),
        OF_DEVICE_2(vkGetBufferMemoryRequirements2),
        OF_DEVICE_2(vkGetImageMemoryRequirements2),
        OF_DEVICE_2(vkBindBufferMemory2),
        OF_DEVICE_2(vkBindImageMemory2),
        .vkGetPhysicalDeviceMemoryProperties2KHR =
            (PFN_vkGetPhysicalDeviceMemoryProperties2KHR)h->get_instance_proc_addr(
                h->instance, "vkGetPhysicalDeviceMemoryProperties2"),
    };
    const VmaDeviceMemoryCallbacks counting = {.pfnAllocate = count_made, .pfnFree = count_given};
    const VmaAllocatorCreateInfo info = {
        .physicalDevice = h->physical_device,
        .device = h->device,
        .instance = h->instance,
        .pVulkanFunctions = &functions,
        .pDeviceMemoryCallbacks = &counting,
        .vulkanApiVersion = VK_API_VERSION_1_1,
    };
    return vmaCreateAllocator(&info, allocator);
}

/* Returns the memory kind that quire chooses by default. */
static quire_result choose_kind(quire_device *device, uint32_t *kind)
{
    quire_memory *memory = NULL;
    quire_memory_info info;
    quire_result result = quire_memory_create(device, NULL, &memory);
    if (!result)
        result = quire_memory_get_info(memory, &info);
    *kind = result ? 0 : info.kind;
    quire_memory_destroy_all(&memory);
    return result;
}

/*
 * Opens its own device through quire, so that both projects use identical device options. Links all
 * records into the list of unused ones. destroy_vma frees what exists after a failure.
 */
static bool make_vma(vma_state *state, const subject_arena *arena)
{
    quire_vulkan_handles handles;
    VmaPoolCreateInfo pool = {.blockSize = arena->size};
    state->buffers = calloc(arena->ranges + 1, sizeof *state->buffers);
    if (!state->buffers || quire_vulkan_open(NULL, &state->device) ||
        quire_vulkan_get_handles(state->device, &handles) ||
        choose_kind(state->device, &pool.memoryTypeIndex))
        return false;
    for (uint64_t i = arena->ranges; i; i--) {
        state->buffers[i].next = state->first;
        state->first = i;
    }
    return make_allocator(&handles, &state->allocator) == VK_SUCCESS &&
           (!arena->size ||
            vmaCreatePool(state->allocator, &pool, &state->request.pool) == VK_SUCCESS);
}

static void *create_vma(const subject *self, const subject_arena *arena)
{
    vma_state *state = calloc(1, sizeof *state);
    if (!state)
        return NULL;
    state->request.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
    state->request.flags = how_of(self)->strategy;
    if (make_vma(state, arena))
        return state;
    destroy_vma(state);
    return NULL;
}

static uint64_t allocate_vma(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
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

static void release_vma(void *user, uint64_t handle)
{
    const vma_state *state = user;
    vmaFreeMemory(state->allocator, (VmaAllocation)handle);
}

/* Takes a record from the list; the handle is its index. 0 means failure. */
static uint64_t create_vma_buffer(void *user, uint64_t size, uint64_t alignment, uint64_t *offset)
{
    vma_state *state = user;
    uint64_t handle = state->first;
    vma_buffer *b = &state->buffers[handle];
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT, /* quire's default usage */
    };
    *offset = 0;
    if (!handle || vmaCreateBufferWithAlignment(state->allocator, &info, &state->request, alignment,
                                                &b->buffer, &b->allocation, NULL))
        return 0;
    state->first = b->next;
    return handle;
}

static void destroy_vma_buffer(void *user, uint64_t handle)
{
    vma_state *state = user;
    vma_buffer *b = &state->buffers[handle];
    vmaDestroyBuffer(state->allocator, b->buffer, b->allocation);
    b->next = state->first;
    state->first = handle;
}

static const char *vma_absent(const subject *self)
{
    return quire_absent(self); /* both need only the device */
}

#else

static const char *vma_absent(const subject *self)
{
    (void)self;
    return "vk_mem_alloc.h was not found when bench_vulkan was built";
}

#define VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT 0
#define create_vma NULL
#define destroy_vma NULL
#define allocate_vma NULL
#define release_vma NULL
#define create_vma_buffer NULL
#define destroy_vma_buffer NULL

#endif

#define VMA(title, flag, make, end)                                                                \
    {                                                                                              \
        .name = (title), .kind = SUBJECT_PEER, .how = &(const memory_how){.strategy = (flag)},     \
        .absent = vma_absent, .create = create_vma, .destroy = destroy_vma, .allocate = (make),    \
        .free = (end)                                                                              \
    }

const subject VULKAN_RANGES[] = {
    QUIRE(allocate_range),
    VMA("VMA", 0, allocate_vma, release_vma),
    VMA("VMA, min time", VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT, allocate_vma, release_vma),
};

const subject VULKAN_BUFFERS[] = {
    QUIRE(create_buffer),
    VMA("VMA", 0, create_vma_buffer, destroy_vma_buffer),
    VMA("VMA, min time", VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT, create_vma_buffer,
        destroy_vma_buffer),
};

const size_t VULKAN_SUBJECT_COUNT = sizeof VULKAN_RANGES / sizeof *VULKAN_RANGES;
_Static_assert(sizeof VULKAN_BUFFERS == sizeof VULKAN_RANGES, "each in both ways");
