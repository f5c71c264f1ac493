/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_compute.c - y = a * x + y on a Vulkan device, in buffers that quire creates.
 *
 * quire opens the device and provides the memory. The program does the rest with plain Vulkan:
 * shader, descriptors, command buffer, fence. A program that has a VkDevice already calls
 * quire_vulkan_wrap instead of quire_vulkan_open, and nothing else changes.
 *
 *     cc vulkan_compute.c $(pkg-config --cflags --libs quire vulkan) && ./a.out
 *
 * saxpy_spirv.h has the shader; saxpy.comp is its source. The exit status is 77 if the machine has
 * no Vulkan device.
 */
#include <inttypes.h>
#include <stdio.h>

#include <quire/quire.h>
#include <quire/vulkan.h>
#include <vulkan/vulkan.h>

#include "saxpy_spirv.h"

enum { COUNT = 1 << 20, GROUP = 64, NO_DEVICE = 77 };
static const uint64_t BYTES = COUNT * sizeof(float);
static const float A = 2.0f;

/* What the program creates. {0} is valid: every destroy function accepts a null handle. */
typedef struct program {
    quire_device *device;
    quire_memory *memory;
    quire_buffer x, y;
    quire_vulkan_handles vulkan; /* belongs to quire */
    VkShaderModule shader;
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkDescriptorPool descriptors;
    VkDescriptorSet set;
    VkCommandPool commands;
    VkCommandBuffer command;
    VkFence fence;
} program;

/* Both leave the calling function, which returns bool, if the call fails. */
#define QUIRE(call)                                                                                \
    do {                                                                                           \
        if (call) {                                                                                \
            fprintf(stderr, "%s\n", quire_last_error());                                           \
            return false;                                                                          \
        }                                                                                          \
    } while (0)
#define VULKAN(call)                                                                               \
    do {                                                                                           \
        VkResult code_ = (call);                                                                   \
        if (code_) {                                                                               \
            fprintf(stderr, #call " returns %d\n", (int)code_);                                    \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

/* ---- memory --------------------------------------------------------------------------------- */

/* Creates a storage buffer with its contents and prints where it is. */
static bool make_buffer(program *p, const char *name, const float *data, quire_buffer *buffer)
{
    quire_allocation_info place; /* written by the call that creates the buffer */
    quire_buffer_options options = {.size = BYTES, .name = name, .info = &place};
    QUIRE(quire_buffer_create(p->memory, &options, buffer));
    /* Works for every memory: through a mapping if the host can reach the page, otherwise through
       quire's staging buffer and a copy on the queue. The bytes are in place on return. */
    QUIRE(quire_write(p->memory, buffer->allocation, 0, data, BYTES));
    printf("buffer %s: page %" PRIu32 ", offset %" PRIu64 ", size %" PRIu64 "\n", name, place.page,
           place.offset, place.size);
    return true;
}

static bool make_memory(program *p, const float *x, const float *y)
{
    QUIRE(quire_vulkan_get_handles(p->device, &p->vulkan));
    /* Without flags or intent: memory that the device reaches fastest. */
    QUIRE(quire_memory_create(p->device, &(quire_memory_options){.name = "compute"}, &p->memory));
    return make_buffer(p, "x", x, &p->x) && make_buffer(p, "y", y, &p->y);
}

/* ---- pipeline ------------------------------------------------------------------------------- */

typedef struct constants {
    float a;
    uint32_t count;
} constants;

static bool make_pipeline(program *p)
{
    VkDevice device = p->vulkan.device;
    VkDescriptorSetLayoutBinding bindings[2] = {
        {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
        {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
    };
    VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    VULKAN(vkCreateDescriptorSetLayout(device, &set_info, NULL, &p->set_layout));
    VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(constants)};
    VkPipelineLayoutCreateInfo layout_info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &p->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &range,
    };
    VULKAN(vkCreatePipelineLayout(device, &layout_info, NULL, &p->layout));
    VkShaderModuleCreateInfo shader_info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = sizeof(SAXPY),
        .pCode = SAXPY,
    };
    VULKAN(vkCreateShaderModule(device, &shader_info, NULL, &p->shader));
    VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = p->shader,
                  .pName = "main"},
        .layout = p->layout,
    };
    VULKAN(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &p->pipeline));
    return true;
}

/* A descriptor set with both buffers. quire_vulkan_buffer_get writes the VkBuffer of a buffer. */
static bool make_descriptors(program *p)
{
    VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
    VkDescriptorPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 1,
        .pPoolSizes = &size,
    };
    VULKAN(vkCreateDescriptorPool(p->vulkan.device, &pool_info, NULL, &p->descriptors));
    VkDescriptorSetAllocateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = p->descriptors,
        .descriptorSetCount = 1,
        .pSetLayouts = &p->set_layout,
    };
    VULKAN(vkAllocateDescriptorSets(p->vulkan.device, &set_info, &p->set));
    VkDescriptorBufferInfo buffers[2] = {
        {.range = BYTES},
        {.range = BYTES},
    };
    QUIRE(quire_vulkan_buffer_get(p->memory, p->x, &buffers[0].buffer));
    QUIRE(quire_vulkan_buffer_get(p->memory, p->y, &buffers[1].buffer));
    VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = p->set,
        .dstBinding = 0, /* two descriptors from binding 0 on: the second one is binding 1 */
        .descriptorCount = 2,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = buffers,
    };
    vkUpdateDescriptorSets(p->vulkan.device, 1, &write, 0, NULL);
    return true;
}

/* ---- work ----------------------------------------------------------------------------------- */

static bool record(program *p)
{
    VkCommandPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .queueFamilyIndex = p->vulkan.queue_family,
    };
    VULKAN(vkCreateCommandPool(p->vulkan.device, &pool_info, NULL, &p->commands));
    VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = p->commands,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    VULKAN(vkAllocateCommandBuffers(p->vulkan.device, &info, &p->command));
    VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    VULKAN(vkBeginCommandBuffer(p->command, &begin));
    vkCmdBindPipeline(p->command, VK_PIPELINE_BIND_POINT_COMPUTE, p->pipeline);
    vkCmdBindDescriptorSets(p->command, VK_PIPELINE_BIND_POINT_COMPUTE, p->layout, 0, 1, &p->set, 0,
                            NULL);
    constants values = {A, COUNT};
    vkCmdPushConstants(p->command, p->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(values),
                       &values);
    vkCmdDispatch(p->command, (COUNT + GROUP - 1) / GROUP, 1, 1);
    /* quire_read reads y by the host or by a copy of the device: the writes must reach both. */
    VkMemoryBarrier barrier = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT,
    };
    vkCmdPipelineBarrier(p->command, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                         VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 1,
                         &barrier, 0, NULL, 0, NULL);
    VULKAN(vkEndCommandBuffer(p->command));
    return true;
}

/* quire uses this queue too, for its staging copies. A program in which other threads call quire at
   the same time submits between quire_vulkan_queue_lock and quire_vulkan_queue_unlock. */
static bool submit_and_wait(program *p)
{
    VkFenceCreateInfo fence_info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    VULKAN(vkCreateFence(p->vulkan.device, &fence_info, NULL, &p->fence));
    VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &p->command,
    };
    VULKAN(vkQueueSubmit(p->vulkan.queue, 1, &submit, p->fence));
    VULKAN(vkWaitForFences(p->vulkan.device, 1, &p->fence, VK_TRUE, UINT64_MAX));
    return true;
}

/* Reads y back and compares it with what the host computes. These floats are exact integers. */
static bool check_result(program *p, float *result)
{
    QUIRE(quire_read(p->memory, p->y.allocation, 0, result, BYTES));
    for (uint32_t i = 0; i < COUNT; i++) {
        float expected = A * (float)i + 1.0f;
        if (result[i] != expected) {
            fprintf(stderr, "y[%" PRIu32 "] is %g, not %g\n", i, result[i], expected);
            return false;
        }
    }
    printf("y = %g * x + y is right for %d floats\n", A, COUNT);
    return true;
}

/* The fence has passed, so that the buffers can be freed: quire destroys the VkBuffers too. */
static bool free_buffers(program *p)
{
    quire_memory_stats stats;
    QUIRE(quire_memory_get_stats(p->memory, &stats));
    printf("live %" PRIu64 " bytes, reserved %" PRIu64 " bytes, pages %" PRIu64
           ", backend calls %" PRIu64 "\n",
           stats.live_bytes, stats.reserved_bytes, stats.page_count, stats.backend_calls);
    QUIRE(quire_free(p->memory, p->x.allocation));
    QUIRE(quire_free(p->memory, p->y.allocation));
    return true;
}

/* Destroys everything, also after a failure. The device is the last one: Vulkan needs it. */
static bool finish(program *p)
{
    VkDevice device = p->vulkan.device;
    if (device) {
        vkDestroyFence(device, p->fence, NULL);
        vkDestroyCommandPool(device, p->commands, NULL);
        vkDestroyDescriptorPool(device, p->descriptors, NULL);
        vkDestroyPipeline(device, p->pipeline, NULL);
        vkDestroyShaderModule(device, p->shader, NULL);
        vkDestroyPipelineLayout(device, p->layout, NULL);
        vkDestroyDescriptorSetLayout(device, p->set_layout, NULL);
    }
    /* Unlike quire_memory_destroy it also frees what a failure left. */
    if (p->memory)
        quire_memory_destroy_all(&p->memory);
    QUIRE(quire_device_destroy(&p->device));
    return true;
}

int main(void)
{
    static float x[COUNT], y[COUNT];
    program p = {0};
    for (uint32_t i = 0; i < COUNT; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    quire_result opened = quire_vulkan_open(NULL, &p.device);
    if (opened) {
        fprintf(stderr, "%s\n", quire_last_error());
        return opened == QUIRE_ERROR_UNSUPPORTED ? NO_DEVICE : 1;
    }
    bool good = make_memory(&p, x, y) && make_pipeline(&p) && make_descriptors(&p) && record(&p) &&
                submit_and_wait(&p) && check_result(&p, y) && free_buffers(&p);
    good &= finish(&p);
    return good ? 0 : 1;
}
