/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*
 * system.c - the functions of POSIX and Linux behind system.h.
 */
#include "src/base/system.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Sizes of memories and of tables are computed in 64 bits, and no test runs with other pointers. */
_Static_assert(sizeof(void *) == 8, "quire needs pointers of 64 bits");

/* ---- processors --------------------------------------------------------------------------- */

#ifdef __linux__
#include <sched.h>
#endif

uint32_t qi_processor_count(void)
{
#ifdef __linux__
    cpu_set_t set; /* of 1024 processors; a system with more fails the call */
    if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
        return (uint32_t)CPU_COUNT(&set);
#endif
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 1;
}

/* ---- memory files ------------------------------------------------------------------------- */

int qi_memfd_make(const char *name, uint64_t size, unsigned flags)
{
    int descriptor = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
    if (descriptor < 0)
        return -1;
    if (ftruncate(descriptor, (off_t)size) ||
        fcntl(descriptor, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) {
        int code = errno;
        close(descriptor);
        errno = code;
        return -1;
    }
    return descriptor;
}

bool qi_memfd_has(int descriptor, uint64_t size)
{
    struct stat file;
    int seals = fcntl(descriptor, F_GET_SEALS);
    return seals >= 0 && seals & F_SEAL_SHRINK && !fstat(descriptor, &file) &&
           (uint64_t)file.st_size >= size;
}

/* ---- forks -------------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const qi_fork_handlers *handlers; /* null before registration; protected by the mutex */

void qi_fork_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void qi_fork_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

static void prepare(void)
{
    qi_fork_lock();
    handlers->prepare();
}

static void resume_parent(void)
{
    handlers->parent();
    qi_fork_unlock();
}

static void resume_child(void)
{
    handlers->child();
    qi_fork_unlock();
}

bool qi_fork_watch(const qi_fork_handlers *wanted)
{
    qi_fork_lock();
    bool is_registered = handlers != NULL;
    handlers = wanted;
    if (!is_registered && pthread_atfork(prepare, resume_parent, resume_child))
        handlers = NULL;
    is_registered = handlers != NULL;
    qi_fork_unlock();
    return is_registered;
}
