/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * thread.h - what the library keeps for each thread: a small number, and the count of pages that
 * the thread has in transit.
 */
#ifndef QUIRE_SRC_BASE_THREAD_H
#define QUIRE_SRC_BASE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* ---- numbers ------------------------------------------------------------------------------ */

/*
 * A small number for each thread of the process; memories spread threads over shards by it.
 *
 * Numbers are dense: the first call of a thread takes the lowest free number, and the end of the
 * thread returns it. Above QI_MAX_THREADS live threads, threads share number 0. Thread-safe: a bit
 * per number, changed atomically.
 */

enum { QI_MAX_THREADS = 1024 };

uint32_t qi_thread_number(void);

/* Unique to the calling thread among live threads. The thread keeps it in a forked child. */
const void *qi_thread_self(void);

/* Called in the child of a fork: returns the numbers of the threads that do not exist there. */
void qi_thread_forked(void);

/* ---- pages in transit --------------------------------------------------------------------- */

/*
 * Counts the pages that the calling thread has in transit: pages that it creates, resizes, moves to
 * another shard or destroys.
 *
 * Two rules prevent a thread from waiting for itself, and two threads from waiting for each other:
 *  - The library calls no log sink, hook or other callback while the thread has a page in transit.
 *    Debug builds abort the program if it does.
 *  - A thread with a page in transit does not wait for a page. This case arises only if a backend
 *    calls a sink from inside one of its functions and the sink calls quire.
 *
 * The count is thread-local and needs no lock.
 */

void qi_transit_begin(void);
void qi_transit_end(void);

/* Whether the calling thread has a page in transit. */
bool qi_transit_is_on(void);

/*
 * Called before a log sink, a hook or another callback: debug builds abort the program if the
 * calling thread holds any lock of the library or has a page in transit.
 */
void qi_transit_assert_none(void);

#endif
