/*
 * wait_heap.h - the late waits of a lane, which were put while one of a later point was at the end
 * of its list: a heap by value.
 *
 * Frees mostly come in the order of their points and are appended to a list. Those that do not are
 * kept here, so that a free costs steps in proportion to the logarithm of how many there are, in
 * whatever order the points come. The links lie in the waits, so that nothing here can fail.
 *
 * Everything is under the shard's lock.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_QUEUE_HEAP_H
#define QUIRE_SRC_CORE_DEFERRED_QUEUE_HEAP_H

#include "src/core/state/memory.h"

typedef struct qi_wait qi_wait;

typedef struct qi_queue_heap {
    qi_wait *first;  /* of the lowest value, the one put first of equals; NULL: there is none */
    uint64_t orders; /* handed out */
    uint64_t steps;  /* taken so far, for tests */
    uint32_t coins;  /* the state of the coin that keeps the heap low */
} qi_queue_heap;

void qi_queue_heap_put(qi_queue_heap *heap, qi_wait *wait);
/* Takes any of them out, and returns it. */
qi_wait *qi_queue_heap_take(qi_queue_heap *heap, qi_wait *wait);

/* The one after another in some order, after the first all of them; NULL: that was the last. */
qi_wait *qi_queue_heap_next(const qi_wait *wait);

/* The highest value; 0 where there is none. Looks at all of them. */
uint64_t qi_queue_heap_highest(const qi_queue_heap *heap);

/* Whether those right below one know it, and come after it. */
bool qi_queue_heap_agrees_at(const qi_wait *wait);

#endif
