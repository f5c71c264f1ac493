/*
 * functions.h - the driver's library and the functions that are called in it: a table of a device's
 * own, filled when it is opened.
 */
#ifndef QUIRE_BACKENDS_CUDA_FUNCTIONS_H
#define QUIRE_BACKENDS_CUDA_FUNCTIONS_H

#include "backends/cuda/abi.h"
#include "quire/base.h"

/* Optional ones may be NULL. */
typedef struct qi_cuda_functions {
#define QI_CUDA_MEMBER(name, suffix, version, presence, parameters) qi_cu_fn_##name name;
    QI_CU_FUNCTIONS(QI_CUDA_MEMBER)
#undef QI_CUDA_MEMBER
} qi_cuda_functions;

/* Opens the library, NULL: libcuda.so.1. UNSUPPORTED: driver not found. */
QUIRE_MUST_USE quire_result qi_cuda_open_library(const char *path, void **library);

/* The library stays where it is: drivers have threads that outlive whoever opened them. */
void qi_cuda_close_library(void *library);

/* UNSUPPORTED names the first required function that is missing. */
QUIRE_MUST_USE quire_result qi_cuda_load(qi_cuda_functions *functions, void *library);

#endif
