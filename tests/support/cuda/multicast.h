/*
 * multicast.h - multicast objects of the fake CUDA driver: handles that stand for memory of several
 * devices at once. They can be created, joined, bound, mapped and given access, with all rules.
 * What only kernels do with their addresses is missing.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_MULTICAST_H
#define QUIRE_TESTS_SUPPORT_CUDA_MULTICAST_H

#include "tests/support/cuda/memory.h"

typedef struct fc_multicast fc_multicast;

/* Unbinds everything and frees the object. */
void fc_multicast_end(fc_multicast *multicast);

/* Returns true if all devices that the object was created for have joined. Otherwise adds a
   message: the real call would wait for them. */
bool fc_multicast_is_complete(const fc_multicast *multicast, fc_call call);

#endif
