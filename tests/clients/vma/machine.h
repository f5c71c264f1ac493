/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * machine.h - what a program without a window needs before its first allocation: a Vulkan device
 * under the validation layer and a command buffer that is submitted and waited for. It names no
 * allocator, so that renderer.cpp and compute.c are built with it twice: on VMA and on quire.
 *
 * A call that fails ends the program.
 */
#ifndef QUIRE_TESTS_CLIENTS_VMA_MACHINE_H
#define QUIRE_TESTS_CLIENTS_VMA_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vulkan/vulkan.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MACHINE_SKIPPED = 77 };

typedef struct machine {
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue; /* of family 0 */
    VkPhysicalDeviceLimits limits;
    bool has_budget; /* VK_EXT_memory_budget is enabled */
    VkCommandPool pool;
    VkCommandBuffer commands; /* between machine_begin and machine_submit */
    VkDebugUtilsMessengerEXT messenger;
    uint32_t messages; /* of the validation layer, which are printed */
} machine;

/* Ends the program with status MACHINE_SKIPPED if this machine lacks a requirement. */
void machine_open(machine *m);

/* Destroys everything. Returns the exit status of the program: 1 if the layer wrote a message. */
int machine_close(machine *m);

void machine_begin(machine *m);
void machine_submit(machine *m);

/* All commands and host accesses before it come before all after it. */
void machine_barrier(const machine *m);
void machine_transition(const machine *m, VkImage image, VkImageAspectFlags aspect,
                        VkImageLayout from, VkImageLayout to);

VkShaderModule machine_shader(const machine *m, const uint32_t *words, size_t bytes);

/* Ends the program, with a message, if the call failed or the statement is false. */
#define MUST(call) machine_must((call), #call)
#define MUST_HOLD(statement) machine_must((statement) ? VK_SUCCESS : VK_NOT_READY, #statement)
void machine_must(VkResult code, const char *call);

/* Prints a line `NAME HASH` of the bytes. */
void machine_print_hash(const char *name, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
