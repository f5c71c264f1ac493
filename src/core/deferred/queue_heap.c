/*
 * wait_heap.c - see wait_heap.h. A wait's `next` and `previous` are the two below it, neither of
 * which comes before it.
 *
 * Two heaps are merged along a path down that a coin chooses at each step. A path that is chosen so
 * has no more than log2(n + 1) steps on average in any tree of n, whatever was put and taken out
 * before, so that no balance is kept. The coin does not depend on the waits: the same requests give
 * the same heap.
 */
#include "src/core/deferred/queue_heap.h"

#include "src/core/deferred/stream_queue.h"

static bool comes_before(const qi_wait *one, const qi_wait *other)
{
    return one->value < other->value || (one->value == other->value && one->order < other->order);
}

static bool flip(qi_queue_heap *heap)
{
    heap->coins = heap->coins * UINT32_C(1664525) + UINT32_C(1013904223);
    return heap->coins >> 31;
}

/* Both may be NULL; the first of the merged heap has `above` above it. */
static qi_wait *merge(qi_queue_heap *heap, qi_wait *one, qi_wait *other, qi_wait *above)
{
    qi_wait *first = NULL, **link = &first;
    while (one && other) {
        qi_wait *before = comes_before(other, one) ? other : one;
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
        if (below[i] && (below[i]->above != wait || comes_before(below[i], wait)))
            return false;
    return wait->order != 0;
}
