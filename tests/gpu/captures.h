/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * captures.h - the calls of captures.c and the objects that they use. capture_calls.c has both.
 */
#ifndef QUIRE_TESTS_GPU_CAPTURES_H
#define QUIRE_TESTS_GPU_CAPTURES_H

#include <stdbool.h>

#include "tests/support/cuda_direct.h"

/* Objects that exist before the capture begins; 0 where the device has none. A call that releases
   one clears its member; what a call makes goes to the members of the same kind behind `made_`. */
typedef struct capture_scene {
    qi_cu_stream captured, other, made_stream; /* `other` does not capture; all are non-blocking */
    qi_cu_event event, made_event;             /* `event` was recorded and has passed */
    qi_cu_ptr block, made_block, managed;
    qi_cu_ptr pooled, made_pooled, captured_pooled;
    void *pinned, *made_pinned, *registered, *made_registered; /* of a granule of the host */
    qi_cu_handle handle, made_handle;                          /* of `size` bytes */
    qi_cu_ptr range, made_range;                               /* reserved, of `size` bytes */
    qi_cu_ptr mapped;                                          /* reserved and mapped */
    qi_cu_handle mapped_handle;
    bool has_mapping, has_range_mapping;
    uint64_t size;
    qi_cu_allocation_prop prop;
    qi_cu_access_desc desc;
    char *host; /* two granules, which `registered` and `made_registered` name */
} capture_scene;

typedef struct capture_call {
    const char *name;
    qi_cu_result (*run)(capture_scene *s);
} capture_call;

/* The answer of a function that the driver lacks. */
#define CAPTURE_ABSENT UINT32_MAX

/* Ends with a call without a name. */
extern const capture_call CAPTURE_CALLS[];

void capture_scene_open(capture_scene *s);

/* Releases what is left. Errors are ignored: the capture may have made any of them. */
void capture_scene_close(capture_scene *s);

#endif
