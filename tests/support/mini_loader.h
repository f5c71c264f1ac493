/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * mini_loader.h - the loader's part in a test of the layer: chain structs for vkCreateInstance and
 * vkCreateDevice, and dispatch keys, for a driver without a loader above it.
 */
#ifndef QUIRE_TESTS_SUPPORT_MINI_LOADER_H
#define QUIRE_TESTS_SUPPORT_MINI_LOADER_H

#include <vulkan/vulkan_core.h>

/*
 * The vkGetInstanceProcAddr of the layer over that of a driver. One at a time in a process; pass it
 * to the fixture of the fake driver (fv_fixture_open_over).
 */
PFN_vkGetInstanceProcAddr mini_loader_over(PFN_vkGetInstanceProcAddr driver);

#endif
