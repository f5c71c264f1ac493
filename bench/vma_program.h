/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_program.h - a program that uses VMA's interface, compiled with VMA's header and with
 * quire/quire_vma.h: its scenarios, what a run needs and what it measures.
 */
#ifndef QUIRE_BENCH_VMA_PROGRAM_H
#define QUIRE_BENCH_VMA_PROGRAM_H

#include <stdbool.h>
#include <vulkan/vulkan_core.h>

#include "bench/ticks.h"

/* The driver that the program runs on. */
typedef struct vma_driver {
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    PFN_vkGetInstanceProcAddr of_instance;
    PFN_vkGetDeviceProcAddr of_device;
} vma_driver;

/* One run of a scenario. The program fills in what follows `ticks`. */
typedef struct vma_run {
    const vma_driver *driver;
    bool counts_host;    /* the program passes host memory callbacks that count their calls */
    uint64_t pause_ms;   /* between two frames after the last free */
    uint64_t operations; /* to time, at most */
    uint64_t *ticks;     /* of each sample; has room for one of each operation */
    uint64_t samples;
    uint64_t operations_of_sample;
    uint64_t host_calls; /* allocations of host memory while operations were timed */
    uint64_t made;       /* memory objects of the driver that were created meanwhile */
    uint64_t live_bytes; /* of the driver's memory objects, before the program frees everything */
    uint64_t kept_bytes; /* and after that, a frame, the pause and a frame */
} vma_run;

typedef struct vma_scenario {
    const char *name, *operation;
    uint64_t operations; /* of a full run */
    void (*play)(vma_run *run);
} vma_scenario;

typedef struct vma_program {
    const char *name;
    const vma_scenario *scenarios;
} vma_program;

enum { VMA_SCENARIOS = 14 };

extern const vma_program vma_program_quire;
#ifdef BENCH_HAS_VMA
extern const vma_program vma_program_vma;
#endif

#endif
