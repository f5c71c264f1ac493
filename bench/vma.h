/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma.h - virtual blocks of the Vulkan Memory Allocator as subjects, one per strategy. If the build
 * did not find its header, the subjects are listed as unavailable.
 */
#ifndef QUIRE_BENCH_VMA_H
#define QUIRE_BENCH_VMA_H

#include "bench/subject.h"

extern const subject VMA_BLOCKS[];
extern const size_t VMA_BLOCK_COUNT;

#endif
