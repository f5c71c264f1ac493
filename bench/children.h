/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * children.h - runs each measurement in a separate process, so that the heap, the caches and the
 * predictors do not carry over, and a crash of a peer affects one measurement only.
 */
#ifndef QUIRE_BENCH_CHILDREN_H
#define QUIRE_BENCH_CHILDREN_H

#include <stddef.h>

/* Zeroed memory for results, shared by parent and children. Exits the program on failure. */
void *shared_memory(size_t count, size_t size);
void shared_release(void *memory, size_t count, size_t size);

/*
 * Calls work(user, index) for each index below `count`, each in a new child process, and waits for
 * them. At most `parallel` children run at the same time.
 */
void in_children(size_t count, size_t parallel, void (*work)(void *user, size_t index), void *user);

/*
 * Starts a thread that sleeps until the process exits. In a process with one thread the C library
 * takes its locks without atomic operations, which hides their cost in threaded programs.
 */
void have_second_thread(void);

#endif
