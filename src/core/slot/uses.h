/*
 * uses.h - whether the calling thread runs a callback while a call of the library has allocations
 * in use.
 *
 * Where a callback forks, the call continues in the child after the callback returns, and its uses
 * must still count there. The uses of all other threads are dropped in the child. The counter is
 * the thread's own; no lock guards it.
 */
#ifndef QUIRE_SRC_CORE_SLOT_USES_H
#define QUIRE_SRC_CORE_SLOT_USES_H

#include <stdbool.h>

/* Around a callback. Calls nest: a callback may call quire, which calls another callback. */
void qi_uses_begin_callback(void);
void qi_uses_end_callback(void);

/* For the child of a fork: whether the uses of slots stay. */
bool qi_uses_are_kept(void);

#endif
