/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * store.c - decides which allocations are suballocated, and allocates them from the stores.
 *
 * A program may bind any resources to a memory object, buffers and images next to each other, and
 * aligns their offsets as if the object began at 0. Therefore a range begins where any of these
 * resources may begin:
 *  - on its own bufferImageGranularity and its own atom,
 *  - at a multiple of 4 KiB, which a driver would use anyway,
 *  - at a multiple of its size rounded up to a power of two, at most 64 KiB,
 *  - at a multiple of every alignment that a resource of at most its size needed so far. Programs
 *    query the requirements of a resource before they allocate its memory.
 */
#include <string.h>

#include "src/adapters/vulkan_layer/layer.h"
#include "src/base/bits.h"
#include "src/base/handle.h"
#include "src/base/result.h"

/* Most drivers need no larger alignment for any resource. */
static const uint64_t USUAL_ALIGNMENT = UINT64_C(64) << 10;
static const uint64_t MAX_ALIGNMENT = UINT64_C(2) << 20; /* quire's default maximum */
static const uint64_t DEFAULT_PAGE = UINT64_C(32) << 20;
static const uint32_t MIN_PAGES_PER_HEAP = 8; /* limits the page size on small heaps */
static const float DEFAULT_PRIORITY = 0.5f, MIN_PRIORITY = 1e-6f;

/* ---- the request -------------------------------------------------------------------------- */

/* The parts of a VkMemoryAllocateInfo's pNext chain that matter. */
typedef struct request {
    float priority;
    VkBuffer buffer; /* the memory is dedicated to it */
    VkImage image;
} request;

/* Reads one struct of the chain. Everything unknown is passed on. */
static layer_outcome read_link(const VkBaseInStructure *link, request *r)
{
    switch (link->sType) {
    case VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO: /* pages have device addresses */
        return ((const VkMemoryAllocateFlagsInfo *)link)->flags &
                       ~(VkMemoryAllocateFlags)VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT
                   ? LAYER_CHAINED
                   : LAYER_IN_A_PAGE;
    case VK_STRUCTURE_TYPE_MEMORY_PRIORITY_ALLOCATE_INFO_EXT:
        r->priority = ((const VkMemoryPriorityAllocateInfoEXT *)link)->priority;
        r->priority = r->priority > 0 ? r->priority : MIN_PRIORITY; /* 0 is quire's default */
        return LAYER_IN_A_PAGE;
    case VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO:
        r->buffer = ((const VkMemoryDedicatedAllocateInfo *)link)->buffer;
        r->image = ((const VkMemoryDedicatedAllocateInfo *)link)->image;
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

static layer_outcome read_chain(const VkMemoryAllocateInfo *info, request *r)
{
    layer_outcome outcome = LAYER_IN_A_PAGE;
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext) {
        layer_outcome one = read_link(link, r);
        if (one == LAYER_EXTERNAL || outcome == LAYER_IN_A_PAGE)
            outcome = one;
    }
    return outcome;
}

/* Whether the driver requires a dedicated allocation for the resource. It counts as required if the
   driver cannot be queried. */
static bool requires_dedicated(const layer_device *device, const request *r)
{
    VkMemoryDedicatedRequirements dedicated = {.sType =
                                                   VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS,
                                               .requiresDedicatedAllocation = VK_TRUE};
    VkMemoryRequirements2 needs = {.sType = VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2,
                                   .pNext = &dedicated};
    const VkBufferMemoryRequirementsInfo2 of_buffer = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_MEMORY_REQUIREMENTS_INFO_2, .buffer = r->buffer};
    const VkImageMemoryRequirementsInfo2 of_image = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_REQUIREMENTS_INFO_2, .image = r->image};
    if (r->buffer && device->next.GetBufferMemoryRequirements2)
        device->next.GetBufferMemoryRequirements2(device->handle, &of_buffer, &needs);
    else if (r->image && device->next.GetImageMemoryRequirements2)
        device->next.GetImageMemoryRequirements2(device->handle, &of_image, &needs);
    return dedicated.requiresDedicatedAllocation;
}

/* Whether ranges of this memory kind can be in pages. Placed maps need objects of the driver. */
static bool serves_kind(const layer_device *device, uint32_t kind)
{
    if (kind >= device->info.kind_count)
        return false;
    quire_memory_flags flags = device->info.kinds[kind].flags;
    return !(flags & (QUIRE_LAZILY_ALLOCATED | QUIRE_PROTECTED)) &&
           !(flags & QUIRE_HOST_VISIBLE && device->has_placed_maps);
}

/* ---- stores ------------------------------------------------------------------------------- */

/* Needs no lock: stores are complete before store_count grows, and are never removed. */
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

uint64_t layer_max_page(const layer_device *device, uint32_t heap)
{
    uint64_t max = device->info.heaps[heap].size / MIN_PAGES_PER_HEAP;
    return max ? max : UINT64_MAX;
}

/* The size of a page; of the largest one, if the pages follow use. */
static uint64_t page_size_of(const layer_device *device, uint32_t kind)
{
    uint64_t size = device->settings.page_size ? device->settings.page_size : DEFAULT_PAGE;
    uint64_t max = layer_max_page(device, device->info.kinds[kind].heap);
    return size > max ? max : size;
}

/* Requires the mutex, and space for one more store. */
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
        .kind.mask = UINT32_C(1) << kind,
        .fit.algorithm = settings->fit,
        .priority = priority,
        .pages = {.page_size = settings->page_size ? page_size : 0,
                  .retained_empty_bytes = settings->retained ? settings->retained : page_size},
    };
    if (quire_memory_create(device->quire, &options, &store->memory))
        return NULL;
    store->kind = kind;
    store->priority = priority;
    store->threshold = settings->threshold ? settings->threshold : page_size / 2;
    store->is_zeroed = settings->zeroes;
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
    if (!store && qi_atomic_load_acquire_u32(&device->store_count) < LAYER_MAX_STORES)
        store = make_store(device, kind, priority);
    pthread_mutex_unlock(&device->mutex);
    return store;
}

/* ---- exhausted memory --------------------------------------------------------------------- */

/*
 * If no page can be made quire tries smaller ones, each with a call of the driver, before it
 * refuses a request. The layer remembers the size that was refused, and passes such requests on
 * without asking quire until the program frees memory. Memory can also be freed unseen, by another
 * process or with a swapchain; therefore quire is asked for one of RETRY requests nevertheless.
 *
 * Threads may refuse and free at the same time. A wrong answer is harmless: the driver is asked
 * instead of quire, or quire in vain.
 */

static const uint64_t RETRY = 64;

/* Returns how many memory objects the program has freed. Each is counted after its memory is
   free. */
static uint64_t releases_of(const layer_device *device)
{
    return qi_atomic_load_acquire_u64(&device->counts.freed) +
           qi_atomic_load_acquire_u64(&device->counts.passed_free);
}

/* Whether quire would probably refuse so many bytes, so that it is not worth asking. */
static bool is_exhausted(const layer_device *device, layer_store *store, uint64_t size)
{
    uint64_t refused = qi_atomic_load_u64(&store->refused_size);
    if (!refused || size < refused ||
        qi_atomic_load_u64(&store->refused_after) != releases_of(device))
        return false;
    return (qi_atomic_add_u64(&store->skipped, 1) + 1) % RETRY != 0;
}

/*
 * Notes that quire refused so many bytes. `releases` was read before the request: memory that is
 * freed during the request may come too late for it.
 */
static void note_refused(layer_store *store, uint64_t size, uint64_t releases)
{
    uint64_t refused = qi_atomic_load_u64(&store->refused_size);
    uint64_t after = qi_atomic_load_u64(&store->refused_after);
    if (refused && (after > releases || (after == releases && refused < size)))
        return;
    qi_atomic_store_release_u64(&store->refused_size, size);
    qi_atomic_store_release_u64(&store->refused_after, releases);
}

static void note_served(layer_store *store, uint64_t size)
{
    uint64_t refused = qi_atomic_load_u64(&store->refused_size);
    if (refused && refused <= size)
        qi_atomic_store_release_u64(&store->refused_size, 0);
}

bool layer_trim(layer_device *device)
{
    uint32_t count = qi_atomic_load_acquire_u32(&device->store_count);
    uint64_t total = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t released = 0;
        qi_ignore(quire_memory_trim(device->stores[i].memory, 0, &released));
        total += released;
    }
    return total != 0;
}

/* ---- ranges ------------------------------------------------------------------------------- */

void layer_learn(layer_device *device, const VkMemoryRequirements *needs)
{
    if (!needs->size || !qi_is_power_of_two(needs->alignment))
        return;
    qi_atomic_u64 *smallest = &device->min_sizes[qi_highest_bit(needs->alignment)];
    uint64_t known = qi_atomic_load_u64(smallest);
    while ((!known || needs->size < known) &&
           !qi_atomic_exchange_if_u64(smallest, &known, needs->size))
        ;
}

/* Returns the alignment of a range of this size: see the top of this file. */
static uint64_t alignment_for(const layer_device *device, uint64_t size)
{
    uint64_t alignment = device->min_alignment;
    while (alignment < size && alignment < USUAL_ALIGNMENT)
        alignment <<= 1;
    for (uint32_t i = 0; i < 64; i++) {
        uint64_t smallest = qi_atomic_load_u64(&device->min_sizes[i]);
        if (smallest && smallest <= size && UINT64_C(1) << i > alignment)
            alignment = UINT64_C(1) << i;
    }
    return alignment;
}

layer_outcome layer_plan(layer_device *device, const VkMemoryAllocateInfo *info,
                         layer_store **store)
{
    request r = {.priority = DEFAULT_PRIORITY};
    uint32_t kind = info->memoryTypeIndex;
    if (!device->quire)
        return LAYER_OFF;
    layer_outcome outcome = read_chain(info, &r);
    if (outcome != LAYER_IN_A_PAGE)
        return outcome;
    if (!info->allocationSize || !serves_kind(device, kind))
        return LAYER_KIND;
    if ((r.buffer || r.image) &&
        !(device->settings.takes_dedicated && !requires_dedicated(device, &r)))
        return LAYER_DEDICATED;
    if (device->settings.zeroes && !(device->info.kinds[kind].flags & QUIRE_HOST_VISIBLE))
        return LAYER_INVISIBLE;
    *store = store_for(device, kind, r.priority);
    if (!*store)
        return LAYER_REFUSED;
    if (info->allocationSize >= (*store)->threshold ||
        alignment_for(device, info->allocationSize) > MAX_ALIGNMENT)
        return LAYER_LARGE;
    return is_exhausted(device, *store, info->allocationSize) ? LAYER_REFUSED : LAYER_IN_A_PAGE;
}

/* Writes zeros into a range. The range may be in use before the program maps it, so that the zeros
   are flushed. */
static bool write_zeros(const layer_memory *memory)
{
    quire_memory *in = memory->store->memory;
    void *start = NULL;
    if (quire_map(in, memory->allocation, &start))
        return false;
    memset(start, 0, memory->size);
    quire_result result = quire_flush(in, memory->allocation, 0, 0);
    quire_unmap(in, memory->allocation);
    return !result;
}

/*
 * Allocates the range of a memory object. The tag lets layer_find recognise the handle. quire is
 * asked for the size of the program and counts it as requested. No other range has the rest of the
 * last atom: ranges begin, and pages end, at multiples of the atom.
 */
static bool place(layer_device *device, layer_memory *memory, uint64_t alignment)
{
    layer_store *store = memory->store;
    const quire_allocation_options options = {
        .size = memory->size, .alignment = alignment, .user_data = (uintptr_t)memory};
    quire_vulkan_range range;
    if (quire_allocate(store->memory, &options, &memory->allocation))
        return false;
    if (store->is_zeroed && !write_zeros(memory)) {
        quire_free(store->memory, memory->allocation);
        return false;
    }
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
    uint64_t releases = releases_of(device);
    if (place(device, memory, alignment_for(device, size))) {
        note_served(store, size);
        return memory;
    }
    note_refused(store, size, releases);
    qi_host_release(&device->host, memory, 1, sizeof *memory);
    return NULL;
}

void layer_free(layer_device *device, layer_memory *memory)
{
    quire_memory *from = memory->store->memory;
    if (memory->mapped)
        quire_unmap(from, memory->allocation);
    layer_forget_private(device, 0, memory->allocation.id);
    layer_trace_freed(device, memory);
    quire_free(from, memory->allocation);
    qi_host_release(&device->host, memory, 1, sizeof *memory);
}

/* Most programs have few stores, so that a linear search over their tags is fast. */
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
