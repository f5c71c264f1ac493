/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* array.h - arrays that grow. */
#ifndef QUIRE_SRC_TOOL_ARRAY_H
#define QUIRE_SRC_TOOL_ARRAY_H

#include <stddef.h>
#include <stdint.h>

/*
 * Doubles an array of `room` elements of `size` bytes until it has the index `at`. NULL is an array
 * of none. Returns where the array is now, or NULL without host memory, and the array stays.
 */
void *grow_array(void *array, uint64_t *room, uint64_t at, size_t size);

#endif
