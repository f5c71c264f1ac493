/*
 * store.c - which allocations lie in pages, and the memories that they lie in.
 *
 * A memory object is bound to whatever the program likes, buffers and images beside each other, at
 * offsets that are aligned as if it began at 0. So it begins where any of them may begin: on a
 * stretch of bufferImageGranularity and an atom of its own, aligned to its size, up to 64 KiB, and
 * to what any resource has asked for that would fit into it: programs ask what one needs before
 * they allocate. 4 KiB are the least, which a driver would take for it anyhow.
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"

static const uint64_t USUAL_ALIGNMENT = UINT64_C(64) << 10;
static const uint64_t MAX_ALIGNMENT = UINT64_C(2) << 20; /* quire's default */
static const uint64_t USUAL_PAGE = UINT64_C(32) << 20;
static const uint32_t MAX_SHARE = 8; /* a page is at most this part of its heap */
static const float DEFAULT_PRIORITY = 0.5f, LEAST_PRIORITY = 1e-6f;

/* ---- what is asked for ----------------------------------------------------------------------- */

typedef struct wish {
    float priority;
    VkBuffer buffer; /* it is dedicated to */
    VkImage image;
} wish;

static layer_outcome read_link(const VkBaseInStructure *link, wish *w)
{
    switch (link->sType) {
    case VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO: /* pages have device addresses */
        return ((const VkMemoryAllocateFlagsInfo *)link)->flags &
                       ~(VkMemoryAllocateFlags)VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT
                   ? LAYER_CHAINED
                   : LAYER_IN_A_PAGE;
    case VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT:
        w->priority = ((const VkMemoryPriorityAllocateInfoEXT *)link)->priority;
        w->priority = w->priority > 0 ? w->priority : LEAST_PRIORITY; /* 0 is quire's default */
        return LAYER_IN_A_PAGE;
    case VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO:
        w->buffer = ((const VkMemoryDedicatedAllocateInfo *)link)->buffer;
        w->image = ((const VkMemoryDedicatedAllocateInfo *)link)->image;
        return LAYER_IN_A_PAGE;
    case VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO:
        return ((const VkExportMemoryAllocateInfo *)link)->handleTypes ? LAYER_EXTERNAL
                                                                       : LAYER_IN_A_PAGE;
    case VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR:
    case VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT:
        return LAYER_EXTERNAL;
    default:
        return LAYER_CHAINED;
    }
}

static layer_outcome read_chain(const VkMemoryAllocateInfo *info, wish *w)
{
    layer_outcome outcome = LAYER_IN_A_PAGE;
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext) {
        layer_outcome one = read_link(link, w);
        if (one == LAYER_EXTERNAL || outcome == LAYER_IN_A_PAGE)
            outcome = one;
    }
    return outcome;
}

/* Without the question there is no answer, and the resource is taken to require it. */
static bool requires_dedicated(const layer_device *device, const wish *w)
{
    VkMemoryDedicatedRequirements dedicated = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS,
                                               .requiresDedicatedAllocation = VK_TRUE};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
                                   .pNext = &dedicated};
    const VkBufferMemoryRequirementsInfo2 of_buffer = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = w->buffer};
    const VkImageMemoryRequirementsInfo2 of_image = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = w->image};
    if (w->buffer && device->next.GetBufferMemoryRequirements2)
        device->next.GetBufferMemoryRequirements2(device->handle, &of_buffer, &needs);
    else if (w->image && device->next.GetImageMemoryRequirements2)
        device->next.GetImageMemoryRequirements2(device->handle, &of_image, &needs);
    return dedicated.requiresDedicatedAllocation;
}

static bool serves_kind(const layer_device *device, uint32_t kind)
{
    if (kind >= device->info.kind_count)
        return false;
    quire_memory_flags flags = device->info.kinds[kind].flags;
    return !(flags & (QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED)) &&
           !(flags & QUIRE_HOST_VISIBLE && device->has_placed_maps);
}

/* ---- stores ---------------------------------------------------------------------------------- */

static layer_store *find_store(layer_device *device, uint32_t kind, float priority)
{
    uint32_t count = qi_atomic_load_acquire_u32(&device->store_count);
    for (uint32_t i = 0; i < count; i++) {
        layer_store *store = &device->stores[i];
        if (store->kind == kind && memcmp(&store->priority, &priority, sizeof priority) == 0)
            return store;
    }
    return NULL;
}

static uint64_t page_size_of(const layer_device *device, uint32_t kind)
{
    uint64_t size = device->settings.page_size ? device->settings.page_size : USUAL_PAGE;
    uint64_t most = device->info.heaps[device->info.kinds[kind].heap].size / MAX_SHARE;
    return size > most && most ? most : size;
}

/* With the mutex, and room. */
static layer_store *make_store(layer_device *device, uint32_t kind, float priority)
{
    uint32_t count = qi_atomic_load_acquire_u32(&device->store_count);
    layer_store *store = &device->stores[count];
    const layer_settings *settings = &device->settings;
    uint64_t page_size = page_size_of(device, kind);
    char name[32];
    snprintf(name, sizeof name, "type %u", (unsigned)kind);
    const quire_memory_options options = {
        .name = name,
        .kind_mask = UINT32_C(1) << kind,
        .fit = settings->fit,
        .priority = priority,
        .pages = {.page_size = page_size,
                  .retained_empty_bytes = settings->retained ? settings->retained : page_size},
    };
    if (quire_memory_create(device->quire, &options, &store->memory))
        return NULL;
    store->kind = kind;
    store->priority = priority;
    store->threshold = settings->threshold ? settings->threshold : page_size / 2;
    qi_atomic_store_release_u32(&device->store_count, count + 1);
    return store;
}

static layer_store *store_for(layer_device *device, uint32_t kind, float priority)
{
    layer_store *store = find_store(device, kind, priority);
    if (store)
        return store;
    pthread_mutex_lock(&device->mutex);
    store = find_store(device, kind, priority);
    if (!store && qi_atomic_load_acquire_u32(&device->store_count) < LAYER_MOST_STORES)
        store = make_store(device, kind, priority);
    pthread_mutex_unlock(&device->mutex);
    return store;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

void layer_learn(layer_device *device, const VkMemoryRequirements *needs)
{
    if (!needs->size || !qi_is_power_of_two(needs->alignment))
        return;
    qi_atomic_u64 *least = &device->least_sizes[qi_highest_bit(needs->alignment)];
    uint64_t known = qi_atomic_load_u64(least);
    while ((!known || needs->size < known) &&
           !qi_atomic_exchange_if_u64(least, &known, needs->size))
        ;
}

/* As its size, up to what is usual, and as any resource has asked that would fit into it. */
static uint64_t alignment_for(const layer_device *device, uint64_t size)
{
    uint64_t alignment = device->least_alignment;
    while (alignment < size && alignment < USUAL_ALIGNMENT)
        alignment <<= 1;
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t least = qi_atomic_load_u64(&device->least_sizes[i]);
        if (least && least <= size && UINT64_C(1) << i > alignment)
            alignment = UINT64_C(1) << i;
    }
    return alignment;
}

layer_outcome layer_plan(layer_device *device, const VkMemoryAllocateInfo *info,
                         layer_store **store)
{
    wish w = {.priority = DEFAULT_PRIORITY};
    uint32_t kind = info->memoryTypeIndex;
    if (!device->quire)
        return LAYER_OFF;
    layer_outcome outcome = read_chain(info, &w);
    if (outcome != LAYER_IN_A_PAGE)
        return outcome;
    if (!info->allocationSize || !serves_kind(device, kind))
        return LAYER_KIND;
    if ((w.buffer || w.image) &&
        !(device->settings.takes_dedicated && !requires_dedicated(device, &w)))
        return LAYER_DEDICATED;
    *store = store_for(device, kind, w.priority);
    if (!*store)
        return LAYER_REFUSED;
    return info->allocationSize >= (*store)->threshold ||
                   alignment_for(device, info->allocationSize) > MAX_ALIGNMENT
               ? LAYER_LARGE
               : LAYER_IN_A_PAGE;
}

static bool place(layer_device *device, layer_memory *memory, uint64_t alignment)
{
    layer_store *store = memory->store;
    const quire_allocation_options options = {
        .size = memory->held, .alignment = alignment, .user_data = (uintptr_t)memory};
    quire_vulkan_range range;
    if (quire_allocate(store->memory, &options, &memory->allocation))
        return false;
    qi_ignore(quire_vulkan_get_range(store->memory, memory->allocation, &range));
    memory->page = range.memory;
    memory->offset = range.memory_offset;
    qi_atomic_store_release_u64(&store->tag, qi_handle_tag(memory->allocation.id));
    layer_trace_allocated(device, memory, alignment);
    return true;
}

layer_memory *layer_allocate(layer_device *device, layer_store *store, uint64_t size)
{
    uint64_t atom = device->info.limits.non_coherent_atom;
    uint64_t held = 0;
    if (qi_align_up_overflows(size, atom ? atom : 1, &held))
        return NULL;
    layer_memory *memory = qi_host_allocate(&device->host, 1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->store = store;
    memory->size = size;
    memory->held = held;
    if (place(device, memory, alignment_for(device, size)))
        return memory;
    qi_host_release(&device->host, memory, 1, sizeof *memory);
    return NULL;
}

void layer_free(layer_device *device, layer_memory *memory)
{
    quire_memory *from = memory->store->memory;
    if (memory->mapped)
        qi_ignore(quire_unmap(from, memory->allocation));
    layer_forget_private(device, 0, memory->allocation.id);
    layer_trace_freed(device, memory);
    qi_ignore(quire_free(from, memory->allocation));
    qi_host_release(&device->host, memory, 1, sizeof *memory);
}

layer_memory *layer_find(layer_device *device, VkDeviceMemory handle)
{
    uint64_t tag = qi_handle_tag(LAYER_NUMBER(handle));
    if (!tag)
        return NULL;
    uint32_t count = qi_atomic_load_acquire_u32(&device->store_count);
    for (uint32_t i = 0; i < count; i++) {
        layer_store *store = &device->stores[i];
        quire_allocation_info info;
        if (qi_atomic_load_acquire_u64(&store->tag) == tag &&
            !quire_allocation_get_info(store->memory, (quire_allocation){LAYER_NUMBER(handle)},
                                       &info))
            return (layer_memory *)(uintptr_t)info.user_data;
    }
    return NULL;
}

void layer_translate(layer_device *device, VkDeviceMemory *memory, VkDeviceSize *offset)
{
    const layer_memory *found = layer_find(device, *memory);
    if (!found)
        return;
    *memory = found->page;
    *offset += found->offset;
}

void layer_trim(layer_device *device)
{
    uint32_t count = qi_atomic_load_acquire_u32(&device->store_count);
    for (uint32_t i = 0; i < count; i++)
        qi_ignore(quire_memory_trim(device->stores[i].memory, 0, NULL));
}
