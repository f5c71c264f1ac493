/*
 * queue_heap.c - a randomized meldable heap. `next` and `previous` of a wait are its two children,
 * and neither precedes it.
 *
 * Two heaps are merged along a path downwards, and a coin chooses the child at each step. In any
 * binary tree of n nodes such a path has at most log2(n + 1) steps on average, after any sequence
 * of operations. The heap therefore keeps no balance. The coin does not depend on the waits: the
 * same requests produce the same heap.
 */
#include "src/core/deferred/queue_heap.h"

#include "src/core/deferred/stream_queue.h"

/* Waits with equal values keep the order in which they were put. */
static bool precedes(const qi_wait *one, const qi_wait *other)
{
    return one->value < other->value || (one->value == other->value && one->order < other->order);
}

/* A linear congruential generator; its highest bit is the best one. */
static bool flip(qi_queue_heap *heap)
{
    heap->coins = heap->coins * UINT32_C(1664525) + UINT32_C(1013904223);
    return heap->coins >> 31;
}

/* Merges two heaps, each of which may be empty. `above` becomes the parent of the result. */
static qi_wait *merge(qi_queue_heap *heap, qi_wait *one, qi_wait *other, qi_wait *above)
{
    qi_wait *first = NULL, **link = &first;
    while (one && other) {
        qi_wait *before = precedes(other, one) ? other : one;
        other = before == one ? other : one;
        *link = before;
        before->above = above;
        above = before;
        link = flip(heap) ? &before->next : &before->previous;
        one = *link;
        heap->steps++;
    }
    qi_wait *rest = one ? one : other;
    *link = rest;
    if (rest)
        rest->above = above;
    return first;
}

void qi_queue_heap_put(qi_queue_heap *heap, qi_wait *wait)
{
    wait->order = ++heap->orders;
    wait->next = wait->previous = NULL;
    heap->first = merge(heap, heap->first, wait, NULL);
}

qi_wait *qi_queue_heap_take(qi_queue_heap *heap, qi_wait *wait)
{
    qi_wait *above = wait->above;
    qi_wait **link = &heap->first;
    if (above)
        link = above->next == wait ? &above->next : &above->previous;
    *link = merge(heap, wait->next, wait->previous, above);
    wait->above = NULL;
    wait->order = 0;
    return wait;
}

qi_wait *qi_queue_heap_next(const qi_wait *wait)
{
    if (wait->next)
        return wait->next;
    if (wait->previous)
        return wait->previous;
    for (; wait->above; wait = wait->above)
        if (wait == wait->above->next && wait->above->previous)
            return wait->above->previous;
    return NULL;
}

uint64_t qi_queue_heap_highest(const qi_queue_heap *heap)
{
    uint64_t highest = 0;
    for (const qi_wait *wait = heap->first; wait; wait = qi_queue_heap_next(wait))
        highest = wait->value > highest ? wait->value : highest;
    return highest;
}

bool qi_queue_heap_agrees_at(const qi_wait *wait)
{
    const qi_wait *below[2] = {wait->next, wait->previous};
    for (int i = 0; i < 2; i++)
        if (below[i] && (below[i]->above != wait || precedes(below[i], wait)))
            return false;
    return wait->order != 0;
}
