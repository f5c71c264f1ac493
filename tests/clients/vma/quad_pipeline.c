/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quad_pipeline.c - see quad_pipeline.h.
 */
#include "tests/clients/vma/quad_pipeline.h"

#include "tests/clients/vma/quad_spirv.h"

enum { VERTEX_SIZE = 5 * sizeof(float), CORNER_OFFSET = 3 * sizeof(float) };

static void make_layouts(quad_pipeline *p, const machine *m)
{
    const VkShaderStageFlags stages = VK_SHADER_STAGE_VERTEX_BIT | VK_SHADER_STAGE_FRAGMENT_BIT;
    const VkDescriptorSetLayoutBinding bindings[] = {
        {0, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1, stages, NULL},
        {1, VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1, stages, NULL},
    };
    const VkDescriptorSetLayoutCreateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    MUST(vkCreateDescriptorSetLayout(m->device, &set, NULL, &p->set_layout));
    const VkPipelineLayoutCreateInfo layout = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &p->set_layout,
    };
    MUST(vkCreatePipelineLayout(m->device, &layout, NULL, &p->layout));
}

static void make_set(quad_pipeline *p, const machine *m)
{
    const VkSamplerCreateInfo sampler = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO};
    MUST(vkCreateSampler(m->device, &sampler, NULL, &p->sampler));
    const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1},
                                          {VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER, 1}};
    const VkDescriptorPoolCreateInfo pool = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = 1,
        .poolSizeCount = 2,
        .pPoolSizes = sizes,
    };
    MUST(vkCreateDescriptorPool(m->device, &pool, NULL, &p->pool));
    const VkDescriptorSetAllocateInfo set = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = p->pool,
        .descriptorSetCount = 1,
        .pSetLayouts = &p->set_layout,
    };
    MUST(vkAllocateDescriptorSets(m->device, &set, &p->set));
}

/* Everything but the shaders and the formats. */
static VkGraphicsPipelineCreateInfo fixed_state(void)
{
    static const VkVertexInputBindingDescription binding = {0, VERTEX_SIZE,
                                                            VK_VERTEX_INPUT_RATE_VERTEX};
    static const VkVertexInputAttributeDescription attributes[] = {
        {0, 0, VK_FORMAT_R32G32B32_SFLOAT, 0}, {1, 0, VK_FORMAT_R32G32_SFLOAT, CORNER_OFFSET}};
    static const VkPipelineVertexInputStateCreateInfo input = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO,
        .vertexBindingDescriptionCount = 1,
        .pVertexBindingDescriptions = &binding,
        .vertexAttributeDescriptionCount = 2,
        .pVertexAttributeDescriptions = attributes,
    };
    static const VkPipelineInputAssemblyStateCreateInfo assembly = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
        .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST,
    };
    static const VkPipelineViewportStateCreateInfo viewport = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO,
        .viewportCount = 1,
        .scissorCount = 1,
    };
    static const VkPipelineRasterizationStateCreateInfo rasterization = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO,
        .lineWidth = 1,
    };
    static const VkPipelineMultisampleStateCreateInfo multisample = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
        .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT,
    };
    static const VkPipelineDepthStencilStateCreateInfo depth = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_DEPTH_STENCIL_STATE_CREATE_INFO,
        .depthTestEnable = VK_TRUE,
        .depthWriteEnable = VK_TRUE,
        .depthCompareOp = VK_COMPARE_OP_LESS,
    };
    return (VkGraphicsPipelineCreateInfo){
        .sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
        .pVertexInputState = &input,
        .pInputAssemblyState = &assembly,
        .pViewportState = &viewport,
        .pRasterizationState = &rasterization,
        .pMultisampleState = &multisample,
        .pDepthStencilState = &depth,
    };
}

static void make_pipeline(quad_pipeline *p, const machine *m, VkFormat color, VkFormat depth)
{
    const VkPipelineRenderingCreateInfo formats = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_RENDERING_CREATE_INFO,
        .colorAttachmentCount = 1,
        .pColorAttachmentFormats = &color,
        .depthAttachmentFormat = depth,
    };
    const VkPipelineColorBlendAttachmentState all = {.colorWriteMask = 0xf};
    const VkPipelineColorBlendStateCreateInfo blend = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
        .attachmentCount = 1,
        .pAttachments = &all,
    };
    const VkDynamicState states[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
    const VkPipelineDynamicStateCreateInfo dynamic = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO,
        .dynamicStateCount = 2,
        .pDynamicStates = states,
    };
    VkPipelineShaderStageCreateInfo stages[] = {
        {.stage = VK_SHADER_STAGE_VERTEX_BIT,
         .module = machine_shader(m, QUAD_VERT, sizeof QUAD_VERT)},
        {.stage = VK_SHADER_STAGE_FRAGMENT_BIT,
         .module = machine_shader(m, QUAD_FRAG, sizeof QUAD_FRAG)},
    };
    for (int i = 0; i < 2; i++) {
        stages[i].sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
        stages[i].pName = "main";
    }
    VkGraphicsPipelineCreateInfo info = fixed_state();
    info.pNext = &formats;
    info.stageCount = 2;
    info.pStages = stages;
    info.pColorBlendState = &blend;
    info.pDynamicState = &dynamic;
    info.layout = p->layout;
    MUST(vkCreateGraphicsPipelines(m->device, VK_NULL_HANDLE, 1, &info, NULL, &p->pipeline));
    for (int i = 0; i < 2; i++)
        vkDestroyShaderModule(m->device, stages[i].module, NULL);
}

void quad_pipeline_create(quad_pipeline *p, const machine *m, VkFormat color, VkFormat depth)
{
    make_layouts(p, m);
    make_set(p, m);
    make_pipeline(p, m, color, depth);
}

void quad_pipeline_destroy(quad_pipeline *p, const machine *m)
{
    vkDestroyPipeline(m->device, p->pipeline, NULL);
    vkDestroyPipelineLayout(m->device, p->layout, NULL);
    vkDestroyDescriptorPool(m->device, p->pool, NULL);
    vkDestroyDescriptorSetLayout(m->device, p->set_layout, NULL);
    vkDestroySampler(m->device, p->sampler, NULL);
}

/* ---- a frame ------------------------------------------------------------------------------- */

static void write_set(const quad_pipeline *p, const machine *m, const quad_frame *frame)
{
    const VkDescriptorBufferInfo uniforms = {frame->uniforms, 0, VK_WHOLE_SIZE};
    const VkDescriptorImageInfo texture = {p->sampler, frame->texture,
                                           VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
    const VkWriteDescriptorSet writes[] = {
        {
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = p->set,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER,
            .pBufferInfo = &uniforms,
        },
        {
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = p->set,
            .dstBinding = 1,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER,
            .pImageInfo = &texture,
        },
    };
    vkUpdateDescriptorSets(m->device, 2, writes, 0, NULL);
}

static void begin_rendering(const machine *m, const quad_frame *frame)
{
    const VkRenderingAttachmentInfo color = {
        .sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
        .imageView = frame->color,
        .imageLayout = VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
        .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
        .clearValue = {.color = {.float32 = {0, 0, 0, 1}}},
    };
    const VkRenderingAttachmentInfo depth = {
        .sType = VK_STRUCTURE_TYPE_RENDERING_ATTACHMENT_INFO,
        .imageView = frame->depth,
        .imageLayout = VK_IMAGE_LAYOUT_DEPTH_STENCIL_ATTACHMENT_OPTIMAL,
        .loadOp = VK_ATTACHMENT_LOAD_OP_CLEAR,
        .storeOp = VK_ATTACHMENT_STORE_OP_DONT_CARE,
        .clearValue = {.depthStencil = {.depth = 1}},
    };
    const VkRenderingInfo info = {
        .sType = VK_STRUCTURE_TYPE_RENDERING_INFO,
        .renderArea = {.extent = {frame->side, frame->side}},
        .layerCount = 1,
        .colorAttachmentCount = 1,
        .pColorAttachments = &color,
        .pDepthAttachment = &depth,
    };
    vkCmdBeginRendering(m->commands, &info);
}

void quad_pipeline_draw(const quad_pipeline *p, const machine *m, const quad_frame *frame)
{
    const float side = (float)frame->side;
    const VkViewport viewport = {0, 0, side, side, 0, 1};
    const VkRect2D scissor = {.extent = {frame->side, frame->side}};
    const VkDeviceSize start = 0;
    write_set(p, m, frame);
    begin_rendering(m, frame);
    vkCmdBindPipeline(m->commands, VK_PIPELINE_BIND_POINT_GRAPHICS, p->pipeline);
    vkCmdBindDescriptorSets(m->commands, VK_PIPELINE_BIND_POINT_GRAPHICS, p->layout, 0, 1, &p->set,
                            0, NULL);
    vkCmdSetViewport(m->commands, 0, 1, &viewport);
    vkCmdSetScissor(m->commands, 0, 1, &scissor);
    vkCmdBindVertexBuffers(m->commands, 0, 1, &frame->vertices, &start);
    vkCmdBindIndexBuffer(m->commands, frame->indices, 0, VK_INDEX_TYPE_UINT16);
    vkCmdDrawIndexed(m->commands, frame->index_count, 1, 0, 0, 0);
    vkCmdEndRendering(m->commands);
}
