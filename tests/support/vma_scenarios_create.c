/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_scenarios_create.c - creation of buffers and images: which memory they get, how much of it,
 * and what the host can do with it. See vma_scenarios.h.
 */
#include "tests/support/vma_scenarios.h"

/* ---- one object ------------------------------------------------------------------------------ */

typedef struct created {
    VkBuffer buffer;
    VkImage image;
    VmaAllocation allocation;
    VmaAllocationInfo info;
} created;

static VkResult create(VmaAllocator allocator, const object *of,
                       const VmaAllocationCreateInfo *options, uint32_t width, created *c)
{
    *c = (created){.allocation = NULL};
    if (of->tiling == BUFFER) {
        VkBufferCreateInfo info = OF_SUBJECT(vma_buffer_info)(of, width * 64);
        return vmaCreateBuffer(allocator, &info, options, &c->buffer, &c->allocation, &c->info);
    }
    VkImageCreateInfo info = OF_SUBJECT(vma_image_info)(of, width);
    return vmaCreateImage(allocator, &info, options, &c->image, &c->allocation, &c->info);
}

static void destroy(VmaAllocator allocator, const created *c)
{
    if (c->image)
        vmaDestroyImage(allocator, c->image, c->allocation);
    else
        vmaDestroyBuffer(allocator, c->buffer, c->allocation);
}

static void note_access(VmaAllocator allocator, const created *c, vma_notes *notes)
{
    void *bytes = NULL;
    unsigned char copied[4] = {1, 2, 3, 4};
    VmaAllocationInfo now;
    NOTE("vmaMapMemory", vmaMapMemory(allocator, c->allocation, &bytes));
    NOTE("mapped where pMappedData says", !c->info.pMappedData || bytes == c->info.pMappedData);
    vmaGetAllocationInfo(allocator, c->allocation, &now);
    NOTE("pMappedData of a mapped allocation", now.pMappedData == bytes);
    NOTE("vmaFlushAllocation", vmaFlushAllocation(allocator, c->allocation, 0, VK_WHOLE_SIZE));
    NOTE("vmaInvalidateAllocation", vmaInvalidateAllocation(allocator, c->allocation, 100, 100));
    /* while it is mapped, because VMA flushes after it has ended its own map */
    NOTE("vmaCopyMemoryToAllocation",
         vmaCopyMemoryToAllocation(allocator, copied, c->allocation, 4, sizeof copied));
    NOTE("vmaCopyAllocationToMemory",
         vmaCopyAllocationToMemory(allocator, c->allocation, 4, copied, sizeof copied));
    vmaUnmapMemory(allocator, c->allocation);
    vmaGetAllocationInfo(allocator, c->allocation, &now);
    NOTE("pMappedData after the unmap", now.pMappedData == c->info.pMappedData);
}

static void note_info(const vma_scene *scene, VmaAllocator allocator,
                      const VmaAllocationCreateInfo *options, const created *c, vma_notes *notes)
{
    VkMemoryPropertyFlags flags = 0;
    VmaAllocationInfo2 info;
    NOTE("memoryType", c->info.memoryType);
    NOTE("size", c->info.size);
    NOTE("has pMappedData", c->info.pMappedData != NULL);
    NOTE("pUserData", (uintptr_t)c->info.pUserData);
    NOTE("has pName", c->info.pName != NULL);
    vmaGetAllocationMemoryProperties(allocator, c->allocation, &flags);
    NOTE("memory properties", flags);
    vmaGetAllocationInfo2(allocator, c->allocation, &info);
    NOTE("info2 agrees", info.allocationInfo.offset == c->info.offset &&
                             info.allocationInfo.deviceMemory == c->info.deviceMemory &&
                             info.blockSize >= c->info.offset + c->info.size);
    if (scene->driver_decides && (c->buffer || c->image))
        NOTE("dedicatedMemory", info.dedicatedMemory);
    /* Otherwise sizes of blocks decide. */
    if (options->flags & DEDICATED || options->usage == VMA_MEMORY_USAGE_GPU_LAZILY_ALLOCATED) {
        NOTE("dedicatedMemory", info.dedicatedMemory);
        NOTE("blockSize", info.blockSize);
    }
    /* VMA asserts that the others are not mapped, or maps what Vulkan does not allow to map. */
    if (flags & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT &&
        (!is_auto(options->usage) || options->flags & (WRITE | RANDOM)))
        note_access(allocator, c, notes);
}

static void note_statistics(VmaAllocator allocator, vma_notes *notes)
{
    VmaTotalStatistics all;
    vmaCalculateStatistics(allocator, &all);
    NOTE("allocationCount", all.total.statistics.allocationCount);
    NOTE("allocationBytes", all.total.statistics.allocationBytes);
    NOTE("allocationSizeMin", all.total.allocationSizeMin);
    NOTE("allocationSizeMax", all.total.allocationSizeMax);
}

/* ---- every object with every usage ----------------------------------------------------------- */

static const VmaAllocationCreateFlags CREATE_FLAGS[] = {
    0,
    MAPPED,
    WRITE,
    WRITE | MAPPED,
    RANDOM | MAPPED,
    WRITE | INSTEAD | MAPPED,
    RANDOM | INSTEAD,
    DEDICATED,
    DEDICATED | RANDOM | MAPPED,
    WITHIN,
    DEDICATED | WITHIN,
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_MEMORY_BIT | VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT,
    VMA_ALLOCATION_CREATE_STRATEGY_MIN_TIME_BIT | VMA_ALLOCATION_CREATE_DONT_BIND_BIT,
};

static void create_one(const vma_scene *scene, VmaAllocator allocator, const object *of,
                       const VmaAllocationCreateInfo *options, vma_notes *notes)
{
    created c;
    if (is_auto(options->usage) && options->flags & MAPPED && !(options->flags & (WRITE | RANDOM)))
        return; /* VMA asserts */
    if (scene->driver_decides && options->flags & VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT)
        return; /* VMA makes memory that is not for the object, also if the driver requires it */
    vma_scenario(notes, "create '%s', usage %d, flags 0x%x", of->name, (int)options->usage,
                 options->flags);
    VkResult result = create(allocator, of, options, 64, &c);
    NOTE("result", result);
    NOTE("is created", (c.buffer || c.image) && c.allocation);
    if (result)
        return;
    note_info(scene, allocator, options, &c, notes);
    note_statistics(allocator, notes);
    destroy(allocator, &c);
}

static void create_each(const vma_scene *scene, vma_notes *notes)
{
    VmaAllocator allocator = OF_SUBJECT(vma_open)(scene, NULL);
    for (int usage = 0; usage <= VMA_MEMORY_USAGE_AUTO_PREFER_HOST; usage++)
        for (size_t i = 0; i < COUNT_OF(CREATE_FLAGS); i++)
            for (uint32_t k = 0; k < OBJECT_COUNT; k++) {
                const VmaAllocationCreateInfo options = {
                    .usage = (VmaMemoryUsage)usage,
                    .flags = CREATE_FLAGS[i],
                    .pUserData = k % 2 ? NULL : (void *)(uintptr_t)usage,
                };
                create_one(scene, allocator, &OBJECTS[k], &options, notes);
            }
    vma_scenario(notes, "after all");
    note_statistics(allocator, notes);
    vmaDestroyAllocator(allocator);
}

/* Several at a time, of several sizes, whose sum the statistics have. */
static void create_many(const vma_scene *scene, vma_notes *notes)
{
    enum { MANY = 27 };
    created all[MANY];
    VmaAllocator allocator = OF_SUBJECT(vma_open)(scene, NULL);
    const VmaAllocationCreateInfo options = {.usage = VMA_MEMORY_USAGE_AUTO};
    for (uint32_t i = 0; i < MANY; i++) {
        vma_scenario(notes, "create many: number %u", i);
        NOTE("result",
             create(allocator, &OBJECTS[i % OBJECT_COUNT], &options, 17 + 61 * i, &all[i]));
        NOTE("size", all[i].info.size);
        NOTE("memoryType", all[i].info.memoryType);
        note_statistics(allocator, notes);
    }
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    vmaGetHeapBudgets(allocator, budgets);
    for (uint32_t i = 0; i < scene->memory.memoryHeapCount; i++) {
        vma_scenario(notes, "create many: heap %u", i);
        NOTE("heap allocationCount", budgets[i].statistics.allocationCount);
        NOTE("heap allocationBytes", budgets[i].statistics.allocationBytes);
        NOTE("heap budget", budgets[i].budget);
        NOTE("usage is at least blockBytes",
             budgets[i].usage >= budgets[i].statistics.blockBytes &&
                 budgets[i].statistics.blockBytes >= budgets[i].statistics.allocationBytes);
    }
    for (uint32_t i = 0; i < MANY; i++)
        destroy(allocator, &all[i]);
    vmaDestroyAllocator(allocator);
}

/* Raw memory: the options have to choose, because there is no object. */
static void allocate_raw(const vma_scene *scene, vma_notes *notes)
{
    VmaAllocator allocator = OF_SUBJECT(vma_open)(scene, NULL);
    for (int usage = 0; usage < VMA_MEMORY_USAGE_AUTO; usage++)
        for (uint32_t i = 0; i < scene->memory.memoryTypeCount; i++) {
            VkMemoryRequirements needs = {
                .size = 1000, .alignment = 256, .memoryTypeBits = UINT32_MAX << i};
            VmaAllocationCreateInfo options = {.usage = (VmaMemoryUsage)usage};
            created c = {.allocation = NULL};
            vma_scenario(notes, "raw from type %u on, usage %d", i, usage);
            VkResult result =
                vmaAllocateMemory(allocator, &needs, &options, &c.allocation, &c.info);
            NOTE("result", result);
            if (result)
                continue;
            note_info(scene, allocator, &options, &c, notes);
            vmaFreeMemory(allocator, c.allocation);
        }
    vmaDestroyAllocator(allocator);
}

void OF_SUBJECT(vma_create_objects)(const vma_scene *scene, vma_notes *notes)
{
    create_each(scene, notes);
    create_many(scene, notes);
    allocate_raw(scene, notes);
}
