/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * device.h - the properties of a Vulkan device, the state behind public handles, and forks.
 */
#ifndef QUIRE_BACKENDS_VULKAN_DEVICE_H
#define QUIRE_BACKENDS_VULKAN_DEVICE_H

#include "backends/vulkan/vulkan.h"

/* ---- creating the state ------------------------------------------------------------------- */

/* Checks the caller's settings. Called before anything is created. */
QUIRE_MUST_USE quire_result qi_vulkan_check_settings(const quire_vulkan_settings *settings);

/*
 * Reads the constant properties of the physical device and determines what is enabled. The state
 * has its function table. UNSUPPORTED: the device or the instance is of Vulkan 1.0.
 */
QUIRE_MUST_USE quire_result qi_vulkan_read_properties(qi_vulkan *vulkan,
                                                      const quire_vulkan_wrap_options *options);

/* Copies the settings into the state and fills in the defaults. Needs the properties. */
void qi_vulkan_resolve_settings(qi_vulkan *vulkan, const quire_vulkan_settings *settings);

/* Counts a VkDeviceMemory before it is allocated. TOO_MANY_PAGES if the device may have no more;
   if the limit is advice, a line in the log instead. */
QUIRE_MUST_USE quire_result qi_vulkan_count_memory(qi_vulkan *vulkan);

/* To be called after a VkDeviceMemory was freed, or could not be allocated. */
void qi_vulkan_uncount_memory(qi_vulkan *vulkan);

/* Whether at least three quarters of them exist: see quire_requirements. */
bool qi_vulkan_is_short_of_memories(const qi_vulkan *vulkan);

/* ---- entries of the backend table --------------------------------------------------------- */

quire_result qi_vulkan_describe(void *state, quire_device_info *info);
quire_result qi_vulkan_heap_budget(void *state, uint32_t heap, quire_heap_budget *budget);

/* ---- the state behind a handle ------------------------------------------------------------ */

/* NOT_PERMITTED in the child of a fork: the device was created by the parent. */
QUIRE_MUST_USE quire_result qi_vulkan_check_process(const qi_vulkan *vulkan);

/* Returns the state of a device. Fails with NULL: INVALID_ARGUMENT if the device is NULL or of
   another backend, NOT_PERMITTED in the child of a fork. */
qi_vulkan *qi_vulkan_of(const quire_device *device);

/* Checks that a memory is of the Vulkan backend and of this process. Takes no lock. */
QUIRE_MUST_USE quire_result qi_vulkan_check_memory(const quire_memory *memory);

/* The same, and returns the state of the memory's device. */
QUIRE_MUST_USE quire_result qi_vulkan_of_memory(const quire_memory *memory, qi_vulkan **vulkan);

/* Returns the state of an allocation's device, and the allocation's native page and object. */
QUIRE_MUST_USE quire_result qi_vulkan_of_allocation(const quire_memory *memory,
                                                    quire_allocation allocation,
                                                    quire_native *native, qi_vulkan **vulkan);

/* ---- entries of the backend table: the stages of a fork ----------------------------------- */

/* As quire/backend.h describes them. */
void qi_vulkan_fork_prepare(void *state);
void qi_vulkan_fork_done(void *state);
void qi_vulkan_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

#endif
