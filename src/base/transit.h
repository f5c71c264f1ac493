/*
 * transit.h - counts the pages that the calling thread has in transit: pages that it creates,
 * resizes, moves to another shard or destroys.
 *
 * Two rules prevent a thread from waiting for itself, and two threads from waiting for each other:
 *  - The library calls no log sink, hook or other callback while the thread has a page in transit.
 *    Debug builds abort the program if it does.
 *  - A thread with a page in transit does not wait for a page. This case arises only if a backend
 *    calls a sink from inside one of its functions and the sink calls quire.
 *
 * The count is thread-local and needs no lock.
 */
#ifndef QUIRE_SRC_BASE_TRANSIT_H
#define QUIRE_SRC_BASE_TRANSIT_H

#include <stdbool.h>

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
