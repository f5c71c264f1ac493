/*
 * thread.h - a small number for each thread of the process, so that threads can be spread.
 *
 * Numbers are dense: the lowest one free is taken at a thread's first question and given back when
 * the thread ends. Beyond QI_MAX_THREADS threads share numbers.
 */
#ifndef QUIRE_SRC_BASE_THREAD_H
#define QUIRE_SRC_BASE_THREAD_H

#include <stdint.h>

enum { QI_MAX_THREADS = 1024 };

uint32_t qi_thread_number(void);

/* The calling thread: a value that no other live thread has, and the same in a child it forks. */
const void *qi_thread_self(void);

/* In the child of a fork: the numbers of the threads that are gone are free again. */
void qi_thread_forked(void);

#endif
