/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy.h - copies and fills of whole requests: checks the options, takes both ends into use, then
 * copies part by part (copy_path.h).
 *
 * All checks come before the first byte is copied. A qi_copy holds a use of the allocation at each
 * end until it is ended. No lock may be held: copies call the backend and the progress callback.
 */
#ifndef QUIRE_SRC_CORE_COPY_COPY_H
#define QUIRE_SRC_CORE_COPY_COPY_H

#include "src/core/copy/copy_path.h"

/* ---- whole copies and fills --------------------------------------------------------------- */

/* As quire_copy without a stream. */
QUIRE_MUST_USE quire_result qi_copy_now(const quire_copy_options *options);

/* As quire_copy_get_path, for two memories of which at most one is NULL. */
quire_copy_path qi_copy_path_between(const quire_memory *to, const quire_memory *from);

/*
 * copy_stream.c: as quire_copy and quire_fill with a stream. `done` may be NULL; on success it
 * receives the point after the copy, or stays as it is if the copy is complete on return.
 */
QUIRE_MUST_USE quire_result qi_copy_on_stream(quire_stream *stream,
                                              const quire_copy_options *options, quire_point *done);
QUIRE_MUST_USE quire_result qi_fill_on_stream(quire_stream *stream, quire_memory *memory,
                                              quire_allocation allocation, qi_stream_fill fill,
                                              quire_point *done);

/* ---- steps of a copy ---------------------------------------------------------------------- */

/*
 * Checks options and begins a use of both ends. A region of size 0 copies
 * nothing. On failure nothing is in use.
 */
QUIRE_MUST_USE quire_result qi_copy_begin(qi_copy *copy, const quire_copy_options *options);

/* Copies all bytes, and calls the progress callback after each step. */
QUIRE_MUST_USE quire_result qi_copy_run(qi_copy *copy, const quire_progress *progress);

/* Ends the uses and frees what copying allocated. */
void qi_copy_end(qi_copy *copy);

#endif
