/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * share.h - physical memory of the fake CUDA driver that another process can import.
 *
 * The file describes its bytes after their end, so that an importer knows their size and place.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_SHARE_H
#define QUIRE_TESTS_SUPPORT_CUDA_SHARE_H

#include "tests/support/cuda/memory.h"

#define FC_TRAILER_SIZE 4096

/* Writes the description after the bytes. */
void fc_share_prepare(fc_memory *memory);

/* Finds live memory in the file of a descriptor; NULL if there is none. */
fc_memory *fc_share_known(int fd);

#endif
