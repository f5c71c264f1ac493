/*
 * queue_heap.h - the late waits of a stream queue, in a heap by value. A wait is late if a wait
 * with a higher value is at the end of the queue's list when it is put.
 *
 * Most frees come in the order of their points and are appended to the list. The heap holds the
 * others, so that a free takes at most logarithmically many steps on average, in any order of the
 * points. The links are fields of the waits, so that no operation can fail.
 *
 * The shard's lock protects the heap. Invariant: no wait precedes its parent.
 */
#ifndef QUIRE_SRC_CORE_DEFERRED_QUEUE_HEAP_H
#define QUIRE_SRC_CORE_DEFERRED_QUEUE_HEAP_H

#include "src/core/state/memory.h"

typedef struct qi_wait qi_wait;

typedef struct qi_queue_heap {
    qi_wait *first;  /* the lowest value; among equal values the one put first; NULL if empty */
    uint64_t orders; /* the last `order` that was assigned */
    uint64_t steps;  /* steps of all merges so far; tests read it */
    uint32_t coins;  /* the state of the pseudo-random coin that keeps the heap low */
} qi_queue_heap;

void qi_queue_heap_put(qi_queue_heap *heap, qi_wait *wait);

/* Takes any wait of the heap out and returns it. */
qi_wait *qi_queue_heap_take(qi_queue_heap *heap, qi_wait *wait);

/* Returns the next wait of a traversal that starts at heap->first; NULL after the last one. */
qi_wait *qi_queue_heap_next(const qi_wait *wait);

/* Returns the highest value, or 0 if the heap is empty. Visits every wait. */
uint64_t qi_queue_heap_highest(const qi_queue_heap *heap);

/* Whether the children of a wait name it as their parent and do not precede it. */
bool qi_queue_heap_agrees_at(const qi_wait *wait);

#endif
