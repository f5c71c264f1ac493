/*
 * thread.h - a small number for each thread of the process; memories spread threads over shards by
 * it.
 *
 * Numbers are dense: the first call of a thread takes the lowest free number, and the end of the
 * thread returns it. Above QI_MAX_THREADS live threads, threads share number 0. Thread-safe: a bit
 * per number, changed atomically.
 */
#ifndef QUIRE_SRC_BASE_THREAD_H
#define QUIRE_SRC_BASE_THREAD_H

#include <stdint.h>

enum { QI_MAX_THREADS = 1024 };

uint32_t qi_thread_number(void);

/*
 * A value unique to the calling thread among live threads. The thread keeps it in a forked child.
 */
const void *qi_thread_self(void);

/* Called in the child of a fork: returns the numbers of the threads that do not exist there. */
void qi_thread_forked(void);

#endif
