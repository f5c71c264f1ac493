/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * multicast.h - multicast objects of the fake CUDA driver: handles that stand for memory of several
 * devices at once. They can be created, joined, bound, mapped, given access and shared with other
 * processes, with all rules. What only kernels do with their addresses is missing.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_MULTICAST_H
#define QUIRE_TESTS_SUPPORT_CUDA_MULTICAST_H

#include "tests/support/cuda/memory.h"

typedef struct fc_multicast fc_multicast;

/* Unbinds everything and frees the object. Its memory ends the shared bytes. */
void fc_multicast_end(fc_multicast *multicast);

/* Returns true if the device has joined. */
bool fc_multicast_has(const fc_multicast *multicast, int device);

/* Returns true if the file is one of a shared object. */
bool fc_multicast_is(int fd);

/* Makes memory of a shared object of another process, from its file, which it takes over. */
fc_memory *fc_multicast_import(int fd);

/* Returns true if an object is bound to this memory of a pool. */
bool fc_multicast_uses(uint64_t span_number);

/* Returns true if all devices that the object was created for have joined. Otherwise adds a
   message: the real call would wait for them. */
bool fc_multicast_is_complete(const fc_multicast *multicast, fc_call call);

#endif
