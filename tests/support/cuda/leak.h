/*
 * leak.h - ends what a caller of the fake CUDA driver left alive.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_LEAK_H
#define QUIRE_TESTS_SUPPORT_CUDA_LEAK_H

#include "tests/support/cuda/context.h"

/* Everything, without a word. */
void fc_leaked(void);

/* What lies in a context that ends, with a message. */
void fc_context_leaked(const fc_context *context, fc_call call);

#endif
