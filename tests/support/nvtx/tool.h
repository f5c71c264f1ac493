/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * tool.h - the NVTX calls that the tool of the tests received, returned by nvtx_tool of its
 * library.
 */
#ifndef QUIRE_TESTS_SUPPORT_NVTX_TOOL_H
#define QUIRE_TESTS_SUPPORT_NVTX_TOOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct nvtx_range {
    const void *begin;
    size_t size;
} nvtx_range;

typedef struct nvtx_calls {
    uint32_t heaps, heaps_ended, regions, regions_ended;
    uint32_t wrong;          /* calls that break NVTX's rules */
    nvtx_range heap, region; /* the last ranges */
} nvtx_calls;

const nvtx_calls *nvtx_tool(void);

#endif
