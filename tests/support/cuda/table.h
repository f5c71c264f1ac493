/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * table.h - which functions the fake CUDA driver has just now.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_TABLE_H
#define QUIRE_TESTS_SUPPORT_CUDA_TABLE_H

#include "tests/support/cuda/driver.h"

/* The library has a symbol for it: its version does, and it is not hidden. */
bool fc_has_symbol(fc_call call);

#endif
