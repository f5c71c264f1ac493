/*
 * fork.h - the handlers that run around each fork of the process.
 *
 * The handlers are functions of the library; when the library is unloaded, the C library removes
 * them. They run with the fork lock held. The fork lock also protects the list of devices that they
 * visit. It is acquired before every other lock of the library.
 */
#ifndef QUIRE_SRC_BASE_FORK_H
#define QUIRE_SRC_BASE_FORK_H

#include <stdbool.h>

typedef struct qi_fork_handlers {
    void (*prepare)(void); /* before the fork */
    void (*parent)(void);  /* after the fork, in the parent */
    void (*child)(void);   /* in the child, whose only thread is the one that forked */
} qi_fork_handlers;

/*
 * Registers the handlers. The process has one set of handlers; a later call with the same set has
 * no effect. Returns false if host memory is exhausted. Requires that the fork lock is not held.
 */
bool qi_fork_watch(const qi_fork_handlers *handlers);

void qi_fork_lock(void);
void qi_fork_unlock(void);

#endif
