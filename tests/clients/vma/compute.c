/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * compute.c - a compute program as users of the Vulkan Memory Allocator write it in C: prefix sums
 * in buffers of a pool, in parts of one buffer and in memory bound by hand, and two images that
 * take turns in the same memory. VMA_HEADER is the only difference between its two builds.
 *
 * The program checks every number itself and prints the hash of all of them.
 */
#include <string.h>

#include VMA_HEADER

#include "tests/clients/vma/machine.h"
#include "tests/clients/vma/scan_spirv.h"

enum {
    MOST = 4096, /* numbers of one prefix sum */
    PARTS = 8,
    SIDE = 32,   /* of an image */
    GROUP = 64,  /* the shader's */
    SETS = 1024, /* descriptor sets, two for each prefix sum */
};

typedef struct numbers {
    VkBuffer buffer;
    VmaAllocation allocation;
    uint32_t *at; /* host-visible buffers stay mapped */
} numbers;

typedef struct compute {
    machine m;
    VmaAllocator vma;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool sets;
    numbers upload, download;
    uint32_t all[8 * MOST]; /* every result */
    uint32_t count;
} compute;

/* ---- the pipeline -------------------------------------------------------------------------- */

static void make_layout(compute *c)
{
    const VkDescriptorSetLayoutBinding bindings[] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
    };
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    MUST(vkCreateDescriptorSetLayout(c->m.device, &set, NULL, &c->set_layout));
    const VkPushConstantRange constants = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 2 * sizeof(uint32_t)};
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &c->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &constants,
    };
    MUST(vkCreatePipelineLayout(c->m.device, &layout, NULL, &c->layout));
    const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * SETS};
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = SETS,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    MUST(vkCreateDescriptorPool(c->m.device, &pool, NULL, &c->sets));
}

static void make_pipeline(compute *c)
{
    VkShaderModule shader = machine_shader(&c->m, SCAN_COMP, sizeof SCAN_COMP);
    make_layout(c);
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = shader,
                  .pName = "main"},
        .layout = c->layout,
    };
    MUST(vkCreateComputePipelines(c->m.device, VK_NULL_HANDLE, 1, &info, NULL, &c->pipeline));
    vkDestroyShaderModule(c->m.device, shader, NULL);
}

static VkDescriptorSet make_set(const compute *c, const VkDescriptorBufferInfo *from_and_to)
{
    const VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = c->sets,
        .descriptorSetCount = 1,
        .pSetLayouts = &c->set_layout,
    };
    VkDescriptorSet set = VK_NULL_HANDLE;
    MUST(vkAllocateDescriptorSets(c->m.device, &info, &set));
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = set,
        .descriptorCount = 2,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = from_and_to,
    };
    vkUpdateDescriptorSets(c->m.device, 1, &write, 0, NULL);
    return set;
}

/* ---- prefix sums --------------------------------------------------------------------------- */

/* `count` numbers in two ranges of equal size; the sums end in the first. */
typedef struct ranges {
    VkDescriptorBufferInfo first, second;
    uint32_t count; /* a power of 4, so that the number of steps is even */
} ranges;

static uint32_t input(uint32_t seed, uint32_t i)
{
    return (i + seed) * 2654435761u;
}

static void record_scan(const compute *c, const ranges *r)
{
    const VkDescriptorBufferInfo there[] = {r->first, r->second}, back[] = {r->second, r->first};
    const VkDescriptorSet sets[] = {make_set(c, there), make_set(c, back)};
    uint32_t step[] = {r->count, 1};
    vkCmdBindPipeline(c->m.commands, VK_PIPELINE_BIND_POINT_COMPUTE, c->pipeline);
    for (uint32_t i = 0; step[1] < r->count; i ^= 1, step[1] *= 2) {
        machine_barrier(&c->m);
        vkCmdBindDescriptorSets(c->m.commands, VK_PIPELINE_BIND_POINT_COMPUTE, c->layout, 0, 1,
                                &sets[i], 0, NULL);
        vkCmdPushConstants(c->m.commands, c->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof step,
                           step);
        vkCmdDispatch(c->m.commands, (r->count + GROUP - 1) / GROUP, 1, 1);
    }
    machine_barrier(&c->m);
}

/* Writes the input, computes the sums on the device, reads them back and checks them. */
static void scan(compute *c, const ranges *r, uint32_t seed)
{
    const VkBufferCopy in = {0, r->first.offset, r->count * sizeof(uint32_t)};
    const VkBufferCopy out = {r->first.offset, 0, in.size};
    for (uint32_t i = 0; i < r->count; i++)
        c->upload.at[i] = input(seed, i);
    MUST(vmaFlushAllocation(c->vma, c->upload.allocation, 0, in.size));
    machine_begin(&c->m);
    vkCmdCopyBuffer(c->m.commands, c->upload.buffer, r->first.buffer, 1, &in);
    record_scan(c, r);
    vkCmdCopyBuffer(c->m.commands, r->first.buffer, c->download.buffer, 1, &out);
    machine_submit(&c->m);
    MUST(vmaInvalidateAllocation(c->vma, c->download.allocation, 0, VK_WHOLE_SIZE));
    for (uint32_t i = 0, sum = 0; i < r->count; i++) {
        sum += input(seed, i);
        MUST_HOLD(c->download.at[i] == sum);
    }
    MUST_HOLD(c->count + r->count <= sizeof c->all / sizeof *c->all);
    memcpy(c->all + c->count, c->download.at, in.size);
    c->count += r->count;
}

/* ---- buffers ------------------------------------------------------------------------------- */

static VkBufferCreateInfo buffer_info(VkDeviceSize size)
{
    return (VkBufferCreateInfo){
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
}

static numbers make_numbers(const compute *c, VkDeviceSize size, VmaAllocationCreateFlags flags,
                            VmaPool pool)
{
    const VkBufferCreateInfo info = buffer_info(size);
    const VmaAllocationCreateInfo how = {
        .usage = VMA_MEMORY_USAGE_AUTO, .flags = flags, .pool = pool};
    VmaAllocationInfo place;
    numbers made = {0};
    MUST(vmaCreateBuffer(c->vma, &info, &how, &made.buffer, &made.allocation, &place));
    MUST_HOLD(place.size >= size);
    MUST_HOLD(!(flags & VMA_ALLOCATION_CREATE_MAPPED_BIT) == !place.pMappedData);
    made.at = place.pMappedData;
    return made;
}

static void scan_whole(compute *c, const numbers *first, const numbers *second, uint32_t seed)
{
    const VkDeviceSize size = MOST * sizeof(uint32_t);
    scan(c, &(ranges){{first->buffer, 0, size}, {second->buffer, 0, size}, MOST}, seed);
}

/* A pool of fixed size with both buffers, and no room for a third. */
static void scan_in_pool(compute *c)
{
    const VkBufferCreateInfo info = buffer_info(MOST * sizeof(uint32_t));
    const VmaAllocationCreateInfo how = {.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE};
    VmaPoolCreateInfo options = {
        .blockSize = 2 * info.size, .minBlockCount = 1, .maxBlockCount = 1};
    VmaPool pool = NULL;
    VmaStatistics statistics;
    MUST(vmaFindMemoryTypeIndexForBufferInfo(c->vma, &info, &how, &options.memoryTypeIndex));
    MUST(vmaCreatePool(c->vma, &options, &pool));
    vmaSetPoolName(c->vma, pool, "sums");
    numbers first = make_numbers(c, info.size, 0, pool),
            second = make_numbers(c, info.size, 0, pool);
    vmaGetPoolStatistics(c->vma, pool, &statistics);
    MUST_HOLD(statistics.blockCount == 1 && statistics.blockBytes == 2 * info.size);
    MUST_HOLD(statistics.allocationCount == 2 && statistics.allocationBytes == 2 * info.size);

    const VmaAllocationCreateInfo in_pool = {.pool = pool};
    VkBuffer third = VK_NULL_HANDLE;
    VmaAllocation none = VK_NULL_HANDLE;
    MUST_HOLD(vmaCreateBuffer(c->vma, &info, &in_pool, &third, &none, NULL) ==
              VK_ERROR_OUT_OF_DEVICE_MEMORY);
    scan_whole(c, &first, &second, 1);
    vmaDestroyBuffer(c->vma, first.buffer, first.allocation);
    vmaDestroyBuffer(c->vma, second.buffer, second.allocation);
    vmaDestroyPool(c->vma, pool);
}

/* Pairs of ranges of one buffer, which a virtual block places. */
static void scan_in_parts(compute *c)
{
    const VkDeviceSize size = 4 * MOST * sizeof(uint32_t);
    const VmaVirtualBlockCreateInfo options = {.size = size};
    VmaVirtualAllocationCreateInfo request = {.alignment =
                                                  c->m.limits.minStorageBufferOffsetAlignment};
    VmaVirtualBlock block = NULL;
    VmaVirtualAllocation parts[PARTS];
    VkDeviceSize offsets[PARTS];
    numbers whole = make_numbers(c, size, VMA_ALLOCATION_CREATE_DEDICATED_MEMORY_BIT, NULL);
    MUST(vmaCreateVirtualBlock(&options, &block));
    for (int round = 0; round < 2; round++) { /* the second round takes the ranges in reverse */
        for (uint32_t i = 0; i < PARTS; i++) {
            request.size = (round ? 1024 : 256) * sizeof(uint32_t);
            MUST(vmaVirtualAllocate(block, &request, &parts[i], &offsets[i]));
        }
        for (uint32_t i = 0; i < PARTS; i += 2) {
            const uint32_t a = round ? PARTS - 1 - i : i, b = round ? a - 1 : a + 1;
            const ranges pair = {{whole.buffer, offsets[a], request.size},
                                 {whole.buffer, offsets[b], request.size},
                                 (uint32_t)(request.size / sizeof(uint32_t))};
            scan(c, &pair, i + 2);
        }
        for (uint32_t i = 0; i < PARTS; i++)
            vmaVirtualFree(block, parts[(i * 3) % PARTS]);
    }
    MUST_HOLD(vmaIsVirtualBlockEmpty(block));
    vmaDestroyVirtualBlock(block);
    vmaDestroyBuffer(c->vma, whole.buffer, whole.allocation);
}

/* Buffers that the program creates and binds itself, with data from vmaCopyMemoryToAllocation. */
static void scan_bound(compute *c)
{
    const VkBufferCreateInfo info = buffer_info(MOST * sizeof(uint32_t));
    const VmaAllocationCreateInfo how = {.requiredFlags = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT};
    numbers two[2] = {{0}, {0}};
    for (int i = 0; i < 2; i++) {
        MUST(vkCreateBuffer(c->m.device, &info, NULL, &two[i].buffer));
        MUST(vmaAllocateMemoryForBuffer(c->vma, two[i].buffer, &how, &two[i].allocation, NULL));
        MUST(vmaBindBufferMemory(c->vma, two[i].allocation, two[i].buffer));
    }
    scan_whole(c, &two[0], &two[1], 3);
    uint32_t sums[MOST] = {0};
    MUST(vmaCopyAllocationToMemory(c->vma, two[0].allocation, 0, sums, sizeof sums));
    MUST_HOLD(!memcmp(sums, c->all + c->count - MOST, sizeof sums));
    MUST(vmaCopyMemoryToAllocation(c->vma, sums, two[1].allocation, 0, sizeof sums));
    void *mapped = NULL;
    MUST(vmaMapMemory(c->vma, two[1].allocation, &mapped));
    MUST_HOLD(!memcmp(sums, mapped, sizeof sums));
    vmaUnmapMemory(c->vma, two[1].allocation);
    for (int i = 0; i < 2; i++) {
        vkDestroyBuffer(c->m.device, two[i].buffer, NULL);
        vmaFreeMemory(c->vma, two[i].allocation);
    }
}

/* ---- images -------------------------------------------------------------------------------- */

static const VkImageCreateInfo TRANSIENT = {
    .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
    .imageType = VK_IMAGE_TYPE_2D,
    .format = VK_FORMAT_R8G8B8A8_UNORM,
    .extent = {SIDE, SIDE, 1},
    .mipLevels = 1,
    .arrayLayers = 1,
    .samples = VK_SAMPLE_COUNT_1_BIT,
    .usage = VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT,
};

/* Clears the image and copies it behind the image before. */
static void record_clear(const compute *c, VkImage image, uint32_t index)
{
    const VkClearColorValue color = {.float32 = {(float)index, 1, 0, 1}};
    const VkImageSubresourceRange range = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};
    const VkBufferImageCopy copy = {
        .bufferOffset = (VkDeviceSize)index * SIDE * SIDE * sizeof(uint32_t),
        .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
        .imageExtent = TRANSIENT.extent,
    };
    machine_barrier(&c->m); /* the other image is no longer in use */
    machine_transition(&c->m, image, VK_IMAGE_ASPECT_COLOR_BIT, VK_IMAGE_LAYOUT_UNDEFINED,
                       VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
    vkCmdClearColorImage(c->m.commands, image, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &color, 1,
                         &range);
    machine_transition(&c->m, image, VK_IMAGE_ASPECT_COLOR_BIT,
                       VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
    vkCmdCopyImageToBuffer(c->m.commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                           c->download.buffer, 1, &copy);
}

/* Two images that are never in use at the same time, in one allocation. */
static void draw_aliases(compute *c)
{
    const VmaAllocationCreateInfo how = {.usage = VMA_MEMORY_USAGE_AUTO_PREFER_DEVICE,
                                         .flags = VMA_ALLOCATION_CREATE_CAN_ALIAS_BIT};
    const VkExtent3D extent = TRANSIENT.extent;
    const uint32_t pixels = extent.width * extent.height;
    VkImage images[2] = {VK_NULL_HANDLE, VK_NULL_HANDLE};
    VmaAllocation allocation = VK_NULL_HANDLE;
    MUST(vmaCreateImage(c->vma, &TRANSIENT, &how, &images[0], &allocation, NULL));
    MUST(vmaCreateAliasingImage(c->vma, allocation, &TRANSIENT, &images[1]));
    machine_begin(&c->m);
    record_clear(c, images[0], 0);
    record_clear(c, images[1], 1);
    machine_submit(&c->m);
    MUST(vmaInvalidateAllocation(c->vma, c->download.allocation, 0, VK_WHOLE_SIZE));
    for (uint32_t i = 0; i < 2 * pixels; i++) {
        const uint8_t color[] = {i < pixels ? 0 : 255, 255, 0, 255};
        MUST_HOLD(!memcmp(&c->download.at[i], color, sizeof color));
    }
    memcpy(c->all + c->count, c->download.at, 2 * pixels * sizeof(uint32_t));
    c->count += 2 * pixels;
    vkDestroyImage(c->m.device, images[1], NULL);
    vmaDestroyImage(c->vma, images[0], allocation);
}

/* ---- the program --------------------------------------------------------------------------- */

static void make_allocator(compute *c)
{
    const VmaAllocatorCreateInfo info = {
        .flags = c->m.has_budget ? VMA_ALLOCATOR_CREATE_EXT_MEMORY_BUDGET_BIT : 0,
        .physicalDevice = c->m.physical_device,
        .device = c->m.device,
        .instance = c->m.instance,
        .vulkanApiVersion = VK_API_VERSION_1_3,
    };
    MUST(vmaCreateAllocator(&info, &c->vma));
    c->upload = make_numbers(c, MOST * sizeof(uint32_t),
                             VMA_ALLOCATION_CREATE_HOST_ACCESS_SEQUENTIAL_WRITE_BIT |
                                 VMA_ALLOCATION_CREATE_MAPPED_BIT,
                             NULL);
    c->download = make_numbers(
        c, MOST * sizeof(uint32_t),
        VMA_ALLOCATION_CREATE_HOST_ACCESS_RANDOM_BIT | VMA_ALLOCATION_CREATE_MAPPED_BIT, NULL);
}

/* Both staging buffers are what the allocator has, and the budget covers them. */
static void check_budgets(const compute *c)
{
    VmaBudget budgets[VK_MAX_MEMORY_HEAPS];
    VmaTotalStatistics all;
    VkDeviceSize allocated = 0;
    vmaSetCurrentFrameIndex(c->vma, 1);
    vmaGetHeapBudgets(c->vma, budgets);
    vmaCalculateStatistics(c->vma, &all);
    for (uint32_t i = 0; i < VK_MAX_MEMORY_HEAPS; i++) {
        if (all.memoryHeap[i].statistics.allocationCount)
            MUST_HOLD(budgets[i].budget >= budgets[i].statistics.blockBytes);
        allocated += all.memoryHeap[i].statistics.allocationBytes;
    }
    MUST_HOLD(all.total.statistics.allocationCount == 2);
    MUST_HOLD(all.total.statistics.allocationBytes == allocated);
    MUST_HOLD(allocated >= 2 * MOST * sizeof(uint32_t));
}

int main(void)
{
    static compute c;
    machine_open(&c.m);
    make_allocator(&c);
    make_pipeline(&c);
    scan_in_pool(&c);
    scan_in_parts(&c);
    scan_bound(&c);
    draw_aliases(&c);
    check_budgets(&c);
    machine_print_hash("compute", c.all, c.count * sizeof *c.all);
    vmaDestroyBuffer(c.vma, c.upload.buffer, c.upload.allocation);
    vmaDestroyBuffer(c.vma, c.download.buffer, c.download.allocation);
    vmaDestroyAllocator(c.vma);
    vkDestroyDescriptorPool(c.m.device, c.sets, NULL);
    vkDestroyPipeline(c.m.device, c.pipeline, NULL);
    vkDestroyPipelineLayout(c.m.device, c.layout, NULL);
    vkDestroyDescriptorSetLayout(c.m.device, c.set_layout, NULL);
    return machine_close(&c.m);
}
