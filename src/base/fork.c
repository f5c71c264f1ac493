/*
 * fork.c - registers the library's fork handlers and holds the fork lock from before each fork
 * until after it, in the parent and in the child.
 */
#include "src/base/fork.h"

#include <pthread.h>

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
