/*
 * fork_child.h - what the fork handlers do to each device in the child of a fork (see fork.h).
 */
#ifndef QUIRE_SRC_CORE_MEMORY_FORK_CHILD_H
#define QUIRE_SRC_CORE_MEMORY_FORK_CHILD_H

#include "src/core/device/device.h"

/*
 * Requires that the process has one thread and that it holds no lock, except where the fork was
 * called in a callback of the library. Repairs the device, its streams and its memories. A device
 * that does not survive the fork is disabled.
 */
void qi_fork_settle_device(quire_device *device);

#endif
