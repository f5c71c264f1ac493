/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * vma_notes.h - what a run of the scenarios in vma_scenarios.c sees, to compare VMA with
 * quire_vma.h. The scenarios are compiled once with the header of each.
 */
#ifndef QUIRE_TESTS_SUPPORT_VMA_NOTES_H
#define QUIRE_TESTS_SUPPORT_VMA_NOTES_H

#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

#include "quire/base.h"

enum { VMA_SCENARIO_ROOM = 96 };

/* A value that a scenario saw: "memoryType" of "buffer 'vertex', usage 7, flags 0x400". */
typedef struct vma_note {
    char scenario[VMA_SCENARIO_ROOM];
    const char *field;
    uint64_t value;
} vma_note;

typedef struct vma_notes {
    vma_note *all;
    size_t count, room;
    char scenario[VMA_SCENARIO_ROOM]; /* of the next notes */
} vma_notes;

/* Names the scenario of the following notes, as printf does. */
void vma_scenario(vma_notes *notes, const char *format, ...) QUIRE_PRINTF(2, 3);

/* The field must be a literal. Aborts if host memory is exhausted. */
void vma_note_add(vma_notes *notes, const char *field, uint64_t value);

void vma_notes_end(vma_notes *notes);

/* A device and the options of the allocator that the scenarios create on it. */
typedef struct vma_scene {
    PFN_vkGetInstanceProcAddr get;
    PFN_vkGetDeviceProcAddr get_of_device;
    VkInstance instance;
    VkPhysicalDevice physical;
    VkDevice device;
    VkPhysicalDeviceMemoryProperties memory;
    uint32_t api_version;
    uint32_t flags;      /* VmaAllocatorCreateFlags */
    bool driver_decides; /* which objects get dedicated memory */
} vma_scene;

/* Run all scenarios and note what they see. */
void vma_run_reference(const vma_scene *scene, vma_notes *notes); /* VMA */
void vma_run_quire(const vma_scene *scene, vma_notes *notes);     /* quire_vma.h */

/* The same for those of virtual blocks, which need no device. */
void vma_virtual_run_reference(vma_notes *notes);
void vma_virtual_run_quire(vma_notes *notes);

#endif
