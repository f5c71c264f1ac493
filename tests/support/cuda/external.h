/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * external.h - memory of other drivers in the fake CUDA driver: what other files need to destroy
 * it.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_EXTERNAL_H
#define QUIRE_TESTS_SUPPORT_CUDA_EXTERNAL_H

#include "tests/support/cuda/driver.h"

void fc_external_end(fc_object *object);

/* The context that imported it. */
uint64_t fc_external_context(const fc_object *object);

#endif
