/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * layout_file.h - layouts of the fake Vulkan driver from device profiles in JSON, the same files
 * that `quire devices --profile` reads.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_LAYOUT_FILE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_LAYOUT_FILE_H

#include "tests/support/vulkan/layout.h"

/*
 * Calls back with the layout of every file in the folder "devices" below the folder that the
 * environment variable QUIRE_TEST_DATA names, ordered by name. Returns the number of files, 0 if
 * the folder does not exist.
 */
uint32_t fv_layout_files(void (*take)(const fv_layout *layout, void *state), void *state);

#endif
