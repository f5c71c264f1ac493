/*
 * fork.h - what is done around each fork of the process.
 *
 * The handlers belong to the library: where it is unloaded they go with it. They run with a lock,
 * which also guards what they go through: it is taken before every other lock of the library.
 */
#ifndef QUIRE_SRC_BASE_FORK_H
#define QUIRE_SRC_BASE_FORK_H

#include <stdbool.h>

typedef struct qi_fork_handlers {
    void (*prepare)(void); /* before the fork */
    void (*parent)(void);  /* after it */
    void (*child)(void); /* in the child, by the thread that forked, which is the only one there */
} qi_fork_handlers;

/*
 * Sees to it that the handlers run around forks from now on; there are none but these, and a later
 * call does nothing. False: there is no host memory for that.
 */
bool qi_fork_watch(const qi_fork_handlers *handlers);

void qi_fork_lock(void);
void qi_fork_unlock(void);

#endif
