/*
 * tool.h - what the tool of the tests was told through NVTX: by nvtx_tool of its library.
 */
#ifndef QUIRE_TESTS_SUPPORT_NVTX_TOOL_H
#define QUIRE_TESTS_SUPPORT_NVTX_TOOL_H

#include <stddef.h>
#include <stdint.h>

typedef struct nvtx_range {
    const void *begin;
    size_t size;
} nvtx_range;

typedef struct nvtx_told {
    uint32_t heaps, heaps_ended, regions, regions_ended;
    uint32_t wrong;          /* calls that are not as NVTX asks */
    nvtx_range heap, region; /* the last ones */
} nvtx_told;

const nvtx_told *nvtx_tool(void);

#endif
