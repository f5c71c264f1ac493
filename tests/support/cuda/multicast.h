/*
 * multicast.h - multicast objects of the fake CUDA driver: handles that stand for memory of several
 * devices at once. They can be made, joined, bound, mapped and given access to, with all the rules;
 * what only kernels can do with their addresses is not there.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_MULTICAST_H
#define QUIRE_TESTS_SUPPORT_CUDA_MULTICAST_H

#include "tests/support/cuda/memory.h"

typedef struct fc_multicast fc_multicast;

/* Unbinds all and frees it. */
void fc_multicast_end(fc_multicast *multicast);

/*
 * All devices that it was made for have joined. If not, says that the call would wait for them,
 * here for ever.
 */
bool fc_multicast_is_complete(const fc_multicast *multicast, fc_call call);

#endif
