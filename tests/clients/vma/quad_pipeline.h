/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * quad_pipeline.h - what renderer.cpp draws with: shaders, layouts, sampler, descriptors. Like
 * machine.h it names no allocator.
 */
#ifndef QUIRE_TESTS_CLIENTS_VMA_QUAD_PIPELINE_H
#define QUIRE_TESTS_CLIENTS_VMA_QUAD_PIPELINE_H

#include "tests/clients/vma/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct quad_pipeline {
    VkDescriptorSetLayout set_layout;
    VkPipelineLayout layout;
    VkPipeline pipeline;
    VkSampler sampler;
    VkDescriptorPool pool;
    VkDescriptorSet set;
} quad_pipeline;

/* What a frame reads and writes. */
typedef struct quad_frame {
    VkBuffer vertices, indices, uniforms; /* a vertex: three floats of position, two of texture */
    VkImageView texture, color, depth;
    uint32_t side, index_count;
} quad_frame;

void quad_pipeline_create(quad_pipeline *p, const machine *m, VkFormat color, VkFormat depth);
void quad_pipeline_destroy(quad_pipeline *p, const machine *m);

/* Records the frame, in layouts for attachments and for reading the texture. */
void quad_pipeline_draw(const quad_pipeline *p, const machine *m, const quad_frame *frame);

#ifdef __cplusplus
}
#endif

#endif
