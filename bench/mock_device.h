/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mock_device.h - a Vulkan driver without a device, for measurements of what a library adds to its
 * calls of the driver. It has one queue, one device-local and one host-visible memory kind, and
 * buffers and images of which it knows only the size.
 */
#ifndef QUIRE_BENCH_MOCK_DEVICE_H
#define QUIRE_BENCH_MOCK_DEVICE_H

#include <vulkan/vulkan_core.h>

/* Functions that no measurement calls abort the program. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL mock_get_instance_proc_addr(VkInstance instance,
                                                                     const char *name);

#endif
