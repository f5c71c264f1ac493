/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * leak.h - destroys the objects that a caller did not destroy.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_LEAK_H
#define QUIRE_TESTS_SUPPORT_VULKAN_LEAK_H

#include "tests/support/vulkan/driver.h"

void fv_leaked(fv_object *object);

#endif
