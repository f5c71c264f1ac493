/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * children.c - see children.h.
 */
#include "bench/children.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Adds one byte, because mmap rejects a size of 0. */
void *shared_memory(size_t count, size_t size)
{
    void *memory =
        mmap(NULL, count * size + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED)
        return memory;
    perror("bench: no host memory for results");
    exit(1);
}

void shared_release(void *memory, size_t count, size_t size)
{
    munmap(memory, count * size + 1);
}

/* Waits for any child. Reports a child that a signal killed; its result stays zero. */
static void wait_for_one(void)
{
    int status = 0;
    pid_t child = wait(&status);
    if (child > 0 && WIFSIGNALED(status))
        fprintf(stderr, "bench: signal %d killed a measurement\n", WTERMSIG(status));
}

/* _exit skips the exit handlers, which belong to the parent. */
void in_children(size_t count, size_t parallel, void (*work)(void *user, size_t index), void *user)
{
    size_t running = 0;
    fflush(NULL); /* otherwise every child writes the buffered output again */
    for (size_t i = 0; i < count; i++) {
        if (running == parallel) {
            wait_for_one();
            running--;
        }
        pid_t child = fork();
        if (child == 0) {
            work(user, i);
            _exit(0);
        }
        if (child < 0) {
            perror("bench: cannot start a process");
            exit(1);
        }
        running++;
    }
    while (running--)
        wait_for_one();
}

static void *sleep_on(void *user)
{
    for (;;)
        pause();
    return user;
}

void have_second_thread(void)
{
    pthread_t thread;
    if (!pthread_create(&thread, NULL, sleep_on, NULL))
        return;
    perror("bench: cannot start a thread");
    exit(1);
}
