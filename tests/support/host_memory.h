/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * host_memory.h - host memory callbacks for tests: they count, check sizes and alignments on
 * release, and fail on request. Thread-safe.
 */
#ifndef QUIRE_TESTS_SUPPORT_HOST_MEMORY_H
#define QUIRE_TESTS_SUPPORT_HOST_MEMORY_H

#include <pthread.h>

#include "quire/base.h"

typedef struct test_memory {
    quire_host_memory callbacks; /* pass these to quire */
    pthread_mutex_t lock;
    uint64_t blocks; /* live now */
    uint64_t bytes;
    uint64_t calls;      /* calls to allocate since the start */
    uint64_t fail_at;    /* this call fails, counted from 1; 0 means none */
    bool fail_from_then; /* and all later ones */
} test_memory;

void test_memory_init(test_memory *memory);

/* Restarts counting from 0 and fails the given call (0 means none). */
void test_memory_fail(test_memory *memory, uint64_t call, bool from_then);

#endif
