/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * cuda_direct.h - the functions of a CUDA driver for programs that call it without quire. Used by
 * one thread until it is open, then by any.
 */
#ifndef QUIRE_TESTS_SUPPORT_CUDA_DIRECT_H
#define QUIRE_TESTS_SUPPORT_CUDA_DIRECT_H

#include "tests/support/cuda/more.h"

/* Functions that the driver lacks are NULL. */
typedef struct cuda_direct {
#define X(name, suffix, version, presence, parameters) qi_cu_fn_##name name;
    QI_CU_FUNCTIONS(X)
    FAKE_CUDA_MORE_FUNCTIONS(X)
#undef X
} cuda_direct;

extern cuda_direct cu;

/* Loads the driver, once, and calls none of its functions. A failure fails the running case. */
void cuda_direct_load(const char *path);

/* Loads the driver, retains the primary context of device 0 and makes it current; does so once. A
   failure fails the running case. */
void cuda_direct_open(const char *path);

/* The context that cuda_direct_open retained. */
qi_cu_context cuda_direct_context(void);

/* The open library, for dlsym. */
void *cuda_direct_library(void);

/* A symbol of the driver that is not in the table; NULL if there is none. */
void *cuda_direct_find(const char *symbol);

/* Destroys a graph, or NULL, if the driver has the function. */
void cuda_direct_destroy_graph(qi_cu_graph graph);

/* The driver's name of a code. */
const char *cuda_direct_name(qi_cu_result code);

void cuda_direct_must(qi_cu_result result, const char *what);

/* Fails the running case unless the call succeeds. */
#define MUST(call) cuda_direct_must((call), #call)

#endif
