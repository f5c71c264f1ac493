/*
 * device_members.h - the memories of a device, and whether a device can be destroyed.
 *
 * The list is linked by next_of_device of a memory. The device's lock protects it; these functions
 * acquire the lock. Invariant: memory_count is the length of the list.
 */
#ifndef QUIRE_SRC_CORE_MEMORY_DEVICE_MEMBERS_H
#define QUIRE_SRC_CORE_MEMORY_DEVICE_MEMBERS_H

#include "src/core/device/device.h"

void qi_device_add_memory(quire_device *device, quire_memory *memory);

/* The memory must be in the list. */
void qi_device_remove_memory(quire_device *device, quire_memory *memory);

/*
 * Checks that nothing of the device is left: no memory, no stream, and no destroyed stream that
 * allocations of other devices still name (the last does not count in the child of a fork). Fails
 * with BUSY. The names of live memories go to the log as well.
 */
QUIRE_MUST_USE quire_result qi_device_check_unused(quire_device *device);

#endif
