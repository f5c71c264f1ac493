/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * leak.h - destroys the objects that a caller of the fake CUDA driver left alive.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_LEAK_H
#define QUIRE_TESTS_SUPPORT_CUDA_LEAK_H

#include "tests/support/cuda/context.h"

/* Destroys everything without a message. */
void fc_leaked(void);

/* Destroys the objects of a context that is being destroyed, with a message. */
void fc_context_leaked(const fc_context *context, fc_call call);

#endif
