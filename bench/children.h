/*
 * children.h - runs measurements in processes of their own, so that none finds the heap, the caches
 * or the predictors as another one left them, and a peer that dies takes nothing with it.
 */
#ifndef QUIRE_BENCH_CHILDREN_H
#define QUIRE_BENCH_CHILDREN_H

#include <stddef.h>

/* Zeroed memory that the children share with their parent: where results go. Ends on failure. */
void *shared_memory(size_t count, size_t size);
void shared_release(void *memory, size_t count, size_t size);

/*
 * Calls work(user, index) for each index below `count`, each in a fresh child, at most `parallel`
 * of them at a time.
 */
void in_children(size_t count, size_t parallel, void (*work)(void *user, size_t index), void *user);

/*
 * Starts a thread that sleeps for as long as the process lives. Without one the C library takes its
 * locks by plain stores, and what a lock costs a program with threads is not seen.
 */
void have_second_thread(void);

#endif
