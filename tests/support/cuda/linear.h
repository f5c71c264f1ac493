/*
 * linear.h - memory of the fake CUDA driver that has an address from the start: of devices, of the
 * host, and managed.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_LINEAR_H
#define QUIRE_TESTS_SUPPORT_CUDA_LINEAR_H

#include "tests/support/cuda/context.h"
#include "tests/support/cuda/span.h"

/* Memory of the context's device at an address; NULL: none left. */
fc_span *fc_linear_new(fc_context *context, fc_kind kind, uint64_t size);

/* Ends it; says so where work is not done that uses it. */
void fc_linear_end(fc_call call, fc_span *span);

#endif
