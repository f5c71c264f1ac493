/*
 * vma.h - virtual blocks of the Vulkan Memory Allocator as subjects, one for each strategy. Where
 * its header was not found when this was built they are there and say so.
 */
#ifndef QUIRE_BENCH_VMA_H
#define QUIRE_BENCH_VMA_H

#include "bench/subject.h"

extern const subject VMA_BLOCKS[];
extern const size_t VMA_BLOCK_COUNT;

#endif
