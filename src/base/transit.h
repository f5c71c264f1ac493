/*
 * transit.h - how many pages the calling thread has under way: it makes them, moves their end,
 * takes them to another shard or gives them back.
 *
 * Two rules keep a thread from waiting for itself, and two threads from waiting for each other:
 *  - the library calls no log sink, hook or other callback while the thread has a page under way;
 *    debug builds stop the program where it would;
 *  - a thread with a page under way waits for no page. It can come to that only where a backend
 *    calls a sink from inside one of its functions, and the sink calls quire.
 */
#ifndef QUIRE_SRC_BASE_TRANSIT_H
#define QUIRE_SRC_BASE_TRANSIT_H

#include <stdbool.h>

void qi_transit_begin(void);
void qi_transit_end(void);

/* Whether the calling thread has a page under way. */
bool qi_transit_is_on(void);

/*
 * Before a log sink, a hook or another callback is called: debug builds stop the program when the
 * calling thread holds any lock of the library or has a page under way.
 */
void qi_transit_assert_none(void);

#endif
