/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * crew.h - threads that run one task at a time on request, so that a test knows in which shard a
 * call is made. The calling thread has number 0, the crew the numbers from 1.
 */
#ifndef QUIRE_TESTS_SUPPORT_CREW_H
#define QUIRE_TESTS_SUPPORT_CREW_H

#include <pthread.h>

#include "tests/support/check.h"

enum { CREW_MOST = 8 };

typedef struct crew_member {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*task)(void *user);
    void *user;
    bool ends;
    uint32_t number; /* qi_thread_number */
} crew_member;

typedef struct crew {
    crew_member members[CREW_MOST];
    uint32_t count;
} crew;

void crew_start(crew *c, uint32_t count);

/* Member `number`, from 1, runs the task; crew_do waits until it has finished. A task makes no
   checks. */
void crew_tell(crew *c, uint32_t number, void (*task)(void *user), void *user);
void crew_await(crew *c, uint32_t number);
void crew_do(crew *c, uint32_t number, void (*task)(void *user), void *user);

void crew_end(crew *c);

#endif
