/*
 * functions.h - the CUDA driver's library and the functions that the backend calls in it. Each
 * device has its own table of functions, filled in when the device is opened.
 */
#ifndef QUIRE_BACKENDS_CUDA_FUNCTIONS_H
#define QUIRE_BACKENDS_CUDA_FUNCTIONS_H

#include "backends/cuda/abi.h"
#include "quire/base.h"

/* The functions of the driver. Optional ones are NULL if the driver lacks them. */
typedef struct qi_cuda_functions {
#define QI_CUDA_MEMBER(name, suffix, version, presence, parameters) qi_cu_fn_##name name;
    QI_CU_FUNCTIONS(QI_CUDA_MEMBER)
#undef QI_CUDA_MEMBER
} qi_cuda_functions;

/*
 * Loads the library at a path; NULL or "" loads libcuda.so.1. UNSUPPORTED if it cannot be loaded.
 */
QUIRE_MUST_USE quire_result qi_cuda_open_library(const char *path, void **library);

/* Drops the reference. The library stays loaded: threads of the driver outlive their device. */
void qi_cuda_close_library(void *library);

/* Fills in the table. UNSUPPORTED names the first required function that the driver lacks. */
QUIRE_MUST_USE quire_result qi_cuda_load(qi_cuda_functions *functions, void *library);

#endif
