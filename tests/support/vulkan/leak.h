/*
 * leak.h - see leak.c.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_LEAK_H
#define QUIRE_TESTS_SUPPORT_VULKAN_LEAK_H

#include "tests/support/vulkan/driver.h"

void fv_leaked(fv_object *object);

#endif
