/*
 * The recording that the stand-ins of malloc_recorder.c write: what is on record, and the file.
 * None of these is safe against another thread; the caller holds one lock over all of them, which
 * is also what keeps the times in the file from falling.
 */
#ifndef MALLOC_RECORDER_LOG_H
#define MALLOC_RECORDER_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* The shared object lies in front of every library of a program: only the stand-ins may show. */
#pragma GCC visibility push(hidden)

/* In the thread's static block, as the other models may call malloc at the first access. */
#define THREAD_LOCAL static __attribute__((tls_model("initial-exec"))) _Thread_local

/* Reads the environment and begins to record, or not. */
void log_start(void);

/* False before log_start too; may be called without the lock. */
bool log_is_on(void);

void log_alloc(const void *memory, size_t size, size_t alignment, const char *label);

/* Memory that is not on record is ignored. */
void log_free(const void *memory);

/* Writes the lines that wait. With `for_good` every later line is written at once, as no later
 * moment to write is sure to come. */
void log_flush(bool for_good);

/* In the child of a fork: begins a recording of its own, or stops. */
void log_forked(void);

#pragma GCC visibility pop

#endif
