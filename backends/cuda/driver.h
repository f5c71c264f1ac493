/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * driver.h - the CUDA driver: its library and the functions that the backend calls in it, its error
 * codes, its context.
 *
 * Each device has its own table of functions, filled in when the device is opened.
 */
#ifndef QUIRE_BACKENDS_CUDA_DRIVER_H
#define QUIRE_BACKENDS_CUDA_DRIVER_H

#include <pthread.h>

#include "backends/cuda/abi.h"
#include "quire/backend.h"

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

/* ---- error codes -------------------------------------------------------------------------- */

/* Fails with the quire result for a CUresult, as "<what>: CUDA_ERROR_... (CUresult 1)", for some
   codes with ": <what to do>". */
quire_result qi_cuda_fail(const qi_cuda_functions *f, qi_cu_result code, const char *format, ...)
    QUIRE_PRINTF(3, 4);

/* The quire result for a CUresult other than CUDA_SUCCESS. */
quire_result qi_cuda_result(qi_cu_result code);

/* Returns true if the context is lost or the driver shut down. Nothing can be released any more,
   and nothing needs to be: callers treat such a release as done. */
bool qi_cuda_is_lost(qi_cu_result code);

/* ---- the context -------------------------------------------------------------------------- */

typedef struct qi_cuda qi_cuda; /* cuda.h */

/*
 * Makes the context current on the calling thread, and the thread's capture mode relaxed. After
 * success, qi_cuda_leave restores both. May be nested. qi_cuda_push returns the driver's code and
 * must not be called in a forked child, where qi_cuda_enter is NOT_PERMITTED.
 */
QUIRE_MUST_USE quire_result qi_cuda_enter(const qi_cuda *cuda);
qi_cu_result qi_cuda_push(const qi_cuda *cuda);
void qi_cuda_leave(const qi_cuda *cuda);

/* Returns true if a stream captures a graph, or, for the legacy default stream, if a stream that
   waits for it does. In the context. */
bool qi_cuda_is_capturing(const qi_cuda *cuda, qi_cu_stream stream);

/* Like qi_cuda_enter, for calls that use the legacy default stream. NOT_PERMITTED while a capture
   makes that stream unusable. */
QUIRE_MUST_USE quire_result qi_cuda_enter_default(const qi_cuda *cuda);

/* ---- forks -------------------------------------------------------------------------------- */

/* Returns true in a child of the process that opened the device. It must not call the driver. */
bool qi_cuda_has_forked(const qi_cuda *cuda);

/* NOT_PERMITTED in a child of the process that opened the device. */
QUIRE_MUST_USE quire_result qi_cuda_check_process(const qi_cuda *cuda);

/* Entries of the backend table, specified in quire/backend.h. */
void qi_cuda_fork_prepare(void *state);
void qi_cuda_fork_done(void *state);
void qi_cuda_fork_child(void *state, const uint64_t heap_bytes[QUIRE_MAX_HEAPS]);

/* ---- a driver that is not ready ----------------------------------------------------------- */

/*
 * Returns true after a pause, so that the caller repeats a call: for about a second, counted by
 * *pauses, which begins at 0. Releases the mutex `held` during the pause; NULL: the caller holds
 * none.
 */
bool qi_cuda_pause(uint32_t *pauses, pthread_mutex_t *held);

/* The same if `code` is NOT_READY, which cuMemSetAccess may return while other threads submit
   work. */
bool qi_cuda_retry_access(qi_cu_result code, uint32_t *pauses, pthread_mutex_t *held);

#endif
