/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * copy_batch.h - writes and reads of many parts of allocations of one memory.
 *
 * A batch holds a use of every allocation that it names while it runs. Items one after the other
 * that name the same allocation share one use. No lock may be held: a batch calls the backend.
 * Invariant: the items are copied in the order of the list, whatever path they take.
 */
#ifndef QUIRE_SRC_CORE_COPY_COPY_BATCH_H
#define QUIRE_SRC_CORE_COPY_COPY_BATCH_H

#include "quire/transfer.h"
#include "src/core/state/memory.h"

/* The items of a call. One of the two lists is NULL. */
typedef struct qi_copy_batch {
    quire_memory *memory;
    const quire_write_item *writes;
    const quire_read_item *reads;
    uint64_t count;
} qi_copy_batch;

/* As quire_write_batch without a stream, and quire_read_batch. */
QUIRE_MUST_USE quire_result qi_copy_batch_now(const qi_copy_batch *batch);

/* copy_stream.c: as quire_write_batch with a stream. `done` as in qi_copy_on_stream. */
QUIRE_MUST_USE quire_result qi_copy_batch_on_stream(quire_stream *stream,
                                                    const qi_copy_batch *batch, quire_point *done);

/* ---- steps, for copy_stream.c ------------------------------------------------------------- */

/* Checks all items and begins the uses. On failure nothing is in use. */
QUIRE_MUST_USE quire_result qi_copy_batch_begin(const qi_copy_batch *batch);
void qi_copy_batch_end(const qi_copy_batch *batch);

/*
 * Writes the next slot that the batch holds a use of, from item *i on, and advances *i. Returns
 * false after the last.
 */
bool qi_copy_batch_next_slot(const qi_copy_batch *batch, uint64_t *i, uint32_t *slot);

/* Copies all bytes of a batch that was begun. */
QUIRE_MUST_USE quire_result qi_copy_batch_run(const qi_copy_batch *batch);

/* Submits the writes of a batch that was begun to a stream of the memory's device. UNSUPPORTED if
   the backend cannot do that. After a failure *has_submitted says whether some were submitted. */
QUIRE_MUST_USE quire_result qi_copy_batch_submit(const qi_copy_batch *batch, uint64_t stream,
                                                 bool *has_submitted);

#endif
