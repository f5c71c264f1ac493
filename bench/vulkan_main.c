/*
 * vulkan_main.c - bench_vulkan: buffers made and freed on a real Vulkan device, by quire and by the
 * Vulkan Memory Allocator on the same VkDevice, the same sizes in the same order, in turns.
 *
 *     bench_vulkan [--pairs N] [--reps N] [--live N]
 *
 * A pair is one buffer freed and one made, with N others alive. Reported is the least of all
 * repeats, for each, and the ratio of the two; and the same for raw ranges, where quire calls
 * nothing of Vulkan.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ticks.h"
#define VMA_STATIC_VULKAN_FUNCTIONS 0
#define VMA_DYNAMIC_VULKAN_FUNCTIONS 0
#include <vk_mem_alloc.h>

#include "quire/quire.h"
#include "quire/vulkan.h"

enum { MOST_SIZES = 1 << 16 };

typedef struct bench {
    quire_device *device;
    quire_memory *memory;
    VmaAllocator allocator;
    uint64_t pairs, reps, live;
    uint64_t *sizes;
    uint32_t *victims;
    /* what lives, by the one who made it */
    quire_allocation *ours;
    VmaAllocation *theirs;
    VkBuffer *their_buffers;
} bench;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench_vulkan: %s: %s\n", what, quire_last_error());
    exit(1);
}

/* ---- one step of each ---------------------------------------------------------------------- */

static const VkBufferUsageFlags USAGE = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                                        VK_BUFFER_USAGE_TRANSFER_DST_BIT;

static VkBufferCreateInfo info_of(uint64_t size)
{
    return (VkBufferCreateInfo){
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = size, .usage = USAGE};
}

static void make_ours(bench *b, uint64_t at, uint64_t size)
{
    quire_buffer buffer;
    if (quire_buffer_create(b->memory, &(quire_buffer_options){.size = size}, &buffer))
        fail("quire_buffer_create");
    b->ours[at] = buffer.allocation;
}

static void free_ours(bench *b, uint64_t at)
{
    if (quire_free(b->memory, b->ours[at]))
        fail("quire_free");
}

static void make_theirs(bench *b, uint64_t at, uint64_t size)
{
    const VkBufferCreateInfo info = info_of(size);
    const VmaAllocationCreateInfo wish = {.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE};
    if (vmaCreateBuffer(b->allocator, &info, &wish, &b->their_buffers[at], &b->theirs[at], NULL))
        fail("vmaCreateBuffer");
}

static void free_theirs(bench *b, uint64_t at)
{
    vmaDestroyBuffer(b->allocator, b->their_buffers[at], b->theirs[at]);
}

static void allocate_ours(bench *b, uint64_t at, uint64_t size)
{
    if (quire_allocate(b->memory, &(quire_allocation_options){.size = size, .alignment = 64},
                       &b->ours[at]))
        fail("quire_allocate");
}

static void allocate_theirs(bench *b, uint64_t at, uint64_t size)
{
    const VkMemoryRequirements needs = {.size = size, .alignment = 64, .memoryTypeBits = 1};
    const VmaAllocationCreateInfo wish = {.requiredFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
    if (vmaAllocateMemory(b->allocator, &needs, &wish, &b->theirs[at], NULL))
        fail("vmaAllocateMemory");
}

static void release_theirs(bench *b, uint64_t at)
{
    vmaFreeMemory(b->allocator, b->theirs[at]);
}

typedef struct way {
    const char *name;
    void (*make)(bench *b, uint64_t at, uint64_t size);
    void (*end)(bench *b, uint64_t at);
} way;

/* Nanoseconds a pair. */
static double run(bench *b, const way *w)
{
    uint64_t next = 0;
    for (uint64_t i = 0; i < b->live; i++)
        w->make(b, i, b->sizes[next++ % MOST_SIZES]);
    uint64_t since = ticks_now();
    for (uint64_t i = 0; i < b->pairs; i++) {
        uint64_t at = b->victims[i % MOST_SIZES];
        w->end(b, at);
        w->make(b, at, b->sizes[next++ % MOST_SIZES]);
    }
    double spent = (double)ticks_spent(since) * the_clock.ns;
    for (uint64_t i = 0; i < b->live; i++)
        w->end(b, i);
    return spent / (double)b->pairs;
}

/* In turns, so that what slows the machine down slows both. */
static void compare(bench *b, const char *what, const way *ours, const way *theirs)
{
    double best[2] = {1e18, 1e18};
    for (uint64_t i = 0; i < b->reps; i++) {
        double a = run(b, ours), c = run(b, theirs);
        best[0] = a < best[0] ? a : best[0];
        best[1] = c < best[1] ? c : best[1];
    }
    printf("%-28s %-20s %8.0f ns   %-20s %8.0f ns   ratio %.2f\n", what, ours->name, best[0],
           theirs->name, best[1], best[0] / best[1]);
}

/* ---- setting up ---------------------------------------------------------------------------- */

static void make_sizes(bench *b)
{
    uint64_t state = 1;
    for (int i = 0; i < MOST_SIZES; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        b->sizes[i] = 64 + (state >> 33) % (UINT64_C(1) << (8 + (state >> 60)));
        b->victims[i] = (uint32_t)((state >> 20) % b->live);
    }
}

static void make_allocator(bench *b, const quire_vulkan_handles *h)
{
    PFN_vkGetDeviceProcAddr of_device =
        (PFN_vkGetDeviceProcAddr)h->get_instance_proc_addr(h->instance, "vkGetDeviceProcAddr");
#define OF_DEVICE(name) .name = (PFN_##name)of_device(h->device, #name)
#define OF_INSTANCE(name) .name = (PFN_##name)h->get_instance_proc_addr(h->instance, #name)
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
        .vkGetBufferMemoryRequirements2KHR = (PFN_vkGetBufferMemoryRequirements2KHR)of_device(
            h->device, "vkGetBufferMemoryRequirements2"),
        .vkGetImageMemoryRequirements2KHR = (PFN_vkGetImageMemoryRequirements2KHR)of_device(
            h->device, "vkGetImageMemoryRequirements2"),
        .vkBindBufferMemory2KHR =
            (PFN_vkBindBufferMemory2KHR)of_device(h->device, "vkBindBufferMemory2"),
        .vkBindImageMemory2KHR =
            (PFN_vkBindImageMemory2KHR)of_device(h->device, "vkBindImageMemory2"),
        .vkGetPhysicalDeviceMemoryProperties2KHR =
            (PFN_vkGetPhysicalDeviceMemoryProperties2KHR)h->get_instance_proc_addr(
                h->instance, "vkGetPhysicalDeviceMemoryProperties2"),
    };
    const VmaAllocatorCreateInfo info = {
        .physicalDevice = h->physical_device,
        .device = h->device,
        .instance = h->instance,
        .pVulkanFunctions = &functions,
        .vulkanApiVersion = VK_API_VERSION_1_1,
    };
    if (vmaCreateAllocator(&info, &b->allocator))
        fail("vmaCreateAllocator");
}

static uint64_t number(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name))
            return strtoull(argv[i + 1], NULL, 10);
    return otherwise;
}

static void *room(uint64_t count, size_t size)
{
    void *p = calloc(count, size);
    if (!p)
        fail("no memory");
    return p;
}

int main(int argc, char **argv)
{
    static const way buffers = {"quire_buffer_create", make_ours, free_ours};
    static const way vma_buffers = {"vmaCreateBuffer", make_theirs, free_theirs};
    static const way ranges = {"quire_allocate", allocate_ours, free_ours};
    static const way vma_ranges = {"vmaAllocateMemory", allocate_theirs, release_theirs};
    bench b = {.pairs = number(argc, argv, "--pairs", 100000),
               .reps = number(argc, argv, "--reps", 7),
               .live = number(argc, argv, "--live", 1000)};
    quire_vulkan_handles handles;
    quire_device_info info;
    ticks_init();
    if (!b.live || !b.reps || !b.pairs)
        fail("counts must be above 0");
    b.sizes = room(MOST_SIZES, sizeof *b.sizes);
    b.victims = room(MOST_SIZES, sizeof *b.victims);
    b.ours = room(b.live, sizeof *b.ours);
    b.theirs = room(b.live, sizeof(VmaAllocation));
    b.their_buffers = room(b.live, sizeof *b.their_buffers);
    make_sizes(&b);
    if (quire_vulkan_open(NULL, &b.device) || quire_vulkan_get_handles(b.device, &handles) ||
        quire_device_get_info(b.device, &info) || quire_memory_create(b.device, NULL, &b.memory))
        fail("no Vulkan device");
    make_allocator(&b, &handles);
    printf("%s: %" PRIu64 " pairs with %" PRIu64 " alive, the least of %" PRIu64 " repeats\n",
           info.name, b.pairs, b.live, b.reps);
    compare(&b, "a buffer freed and made", &buffers, &vma_buffers);
    compare(&b, "a raw range freed and made", &ranges, &vma_ranges);
    vmaDestroyAllocator(b.allocator);
    quire_memory_destroy_all(&b.memory);
    if (quire_device_destroy(&b.device))
        fail("quire_device_destroy");
    free(b.sizes);
    free(b.victims);
    free(b.ours);
    free(b.theirs);
    free(b.their_buffers);
    return 0;
}
