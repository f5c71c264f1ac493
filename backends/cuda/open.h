/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * open.h - opens a CUDA device: settings, the driver, the context, and what the device has.
 */
#ifndef QUIRE_BACKENDS_CUDA_OPEN_H
#define QUIRE_BACKENDS_CUDA_OPEN_H

#include "backends/cuda/cuda.h"

/*
 * Creates a state whose library, functions, device and context are set: the primary context of the
 * device that the options select, or the caller's context. On failure nothing is left.
 */
QUIRE_MUST_USE quire_result qi_cuda_open_primary(const quire_cuda_options *options, qi_cuda **cuda);
QUIRE_MUST_USE quire_result qi_cuda_open_context(const quire_cuda_wrap_options *options,
                                                 qi_cuda **cuda);

/* Releases the context, the library and the state. Pages, arrays and streams must be gone. */
void qi_cuda_release_state(qi_cuda *cuda);

/* Fills in everything that describes the device, and its memory kinds. In the context. */
QUIRE_MUST_USE quire_result qi_cuda_probe(qi_cuda *cuda);

/* Returns true if the system reports the host node and reports no memory for it. `folder` is the
   system's list of nodes. */
bool qi_cuda_lacks_memory(const char *folder, int node);

#endif
