/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * kernel.h - kernels of the fake CUDA driver: the two of bench/cuda_kernel.c. Their text is not
 * compiled; it must be PTX that has the entry. "store" writes 4 bytes, and "spin" is work of one
 * tick. A module lives as long as the driver.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_KERNEL_H
#define QUIRE_TESTS_SUPPORT_CUDA_KERNEL_H

#include "backends/cuda/abi.h"

#define FAKE_CUDA_KERNEL_FUNCTIONS(X)                                                              \
    X(ModuleLoadData, , 2000, OPTIONAL, (void **module, const void *text))                         \
    X(ModuleGetFunction, , 2000, OPTIONAL, (void **function, void *module, const char *name))      \
    X(LaunchKernel, , 4000, OPTIONAL,                                                              \
      (void *function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,              \
       unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared,      \
       qi_cu_stream stream, void **parameters, void **extra))

/* X(function, documented codes), see entries.h. */
#define FC_CODES_OF_KERNELS(X)                                                                     \
    X(ModuleLoadData, FC_TAKE_CODES)                                                               \
    X(ModuleGetFunction, FC_VALUE_CODES | FC_HANDLE_CODE | FC_FOUND_CODE)                          \
    X(LaunchKernel, FC_QUEUE_CODES)

#endif
