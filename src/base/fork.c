/*
 * fork.c - see fork.h.
 */
#include "src/base/fork.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static const qi_fork_handlers *handlers; /* NULL: not registered; under the mutex */

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

static void go_on_in_parent(void)
{
    handlers->parent();
    qi_fork_unlock();
}

static void go_on_in_child(void)
{
    handlers->child();
    qi_fork_unlock();
}

bool qi_fork_watch(const qi_fork_handlers *wanted)
{
    qi_fork_lock();
    bool is_there = handlers != NULL;
    handlers = wanted;
    if (!is_there && pthread_atfork(prepare, go_on_in_parent, go_on_in_child))
        handlers = NULL;
    is_there = handlers != NULL;
    qi_fork_unlock();
    return is_there;
}
