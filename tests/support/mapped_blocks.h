/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mapped_blocks.h - host memory from the system, for forks beside threads that allocate all the
 * time. The allocators of sanitizers have locks that a fork does not take, so that a child may find
 * one locked: the system has none.
 */
#ifndef QUIRE_TESTS_SUPPORT_MAPPED_BLOCKS_H
#define QUIRE_TESTS_SUPPORT_MAPPED_BLOCKS_H

#include <sys/mman.h>

#include "quire/quire.h"
#include "tests/support/check.h"

static void *map_block(void *user, size_t size, size_t alignment)
{
    (void)user;
    (void)alignment;
    void *block = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

static void unmap_block(void *user, void *pointer, size_t size, size_t alignment)
{
    (void)user;
    (void)alignment;
    CHECK_EQ(munmap(pointer, size), 0);
}

static const quire_host_memory MAPPED_BLOCKS = {.allocate = map_block, .release = unmap_block};

#endif
