/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * The recording that the replacements of malloc_recorder.c write: the live blocks and the file.
 * No function here is thread-safe. The caller holds one lock around all of them, which also keeps
 * the times in the file in order.
 */
#ifndef MALLOC_RECORDER_LOG_H
#define MALLOC_RECORDER_LOG_H

#include <stdbool.h>
#include <stddef.h>

/* The shared object precedes every library of a program: it may export only the replacements. */
#pragma GCC visibility push(hidden)

/* Initial-exec, because the dynamic TLS models may call malloc at the first access. */
#define THREAD_LOCAL static __attribute__((tls_model("initial-exec"))) _Thread_local

/* Reads the environment and starts the recording if QUIRE_RECORD is set. */
void log_start(void);

/* Whether the recording is on; false before log_start. May be called without the lock. */
bool log_is_on(void);

void log_alloc(const void *memory, size_t size, size_t alignment, const char *label);

/* Ignores memory that was not recorded. */
void log_free(const void *memory);

/* Writes the buffered lines. With `for_good` every later line is written at once, because no later
 * flush is guaranteed. */
void log_flush(bool for_good);

/* In the child of a fork: starts a separate recording, or stops. */
void log_forked(void);

#pragma GCC visibility pop

#endif
