/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * linear.h - memory of the fake CUDA driver that has an address from the start: device, host and
 * managed memory.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_LINEAR_H
#define QUIRE_TESTS_SUPPORT_CUDA_LINEAR_H

#include "tests/support/cuda/context.h"
#include "tests/support/cuda/span.h"

/* Allocates memory of the context's device; NULL if memory is exhausted. */
fc_span *fc_linear_new(fc_context *context, fc_kind kind, uint64_t size);

/* The same, without counting the bytes. */
fc_span *fc_linear_place(fc_context *context, fc_kind kind, uint64_t size);

/* Frees it. Adds a message if queued work still uses it. */
void fc_linear_end(fc_call call, fc_span *span);

#endif
