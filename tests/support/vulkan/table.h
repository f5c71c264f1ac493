/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.h - the entry points of the fake driver, declared from entries.h: fv_vkAllocateMemory and
 * so on.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_TABLE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_TABLE_H

#include "tests/support/vulkan/driver.h"

/* Declares an entry point with exactly the type of the specification. */
#define X(function, scope, version, extension, codes)                                              \
    extern __typeof__(*(PFN_##function)0) fv_##function;
FV_ENTRIES(X)
#undef X

/* NULL: the version and the enabled extensions do not contain it, or it is hidden. */
PFN_vkVoidFunction fv_instance_function(fv_driver *driver, fv_instance *instance, const char *name);
PFN_vkVoidFunction fv_physical_device_function(fv_driver *driver, const char *name);
PFN_vkVoidFunction fv_device_function(fv_device *device, const char *name);

#endif
