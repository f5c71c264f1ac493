/*
 * uses.h - whether the calling thread runs a callback while a call of the library has allocations
 * in use.
 *
 * If such a callback forks, the call continues in the child after the callback returns, and its
 * uses must still count there. A use does not record its thread, so that the child then keeps the
 * uses of all threads. Otherwise the child drops every use that is not a hold. The counter is
 * thread-local and needs no lock.
 */
#ifndef QUIRE_SRC_CORE_SLOT_USES_H
#define QUIRE_SRC_CORE_SLOT_USES_H

#include <stdbool.h>

/* Around a callback. Calls nest: a callback may call quire, which calls another callback. */
void qi_uses_begin_callback(void);
void qi_uses_end_callback(void);

/* For the child of a fork. Whether the uses of slots are kept there. */
bool qi_uses_are_kept(void);

#endif
