/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vulkan_sparse.h - the scenarios of vulkan.c whose memory is bound to sparse objects: those of the
 * caller, and the buffers of elastic memories.
 */
#ifndef QUIRE_TESTS_FAULT_VULKAN_SPARSE_H
#define QUIRE_TESTS_FAULT_VULKAN_SPARSE_H

#include "tests/fault/driver.h"
#include "tests/support/vulkan_bench.h"

/* Objects that are bound as a whole. */
void sparse_buffer(vulkan_bench *b, quire_memory *m);
void sparse_image(vulkan_bench *b, quire_memory *m);

/* Objects that are bound in parts. */
void sparse_blocks(vulkan_bench *b, quire_memory *m);
void sparse_tiles(vulkan_bench *b, quire_memory *m);
void sparse_aspects(vulkan_bench *b, quire_memory *m);

/* The memory of the scenarios of elastic.h, which follow. */
extern const quire_memory_options FAULT_ELASTIC;
void elastic_growth(vulkan_bench *b, quire_memory *m);
void elastic_lazies(vulkan_bench *b, quire_memory *m);
void elastic_sleep(vulkan_bench *b, quire_memory *m);

#endif
