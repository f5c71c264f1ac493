/*
 * layout_file.h - layouts of the fake Vulkan driver from device profiles in JSON, the same files
 * that `quire devices --profile` reads.
 */
#ifndef QUIRE_TESTS_SUPPORT_VULKAN_LAYOUT_FILE_H
#define QUIRE_TESTS_SUPPORT_VULKAN_LAYOUT_FILE_H

#include <stdbool.h>

#include "tests/support/vulkan/layout.h"

/*
 * A layout of its own memory, which fv_layout_file_end gives back; false and a sentence on stderr.
 */
bool fv_layout_file_read(const char *path, fv_layout *layout);
void fv_layout_file_end(fv_layout *layout);

/*
 * The folder "devices" below the one that the environment variable QUIRE_TEST_DATA names. Calls
 * back with the layout of every file in it, by name; the number of them, 0 where there is no such
 * folder.
 */
uint32_t fv_layout_files(void (*take)(const fv_layout *layout, void *state), void *state);

#endif
