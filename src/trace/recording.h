/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * recording.h - reads a recording (src/base/recording.h) as a trace.
 */
#ifndef QUIRE_SRC_TRACE_RECORDING_H
#define QUIRE_SRC_TRACE_RECORDING_H

#include "src/trace/trace.h"

/* Whether bytes begin as a recording does. */
bool qi_is_recording(const char *bytes, size_t size);

/*
 * Adds the events of all complete blocks to an empty trace. `name` is the prefix of errors:
 * BAD_FILE with "NAME: byte N: what is wrong", OUT_OF_HOST_MEMORY. The caller destroys the trace on
 * failure.
 */
QUIRE_MUST_USE quire_result qi_recording_read(quire_trace *trace, const char *name,
                                              const char *bytes, size_t size);

#endif
