/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * malloc_recorder: records the heap of a real, unmodified program as a trace that quire replays.
 *
 *     cc -std=c11 -O2 -fPIC -shared -o malloc_recorder.so malloc_recorder.c \
 *         malloc_recorder_log.c -ldl -lpthread
 *     QUIRE_RECORD=run-%p.csv LD_PRELOAD=$PWD/malloc_recorder.so PROGRAM ...
 *
 * QUIRE_RECORD      path of the file; %p becomes the process id. With %p each process of a tree
 *                   writes its own file; without it only the first process records.
 * QUIRE_RECORD_MIN  smallest recorded size in bytes; the default is 1.
 *
 * This file owns the replacements of the allocation functions and the lock; malloc_recorder_log.c
 * owns the recording. A replacement calls the C library and adds a line. Allocations made inside a
 * replacement are not recorded, so that the recorder does not appear in its own recording. A
 * program that ends with exit, _exit or return leaves a complete file. A killed program leaves
 * complete lines up to the last full buffer. After an exec, the file holds the recording of the new
 * program.
 *
 * Requires RTLD_NEXT (glibc). valloc and pvalloc are not replaced because they are obsolete; frees
 * of memory that was not recorded are ignored.
 */
#define _GNU_SOURCE
#include "malloc_recorder_log.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALIGNMENT alignof(max_align_t) /* the alignment that malloc guarantees */

/* ---- The C library's functions ---- */

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    void *(*memalign)(size_t, size_t);
} real;

static bool resolving, resolved;

/* dlsym may allocate before the C library's functions are resolved. This buffer serves those
 * allocations. Each byte is handed out at most once, so that it is still zero, as calloc needs. */
static alignas(max_align_t) unsigned char first_memory[16384];
static size_t first_used;

static void *first_alloc(size_t size)
{
    unsigned char *memory = first_memory + first_used;

    if (size >= sizeof(first_memory) - first_used)
        return NULL;
    first_used += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return memory;
}

static bool is_first(const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)first_memory < sizeof(first_memory);
}

/* The old size is unknown: copies up to the end of the buffer if the new size allows. */
static void *first_realloc(void *old, size_t size)
{
    size_t left = sizeof(first_memory) - ((uintptr_t)old - (uintptr_t)first_memory);
    void *memory = malloc(size);

    if (memory != NULL)
        memcpy(memory, old, size < left ? size : left);
    return memory;
}

static void resolve_one(const char *name, void *function)
{
    void *symbol = dlsym(RTLD_NEXT, name);

    if (symbol == NULL)
        abort();
    /* memcpy, because ISO C has no cast from an object pointer to a function pointer */
    memcpy(function, &symbol, sizeof(symbol));
}

/* Resolves the C library's functions. Returns false while the resolution runs. The first call comes
 * before the program creates threads: usually from the dynamic linker, at the latest from
 * start_early. */
static bool resolve(void)
{
    if (resolved || resolving)
        return resolved;
    resolving = true;
    resolve_one("malloc", &real.malloc);
    resolve_one("calloc", &real.calloc);
    resolve_one("realloc", &real.realloc);
    resolve_one("free", &real.free);
    resolve_one("posix_memalign", &real.posix_memalign);
    resolve_one("aligned_alloc", &real.aligned_alloc);
    resolve_one("memalign", &real.memalign);
    resolved = true;
    return true;
}

/* ---- The lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool started;

/* Set while this thread holds the lock. Allocations that the thread makes in that time, in the C
 * library below the recorder or in a signal handler, must neither wait for the lock nor be
 * recorded. */
THREAD_LOCAL bool inside;

/* Allocations in fork handlers of the program that run between these two are not recorded. */
static void before_fork(void)
{
    pthread_mutex_lock(&lock);
    inside = true;
}

static void after_fork(void)
{
    inside = false;
    pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
    log_forked();
    after_fork();
}

/* Takes the lock and returns true if the recording is on. Saves errno for leave, because the caller
 * of a replacement must see the value that the C library set. */
static bool enter(int *error)
{
    *error = errno;
    if (inside || (started && !log_is_on()))
        return false;
    pthread_mutex_lock(&lock);
    inside = true;
    /* The first allocations precede the initialisation of the environment. */
    if (!started && environ != NULL) {
        if (pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0)
            log_start();
        started = true; /* last, because other threads read it without the lock */
    }
    if (log_is_on())
        return true;
    inside = false;
    pthread_mutex_unlock(&lock);
    errno = *error;
    return false;
}

static void leave(int error)
{
    inside = false;
    pthread_mutex_unlock(&lock);
    errno = error;
}

/* Starts the recording before main, so that a program that allocates late has neither changed its
 * directory nor created threads before. */
__attribute__((constructor)) static void start_early(void)
{
    int error;

    resolve();
    if (enter(&error))
        leave(error);
}

/* ---- The replacements ---- */

static void *record(void *memory, size_t size, size_t alignment, const char *label)
{
    int error;

    if (memory != NULL && enter(&error)) {
        log_alloc(memory, size, alignment, label);
        leave(error);
    }
    return memory;
}

/* glibc accepts any alignment and rounds it up to a power of two. */
static void *record_aligned(void *memory, size_t size, size_t alignment)
{
    size_t power = 1;

    while (memory != NULL && power < alignment)
        power *= 2;
    return record(memory, size, power, "aligned");
}

void *malloc(size_t size)
{
    return resolve() ? record(real.malloc(size), size, ALIGNMENT, "malloc") : first_alloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (!resolve())
        return size > 0 && count > SIZE_MAX / size ? NULL : first_alloc(count * size);
    return record(real.calloc(count, size), count * size, ALIGNMENT, "calloc");
}

/* Records the free before the C library gets the memory: afterwards another thread may allocate the
 * same memory, and its line must follow this one. */
void free(void *memory)
{
    int error;

    if (memory == NULL || is_first(memory) || !resolve())
        return;
    if (enter(&error)) {
        log_free(memory);
        leave(error);
    }
    real.free(memory);
}

/* Holds the lock during the whole call, because the C library frees the old memory inside it:
 * another thread may get that memory at once, but cannot record it yet. If the block moved, old and
 * new block were both live during the copy, so the allocation is recorded before the free. If it
 * stayed in place, the free is recorded first. */
void *realloc(void *old, size_t size)
{
    void *memory;
    int error;

    if (old == NULL)
        return resolve() ? record(real.realloc(NULL, size), size, ALIGNMENT, "realloc")
                         : first_alloc(size);
    if (is_first(old))
        return first_realloc(old, size);
    if (!enter(&error))
        return real.realloc(old, size);
    memory = real.realloc(old, size);
    error = memory != NULL ? error : errno;
    if (memory != NULL && memory != old)
        log_alloc(memory, size, ALIGNMENT, "realloc");
    if (memory != NULL || size == 0) /* size 0 frees */
        log_free(old);
    if (memory == old)
        log_alloc(memory, size, ALIGNMENT, "realloc");
    leave(error);
    return memory;
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    int error;

    if (!resolve())
        return ENOMEM;
    error = real.posix_memalign(memory, alignment, size);
    if (error == 0)
        record_aligned(*memory, size, alignment);
    return error;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return resolve() ? record_aligned(real.aligned_alloc(alignment, size), size, alignment) : NULL;
}

void *memalign(size_t alignment, size_t size)
{
    return resolve() ? record_aligned(real.memalign(alignment, size), size, alignment) : NULL;
}

/* ---- The end ---- */

static void finish(bool for_good)
{
    int error;

    if (enter(&error)) {
        log_flush(for_good);
        leave(error);
    }
}

/* Libraries whose destructors run after this one may still free. */
__attribute__((destructor)) static void finish_at_exit(void)
{
    finish(true);
}

/* exit uses the C library's internal _exit. Programs call this one to skip destructors. */
void _exit(int status)
{
    finish(false);
    for (;;)
        syscall(SYS_exit_group, status);
}

void _Exit(int status)
{
    _exit(status);
}
