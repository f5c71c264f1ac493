/*
 * fork.c - the fork handlers of all allocators of the process.
 *
 * Before a fork they take the locks of the allocators, so that the child finds every list whole. No
 * thread calls quire while it holds one of these locks, and no thread takes one while it holds a
 * lock of quire. The order of these handlers and those of quire thus does not matter.
 */
#include "quire/backend.h"
#include "src/adapters/host_allocator/allocator.h"

static pthread_mutex_t list_mutex = PTHREAD_MUTEX_INITIALIZER;
static host_allocator *first;

static void prepare(void)
{
    pthread_mutex_lock(&list_mutex);
    for (host_allocator *a = first; a; a = a->next) {
        pthread_mutex_lock(&a->trace.mutex);
        host_caches_lock_all(&a->caches);
    }
}

static void in_parent(void)
{
    for (host_allocator *a = first; a; a = a->next) {
        host_caches_unlock_all(&a->caches);
        pthread_mutex_unlock(&a->trace.mutex);
    }
    pthread_mutex_unlock(&list_mutex);
}

static void in_child(void)
{
    for (host_allocator *a = first; a; a = a->next) {
        host_caches_unlock_in_child(&a->caches);
        host_trace_abandon(&a->trace);
        pthread_mutex_unlock(&a->trace.mutex);
    }
    pthread_mutex_unlock(&list_mutex);
}

quire_result host_fork_add(host_allocator *allocator)
{
    static bool is_registered; /* requires list_mutex */
    pthread_mutex_lock(&list_mutex);
    if (!is_registered)
        is_registered = !pthread_atfork(prepare, in_parent, in_child);
    if (is_registered) {
        allocator->next = first;
        first = allocator;
    }
    bool is_added = is_registered;
    pthread_mutex_unlock(&list_mutex);
    return is_added ? QUIRE_SUCCESS
                    : quire_backend_fail(QUIRE_ERROR_OUT_OF_HOST_MEMORY, 0,
                                         "the fork handlers cannot be registered");
}

void host_fork_remove(host_allocator *allocator)
{
    pthread_mutex_lock(&list_mutex);
    host_allocator **place = &first;
    while (*place && *place != allocator)
        place = &(*place)->next;
    if (*place)
        *place = allocator->next;
    pthread_mutex_unlock(&list_mutex);
}
